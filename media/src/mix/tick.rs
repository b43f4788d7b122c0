//! One tick: which parties talk, which are heard, what each seat hears, and the encodings.

use super::line::{Line, Own, Want};
use super::machine::{Channels, Mix, Recording};
use super::member::Member;
use super::ramp;
use super::rate::{FRAME_MAX, Rate};
use super::sounds::Needed;
use super::stream::{Coding, Shared, Source, Stream};
use super::talk::Level;
use super::voices::SPEAKERS_MAX;
use super::words::MixEvent;
use crate::time::Micros;

impl Mix {
    /// Runs the tick that is due at `now`, if there is one; take its packets with [`Mix::poll_packet`] before
    /// the next one. A late driver calls it twice ([`Mix::next_tick`] returns the time), and earlier missed
    /// ticks are skipped.
    pub fn tick(&mut self, now: Micros) {
        self.grid.see(now);
        if !self.is_active {
            return;
        }
        let Some(due) = self.grid.take(now) else { return };
        self.leave_out(due.at, due.skipped);
        self.choose(due.at);
        self.place();
        let Mix { members, index, sounds, needed, .. } = self;
        sounds.tick(needed, |seat, pcm| {
            if let Some(member) = index.get(&seat).and_then(|place| members.get_mut(*place)) {
                member.inbound.pull(due.at, pcm);
                member.loudness.apply(pcm);
            }
        });
        self.record(due.at);
        self.encode();
        self.figures.ticks += 1;
        self.begun = self.position;
        self.phase += TICK_UNITS;
        self.position += TICK_UNITS;
        self.cursor = (0, 0);
        self.refresh();
    }

    fn leave_out(&mut self, at: Micros, ticks: u64) {
        self.figures.skipped_ticks += ticks;
        self.position += ticks * TICK_UNITS;
        for _ in 0..ticks.min(SKIPPED_MAX) {
            for member in &mut self.members {
                member.inbound.skip(at);
            }
        }
    }

    /// Selects the loudest of the parties that talk. Parties that are already heard get a small bonus, so
    /// that two equally loud parties do not alternate.
    fn choose(&mut self, at: Micros) {
        self.candidates.clear();
        for (place, member) in self.members.iter_mut().enumerate() {
            if let Some(digit) = member.tone(at) {
                self.events.tell(MixEvent::Digit { seat: member.key, digit });
            }
            let (may_be_heard, change) = member.listen(at);
            if let Some(talking) = change {
                self.events.tell(MixEvent::Talking { seat: member.key, talking });
            }
            if may_be_heard {
                let bonus = if self.sounds.voices.is_heard(member.key) { HEARD_BONUS } else { 0 };
                self.candidates.push((Level(member.talk.loudness().0 + bonus), place));
            }
        }
        if self.candidates.len() > SPEAKERS_MAX {
            self.candidates.select_nth_unstable_by(SPEAKERS_MAX - 1, |one, other| other.cmp(one));
            self.candidates.truncate(SPEAKERS_MAX);
        }
        for (_, place) in &self.candidates {
            if let Some(member) = self.members.get_mut(*place) {
                // A voice that goes to other listeners fades out for the present ones first.
                member.chosen = !self.sounds.voices.is_elsewhere(member.key, member.whispers_to);
            }
        }
        self.figures.speakers = self.candidates.len();
        self.figures.decoded_frames += self.candidates.len() as u64;
        let Mix { members, index, sounds, .. } = self;
        let member = |seat| index.get(&seat).copied();
        sounds.voices.begin(|seat| member(seat).and_then(|at| members.get(at)).is_some_and(|one| one.chosen));
        for member in members.iter_mut() {
            if member.chosen {
                sounds.voices.hear(member.key, member.whispers_to, member.inbound.rate());
            } else {
                member.inbound.skip(at);
            }
        }
        let background = members.iter().filter_map(Member::public_background).max();
        sounds.noise.begin(background, members.len() > 1, sounds.voices.public_count());
        for seat in sounds.voices.apart() {
            if let Some(member) = member(seat).and_then(|at| members.get_mut(at)) {
                member.hears_apart = true;
            }
        }
    }

