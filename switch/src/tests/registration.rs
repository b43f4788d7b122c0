//! Registrations with trunks, from the trunks' view.

use std::sync::Arc;
use std::time::Duration;

use sidetone_model::directory::{DirectorySnapshot, Secret, Trunk};
use sidetone_model::ids::NodeId;
use sidetone_model::rendezvous;
use sidetone_sip::message::{Digest, Method};
use uuid::Uuid;

use crate::carriers::CarrierFault;
use crate::machine::{Input, Notice};
use crate::queries::ShareTrunks;
use crate::routing::Directory;
use crate::tests::network::{Net, Plan, acme, address, challenge, number, organisation, trunk};
use crate::trunk_dns::{Answer, Server};
use crate::trunk_homes::TrunkHomes;

const CARRIER: &str = "203.0.113.1:5060";

fn registering() -> Trunk {
    Trunk { username: "acme".into(), password: Secret("hush".into()), register: true, ..trunk(1, CARRIER) }
}

/// A switch whose carrier answers REGISTERs by these plans from the beginning.
fn net(directory: DirectorySnapshot, registers: impl IntoIterator<Item = Plan>) -> Net {
    let mut net = Net::new(DirectorySnapshot { trunks: Vec::new(), ..directory.clone() });
    net.carrier(CARRIER, [Plan::Accept]).registers = registers.into_iter().collect();
    net.feed(Input::Directory(Arc::new(Directory::new(directory))));
    net.run();
    net
}

fn registers(net: &Net) -> Vec<(String, u32)> {
    let carrier = &net.carriers[&address(CARRIER)];
    let expires = |request: &&sidetone_sip::message::Request| request.header("Expires").unwrap().to_owned();
    carrier.of(&Method::Register).iter().map(|r| (expires(r), r.cseq().unwrap().number)).collect()
}

#[test]
fn it_is_made_with_credentials_kept_up_and_taken_back() {
    let asks = challenge(401, "carrier", "n1", ", qop=\"auth\", algorithm=SHA-256");
    let mut net = net(acme(vec![registering()]), [asks, Plan::Accept]);
    assert_eq!(net.notices, [Notice::Registered(registering().id)]);
    let first = net.carriers[&address(CARRIER)].of(&Method::Register)[0].clone();
    assert_eq!(first.uri(), "sip:203.0.113.1:5060");
    assert_eq!(first.from().unwrap().uri.to_string(), "sip:acme@203.0.113.1:5060");
    assert_eq!(first.header("Contact"), Some("<sip:acme@198.51.100.1:5060>"));

    net.wait(Duration::from_secs(3_600));
    net.feed(Input::LeaveTrunks);
    net.run();
    let said = registers(&net);
    let numbers: Vec<u32> = said.iter().map(|(_, cseq)| *cseq).collect();
    assert_eq!(numbers, (1..=said.len() as u32).collect::<Vec<_>>());
    let expires: Vec<&str> = said.iter().map(|(expires, _)| expires.as_str()).collect();
    assert_eq!(expires, ["3600", "3600", "3600", "0"]);
    assert_eq!(net.switch.registrations(), 0);
    let all = net.carriers[&address(CARRIER)].of(&Method::Register);
    assert!(all.iter().all(|request| request.call_id() == first.call_id()));
    let last = Digest::parse(all.last().unwrap().header("Authorization").unwrap()).unwrap();
    assert_eq!(last.inner("nc"), Some("00000003"), "the nonce serves on");
}

#[test]
fn a_refusal_is_told_once_and_tried_again_later() {
    let mut net = net(acme(vec![registering()]), [Plan::Refuse(403, Vec::new())]);
    net.wait(Duration::from_secs(600));
    assert_eq!(net.notices, [Notice::Unregistered(registering().id, Some(403))]);
    let tries = registers(&net).len();
    assert!((5..=8).contains(&tries), "{tries} in ten minutes");
    net.carriers.get_mut(&address(CARRIER)).unwrap().registers = [Plan::Accept].into();
    net.wait(Duration::from_secs(1_800));
    assert_eq!(net.notices[1..], [Notice::Registered(registering().id)]);
}

