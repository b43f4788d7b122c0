//! Detects faults on a leg while the call is up: no audio where it is expected, or a verdict other than ok.
//!
//! Called about once a second. Each call reads a few counters; the verdict is computed at most every five
//! seconds, and a report only for a warning. Each change is reported once, and a leg reports at most one in
//! five seconds. A new verdict must last before it is reported, and longer before it is replaced.

use crate::session::{Foreign, Report, Session};
use crate::time::Micros;
use crate::verdict::Verdict;

/// The changes of one leg that were reported so far.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Start of the silence that was reported.
    silent_since: Option<Micros>,
    /// The verdict last reported; ok at the start.
    told: Verdict,
    /// A different verdict, the time since which it is seen, and the number of times in a row.
    candidate: Option<(Verdict, Micros, u8)>,
    /// When the next verdict is computed.
    judged_next: Micros,
    /// Nothing is reported before this time.
    silent_until: Micros,
    /// Whether packets from or to foreign addresses were reported.
    told_foreign: bool,
}

/// A change on a leg.
#[derive(Clone, Debug)]
pub struct Warning {
    /// The kind of change.
    pub change: Change,
    /// Since when: the silence (also when it is over), or the verdict.
    pub since: Micros,
    /// The verdict reported before.
    pub previous: Verdict,
    /// The figures at this moment.
    pub report: Report,
}

/// The kinds of change on a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Audio arrives again.
    AudioBack,
    /// Packets come from a foreign address, or were sent to one; reported once per leg.
    ForeignSource,
    /// No audio arrives although it is expected.
    NoAudio,
    /// The verdict changed.
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
    /// Checks the leg of `session` and returns a change to report, if there is one.
    ///
    /// On hold, and before the answer, nothing is reported.
    pub fn look(&mut self, now: Micros, session: &Session) -> Option<Warning> {
        let expected_since = session.expects_audio_since()?;
        if now < self.silent_until {
            return None;
        }
        let changed = self.hear(now, session, expected_since).or_else(|| self.see_foreign(session));
        let (change, since, previous) = match changed {
            Some((change, since)) => (change, since, self.told),
            // During a reported silence there is nothing new to judge.
            None if self.silent_since.is_some() => return None,
            None => self.judge(now, session)?,
        };
        self.silent_until = now + PAUSE_US;
        Some(Warning { change, since, previous, report: session.report(now) })
    }

    /// Whether audio stopped, or arrives again.
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

    /// Whether there are packets from or to foreign addresses.
    fn see_foreign(&mut self, session: &Session) -> Option<(Change, Micros)> {
        if self.told_foreign {
            return None;
        }
        let foreign = session.foreign().filter(Foreign::is_notable)?;
        self.told_foreign = true;
        Some((Change::ForeignSource, foreign.since?))
    }

    /// Whether the verdict differs from the reported one, and has lasted long enough.
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

/// After a reported fault, a different verdict (ok included) must be seen this often in a row: half a minute.
const CHANGED_AFTER: u8 = 6;
/// While ok is reported, a fault must be seen this often in a row.
const FORMED_AFTER: u8 = 2;
/// Interval between two verdicts of a leg.
const JUDGED_EVERY_US: i64 = 5_000_000;
/// Shortest time between two reported changes of a leg.
const PAUSE_US: i64 = 5_000_000;
/// No packet for this long counts as silence.
const SILENCE_US: i64 = 3_000_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::session::{Description, Payload, PayloadKind, SessionConfig};
    use crate::time::ClockRate;

    proptest! {
        /// The verdict is computed without the timeline and the other parts of a report; it must equal the
        /// report's verdict.
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
                default_ptime_ms: None,
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
