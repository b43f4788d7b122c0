//! Offers of parties in UPDATE (RFC 3311).

use std::time::Duration;

use sidetone_model::call::HangupCause;
use sidetone_sip::message::Method;
use sidetone_sip::ua::Extra;

use crate::machine::Input;
use crate::tests::network::{Net, Plan, SDP, acme, address, trunk};

const CARRIER: &str = "203.0.113.1:5060";

/// The phone holds the call by UPDATE: the carrier gets an offer as after a re-INVITE, and the phone gets its answer.
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
    // Without a valid session description.
    let extra = Extra::new().content("text/plain", "hold");
    net.phone.request_within(net.now(), net.leg.unwrap(), Method::Update, &extra).unwrap();
    net.run();
    assert_eq!(net.heard[2], "488 Not Acceptable Here");
    net.feed(Input::EndCalls(HangupCause::NormalClearing));
    net.run();
    net.wait(Duration::from_secs(200));
    assert_eq!((net.switch.live_calls(), net.switch.legs()), (0, 0));
}

/// 1001 talks to the carrier, which was called.
fn talking() -> Net {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.carrier(CARRIER, [Plan::Accept]);
    net.dial("+447700900002");
    net.wait(Duration::from_secs(1));
    net.heard.clear();
    net
}

/// The carrier holds by UPDATE in a confirmed dialog (RFC 3311 §5.2): the phone gets an offer. An UPDATE that crosses
/// our offer gets 491 and changes nothing.
#[test]
fn an_update_of_the_callee_reaches_the_caller() {
    let mut net = talking();
    let held = format!("{SDP}a=sendonly\r\n");
    for (cseq, sdp, asked) in [(7, held.as_str(), 1), (8, SDP, 2)] {
        assert_eq!(net.carrier_says(CARRIER, "UPDATE", cseq, Some(sdp)), 200);
        assert_eq!(net.reinvited.len(), asked);
        net.wait(Duration::from_secs(1));
    }
    // An offer of the phone waits for the answer of the carrier.
    net.carrier(CARRIER, [Plan::Silence]);
    let extra = Extra::new().content("application/sdp", held.clone());
    net.phone.request_within(net.now(), net.leg.unwrap(), Method::Update, &extra).unwrap();
    net.run();
    assert_eq!(net.carrier_says(CARRIER, "UPDATE", 9, Some(held.as_str())), 491);
    assert_eq!((net.reinvited.len(), net.switch.live_calls()), (2, 1));
}

/// Video that a party adds is refused at its position; later offers keep the section (RFC 3264 §8).
#[test]
fn video_that_a_party_adds_is_refused() {
    for method in ["UPDATE", "INVITE"] {
        let mut net = talking();
        let video = format!("{SDP}m=video 5000 RTP/AVP 31\r\n");
        assert_eq!(net.carrier_says(CARRIER, method, 7, Some(video.as_str())), 200, "{method}");
        let sections = |body: &[u8]| {
            let body = String::from_utf8_lossy(body).into_owned();
            let lines = body.lines().filter_map(|line| line.strip_prefix("m="));
            lines.map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };
        let answer = net.told.iter().rev().find(|response| !response.body().is_empty()).unwrap();
        let answered = sections(answer.body());
        assert!(answered[0].starts_with("audio ") && answered[0] != "audio 0", "{answered:?}");
        assert_eq!(answered[1..], ["video 0"], "{method}");
        // The phone holds: our offer to the carrier has both sections.
        let extra = Extra::new().content("application/sdp", format!("{SDP}a=sendonly\r\n"));
        net.phone.request_within(net.now(), net.leg.unwrap(), Method::Update, &extra).unwrap();
        net.run();
        let invites = net.carriers[&address(CARRIER)].of(&Method::Invite);
        let offered = sections(invites.last().unwrap().body());
        assert!(offered[0].starts_with("audio ") && offered[0] != "audio 0", "{offered:?}");
        assert_eq!(offered[1..], ["video 0"], "{method}");
        assert_eq!((invites.len(), net.switch.live_calls()), (2, 1));
    }
}
