//! The state of trunks as it is read over HTTP.

use std::sync::Arc;
use std::time::Duration;

use sidetone_model::directory::{Secret, Trunk};
use sidetone_model::trunk_interop::TrunkInterop;
use sidetone_model::trunk_status::{TrunkAddressState, TrunkRegistrationState, TrunkStatus};
use sidetone_sip::message::Method;

use crate::machine::Input;
use crate::queries::StatusOfTrunk;
use crate::routing::Directory;
use crate::tests::network::{Net, Plan, acme, address, trunk};

const FIRST: &str = "203.0.113.1:5060";
const SECOND: &str = "203.0.113.2:5060";
const WORLD: &str = "+447700900123";

fn probed() -> Trunk {
    let interop = TrunkInterop {
        backup_addresses: vec![format!("sip:{SECOND}")],
        qualify_seconds: 60,
        ..TrunkInterop::default()
    };
    Trunk { interop, ..trunk(1, FIRST) }
}

fn status(net: &mut Net) -> TrunkStatus {
    net.ask(StatusOfTrunk(trunk(1, FIRST).id)).unwrap()
}

/// The statuses, addresses and methods of the refusals.
fn refusals(net: &mut Net) -> Vec<(Option<u16>, String, String)> {
    let refusals = status(net).refusals.into_iter();
    refusals.map(|refusal| (refusal.status, refusal.address, refusal.method)).collect()
}

#[test]
fn every_address_is_probed_and_shown() {
    let mut net = Net::new(acme(Vec::new()));
    net.carrier(FIRST, [Plan::Accept]).options = Some(200);
    net.carrier(SECOND, [Plan::Accept]).options = None;
    net.feed(Input::Directory(Arc::new(Directory::new(acme(vec![probed()])))));
    net.run();
    let before = status(&mut net);
    assert_eq!((before.registration, before.calls, before.refusals.len()), (None, 0, 0));
    let states: Vec<_> = before.addresses.iter().map(|at| (at.address.as_str(), at.state)).collect();
    assert_eq!(states, [(FIRST, TrunkAddressState::Unknown), (SECOND, TrunkAddressState::Unknown)]);
    net.wait(Duration::from_secs(130));
    let after = status(&mut net);
    let states: Vec<_> = after.addresses.iter().map(|at| (at.server.as_str(), at.state)).collect();
    let (first, second) = (format!("sip:{FIRST}"), format!("sip:{SECOND}"));
    let expected =
        [(first.as_str(), TrunkAddressState::Reachable), (second.as_str(), TrunkAddressState::Unreachable)];
    assert_eq!(states, expected);
    assert!(after.addresses[0].round_trip_ms.is_some() && after.addresses[1].round_trip_ms.is_none());
    assert!(after.addresses.iter().all(|at| at.checked_at.is_some()));
    assert_eq!(net.carriers[&address(FIRST)].of(&Method::Options).len(), 3);
    // Without an interval none is sent.
    net.feed(Input::Directory(Arc::new(Directory::new(acme(vec![trunk(1, FIRST)])))));
    net.wait(Duration::from_secs(300));
    assert_eq!(net.carriers[&address(FIRST)].of(&Method::Options).len(), 3);
}

#[test]
fn calls_and_refusals_are_shown() {
    let plain = Trunk { interop: TrunkInterop { qualify_seconds: 0, ..probed().interop }, ..probed() };
    let mut net = Net::new(acme(vec![plain]));
    net.carrier(
        FIRST,
        [Plan::Refuse(503, Vec::new()), Plan::Silence, Plan::Accept, Plan::Refuse(486, Vec::new())],
    );
    net.carrier(SECOND, [Plan::Accept]);
    net.dial(WORLD);
    let up = status(&mut net);
    let calls: Vec<u64> = up.addresses.iter().map(|at| at.outbound_calls).collect();
    assert_eq!((up.calls, calls), (1, vec![0, 1]));
    net.hang_up();
    assert_eq!(status(&mut net).calls, 0);
    net.dial(WORLD);
    net.wait(Duration::from_secs(7));
    net.hang_up();
    let (first, invite) = (FIRST.to_owned(), "INVITE".to_owned());
    let both = [(None, first.clone(), invite.clone()), (Some(503), first, invite)];
    assert_eq!(refusals(&mut net), both);
    for _ in 0..2 {
        net.wait(Duration::from_secs(31));
        net.dial(WORLD);
        if net.heard.last().unwrap() == "200" {
            net.hang_up();
        }
    }
    assert_eq!(refusals(&mut net), both, "a busy party is no refusal of the carrier");
    assert_eq!(net.ask(StatusOfTrunk(trunk(9, "").id)), None);
}

#[test]
fn the_registration_is_shown() {
    let registering =
        Trunk { username: "acme".into(), password: Secret("hush".into()), register: true, ..trunk(1, FIRST) };
    let mut net = Net::new(acme(Vec::new()));
    net.carrier(FIRST, [Plan::Accept]).registers = [Plan::Refuse(403, Vec::new()), Plan::Accept].into();
    net.feed(Input::Directory(Arc::new(Directory::new(acme(vec![registering])))));
    net.run();
    let failed = status(&mut net).registration.unwrap();
    assert_eq!(
        (failed.state, failed.address, failed.expires_at),
        (TrunkRegistrationState::Failed, None, None)
    );
    assert_eq!(refusals(&mut net), [(Some(403), FIRST.to_owned(), "REGISTER".to_owned())]);
    net.wait(Duration::from_secs(31));
    let registered = status(&mut net).registration.unwrap();
    assert_eq!(
        (registered.state, registered.address.as_deref()),
        (TrunkRegistrationState::Registered, Some(FIRST))
    );
    assert!(registered.expires_at.is_some());
}
