//! Offers of parties in UPDATE (RFC 3311).

use std::time::Duration;

use sidetone_model::call::HangupCause;
use sidetone_sip::message::Method;
use sidetone_sip::ua::Extra;

use crate::machine::Input;
use crate::tests::network::{Net, Plan, SDP, acme, address, trunk};

const CARRIER: &str = "203.0.113.1:5060";

/// The phone holds the call by UPDATE: the carrier is asked as by a re-INVITE, and the phone gets its answer.
#[test]
fn a_hold_by_update_reaches_the_other_party() {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.carrier(CARRIER, [Plan::Accept]);
    net.dial("+447700900002");
    net.wait(Duration::from_secs(1));
    net.heard.clear();
    let held = format!("{SDP}a=sendonly\r\n");
    for (sdp, offers) in [(held.as_str(), 2), (SDP, 3)] {
        let extra = Extra::new().content("application/sdp", sdp.to_owned());
        net.phone.request_within(net.now(), net.leg.unwrap(), Method::Update, &extra).unwrap();
        net.run();
        net.wait(Duration::from_secs(1));
        let invites = net.carriers[&address(CARRIER)].of(&Method::Invite);
        assert_eq!(invites.len(), offers);
        let direction = String::from_utf8_lossy(invites[offers - 1].body()).contains("a=sendonly");
        assert_eq!(direction, offers == 2);
    }
    assert_eq!(net.heard, ["200 OK", "200 OK"]);
    // Without a session description that can be read.
    let extra = Extra::new().content("text/plain", "hold");
    net.phone.request_within(net.now(), net.leg.unwrap(), Method::Update, &extra).unwrap();
    net.run();
    assert_eq!(net.heard[2], "488 Not Acceptable Here");
    net.feed(Input::EndCalls(HangupCause::NormalClearing));
    net.run();
    net.wait(Duration::from_secs(200));
    assert_eq!((net.switch.live_calls(), net.switch.legs()), (0, 0));
}
