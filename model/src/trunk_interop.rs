//! Carrier-specific settings of a trunk: its servers, number formats, domain, codecs and headers.

use crate::call::words;
use crate::problem::FieldProblem;

/// The carrier-specific settings of a trunk; the default is that of a trunk without such settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrunkInterop {
    /// Further servers of the carrier, tried in order after the address, in the form of
    /// [`TrunkAddress`](crate::trunk_address::TrunkAddress).
    pub backup_addresses: Vec<String>,
    /// The server to which every request is sent, whatever the address is, in the same form.
    pub outbound_proxy: Option<String>,
    /// The domain in From and P-Asserted-Identity, and of our account; empty means the host of the address.
    pub from_domain: String,
    /// The digits of the country whose national numbers the carrier writes; empty if it writes none.
    pub country_code: String,
    /// The prefix of a national number that is not part of it, such as `0`; empty if there is none.
    pub national_prefix: String,
    /// How digits without `+` and `00` are read.
    pub inbound_numbers: InboundNumbers,
    /// How numbers are written to the carrier.
    pub outbound_numbers: OutboundNumbers,
    /// The codecs of its calls, in order of preference; empty means every codec that the switch supports.
    pub codecs: Vec<String>,
    /// Further headers of INVITEs to it, each written as `Name: value`.
    pub headers: Vec<String>,
    /// Seconds after which a call that the carrier has answered only with 100 is sent to the next server or
    /// trunk.
    pub progress_seconds: u32,
    /// The interval of OPTIONS to each of its addresses, in seconds; 0 sends none.
    pub qualify_seconds: u32,
    /// Whether the carrier may transfer an extension with which it talks, by REFER to a number.
    pub transfers: bool,
}

impl Default for TrunkInterop {
    fn default() -> Self {
        TrunkInterop {
            backup_addresses: Vec::new(),
            outbound_proxy: None,
            from_domain: String::new(),
            country_code: String::new(),
            national_prefix: NATIONAL_PREFIX_DEFAULT.to_owned(),
            inbound_numbers: InboundNumbers::International,
            outbound_numbers: OutboundNumbers::E164,
            codecs: Vec::new(),
            headers: Vec::new(),
            progress_seconds: PROGRESS_SECONDS_DEFAULT,
            qualify_seconds: 0,
            transfers: false,
        }
    }
}

/// The changes of a [`TrunkInterop`]; `None` keeps the stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrunkInteropChange {
    /// Other further servers.
    pub backup_addresses: Option<Vec<String>>,
    /// Another proxy, or none.
    pub outbound_proxy: Option<Option<String>>,
    /// Another domain, or that of the address.
    pub from_domain: Option<String>,
    /// Another country, or none.
    pub country_code: Option<String>,
    /// Another prefix, or none.
    pub national_prefix: Option<String>,
    /// Another reading of numbers.
    pub inbound_numbers: Option<InboundNumbers>,
    /// Another form of numbers.
    pub outbound_numbers: Option<OutboundNumbers>,
    /// Other codecs.
    pub codecs: Option<Vec<String>>,
    /// Other headers.
    pub headers: Option<Vec<String>>,
    /// Another time until a call goes on.
    pub progress_seconds: Option<u32>,
    /// Another interval of OPTIONS, or none.
    pub qualify_seconds: Option<u32>,
    /// Whether the carrier may transfer.
    pub transfers: Option<bool>,
}

words! {
    /// How digits of a carrier without `+` and `00` are read.
    InboundNumbers {
        /// They begin with a country code, unless they begin with the national prefix and the country is known.
        International = "international",
        /// They are a national number, with or without the national prefix.
        National = "national",
    }
}

words! {
    /// How numbers are written to a carrier.
    OutboundNumbers {
        /// The country code and the number, without `+`.
        Digits = "digits",
        /// E.164 with its `+`.
        E164 = "e164",
        /// Numbers of the trunk's country in national form, others with `00`.
        National = "national",
        /// `00`, the country code and the number.
        Prefixed = "prefixed",
    }
}

