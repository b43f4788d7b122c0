//! Floods from unknown senders must take no resources that live calls, known phones and other unknown senders
//! need.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use sidetone_model::directory::{DirectorySnapshot, Trunk};
use sidetone_sip::admission::{Dropped, Grant};
use sidetone_sip::message::{Datagram, Message, Method, Name, Response, StatusCode, parse_datagram};
use sidetone_sip::transaction::TRANSACTIONS_MAX;
use sidetone_sip::ua::Draft;

use crate::admitting::{Rank, TrunkAddresses};
use crate::machine::Input;
use crate::routing::Directory;
use crate::tests::ladder::any_instant;
use crate::tests::network::{Net, PHONE, Plan, SDP, acme, address, trunk};

const CARRIER: &str = "203.0.113.1:5060";
const STRANGER: &str = "192.0.2.66:5060";
const WORLD: &str = "+447700900123";

/// A request of an unknown sender; branch, Call-ID and From tag contain `serial`.
fn request(method: &str, serial: u32, to_tag: &str) -> String {
    let to_tag = if to_tag.is_empty() { String::new() } else { format!(";tag={to_tag}") };
    format!(
        "{method} sip:1001@acme.test SIP/2.0\r\nVia: SIP/2.0/UDP {STRANGER};rport;branch=z9hG4bK{serial}\r\n\
         Max-Forwards: 70\r\nFrom: <sip:1001@acme.test>;tag=f{serial}\r\nTo: <sip:1001@acme.test>{to_tag}\r\n\
         Call-ID: c{serial}\r\nCSeq: 1 {method}\r\nContact: <sip:1001@{STRANGER}>\r\n\
         User-Agent: a phone with a name of the usual length 1.0\r\n\
         Allow: INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, REFER, NOTIFY\r\nContent-Length: 0\r\n\r\n"
    )
}

/// Takes the responses that the switch sent to unknown senders since the last call.
fn heard(net: &mut Net) -> Vec<Bytes> {
    std::mem::take(&mut net.elsewhere).into_iter().map(|(_, bytes)| bytes).collect()
}

fn status(answer: &Bytes) -> u16 {
    String::from_utf8_lossy(answer).split(' ').nth(1).unwrap().parse().unwrap()
}
/// S5, RFC 3261 §8.2.7: no response before authentication leaves state, and a retransmission gets the same
/// response.
#[test]
fn s5_no_answer_to_a_stranger_leaves_a_transaction() {
    let cases = [
        ("OPTIONS", "", 200),
        ("REGISTER", "", 401),
        ("INVITE", "", 401),
        ("MESSAGE", "", 401),
        ("SUBSCRIBE", "", 401),
        ("PUBLISH", "", 401),
        ("REFER", "", 401),
        ("NOTIFY", "", 481),
        ("BYE", "", 481),
        ("CANCEL", "", 481),
        ("INFO", "", 481),
        ("PRACK", "", 481),
        ("UPDATE", "", 481),
        ("WOMBAT", "", 501),
        ("OPTIONS", "guess", 481),
        ("INVITE", "guess", 481),
        ("BYE", "guess", 481),
        ("INFO", "guess", 481),
    ];
    let mut net = Net::new(acme(Vec::new()));
    for (serial, (method, to_tag, expected)) in (1..).zip(cases) {
        let name = format!("{method} {to_tag}");
        let text = request(method, serial, to_tag);
        net.inject(STRANGER, text.clone());
        let first = heard(&mut net);
        assert_eq!(first.iter().map(status).collect::<Vec<_>>(), [expected], "{name}");
        assert_eq!(net.switch.shared.ua.transactions(), (0, 0), "{name}");
        assert_eq!((net.switch.legs(), net.switch.live_calls()), (0, 0), "{name}");
        if method == "INVITE" {
            net.inject(STRANGER, request("ACK", serial, "any"));
            assert_eq!((heard(&mut net).len(), net.switch.shared.ua.transactions()), (0, (0, 0)), "{name}");
        }
        net.wait(Duration::from_millis(500));
        net.inject(STRANGER, text);
        let again = heard(&mut net);
        assert_eq!(again.len(), 1, "{name}");
        assert_eq!(again, first, "{name}");
    }
    assert!(net.records.is_empty() && net.notices.is_empty(), "{:?}", net.notices);
}

