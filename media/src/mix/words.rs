//! Types of a mix's interface: seats, their formats and sources, commands, events.

use std::fmt;
use std::sync::Arc;

use crate::audio::clip::Clip;
use crate::codec::{Codec, CodecError};
use crate::playout::PlayoutFigures;
use crate::time::Micros;

/// Identifies a mix within the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MixId(pub u64);

/// Identifies a seat within its mix; the caller chooses the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeatKey(pub u64);

/// The formats that SDP negotiated for one seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formats {
    /// The codecs that the party may send, each with its payload type.
    pub receive: Vec<(u8, Codec)>,
    /// The codec that it is sent, with its payload type.
    pub send: (u8, Codec),
    /// The payload type of telephone events from the party (RFC 4733).
    pub event_receive: Option<u8>,
    /// The payload type of telephone events to the party.
    pub event_send: Option<u8>,
    /// The payload types of comfort noise that it may send (RFC 3389).
    pub noise_receive: Vec<u8>,
    /// Audio per packet to the party: 10 to 60 ms, in steps of ten.
    pub ptime_ms: u32,
    /// Whether SDP allows us to send.
    pub hears: bool,
    /// Whether SDP allows the party to send. `false` on hold: its packets are then not mixed.
    pub speaks: bool,
}

/// The audio that a seat hears while no clip plays for this seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hears {
    /// All other parties.
    Mix,
    /// This clip, repeated; all listeners of the same clip hear the same position.
    Music(Arc<Clip>),
    /// Nothing: no packet at all is sent.
    Nothing,
    /// Silence, in packets: a phone that receives none hangs up.
    Silence,
}

/// Loudness of a seat's party as the others hear it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gain {
    /// A fixed gain in decibels, from -[`Gain::DECIBELS_MAX`] to [`Gain::DECIBELS_MAX`]; with automatic control it is
    /// added to that gain.
    pub decibels: i8,
    /// Whether its speech is brought to -24 dBov, by a gain of -18 to 24 dB.
    pub automatic: bool,
}

impl Gain {
    /// The largest fixed gain in decibels.
    pub const DECIBELS_MAX: i8 = 24;
}

/// A new seat.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The negotiated formats.
    pub formats: Formats,
    /// Whether it is muted: no other party hears it.
    pub muted: bool,
    /// The audio that it hears.
    pub hears: Hears,
    /// Seed of its SSRC, first sequence number and first timestamp.
    pub seed: u64,
}

/// A command to one seat.
#[derive(Clone, Debug)]
pub enum SeatCommand {
    /// A new SDP answer.
    Format(Box<Formats>),
    /// Changes its loudness.
    Gain(Gain),
    /// Changes the audio that it hears.
    Hear(Hears),
    /// Puts its audio on the left channel of a recording by [`MixCommand::RecordChannels`], or on the right.
    Left(bool),
    /// Mutes it, or ends the muting.
    Mute(bool),
    /// Plays these clips to this seat only, after those already queued; [`MixEvent::Played`] reports the end.
    /// The seat's other audio is lowered meanwhile; music is silent.
    Play {
        /// The clips, one after the other.
        clips: Vec<Arc<Clip>>,
        /// Identifies the command in [`MixEvent::Played`].
        token: u64,
    },
    /// Plays this clip to this seat only, in place of an earlier one and beside the clips of [`SeatCommand::Play`]. The
    /// seat's other audio is lowered meanwhile; music is silent.
    PlaySound(Arc<Clip>),
    /// Drops all clips of [`SeatCommand::Play`] of this seat; no [`MixEvent::Played`] follows for them.
    StopPlaying,
    /// Ends the clip of [`SeatCommand::PlaySound`].
    StopSound,
    /// Lets only this seat hear the party, and no recording; `None` lets all hear it again. While there is no such
    /// seat, no party hears it.
    Whisper(Option<SeatKey>),
}

