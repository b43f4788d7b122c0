//! Unreachable registered phones: they are detected by OPTIONS, and delay no call.

use std::time::Duration;

use sidetone_sip::message::{Method, Request, StatusCode};
use sidetone_sip::registrar::{BindingState, Registration};
use sidetone_sip::ua::Reply;

use crate::machine::Input;
use crate::tests::nat::{CARRIER, net, of_carrier};
use crate::tests::network::{Net, PHONE, SDP};

/// The address of a device of 1001 that sends no response.
const GONE: &str = "192.0.2.99:5060";
const AOR: &str = "1001@acme.test";

/// Registers a second device of 1001, which sends no response to any request.
pub(super) fn register_gone(net: &mut Net) {
    let flow = net.flow_of(GONE);
    let register = Request::builder(Method::Register, "sip:acme.test")
        .header("Call-ID", "gone")
        .header("CSeq", "1 REGISTER")
        .header("Contact", format!("<sip:1001@{GONE}>"))
        .build()
        .unwrap();
    let registration = Registration::from_request(&register, flow).unwrap();
    net.switch.shared.registrar.register(net.now(), AOR, registration).unwrap();
}

/// The carrier calls 1001; returns the final response after `wait`.
fn call(net: &mut Net, wait: Duration) -> Option<u16> {
    let before = net.told.len();
    net.inject(CARRIER, of_carrier("INVITE", 1, "", SDP));
    net.wait(wait);
    let told = net.told[before..].iter().map(|response| response.status());
    told.filter(|status| status.is_final()).map(StatusCode::as_u16).next()
}

fn states(net: &Net) -> Vec<(String, BindingState, bool)> {
    let bindings = net.switch.shared.registrar.bindings_of(AOR);
    let mut states: Vec<_> = bindings
        .iter()
        .map(|b| (b.flow.remote.to_string(), b.reachability.state, b.reachability.round_trip.is_some()))
        .collect();
    states.sort_by(|a, b| a.0.cmp(&b.0));
    states
}

#[test]
fn the_busy_phone_is_heard_after_four_seconds_beside_one_that_is_gone() {
    let mut net = net(PHONE);
    register_gone(&mut net);
    net.refusal = Some(Reply::new(StatusCode::BUSY_HERE));
    assert_eq!(call(&mut net, Duration::from_millis(3_900)), None);
    net.wait(Duration::from_millis(200));
    assert_eq!(net.told.last().unwrap().status().as_u16(), 486);
    net.wait(Duration::from_secs(60));
    assert_eq!(net.records[0].sip_status, Some(486));
    assert_eq!(net.switch.legs(), 0);
}

#[test]
fn a_phone_that_leaves_two_probes_unanswered_is_not_called() {
    let mut net = net(PHONE);
    register_gone(&mut net);
    net.wait(Duration::from_secs(160));
    let (gone, there) = (GONE.to_owned(), PHONE.to_owned());
    let expected = [(there, BindingState::Reachable, true), (gone, BindingState::Unreachable, false)];
    assert_eq!(states(&net), expected);
    net.elsewhere.clear();
    net.refusal = Some(Reply::new(StatusCode::BUSY_HERE));
    assert_eq!(call(&mut net, Duration::ZERO), Some(486), "at once");
    assert!(!net.elsewhere.iter().any(|(_, bytes)| bytes.starts_with(b"INVITE")));

    // Once the other phone is unreachable too, no phone is called.
    net.is_phone_gone = true;
    net.wait(Duration::from_secs(160));
    assert!(
        states(&net).iter().all(|(_, state, _)| *state == BindingState::Unreachable),
        "{:?}",
        states(&net)
    );
    // It answers again.
    net.is_phone_gone = false;
    net.wait(Duration::from_secs(61));
    assert_eq!(states(&net)[0].1, BindingState::Reachable);
}

/// A refused address ends the fork immediately, and the binding is not called again.
#[test]
fn an_address_that_refuses_the_invite_is_not_called_again() {
    let mut net = net(PHONE);
    net.fails_at = Some(PHONE.parse().unwrap());
    assert_eq!(call(&mut net, Duration::ZERO), Some(480));
    assert_eq!(states(&net)[0].1, BindingState::Unreachable);
    net.fails_at = None;
    net.register();
    assert_eq!(states(&net)[0].1, BindingState::Unknown);
    net.feed(Input::Timeout);
}