/// Unknown senders cannot fill the transaction table: after more requests of one sender than the table has
/// entries, a phone can register and call, and a live call can end.
#[test]
fn one_source_takes_no_place_of_another() {
    for (method, to_tag) in [("OPTIONS", ""), ("CANCEL", ""), ("BYE", "guess"), ("REGISTER", "")] {
        let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
        net.carrier(CARRIER, [Plan::Accept]);
        net.dial(WORLD);
        assert_eq!(net.heard, ["200"], "{method}");
        for serial in 0..u32::try_from(TRANSACTIONS_MAX).unwrap() + 1 {
            net.inject(STRANGER, request(method, serial, to_tag));
        }
        net.register();
        net.hang_up();
        net.wait(Duration::from_secs(3));
        assert_eq!((net.switch.live_calls(), net.records.len()), (0, 1), "{method}");
        net.dial(WORLD);
        assert_eq!(net.heard, ["200", "200 OK", "200"], "{method}: {:?}", net.notices.last());
    }
}

/// S10: before authentication at most one response, with at most one and a half times the received bytes.
#[test]
fn s10_an_answer_to_a_stranger_is_no_amplifier() {
    let methods =
        ["OPTIONS", "REGISTER", "INVITE", "REFER", "MESSAGE", "SUBSCRIBE", "BYE", "CANCEL", "WOMBAT", "X"];
    let shapes = [
        // The shortest requests that RFC 3261 allows, without a branch and with one.
        "{M} sip:a SIP/2.0\r\nv:SIP/2.0/UDP a\r\nf:sip:a\r\nt:sip:a\r\ni:1\r\nCSeq:1 {M}\r\n\r\n",
        "{M} sip:a SIP/2.0\r\nv:SIP/2.0/UDP a;rport;branch=z9hG4bK{N}\r\nf:<sip:a>;tag=1\r\nt:<sip:a>\r\ni:1\r\nCSeq:{N} {M}\r\n\r\n",
        "{M} sip:acme.test SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.66:5060;branch=z9hG4bK{N}\r\nMax-Forwards: 70\r\n\
         From: <sip:1001@acme.test>;tag=1\r\nTo: <sip:1001@acme.test>\r\nCall-ID: 1\r\nCSeq: {N} {M}\r\n\
         Contact: <sip:1001@192.0.2.66>\r\nContent-Length: 0\r\n\r\n",
        // Malformed: no From, a Require with an unknown option, no CSeq number.
        "{M} sip:a SIP/2.0\r\nv:SIP/2.0/UDP a\r\nt:sip:a\r\ni:1\r\nCSeq:1 {M}\r\n\r\n",
        "{M} sip:a SIP/2.0\r\nv:SIP/2.0/UDP a\r\nf:sip:a\r\nt:sip:a\r\ni:1\r\nCSeq:1 {M}\r\nRequire:x\r\n\r\n",
        "{M} sip:a SIP/2.0\r\nv:SIP/2.0/UDP a\r\nf:sip:a\r\nt:sip:a\r\ni:1\r\nCSeq:x {M}\r\n\r\n",
        "\r\n\r\n",
        "\r\n",
    ];
    let mut serial = 0;
    for source in [STRANGER, "192.100.200.250:65000", "[2001:db8:1111:2222:3333:4444:5555:6666]:65000"] {
        for method in methods {
            for shape in shapes {
                serial += 1;
                let mut net = Net::new(acme(Vec::new()));
                let text = shape.replace("{M}", method).replace("{N}", &serial.to_string());
                net.inject(source, text.clone());
                net.wait(Duration::from_secs(40));
                let answers = heard(&mut net);
                let out: usize = answers.iter().map(Bytes::len).sum();
                assert!(answers.len() <= 1, "{text}: {answers:?}");
                assert!(out * 2 <= text.len() * 3, "{out} bytes for {}: {text}{answers:?}", text.len());
            }
        }
    }
}

/// The size limit leaves room for challenges with both algorithms.
#[test]
fn a_phone_is_offered_every_algorithm() {
    let mut net = Net::new(acme(Vec::new()));
    net.inject(STRANGER, request("REGISTER", 1, ""));
    let answers = heard(&mut net);
    let text = String::from_utf8_lossy(&answers[0]).into_owned();
    assert!(text.contains("algorithm=SHA-256") && text.contains("algorithm=MD5"), "{text}");
    assert_eq!(address(STRANGER).port(), 5060);
}

