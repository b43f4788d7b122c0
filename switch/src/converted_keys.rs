//! Conversion of keys between a party with telephone events (RFC 4733) and a party with only SIP INFO, or neither.
//!
//! A party without telephone events takes INFO when its Allow lists INFO. Otherwise, if its audio is G.711, it sends
//! and receives tones in the audio. In both cases telephone events are offered to the peer, or accepted in the answer
//! to it. The peer's events are converted to INFO or tones, and the party's INFO or tones to events. Pure.

use sidetone_media::dtmf::{KeyPress, KeySource, KeyTone, event_code};
use sidetone_sip::message::{Headers, Name, Request};
use sidetone_sip::sdp::{Codec, Negotiated, SessionDescription};
use sidetone_sip::ua::Content;

use crate::io::KeyForm;

/// The form of keys without telephone events for the sender of these headers.
pub(super) fn key_form(headers: &Headers) -> KeyForm {
    match headers.header(Name::Allow) {
        None => KeyForm::Unknown,
        Some(_) if headers.lists(Name::Allow, "INFO") => KeyForm::Info,
        Some(_) => KeyForm::Tones,
    }
}

/// Adds telephone events to the offer for the peer of a party that takes keys only by INFO or as tones.
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

/// Adds the telephone events of `offered` to its answer, because the other party, which has none, takes INFO or tones.
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

/// Whether the party of a description without telephone events takes keys in another form: by INFO, or as tones in
/// G.711.
pub(super) fn takes_keys(form: KeyForm, description: &SessionDescription) -> bool {
    let audio = description.carried_audio().map(|(_, audio)| audio);
    let first = audio.and_then(|audio| audio.codecs.iter().find(|codec| !codec.is_auxiliary()));
    match form {
        KeyForm::Info => true,
        KeyForm::Tones => first.is_some_and(|codec| has_tones(codec, codec.payload_type)),
        KeyForm::Unknown => false,
    }
}

/// Whether tones can be read and written in a codec with this payload type.
fn has_tones(codec: &Codec, payload_type: u8) -> bool {
    (codec.is("PCMU") && payload_type == 0) || (codec.is("PCMA") && payload_type == 8)
}

/// Whether tones can be sent to a party in its audio.
fn hears_tones(terms: &Negotiated) -> bool {
    let first = terms.payloads.iter().find(|payload| !payload.codec.is_auxiliary());
    first.is_some_and(|payload| has_tones(&payload.codec, payload.send))
}

/// Returns the source in which to detect a party's keys, if its peer needs them in another form; `form` is the party's.
pub(super) fn source(own: &Negotiated, theirs: &Negotiated, form: KeyForm) -> Option<KeySource> {
    if let Some((payload_type, clock_hz)) = watched(own, theirs) {
        return Some(KeySource::Events { payload_type, clock_hz });
    }
    let has_neither = form == KeyForm::Tones && own.telephone_event().is_none();
    let is_needed = has_neither && theirs.telephone_event().is_some();
    let first = own.payloads.iter().find(|payload| !payload.codec.is_auxiliary());
    let is_read = is_needed && first.is_some_and(|payload| has_tones(&payload.codec, payload.receive));
    is_read.then_some(KeySource::Audio)
}

/// A key in the form that a party takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passed {
    Event(KeyPress),
    Info,
    Tone(KeyTone),
}

/// Returns the form in which a key of one party is sent to the other party, which takes `form`.
pub(super) fn passed(
    own: &Negotiated,
    theirs: &Negotiated,
    form: KeyForm,
    (digit, duration_ms): (char, u32),
) -> Passed {
    if let Some(event) = event_for(own, theirs, digit, duration_ms) {
        return Passed::Event(event);
    }
    let tone = tone_for(theirs, form, digit, duration_ms);
    tone.map_or(Passed::Info, Passed::Tone)
}

/// Returns the tones of a key for a party that takes it in no other form.
fn tone_for(theirs: &Negotiated, form: KeyForm, digit: char, duration_ms: u32) -> Option<KeyTone> {
    let needs_tones = form == KeyForm::Tones && theirs.telephone_event().is_none() && hears_tones(theirs);
    let code = event_code(digit).filter(|_| needs_tones)?;
    Some(KeyTone { code, duration_ms })
}