#[test]
fn new_credentials_are_used_at_once_and_a_trunk_that_is_gone_is_left() {
    let mut net = net(acme(vec![registering()]), [Plan::Accept]);
    let moved = Trunk { username: "other".into(), ..registering() };
    net.feed(Input::Directory(Arc::new(Directory::new(acme(vec![moved])))));
    net.run();
    net.feed(Input::Directory(Arc::new(Directory::new(acme(Vec::new())))));
    net.run();
    let carrier = &net.carriers[&address(CARRIER)];
    let said: Vec<_> = carrier
        .of(&Method::Register)
        .iter()
        .map(|r| {
            format!("{} {}", r.from().unwrap().uri.user_decoded().unwrap(), r.header("Expires").unwrap())
        })
        .collect();
    assert_eq!(said, ["acme 3600", "acme 0", "other 3600", "other 0"]);
    assert_eq!(net.switch.registrations(), 0);
}

/// Calls are accepted from the registrar's address and from no other.
#[test]
fn calls_from_the_registrar_are_the_trunks() {
    let mut net = net(acme(vec![registering()]), [Plan::Accept]);
    for (source, expected) in [(CARRIER, 1), ("203.0.113.9:5060", 0)] {
        let before = net.records.len();
        let text = format!(
            "INVITE sip:+442071230000@198.51.100.1 SIP/2.0\r\nVia: SIP/2.0/UDP {source};branch=z9hG4bK{source}\r\n\
             Max-Forwards: 70\r\nFrom: <sip:+447700900123@carrier>;tag=1\r\nTo: <sip:acme@carrier>\r\n\
             Call-ID: {source}\r\nCSeq: 1 INVITE\r\nContact: <sip:{source}>\r\nContent-Length: 0\r\n\r\n"
        );
        net.inject(source, text);
        // 1001 is not registered: an identified call still leaves a record.
        let new = &net.records[before..];
        assert_eq!(new.len(), expected, "{source}");
        assert!(new.iter().all(|record| record.trunk_id == Some(registering().id)));
    }
}

/// A registrar calls the account: the number is in To, or the organisation has only one.
#[test]
fn calls_to_our_account_are_for_the_number_behind_it() {
    let own = Trunk { organisation_id: Some(organisation(1, "").id), ..registering() };
    let mut several = acme(vec![own.clone()]);
    several.numbers.push(number(32, 1, "+442071230001", 11));
    let cases = [
        (acme(vec![own.clone()]), "acme", Some("+442071230000")),
        (several.clone(), "442071230001", Some("+442071230001")),
        (several, "acme", Some("acme")),
        (acme(vec![registering()]), "acme", None),
    ];
    for (directory, to, expected) in cases {
        let mut net = net(directory, [Plan::Accept]);
        net.inject(
            CARRIER,
            format!(
                "INVITE sip:acme@198.51.100.1 SIP/2.0\r\nVia: SIP/2.0/UDP {CARRIER};branch=z9hG4bK1\r\n\
                 Max-Forwards: 70\r\nFrom: <sip:+447700900123@carrier>;tag=1\r\nTo: <sip:{to}@carrier>\r\n\
                 Call-ID: 1\r\nCSeq: 1 INVITE\r\nContact: <sip:{CARRIER}>\r\nContent-Length: 0\r\n\r\n"
            ),
        );
        let reached = net.records.first().and_then(|record| record.destination_number.clone());
        assert_eq!(reached.as_deref(), expected, "{to}");
    }
}

