//! Trunks as the API manages them.

use std::net::IpAddr;

use serde::Serialize;

use crate::access::Scope;
use crate::directory::{Network, Secret, Srtp, StrictSource, Video};
use crate::ids::{OrganisationId, TrunkId};
use crate::listing::Listing;
use crate::page::Page;
use crate::port_future::PortFuture;
use crate::problem::FieldProblem;
use crate::public_address::{is_documentation, is_public};
use crate::time::Timestamp;
use crate::trunk_address::TrunkAddress;
use crate::trunk_interop::{InboundNumbers, OutboundNumbers, TrunkInterop, TrunkInteropChange};

/// A stored trunk, without its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrunkRecord {
    /// Primary key.
    pub id: TrunkId,
    /// The only organisation that uses it; `None` when shared by all.
    pub organisation_id: Option<OrganisationId>,
    /// Unique name.
    pub name: String,
    /// The address to which calls are sent; `None` means that it takes no calls.
    pub address: Option<String>,
    /// Networks that its calls come from, canonical.
    pub accept_from: Vec<Network>,
    /// Trunks with a lower priority are tried first.
    pub priority: u16,
    /// Our user name at the carrier; may be empty.
    pub username: String,
    /// Whether there is a password for `username`.
    pub has_password: bool,
    /// The only realm that gets the switch's credentials; may be empty.
    pub realm: String,
    /// Whether the switch registers at the carrier.
    pub register: bool,
    /// Numbers that go out exactly as dialled.
    pub short_numbers: Vec<String>,
    /// Which source address its media must have; `None` means the node's setting.
    pub strict_source: Option<StrictSource>,
    /// Whether its media is encrypted.
    pub srtp: Srtp,
    /// Whether it has video.
    pub video: Video,
    /// The longest duration of an answered call over it in seconds; `None` sets no limit.
    pub max_call_seconds: Option<u32>,
    /// How its carrier differs from others.
    pub interop: TrunkInterop,
    /// When it was made.
    pub created_at: Timestamp,
    /// The last change.
    pub updated_at: Timestamp,
}

