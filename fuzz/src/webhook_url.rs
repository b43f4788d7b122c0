//! URLs of webhooks and call-info callbacks, and the addresses that they name.
#![allow(clippy::panic, clippy::unwrap_used, reason = "to panic is what a target is for")]

use std::net::IpAddr;

use sidetone_model::public_address::is_public;
use url::{Host, Url};

use crate::outbound_http::{OutboundHttp, Policy, URL_LEN_MAX};

/// An accepted URL is https on a public host and an allowed port, without credentials. Parsed again it is the same URL,
/// and it contains no character that URL parsers drop silently.
pub fn webhook_url(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let policy = Policy::new(&OutboundHttp::default(), Vec::new());
    let Ok(url) = policy.check_url(&text) else { return };
    assert!(text.chars().count() <= URL_LEN_MAX);
    assert_eq!(url.scheme(), "https");
    assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none(), "{url}");
    assert!([443, 8443].contains(&url.port_or_known_default().unwrap()), "{url}");
    assert!(!text.contains(|c: char| c.is_control() || c.is_whitespace()));
    match url.host().unwrap() {
        Host::Ipv4(address) => assert!(is_public(IpAddr::V4(address)), "{url}"),
        Host::Ipv6(address) => assert!(is_public(IpAddr::V6(address)), "{url}"),
        Host::Domain(name) => {
            let plain = name.trim_end_matches('.').to_ascii_lowercase();
            assert!(
                plain.contains('.') && !plain.ends_with(".localhost") && plain.parse::<IpAddr>().is_err(),
                "{url}"
            );
        }
    }
    let again = Url::parse(url.as_str()).unwrap();
    assert_eq!(again, url, "it is read as another URL the second time");
    if url.as_str().chars().count() <= URL_LEN_MAX {
        assert!(policy.check_url(url.as_str()).is_ok(), "{url} was allowed and is not");
    }
    // A configuration that allows one private network allows no other address.
    let open =
        OutboundHttp { allow_addresses: vec!["192.0.2.0/24".parse().unwrap()], ..OutboundHttp::default() };
    if let Ok(url) = Policy::new(&open, Vec::new()).check_url(&text)
        && let Some(Host::Ipv4(address)) = url.host()
    {
        assert!(is_public(IpAddr::V4(address)) || address.octets()[..3] == [192, 0, 2], "{url}");
    }
}