/// T1, T2: of 20,000 requests of one source within a second, all but its share are dropped. Meanwhile a phone
/// elsewhere registers, calls and hangs up, and gets every response immediately.
#[test]
fn t1_one_source_hinders_no_other() {
    for source in [STRANGER, "[2001:db8:1:2:3:4:5:6]:5060"] {
        let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
        net.carrier(CARRIER, [Plan::Accept]);
        let mut read = 0;
        for serial in 0..20_000_u32 {
            // All addresses of one /64 count as one source.
            let from = source.replace(":6]", &format!(":{serial:x}]"));
            let method = ["OPTIONS", "REGISTER", "INVITE", "CANCEL"][serial as usize % 4];
            read += usize::from(knock(&mut net, &from, &request(method, serial, "")).is_ok());
            match serial {
                5_000 => net.register(),
                10_000 => net.dial(WORLD),
                15_000 => net.hang_up(),
                _ => {}
            }
            if serial % 20 == 0 {
                net.wait(Duration::from_millis(1));
            }
        }
        // The source's own share is a burst of 60 and 30 a second; the spare share that no other source uses is
        // a burst of 2,000 and 2,000 a second.
        assert!((2_060..=4_200).contains(&read), "{source}: {read}");
        // The phone's ACK of its challenge belongs to no transaction.
        let is_expected = |reason: &Dropped| matches!(reason, Dropped::Source | Dropped::Stray);
        assert!(net.dropped.iter().all(is_expected), "{source}");
        assert_eq!(net.heard, ["200 OK", "200"], "{source}");
        net.wait(Duration::from_secs(3));
        assert_eq!((net.records.len(), net.switch.live_calls()), (1, 0), "{source}");
        assert!(net.notices.is_empty(), "{source}: {:?}", net.notices);
    }
}

/// Requests inside a dialog work with every table full and every bucket of unknown senders empty: a re-INVITE
/// and a BYE of a live call, and the messages of their transactions.
#[test]
fn a_live_call_goes_on_with_every_table_full() {
    let mut net = Net::with_room(acme(vec![trunk(1, CARRIER)]), 1, None);
    net.carrier(CARRIER, [Plan::Accept, Plan::Ring]);
    net.register();
    net.dial(WORLD);
    // The INVITE of a call that rings takes the only free entry of the table.
    let live = net.leg;
    net.dial(WORLD);
    let ringing = std::mem::replace(&mut net.leg, live);
    fill_requests(&mut net);
    heard(&mut net);
    for serial in 0..40_000 {
        let _ = net.switch.admit(
            net.now(),
            &net.flow_of(&format!("100.64.{}.{}:5060", serial >> 8 & 255, serial & 255)),
            request("OPTIONS", serial, "").as_bytes(),
        );
    }
    assert_eq!(knock(&mut net, "192.0.2.99:5060", &request("OPTIONS", 1, "")), Err(Dropped::Strangers));
    // An unknown sender's INVITE that is read gets 503, because no entry is free, and leaves no state.
    net.inject(STRANGER, request("INVITE", 1, ""));
    assert_eq!(heard(&mut net).iter().map(status).collect::<Vec<_>>(), [503]);
    let before = net.dropped.len();
    assert_eq!(net.carrier_says(CARRIER, "INVITE", 2, Some(SDP)), 200);
    net.offer_anew(SDP);
    net.hang_up();
    net.leg = ringing;
    net.hang_up();
    net.wait(Duration::from_secs(3));
    assert_eq!((net.dropped.len(), net.switch.live_calls(), net.records.len()), (before, 0, 2));
}

/// Messages of live calls are always read first; messages that belong to no call or transaction are dropped
/// at no cost.
#[test]
fn a_glance_tells_what_belongs_to_a_call() {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.carrier(CARRIER, [Plan::Accept]);
    net.dial(WORLD);
    let invite = net.carriers[&address(CARRIER)].requests[0].clone();
    let bye = format!(
        "BYE sip:a SIP/2.0\r\nVia: SIP/2.0/UDP {CARRIER};branch=z9hG4bKbye\r\nFrom: {};tag=carrier\r\nTo: {}\r\n\
         Call-ID: {}\r\nCSeq: 7 BYE\r\n\r\n",
        invite.header(Name::To).unwrap(),
        invite.header(Name::From).unwrap(),
        invite.call_id(),
    );
    let response =
        String::from_utf8(Response::reply_to(&invite, StatusCode::OK).to_bytes().to_vec()).unwrap();
    let cases = [
        ("the BYE of a call", bye, Ok(Rank::Urgent)),
        ("a 200 to our INVITE", response.clone(), Ok(Rank::Urgent)),
        ("a 200 to an INVITE of nobody", response.replace("z9hG4bK", "z9hG4bK0"), Err(Dropped::Stray)),
        ("an ACK of nothing", request("ACK", 1, "x"), Err(Dropped::Stray)),
        ("a CANCEL of nothing", request("CANCEL", 1, ""), Ok(Rank::New(Grant::Stranger))),
        ("a BYE of no call", request("BYE", 1, "x"), Ok(Rank::New(Grant::Stranger))),
        ("an OPTIONS", request("OPTIONS", 1, ""), Ok(Rank::New(Grant::Stranger))),
        ("junk", "\u{1}\u{2}junk".into(), Err(Dropped::NotSip)),
        ("a keep-alive", "\r\n\r\n".into(), Ok(Rank::New(Grant::Stranger))),
    ];
    for (name, text, expected) in cases {
        let flow = net.flow_of(STRANGER);
        assert_eq!(net.switch.admit(net.now(), &flow, text.as_bytes()), expected, "{name}");
    }
}

