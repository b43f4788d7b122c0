//! Outbound calls of an organisation whose limit applies to all nodes of a cluster together, from the view of one node.

use std::time::Duration;

use sidetone_model::call::HangupCause;
use sidetone_model::ids::OrganisationId;
use sidetone_sip::message::Method;
use uuid::Uuid;

use crate::machine::Input;
use crate::outbound_limit::{OutboundDecision, OutboundNeeds};
use crate::outbound_slots::OutboundSlots;
use crate::queries::{DecideOutbound, TakeOutboundNeeds};
use crate::tests::network::{Net, Plan, acme, address, trunk};

const CARRIER: &str = "203.0.113.1:5060";
const WORLD: &str = "+447700900123";

fn net(limit: Option<u32>) -> Net {
    let mut directory = acme(vec![trunk(1, CARRIER)]);
    directory.organisations[0].max_outbound_calls = limit;
    directory.trunks[0].short_numbers = vec!["112".into()];
    let mut net = Net::new(directory);
    net.switch.control.slots = Some(OutboundSlots::default());
    net.carrier(CARRIER, [Plan::Accept]);
    net
}

fn organisation() -> OrganisationId {
    OrganisationId(Uuid::from_u128(1))
}

fn needs(net: &mut Net) -> Option<OutboundNeeds> {
    let needs = net.ask(TakeOutboundNeeds);
    assert!(needs.len() <= 1, "{needs:?}");
    needs.into_iter().next()
}

fn decide(net: &mut Net, slots: u32, ticket: u64) {
    net.ask(DecideOutbound(vec![OutboundDecision { organisation: organisation(), slots, ticket }]));
    net.run();
}

fn invites(net: &Net) -> usize {
    net.carriers[&address(CARRIER)].of(&Method::Invite).len()
}

#[test]
fn an_outbound_call_waits_for_a_decision_and_its_place_is_used_again() {
    let mut net = net(Some(5));
    net.dial(WORLD);
    assert_eq!((net.heard.len(), invites(&net)), (0, 0));
    let first = OutboundNeeds { organisation: organisation(), limit: 5, up: 0, waiting: 1, ticket: 1 };
    assert_eq!(needs(&mut net), Some(first));
    decide(&mut net, 1, 1);
    assert_eq!((net.heard.as_slice(), invites(&net)), (["200".to_owned()].as_slice(), 1));
    assert_eq!(needs(&mut net), Some(OutboundNeeds { up: 1, waiting: 0, ..first }));
    // The next call uses the slot of the ended call, which was not given back yet.
    net.hang_up();
    net.dial(WORLD);
    assert_eq!((net.heard.len(), invites(&net)), (2, 2), "{:?}", net.heard);
    net.hang_up();
    assert_eq!(needs(&mut net), None);
    net.dial(WORLD);
    assert_eq!(net.heard.len(), 2, "the place was given back");
}

#[test]
fn calls_that_do_not_fit_are_refused_and_later_ones_wait_on() {
    let mut net = net(Some(5));
    (0..3).for_each(|_| net.dial(WORLD));
    let asked = needs(&mut net).unwrap();
    assert_eq!((asked.waiting, asked.ticket), (3, 3));
    net.dial(WORLD);
    decide(&mut net, 2, asked.ticket);
    let mut heard = net.heard.clone();
    heard.sort_unstable();
    assert_eq!(heard, ["200", "200", "503 Service Unavailable"]);
    assert_eq!(net.records.len(), 1);
    assert_eq!(net.records[0].hangup_cause, Some(HangupCause::SwitchCongestion));
    let later = needs(&mut net).unwrap();
    assert_eq!((later.up, later.waiting, later.ticket), (2, 1, 4));
    decide(&mut net, 3, 4);
    assert_eq!(invites(&net), 3);
    assert_eq!(needs(&mut net).map(|needs| (needs.up, needs.waiting)), Some((3, 0)));
}

#[test]
fn emergency_calls_and_those_without_a_limit_do_not_wait() {
    let mut unlimited = net(None);
    unlimited.dial(WORLD);
    assert_eq!(unlimited.heard, ["200"]);
    assert_eq!(needs(&mut unlimited), None);
    let mut none = net(Some(0));
    none.dial("112");
    assert_eq!(none.heard, ["200"]);
    assert_eq!(needs(&mut none).map(|needs| (needs.up, needs.waiting)), Some((1, 0)));
}

#[test]
fn a_call_without_a_decision_is_refused_after_two_seconds() {
    let mut net = net(Some(5));
    net.dial(WORLD);
    net.wait(Duration::from_millis(1_900));
    assert_eq!(net.records.len(), 0);
    net.wait(Duration::from_millis(200));
    assert_eq!(net.heard, ["503 Service Unavailable"]);
    assert_eq!(net.records.len(), 1);
    assert_eq!(needs(&mut net), None);
}

/// A load balancer in front of several nodes detects by OPTIONS which of them accept calls.
#[test]
fn a_node_that_takes_no_calls_says_so_to_options() {
    let mut net = net(None);
    let from = "198.51.100.7:5060";
    for (accepts, status) in [(true, "200"), (false, "503"), (true, "200")] {
        net.feed(Input::Accept(accepts));
        let number = net.elsewhere.len();
        net.inject(
            from,
            format!(
                "OPTIONS sip:acme.test SIP/2.0\r\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{number}\r\n\
                 Max-Forwards: 70\r\nFrom: <sip:proxy@acme.test>;tag=1\r\nTo: <sip:acme.test>\r\n\
                 Call-ID: {number}\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n"
            ),
        );
        let (to, bytes) = net.elsewhere.last().unwrap();
        assert_eq!(*to, address(from));
        let text = String::from_utf8_lossy(bytes);
        assert!(text.starts_with(&format!("SIP/2.0 {status}")), "{text}");
    }
}
