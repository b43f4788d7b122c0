//! Differences between carriers: their servers, numbers, domains, codecs and headers.

use std::sync::Arc;
use std::time::Duration;

use sidetone_model::directory::{Secret, Trunk};
use sidetone_model::trunk_address::TrunkTransport;
use sidetone_model::trunk_interop::{InboundNumbers, OutboundNumbers, TrunkInterop};
use sidetone_sip::flow::{Flow, ListenerId, Protocol};
use sidetone_sip::message::{Datagram, Method, Request, parse_datagram};

use crate::machine::{Input, Notice};
use crate::routing::Directory;
use crate::tests::network::{Net, Plan, acme, address, trunk};
use crate::trunk_dns::{Answer, Server};

const FIRST: &str = "203.0.113.1:5060";
const SECOND: &str = "203.0.113.2:5060";
const PROXY: &str = "203.0.113.9:5062";
const WORLD: &str = "+447700900123";

fn with(interop: TrunkInterop) -> Trunk {
    Trunk { interop, ..trunk(1, FIRST) }
}

fn backed_up(by: &str) -> TrunkInterop {
    TrunkInterop { backup_addresses: vec![by.to_owned()], ..TrunkInterop::default() }
}

fn first_invite(net: &Net, at: &str) -> Request {
    net.carriers[&address(at)].of(&Method::Invite)[0].clone()
}

/// An INVITE of a carrier for `number`, with an offer.
fn invite(number: &str, source: &str, caller: &str) -> String {
    let sdp = "v=0\r\no=- 1 1 IN IP4 203.0.113.1\r\ns=-\r\nc=IN IP4 203.0.113.1\r\nt=0 0\r\n\
               m=audio 4000 RTP/AVP 0 8 9\r\na=rtpmap:9 G722/8000\r\n";
    format!(
        "INVITE sip:{number}@198.51.100.1 SIP/2.0\r\nVia: SIP/2.0/UDP {source};branch=z9hG4bK{number}{source}\r\n\
         Max-Forwards: 70\r\nFrom: <sip:{caller}@carrier.example>;tag=1\r\nTo: <sip:{number}@carrier.example>\r\n\
         Call-ID: {number}{source}\r\nCSeq: 1 INVITE\r\nContact: <sip:{source}>\r\n\
         Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{sdp}",
        sdp.len()
    )
}

#[test]
fn numbers_are_read_and_written_as_the_carrier_has_them() {
    let interop = TrunkInterop {
        country_code: "44".into(),
        inbound_numbers: InboundNumbers::National,
        outbound_numbers: OutboundNumbers::National,
        ..TrunkInterop::default()
    };
    let mut net = Net::new(acme(vec![with(interop)]));
    net.carrier(FIRST, [Plan::Accept]);
    net.dial(WORLD);
    let sent = first_invite(&net, FIRST);
    assert_eq!(sent.uri(), "sip:07700900123@203.0.113.1:5060");
    assert_eq!(sent.to().unwrap().uri.user_decoded().unwrap(), "07700900123");
    assert_eq!(sent.from().unwrap().uri.user_decoded().unwrap(), "02071230000");
    assert_eq!(sent.header("P-Asserted-Identity"), Some("<sip:02071230000@203.0.113.1:5060>"));
    net.hang_up();
    let record = &net.records[0];
    assert_eq!(record.destination_number.as_deref(), Some(WORLD));
    assert_eq!(record.caller_number.as_deref(), Some("+442071230000"));
    for (written, caller) in [("02071230000", "07700900123"), ("2071230000", "7700900123")] {
        net.inject(FIRST, invite(written, FIRST, caller));
        let record = net.records.last().unwrap();
        assert_eq!(record.destination_number.as_deref(), Some("+442071230000"), "{written}");
        assert_eq!(record.dialled_number.as_deref(), Some(written));
        assert_eq!(record.caller_number.as_deref(), Some(WORLD));
    }
    assert_eq!(net.records.len(), 3);
}

