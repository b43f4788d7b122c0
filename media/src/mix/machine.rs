//! The interface of a mix for its driver: seats, packets in, ticks, packets and events out.

use std::collections::HashMap;

use super::events::Events;
use super::grid::Grid;
use super::line::Line;
use super::member::Member;
use super::sounds::{Needed, Sounds};
use super::stream::{Shared, Source};
use super::talk::Level;
use super::voices::SPEAKERS_MAX;
use super::words::{FrameSink, Hears, MixEvent, MixFigures, Seat, SeatError, SeatKey};
use crate::rtp::RtpPacket;
use crate::time::Micros;

/// The audio of one conference.
///
/// ```
/// # use sidetone_media::mix::Mix;
/// # use sidetone_media::time::Micros;
/// # let (mut mix, now) = (Mix::new(), Micros(0));
/// // After every input, and when the next tick is due:
/// while mix.next_tick().is_some_and(|next| next <= now) {
///     mix.tick(now);
///     while let Some((_seat, _datagram)) = mix.poll_packet() { /* send it */ }
/// }
/// while let Some(_event) = mix.poll_event() { /* report it */ }
/// ```
pub struct Mix {
    pub(super) members: Vec<Member>,
    pub(super) index: HashMap<SeatKey, usize>,
    pub(super) grid: Grid,
    pub(super) sounds: Sounds,
    pub(super) needed: Needed,
    pub(super) shared: Vec<Shared>,
    pub(super) recording: Option<Recording>,
    pub(super) events: Events,
    /// Seats that may be heard in this tick, with their loudness; empty between ticks.
    pub(super) candidates: Vec<(Level, usize)>,
    /// Units of all ticks that ran. It keeps all packets of the same length in step.
    pub(super) phase: u64,
    /// Units since the start, skipped ticks included.
    pub(super) position: u64,
    /// Position at which the tick started whose packets are being taken.
    pub(super) begun: u64,
    /// The seat, and its packet, that is returned next.
    pub(super) cursor: (usize, usize),
    /// Whether every tick has work to do.
    pub(super) is_active: bool,
    pub(super) figures: MixFigures,
    datagram: Vec<u8>,
}

/// The destination of a mix's frames.
pub(super) struct Recording {
    pub(super) sink: Box<dyn FrameSink>,
    pub(super) channels: Channels,
}

/// The content of a recording's channels.
pub(super) enum Channels {
    /// One channel: the complete mix.
    Mix,
    /// Two channels: these two seats alone, left and right.
    Seats([SeatKey; 2]),
    /// Two channels: the seats marked as left, and all others.
    Sides,
}

impl Mix {
    /// Seats of a mix: a little more than two cores can be expected to carry.
    pub const SEATS_MAX: usize = 4_096;
    /// Maximum number of parties heard at the same time: the loudest of those that talk.
    pub const SPEAKERS_MAX: usize = SPEAKERS_MAX;

    /// A mix without seats.
    pub fn new() -> Mix {
        Mix {
            members: Vec::new(),
            index: HashMap::new(),
            grid: Grid::default(),
            sounds: Sounds::new(),
            needed: Needed::default(),
            shared: Vec::new(),
            recording: None,
            events: Events::default(),
            candidates: Vec::new(),
            phase: 0,
            position: 0,
            begun: 0,
            cursor: (0, 0),
            is_active: false,
            figures: MixFigures::default(),
            datagram: Vec::with_capacity(DATAGRAM_BYTES),
        }
    }

    /// Adds a seat.
    ///
    /// # Errors
    /// Fails when the key is in use, the mix is full, or a codec has no rate of a mix.
    pub fn seat(&mut self, key: SeatKey, seat: Seat) -> Result<(), SeatError> {
        if self.index.contains_key(&key) {
            return Err(SeatError::Taken);
        }
        if self.members.len() >= Mix::SEATS_MAX {
            return Err(SeatError::Full);
        }
        let source = self.source(&seat.hears);
        let member = Member::new(key, seat, source)?;
        self.index.insert(key, self.members.len());
        self.members.push(member);
        self.candidates.reserve(self.members.len());
        self.refresh();
        Ok(())
    }

