//! When a delivery is tried again: ten attempts over 14 h 57 m 35 s.
//!
//! Each pause is random within ±10 % of the schedule's, so that endpoints that failed together do not get all their
//! retries in one second. The pauses are also corrected towards the schedule: ten independent ones might add up to
//! more than 16 hours, and the documented total is about 15.

use std::time::Duration;

use rand::{Rng, RngExt};
use sidetone_model::time::Timestamp;

/// The attempts of a delivery since it was queued, or queued again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// When it was queued.
    pub began_at: Timestamp,
    /// Finished attempts, including the last one.
    pub attempts: u32,
}

/// When the attempt after one that failed at `ended_at` is due; `None` after the last.
///
/// `retry_after` is the time that the endpoint requested: it is respected, up to an hour.
pub fn next(
    round: Round,
    ended_at: Timestamp,
    retry_after: Option<Duration>,
    rng: &mut impl Rng,
) -> Option<Timestamp> {
    let index = usize::try_from(round.attempts).unwrap_or(usize::MAX);
    let pause_s = *PAUSES_S.get(index)?;
    let nominal_s: i64 = PAUSES_S.iter().take(index.saturating_add(1)).sum();
    let (least, most) = (pause_s * MICROS * 9 / 10, pause_s * MICROS * 11 / 10);
    // The pause with which the attempts so far would be exactly on schedule.
    let on_schedule = (nominal_s * MICROS).saturating_sub(ended_at.since(round.began_at));
    let earliest = on_schedule.saturating_sub(DRIFT_MAX_US).clamp(least, most);
    let latest = on_schedule.saturating_add(DRIFT_MAX_US).clamp(least, most);
    let pause = rng.random_range(earliest..=latest);
    let asked = retry_after
        .map_or(0, |asked| i64::try_from(asked.min(RETRY_AFTER_MAX).as_micros()).unwrap_or_default());
    Some(ended_at.plus_micros(pause.max(asked)))
}

/// The longest wait before the attempt that follows `attempts` others.
pub fn pause_max(attempts: u32) -> Duration {
    if attempts == 0 {
        // The first attempt waits only for the lease of a node that may be executing it.
        return FIRST_WAIT_MAX;
    }
    let index = usize::try_from(attempts).unwrap_or(usize::MAX);
    let pause_s = PAUSES_S.get(index).copied().unwrap_or_default().unsigned_abs();
    Duration::from_secs(pause_s * 11 / 10).max(RETRY_AFTER_MAX)
}

/// Attempts of a round.
pub const ATTEMPTS_MAX: u32 = 10;
/// Longer than the lease of an attempt.
const FIRST_WAIT_MAX: Duration = Duration::from_secs(90);
/// The pause before each attempt.
pub const PAUSES_S: [i64; ATTEMPTS_MAX as usize] = [0, 5, 30, 120, 600, 1800, 3600, 7200, 14_400, 26_100];
/// The longest Retry-After that is respected.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// How far the sum of the pauses may differ from the schedule: 14 h 57 m 35 s stays between 14.5 and 15.5
/// hours.
const DRIFT_MAX_US: i64 = 25 * 60 * MICROS;
const MICROS: i64 = 1_000_000;

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    const HOUR_US: i64 = 3600 * MICROS;

    /// The pauses of a delivery that fails immediately each time.
    fn pauses(seed: u64) -> Vec<i64> {
        let mut rng = StdRng::seed_from_u64(seed);
        let (began_at, mut at) = (Timestamp::from_micros(7), Timestamp::from_micros(7));
        let mut pauses = Vec::new();
        while let Some(next) = next(Round { began_at, attempts: pauses.len() as u32 + 1 }, at, None, &mut rng)
        {
            pauses.push(next.since(at));
            at = next;
        }
        pauses
    }

    #[test]
    fn the_schedule_is_about_fifteen_hours() {
        assert_eq!(PAUSES_S.iter().sum::<i64>(), 14 * 3600 + 57 * 60 + 35);
        let mut totals: Vec<i64> = Vec::new();
        for seed in 0..2_000 {
            let pauses = pauses(seed);
            assert_eq!(pauses.len(), 9);
            for (pause, nominal) in pauses.iter().zip(&PAUSES_S[1..]) {
                let (least, most) = (nominal * MICROS * 9 / 10, nominal * MICROS * 11 / 10);
                assert!((least..=most).contains(pause), "seed {seed}: {pause} for {nominal} s");
            }
            totals.push(pauses.iter().sum());
        }
        let (least, most) = (totals.iter().min().unwrap(), totals.iter().max().unwrap());
        assert!(*least >= HOUR_US * 29 / 2 && *most <= HOUR_US * 31 / 2, "{least} to {most}");
        // The jitter works: the totals are spread.
        assert!(most - least > HOUR_US / 2, "{least} to {most}");
    }

    #[test]
    fn an_endpoint_may_ask_for_an_hour() {
        let round = Round { began_at: Timestamp::from_micros(0), attempts: 1 };
        let at = Timestamp::from_micros(0);
        let wait = |seconds: Option<u64>| {
            let asked = seconds.map(Duration::from_secs);
            next(round, at, asked, &mut StdRng::seed_from_u64(3)).unwrap().as_micros() / MICROS
        };
        assert!((4..=5).contains(&wait(None)));
        assert_eq!(wait(Some(1)), wait(None), "never sooner than the schedule");
        assert_eq!((wait(Some(60)), wait(Some(3600)), wait(Some(86_400))), (60, 3600, 3600));
        assert_eq!(wait(Some(u64::MAX)), 3600);
    }

    /// Attempts that hang, and endpoints that requested an hour, do not extend the total: the following pauses are
    /// the shortest.
    #[test]
    fn a_late_round_hurries_within_the_jitter() {
        let mut rng = StdRng::seed_from_u64(9);
        let round = Round { began_at: Timestamp::from_micros(0), attempts: 8 };
        let late = Timestamp::from_micros(9 * HOUR_US);
        assert_eq!(next(round, late, None, &mut rng).unwrap().since(late), 4 * HOUR_US * 9 / 10);
        let early = Timestamp::from_micros(0);
        assert_eq!(next(round, early, None, &mut rng).unwrap().since(early), 4 * HOUR_US * 11 / 10);
    }

    #[test]
    fn any_clock_is_survived() {
        let mut rng = StdRng::seed_from_u64(0);
        for (began, ended) in [(i64::MIN, i64::MAX), (i64::MAX, i64::MIN), (0, i64::MAX)] {
            for attempts in [0, 1, 9, 10, u32::MAX] {
                let round = Round { began_at: Timestamp::from_micros(began), attempts };
                let next = next(round, Timestamp::from_micros(ended), None, &mut rng);
                assert_eq!(next.is_some(), attempts < ATTEMPTS_MAX);
            }
        }
    }
}