    /// Selects the encoding of every seat for this tick, and the rates that have listeners.
    fn place(&mut self) {
        self.needed = Needed::default();
        for shared in &mut self.shared {
            shared.is_heard = false;
        }
        if self.recording.is_some() {
            self.needed.add(Source::Mix, Rate::Wide);
        }
        for place in 0..self.members.len() {
            let Some(member) = self.members.get_mut(place) else { continue };
            let want = member.wants();
            if let Want::Own(source) | Want::Shared(source) = want {
                self.needed.add(source, member.coding.rate);
            }
            let line = std::mem::replace(&mut member.line, Line::Idle);
            let coding = member.coding;
            let line = self.line(line, want, coding);
            if let Some(member) = self.members.get_mut(place) {
                member.line = line;
            }
        }
    }

    /// The line after `line`. When no encoder can be made, the seat is sent nothing.
    fn line(&mut self, line: Line, want: Want, coding: Coding) -> Line {
        match (line, want) {
            (_, Want::Nothing) => Line::Idle,
            (Line::Own(mut own), Want::Own(source)) if own.stream.coding() == coding => {
                own.turn_to(source);
                Line::Own(own)
            }
            (Line::Own(mut own), Want::Shared(source)) if own.stream.coding() == coding => {
                own.turn_to(source);
                if own.is_settled() { self.give_back(own, coding) } else { Line::Own(own) }
            }
            (Line::Shared(place), Want::Own(source) | Want::Shared(source)) => {
                let from = self.shared.get_mut(place).filter(|shared| shared.stream.coding() == coding);
                let Some(from) = from else { return self.fresh(want, coding) };
                if want == Want::Shared(from.source) {
                    from.is_heard = true;
                    return Line::Shared(place);
                }
                let heard = self.sounds.heard(from.source, coding.rate);
                let Ok(mut own) = Own::branch(&from.stream, from.source, heard) else { return Line::Idle };
                own.turn_to(source);
                Line::Own(own)
            }
            (Line::Idle | Line::Own(_), _) => self.fresh(want, coding),
        }
    }

    /// A line without earlier audio.
    fn fresh(&mut self, want: Want, coding: Coding) -> Line {
        match want {
            Want::Nothing => Line::Idle,
            Want::Own(source) => Own::new(coding, self.phase, source).map_or(Line::Idle, Line::Own),
            Want::Shared(source) => self.join(source, coding),
        }
    }

    /// The shared encoding; restarted when it had no listener in the last tick.
    fn join(&mut self, source: Source, coding: Coding) -> Line {
        let is = |shared: &Shared| shared.source == source && shared.stream.coding() == coding;
        let place = self.shared.iter().position(is);
        let last = self.figures.ticks;
        if let Some((place, shared)) = place.and_then(|at| Some((at, self.shared.get_mut(at)?))) {
            if shared.fed != last && !shared.is_heard {
                let Ok(stream) = Stream::new(coding, self.phase) else { return Line::Idle };
                shared.stream = stream;
            }
            shared.is_heard = true;
            return Line::Shared(place);
        }
        if self.shared.len() >= SHARED_MAX {
            return Own::new(coding, self.phase, source).map_or(Line::Idle, Line::Own);
        }
        let Ok(stream) = Stream::new(coding, self.phase) else { return Line::Idle };
        self.shared.push(Shared { source, stream, is_heard: true, fed: last });
        Line::Shared(self.shared.len() - 1)
    }

    /// The shared encoding for a seat whose own encoding has the same audio by now. When the shared one has
    /// no listener, the seat's own encoding replaces it.
    fn give_back(&mut self, own: Box<Own>, coding: Coding) -> Line {
        let is = |shared: &Shared| shared.source == own.source && shared.stream.coding() == coding;
        let last = self.figures.ticks;
        let place = self.shared.iter().position(is);
        if let Some((place, shared)) = place.and_then(|at| Some((at, self.shared.get_mut(at)?))) {
            if shared.fed != last && !shared.is_heard {
                shared.stream = own.stream;
            }
            shared.is_heard = true;
            return Line::Shared(place);
        }
        if self.shared.len() >= SHARED_MAX {
            return Line::Own(own);
        }
        let Own { stream, source, .. } = *own;
        self.shared.push(Shared { source, stream, is_heard: true, fed: last });
        Line::Shared(self.shared.len() - 1)
    }

