//! Fades without clicks: 5 ms in which a sound fades in or out.

/// Fades the beginning of `pcm` in from silence over `ramp` samples.
pub(super) fn rise(pcm: &mut [i16], ramp: usize) {
    for (n, sample) in pcm.iter_mut().take(ramp).enumerate() {
        *sample = part(*sample, n + 1, ramp);
    }
}

/// Fades all of `pcm` out to silence.
pub(super) fn sink(pcm: &mut [i16]) {
    let length = pcm.len();
    for (n, sample) in pcm.iter_mut().enumerate() {
        *sample = part(*sample, length - 1 - n, length);
    }
}

/// Writes the end of a sound whose last samples were `last` into `pcm`: these samples in reverse order,
/// fading out, so that there is no step after the last one; then silence.
pub(super) fn fall(last: &[i16], pcm: &mut [i16], ramp: usize) {
    pcm.fill(0);
    for (n, (sample, heard)) in pcm.iter_mut().zip(last.iter().rev()).take(ramp).enumerate() {
        *sample = part(*heard, ramp - n, ramp + 1);
    }
}

/// Cross-fades from a sound whose last samples were `last` to the samples in `pcm`.
pub(super) fn cross(last: &[i16], pcm: &mut [i16], ramp: usize) {
    rise(pcm, ramp);
    for (n, (sample, heard)) in pcm.iter_mut().zip(last.iter().rev()).take(ramp).enumerate() {
        *sample = sample.saturating_add(part(*heard, ramp - n, ramp + 1));
    }
}

/// Adds `clip` to `pcm`, whose own loudness goes from one share of 256 to another.
pub(super) fn over(clip: &[i16], pcm: &mut [i16], (from, to): (i32, i32)) {
    let length = i32::try_from(pcm.len()).unwrap_or(1).max(1);
    for ((n, sample), said) in (0..).zip(pcm.iter_mut()).zip(clip) {
        let share = from + (to - from) * n / length;
        // A product of 16 and 9 bits, divided again.
        let lowered = (i32::from(*sample) * share / WHOLE) as i16;
        *sample = lowered.saturating_add(*said);
    }
}

/// `sample` · n / of; n is never greater than `of`.
fn part(sample: i16, n: usize, of: usize) -> i16 {
    let (n, of) = (i32::try_from(n).unwrap_or(0), i32::try_from(of).unwrap_or(1).max(1));
    (i32::from(sample) * n / of) as i16
}

/// Full loudness.
pub(super) const WHOLE: i32 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn largest_step(pcm: &[i16]) -> i32 {
        pcm.windows(2).map(|pair| (i32::from(pair[0]) - i32::from(pair[1])).abs()).max().unwrap()
    }

    #[test]
    fn no_change_steps() {
        let tone = |n: i32| (12_000.0 * (f64::from(n) * 0.3).sin()) as i16;
        let before: Vec<i16> = (0..160).map(tone).collect();
        let natural = largest_step(&before);
        let mut ended = vec![0; 160];
        fall(&before, &mut ended, 40);
        assert!(largest_step(&[&before[..], &ended].concat()) <= natural + 400);
        assert_eq!(ended[40..], [0; 120]);
        let mut begun: Vec<i16> = (500..660).map(tone).collect();
        rise(&mut begun, 40);
        assert!(largest_step(&[&[0; 10], &begun[..]].concat()) <= natural + 400);
        let mut other: Vec<i16> = (777..937).map(tone).collect();
        cross(&before, &mut other, 40);
        assert!(largest_step(&[&before[..], &other].concat()) <= 2 * natural + 800);
        let mut lowered = before.clone();
        over(&[0; 160], &mut lowered, (WHOLE, WHOLE / 4));
        assert!(largest_step(&lowered) <= natural);
        assert!(lowered[150..].iter().all(|sample| sample.abs() < 4_000));
    }
}
