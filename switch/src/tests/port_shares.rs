//! Shares of the media ports: a flood of one organisation or caller leaves ports to the others.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_model::call::HangupCause;
use sidetone_model::directory::DirectorySnapshot;

use crate::call_table::CallTable;
use crate::tests::directory::organisation;
use crate::tests::network::{Net, Plan, acme, extension, number, trunk};

const CARRIER: &str = "203.0.113.1:5060";
const WORLD: &str = "+447700900123";

/// Two organisations; 112 is an emergency number.
fn directory() -> DirectorySnapshot {
    let mut directory = acme(vec![trunk(1, CARRIER)]);
    directory.trunks[0].short_numbers = vec!["112".into()];
    directory.organisations.push(organisation(2, "other.test"));
    directory.extensions.push(extension(21, 2, "other.test", "2001"));
    directory.numbers.push(number(32, 2, "+442071230001", 21));
    directory
}

/// A node with this number of port pairs, whose carrier has one plan.
fn net(directory: DirectorySnapshot, pairs: usize, plan: Plan) -> Net {
    let mut net = Net::new(directory);
    net.switch.control.calls = CallTable::new(pairs);
    net.carrier(CARRIER, [plan]);
    net
}

/// The carrier calls this number, whose extension has no phone; returns status, reason and Retry-After.
fn call_in(net: &mut Net, number: &str) -> (u16, String, Option<String>) {
    let serial = net.told.len();
    let text = format!(
        "INVITE sip:{number}@198.51.100.1 SIP/2.0\r\nVia: SIP/2.0/UDP {CARRIER};branch=z9hG4bKin{serial}\r\n\
         Max-Forwards: 70\r\nFrom: <sip:+441632960000@203.0.113.1>;tag=1\r\nTo: <sip:{number}@198.51.100.1>\r\n\
         Call-ID: in{serial}\r\nCSeq: 1 INVITE\r\nContact: <sip:{CARRIER}>\r\nContent-Length: 0\r\n\r\n"
    );
    net.inject(CARRIER, text);
    let told = net.told.last().unwrap();
    (told.status().as_u16(), told.reason().into_owned(), told.header("Retry-After").map(str::to_owned))
}

/// T3: each call has two pairs, and the organisation may hold 14 of 16.
#[test]
fn a_flood_of_one_organisation_leaves_ports_to_the_others() {
    let mut net = net(directory(), 16, Plan::Accept);
    net.register();
    net.heard.clear();
    (0..9).for_each(|_| net.dial(WORLD));
    assert_eq!(net.heard[..7], ["200"; 7]);
    assert_eq!(net.heard[7..], ["503 Too Many Calls"; 2]);
    assert_eq!(net.records[0].hangup_cause, Some(HangupCause::SwitchCongestion));
    let retry = Some("30".to_owned());
    assert_eq!(call_in(&mut net, "+442071230000"), (503, "Too Many Calls".to_owned(), retry));
    // No phone of the other organisation is registered.
    assert_eq!(call_in(&mut net, "+442071230001").0, 480);
    // An emergency call passes.
    net.dial("112");
    assert_eq!(net.heard[9], "200");
    // The share is free again after the call, not with its last message.
    net.hang_up();
    net.dial(WORLD);
    assert_eq!(net.heard[10], "503 Too Many Calls");
}

#[test]
fn an_organisation_alone_has_all_ports() {
    let mut net = net(acme(vec![trunk(1, CARRIER)]), 16, Plan::Accept);
    (0..8).for_each(|_| net.dial(WORLD));
    assert_eq!(net.heard, ["200"; 8]);
}

#[test]
fn the_unanswered_calls_of_a_caller_are_limited() {
    let mut net = net(directory(), 64, Plan::Ring);
    (0..8).for_each(|_| net.dial(WORLD));
    let last = net.leg;
    net.dial(WORLD);
    assert_eq!(net.heard[..8], ["180"; 8]);
    assert_eq!(net.heard[8..], ["503 Too Many Unanswered Calls"]);
    net.leg = last;
    net.hang_up();
    net.carrier(CARRIER, [Plan::Accept]);
    // Answered calls do not count.
    (0..3).for_each(|_| net.dial(WORLD));
    assert_eq!(net.heard.iter().filter(|heard| *heard == "200").count(), 3);
}

/// For any ends of calls, and any number of ports: no port counts any more.
#[test]
fn counts_return_to_zero_however_calls_end() {
    let mut rng = StdRng::seed_from_u64(5);
    for case in 0..100 {
        let mut net = Net::new(directory());
        net.switch.control.calls = CallTable::new(rng.random_range(0..12));
        let plans = (0..rng.random_range(1..5)).map(|_| match rng.random_range(0..5) {
            0 => Plan::Ring,
            1 => Plan::Silence,
            2 => Plan::Refuse(486, Vec::new()),
            _ => Plan::Accept,
        });
        net.carrier(CARRIER, plans.collect::<Vec<_>>());
        let mut legs = Vec::new();
        for _ in 0..rng.random_range(1..9) {
            net.dial(WORLD);
            legs.extend(net.leg);
            net.wait(Duration::from_millis(rng.random_range(0..9_000)));
            if rng.random() {
                net.leg = Some(legs.swap_remove(rng.random_range(0..legs.len())));
                net.hang_up();
            }
        }
        for leg in legs {
            net.leg = Some(leg);
            net.hang_up();
        }
        net.wait(Duration::from_secs(200));
        assert_eq!((net.switch.live_calls(), net.switch.legs()), (0, 0), "case {case}");
        assert!(net.switch.control.calls.is_empty(), "case {case}");
    }
}
