//! The servers of a trunk: the destinations of requests, and the sources of calls.

use std::net::IpAddr;

use sidetone_model::directory::Trunk;
use sidetone_model::trunk_address::TrunkAddress;
use sidetone_sip::message::{Host, Uri};

/// Returns the servers that requests of a trunk are sent to, in the order to try: its proxy, or else its address and
/// the further ones.
pub(super) fn next_hops(trunk: &Trunk) -> Vec<TrunkAddress> {
    if trunk.address.is_none() {
        return Vec::new();
    }
    match &trunk.interop.outbound_proxy {
        Some(proxy) => proxy.parse().into_iter().collect(),
        None => {
            let texts = trunk.address.iter().chain(&trunk.interop.backup_addresses);
            texts.filter_map(|text| text.parse().ok()).collect()
        }
    }
}

/// Returns every server of a trunk; calls come from any of them.
pub(super) fn all_servers(trunk: &Trunk) -> impl Iterator<Item = TrunkAddress> {
    let texts = trunk.address.as_deref().into_iter().chain(trunk.interop.other_servers());
    texts.filter_map(|text| text.parse().ok())
}

/// Returns the server in the Request-URI of a request that is sent to `hop`: with a proxy, the trunk's address.
pub(super) fn named_server(trunk: &Trunk, hop: &TrunkAddress) -> Option<TrunkAddress> {
    match &trunk.interop.outbound_proxy {
        Some(_) => trunk.address.as_deref()?.parse().ok(),
        None => Some(hop.clone()),
    }
}

/// Returns the Route of requests to a trunk with a proxy (RFC 3261 §8.1.2).
pub(super) fn proxy_route(trunk: &Trunk) -> Option<String> {
    let proxy: TrunkAddress = trunk.interop.outbound_proxy.as_deref()?.parse().ok()?;
    Some(format!("<{}>", server_uri(&proxy)?.with_param("lr", None)))
}

/// Returns the URI of the domain that our account at a trunk belongs to: the configured one, or else `server`.
pub(super) fn account_domain(trunk: &Trunk, server: Uri) -> Uri {
    match Host::parse(&trunk.interop.from_domain) {
        Ok(host) if !trunk.interop.from_domain.is_empty() => Uri::sip(host, None),
        _ => server,
    }
}

/// Returns the server of a trunk as a URI without a user.
pub(super) fn server_uri(server: &TrunkAddress) -> Option<Uri> {
    let host = match server.ip() {
        Some(IpAddr::V6(ip)) => Host::V6(ip),
        Some(IpAddr::V4(ip)) => Host::V4(ip),
        None => Host::parse(&server.host).ok()?,
    };
    Some(Uri::sip(host, server.port))
}
