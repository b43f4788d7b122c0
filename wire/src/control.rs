//! Control messages (`cmsg(3)`): receive times, drop counters and ICMP errors.

use nix::libc;

/// Space for the control messages of one datagram, or of an ICMP error with the address of the host that sent it.
pub(crate) const CONTROL_BYTES: usize = 128;

/// The content of the control messages of a received datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) stamp_us: Option<i64>,
    pub(crate) drops: Option<u32>,
}

/// Reads the receive time and the drop counter of a datagram.
#[inline]
pub(crate) fn facts(control: &[u8]) -> Facts {
    let mut facts = Facts::default();
    for Message { level, kind, data } in Messages(control) {
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => facts.stamp_us = stamp_us(data),
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                facts.drops = data.first_chunk().map(|drops| u32::from_ne_bytes(*drops));
            }
            _ => {}
        }
    }
    facts
}

/// Whether an entry of the error queue is "destination unreachable".
pub(crate) fn is_unreachable(control: &[u8]) -> bool {
    Messages(control).any(|Message { level, kind, data }| {
        // `sock_extended_err`: the error number, then origin, type and code.
        let Some([_, _, _, _, origin, icmp_type, code, ..]) = data.first_chunk::<16>() else { return false };
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_RECVERR) => {
                *origin == libc::SO_EE_ORIGIN_ICMP && *icmp_type == 3 && *code != FRAGMENTATION_NEEDED
            }
            (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                *origin == libc::SO_EE_ORIGIN_ICMP6 && *icmp_type == 1
            }
            _ => false,
        }
    })
}

fn stamp_us(data: &[u8]) -> Option<i64> {
    let (seconds, rest) = data.split_first_chunk()?;
    let seconds = i64::from_ne_bytes(*seconds);
    let nanos = i64::from_ne_bytes(*rest.first_chunk()?);
    Some(seconds.saturating_mul(1_000_000).saturating_add(nanos / 1_000))
}

struct Message<'a> {
    level: i32,
    kind: i32,
    data: &'a [u8],
}

/// Ends at the first message that is cut short.
struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    #[inline]
    fn next(&mut self) -> Option<Message<'a>> {
        let (head, _) = self.0.split_first_chunk::<HEAD_BYTES>()?;
        let [n0, n1, n2, n3, n4, n5, n6, n7, l0, l1, l2, l3, k0, k1, k2, k3] = *head;
        let len = usize::from_ne_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
        let data = self.0.get(HEAD_BYTES..len)?;
        self.0 = len.checked_next_multiple_of(ALIGN).and_then(|next| self.0.get(next..)).unwrap_or_default();
        Some(Message {
            level: i32::from_ne_bytes([l0, l1, l2, l3]),
            kind: i32::from_ne_bytes([k0, k1, k2, k3]),
            data,
        })
    }
}

/// Length, level and type of a message.
const HEAD_BYTES: usize = 16;
/// Messages begin at multiples of this.
const ALIGN: usize = 8;
const _: () = assert!(size_of::<libc::cmsghdr>() == HEAD_BYTES && size_of::<usize>() == ALIGN);
/// ICMP type 3, code 4: the path works, the datagram is too long (RFC 792).
const FRAGMENTATION_NEEDED: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let mut bytes = (HEAD_BYTES + data.len()).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
        bytes
    }

    #[test]
    fn time_and_drops_are_read_in_any_order_and_cut_ones_are_not() {
        let mut time = 1_700_000_000_i64.to_ne_bytes().to_vec();
        time.extend(999_999_999_i64.to_ne_bytes());
        let time = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &time);
        let drops = message(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &7_u32.to_ne_bytes());
        let other = message(libc::SOL_SOCKET, 9_999, &[1, 2, 3]);
        let stamp_us = Some(1_700_000_000_999_999);
        for (name, control, expected) in [
            ("none", vec![], Facts::default()),
            ("time", time.clone(), Facts { stamp_us, drops: None }),
            ("both", [time.clone(), drops.clone()].concat(), Facts { stamp_us, drops: Some(7) }),
            ("behind another", [other, drops, time.clone()].concat(), Facts { stamp_us, drops: Some(7) }),
            ("cut", time[..24].to_vec(), Facts::default()),
            ("a length beyond all", [usize::MAX.to_ne_bytes(), [0; 8]].concat(), Facts::default()),
        ] {
            assert_eq!(facts(&control), expected, "{name}");
        }
    }

    #[test]
    fn only_destination_unreachable_counts() {
        let entry = |level, kind, origin, icmp_type, code| {
            let data = [0, 0, 0, 111, origin, icmp_type, code, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            is_unreachable(&message(level, kind, &data))
        };
        let v4 = |icmp_type, code| entry(libc::IPPROTO_IP, libc::IP_RECVERR, 2, icmp_type, code);
        let v6 = |icmp_type, code| entry(libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 3, icmp_type, code);
        assert!(v4(3, 3) && v4(3, 1) && v6(1, 4));
        assert!(!v4(3, 4), "fragmentation needed");
        assert!(!v4(11, 0) && !v6(2, 0), "time exceeded, packet too big");
        assert!(!entry(libc::IPPROTO_IP, libc::IP_RECVERR, 1, 3, 3), "of this host");
    }
}
