//! The device and the network of a party, as its packets show them.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::directory::Network;

/// The device and the network of one party of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The User-Agent (or Server) header of its SIP messages, bounded by [`user_agent`]; `None` if it sent
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// The block of addresses from which its audio came, otherwise its SIP messages, in the form of
    /// [`network`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
}

impl Device {
    /// Whether neither the device nor the network is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns a User-Agent as records contain it: one line of at most [`USER_AGENT_MAX`] characters, without
/// control characters and without those that change the direction of the text after them (Unicode UAX #9); `None`
/// when nothing is left.
pub fn user_agent(text: &str) -> Option<String> {
    // Most texts are kept as they are, and then this is the only allocation.
    let mut kept = String::with_capacity(text.len().min(USER_AGENT_MAX));
    let mut chars = 0;
    for char in text.chars().filter(|char| !reorders(*char)) {
        if chars == USER_AGENT_MAX {
            break;
        }
        let is_space = char.is_whitespace() || char.is_control();
        // Spaces at the beginning, and more than one in a row, are left out.
        if is_space && (kept.is_empty() || kept.ends_with(' ')) {
            continue;
        }
        kept.push(if is_space { ' ' } else { char });
        chars += 1;
    }
    kept.truncate(kept.trim_end().len());
    (!kept.is_empty()).then_some(kept)
}

/// Returns the block that an address is in: /24 of IPv4, /64 of IPv6; an IPv4-mapped IPv6 address counts as IPv4.
pub fn network(address: IpAddr) -> String {
    let network = match address.to_canonical() {
        IpAddr::V4(v4) => Network { address: IpAddr::V4((v4.to_bits() & !0xff).into()), prefix_len: 24 },
        IpAddr::V6(v6) => {
            Network { address: IpAddr::V6((v6.to_bits() & !u128::from(u64::MAX)).into()), prefix_len: 64 }
        }
    };
    network.to_string()
}

/// Whether a character changes the direction of others, or is invisible.
fn reorders(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Characters of a User-Agent in a record.
pub const USER_AGENT_MAX: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_agent_is_one_short_line() {
        let long = "x".repeat(500);
        let cases = [
            ("Example Phone 7", Some("Example Phone 7")),
            ("  two\t\r\n  lines \0 ", Some("two lines")),
            ("left\u{202e}right\u{200b}", Some("leftright")),
            ("<script>alert(1)</script>", Some("<script>alert(1)</script>")),
            (" \u{202e} ", None),
            ("", None),
            (&long, Some(&long[..USER_AGENT_MAX])),
        ];
        for (given, expected) in cases {
            assert_eq!(user_agent(given).as_deref(), expected, "{given:?}");
        }
        assert_eq!(user_agent(&"ß".repeat(500)).unwrap().chars().count(), USER_AGENT_MAX);
    }

    #[test]
    fn a_network_is_the_block_of_its_address() {
        let cases = [
            ("192.0.2.77", "192.0.2.0/24"),
            ("::ffff:192.0.2.77", "192.0.2.0/24"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("0.0.0.1", "0.0.0.0/24"),
        ];
        for (address, expected) in cases {
            let written = network(address.parse().unwrap());
            assert_eq!(written, expected);
            // A filter with this text finds it.
            assert_eq!(written.parse::<Network>().unwrap().to_string(), expected);
        }
    }
}
