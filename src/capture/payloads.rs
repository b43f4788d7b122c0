//! What payload types mean: the static ones of RFC 3551, and those that an SDP announces.

use sidetone_media::rtp::PayloadKind;
use sidetone_media::session::Payload;
use sidetone_media::time::ClockRate;
use sidetone_sip::sdp::{Media, MediaKind};

use crate::media_plan;

/// The meaning of every payload type of a stream.
///
/// A dynamic type that nobody announced is [`PayloadKind::Other`]: it is counted, and not timed, because its
/// clock would be a guess.
pub(super) fn all(announced: Option<&Media>) -> Vec<Payload> {
    let mut payloads: Vec<Payload> = (0..128).map(unannounced).collect();
    for (name, number, hz, kind, bytes_per_ms) in STATIC {
        if let (Some(place), Some(clock)) = (payloads.get_mut(usize::from(number)), ClockRate::new(hz)) {
            *place = Payload { number, kind, clock, bytes_per_ms, name: name.to_owned() };
        }
    }
    let Some(media) = announced else { return payloads };
    for codec in &media.codecs {
        let Some(mut payload) = media_plan::payload(codec, codec.payload_type) else { continue };
        if media.kind != MediaKind::Audio {
            payload.kind = PayloadKind::Other;
        }
        if let Some(place) = payloads.get_mut(usize::from(payload.number)) {
            *place = payload;
        }
    }
    payloads
}

fn unannounced(number: u8) -> Payload {
    Payload {
        number,
        kind: PayloadKind::Other,
        clock: ClockRate::HZ_8000,
        bytes_per_ms: None,
        name: String::new(),
    }
}

use PayloadKind::{Audio, ComfortNoise, Other};

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

#[cfg(test)]
mod tests {
    use sidetone_sip::sdp::SessionDescription;

    use super::*;

    #[test]
    fn every_type_has_its_own_place() {
        let payloads = all(None);
        assert_eq!(payloads.len(), 128);
        assert!(payloads.iter().enumerate().all(|(n, payload)| usize::from(payload.number) == n));
        assert_eq!((payloads[8].name.as_str(), payloads[8].kind), ("PCMA", Audio));
        assert_eq!((payloads[111].name.as_str(), payloads[111].kind), ("", Other));
    }

    #[test]
    fn an_announcement_gives_dynamic_types_a_clock() {
        let sdp = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n\
            m=audio 4000 RTP/AVP 111 101\r\na=rtpmap:111 opus/48000/2\r\na=rtpmap:101 telephone-event/48000\r\n";
        let description = SessionDescription::parse(sdp.as_bytes()).unwrap();
        let payloads = all(description.media.first());
        let seen = |number: usize| {
            (payloads[number].name.as_str(), payloads[number].clock.hz(), payloads[number].kind)
        };
        assert_eq!(seen(111), ("opus", 48_000, Audio));
        assert_eq!(seen(101), ("telephone-event", 48_000, PayloadKind::Event));
        assert_eq!(seen(0), ("PCMU", 8_000, Audio));
    }
}
