//! The tones in received audio (Goertzel).

use sidetone_phone::Heard;

use super::site::found;

/// The level of `hz` in `pcm`, in dB relative to a phone's tone.
pub fn level(pcm: &[i16], rate_hz: u32, hz: u32) -> f64 {
    let step = std::f64::consts::TAU * f64::from(hz) / f64::from(rate_hz);
    let (sine, cosine) = pcm.iter().zip(0_u32..).fold((0.0, 0.0), |(sine, cosine), (sample, n)| {
        let (sample, angle) = (f64::from(*sample), step * f64::from(n));
        (sine + sample * angle.sin(), cosine + sample * angle.cos())
    });
    let amplitude = 2.0 * f64::hypot(sine, cosine) / pcm.len() as f64;
    20.0 * (amplitude / TONE).max(1e-6).log10()
}

/// The level of each of `tones` in `pcm`.
pub fn levels(pcm: &[i16], rate_hz: u32, tones: &[u32]) -> Vec<f64> {
    tones.iter().map(|hz| level(pcm, rate_hz, *hz)).collect()
}

/// Waits until the last [`WINDOW_MS`] of received audio contain exactly `these` of `tones`, at the level at which they
/// were sent. Earlier audio does not count.
pub async fn hears(heard: &Heard, tones: &[u32], these: &[u32]) {
    heard.clear();
    let mut last = Vec::new();
    let holds = async {
        found("what is to be heard", async || {
            let (pcm, rate_hz) = heard.lately(WINDOW_MS)?;
            last = levels(&pcm, rate_hz, tones);
            let fits = fit(tones, &last, these);
            fits.then_some(())
        })
        .await;
    };
    if tokio::time::timeout(PATIENCE, holds).await.is_err() {
        panic!(
            "to be heard of {tones:?}: {these:?}; but their levels are {last:.1?} dB (none: no audio came)"
        );
    }
}

/// Whether a recording contains, for [`WINDOW_MS`] somewhere in it, exactly `these` of `tones` at the level at which
/// they were sent. A phone that was not scheduled for a moment shifts the phase of its tone, so a longer window may not
/// match.
pub fn holds_somewhere(pcm: &[i16], rate_hz: u32, tones: &[u32], these: &[u32]) -> bool {
    let window = (rate_hz * WINDOW_MS / 1_000) as usize;
    pcm.windows(window).step_by(window / 8).any(|part| fit(tones, &levels(part, rate_hz, tones), these))
}

/// Whether `levels` of `tones` are those of a window with exactly `these`.
fn fit(tones: &[u32], levels: &[f64], these: &[u32]) -> bool {
    tones.iter().zip(levels).all(|(hz, level)| match these.contains(hz) {
        true => level.abs() < 1.0,
        false => *level < -40.0,
    })
}

/// The amplitude of a phone's tone.
const TONE: f64 = 5_000.0;
/// The examined length of audio.
pub const WINDOW_MS: u32 = 400;
/// Shorter than every wait of a site, so that the failure message shows the received tones.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(80);