impl TrunkRecord {
    /// The trunk as clients see it.
    pub fn view(&self) -> TrunkView<'_> {
        TrunkView {
            id: self.id,
            organisation_id: self.organisation_id,
            name: &self.name,
            address: self.address.as_deref().unwrap_or_default(),
            accept_from: self.accept_from.iter().map(Network::to_string).collect(),
            priority: self.priority,
            username: &self.username,
            has_password: self.has_password,
            realm: &self.realm,
            register: self.register,
            short_numbers: &self.short_numbers,
            strict_source: self.strict_source,
            srtp: self.srtp,
            video: self.video,
            max_call_seconds: self.max_call_seconds,
            backup_addresses: &self.interop.backup_addresses,
            outbound_proxy: self.interop.outbound_proxy.as_deref().unwrap_or_default(),
            from_domain: &self.interop.from_domain,
            country_code: &self.interop.country_code,
            national_prefix: &self.interop.national_prefix,
            inbound_numbers: self.interop.inbound_numbers,
            outbound_numbers: self.interop.outbound_numbers,
            codecs: &self.interop.codecs,
            headers: &self.interop.headers,
            progress_seconds: self.interop.progress_seconds,
            qualify_seconds: self.interop.qualify_seconds,
            transfers: self.interop.transfers,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

/// A trunk as callers see it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Trunk))]
pub struct TrunkView<'a> {
    /// The trunk.
    id: TrunkId,
    /// The organisation that uses it; null for a shared trunk.
    #[cfg_attr(feature = "openapi", schema(required))]
    organisation_id: Option<OrganisationId>,
    /// Unique name.
    name: &'a str,
    /// Where outbound calls are sent, such as `sip:carrier.example:5060`; empty for inbound only.
    address: &'a str,
    /// The networks that its inbound calls come from.
    accept_from: Vec<String>,
    /// Trunks with a lower priority are tried first.
    priority: u16,
    /// Our user name at the carrier; may be empty.
    username: &'a str,
    /// Whether there is a password for `username`; the password itself is never shown.
    has_password: bool,
    /// The only realm that gets our credentials; when empty, the realm in the challenge of the trunk's own address.
    realm: &'a str,
    /// Whether the switch registers at the carrier.
    register: bool,
    /// Numbers that are sent exactly as dialled, such as `112`.
    short_numbers: &'a [String],
    /// Which source addresses of media are accepted; null uses the node's setting.
    #[cfg_attr(feature = "openapi", schema(required, inline))]
    strict_source: Option<StrictSource>,
    /// Whether media is encrypted by SRTP: never (`off`), when the carrier has it too (`optional`), or always
    /// (`required`).
    #[cfg_attr(feature = "openapi", schema(inline))]
    srtp: Srtp,
    /// Whether video is relayed unchanged between the carrier and an extension that has it too (`pass`), or refused in its
    /// place (`off`).
    #[cfg_attr(feature = "openapi", schema(inline))]
    video: Video,
    /// The longest duration of an answered call over the trunk, in seconds; null uses the limit of the organisation
    /// or the node.
    #[cfg_attr(feature = "openapi", schema(required))]
    max_call_seconds: Option<u32>,
    /// Further servers of the carrier, tried in order after `address`.
    backup_addresses: &'a [String],
    /// The server that every request is sent to; empty for the address itself.
    outbound_proxy: &'a str,
    /// The domain in From and P-Asserted-Identity; empty for the host of the address.
    from_domain: &'a str,
    /// The country whose national numbers the carrier writes, such as `44`; empty if it writes none.
    country_code: &'a str,
    /// The prefix of a national number that is not part of it, such as `0`.
    national_prefix: &'a str,
    /// How digits without `+` and `00` are read.
    #[cfg_attr(feature = "openapi", schema(inline))]
    inbound_numbers: InboundNumbers,
    /// How numbers are written to the carrier.
    #[cfg_attr(feature = "openapi", schema(inline))]
    outbound_numbers: OutboundNumbers,
    /// The codecs of its calls, in order of preference; empty for every codec.
    codecs: &'a [String],
    /// Further headers of INVITEs to the carrier.
    headers: &'a [String],
    /// Seconds after which a call that the carrier only answered with 100 goes on to the next server or trunk.
    progress_seconds: u32,
    /// The interval of OPTIONS to each address of the carrier, in seconds; 0 sends none.
    qualify_seconds: u32,
    /// Whether the carrier may transfer an extension that it talks to, by REFER to a number that the extension can dial,
    /// at the cost of the organisation.
    transfers: bool,
    /// When it was made.
    created_at: Timestamp,
    /// The last change.
    updated_at: Timestamp,
}

/// A trunk to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTrunk {
    /// See [`TrunkRecord`].
    pub organisation_id: Option<OrganisationId>,
    /// See [`TrunkRecord`].
    pub name: String,
    /// See [`TrunkRecord`].
    pub address: Option<String>,
    /// See [`TrunkRecord`].
    pub accept_from: Vec<Network>,
    /// See [`TrunkRecord`].
    pub priority: u16,
    /// See [`TrunkRecord`].
    pub username: String,
    /// The password of `username`; empty answers no challenge.
    pub password: Secret,
    /// See [`TrunkRecord`].
    pub realm: String,
    /// See [`TrunkRecord`].
    pub register: bool,
    /// See [`TrunkRecord`].
    pub short_numbers: Vec<String>,
    /// See [`TrunkRecord`].
    pub strict_source: Option<StrictSource>,
    /// See [`TrunkRecord`].
    pub srtp: Srtp,
    /// See [`TrunkRecord`].
    pub video: Video,
    /// See [`TrunkRecord`].
    pub max_call_seconds: Option<u32>,
    /// See [`TrunkRecord`].
    pub interop: TrunkInterop,
}

/// The changes of a trunk; `None` keeps the stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrunkChange {
    /// Another organisation, or all of them.
    pub organisation_id: Option<Option<OrganisationId>>,
    /// The new name.
    pub name: Option<String>,
    /// Another address, or none.
    pub address: Option<Option<String>>,
    /// Other networks.
    pub accept_from: Option<Vec<Network>>,
    /// Another priority.
    pub priority: Option<u16>,
    /// Another username.
    pub username: Option<String>,
    /// Another password; empty means none.
    pub password: Option<Secret>,
    /// Another realm, or any.
    pub realm: Option<String>,
    /// Whether the switch registers at the carrier.
    pub register: Option<bool>,
    /// Other numbers that are sent as dialled.
    pub short_numbers: Option<Vec<String>>,
    /// Another source of media, or the node's setting.
    pub strict_source: Option<Option<StrictSource>>,
    /// Whether media is encrypted from now on.
    pub srtp: Option<Srtp>,
    /// Whether it has video from now on.
    pub video: Option<Video>,
    /// Another limit, or none of its own.
    pub max_call_seconds: Option<Option<u32>>,
    /// Changes of how its carrier differs from others.
    pub interop: TrunkInteropChange,
}

