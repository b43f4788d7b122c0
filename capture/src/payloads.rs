//! The meaning of payload types: the static ones of RFC 3551, and those that an SDP announces.

use std::collections::VecDeque;
use std::sync::Arc;

use sidetone_media::rtp::PayloadKind;
use sidetone_media::session::Payload;
use sidetone_media::time::ClockRate;
use sidetone_sip::sdp::{Codec, Media, MediaKind};

/// The meanings of a stream's payload types, in ascending order of their numbers; shared by its streams.
pub(super) type Meanings = Arc<[Payload]>;

/// The meanings of recent announcements: parties of one kind announce the same, and share one copy.
#[derive(Debug, Default)]
pub(super) struct Announced {
    announced: VecDeque<Announcement>,
    /// The payload types that offers and answers settled.
    settled: VecDeque<Meanings>,
}

/// What is compared of an announcement, and its meanings.
#[derive(Debug)]
struct Announcement {
    kind: MediaKind,
    is_protected: bool,
    codecs: Vec<Codec>,
    meanings: Meanings,
}

impl Announced {
    /// Returns the payload types as `media` announces them.
    pub(super) fn meanings(&mut self, media: &Media) -> Meanings {
        let is_protected = media.is_protected();
        let known = self.announced.iter().find(|known| {
            known.kind == media.kind && known.is_protected == is_protected && known.codecs == media.codecs
        });
        if let Some(known) = known {
            return Arc::clone(&known.meanings);
        }
        let meanings = meanings(&[media]);
        let (kind, codecs) = (media.kind.clone(), media.codecs.clone());
        let announcement = Announcement { kind, is_protected, codecs, meanings: Arc::clone(&meanings) };
        remember(&mut self.announced, announcement);
        meanings
    }

    /// Returns the payload types of sections with one address; the first that defines a number has precedence.
    pub(super) fn meanings_of<'a>(&mut self, sections: impl Iterator<Item = &'a Media>) -> Meanings {
        let sections: Vec<&Media> = sections.collect();
        match *sections.as_slice() {
            [media] => self.meanings(media),
            _ => meanings(&sections),
        }
    }

    /// Returns the shared copy of `payloads`.
    pub(super) fn settled(&mut self, payloads: Vec<Payload>) -> Meanings {
        if let Some(known) = self.settled.iter().find(|known| ***known == *payloads) {
            return Arc::clone(known);
        }
        let settled = Meanings::from(payloads);
        remember(&mut self.settled, Arc::clone(&settled));
        settled
    }
}

/// Puts a value in front of a list, which drops its oldest when it is full.
fn remember<T>(list: &mut VecDeque<T>, value: T) {
    list.truncate(ANNOUNCED_MAX - 1);
    list.push_front(value);
}

/// Whether two of them are equal; mostly they are the same copy.
pub(super) fn is_same(one: &Meanings, other: &Meanings) -> bool {
    Arc::ptr_eq(one, other) || one == other
}

/// The static types, the dynamic types, and the types that sections with one address define: the first that defines a
/// number has precedence.
///
/// A dynamic type that no SDP announced is [`PayloadKind::Other`]: its packets are counted, but not timed unless the
/// clock can be inferred ([`super::clock_inference`]). Payloads may contain the authentication tag of SRTP, also where no
/// SDP says whether they do.
pub(super) fn meanings(sections: &[&Media]) -> Meanings {
    let fixed = STATIC.into_iter().filter_map(|(name, number, hz, kind, bytes_per_ms)| {
        let clock = ClockRate::new(hz)?;
        Some(Payload { number, kind, clock, bytes_per_ms, default_ptime_ms: None, name: name.to_owned() })
    });
    let mut payloads: Vec<Payload> = fixed.chain((96..128).map(unannounced)).collect();
    sections.iter().rev().for_each(|media| define(&mut payloads, media));
    if sections.is_empty() || sections.iter().any(|media| media.is_protected()) {
        for payload in &mut payloads {
            payload.bytes_per_ms = payload.tagged_bytes_per_ms();
        }
    }
    payloads.into()
}

/// Enters the types that `media` defines.
fn define(payloads: &mut Vec<Payload>, media: &Media) {
    for codec in &media.codecs {
        let Some(mut payload) = media_plan::payload(codec, codec.payload_type) else { continue };
        if media.kind != MediaKind::Audio {
            payload.kind = PayloadKind::Other;
        }
        match payloads.binary_search_by_key(&payload.number, |known| known.number) {
            Ok(place) => {
                if let Some(known) = payloads.get_mut(place) {
                    *known = payload;
                }
            }
            Err(place) => payloads.insert(place, payload),
        }
    }
}

