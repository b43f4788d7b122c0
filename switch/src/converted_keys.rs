//! Keys between two parties of which one has only telephone events (RFC 4733) and the other only SIP INFO.
//!
//! A party takes INFO when its Allow names it. It is then offered, or answered, telephone events of the other party: what
//! the other sends as events reaches it as INFO, and its INFO reaches the other as events. Pure.

use sidetone_media::dtmf::{KeyPress, event_code};
use sidetone_sip::message::{Headers, Name, Request};
use sidetone_sip::sdp::{Codec, Negotiated, SessionDescription};
use sidetone_sip::ua::Content;

/// Whether a party takes INFO, by its Allow.
pub(super) fn takes_info(headers: &Headers) -> bool {
    headers.lists(Name::Allow, "INFO")
}

/// Adds telephone events to the offer for the peer of a party that has only INFO.
pub(super) fn offer_events(offer: &mut SessionDescription) {
    for media in offer.media.iter_mut().filter(|media| media.is_carried()) {
        // The events have the clock of the audio (RFC 4733 §2.1).
        let clock_rate =
            media.codecs.iter().find(|codec| !codec.is_auxiliary()).map(|codec| codec.clock_rate);
        if media.codecs.iter().any(is_event) {
            continue;
        }
        let is_free = |number: &u8| media.codecs.iter().all(|codec| codec.payload_type != *number);
        let number = std::iter::once(101).chain(96..=127).find(is_free);
        let events = number.zip(clock_rate).map(|(number, clock_rate)| {
            Codec::new(number, "telephone-event", clock_rate, 1).with_fmtp("0-15")
        });
        media.codecs.extend(events);
    }
}

/// Adds the events of `offered` to its answer, because the other party, which has none, takes INFO.
pub(super) fn answer_events(answer: &mut SessionDescription, offered: &SessionDescription) {
    let Some((_, audio)) = offered.carried_audio() else { return };
    for media in answer.media.iter_mut().filter(|media| media.is_carried() && media.port != 0) {
        let clock_rate =
            media.codecs.iter().find(|codec| !codec.is_auxiliary()).map(|codec| codec.clock_rate);
        if !media.codecs.iter().any(is_event) {
            let events = audio.codecs.iter().filter(|codec| is_event(codec));
            media.codecs.extend(events.filter(|codec| Some(codec.clock_rate) == clock_rate).take(1).cloned());
        }
    }
}

/// Whether a description has telephone events.
pub(super) fn has_events(description: &SessionDescription) -> bool {
    description.carried_audio().is_some_and(|(_, audio)| audio.codecs.iter().any(is_event))
}

/// Returns payload type and clock of the events of a party whose peer has none.
pub(super) fn watched(own: &Negotiated, theirs: &Negotiated) -> Option<(u8, u32)> {
    let events = own.telephone_event().filter(|_| theirs.telephone_event().is_none())?;
    Some((events.receive, events.codec.clock_rate))
}

/// Returns the event for `theirs` of a key that a party without events pressed by INFO.
pub(super) fn pressed(
    own: &Negotiated,
    theirs: &Negotiated,
    digit: char,
    request: &Request,
) -> Option<KeyPress> {
    let events = theirs.telephone_event().filter(|_| own.telephone_event().is_none())?;
    Some(KeyPress {
        code: event_code(digit)?,
        duration_ms: duration_of(request).unwrap_or(DURATION_MS),
        payload_type: events.send,
        clock_hz: events.codec.clock_rate,
        audio_hz: theirs.codec()?.clock_rate,
    })
}

/// Returns the INFO of a key that was pressed as an event.
pub(super) fn info_of(digit: char, duration_ms: u32) -> Content {
    let duration_ms = duration_ms.clamp(40, 8_000);
    Content::new("application/dtmf-relay", format!("Signal={digit}\r\nDuration={duration_ms}\r\n"))
}

/// The `Duration=` of an `application/dtmf-relay`, milliseconds.
fn duration_of(request: &Request) -> Option<u32> {
    let text = std::str::from_utf8(request.body()).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once('='));
    let (_, value) = lines.find(|(name, _)| name.trim().eq_ignore_ascii_case("duration"))?;
    value.trim().parse().ok()
}

fn is_event(codec: &Codec) -> bool {
    codec.is("telephone-event")
}

/// The duration of a key whose INFO names none.
const DURATION_MS: u32 = 160;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(media: &str) -> SessionDescription {
        let text = format!("v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\nc=IN IP4 192.0.2.1\nt=0 0\n{media}\n");
        SessionDescription::parse(text.replace('\n', "\r\n").as_bytes()).unwrap()
    }

    fn numbers(description: &SessionDescription) -> Vec<(u8, u32)> {
        description.media[0].codecs.iter().map(|codec| (codec.payload_type, codec.clock_rate)).collect()
    }

    #[test]
    fn events_are_added_once_on_the_clock_of_the_audio() {
        let table = [
            ("G.711", "m=audio 4 RTP/AVP 0", vec![(0, 8_000), (101, 8_000)]),
            (
                "the number is taken",
                "m=audio 4 RTP/AVP 101\na=rtpmap:101 opus/48000/2",
                vec![(101, 48_000), (96, 48_000)],
            ),
            (
                "already there",
                "m=audio 4 RTP/AVP 0 100\na=rtpmap:100 telephone-event/8000",
                vec![(0, 8_000), (100, 8_000)],
            ),
        ];
        for (name, media, expected) in table {
            let mut offer = parse(media);
            offer_events(&mut offer);
            assert_eq!(numbers(&offer), expected, "{name}");
        }
    }

    #[test]
    fn the_offerer_keeps_its_events() {
        let offered = parse("m=audio 4 RTP/AVP 0 100\na=rtpmap:100 telephone-event/8000\na=fmtp:100 0-15");
        let mut answer = parse("m=audio 4 RTP/AVP 0");
        assert!(has_events(&offered) && !has_events(&answer));
        answer_events(&mut answer, &offered);
        assert_eq!(numbers(&answer), [(0, 8_000), (100, 8_000)]);
        let mut wideband = parse("m=audio 4 RTP/AVP 96\na=rtpmap:96 opus/48000/2");
        answer_events(&mut wideband, &offered);
        assert_eq!(numbers(&wideband), [(96, 48_000)], "another clock");
    }
}