#[test]
fn the_carriers_domain_proxy_and_headers_are_those_of_the_trunk() {
    let interop = TrunkInterop {
        outbound_proxy: Some(format!("sip:{PROXY}")),
        from_domain: "acme.carrier.example".into(),
        headers: vec!["X-Account: 42".into(), "P-Charging-Vector: icid-value=\"a: b\"".into()],
        ..TrunkInterop::default()
    };
    let mut net = Net::new(acme(vec![with(interop)]));
    net.carrier(FIRST, [Plan::Accept]);
    net.carrier(PROXY, [Plan::Accept]);
    net.dial(WORLD);
    assert_eq!(net.heard, ["200"]);
    assert!(net.carriers[&address(FIRST)].requests.is_empty(), "everything goes to the proxy");
    let sent = first_invite(&net, PROXY);
    assert_eq!(sent.uri(), format!("sip:{WORLD}@203.0.113.1:5060"));
    assert_eq!(sent.header("Route"), Some("<sip:203.0.113.9:5062;lr>"));
    assert_eq!(sent.from().unwrap().uri.to_string(), "sip:+442071230000@acme.carrier.example");
    assert_eq!(sent.header("P-Asserted-Identity"), Some("<sip:+442071230000@acme.carrier.example>"));
    assert_eq!(sent.header("X-Account"), Some("42"));
    assert_eq!(sent.header("P-Charging-Vector"), Some("icid-value=\"a: b\""));
    net.hang_up();
    let bye = net.carriers[&address(PROXY)].of(&Method::Bye);
    assert_eq!((bye.len(), bye[0].header("X-Account")), (1, None));
}

#[test]
fn codecs_of_a_trunk_bind_both_directions() {
    let codecs = vec!["PCMA".to_owned()];
    let mut net = Net::new(acme(vec![with(TrunkInterop { codecs, ..TrunkInterop::default() })]));
    net.register();
    net.carrier(FIRST, [Plan::Accept]);
    net.dial(WORLD);
    let sent = first_invite(&net, FIRST);
    let offer = String::from_utf8_lossy(sent.body()).into_owned();
    let media = offer.lines().find(|line| line.starts_with("m=audio")).unwrap();
    let numbers: Vec<&str> = media.split(' ').skip(3).collect();
    assert!(numbers.contains(&"8") && !numbers.contains(&"0") && !numbers.contains(&"9"), "{offer}");
    net.hang_up();
    net.inject(FIRST, invite("+442071230000", FIRST, WORLD));
    let rung = net.called.last().unwrap();
    let offer = String::from_utf8_lossy(rung.body()).into_owned();
    assert!(offer.contains("PCMA"), "{offer}");
    // The phone accepts only PCMU, which the carrier offers but may not use.
    net.pick_up();
    let answer = net.told.iter().rfind(|response| response.status().as_u16() == 200).unwrap();
    let answer = String::from_utf8_lossy(answer.body()).into_owned();
    let media = answer.lines().find(|line| line.starts_with("m=audio")).unwrap();
    let numbers: Vec<&str> = media.split(' ').skip(3).collect();
    assert_eq!(numbers, ["8"], "{answer}");
}

#[test]
fn the_next_server_takes_what_the_first_does_not_answer() {
    for plan in [Plan::Silence, Plan::Refuse(503, Vec::new())] {
        let mut net = Net::new(acme(vec![with(backed_up(&format!("sip:{SECOND}")))]));
        net.carrier(FIRST, [plan]);
        net.carrier(SECOND, [Plan::Accept]);
        net.dial(WORLD);
        net.wait(Duration::from_millis(6_100));
        assert_eq!(net.heard, ["200"]);
        assert_eq!(first_invite(&net, SECOND).uri(), format!("sip:{WORLD}@203.0.113.2:5060"));
        net.hang_up();
        assert_eq!(net.records[0].trunk_id, Some(trunk(1, FIRST).id));
    }
}

