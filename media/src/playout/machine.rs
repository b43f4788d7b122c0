//! The playout of one party: its inputs and queries. The work of a tick is in `tick`.

use crate::codec::Codec;
use crate::playout::figures::PlayoutFigures;
use crate::playout::formats::PlayoutFormats;
use crate::playout::noise::Noise;
use crate::playout::slots::{Content, PLACES, Put, Slots};
use crate::playout::timing::Timing;
use crate::playout::voice::{LONGEST_US, Voice};
use crate::rtp::{Packet, RtpPacket};
use crate::time::Micros;

/// The result for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// Its codec cannot decode it.
    Damaged,
    /// It has already arrived.
    Duplicate,
    /// Its payload type is neither audio nor comfort noise.
    Foreign,
    /// A later packet was already played.
    Late,
    /// It waits to be played.
    Waits,
}

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulled {
    /// Concealment for missing packets.
    Concealed,
    /// Comfort noise: the party is silent.
    Noise,
    /// Silence: there is no audio.
    Nothing,
    /// The party's audio.
    Voice,
}

/// The level of the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek {
    /// An estimate of its mean square.
    Level(u64),
    /// There is no audio.
    Nothing,
    /// The level is known only after decoding.
    Unknown,
}

/// Turns one party's packets into continuous audio.
///
/// ```
/// use sidetone_media::codec::Codec;
/// use sidetone_media::playout::{Playout, PlayoutFormats, Pulled};
/// use sidetone_media::rtp::RtpPacket;
/// use sidetone_media::time::Micros;
///
/// let formats = PlayoutFormats { audio: vec![(0, Codec::Pcmu)], ..PlayoutFormats::default() };
/// let mut playout = Playout::new(&formats, 1);
/// let mut datagram = vec![0x80, 0, 0, 1, 0, 0, 0, 160, 0, 0, 0, 7];
/// datagram.resize(12 + 160, 0xa0);
/// playout.push(Micros(0), &RtpPacket::parse(&datagram).unwrap());
/// let mut pcm = vec![0; playout.frame_samples()];
/// assert_eq!(playout.pull(Micros(5_000), &mut pcm), Pulled::Nothing);
/// assert_eq!(playout.pull(Micros(25_000), &mut pcm), Pulled::Voice);
/// ```
///
/// *Bounds*: at most 64 packets wait, 240 ms in total; nothing is allocated after every slot was used once
/// and every payload type has arrived once.
#[derive(Debug)]
pub struct Playout {
    pub(super) formats: PlayoutFormats,
    pub(super) source: Option<Source>,
    pub(super) timing: Timing,
    pub(super) slots: Slots,
    pub(super) voice: Voice,
    pub(super) noise: Noise,
    pub(super) state: State,
    pub(super) figures: Counts,
}

/// The source of the packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    ssrc: u32,
    clock_hz: u32,
    /// The highest sequence number and its timestamp, extended beyond their wraps.
    sequence: i64,
    timestamp: i64,
}

/// Position and state of the playout.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// Whether voice is being played; otherwise the next packet waits for its time.
    pub(super) is_playing: bool,
    /// The next sequence number.
    pub(super) next: i64,
    /// The media time that is decoded next.
    pub(super) cursor_us: i64,
    /// Time concealed while the next packet was missing; that packet may only be late.
    pub(super) held_us: i64,
    pub(super) quiet: Quiet,
    /// The smallest excess of the delay over its target, and the number of ticks over which it was observed.
    pub(super) least_excess_us: i64,
    pub(super) ticks: u32,
    /// Whether the last frame was decoded, not skipped.
    pub(super) was_heard: bool,
}

/// Why missing audio is not a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Quiet {
    /// A key is pressed.
    Event,
    #[default]
    No,
    /// The party sends comfort noise instead.
    Noise,
}

/// Counts with a finer resolution than [`PlayoutFigures`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) late: u64,
    pub(super) early: u64,
    pub(super) duplicates: u64,
    pub(super) damaged: u64,
    pub(super) concealed_us: i64,
    pub(super) stretched_us: i64,
    pub(super) shortened_us: i64,
    pub(super) delay_us: i64,
}

impl Playout {
    /// A playout before the first packet; `seed` is that of its comfort noise.
    pub fn new(formats: &PlayoutFormats, seed: u64) -> Playout {
        Playout {
            formats: formats.clone(),
            source: None,
            timing: Timing::new(),
            slots: Slots::new(),
            voice: Voice::new(formats),
            noise: Noise::new(seed),
            state: State::default(),
            figures: Counts::default(),
        }
    }

    /// Replaces the formats that the party may send; waiting packets in changed formats are not played.
    pub fn set_formats(&mut self, formats: &PlayoutFormats) {
        if *formats != self.formats {
            self.voice.set_formats(formats);
            self.slots.clear();
            self.state.is_playing = false;
            self.formats = formats.clone();
        }
    }

