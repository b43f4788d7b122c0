//! Keys pressed by a party. They arrive as RTP events (RFC 4733) or by SIP INFO; some phones send both.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sidetone_sip::message::Request;

/// How a digit arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DtmfSource {
    /// An INFO inside the dialog.
    Info,
    /// An event in the media stream.
    Media,
}

/// Recent digits of one party, kept to drop the duplicate that arrives by the other method.
#[derive(Debug, Default)]
pub(super) struct Keys(VecDeque<(Instant, char, DtmfSource)>);

impl Keys {
    /// Whether a digit counts; a digit that just arrived by the other method is the same press.
    pub(super) fn counts(&mut self, now: Instant, digit: char, way: DtmfSource) -> bool {
        while self.0.front().is_some_and(|(at, ..)| *at + TWIN_WITHIN <= now) || self.0.len() >= KEYS_MAX {
            self.0.pop_front();
        }
        let twin = self.0.iter().position(|(_, other, by)| *other == digit && *by != way);
        match twin {
            Some(place) => {
                self.0.remove(place);
                false
            }
            None => {
                self.0.push_back((now, digit, way));
                true
            }
        }
    }
}

/// Returns the digit of an INFO; `Err` when its content type requires a digit and there is none, `Ok(None)`
/// for other content types.
///
/// `application/dtmf-relay` has the digit in a `Signal=` line, `application/dtmf` as its entire body. Both may
/// use event codes of RFC 4733 §3.2: 10 for the star, 11 for the hash.
pub(super) fn digit_of(request: &Request) -> Result<Option<char>, ()> {
    let text = || std::str::from_utf8(request.body()).map_err(|_| ());
    let signal = if request.headers().is_content_type("application/dtmf-relay") {
        let lines = text()?.lines().filter_map(|line| line.split_once('='));
        let mut signals = lines.filter(|(name, _)| name.trim().eq_ignore_ascii_case("signal"));
        signals.next().ok_or(())?.1.trim()
    } else if request.headers().is_content_type("application/dtmf") {
        text()?.trim()
    } else {
        return Ok(None);
    };
    let mut letters = signal.chars();
    match (letters.next(), letters.next()) {
        (Some(digit @ ('0'..='9' | '*' | '#' | 'A'..='D')), None) => Ok(Some(digit)),
        (Some(digit @ 'a'..='d'), None) => Ok(Some(digit.to_ascii_uppercase())),
        _ => match signal {
            "10" => Ok(Some('*')),
            "11" => Ok(Some('#')),
            _ => Err(()),
        },
    }
}

/// Presses that are remembered per party.
const KEYS_MAX: usize = 16;
/// Longest time between the two arrivals of one press. Presses of the same key that arrive by the same method
/// always count.
const TWIN_WITHIN: Duration = Duration::from_millis(1500);

#[cfg(test)]
mod tests {
    use sidetone_sip::message::{Datagram, Message, parse_datagram};

    use super::*;

    #[test]
    fn a_press_that_comes_both_ways_counts_once() {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
        let start = Instant::now();
        let (media, info) = (DtmfSource::Media, DtmfSource::Info);
        type Press = (u64, char, DtmfSource);
        let cases: [(&str, &[Press], &str); 6] = [
            ("one way", &[(0, '1', media), (200, '1', media), (400, '2', media)], "112"),
            ("both ways", &[(0, '1', media), (20, '1', info), (300, '2', info), (400, '2', media)], "12"),
            (
                "twice both ways",
                &[(0, '1', media), (20, '1', info), (300, '1', media), (320, '1', info)],
                "11",
            ),
            ("late", &[(0, '1', media), (200, '1', media), (300, '1', info), (400, '1', info)], "11"),
            ("another key", &[(0, '1', media), (20, '2', info)], "12"),
            ("much later", &[(0, '1', media), (1500, '1', info)], "11"),
        ];
        for (name, presses, expected) in cases {
            let mut keys = Keys::default();
            let counted: String = presses
                .iter()
                .filter(|(at, digit, way)| keys.counts(start + Duration::from_millis(*at), *digit, *way))
                .map(|(_, digit, _)| *digit)
                .collect();
            assert_eq!(counted, expected, "{name}");
        }
    }

    #[test]
    fn digits_of_info_are_read_or_refused() {
        let cases = [
            ("application/dtmf-relay", "Signal=5\r\nDuration=160\r\n", Ok(Some('5'))),
            ("application/dtmf-relay", "signal = *", Ok(Some('*'))),
            ("application/dtmf-relay", "Duration=160\r\nSignal=#", Ok(Some('#'))),
            ("application/dtmf-relay", "Signal=11", Ok(Some('#'))),
            ("application/dtmf-relay", "Signal=d", Ok(Some('D'))),
            ("application/dtmf-relay", "Signal=12", Err(())),
            ("application/dtmf-relay", "Signal=", Err(())),
            ("application/dtmf-relay", "5", Err(())),
            ("application/dtmf", "5", Ok(Some('5'))),
            ("application/dtmf", "10\r\n", Ok(Some('*'))),
            ("application/dtmf", "x", Err(())),
            ("application/dtmf", "\u{661}", Err(())),
            ("application/json", "5", Ok(None)),
        ];
        for (kind, body, expected) in cases {
            let text = format!(
                "INFO sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1\r\nMax-Forwards: 70\r\n\
                 From: <sip:a@b>;tag=1\r\nTo: <sip:b@b>;tag=2\r\nCall-ID: 1\r\nCSeq: 1 INFO\r\n\
                 Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let request = match parse_datagram(text.into_bytes().into()) {
                Ok(Datagram::Message(Message::Request(request))) => request,
                other => panic!("{other:?}"),
            };
            assert_eq!(digit_of(&request), expected, "{kind} {body:?}");
        }
    }
}
