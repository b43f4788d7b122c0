//! Star codes that a phone dials.

use std::time::Duration;

use sidetone_model::call::{Direction, HangupCause};
use sidetone_model::forwarding::ForwardingChange;
use sidetone_sip::message::Method;

use crate::machine::Input;
use crate::tests::network::{Net, Plan, acme, address, trunk};

const CARRIER: &str = "203.0.113.1:5060";

fn net() -> Net {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.carrier(CARRIER, [Plan::Accept]);
    net.register();
    net.heard.clear();
    net
}

fn end(net: &mut Net) {
    net.wait(Duration::from_secs(200));
    assert_eq!((net.switch.live_calls(), net.switch.legs()), (0, 0));
    assert!(net.switch.control.calls.is_empty());
}

/// The phone is answered, hears a chime, and is hung up.
#[test]
fn a_stored_change_is_confirmed_by_a_chime() {
    for code in ["*72+447700900002", "*73", "*901002", "*91", "*921002", "*93", "*78", "*79"] {
        let mut net = net();
        net.dial(code);
        net.wait(Duration::from_secs(1));
        assert_eq!(net.changes.len(), 1, "{code}");
        assert_eq!(net.heard, ["200", "BYE"], "{code}");
        assert!(net.rooms.iter().any(|line| line.ends_with("is told joined")), "{code}: {:?}", net.rooms);
        end(&mut net);
        let record = &net.records[0];
        assert_eq!(
            (record.direction, record.destination_number.as_deref()),
            (Direction::Internal, Some(code))
        );
        assert_eq!(record.hangup_cause, Some(HangupCause::NormalClearing), "{code}");
        assert!(net.carriers[&address(CARRIER)].of(&Method::Invite).is_empty(), "{code}");
    }
    let mut net = net();
    net.dial("*72+447700900002");
    let always =
        ForwardingChange { always: Some(Some("+447700900002".into())), ..ForwardingChange::default() };
    assert_eq!(net.changes[0].forwarding, Some(always));
    end(&mut net);
}

#[test]
fn a_change_that_is_not_stored_refuses_the_call() {
    for (code, result, status, cause) in [
        ("*724711", Err(404), "404 Not Found", HangupCause::UnallocatedNumber),
        ("*78", Err(503), "503 Service Unavailable", HangupCause::SwitchCongestion),
        ("*72", Ok(()), "484 Address Incomplete", HangupCause::InvalidNumberFormat),
        ("*99", Ok(()), "404 Not Found", HangupCause::UnallocatedNumber),
    ] {
        let mut net = net();
        net.changed = Some(result);
        net.dial(code);
        assert_eq!(net.heard, [status], "{code}");
        assert_eq!(net.changes.len(), usize::from(result.is_err()), "{code}");
        end(&mut net);
        assert_eq!(net.records[0].hangup_cause, Some(cause), "{code}");
    }
}

/// The caller hangs up before the change is stored; a second code meanwhile has to wait.
#[test]
fn a_caller_that_hangs_up_is_not_answered() {
    let mut net = net();
    net.changed = None;
    net.dial("*78");
    let first = net.leg.take().unwrap();
    net.dial("*79");
    assert_eq!(net.heard, ["503 Service Unavailable"]);
    assert_eq!(net.changes.len(), 1);
    net.phone.hang_up(net.now(), first);
    net.run();
    let line = crate::tests::directory::extension(11, 1, "", "").id;
    net.feed(Input::ExtensionChanged(line, Ok(())));
    net.run();
    end(&mut net);
    assert_eq!(net.heard, ["503 Service Unavailable"]);
    // The next code is accepted again.
    net.changed = Some(Ok(()));
    net.heard.clear();
    net.dial("*79");
    net.wait(Duration::from_secs(1));
    assert_eq!(net.heard, ["200", "BYE"]);
    end(&mut net);
}

/// A carrier dials no star codes.
#[test]
fn codes_are_for_extensions_alone() {
    let mut net = net();
    net.inject(
        "203.0.113.9:5060",
        "INVITE sip:*78@acme.test SIP/2.0\r\nVia: SIP/2.0/UDP 203.0.113.9;branch=z9hG4bKin\r\nMax-Forwards: 70\r\n\
         From: <sip:1001@acme.test>;tag=in\r\nTo: <sip:*78@acme.test>\r\nCall-ID: in\r\nCSeq: 1 INVITE\r\n\
         Contact: <sip:203.0.113.9>\r\nContent-Length: 0\r\n\r\n"
            .to_owned(),
    );
    net.wait(Duration::from_secs(1));
    assert!(net.changes.is_empty());
}

/// An organisation that has switched them off.
#[test]
fn codes_that_are_off_are_numbers() {
    let mut directory = acme(vec![trunk(1, CARRIER)]);
    directory.organisations[0].star_codes = false;
    let mut net = Net::new(directory);
    for code in ["*72+447700900002", "*72", "*78"] {
        net.heard.clear();
        net.dial(code);
        assert_eq!(net.heard, ["404 Not Found"], "{code}");
    }
    assert!(net.changes.is_empty());
    end(&mut net);
    assert_eq!(net.records.len(), 3);
}
