//! Hears early that something goes wrong on a leg that is up: no audio where some is due, or a judgement other than ok.
//!
//! Looked at about once a second. A look reads a few counters; the judgement itself is made every five seconds at most,
//! and a report only when there is something to tell. What is told is told once, and bounded: a leg says no more than
//! one thing in five seconds, and a judgement has to last before it is told, longer before it is taken back.

use crate::session::{Foreign, Report, Session};
use crate::time::Micros;
use crate::verdict::Verdict;

/// What has been told of one leg.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Since when no audio comes, once that was told.
    silent_since: Option<Micros>,
    /// The judgement last told; at first nobody has complained.
    told: Verdict,
    /// Another one, since when it is seen and how often in a row.
    candidate: Option<(Verdict, Micros, u8)>,
    /// When the leg is judged next.
    judged_next: Micros,
    /// Before that nothing is told.
    silent_until: Micros,
    /// It was told that packets come from, or went to, addresses that are not the party's.
    told_foreign: bool,
}

/// What changed on a leg.
#[derive(Clone, Debug)]
pub struct Warning {
    /// What.
    pub change: Change,
    /// Since when: the silence, also when it is over, or the judgement.
    pub since: Micros,
    /// The judgement that was told before.
    pub previous: Verdict,
    /// The figures at this moment.
    pub report: Report,
}

/// What may change on a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Audio comes again.
    AudioBack,
    /// Packets come from an address that is not the party's, or went to one; told once of a leg.
    ForeignSource,
    /// No audio comes, and nothing says that there should be none.
    NoAudio,
    /// It is judged otherwise than before.
    Verdict,
}

impl Default for Watch {
    fn default() -> Self {
        Watch {
            silent_since: None,
            told: Verdict::Ok,
            candidate: None,
            judged_next: Micros(i64::MIN),
            silent_until: Micros(i64::MIN),
            told_foreign: false,
        }
    }
}

impl Watch {
    /// Looks at the leg of `session`; what has to be told, if anything has.
    ///
    /// On hold, and before the answer, nothing is said.
    pub fn look(&mut self, now: Micros, session: &Session) -> Option<Warning> {
        let expected_since = session.expects_audio_since()?;
        if now < self.silent_until {
            return None;
        }
        let changed = self.hear(now, session, expected_since).or_else(|| self.see_foreign(session));
        let (change, since, previous) = match changed {
            Some((change, since)) => (change, since, self.told),
            // While nothing comes there is nothing new to judge: what is to be said of it was said.
            None if self.silent_since.is_some() => return None,
            None => self.judge(now, session)?,
        };
        self.silent_until = now + PAUSE_US;
        Some(Warning { change, since, previous, report: session.report(now) })
    }

    /// Whether audio ceased to come, or comes again.
    fn hear(&mut self, now: Micros, session: &Session, expected_since: Micros) -> Option<(Change, Micros)> {
        let last = session.last_packet();
        match self.silent_since {
            Some(since) if last.is_some_and(|last| last > since) => {
                self.silent_since = None;
                Some((Change::AudioBack, since))
            }
            Some(_) => None,
            None => {
                let since = last.map_or(expected_since, |last| last.max(expected_since));
                if now.since(since) < SILENCE_US || session.may_be_silent() {
                    return None;
                }
                self.silent_since = Some(since);
                self.candidate = None;
                Some((Change::NoAudio, since))
            }
        }
    }

    /// Whether packets come from, or went to, addresses that are not the party's.
    fn see_foreign(&mut self, session: &Session) -> Option<(Change, Micros)> {
        if self.told_foreign {
            return None;
        }
        let foreign = session.foreign().filter(Foreign::is_notable)?;
        self.told_foreign = true;
        Some((Change::ForeignSource, foreign.since?))
    }

    /// Whether the leg is judged otherwise than was told, and has been for long enough.
    fn judge(&mut self, now: Micros, session: &Session) -> Option<(Change, Micros, Verdict)> {
        if now < self.judged_next {
            return None;
        }
        self.judged_next = now + JUDGED_EVERY_US;
        let verdict = session.verdict_so_far(now)?;
        if verdict == self.told {
            self.candidate = None;
            return None;
        }
        let (since, seen) = match self.candidate {
            Some((same, since, seen)) if same == verdict => (since, seen.saturating_add(1)),
            _ => (now, 1),
        };
        self.candidate = Some((verdict, since, seen));
        let enough = if self.told == Verdict::Ok { FORMED_AFTER } else { CHANGED_AFTER };
        if seen < enough {
            return None;
        }
        self.candidate = None;
        Some((Change::Verdict, since, std::mem::replace(&mut self.told, verdict)))
    }
}

/// A judgement that is no longer ok, or another one than was told, has to be seen so often in a row: half a minute.
const CHANGED_AFTER: u8 = 6;
/// A judgement other than ok has to be seen so often in a row.
const FORMED_AFTER: u8 = 2;
/// How often a leg is judged.
const JUDGED_EVERY_US: i64 = 5_000_000;
/// Between two things that are told of a leg.
const PAUSE_US: i64 = 5_000_000;
/// No packet for so long is a silence.
const SILENCE_US: i64 = 3_000_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::session::{Description, Payload, PayloadKind, SessionConfig};
    use crate::time::ClockRate;

    proptest! {
        /// A leg is judged without its rows and without what a report says beside: the judgement is the report's.
        #[test]
        fn the_judgement_is_that_of_the_report(
            packets in prop::collection::vec((0_u16..40, 0_u16..60), 0..800),
            lossy in 0_u16..8,
            jumpy in 0_u16..8,
            sent in 0_u32..500,
            drops in 0_u32..20,
        ) {
            let source = ([192, 0, 2, 1], 4000).into();
            let payload = Payload {
                number: 0,
                kind: PayloadKind::Audio,
                clock: ClockRate::HZ_8000,
                bytes_per_ms: Some(8),
                name: "PCMU".to_owned(),
            };
            let mut session = Session::new(SessionConfig::default());
            let description = Description {
                remote: Some(source),
                receive: true,
                send: true,
                payloads: vec![payload],
                ..Description::default()
            };
            session.describe(Micros(0), description);
            session.answer(Micros(0));
            session.sent(Micros(0), sent, source);
            let mut datagram = [0_u8; 172];
            let mut now = Micros(0);
            for (number, (chance, jitter_ms)) in (0_u16..).zip(packets) {
                now = Micros(i64::from(number) * 20_000);
                if chance < lossy {
                    continue;
                }
                let late_us = if chance < lossy + jumpy { i64::from(jitter_ms) * 1_000 } else { 0 };
                datagram[0] = 0x80;
                datagram[2..4].copy_from_slice(&number.to_be_bytes());
                datagram[4..8].copy_from_slice(&(u32::from(number) * 160).to_be_bytes());
                session.receive(now + late_us, source, &datagram);
            }
            session.local_drop(drops);
            let report = session.report(now);
            let told = report.verdict.filter(|verdict| report.figures.enough || *verdict != Verdict::Ok);
            prop_assert_eq!(session.verdict_so_far(now), told);
            prop_assert_eq!(session.last_packet(), report.figures.last);
        }
    }
}