    fn record(&mut self, at: Micros) {
        let Mix { members, index, sounds, recording, .. } = self;
        let Some(Recording { sink, channels }) = recording else { return };
        let takes = match channels {
            Channels::Mix => sink.frame(at, sounds.heard(Source::Mix, Rate::Wide)),
            Channels::Seats(seats) => {
                let mut frame = [[0; 2]; WIDE_SAMPLES];
                for (channel, seat) in seats.iter().enumerate() {
                    put(&mut frame, channel, sounds.voices.of(*seat, Rate::Wide).unwrap_or_default());
                }
                sink.frame(at, frame.as_flattened())
            }
            Channels::Sides => {
                let mut frame = [[0; 2]; WIDE_SAMPLES];
                let is_left =
                    |seat| index.get(&seat).and_then(|at| members.get(*at)).is_some_and(|one| one.left);
                for (channel, left) in [true, false].into_iter().enumerate() {
                    let mut pcm = [0; WIDE_SAMPLES];
                    sounds.without_voices(Rate::Wide, |seat| is_left(seat) != left, &mut pcm);
                    put(&mut frame, channel, &pcm);
                }
                sink.frame(at, frame.as_flattened())
            }
        };
        if !takes {
            self.recording = None;
            self.events.tell(MixEvent::RecordingEnded);
        }
    }

    fn encode(&mut self) {
        let Mix { members, sounds, shared, events, figures, .. } = self;
        for shared in shared.iter_mut().filter(|shared| shared.is_heard) {
            let pcm = sounds.heard(shared.source, shared.stream.coding().rate);
            figures.encoded_packets += shared.stream.feed(pcm) as u64;
            shared.fed = figures.ticks + 1;
        }
        let mut frame = [0; FRAME_MAX];
        for member in members.iter_mut() {
            let Member { key, line, announcer, sound, coding, hears_apart, .. } = member;
            let Some(pcm) = frame.get_mut(..coding.rate.samples()) else { continue };
            let source = match line {
                Line::Own(own) => own.source,
                _ if announcer.is_none() && sound.is_none() => continue,
                _ => Source::Silence,
            };
            sounds.write(*key, source, coding.rate, pcm);
            let mut alike = !*hears_apart || source != Source::Mix;
            // The prompts come second: they lower the sound, and the sound does not lower them.
            for clips in [sound, announcer] {
                let Some(playing) = clips else { continue };
                let lowered = if source == Source::Mix { ramp::WHOLE / 4 } else { 0 };
                playing.speak(*key, pcm, (coding.rate, lowered), events);
                alike = false;
                if playing.is_over() {
                    *clips = None;
                }
            }
            if let Line::Own(own) = line {
                figures.encoded_packets += own.feed(pcm, alike) as u64;
            }
        }
    }
}

/// Writes the samples of one channel.
fn put(frame: &mut [[i16; 2]; WIDE_SAMPLES], channel: usize, pcm: &[i16]) {
    for (samples, sample) in frame.iter_mut().zip(pcm) {
        samples.get_mut(channel).into_iter().for_each(|place| *place = *sample);
    }
}

/// 20 ms at 16 kHz.
const WIDE_SAMPLES: usize = 320;
/// Units of a tick.
const TICK_UNITS: u64 = 2;
/// Frames that are dropped one by one; the playout itself drops those that waited longer.
const SKIPPED_MAX: u64 = 50;
/// 6 dB.
const HEARD_BONUS: i32 = 60;
/// Shared encodings: three sources in five codecs and six lengths.
const SHARED_MAX: usize = 96;
