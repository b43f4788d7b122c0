//! The little that must hold before an RTCP datagram is relayed (RFC 3550 appendix A.2).

/// Whether `datagram` begins with an RTCP packet of version 2 whose length stays inside.
pub(crate) fn is_valid(datagram: &[u8]) -> bool {
    match *datagram {
        [128..=191, 192..=223, high, low, _, _, _, _, ..] => {
            let words = usize::from(u16::from_be_bytes([high, low]));
            (words + 1) * 4 <= datagram.len()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_checked() {
        let cases: &[(&str, &[u8], bool)] = &[
            ("nothing", &[], false),
            ("an empty receiver report", &[0x80, 201, 0, 1, 0, 0, 0, 1], true),
            ("too short", &[0x80, 201, 0, 1, 0, 0, 0], false),
            ("a length beyond the end", &[0x80, 201, 0, 2, 0, 0, 0, 1], false),
            ("version 1", &[0x40, 201, 0, 1, 0, 0, 0, 1], false),
            ("an RTP packet", &[0x80, 0, 0, 1, 0, 0, 0, 1], false),
        ];
        for (name, datagram, expected) in cases {
            assert_eq!(is_valid(datagram), *expected, "{name}");
        }
    }
}
