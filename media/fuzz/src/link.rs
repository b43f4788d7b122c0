//! Link and network layers with fragments put together: any frames of any link type, at any time.

use sidetone_media::pcap::{Content, Dissector, LinkType, dissect};
use sidetone_media::time::Micros;

use super::choices::Choices;

/// A payload found in a frame lies within the frame, and a complete frame gives the same result regardless of earlier
/// frames.
pub fn link_layers(data: &[u8]) {
    let mut choices = Choices::new(data);
    let mut dissector = Dissector::new();
    let (mut now, mut frames) = (Micros(0), 0);
    while !choices.is_over() {
        let link = link_type(&mut choices);
        now = now + i64::from(choices.byte()) * 500_000;
        let frame = choices.bytes();
        frames += 1;
        let alone = dissect(link, frame);
        match alone {
            Content::Udp(datagram) | Content::Head(datagram) => {
                assert!(datagram.payload.len() <= datagram.payload_len, "more than was on the wire");
                check_within(frame, datagram.payload);
            }
            Content::Tcp(segment) => {
                assert!(segment.payload.len() <= segment.payload_len, "more than was on the wire");
                check_within(frame, segment.payload);
            }
            _ => {}
        }
        match dissector.dissect(now, link, frame) {
            Content::Udp(datagram) => {
                assert!(datagram.payload.len() <= datagram.payload_len && datagram.payload_len <= 65_535);
            }
            Content::Tcp(segment) => assert!(segment.payload.len() <= segment.payload_len),
            content => {
                let fragment = matches!(content, Content::Fragment | Content::Head(_));
                assert!(
                    fragment || content == alone || matches!(alone, Content::Fragment | Content::Head(_))
                );
            }
        }
        assert!(dissector.fragments_left() <= frames, "more fragments than frames");
    }
}

fn check_within(frame: &[u8], payload: &[u8]) {
    let (outer, inner) = (frame.as_ptr_range(), payload.as_ptr_range());
    let inside = outer.start <= inner.start && inner.end <= outer.end;
    assert!(inside || payload.is_empty(), "a payload from elsewhere");
}

fn link_type(choices: &mut Choices<'_>) -> LinkType {
    let known = [
        LinkType::ETHERNET,
        LinkType::LINUX_SLL,
        LinkType::LINUX_SLL2,
        LinkType::RAW,
        LinkType::NULL,
        LinkType::LOOP,
        LinkType::IPV4,
        LinkType::IPV6,
    ];
    let choice = choices.byte();
    known.get(usize::from(choice)).copied().unwrap_or_else(|| LinkType(choices.u16()))
}