    /// Adds one packet, which arrived at `now`.
    pub fn push(&mut self, now: Micros, packet: &RtpPacket<'_>) -> Pushed {
        let RtpPacket { header, payload } = *packet;
        let Some(content) = self.content(header.payload_type, payload) else { return Pushed::Foreign };
        let Some((clock_hz, duration_us)) = self.extent(content, payload) else {
            self.figures.damaged += 1;
            return Pushed::Damaged;
        };
        let (sequence, media_us) = self.place(now, &header, clock_hz);
        if sequence < self.state.next {
            if self.slots.kept(sequence).is_some() {
                self.figures.duplicates += 1;
                return Pushed::Duplicate;
            }
            self.figures.late += 1;
            self.timing.observe(now, media_us, duration_us);
            return Pushed::Late;
        }
        match self.slots.put(sequence, media_us, duration_us, content, payload) {
            Put::Duplicate => {
                self.figures.duplicates += 1;
                return Pushed::Duplicate;
            }
            Put::Stale => {
                self.figures.late += 1;
                return Pushed::Late;
            }
            Put::Kept { evicted } => {
                self.figures.early += evicted;
                let oldest = sequence - PLACES as i64 + 1;
                if self.state.next < oldest {
                    self.state.next = oldest;
                    self.figures.early += self.slots.forget_before(oldest);
                }
            }
        }
        if matches!(content, Content::Audio(_)) {
            self.timing.observe(now, media_us, duration_us);
            if self.state.quiet == Quiet::Event {
                self.state.quiet = Quiet::No;
            }
        }
        Pushed::Waits
    }

    /// Records that the party presses a key (RFC 4733): audio missing until its next packet is not a loss.
    pub fn event(&mut self) {
        self.state.quiet = Quiet::Event;
    }

    /// The figures so far.
    pub fn figures(&self) -> PlayoutFigures {
        let ms = |us: i64| u64::try_from(us / 1_000).unwrap_or(0);
        let figures = &self.figures;
        PlayoutFigures {
            late: figures.late,
            early: figures.early,
            duplicates: figures.duplicates,
            damaged: figures.damaged,
            concealed_ms: ms(figures.concealed_us),
            stretched_ms: ms(figures.stretched_us),
            shortened_ms: ms(figures.shortened_us),
            delay_ms: u32::try_from(ms(figures.delay_us)).unwrap_or(u32::MAX),
            target_ms: u32::try_from(ms(self.timing.target_us())).unwrap_or(u32::MAX),
        }
    }

    fn content(&self, number: u8, payload: &[u8]) -> Option<Content> {
        if self.formats.noise.contains(&number) {
            return Some(Content::Noise);
        }
        let lane = self.voice.lane(number)?;
        // Opus signals silence with one or two bytes.
        let is_silence = self.voice.codec(lane) == Some(Codec::Opus) && Codec::Opus.power(payload) == Some(0);
        Some(if is_silence { Content::Noise } else { Content::Audio(lane) })
    }

    /// The clock and the duration of a packet; `None` when its codec cannot decode it.
    fn extent(&self, content: Content, payload: &[u8]) -> Option<(u32, i64)> {
        let clock_hz = self.source.map(|source| source.clock_hz);
        let Content::Audio(lane) = content else { return Some((clock_hz.unwrap_or(8_000), 0)) };
        let codec = self.voice.codec(lane)?;
        let samples = i64::try_from(codec.samples(payload).ok()?).ok()?;
        let duration_us = samples * 1_000_000 / i64::from(codec.sample_rate_hz());
        (duration_us <= LONGEST_US).then_some((codec.rtp_clock().hz(), duration_us))
    }

    /// Extends the packet's number and timestamp beyond their wraps; a packet that does not fit to earlier
    /// ones starts another source.
    fn place(&mut self, now: Micros, header: &Packet, clock_hz: u32) -> (i64, i64) {
        let us = |timestamp: i64| timestamp * 1_000_000 / i64::from(clock_hz.max(1));
        if let Some(source) = &mut self.source
            && (source.ssrc, source.clock_hz) == (header.ssrc, clock_hz)
        {
            let ahead = i64::from(header.sequence.wrapping_sub(source.sequence as u16) as i16);
            let sequence = source.sequence + ahead;
            let timestamp =
                source.timestamp + i64::from(header.timestamp.wrapping_sub(source.timestamp as u32) as i32);
            let lateness_us = self.timing.lateness_us(now, us(timestamp)).unwrap_or(0);
            // After a long silence the timestamp still fits; after a jump it does not. A packet with an older
            // number is only late.
            let fits = ahead.abs() <= JUMP && (ahead <= 0 || lateness_us.abs() <= LATENESS_MAX_US);
            if fits {
                if ahead > 0 {
                    (source.sequence, source.timestamp) = (sequence, timestamp);
                }
                if lateness_us > REBASE_US && !self.state.is_playing && self.slots.is_empty() {
                    // After a pause the packet is late although none waits: the party's clock stood still, or
                    // the path has changed.
                    self.timing.rebase();
                }
                return (sequence, us(timestamp));
            }
        }
        // Far from both ends of the range, so that packets overtaken by this one can still get a smaller
        // number.
        let sequence = (1 << 32) + i64::from(header.sequence);
        let timestamp = (1 << 40) + i64::from(header.timestamp);
        self.source = Some(Source { ssrc: header.ssrc, clock_hz, sequence, timestamp });
        self.slots.clear();
        self.timing.rebase();
        self.state.is_playing = false;
        self.state.next = sequence - OVERTAKEN;
        (sequence, us(timestamp))
    }
}

/// A larger step of the sequence number means another source (RFC 3550 A.1, MAX_DROPOUT).
const JUMP: i64 = 3_000;
/// With more lateness a packet belongs to another timeline.
const LATENESS_MAX_US: i64 = 1_000_000;
/// Lateness after a pause from which transits are measured again.
const REBASE_US: i64 = 100_000;
/// Packets that the first one of a source may have overtaken.
const OVERTAKEN: i64 = 16;
