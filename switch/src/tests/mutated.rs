//! Structurally broken requests during a call: a sample of what `cargo test --test engine -- --ignored long_p4`
//! sends to a running engine (catalogue P4).

use std::time::Duration;

use sidetone_sip::flow::{Flow, ListenerId};

use crate::machine::Input;
use crate::tests::network::{Net, Plan, acme, address, trunk};

#[path = "../../../tests/common/mutations.rs"]
mod mutations;

use mutations::{METHODS, cases};

const CARRIER: &str = "203.0.113.1:5060";
/// Every 53rd case is sent. The number is coprime to the number of exceptions, so that every class occurs.
const EVERY: usize = 53;
const SOURCES: usize = 40;

#[test]
fn broken_requests_are_refused_or_dropped_and_a_call_goes_on() {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.carrier(CARRIER, [Plan::Accept]);
    for source in 0..SOURCES {
        // A peer that only records responses.
        net.carrier(&attacker(source), []);
    }
    net.dial("+447700900123");
    assert_eq!(net.heard, ["200"]);
    let mut sent = 0;
    for (serial, method) in METHODS.into_iter().enumerate() {
        for case in cases(method, "UDP", serial as u64).into_iter().skip(serial).step_by(EVERY) {
            let (told, source) = (net.told.len(), attacker(sent % SOURCES));
            let flow = Flow::udp(ListenerId(0), address(&source));
            net.feed(Input::Datagram { flow, bytes: case.bytes.clone().into() });
            net.run();
            net.wait(Duration::from_millis(50));
            let statuses: Vec<u16> = net.told[told..].iter().map(|answer| answer.status().as_u16()).collect();
            let is_right = |status: &u16| {
                matches!(status, 100 | 400..=499 | 501 | 503 | 505 | 513)
                    || (*status == 200 && method == "OPTIONS")
            };
            assert!(
                statuses.iter().all(is_right),
                "{statuses:?} to {method} with {} in {}: {}",
                case.class,
                case.element,
                String::from_utf8_lossy(&case.bytes).escape_debug()
            );
            sent += 1;
        }
    }
    assert!(sent >= 500, "{sent} cases");
    assert_eq!(net.heard, ["200"], "the call goes on");
    assert_eq!((net.switch.control.calls.len(), net.switch.shared.ua.legs_len()), (1, 2));
    net.hang_up();
    assert_eq!(net.records.len(), 1);
    net.wait(Duration::from_secs(64));
    assert_eq!(
        (net.switch.shared.ua.legs_len(), net.switch.shared.ua.transactions()),
        (0, (0, 0)),
        "something is left"
    );
}

fn attacker(source: usize) -> String {
    format!("198.51.100.{}:5060", source + 10)
}