/// Over UDP a call comes from the address and port at which the trunk is called.
#[test]
fn calls_from_every_server_are_the_trunks() {
    let mut net = Net::new(acme(vec![with(backed_up("sip:b.carrier.example"))]));
    let name = "sip:b.carrier.example".parse().unwrap();
    assert_eq!(net.questions, [name]);
    let sources = [(FIRST, true), (SECOND, false), ("203.0.113.1:5099", false), ("203.0.113.9:5060", false)];
    for (source, is_known) in sources {
        let before = net.records.len();
        net.inject(source, invite("+442071230000", source, WORLD));
        assert_eq!(net.records.len() - before, usize::from(is_known), "{source}");
    }
    let resolved = |addresses: &[&str]| {
        let addresses = addresses.iter().map(|text| address(text)).collect();
        let servers = vec![Server { priority: 0, weight: 0, addresses }];
        Answer { servers, ttl: Duration::from_secs(60), transport: None }
    };
    net.feed(Input::Resolved(net.questions[0].clone(), resolved(&[SECOND])));
    net.run();
    net.inject(SECOND, invite("442071230000", SECOND, WORLD));
    assert_eq!(net.records.len(), 2, "the name was resolved");
    // The carrier's address changes: the first call from the new address makes the switch query DNS again.
    net.wait(Duration::from_secs(61));
    net.inject("203.0.113.3:5060", invite("+442071230000", "203.0.113.3:5060", WORLD));
    assert_eq!((net.records.len(), net.questions.len()), (2, 2));
    net.feed(Input::Resolved(net.questions[1].clone(), resolved(&["203.0.113.3:5060"])));
    net.run();
    net.inject("203.0.113.3:5060", invite("0442071230000", "203.0.113.3:5060", WORLD));
    net.inject("203.0.113.3:5060", invite("00442071230000", "203.0.113.3:5060", WORLD));
    assert_eq!(net.records.len(), 3);
    assert_eq!(net.records[2].trunk_id, Some(trunk(1, FIRST).id));
}

#[test]
fn a_registration_moves_to_the_next_server_and_uses_domain_and_proxy() {
    let login = |interop| Trunk {
        username: "acme".into(),
        password: Secret("hush".into()),
        register: true,
        ..with(interop)
    };
    let registering = |trunk: Trunk, plans: &[(&str, Plan)]| {
        let mut net = Net::new(acme(Vec::new()));
        for (at, plan) in plans {
            net.carrier(at, [Plan::Accept]).registers = [plan.clone()].into();
        }
        net.feed(Input::Directory(Arc::new(Directory::new(acme(vec![trunk])))));
        net.run();
        net
    };
    let backed = login(backed_up(&format!("sip:{SECOND}")));
    let mut net = registering(backed, &[(FIRST, Plan::Refuse(500, Vec::new())), (SECOND, Plan::Accept)]);
    net.wait(Duration::from_secs(60));
    let id = trunk(1, FIRST).id;
    assert_eq!(net.notices, [Notice::Unregistered(id, Some(500)), Notice::Registered(id)]);
    let proxied = login(TrunkInterop {
        outbound_proxy: Some(format!("sip:{PROXY}")),
        from_domain: "carrier.example".into(),
        ..TrunkInterop::default()
    });
    let net = registering(proxied, &[(FIRST, Plan::Accept), (PROXY, Plan::Accept)]);
    let sent = net.carriers[&address(PROXY)].of(&Method::Register)[0].clone();
    assert_eq!(
        (sent.uri(), sent.header("Route")),
        ("sip:203.0.113.1:5060", Some("<sip:203.0.113.9:5062;lr>"))
    );
    assert_eq!(sent.to().unwrap().uri.to_string(), "sip:acme@carrier.example");
}

/// A carrier that only answers 100 loses the call to the next one; one that rings keeps it.
#[test]
fn a_call_goes_on_after_100_and_then_silence() {
    let trying = Plan::Refuse(100, Vec::new());
    let interop = TrunkInterop { progress_seconds: 10, ..backed_up(&format!("sip:{SECOND}")) };
    let mut net = Net::new(acme(vec![with(interop.clone())]));
    net.carrier(FIRST, [trying.clone()]);
    net.carrier(SECOND, [Plan::Accept]);
    net.dial(WORLD);
    net.wait(Duration::from_millis(9_900));
    assert!(net.heard.is_empty() && net.carriers[&address(SECOND)].requests.is_empty());
    net.wait(Duration::from_millis(200));
    assert_eq!(net.heard, ["200"]);
    assert_eq!(net.carriers[&address(FIRST)].of(&Method::Cancel).len(), 1);
    net.hang_up();
    assert_eq!((net.records.len(), net.records[0].sip_status), (1, Some(200)));

    let mut net = Net::new(acme(vec![with(interop)]));
    net.carrier(FIRST, [Plan::Ring]);
    net.carrier(SECOND, [Plan::Accept]);
    net.dial(WORLD);
    net.wait(Duration::from_secs(30));
    assert_eq!(net.heard, ["180"], "it rings");

    let alone = TrunkInterop { progress_seconds: 10, ..TrunkInterop::default() };
    let mut net = Net::new(acme(vec![with(alone)]));
    net.carrier(FIRST, [trying]);
    net.dial(WORLD);
    net.wait(Duration::from_secs(30));
    assert!(net.heard.is_empty(), "there is no other carrier");
    assert!(net.carriers[&address(FIRST)].of(&Method::Cancel).is_empty());
}

