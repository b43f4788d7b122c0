//! Calls and transfers to one device of an extension, by its GRUU (RFC 5627).

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_model::directory::DirectorySnapshot;
use sidetone_model::forwarding::Forwarding;
use sidetone_sip::auth::{Client, Realm};
use sidetone_sip::message::{Digest, Method, Name};
use sidetone_sip::ua::{Extra, Invite};

use crate::queries::TakeChangedBindings;
use crate::tests::conference_adapter::with_rooms;
use crate::tests::network::{Net, PASSWORD, Plan, address, extension};
use crate::tests::transfers::{ANN, Desk};

/// The devices of 1002.
const DESK: &str = "192.0.2.2:5060";
const MOBILE: &str = "192.0.2.3:5060";

fn directory() -> DirectorySnapshot {
    let mut directory = with_rooms();
    directory.extensions.push(extension(12, 1, "acme.test", "1002"));
    directory
}

fn net() -> Net {
    let mut net = Net::new(directory());
    net.carrier(DESK, [Plan::Accept, Plan::Accept, Plan::Accept]).options = Some(200);
    net.carrier(MOBILE, [Plan::Accept, Plan::Accept, Plan::Accept]).options = Some(200);
    net
}

/// Registers the device of 1002 at this address and returns the Contacts of the response.
pub(super) fn register(net: &mut Net, at: &str, call_id: &str, supported: &str) -> Vec<String> {
    let mut login =
        Client::new("1002", PASSWORD, Realm::Exactly("acme.test".into()), StdRng::seed_from_u64(4));
    let mut authorization = String::new();
    // Higher with each registration.
    let first = net.told.len() + 1;
    for cseq in first..=first + 1 {
        let text = format!(
            "REGISTER sip:acme.test SIP/2.0\r\nVia: SIP/2.0/UDP {at};branch=z9hG4bK{call_id}{cseq}\r\n\
             Max-Forwards: 70\r\nFrom: <sip:1002@acme.test>;tag=reg\r\nTo: <sip:1002@acme.test>\r\n\
             Call-ID: {call_id}\r\nCSeq: {cseq} REGISTER\r\nSupported: {supported}\r\n\
             Contact: <sip:1002@{at}>;+sip.instance=\"<urn:uuid:{at}>\"\r\nExpires: 600\r\n{authorization}\
             Content-Length: 0\r\n\r\n"
        );
        net.inject(at, text);
        let told = net.told.last().unwrap();
        let challenges: Vec<Digest> = told.www_authenticate().filter_map(Result::ok).collect();
        if told.status().as_u16() == 401 {
            let answer = login.answer(&challenges, false, "REGISTER", "sip:acme.test").unwrap();
            authorization = format!("Authorization: {answer}\r\n");
        }
    }
    let told = net.told.last().unwrap();
    assert_eq!(told.status().as_u16(), 200);
    told.headers().header_all(Name::Contact).map(ToString::to_string).collect()
}