/// Whether `number` is a dynamic type that no SDP announced.
pub(super) fn is_unannounced(payloads: &[Payload], number: u8) -> bool {
    let payload = payloads.iter().find(|payload| payload.number == number);
    payload.is_some_and(|payload| payload.kind == PayloadKind::Other && payload.name.is_empty())
}

/// The same meanings, except that `number` is unnamed audio with that clock.
pub(super) fn with_clock(payloads: &[Payload], number: u8, clock: ClockRate) -> Meanings {
    let mut payloads = payloads.to_vec();
    for payload in payloads.iter_mut().filter(|payload| payload.number == number) {
        *payload = Payload { kind: PayloadKind::Audio, clock, ..unannounced(number) };
    }
    payloads.into()
}

pub(super) fn unannounced(number: u8) -> Payload {
    Payload {
        number,
        kind: PayloadKind::Other,
        clock: ClockRate::HZ_8000,
        bytes_per_ms: None,
        default_ptime_ms: None,
        name: String::new(),
    }
}

use PayloadKind::{Audio, ComfortNoise, Other};
use sidetone_call::media_plan;

/// RFC 3551 tables 4 and 5: name, number, clock, kind, bytes per millisecond.
const STATIC: [(&str, u8, u32, PayloadKind, Option<u32>); 25] = [
    ("PCMU", 0, 8_000, Audio, Some(8)),
    ("GSM", 3, 8_000, Audio, None),
    ("G723", 4, 8_000, Audio, None),
    ("DVI4", 5, 8_000, Audio, None),
    ("DVI4", 6, 16_000, Audio, None),
    ("LPC", 7, 8_000, Audio, None),
    ("PCMA", 8, 8_000, Audio, Some(8)),
    ("G722", 9, 8_000, Audio, Some(8)),
    ("L16", 10, 44_100, Audio, Some(176)),
    ("L16", 11, 44_100, Audio, Some(88)),
    ("QCELP", 12, 8_000, Audio, None),
    ("CN", 13, 8_000, ComfortNoise, None),
    ("MPA", 14, 90_000, Audio, None),
    ("G728", 15, 8_000, Audio, Some(2)),
    ("DVI4", 16, 11_025, Audio, None),
    ("DVI4", 17, 22_050, Audio, None),
    ("G729", 18, 8_000, Audio, Some(1)),
    ("CN", 19, 8_000, ComfortNoise, None),
    ("CelB", 25, 90_000, Other, None),
    ("JPEG", 26, 90_000, Other, None),
    ("nv", 28, 90_000, Other, None),
    ("H261", 31, 90_000, Other, None),
    ("MPV", 32, 90_000, Other, None),
    ("MP2T", 33, 90_000, Other, None),
    ("H263", 34, 90_000, Other, None),
];

/// Different announcements that are kept; comparing them costs less than building a new one.
const ANNOUNCED_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use sidetone_sip::sdp::SessionDescription;

    use super::*;

    fn seen(payloads: &[Payload], number: u8) -> Option<(&str, u32, PayloadKind)> {
        let payload = payloads.iter().find(|payload| payload.number == number)?;
        Some((&payload.name, payload.clock.hz(), payload.kind))
    }

    #[test]
    fn numbers_stand_once_and_in_order() {
        let payloads = meanings(&[]);
        assert!(payloads.windows(2).all(|pair| pair[0].number < pair[1].number));
        assert_eq!(seen(&payloads, 8), Some(("PCMA", 8_000, Audio)));
        assert_eq!(seen(&payloads, 111), Some(("", 8_000, Other)));
        assert_eq!(seen(&payloads, 72), None, "looks like RTCP");
    }

    #[test]
    fn an_announcement_gives_dynamic_types_a_clock() {
        let sdp = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n\
            m=audio 4000 RTP/AVP 111 101\r\na=rtpmap:111 opus/48000/2\r\na=rtpmap:101 telephone-event/48000\r\n";
        let description = SessionDescription::parse(sdp.as_bytes()).unwrap();
        let payloads = meanings(&[&description.media[0]]);
        assert_eq!(seen(&payloads, 111), Some(("opus", 48_000, Audio)));
        assert_eq!(seen(&payloads, 101), Some(("telephone-event", 48_000, PayloadKind::Event)));
        assert_eq!(seen(&payloads, 0), Some(("PCMU", 8_000, Audio)));
    }
}
