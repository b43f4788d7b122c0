//! The content of a certificate: names and validity.

use std::net::IpAddr;

use sidetone_model::time::Timestamp;
use sidetone_sip::message::{Scheme, Uri};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

/// Names and validity of a certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// The DNS names, in lower case; one may begin with `*.`.
    pub(super) dns: Vec<String>,
    /// The hosts of SIP URIs without a user, in lower case (RFC 5922 §7.1).
    pub(super) sip: Vec<String>,
    /// The addresses.
    pub(super) addresses: Vec<IpAddr>,
    /// The first time at which it is valid.
    pub(super) begins: Timestamp,
    /// The last time at which it is valid.
    pub(super) ends: Timestamp,
}

impl Facts {
    /// Reads a certificate; `None` when it is malformed.
    pub(super) fn of(der: &[u8]) -> Option<Facts> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let validity = certificate.validity();
        let time = |seconds: i64| Timestamp::from_micros(seconds.saturating_mul(1_000_000));
        let mut facts = Facts {
            begins: time(validity.not_before.timestamp()),
            ends: time(validity.not_after.timestamp()),
            ..Facts::default()
        };
        let alternatives = certificate.subject_alternative_name().ok()?;
        for name in alternatives.iter().flat_map(|names| &names.value.general_names) {
            match name {
                GeneralName::DNSName(name) => facts.dns.push(name.to_ascii_lowercase()),
                GeneralName::URI(uri) => facts.sip.extend(sip_host(uri)),
                GeneralName::IPAddress(bytes) => facts.addresses.extend(address(bytes)),
                _ => {}
            }
        }
        Some(facts)
    }

    /// Whether the certificate is for a host: by name, including a wildcard for its first label, or by address.
    pub(super) fn covers(&self, host: &str) -> bool {
        if let Ok(address) = host.parse::<IpAddr>() {
            return self.addresses.contains(&address);
        }
        let parent = host.split_once('.').map(|(_, parent)| parent);
        self.dns
            .iter()
            .chain(&self.sip)
            .any(|name| name == host || name.strip_prefix("*.").is_some_and(|suffix| Some(suffix) == parent))
    }

    /// The SIP domains that the certificate is for (RFC 5922 §7.1): the hosts of its SIP URIs, or, without any, its
    /// DNS names.
    pub(super) fn domains(&self) -> &[String] {
        if self.sip.is_empty() { &self.dns } else { &self.sip }
    }
}

/// The host of a `sip:` or `sips:` URI without a user.
fn sip_host(uri: &str) -> Option<String> {
    let uri = Uri::parse(uri).ok()?;
    let is_domain = matches!(uri.scheme(), Scheme::Sip | Scheme::Sips) && uri.user().is_none();
    uri.host().filter(|_| is_domain).map(|host| host.to_string().to_ascii_lowercase())
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}