/// Checks the combination of a trunk's settings.
pub fn require_possible(register: bool, address: Option<&str>, username: &str) -> Result<(), FieldProblem> {
    if register && (address.is_none() || username.is_empty()) {
        return Err(FieldProblem {
            field: "register".to_owned(),
            message: "needs an address and a username to register with".to_owned(),
        });
    }
    Ok(())
}

/// Returns the problems of settings that only an operator may make: server addresses that are not public, by the
/// names of their fields, and networks of `accept_from` that are not public or too large.
pub fn beyond_tenants<'a>(
    addresses: impl IntoIterator<Item = (String, &'a str)>,
    accept_from: &[Network],
) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    for (field, address) in addresses {
        let ip = address.parse::<TrunkAddress>().ok().and_then(|address| address.ip());
        if ip.is_some_and(|ip| !may_be_a_peer(ip)) {
            let message = "must be on a public address; only an operator names another".to_owned();
            problems.push(FieldProblem { field, message });
        }
    }
    for (index, network) in accept_from.iter().enumerate() {
        let least = if network.address.is_ipv4() { TENANT_PREFIX_V4_MIN } else { TENANT_PREFIX_V6_MIN };
        if network.prefix_len < least || !may_be_a_peer(network.address) {
            problems.push(FieldProblem {
                field: format!("accept_from[{index}]"),
                message: format!(
                    "must be public and of {least} bits or more; only an operator names another"
                ),
            });
        }
    }
    problems
}

/// Returns the settings of a trunk that an organisation may not make, by [`beyond_tenants`]; settings that
/// `before` already has are allowed.
pub fn beyond_owner(
    before: Option<&TrunkRecord>,
    address: Option<&str>,
    interop: &TrunkInterop,
    accept_from: &[Network],
) -> Vec<FieldProblem> {
    let known = before.map(|before| servers(before.address.as_deref(), &before.interop)).unwrap_or_default();
    let new = servers(address, interop);
    let new = new.into_iter().filter(|(_, server)| !known.iter().any(|(_, known)| known == server));
    let is_kept = before.is_some_and(|before| before.accept_from == accept_from);
    beyond_tenants(new, if is_kept { &[] } else { accept_from })
}

/// The servers of a trunk, each with the name of its field.
fn servers<'a>(address: Option<&'a str>, interop: &'a TrunkInterop) -> Vec<(String, &'a str)> {
    let address = address.map(|address| ("address".to_owned(), address));
    let backup = interop.backup_addresses.iter().enumerate();
    let backup = backup.map(|(at, address)| (format!("backup_addresses[{at}]"), address.as_str()));
    let proxy = interop.outbound_proxy.iter().map(|proxy| ("outbound_proxy".to_owned(), proxy.as_str()));
    address.into_iter().chain(backup).chain(proxy).collect()
}

/// The claims of a trunk for its organisation: its carrier's names or public addresses, and the networks from
/// which calls come. A carrier that identifies the switch by its address treats the calls of all trunks to it
/// as calls of one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// The names, or the private addresses with their ports.
    hosts: Vec<(String, Option<u16>)>,
    /// The public addresses of the carrier.
    carriers: Vec<Network>,
    networks: Vec<Network>,
}

impl Claims {
    /// Returns the claims of a trunk with this address, its other servers and these networks.
    pub fn of(address: Option<&str>, interop: &TrunkInterop, accept_from: &[Network]) -> Self {
        let mut claims = Claims { hosts: Vec::new(), carriers: Vec::new(), networks: accept_from.to_vec() };
        for server in address.into_iter().chain(interop.other_servers()) {
            let Ok(server) = server.parse::<TrunkAddress>() else { continue };
            match server.ip().map(|ip| ip.to_canonical()) {
                Some(ip) if may_be_a_peer(ip) => {
                    let prefix_len = if ip.is_ipv4() { 32 } else { 128 };
                    claims.carriers.push(Network { address: ip, prefix_len });
                }
                Some(ip) => claims.hosts.push((ip.to_string(), Some(server.port.unwrap_or(SIP_PORT)))),
                None => claims.hosts.push((server.host, None)),
            }
        }
        claims
    }

    /// Returns the field of this trunk whose claim conflicts with `other`; `address` stands for every server.
    pub fn clash(&self, other: &Claims) -> Option<&'static str> {
        let meet = |a: &Network, b: &Network| a.contains(b.address) || b.contains(a.address);
        let others = || other.networks.iter().chain(&other.carriers);
        let same_host = self.hosts.iter().any(|host| other.hosts.contains(host));
        if same_host || self.carriers.iter().any(|own| others().any(|network| meet(own, network))) {
            return Some("address");
        }
        self.networks.iter().any(|own| others().any(|network| meet(own, network))).then_some("accept_from")
    }
}