/// A command to the whole mix.
pub enum MixCommand {
    /// Plays these clips to all seats that hear the mix, after those already queued.
    Play(Vec<Arc<Clip>>),
    /// Plays this clip to all seats that hear the mix and to the recording, in place of an earlier one and beside the
    /// clips of [`MixCommand::Play`].
    PlaySound(Arc<Clip>),
    /// Sends every frame of the complete mix to this sink, which replaces an earlier one.
    Record(Box<dyn FrameSink>),
    /// Sends every frame of the mix on two channels to this sink, which replaces an earlier one: seats that are
    /// [`SeatCommand::Left`] on the left, all others on the right, and clips for all seats on both.
    RecordChannels(Box<dyn FrameSink>),
    /// Sends the audio of two seats to this sink, each on a channel of its own; it replaces an earlier one.
    RecordSides {
        /// Receives frames of two channels, interleaved sample by sample.
        sink: Box<dyn FrameSink>,
        /// The seats of the left and the right channel; a seat that does not exist is silent.
        sides: [SeatKey; 2],
    },
    /// Drops the sink.
    StopRecording,
    /// Ends the clip of [`MixCommand::PlaySound`].
    StopSound,
}

impl fmt::Debug for MixCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MixCommand::Play(clips) => f.debug_tuple("Play").field(&clips.len()).finish(),
            MixCommand::PlaySound(clip) => f.debug_tuple("PlaySound").field(&clip.duration_ms()).finish(),
            MixCommand::Record(_) => f.write_str("Record"),
            MixCommand::RecordChannels(_) => f.write_str("RecordChannels"),
            MixCommand::RecordSides { sides, .. } => f.debug_tuple("RecordSides").field(sides).finish(),
            MixCommand::StopRecording => f.write_str("StopRecording"),
            MixCommand::StopSound => f.write_str("StopSound"),
        }
    }
}

/// Receives the frames of a complete mix, or of two seats; it must not block.
pub trait FrameSink: Send {
    /// Takes the 20 ms that began at `at`, mono at 16 kHz or two interleaved channels, also when silent. Returns
    /// `false` when the sink has ended, as on a full disk: the mix then drops it and reports
    /// [`MixEvent::RecordingEnded`].
    fn frame(&mut self, at: Micros, pcm_16k: &[i16]) -> bool;
}

/// An event of a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixEvent {
    /// The party of a seat pressed a key.
    Digit {
        /// The seat whose party pressed it.
        seat: SeatKey,
        /// `0` to `9`, `*`, `#`, `A` to `D`.
        digit: char,
    },
    /// All clips of one [`SeatCommand::Play`] were played.
    Played {
        /// The seat they were played to.
        seat: SeatKey,
        /// The token of the command.
        token: u64,
    },
    /// The recording's sink ended without a command.
    RecordingEnded,
    /// The party of a seat began to talk, or stopped.
    Talking {
        /// Which seat.
        seat: SeatKey,
        /// Whether it talks now.
        talking: bool,
    },
}

/// Why a seat was not added, or a command was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeatError {
    /// A codec refused its own parameters.
    #[error("set up a codec of the seat")]
    Codec(#[from] CodecError),
    /// The mix has the maximum number of seats.
    #[error("the mix is full")]
    Full,
    /// The codec's sample rate is not 8, 16 or 48 kHz.
    #[error("mix audio of {0} Hz")]
    Rate(u32),
    /// The seat exists already.
    #[error("the seat is taken")]
    Taken,
    /// There is no such seat.
    #[error("find the seat")]
    Unknown,
}

/// Figures of a mix: its state and its totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MixFigures {
    /// Seats that are taken.
    pub seats: usize,
    /// Seats that were heard in the last tick.
    pub speakers: usize,
    /// Ticks that ran.
    pub ticks: u64,
    /// Ticks that were skipped because the driver called too late.
    pub skipped_ticks: u64,
    /// Frames that were decoded.
    pub decoded_frames: u64,
    /// Packets that were encoded.
    pub encoded_packets: u64,
    /// Packets that were sent.
    pub sent_packets: u64,
    /// Packets that arrived too late to be played.
    pub late_packets: u64,
    /// Packets dropped unplayed because too many waited.
    pub early_packets: u64,
    /// Milliseconds of audio that concealed missing packets.
    pub concealed_ms: u64,
}

impl MixFigures {
    /// These figures plus the playout figures of one more party.
    pub(super) fn with_playout(self, playout: &PlayoutFigures) -> MixFigures {
        MixFigures {
            late_packets: self.late_packets + playout.late,
            early_packets: self.early_packets + playout.early,
            concealed_ms: self.concealed_ms + playout.concealed_ms,
            ..self
        }
    }
}
