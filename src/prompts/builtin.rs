//! The built-in prompts; `sound/README.md` describes how they are made.

use sidetone_model::language::Language;
use sidetone_model::prompt::Prompt;

/// The WAV file of a prompt in a language.
pub(super) fn wav(language: Language, prompt: Prompt) -> &'static [u8] {
    match language {
        Language::English => english(prompt),
        Language::German => german(prompt),
    }
}

/// The English version; tunes have no words.
fn english(prompt: Prompt) -> &'static [u8] {
    match prompt {
        Prompt::AllMuted => include_bytes!("../../sound/en/all-muted.wav"),
        Prompt::AllUnmuted => include_bytes!("../../sound/en/all-unmuted.wav"),
        Prompt::Alone => include_bytes!("../../sound/en/alone.wav"),
        Prompt::ConfirmJoin => include_bytes!("../../sound/en/confirm-join.wav"),
        Prompt::Ended => include_bytes!("../../sound/en/ended.wav"),
        Prompt::EnterPin => include_bytes!("../../sound/en/enter-pin.wav"),
        Prompt::EnterRoom => include_bytes!("../../sound/en/enter-room.wav"),
        Prompt::Full => include_bytes!("../../sound/en/full.wav"),
        Prompt::Goodbye => include_bytes!("../../sound/en/goodbye.wav"),
        Prompt::HasJoined => include_bytes!("../../sound/en/has-joined.wav"),
        Prompt::HasLeft => include_bytes!("../../sound/en/has-left.wav"),
        Prompt::HoldMusic => include_bytes!("../../sound/en/hold-music.wav"),
        Prompt::Joined => include_bytes!("../../sound/en/joined.wav"),
        Prompt::Kicked => include_bytes!("../../sound/en/kicked.wav"),
        Prompt::Left => include_bytes!("../../sound/en/left.wav"),
        Prompt::Locked => include_bytes!("../../sound/en/locked.wav"),
        Prompt::Muted => include_bytes!("../../sound/en/muted.wav"),
        Prompt::NoSuchRoom => include_bytes!("../../sound/en/no-such-room.wav"),
        Prompt::OthersLeft => include_bytes!("../../sound/en/others-left.wav"),
        Prompt::RecordingOff => include_bytes!("../../sound/en/recording-off.wav"),
        Prompt::RecordingOn => include_bytes!("../../sound/en/recording-on.wav"),
        Prompt::SayName => include_bytes!("../../sound/en/say-name.wav"),
        Prompt::Unlocked => include_bytes!("../../sound/en/unlocked.wav"),
        Prompt::Unmuted => include_bytes!("../../sound/en/unmuted.wav"),
        Prompt::WaitForModerator => include_bytes!("../../sound/en/wait-for-moderator.wav"),
        Prompt::WrongPin => include_bytes!("../../sound/en/wrong-pin.wav"),
    }
}

/// The German version; the tunes are shared by all languages.
fn german(prompt: Prompt) -> &'static [u8] {
    match prompt {
        Prompt::AllMuted => include_bytes!("../../sound/de/all-muted.wav"),
        Prompt::AllUnmuted => include_bytes!("../../sound/de/all-unmuted.wav"),
        Prompt::Alone => include_bytes!("../../sound/de/alone.wav"),
        Prompt::ConfirmJoin => include_bytes!("../../sound/de/confirm-join.wav"),
        Prompt::Ended => include_bytes!("../../sound/de/ended.wav"),
        Prompt::EnterPin => include_bytes!("../../sound/de/enter-pin.wav"),
        Prompt::EnterRoom => include_bytes!("../../sound/de/enter-room.wav"),
        Prompt::Full => include_bytes!("../../sound/de/full.wav"),
        Prompt::Goodbye => include_bytes!("../../sound/de/goodbye.wav"),
        Prompt::HasJoined => include_bytes!("../../sound/de/has-joined.wav"),
        Prompt::HasLeft => include_bytes!("../../sound/de/has-left.wav"),
        Prompt::Kicked => include_bytes!("../../sound/de/kicked.wav"),
        Prompt::Locked => include_bytes!("../../sound/de/locked.wav"),
        Prompt::Muted => include_bytes!("../../sound/de/muted.wav"),
        Prompt::NoSuchRoom => include_bytes!("../../sound/de/no-such-room.wav"),
        Prompt::OthersLeft => include_bytes!("../../sound/de/others-left.wav"),
        Prompt::RecordingOff => include_bytes!("../../sound/de/recording-off.wav"),
        Prompt::RecordingOn => include_bytes!("../../sound/de/recording-on.wav"),
        Prompt::SayName => include_bytes!("../../sound/de/say-name.wav"),
        Prompt::Unlocked => include_bytes!("../../sound/de/unlocked.wav"),
        Prompt::Unmuted => include_bytes!("../../sound/de/unmuted.wav"),
        Prompt::WaitForModerator => include_bytes!("../../sound/de/wait-for-moderator.wav"),
        Prompt::WrongPin => include_bytes!("../../sound/de/wrong-pin.wav"),
        Prompt::HoldMusic | Prompt::Joined | Prompt::Left => english(prompt),
    }
}

#[cfg(test)]
mod tests {
    use sidetone_media::audio::clip::Clip;

    use super::*;

    fn power_db(samples: &[i16]) -> f64 {
        let power = samples.iter().map(|s| f64::from(*s).powi(2)).sum::<f64>() / samples.len() as f64;
        10.0 * (power / f64::from(i16::MAX).powi(2)).log10()
    }

    #[test]
    fn every_prompt_can_be_played_and_heard() {
        for (language, _) in Language::ALL {
            let mut bytes = 0;
            for prompt in Prompt::ALL {
                let clip = Clip::from_wav(wav(*language, *prompt)).unwrap();
                let level = power_db(clip.samples());
                assert!((-32.0..=-18.0).contains(&level), "{prompt}: {level} dB below full scale");
                assert!((400..=20_000).contains(&clip.duration_ms()), "{prompt}: {} ms", clip.duration_ms());
                // The tunes are in the binary only once.
                let is_shared = *language != Language::English
                    && wav(Language::English, *prompt) == wav(*language, *prompt);
                bytes += if is_shared { 0 } else { wav(*language, *prompt).len() };
            }
            assert!(bytes < 1 << 20, "{language}: {bytes} bytes are in the binary");
        }
    }

    /// Speech and chimes begin and end in silence; music ends where it begins, so that it can be repeated.
    #[test]
    fn none_of_them_clicks() {
        for (language, prompt) in
            Language::ALL.iter().flat_map(|(language, _)| Prompt::ALL.iter().map(move |one| (*language, one)))
        {
            let clip = Clip::from_wav(wav(language, *prompt)).unwrap();
            let samples = clip.samples();
            let (first, last) = (i32::from(samples[0]), i32::from(samples[samples.len() - 1]));
            let steepest = samples.windows(2).map(|pair| i32::from(pair[0]).abs_diff(i32::from(pair[1])));
            if *prompt == Prompt::HoldMusic {
                assert!(first.abs_diff(last) < steepest.max().unwrap() / 2, "{last} and then {first}");
            } else {
                assert!(first.abs() < 40 && last.abs() < 40, "{prompt}: {first} … {last}");
            }
        }
    }
}