/// The address in a parameter of the Contact of the device at `at`.
fn gruu(contacts: &[String], at: &str, param: &str) -> String {
    let contact = contacts.iter().find(|contact| contact.starts_with(&format!("<sip:1002@{at}>"))).unwrap();
    let (_, rest) = contact.split_once(&format!(";{param}=\"")).unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// 1001 calls this address and hangs up; returns the response and the devices of 1002 that were called.
fn call(net: &mut Net, to: &str) -> (String, Vec<&'static str>) {
    let called = |net: &Net| [DESK, MOBILE].map(|at| net.carriers[&address(at)].of(&Method::Invite).len());
    let before = called(net);
    net.heard.clear();
    net.dial_by(Invite::new(to.to_owned(), "<sip:1001@acme.test>", format!("<{to}>")));
    let after = called(net);
    let heard = net.heard.first().cloned().unwrap_or_default();
    if heard.starts_with("200") {
        net.hang_up();
    }
    net.wait(Duration::from_secs(40));
    let devices = [DESK, MOBILE].into_iter().enumerate();
    (heard, devices.filter(|(at, _)| after[*at] > before[*at]).map(|(_, device)| device).collect())
}

#[test]
fn a_gruu_calls_one_device_and_the_number_calls_all() {
    let mut net = net();
    register(&mut net, DESK, "a", "gruu");
    let contacts = register(&mut net, MOBILE, "b", "path, gruu");
    assert_eq!(gruu(&contacts, DESK, "pub-gruu"), format!("sip:1002@acme.test;gr=urn:uuid:{DESK}"));
    let (_, called) = call(&mut net, "sip:1002@acme.test");
    assert_eq!(called, [DESK, MOBILE]);
    for (device, param) in
        [(DESK, "pub-gruu"), (MOBILE, "pub-gruu"), (DESK, "temp-gruu"), (MOBILE, "temp-gruu")]
    {
        let address = gruu(&contacts, device, param);
        let (heard, called) = call(&mut net, &address);
        assert_eq!((heard.as_str(), called.as_slice()), ("200", [device].as_slice()), "{address}");
    }
    // The record names the extension, not the dialled address.
    let record = net.records.last().unwrap();
    assert_eq!(record.destination_number.as_deref(), Some("1002"));
}

/// RFC 5768: a device is offered ICE if its registration lists it; a call also works if it answers without ICE.
#[test]
fn only_phones_that_have_ice_are_offered_it() {
    for (supported, has_ice) in [("gruu", false), ("path, ice", true), ("icecream", false)] {
        let mut net = net();
        register(&mut net, DESK, "a", supported);
        let (heard, called) = call(&mut net, "sip:1002@acme.test");
        assert_eq!((heard.as_str(), called.as_slice()), ("200", [DESK].as_slice()), "{supported}");
        let invites = net.carriers[&address(DESK)].of(&Method::Invite);
        let offer = String::from_utf8_lossy(invites[0].body()).into_owned();
        for line in ["a=ice-lite\r\n", "a=ice-ufrag:", "a=candidate:1 1 udp ", "a=candidate:1 2 udp "] {
            assert_eq!(offer.contains(line), has_ice, "{supported}: {line} in {offer}");
        }
        // It is kept across a restart.
        let kept = net.ask(TakeChangedBindings(500));
        assert_eq!(kept[0].bindings[0].has_ice, has_ice);
    }
}

#[test]
fn only_phones_that_ask_for_gruus_get_them() {
    let mut net = net();
    let contacts = register(&mut net, DESK, "a", "path");
    assert!(contacts.iter().all(|contact| !contact.contains("gruu")), "{contacts:?}");
}

#[test]
fn a_device_that_is_gone_is_not_replaced_by_another() {
    let mut net = net();
    register(&mut net, DESK, "a", "gruu");
    let unknown = "sip:1002@acme.test;gr=urn:uuid:00000000-0000-0000-0000-000000000000";
    assert_eq!(call(&mut net, unknown), ("480 Temporarily Unavailable".to_owned(), Vec::new()));
    assert_eq!(call(&mut net, "sip:tgruu.00112233@acme.test;gr").0, "404 Not Found");
}

#[test]
fn a_temporary_gruu_ends_when_its_device_starts_anew() {
    let mut net = net();
    let temporary = |net: &mut Net, call_id| gruu(&register(net, DESK, call_id, "gruu"), DESK, "temp-gruu");
    let (first, refreshed) = (temporary(&mut net, "a"), temporary(&mut net, "a"));
    // A refresh gives another one, and both are valid (RFC 5627 §3.3).
    assert_ne!(first, refreshed);
    assert_eq!(call(&mut net, &first), ("200".to_owned(), vec![DESK]));
    let restarted = temporary(&mut net, "b");
    for ended in [first, refreshed] {
        assert_eq!(call(&mut net, &ended), ("480 Temporarily Unavailable".to_owned(), Vec::new()));
    }
    assert_eq!(call(&mut net, &restarted), ("200".to_owned(), vec![DESK]));
}

#[test]
fn a_device_is_called_although_its_extension_forwards_calls() {
    let forwarding = Forwarding { always: Some("1001".to_owned()), ..Forwarding::default() };
    let mut directory = directory();
    directory.extensions.last_mut().unwrap().forwarding = forwarding;
    let mut net = Net::new(directory);
    net.carrier(DESK, [Plan::Accept]).options = Some(200);
    net.carrier(MOBILE, []).options = Some(200);
    let contacts = register(&mut net, DESK, "a", "gruu");
    assert_eq!(call(&mut net, &gruu(&contacts, DESK, "pub-gruu")), ("200".to_owned(), vec![DESK]));
}

#[test]
fn a_transfer_to_a_gruu_calls_one_device() {
    let mut desk = Desk::with(directory(), [Plan::Accept]);
    desk.net.carrier(DESK, [Plan::Accept]).options = Some(200);
    desk.net.carrier(MOBILE, [Plan::Accept]).options = Some(200);
    register(&mut desk.net, DESK, "a", "gruu");
    let contacts = register(&mut desk.net, MOBILE, "b", "gruu");
    let target = gruu(&contacts, MOBILE, "temp-gruu");
    desk.refer(Extra::new().header("Refer-To", format!("<{target}>")));
    let called = [DESK, MOBILE].map(|at| desk.net.carriers[&address(at)].of(&Method::Invite).len());
    assert_eq!(called, [0, 1], "{ANN} is with the mobile");
    assert_eq!(desk.notified().last().map(String::as_str), Some("SIP/2.0 200 OK"));
}