/// An authenticated phone, the address of a trunk, and an answer to our challenge have shares that unknown
/// senders cannot take, even from the same address.
#[test]
fn who_is_known_has_buckets_of_its_own() {
    let mut open = trunk(1, CARRIER);
    open.accept_from = vec!["203.0.113.0/24".parse().unwrap()];
    let mut net = Net::new(acme(vec![open]));
    net.register();
    let challenge = {
        net.inject(STRANGER, request("REGISTER", 1, ""));
        let answer = heard(&mut net).remove(0);
        match parse_datagram(answer).unwrap() {
            Datagram::Message(Message::Response(response)) => {
                response.header_all("WWW-Authenticate").find(|c| c.contains("MD5")).unwrap().to_owned()
            }
            other => panic!("{other:?}"),
        }
    };
    let authorized = |serial: u32, challenge: &str| {
        let answer = format!(
            "Authorization: {challenge}, username=\"1001\", uri=\"sip:a\", response=\"0\"\r\nUser-Agent"
        );
        request("REGISTER", serial, "").replacen("User-Agent", &answer, 1)
    };
    // Unknown senders at the same addresses use up their share.
    for at in ["192.0.2.1:9", STRANGER] {
        for serial in 0..10_000 {
            let _ = net.switch.admit(net.now(), &net.flow_of(at), request("OPTIONS", serial, "").as_bytes());
        }
    }
    let admit = |net: &mut Net, at: &str, text: String| {
        net.switch.admit(net.now(), &net.flow_of(at), text.as_bytes())
    };
    assert_eq!(admit(&mut net, "192.0.2.1:9", request("OPTIONS", 1, "")), Err(Dropped::Source));
    assert_eq!(admit(&mut net, PHONE, request("OPTIONS", 1, "")), Ok(Rank::New(Grant::Known)));
    assert_eq!(admit(&mut net, "203.0.113.9:9", request("INVITE", 1, "")), Ok(Rank::New(Grant::Known)));
    assert_eq!(admit(&mut net, STRANGER, request("REGISTER", 1, "")), Err(Dropped::Source));
    assert_eq!(admit(&mut net, STRANGER, authorized(2, &challenge)), Ok(Rank::New(Grant::Known)));
    // The nonce is bound to its source and cannot be forged.
    assert_eq!(admit(&mut net, "192.0.2.1:9", authorized(3, &challenge)), Err(Dropped::Source));
    let forged = challenge.replace("nonce=\"0", "nonce=\"1");
    assert_eq!(admit(&mut net, STRANGER, authorized(4, &forged)), Err(Dropped::Source));
}

#[test]
fn the_addresses_of_trunks_are_those_of_their_blocks() {
    let blocks = ["192.0.2.0/24", "198.51.100.7", "2001:db8:1::/48", "203.0.113.0/25"];
    let accept_from = blocks.map(|block| block.parse().unwrap()).to_vec();
    let snapshot: DirectorySnapshot = acme(vec![Trunk { accept_from, ..trunk(1, CARRIER) }]);
    let mut addresses = TrunkAddresses::of(&Directory::new(snapshot.clone()));
    let registered: IpAddr = "203.0.113.200".parse().unwrap();
    addresses.registered(any_instant(), [registered].into_iter());
    for address in [
        "192.0.2.0",
        "192.0.2.255",
        "::ffff:192.0.2.9",
        "192.0.3.0",
        "198.51.100.7",
        "198.51.100.8",
        "2001:db8:1:ffff::1",
        "2001:db8:2::1",
        "203.0.113.127",
        "203.0.113.128",
        "203.0.113.200",
    ] {
        let ip: IpAddr = address.parse().unwrap();
        let accepted = snapshot.trunks[0].accept_from.iter().any(|network| network.contains(ip));
        assert_eq!(addresses.contains(ip), accepted || ip == registered, "{address}");
    }
}

/// Fills the table of the switch's own requests, except entries reserved for dialogs, with requests that
/// get no response.
fn fill_requests(net: &mut Net) {
    let flow = net.flow_of("192.0.2.200:5060");
    let uri = "sip:nobody@192.0.2.200";
    let draft = Draft::new(Method::Options, uri, "<sip:a@a>", format!("<{uri}>"));
    while net.switch.shared.ua.request(net.now(), flow, draft.clone()).is_ok() {}
    net.feed(Input::Timeout);
    net.run();
}

/// Feeds a datagram from an address if it is admitted.
fn knock(net: &mut Net, from: &str, text: &str) -> Result<Rank, Dropped> {
    let flow = net.flow_of(from);
    let admitted = net.switch.admit(net.now(), &flow, text.as_bytes());
    match admitted {
        Ok(_) => net.inject(from, text.to_owned()),
        Err(reason) => net.dropped.push(reason),
    }
    admitted
}
