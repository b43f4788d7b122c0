//! Reads the datagram inside a TURN indication or channel message (RFC 8656 §11, §12).

/// The datagram in a TURN message that carries one; `None` for every other STUN message.
///
/// For a truncated payload the captured part of the datagram is returned, and its length on the wire.
pub(super) fn relayed(payload: &[u8]) -> Option<(&[u8], usize)> {
    match payload {
        // Send and Data indications, with the magic cookie of RFC 8489 §5.
        [0x00, 0x16 | 0x17, _, _, 0x21, 0x12, 0xa4, 0x42, ..] => data_attribute(payload.get(20..)?),
        // Channel numbers, and the length of the data without its padding.
        [0x40..=0x4f, _, high, low, data @ ..] => {
            let len = usize::from(u16::from_be_bytes([*high, *low]));
            (len > 0 && data.len() < len + 4).then_some((data.get(..len).unwrap_or(data), len))
        }
        _ => None,
    }
}

/// The length of the STUN or channel message at the beginning of a stream, with its padding (RFC 8656 §12.5);
/// `None` for what is neither.
pub(super) fn message_len(bytes: &[u8; 4]) -> Option<usize> {
    let len = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
    match bytes[0] {
        0x00..=0x3f if len.is_multiple_of(4) => Some(20 + len),
        0x40..=0x4f => Some(4 + len.next_multiple_of(4)),
        _ => None,
    }
}

/// Whether bytes begin like a STUN message.
pub(super) fn is_stun(bytes: &[u8]) -> bool {
    matches!(bytes, [0x00..=0x3f, _, _, low, 0x21, 0x12, 0xa4, 0x42, ..] if low.is_multiple_of(4))
}

/// Finds the DATA attribute; each turn skips an attribute.
fn data_attribute(mut attributes: &[u8]) -> Option<(&[u8], usize)> {
    while let [kind_high, kind_low, high, low, rest @ ..] = attributes {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        if [*kind_high, *kind_low] == [0x00, 0x13] {
            return Some((rest.get(..len).unwrap_or(rest), len));
        }
        attributes = rest.get(len.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name, a datagram, and the expected data with its length on the wire.
    type Case = (&'static str, Vec<u8>, Option<(&'static [u8], usize)>);

    #[test]
    fn relayed_datagrams_are_found() {
        let cookie = [0x21, 0x12, 0xa4, 0x42];
        let indication = |kind: u8, attributes: &[u8]| {
            [&[0, kind, 0, attributes.len() as u8][..], &cookie, &[7; 12], attributes].concat()
        };
        let peer = [0, 0x12, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7];
        let data = [0, 0x13, 0, 3, b'h', b'e', b'y', 0];
        let cases: [Case; 8] = [
            ("data", indication(0x17, &[&peer[..], &data].concat()), Some((b"hey", 3))),
            ("send", indication(0x16, &[&data[..], &peer].concat()), Some((b"hey", 3))),
            ("no data", indication(0x17, &peer), None),
            ("binding", indication(0x01, &data), None),
            ("an attribute beyond the end", indication(0x17, &[0, 0x12, 0, 99, 1]), None),
            ("data that was cut off", indication(0x17, &data[..6]), Some((b"he", 3))),
            ("channel", vec![0x40, 0, 0, 3, b'h', b'e', b'y', 0], Some((b"hey", 3))),
            ("channel with too much", vec![0x40, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7], None),
        ];
        for (name, bytes, expected) in cases {
            assert_eq!(relayed(&bytes), expected, "{name}");
        }
    }
}