    /// Removes a seat and returns whether it existed. The party's audio fades out in the next tick.
    pub fn unseat(&mut self, key: SeatKey) -> bool {
        let Some(place) = self.index.remove(&key) else { return false };
        let member = self.members.remove(place);
        self.figures = self.figures.with_playout(&member.inbound.figures());
        for (place, member) in self.members.iter().enumerate().skip(place) {
            self.index.insert(member.key, place);
        }
        if self.cursor.0 > place {
            self.cursor.0 -= 1;
        } else if self.cursor.0 == place {
            self.cursor.1 = 0;
        }
        self.refresh();
        true
    }

    /// Takes a packet from the party of a seat. The caller has already checked its address and SSRC, as the
    /// leg's session does.
    pub fn receive(&mut self, now: Micros, key: SeatKey, packet: &RtpPacket<'_>) {
        self.grid.see(now);
        let Some(member) = self.index.get(&key).and_then(|place| self.members.get_mut(*place)) else {
            return;
        };
        if let Some(digit) = member.inbound.receive(now, packet, member.talk.is_voiced()) {
            self.events.tell(MixEvent::Digit { seat: key, digit });
        }
    }

    /// The next packet of the last tick, and the seat it goes to.
    pub fn poll_packet(&mut self) -> Option<(SeatKey, &[u8])> {
        loop {
            let (place, n) = self.cursor;
            let member = self.members.get_mut(place)?;
            let stream = match &member.line {
                Line::Idle => None,
                Line::Own(own) => Some(&own.stream),
                Line::Shared(shared) => self.shared.get(*shared).map(|shared| &shared.stream),
            };
            let Some((stream, (begins, payload))) =
                stream.and_then(|stream| Some((stream, stream.packet(n, self.begun)?)))
            else {
                self.cursor = (place + 1, 0);
                continue;
            };
            self.cursor.1 += 1;
            self.figures.sent_packets += 1;
            self.datagram.clear();
            self.datagram.extend_from_slice(&member.sender.header(begins, stream.coding().units));
            self.datagram.extend_from_slice(payload);
            return Some((member.key, &self.datagram));
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<MixEvent> {
        self.events.take()
    }

    /// When [`Mix::tick`] is to be called; a time in the past means immediately. `None` while no seat is sent audio and
    /// no seat is recorded: such a mix costs nothing.
    pub fn next_tick(&self) -> Option<Micros> {
        self.is_active.then(|| self.grid.next())
    }

    /// Figures so far.
    pub fn figures(&self) -> MixFigures {
        let figures = MixFigures { seats: self.members.len(), ..self.figures };
        self.members.iter().fold(figures, |figures, member| figures.with_playout(&member.inbound.figures()))
    }

    /// Recomputes whether every tick has work to do.
    pub(super) fn refresh(&mut self) {
        let recorded = self.recording.is_some() && !self.members.is_empty();
        self.is_active = recorded || self.members.iter().any(Member::needs_ticks);
        if !self.is_active {
            self.grid.rest();
        }
    }

    /// Maps the audio chosen for a seat to a source of this mix.
    pub(super) fn source(&mut self, hears: &Hears) -> Option<Source> {
        match hears {
            Hears::Mix => Some(Source::Mix),
            Hears::Music(clip) => {
                let members = &self.members;
                let is_heard = |tune| members.iter().any(|member| member.source == Some(Source::Music(tune)));
                Some(Source::Music(self.sounds.tune(clip, is_heard)))
            }
            Hears::Nothing => None,
            Hears::Silence => Some(Source::Silence),
        }
    }
}

impl Default for Mix {
    fn default() -> Self {
        Mix::new()
    }
}

impl std::fmt::Debug for Mix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mix").field("figures", &self.figures()).finish_non_exhaustive()
    }
}

/// A header and the largest payload.
const DATAGRAM_BYTES: usize = 2_048;