impl InboundNumbers {
    /// Every value of the setting, as users write it.
    pub const WORDS: [(&'static str, InboundNumbers); 2] = [
        (InboundNumbers::International.as_str(), InboundNumbers::International),
        (InboundNumbers::National.as_str(), InboundNumbers::National),
    ];
}

impl OutboundNumbers {
    /// Every value of the setting, as users write it.
    pub const WORDS: [(&'static str, OutboundNumbers); 4] = [
        (OutboundNumbers::Digits.as_str(), OutboundNumbers::Digits),
        (OutboundNumbers::E164.as_str(), OutboundNumbers::E164),
        (OutboundNumbers::National.as_str(), OutboundNumbers::National),
        (OutboundNumbers::Prefixed.as_str(), OutboundNumbers::Prefixed),
    ];
}

impl TrunkInterop {
    /// Returns these settings after a change.
    #[must_use]
    pub fn changed(self, change: TrunkInteropChange) -> Self {
        TrunkInterop {
            backup_addresses: change.backup_addresses.unwrap_or(self.backup_addresses),
            outbound_proxy: change.outbound_proxy.unwrap_or(self.outbound_proxy),
            from_domain: change.from_domain.unwrap_or(self.from_domain),
            country_code: change.country_code.unwrap_or(self.country_code),
            national_prefix: change.national_prefix.unwrap_or(self.national_prefix),
            inbound_numbers: change.inbound_numbers.unwrap_or(self.inbound_numbers),
            outbound_numbers: change.outbound_numbers.unwrap_or(self.outbound_numbers),
            codecs: change.codecs.unwrap_or(self.codecs),
            headers: change.headers.unwrap_or(self.headers),
            progress_seconds: change.progress_seconds.unwrap_or(self.progress_seconds),
            qualify_seconds: change.qualify_seconds.unwrap_or(self.qualify_seconds),
            transfers: change.transfers.unwrap_or(self.transfers),
        }
    }

    /// Returns the servers besides the address: the backup servers and the proxy.
    pub fn other_servers(&self) -> impl Iterator<Item = &str> {
        self.backup_addresses.iter().chain(&self.outbound_proxy).map(String::as_str)
    }

    /// Returns the first of [`wrong_together`](Self::wrong_together).
    ///
    /// # Errors
    /// The wrong field, and what to do.
    pub fn require_possible(&self, address: Option<&str>) -> Result<(), FieldProblem> {
        self.wrong_together(address).into_iter().next().map_or(Ok(()), Err)
    }

    /// Returns the problems of the combination of these settings and the trunk's address.
    pub fn wrong_together(&self, address: Option<&str>) -> Vec<FieldProblem> {
        let has_backup = !self.backup_addresses.is_empty();
        let has_proxy = self.outbound_proxy.is_some();
        let no_country = self.country_code.is_empty();
        let too_often = self.qualify_seconds != 0 && self.qualify_seconds < QUALIFY_SECONDS_MIN;
        let least = format!("must be 0 for none, or at least {QUALIFY_SECONDS_MIN}");
        let country = "needs country_code, the country of national numbers";
        let rules = [
            (address.is_none() && has_backup, "backup_addresses", "needs an address, which is tried first"),
            (too_often, "qualify_seconds", least.as_str()),
            (
                address.is_none() && has_proxy,
                "outbound_proxy",
                "needs an address, which is the domain of the Request-URI",
            ),
            (
                has_proxy && has_backup,
                "backup_addresses",
                "must be empty, because every request goes to outbound_proxy",
            ),
            (no_country && self.inbound_numbers == InboundNumbers::National, "inbound_numbers", country),
            (no_country && self.outbound_numbers == OutboundNumbers::National, "outbound_numbers", country),
        ];
        let broken = rules.into_iter().filter(|(is_broken, ..)| *is_broken);
        broken
            .map(|(_, field, message)| FieldProblem { field: field.to_owned(), message: message.to_owned() })
            .collect()
    }
}

/// The default of `progress_seconds`.
pub const PROGRESS_SECONDS_DEFAULT: u32 = 20;
/// The default prefix of national numbers.
pub const NATIONAL_PREFIX_DEFAULT: &str = "0";
/// The shortest interval of OPTIONS.
pub const QUALIFY_SECONDS_MIN: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_exclude_each_other_are_named() {
        let plain = TrunkInterop::default();
        let field = |interop: &TrunkInterop, address| {
            interop.require_possible(address).err().map(|wrong| wrong.field)
        };
        let backup = TrunkInterop { backup_addresses: vec!["sip:b.example".into()], ..plain.clone() };
        let proxied = TrunkInterop { outbound_proxy: Some("sip:p.example".into()), ..plain.clone() };
        let both = TrunkInterop { backup_addresses: backup.backup_addresses.clone(), ..proxied.clone() };
        let national = TrunkInterop { inbound_numbers: InboundNumbers::National, ..plain.clone() };
        let written = TrunkInterop { outbound_numbers: OutboundNumbers::National, ..plain.clone() };
        let address = Some("sip:a.example");
        let cases = [
            (&plain, None, None),
            (&backup, None, Some("backup_addresses")),
            (&backup, address, None),
            (&proxied, None, Some("outbound_proxy")),
            (&both, address, Some("backup_addresses")),
            (&national, address, Some("inbound_numbers")),
            (&written, address, Some("outbound_numbers")),
        ];
        for (interop, address, expected) in cases {
            assert_eq!(field(interop, address).as_deref(), expected, "{interop:?}");
        }
        let known = TrunkInterop { country_code: "44".into(), ..national };
        assert_eq!(field(&known, address), None);
    }
}
