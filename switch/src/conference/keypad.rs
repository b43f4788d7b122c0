//! Keypad commands of a member in a room: `*` and a digit, or a PIN and `#`.

use std::time::{Duration, Instant};

/// A complete command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Keyed {
    /// `*0`.
    End,
    /// `*5`.
    Lock,
    /// `*1`.
    Mute,
    /// `*7`.
    MuteAll,
    /// Digits, then `#`.
    Pin(String),
    /// `*2`.
    Unmute,
}

/// The digits keyed so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Keypad {
    last: Option<Instant>,
    star: bool,
    digits: String,
}

impl Keypad {
    /// Handles a digit; returns the command that it completes. Digits keyed more than 3 s before are dropped.
    pub(super) fn press(&mut self, now: Instant, digit: char) -> Option<Keyed> {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) > PAUSE) {
            self.forget();
        }
        self.last = Some(now);
        match digit {
            '*' => {
                self.forget();
                self.star = true;
                None
            }
            '#' => {
                let digits = std::mem::take(&mut self.digits);
                self.star = false;
                (!digits.is_empty()).then_some(Keyed::Pin(digits))
            }
            '0'..='9' if self.star => {
                self.star = false;
                control(digit)
            }
            '0'..='9' => {
                if self.digits.len() < DIGITS_MAX {
                    self.digits.push(digit);
                }
                None
            }
            // RFC 4733 §3.2 also defines A to D and flash; they have no function here.
            _ => None,
        }
    }

    fn forget(&mut self) {
        self.digits.clear();
        self.star = false;
    }
}

fn control(digit: char) -> Option<Keyed> {
    match digit {
        '0' => Some(Keyed::End),
        '1' => Some(Keyed::Mute),
        '2' => Some(Keyed::Unmute),
        '5' => Some(Keyed::Lock),
        '7' => Some(Keyed::MuteAll),
        _ => None,
    }
}

/// The longest pause between two digits.
pub(super) const PAUSE: Duration = Duration::from_secs(3);

/// Most digits that are kept: more than the longest PIN, so that a longer input never matches.
pub(super) const DIGITS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conference::tests::any_instant;

    /// Keys `text`, one digit every 200 ms; `.` is a pause of one second.
    fn key(text: &str) -> Vec<Keyed> {
        let (mut keypad, mut now) = (Keypad::default(), any_instant());
        let mut keyed = Vec::new();
        for digit in text.chars() {
            if digit == '.' {
                now += Duration::from_secs(1);
                continue;
            }
            now += Duration::from_millis(200);
            keyed.extend(keypad.press(now, digit));
        }
        keyed
    }

    #[test]
    fn every_key_of_the_table_and_what_is_none() {
        let pin = |digits: &str| vec![Keyed::Pin(digits.into())];
        let cases: &[(&str, Vec<Keyed>)] = &[
            ("*1", vec![Keyed::Mute]),
            ("*2", vec![Keyed::Unmute]),
            ("*5", vec![Keyed::Lock]),
            ("*7", vec![Keyed::MuteAll]),
            ("*0", vec![Keyed::End]),
            ("*3*4*6*8*9", vec![]),
            ("1257", vec![]),
            ("**1", vec![Keyed::Mute]),
            ("*..1", vec![Keyed::Mute]),
            ("*...1", vec![]),
            ("*1*2", vec![Keyed::Mute, Keyed::Unmute]),
            ("*#1", vec![]),
            ("*A1", vec![Keyed::Mute]),
            ("9876#", pin("9876")),
            ("12*9876#", vec![Keyed::Pin("876".into())]),
            ("98...76#", pin("76")),
            ("#", vec![]),
            ("12345678901234567890#", pin("1234567890123456")),
        ];
        for (keys, expected) in cases {
            assert_eq!(key(keys), *expected, "{keys}");
        }
    }
}