/// Returns the event of a key for `theirs`, if the party that pressed it has none.
fn event_for(own: &Negotiated, theirs: &Negotiated, digit: char, duration_ms: u32) -> Option<KeyPress> {
    let events = theirs.telephone_event().filter(|_| own.telephone_event().is_none())?;
    Some(KeyPress {
        code: event_code(digit)?,
        duration_ms,
        payload_type: events.send,
        clock_hz: events.codec.clock_rate,
        audio_hz: theirs.codec()?.clock_rate,
    })
}

/// Returns the payload type and clock of a party's telephone events, if its peer has none.
pub(super) fn watched(own: &Negotiated, theirs: &Negotiated) -> Option<(u8, u32)> {
    let events = own.telephone_event().filter(|_| theirs.telephone_event().is_none())?;
    Some((events.receive, events.codec.clock_rate))
}

/// Returns the form in which a key that a party without telephone events sent by INFO is sent to the other party, which
/// takes `form`; `None` when the INFO is passed on.
pub(super) fn pressed(
    own: &Negotiated,
    theirs: &Negotiated,
    form: KeyForm,
    digit: char,
    request: &Request,
) -> Option<Passed> {
    if own.telephone_event().is_some() {
        return None; // It may also send the same key as an event.
    }
    let duration_ms = duration_of(request).unwrap_or(DURATION_MS);
    match passed(own, theirs, form, (digit, duration_ms)) {
        Passed::Info => None,
        other => Some(other),
    }
}

/// Returns the INFO for a key that was received as an event.
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

/// The duration of a key whose INFO has no `Duration=`.
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

    fn settled(media: &str) -> Negotiated {
        Negotiated::new(&parse(media), &parse(media), sidetone_sip::sdp::Role::Answerer).unwrap()
    }

    const PLAIN: &str = "m=audio 4 RTP/AVP 8";
    const EVENTS: &str = "m=audio 4 RTP/AVP 0 101\na=rtpmap:101 telephone-event/8000";
    const WIDE: &str = "m=audio 4 RTP/AVP 9";

    #[test]
    fn only_a_party_without_another_form_is_listened_to() {
        let [plain, events, wide] = [PLAIN, EVENTS, WIDE].map(settled);
        let in_events = Some(KeySource::Events { payload_type: 101, clock_hz: 8_000 });
        for (name, own, theirs, form, expected) in [
            ("tones to events", &plain, &events, KeyForm::Tones, Some(KeySource::Audio)),
            ("INFO to events", &plain, &events, KeyForm::Info, None),
            ("events to tones or INFO", &events, &plain, KeyForm::Tones, in_events),
            ("no Allow", &plain, &events, KeyForm::Unknown, None),
            ("tones to tones", &plain, &plain, KeyForm::Tones, None),
            ("events to events", &events, &events, KeyForm::Tones, None),
            ("another codec", &wide, &events, KeyForm::Tones, None),
        ] {
            assert_eq!(source(own, theirs, form), expected, "{name}");
        }
        for (media, form, expected) in [
            (PLAIN, KeyForm::Tones, true),
            (PLAIN, KeyForm::Unknown, false),
            (WIDE, KeyForm::Tones, false),
            (WIDE, KeyForm::Info, true),
            ("m=audio 4 RTP/AVP 18 0", KeyForm::Tones, false),
        ] {
            assert_eq!(takes_keys(form, &parse(media)), expected, "{media}");
        }
    }

    #[test]
    fn a_key_reaches_a_party_in_the_form_that_it_takes() {
        let [plain, events, wide] = [PLAIN, EVENTS, WIDE].map(settled);
        let of = |own, theirs, form| passed(own, theirs, form, ('5', 120));
        let event =
            KeyPress { code: 5, duration_ms: 120, payload_type: 101, clock_hz: 8_000, audio_hz: 8_000 };
        assert_eq!(of(&plain, &events, KeyForm::Info), Passed::Event(event));
        assert_eq!(of(&events, &plain, KeyForm::Info), Passed::Info);
        assert_eq!(of(&events, &plain, KeyForm::Tones), Passed::Tone(KeyTone { code: 5, duration_ms: 120 }));
        assert_eq!(of(&events, &wide, KeyForm::Tones), Passed::Info, "tones have no place there");
        assert_eq!(passed(&plain, &plain, KeyForm::Tones, ('x', 120)), Passed::Info, "no key");
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