/// Whether an address may be a carrier's: public, or reserved for documentation, because such an address
/// belongs to no host.
pub fn may_be_a_peer(address: IpAddr) -> bool {
    is_public(address) || is_documentation(address)
}

/// The stored trunks.
pub trait Trunks: Send + Sync {
    /// The trunks inside `scope`, by name unless `listing` sets another sort; shared ones belong to the
    /// operator.
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<TrunkRecord>>;

    /// One trunk, of any organisation.
    fn find(&self, trunk: TrunkId) -> PortFuture<'_, Option<TrunkRecord>>;

    /// Creates a trunk inside `scope`. A conflict if another one has the name, or if calls of another
    /// organisation come from one of its networks.
    fn create(&self, scope: Scope, new: NewTrunk, now: Timestamp) -> PortFuture<'_, TrunkRecord>;

    /// Changes a trunk inside `scope`; the changed trunk must be inside as well.
    fn change(
        &self,
        scope: Scope,
        trunk: TrunkId,
        change: TrunkChange,
        now: Timestamp,
    ) -> PortFuture<'_, TrunkRecord>;

    /// Removes a trunk inside `scope`. A conflict while there are rates for it.
    fn delete(&self, scope: Scope, trunk: TrunkId) -> PortFuture<'_, ()>;
}

/// The default port of an address (RFC 3261 §19.1.2).
const SIP_PORT: u16 = 5060;
/// The shortest prefix of an IPv4 block that an organisation may set as a source of its calls.
const TENANT_PREFIX_V4_MIN: u8 = 24;
/// The shortest prefix of an IPv6 block that an organisation may set as a source of its calls.
const TENANT_PREFIX_V6_MIN: u8 = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_trunks_claim_alike_is_found() {
        let claims = |address: &str, networks: &[&str]| {
            let networks: Vec<Network> = networks.iter().map(|network| network.parse().unwrap()).collect();
            Claims::of(
                Some(address).filter(|address| !address.is_empty()),
                &TrunkInterop::default(),
                &networks,
            )
        };
        let first = claims("sip:carrier.example", &["8.8.8.0/24"]);
        let cases = [
            ("sip:Carrier.example:5080", &[][..], Some("address")),
            ("sip:other.example", &[], None),
            ("sip:8.8.8.8:5080", &[], Some("address")),
            ("", &["8.8.0.0/16"], Some("accept_from")),
            ("", &["8.8.8.7"], Some("accept_from")),
            ("", &["8.8.9.0/24"], None),
        ];
        for (address, networks, expected) in cases {
            assert_eq!(claims(address, networks).clash(&first), expected, "{address} {networks:?}");
        }
        let inside = claims("sip:10.0.0.1", &[]);
        assert_eq!(claims("sip:10.0.0.1:5060", &[]).clash(&inside), Some("address"));
        assert_eq!(claims("sip:10.0.0.1:5070", &[]).clash(&inside), None);
        assert_eq!(claims("", &[]).clash(&claims("", &[])), None);
        let backup = vec!["sip:b.example".to_owned(), "sip:carrier.example:5070".to_owned()];
        let interop = TrunkInterop { backup_addresses: backup, ..TrunkInterop::default() };
        assert_eq!(Claims::of(Some("sip:a.example"), &interop, &[]).clash(&first), Some("address"));
        let interop = TrunkInterop { outbound_proxy: Some("sip:8.8.8.9".into()), ..TrunkInterop::default() };
        assert_eq!(first.clash(&Claims::of(Some("sip:a.example"), &interop, &[])), Some("accept_from"));
    }

    #[test]
    fn tenants_reach_the_internet_alone() {
        let fields = |address: &str, networks: &[&str]| {
            let networks: Vec<Network> = networks.iter().map(|network| network.parse().unwrap()).collect();
            let problems = beyond_tenants([("address".to_owned(), address)], &networks);
            problems.into_iter().map(|problem| problem.field).collect::<Vec<_>>()
        };
        assert!(fields("sip:carrier.example", &["203.0.114.0/24", "2a00:1450::/48"]).is_empty());
        assert_eq!(fields("sip:127.0.0.1:5060", &[]), ["address"]);
        assert_eq!(fields("sip:[fd00::1]", &["203.0.114.0/23"]), ["address", "accept_from[0]"]);
        assert_eq!(
            fields("sip:8.8.8.8", &["8.8.8.8", "10.0.0.1", "2a00::/32"]),
            ["accept_from[1]", "accept_from[2]"]
        );
    }
}
