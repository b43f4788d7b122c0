//! Both evaluations of a rule agree for all numbers.

use proptest::prelude::*;

use super::*;
use crate::stats::{Hundredths, Sums};

fn small() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0_u64), 1..30_u64, 30..5_000_u64]
}

fn us() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0_i64), 1..2_000_000_i64, 0..100_000_000_i64]
}

fn sums() -> impl Strategy<Value = Sums> {
    let jitter = (small(), small(), us());
    let gaps = (small(), us(), us(), small());
    let clumps = (0..40_u64, us(), us());
    let pairs = (small(), small(), us(), small());
    (jitter, gaps, clumps, pairs, small(), small(), small(), any::<bool>()).prop_map(
        |(jitter, gaps, clumps, pairs, windows, off, late_count, ends_in_audio)| Sums {
            jitter_count: jitter.0,
            jitter_high_count: jitter.1,
            jitter_peak_us: jitter.2,
            gap_count: gaps.0,
            gap_sum_us: gaps.1,
            media_sum_us: gaps.2,
            short_gap_count: gaps.3,
            clump_count: clumps.0,
            clump_sum_us: clumps.1,
            clump_square_sum: clumps.2,
            pair_count: pairs.0,
            step_count: pairs.1,
            step_us: pairs.2,
            payload_len_count: pairs.3,
            pace_windows: windows,
            pace_windows_off: off,
            late_count,
            ends_in_audio,
            ..Sums::default()
        },
    )
}

fn figures() -> impl Strategy<Value = Figures> {
    let decimal = |most: i64| proptest::option::of((0..=most).prop_map(Hundredths));
    let counts = (small(), small(), small(), any::<bool>());
    let decimals = (decimal(10_000), decimal(10_000), decimal(10_000));
    (sums(), counts, decimals, 0..2_u64).prop_map(|(sums, counts, decimals, pauses)| Figures {
        received: counts.0,
        expected: counts.1,
        lost: counts.2,
        enough: counts.3,
        quality_pct: decimals.0,
        ptime_ms: decimals.1,
        payload_ptime_ms: decimals.2,
        pauses,
        sums,
        ..Figures::default()
    })
}

fn facts() -> impl Strategy<Value = Facts> {
    let times = (us(), us(), us(), us());
    let counts = (small(), small(), small(), small());
    let answers = any::<[bool; 5]>();
    (times, counts, answers, 0..80_u32, proptest::option::of(0..80_u32), proptest::option::of(0..80_u32))
        .prop_map(|(times, counts, answers, ptime_ms, own_ptime_ms, own_maxptime_ms)| Facts {
            answered: answers[0],
            advertised_unreachable: answers[1],
            own_unreachable: answers[2],
            relocated: answers[3],
            receive_expected_us: times.0,
            send_expected_us: times.1,
            blackhole_us: times.2,
            tail_us: times.3,
            received_after_answer: counts.0,
            sent_after_answer: counts.1,
            rejected_source: counts.2,
            unreachable_errors: counts.3,
            ptime_ms,
            own_ptime_ms,
            own_maxptime_ms,
            only_listens: answers[4],
        })
}

/// The defaults, with one of them changed, possibly to zero.
fn thresholds() -> impl Strategy<Value = Thresholds> {
    let value = prop_oneof![Just(0.0), 0.0..200.0, 0.0..10_000_000.0];
    (0..Thresholds::NAMES.len(), value, any::<bool>()).prop_map(|(place, value, strict_address)| {
        let mut thresholds = Thresholds { strict_address, ..Thresholds::default() };
        thresholds.set(Thresholds::NAMES[place], value).unwrap();
        thresholds
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_rule_holds_exactly_when_it_is_reached(
        figures in figures(), facts in facts(), thresholds in thresholds()
    ) {
        let leg = Leg { figures: &figures, facts: &facts, thresholds: &thresholds };
        for rule in &RULES {
            let reached = (rule.reach)(&leg).0;
            prop_assert_eq!(
                (rule.holds)(&leg),
                reached >= Hundredths::from_integer(100),
                "{} {}: {}", rule.verdict, rule.reason, reached
            );
            prop_assert!((0..=1_000_000).contains(&reached.0), "{} {}: {}", rule.verdict, rule.reason, reached);
        }
        let evidence = judge(&figures, &facts, &thresholds);
        let first = RULES.iter().find(|rule| rule.applies(&leg) && (rule.reach)(&leg).0.0 >= 10_000);
        let expected = first.map_or(Some(Verdict::Ok), |rule| Some(rule.verdict));
        prop_assert_eq!(evidence.rule, expected);
    }
}
