//! Networks: without jitter, with jitter, with loss, with drift.

use sidetone_media::playout::Pulled;

use super::network::{Heard, draws, in_order, linear, packets, play};

fn is_ordered(heard: &Heard) {
    let packets = heard.packets();
    let swapped: Vec<_> = packets.windows(2).filter(|pair| pair[0] >= pair[1]).collect();
    assert!(swapped.is_empty(), "{swapped:?}");
}

#[test]
fn an_even_network_costs_less_than_two_ticks_and_nothing_is_concealed() {
    for ptime_ms in [10, 20, 30, 40, 60] {
        for phase_us in [0, 1_000, 7_300, 13_000, 19_900] {
            let heard = play(&linear(), &packets(30_000 / ptime_ms / 10, ptime_ms, |_| 0), phase_us);
            is_ordered(&heard);
            // Concealment at the end of the stream: the playout cannot know that no packet is late.
            assert!(heard.figures.concealed_ms <= 100, "{ptime_ms} ms: {:?}", heard.figures);
            assert_eq!((heard.figures.late, heard.figures.early, heard.figures.stretched_ms), (0, 0, 0));
            let longest = heard.longest_ms();
            assert!(
                longest <= if ptime_ms % 20 == 0 { 30 } else { 40 },
                "{ptime_ms} ms at {phase_us}: {longest}"
            );
            assert_eq!(heard.packets().len() as i64, 30_000 / ptime_ms / 10);
        }
    }
}

#[test]
fn a_spike_is_waited_for_and_forgotten() {
    // Every five seconds a packet is 90 ms late, and those after it queue.
    let mut sent = packets(1_500, 20, |n| if n % 250 == 100 { 90_000 } else { 0 });
    in_order(&mut sent);
    let heard = play(&linear(), &sent, 3_000);
    is_ordered(&heard);
    assert_eq!((heard.figures.late, heard.figures.early), (0, 0));
    assert_eq!(heard.packets().len(), 1_500);
    // Six spikes with a delay of 10 to 30 ms each, and the end.
    assert!(heard.figures.concealed_ms <= 6 * 100 + 100, "{:?}", heard.figures);
    assert!(heard.longest_ms() <= 130, "{}", heard.longest_ms());
    for spike in 0..5 {
        let before_next = heard.delay_ms[spike * 250 + 340];
        assert!(before_next <= 45, "after spike {spike}: {before_next} ms");
    }
}

#[test]
fn a_longer_way_costs_once_and_the_wait_returns() {
    let mut sent = packets(2_000, 20, |n| if n < 500 { 0 } else { 80_000 });
    in_order(&mut sent);
    let heard = play(&linear(), &sent, 11_000);
    is_ordered(&heard);
    assert_eq!((heard.figures.late, heard.packets().len()), (0, 2_000));
    assert!(heard.figures.concealed_ms <= 200, "{:?}", heard.figures);
    assert!(heard.delay_ms[1_800] <= 50, "{}", heard.delay_ms[1_800]);
}

#[test]
fn jitter_is_waited_for_as_it_is_and_no_longer() {
    let draws = draws(3, 3_000);
    for (jitter_us, most_ms) in [(5_000.0, 45), (30_000.0, 70), (60_000.0, 105)] {
        let mut sent = packets(3_000, 20, |n| (draws[n as usize] * jitter_us) as i64);
        in_order(&mut sent);
        let heard = play(&linear(), &sent, 5_000);
        is_ordered(&heard);
        assert_eq!(heard.figures.late, 0);
        let shares = heard.figures.concealed_ms as f64 / 60_000.0;
        assert!(shares < 0.01, "{jitter_us}: {:?}", heard.figures);
        assert!(heard.longest_ms() <= most_ms, "{jitter_us}: {}", heard.longest_ms());
    }
}

#[test]
fn a_clock_that_drifts_is_followed_for_ten_minutes() {
    for ppm in [-200, 200] {
        let sent = packets(30_000, 20, |n| n * 20_000 / 1_000_000 * ppm);
        let heard = play(&linear(), &sent, 4_000);
        let longest = heard.longest_ms();
        assert!(longest <= 45, "{ppm} ppm: {longest} ms");
        // 120 ms in total are removed or added; nothing is concealed except at the end.
        assert!(heard.figures.concealed_ms <= 120, "{ppm}: {:?}", heard.figures);
        assert!(heard.figures.stretched_ms + heard.figures.shortened_ms >= 60, "{ppm}: {:?}", heard.figures);
        assert!(heard.figures.stretched_ms + heard.figures.shortened_ms <= 300, "{ppm}: {:?}", heard.figures);
        assert_eq!((heard.figures.late, heard.figures.early), (0, 0), "{ppm}");
    }
}

#[test]
fn what_is_lost_is_concealed_and_costs_no_wait() {
    let draws = draws(5, 5_000);
    for burst in [1, 3] {
        let mut left = 0;
        let mut lost = 0;
        let mut sent = packets(5_000, 20, |_| 0);
        sent.retain(|packet| {
            let n = i64::from(packet.header.sequence.wrapping_sub(65_500));
            if left == 0 && n > 0 && draws[n as usize] < 0.1 / f64::from(burst) {
                left = burst;
            }
            let is_lost = left > 0;
            left -= i32::from(is_lost);
            lost += u64::from(is_lost);
            !is_lost
        });
        let heard = play(&linear(), &sent, 2_000);
        is_ordered(&heard);
        assert!(heard.figures.concealed_ms.abs_diff(lost * 20) <= 120, "{lost} lost: {:?}", heard.figures);
        // Late packets are waited for; packets after that have no more delay than before.
        assert!(heard.longest_ms() <= 130, "{burst}: {}", heard.longest_ms());
        let waited = heard.delay_ms.iter().filter(|delay_ms| **delay_ms > 30).count() as u64;
        assert!(waited <= lost + 10, "{burst}: {waited} of {lost}");
        assert_eq!(heard.figures.late, 0);
    }
}

#[test]
fn overtaken_packets_are_put_in_order_and_doubles_are_dropped() {
    let mut sent = packets(500, 20, |n| if n % 10 == 3 { 25_000 } else { 0 });
    let doubles: Vec<_> =
        sent.iter().filter(|sent| sent.header.sequence.is_multiple_of(7)).cloned().collect();
    let count = doubles.len() as u64;
    for mut double in doubles {
        double.arrival_us += 30_000;
        sent.push(double);
    }
    sent.sort_by_key(|sent| sent.arrival_us);
    let heard = play(&linear(), &sent, 2_000);
    is_ordered(&heard);
    assert_eq!(heard.figures.duplicates, count);
    // The first overtaken packet arrives before the delay has grown.
    assert!(heard.figures.late <= 1, "{:?}", heard.figures);
    assert!(heard.packets().len() >= 497);
}

#[test]
fn after_a_stall_the_wait_is_short_again_at_once() {
    let mut sent = packets(1_000, 20, |n| if (300..400).contains(&n) { 1 } else { 0 });
    // Two seconds of packets arrive together.
    sent.iter_mut()
        .filter(|sent| (7_000_000..9_000_000).contains(&sent.arrival_us))
        .for_each(|s| s.arrival_us = 9_000_000);
    let heard = play(&linear(), &sent, 2_000);
    is_ordered(&heard);
    assert!(heard.longest_ms() <= 260, "{}", heard.longest_ms());
    assert!(heard.figures.early > 60, "{:?}", heard.figures);
    assert!(heard.delay_ms[900] <= 60, "{}", heard.delay_ms[900]);
    assert!(heard.count(Pulled::Voice) > 890);
}
