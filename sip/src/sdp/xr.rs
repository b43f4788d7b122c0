//! Extended RTCP reports that a party requests (RFC 3611 §5).

/// The extended reports that a party requests in its `a=rtcp-xr`, as far as we can send them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XrWish {
    /// `rcvr-rtt`: our reference times as a receiver, and answers to its own.
    pub round_trip: bool,
    /// `stat-summary` with `loss`, `dup` or `jitt`, or without a list of parts; these parts are sent together.
    pub summary: bool,
    /// `voip-metrics`.
    pub voip: bool,
}

impl XrWish {
    /// Reads the value of `a=rtcp-xr`; formats that we do not send are skipped.
    pub(super) fn parse(value: &str) -> XrWish {
        let mut wish = XrWish::default();
        for format in value.split_ascii_whitespace() {
            let (name, parts) = format.split_once('=').unwrap_or((format, ""));
            match name {
                "rcvr-rtt" => wish.round_trip = true,
                "stat-summary" => {
                    wish.summary = parts.is_empty()
                        || parts.split(',').any(|part| matches!(part, "loss" | "dup" | "jitt"))
                }
                "voip-metrics" => wish.voip = true,
                _ => {}
            }
        }
        wish
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_can_send_is_read() {
        let table = [
            ("voip-metrics", [false, false, true]),
            ("rcvr-rtt=all:10 voip-metrics", [true, false, true]),
            ("pkt-loss-rle stat-summary=dup,loss,jitt", [false, true, false]),
            ("stat-summary rcvr-rtt=sender", [true, true, false]),
            ("stat-summary=jitt", [false, true, false]),
            ("stat-summary=TTL", [false, false, false]),
            ("", [false, false, false]),
        ];
        for (value, [round_trip, summary, voip]) in table {
            assert_eq!(XrWish::parse(value), XrWish { round_trip, summary, voip }, "{value}");
        }
    }
}
