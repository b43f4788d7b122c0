//! The source address and the dialled number of a call determine its tenant, not the claims in its
//! headers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_model::directory::{DirectorySnapshot, Network, Trunk};
use sidetone_model::ids::OrganisationId;
use sidetone_sip::auth::Authenticator;
use sidetone_sip::flow::canonical;
use sidetone_sip::message::{Datagram, Message, Request, parse_datagram};

use crate::authentication::{Gate, Registered, Sender};
use crate::routing::{Directory, Origin, Target, route};
use crate::tests::ladder::any_instant;
use crate::tests::network::{extension, number, organisation, trunk};

const TENANTS: u128 = 4;

/// Four tenants with one number each, and trunks of single tenants and shared ones, whose networks overlap at
/// random.
fn directory(rng: &mut StdRng) -> DirectorySnapshot {
    let domain = |n| format!("tenant{n}.test");
    let trunks = (0..rng.random_range(1..8_u16)).map(|n| {
        let networks = (0..rng.random_range(1..3)).map(|_| some_network(rng)).collect();
        let owner = rng.random_range(0..=TENANTS);
        Trunk {
            organisation_id: (owner > 0).then(|| organisation(owner, "").id),
            accept_from: networks,
            ..trunk(n, "203.0.113.1:5060")
        }
    });
    let trunks = trunks.collect();
    DirectorySnapshot {
        revision: 1,
        organisations: (1..=TENANTS).map(|n| organisation(n, &domain(n))).collect(),
        extensions: (1..=TENANTS).map(|n| extension(10 + n, n, &domain(n), "1001")).collect(),
        numbers: (1..=TENANTS).map(|n| number(20 + n, n, &format!("+44207123000{n}"), 10 + n)).collect(),
        rooms: Vec::new(),
        trunks,
    }
}

/// Only a few addresses, 192.0.2.0 to 192.0.2.15, so that networks overlap.
fn some_address(rng: &mut StdRng) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, rng.random_range(0..16))
}

fn some_network(rng: &mut StdRng) -> Network {
    let prefix_len = rng.random_range(27..=32);
    let mask = u32::MAX << (32 - u32::from(prefix_len));
    let address = Ipv4Addr::from_bits(some_address(rng).to_bits() & mask);
    Network { address: IpAddr::V4(address), prefix_len }
}

/// An INVITE whose headers make false claims.
fn invite(rng: &mut StdRng, dialled: &str) -> Request {
    let (via, contact, forwarded) = (some_address(rng), some_address(rng), some_address(rng));
    let claimed = rng.random_range(1..=TENANTS);
    let transport = ["UDP", "TCP", "TLS"][rng.random_range(0..3)];
    let text = format!(
        "INVITE sip:{dialled}@tenant{claimed}.test;transport={transport} SIP/2.0\r\n\
         Via: SIP/2.0/{transport} {via};branch=z9hG4bK1;received={forwarded}\r\nMax-Forwards: 70\r\n\
         From: <sip:+447700900123@tenant{claimed}.test>;tag=1\r\nTo: <sip:{dialled}@tenant{claimed}.test>\r\n\
         Call-ID: 1\r\nCSeq: 1 INVITE\r\nContact: <sip:x@{contact}>\r\nX-Forwarded-For: {forwarded}\r\n\
         Forwarded: for={forwarded}\r\nP-Asserted-Identity: <sip:1001@tenant{claimed}.test>\r\n\
         Record-Route: <sip:{contact};lr>\r\n\r\n"
    );
    match parse_datagram(text.into_bytes().into()) {
        Ok(Datagram::Message(Message::Request(request))) => request,
        other => panic!("{other:?}"),
    }
}

/// The model, which checks every trunk: the owner of the number, if a trunk that covers the address belongs
/// to that owner or is shared.
fn whose(snapshot: &DirectorySnapshot, source: Ipv4Addr, dialled: &str) -> Result<OrganisationId, bool> {
    let covers = |network: &Network| match network.address {
        IpAddr::V4(first) => {
            let size = 1_u64 << (32 - u32::from(network.prefix_len));
            (u64::from(first.to_bits())..u64::from(first.to_bits()) + size).contains(&source.to_bits().into())
        }
        IpAddr::V6(_) => false,
    };
    let covering: Vec<&Trunk> =
        snapshot.trunks.iter().filter(|trunk| trunk.accept_from.iter().any(covers)).collect();
    let owner = snapshot.numbers.iter().find(|number| number.number == dialled).map(|n| n.organisation_id);
    owner
        .filter(|owner| covering.iter().any(|trunk| trunk.organisation_id.is_none_or(|own| own == *owner)))
        .ok_or(!covering.is_empty())
}

/// S7: of a hundred thousand calls none is assigned to another tenant.
#[test]
fn s7_a_call_is_its_tenants_whatever_it_claims() {
    let mut rng = StdRng::seed_from_u64(7);
    let now = any_instant();
    let (mut routed, mut refused, mut strangers) = (0, 0, 0);
    for _ in 0..1_000 {
        let snapshot = directory(&mut rng);
        let directory = Directory::new(snapshot.clone());
        let mut gate = Gate::new(Authenticator::new([7; 32], now));
        for _ in 0..100 {
            let source = some_address(&mut rng);
            let dialled = format!("+44207123000{}", rng.random_range(1..=TENANTS + 1));
            let request = invite(&mut rng, &dialled);
            // An IPv6 socket shows an IPv4 peer as a mapped address.
            let mapped = SocketAddr::new(IpAddr::V6(source.to_ipv6_mapped()), 5060);
            let seen = if rng.random() { IpAddr::V4(source) } else { canonical(mapped).ip() };
            let none = Registered { trunk: &|_| false, line: &|_| false };
            let sender = gate.caller(now, &directory, &request, &dialled, seen, none);
            let expected = whose(&snapshot, source, &dialled);
            match sender {
                Sender::Trunk(id) => {
                    let trunk = directory.trunk(id).unwrap();
                    match route(&directory, Origin::Trunk(trunk), &dialled) {
                        Ok(route) => {
                            let Target::Extension(extension) = route.target else { panic!("out again") };
                            assert_eq!(Ok(route.organisation_id), expected);
                            assert_eq!(extension.organisation_id, route.organisation_id);
                            routed += 1;
                        }
                        Err(_) => {
                            assert_eq!(expected, Err(true));
                            refused += 1;
                        }
                    }
                }
                Sender::Challenge(..) => {
                    assert_eq!(expected, Err(false));
                    strangers += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(routed + refused + strangers, 100_000);
    assert!(routed > 10_000 && refused > 10_000 && strangers > 5_000, "{routed} {refused} {strangers}");
}