#[test]
fn media_at_a_host_name_is_refused_with_a_warning() {
    let mut net = Net::new(acme(vec![with(TrunkInterop::default())]));
    net.carrier(FIRST, [Plan::Accept]);
    let named =
        invite("+442071230000", FIRST, WORLD).replace("c=IN IP4 203.0.113.1", "c=IN IP4 media.carrier");
    let length = named.split_once("\r\n\r\n").unwrap().1.len();
    let (head, body) = named.split_once("Content-Length: ").unwrap();
    let body = body.split_once("\r\n").unwrap().1;
    net.inject(FIRST, format!("{head}Content-Length: {length}\r\n{body}"));
    let refusal = net.told.last().unwrap();
    assert_eq!(refusal.status().as_u16(), 488);
    let warning = refusal.header("Warning").unwrap();
    assert_eq!(warning, "301 sidetone \"The address in c= is a host name; write an IP address\"");
}

/// A datagram gets a short response, because its source may be forged; over a connection every algorithm is offered.
#[test]
fn a_short_request_over_a_connection_is_offered_sha_256() {
    let text = |transport: &str| {
        format!(
            "REGISTER sip:acme.test SIP/2.0\r\nVia: SIP/2.0/{transport} a;branch=z9hG4bK{transport}\r\n\
             From: <sip:1001@acme.test>;tag=1\r\nTo: <sip:1001@acme.test>\r\nCall-ID: {transport}\r\n\
             CSeq: 1 REGISTER\r\nMax-Forwards: 70\r\nContact: <sip:1001@192.0.2.77:5060>\r\n\
             User-Agent: phone\r\nContent-Length: 0\r\n\r\n"
        )
    };
    let offered = |net: &Net| {
        let (_, bytes) = net.elsewhere.last().unwrap();
        String::from_utf8_lossy(bytes).matches("WWW-Authenticate").count()
    };
    let mut net = Net::new(acme(Vec::new()));
    net.inject("192.0.2.77:5060", text("UDP"));
    assert_eq!(offered(&net), 1);
    let Ok(Datagram::Message(message)) = parse_datagram(text("TCP").into()) else { panic!("a message") };
    let flow = Flow { listener: ListenerId(0), remote: address("192.0.2.78:34567"), protocol: Protocol::Tcp };
    net.feed(Input::Message { flow, message });
    net.run();
    assert_eq!(offered(&net), 2);
}

/// The name of a trunk prefers TCP: calls to it use a connection, and calls over connections from its address belong to
/// the trunk.
#[test]
fn a_trunk_is_called_by_the_transport_that_its_name_prefers() {
    let named = |text: &str| Trunk { address: Some(format!("sip:{text}")), ..trunk(1, FIRST) };
    for (text, expected) in [
        ("carrier.example", Protocol::Tcp),
        ("carrier.example;transport=udp", Protocol::Udp),
        ("carrier.example;transport=tcp", Protocol::Tcp),
    ] {
        let mut net = Net::new(acme(vec![named(text)]));
        net.carrier(FIRST, [Plan::Accept]);
        net.dial(WORLD);
        let name = net.questions.pop().unwrap();
        let servers = vec![Server { priority: 0, weight: 0, addresses: vec![address(FIRST)] }];
        let transport = (text == "carrier.example").then_some(TrunkTransport::Tcp);
        net.resolved(&name, Answer { servers, ttl: Duration::from_secs(60), transport });
        assert_eq!(net.heard, ["200"], "{text}");
        let holds_a_connection = net.holds.iter().any(|(flow, held)| *held && flow.protocol == Protocol::Tcp);
        assert_eq!(holds_a_connection, expected == Protocol::Tcp, "{text}");
        net.hang_up();
    }
}