/// The owner of a name can change its addresses: each resolved address is checked.
#[test]
fn a_tenants_name_that_leads_inside_gets_no_register() {
    let own = organisation(1, "").id;
    let named = Trunk {
        organisation_id: Some(own),
        address: Some("sip:carrier.example:5060".into()),
        ..registering()
    };
    let shared = Trunk { organisation_id: None, ..named.clone() };
    for (trunk, inside, expected) in
        [(&named, "127.0.0.1:5060", 0), (&shared, "127.0.0.1:5060", 1), (&named, "203.0.113.1:5060", 1)]
    {
        let mut net = net(acme(vec![trunk.clone()]), [Plan::Accept]);
        net.carrier(inside, [Plan::Accept]).registers = [Plan::Accept].into();
        let name = net.questions.pop().unwrap();
        let servers = vec![Server { priority: 0, weight: 0, addresses: vec![address(inside)] }];
        let answer = Answer { servers, ttl: Duration::from_secs(60), transport: None };
        net.feed(Input::Resolved(name, answer));
        net.run();
        let sent = net.carriers[&address(inside)].of(&Method::Register).len();
        assert_eq!(sent, expected, "{inside} {:?}", trunk.organisation_id);
        let is_told = net
            .notices
            .iter()
            .any(|notice| matches!(notice, Notice::Carrier(id, _, CarrierFault::Inside) if *id == trunk.id));
        assert_eq!(is_told, expected == 0);
    }
}

/// A carrier that identifies us by our address would treat the calls of both tenants as those of one account.
#[test]
fn two_tenants_at_one_carrier_address_are_one_too_many() {
    let first = Trunk {
        organisation_id: Some(organisation(2, "").id),
        address: Some(format!("sip:{CARRIER}")),
        ..registering()
    };
    let second = Trunk {
        organisation_id: Some(organisation(1, "").id),
        address: Some("sip:alias.example".into()),
        ..trunk(2, CARRIER)
    };
    let mut net = Net::new(acme(vec![first, second.clone()]));
    net.carrier(CARRIER, [Plan::Accept]);
    net.register();
    net.dial("+447700900123");
    let name = net.questions.pop().unwrap();
    let servers = vec![Server { priority: 0, weight: 0, addresses: vec![address(CARRIER)] }];
    net.feed(Input::Resolved(name, Answer { servers, ttl: Duration::from_secs(60), transport: None }));
    net.run();
    assert_eq!(net.carriers[&address(CARRIER)].of(&Method::Invite).len(), 0, "{:?}", net.heard);
    let taken = Notice::Carrier(second.id, address(CARRIER).ip(), CarrierFault::Taken);
    assert!(net.notices.contains(&taken), "{:?}", net.notices);
}

#[test]
fn a_trunk_has_one_registration_in_a_cluster_that_follows_its_home() {
    let node = |number: u128| NodeId(Uuid::from_u128(number));
    // The home of the trunk is the other one of two nodes.
    let home = rendezvous::home([node(1), node(2)].into_iter(), registering().id.0).unwrap();
    let this = if home == node(1) { node(2) } else { node(1) };
    let members = |up: &[NodeId]| ShareTrunks(TrunkHomes::Members { node: this, up: up.to_vec() });
    let mut net = net(acme(vec![registering()]), [Plan::Accept]);
    net.ask(members(&[this]));
    net.run();
    assert_eq!(registers(&net).len(), 1, "it is the only one: the registration stays");
    // The other node registers; afterwards this one removes its own registration.
    net.ask(members(&[this, home]));
    net.run();
    net.wait(Duration::from_millis(1_500));
    assert_eq!(registers(&net).len(), 1);
    net.wait(Duration::from_secs(1));
    assert_eq!(registers(&net).last().unwrap().0, "0");
    assert_eq!(net.switch.registrations(), 0);
    net.wait(Duration::from_secs(7_200));
    assert_eq!(registers(&net).len(), 2, "nothing is sent where another node registers");
    // The home fails, is up again for a short time, and fails again.
    for up in [&[this][..], &[this, home], &[this]] {
        net.ask(members(up));
        net.run();
    }
    net.wait(Duration::from_secs(10));
    assert_eq!(registers(&net).len(), 3);
    assert_eq!(net.switch.registrations(), 1);
    // A draining node is the home of no trunk.
    net.ask(members(&[home]));
    net.run();
    net.wait(Duration::from_secs(3));
    assert_eq!(registers(&net).last().unwrap().0, "0");
}
