//! What a mix is told and what it tells: seats, what they may send and hear, orders, events.

use std::fmt;
use std::sync::Arc;

use crate::audio::clip::Clip;
use crate::codec::{Codec, CodecError};
use crate::playout::PlayoutFigures;
use crate::time::Micros;

/// A mix among all of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MixId(pub u64);

/// A seat among all of its mix; the caller's own number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeatKey(pub u64);

/// What SDP settled for one seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formats {
    /// The codecs that the party may send, each with its payload type.
    pub receive: Vec<(u8, Codec)>,
    /// What it is sent.
    pub send: (u8, Codec),
    /// The payload type of the telephone events that it sends (RFC 4733).
    pub event_receive: Option<u8>,
    /// The payload type of telephone events towards it.
    pub event_send: Option<u8>,
    /// The payload types of comfort noise that it may send (RFC 3389).
    pub noise_receive: Vec<u8>,
    /// How much audio a packet towards it holds: 10 to 60 ms, in steps of ten.
    pub ptime_ms: u32,
    /// Whether SDP lets us send.
    pub hears: bool,
    /// Whether SDP lets the party send. `false` on hold: then nothing of it is mixed, whatever arrives.
    pub speaks: bool,
}

/// What a seat is sent while no clip plays for it alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hears {
    /// Everybody else.
    Mix,
    /// This clip, over and over; who hears the same clip hears the same place of it.
    Music(Arc<Clip>),
    /// Nothing: no packet at all is sent.
    Nothing,
}

/// A seat as it is taken.
#[derive(Clone, Debug)]
pub struct Seat {
    /// What SDP settled.
    pub formats: Formats,
    /// Whether nobody hears it.
    pub muted: bool,
    /// What it hears.
    pub hears: Hears,
    /// Where its SSRC, its first sequence number and its first timestamp come from.
    pub seed: u64,
}

/// An order about one seat.
#[derive(Clone, Debug)]
pub enum SeatCommand {
    /// SDP settled something else.
    Format(Box<Formats>),
    /// It hears something else.
    Hear(Hears),
    /// Nobody hears it any more, or everybody again.
    Mute(bool),
    /// These clips are played to it alone, after those that are being played, and [`MixEvent::Played`] tells of the
    /// end. What it hears otherwise is lowered meanwhile; music is silent.
    Play {
        /// The clips, one after the other.
        clips: Vec<Arc<Clip>>,
        /// What the end is told by.
        token: u64,
    },
    /// No clip is played to it any more; no [`MixEvent::Played`] tells of those that were under way.
    StopPlaying,
}

/// An order about the whole mix.
pub enum MixCommand {
    /// These clips are played to everybody who hears the mix, after those that are being played.
    Play(Vec<Arc<Clip>>),
    /// Every frame of the whole mix goes to this sink; one that was there before is dropped.
    Record(Box<dyn FrameSink>),
    /// The sink is dropped.
    StopRecording,
}

impl fmt::Debug for MixCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MixCommand::Play(clips) => f.debug_tuple("Play").field(&clips.len()).finish(),
            MixCommand::Record(_) => f.write_str("Record"),
            MixCommand::StopRecording => f.write_str("StopRecording"),
        }
    }
}

/// Where the frames of a whole mix go; it never waits.
pub trait FrameSink: Send {
    /// Takes the 20 ms that began at `at`, mono at 16 kHz, silence too. `false` when the sink has ended, as on a
    /// full disk: it is dropped then, and [`MixEvent::RecordingEnded`] tells.
    fn frame(&mut self, at: Micros, pcm_16k: &[i16]) -> bool;
}

/// What happened in a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixEvent {
    /// The party of a seat pressed a key.
    Digit {
        /// Whose key.
        seat: SeatKey,
        /// `0` to `9`, `*`, `#`, `A` to `D`.
        digit: char,
    },
    /// The clips of one [`SeatCommand::Play`] were played to their end.
    Played {
        /// Whom they were played to.
        seat: SeatKey,
        /// What they were ordered with.
        token: u64,
    },
    /// The recording's sink ended by itself.
    RecordingEnded,
    /// The party of a seat began to talk, or was silent for a while.
    Talking {
        /// Who.
        seat: SeatKey,
        /// Which of both.
        talking: bool,
    },
}

/// Why somebody was given no seat, or an order was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeatError {
    /// A codec refused its own parameters.
    #[error("set up a codec of the seat")]
    Codec(#[from] CodecError),
    /// The mix has as many seats as it may.
    #[error("the mix is full")]
    Full,
    /// The codec's audio is neither of 8, 16 nor 48 kHz.
    #[error("mix audio of {0} Hz")]
    Rate(u32),
    /// Somebody sits on this seat.
    #[error("the seat is taken")]
    Taken,
    /// Nobody sits there.
    #[error("find the seat")]
    Unknown,
}

/// What a mix has done, and what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MixFigures {
    /// Seats that are taken.
    pub seats: usize,
    /// Seats that were heard in the last tick.
    pub speakers: usize,
    /// Ticks that were made.
    pub ticks: u64,
    /// Ticks that were left out, because the driver came too late for them.
    pub skipped_ticks: u64,
    /// Frames that were decoded.
    pub decoded_frames: u64,
    /// Packets that were encoded.
    pub encoded_packets: u64,
    /// Packets that were sent.
    pub sent_packets: u64,
    /// Packets that came too late to be played.
    pub late_packets: u64,
    /// Packets thrown away unplayed because too many waited.
    pub early_packets: u64,
    /// Milliseconds of audio that stood in for what was missing.
    pub concealed_ms: u64,
}

impl MixFigures {
    /// The same with what the playout of one more party did.
    pub(super) fn with_playout(self, playout: &PlayoutFigures) -> MixFigures {
        MixFigures {
            late_packets: self.late_packets + playout.late,
            early_packets: self.early_packets + playout.early,
            concealed_ms: self.concealed_ms + playout.concealed_ms,
            ..self
        }
    }
}
