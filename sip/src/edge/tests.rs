//! The edge between a node (UAC) and a phone of this node.

use bytes::Bytes;

use crate::dialog::Dialog;
use crate::edge::{Edge, Relayed};
use crate::flow::{Flow, ListenerId, Protocol};
use crate::message::{Datagram, Host, Message, Method, Name, Request, Response, StatusCode, parse_datagram};
use crate::transaction::{HostPort, Local};

const INTERNAL: ListenerId = ListenerId(7);
const KEY: &[u8] = b"a key of the cluster, of 32 bytes or more";

fn local(flow: &Flow) -> HostPort {
    let (host, port) = if flow.listener == INTERNAL { ("10.0.0.2", 5070) } else { ("203.0.113.5", 5060) };
    HostPort { host: Host::parse(host).unwrap(), port: Some(port) }
}

fn edge_of(key: &[u8], node: &[u8]) -> Edge {
    Edge::new(key, node, INTERNAL, Local::new(local))
}

fn edge() -> Edge {
    edge_of(KEY, b"b")
}

fn node() -> Flow {
    Flow::udp(INTERNAL, "10.0.0.1:5070".parse().unwrap())
}

fn phone(protocol: Protocol) -> Flow {
    Flow { listener: ListenerId(0), remote: "192.0.2.9:40000".parse().unwrap(), protocol }
}

fn parse(bytes: Bytes) -> Message {
    match parse_datagram(bytes).unwrap() {
        Datagram::Message(message) => message,
        other => panic!("{other:?}"),
    }
}

/// A request of the node to the phone by this token.
fn request(method: &str, token: &str, more: &str) -> Message {
    parse(Bytes::from(format!(
        "{method} sip:1002@192.168.1.5:5062 SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.1:5070;rport;branch=z9hG4bKabc\r\n\
         Route: <sip:{token}@10.0.0.2:5070;lr>\r\nMax-Forwards: 70\r\nFrom: <sip:1001@acme.test>;tag=a\r\n\
         To: <sip:1002@acme.test>\r\nCall-ID: c1\r\nCSeq: 1 {method}\r\nContact: <sip:1001@10.0.0.1:5070>\r\n\
         {more}Content-Length: 0\r\n\r\n"
    )))
}

fn forwarded(relayed: Relayed) -> (Flow, Message) {
    match relayed {
        Relayed::Forward { to, bytes, .. } => (to, parse(bytes)),
        other => panic!("{other:?}"),
    }
}

fn refused(relayed: Relayed) -> (Flow, u16) {
    match relayed {
        Relayed::Refuse { to, bytes } => (to, parse(bytes).as_response().unwrap().status().as_u16()),
        other => panic!("{other:?}"),
    }
}

fn reply(request: &Request, status: StatusCode, contact: &str) -> Bytes {
    let mut response = Response::reply_to(request, status);
    response.set_to_tag("b").unwrap();
    response.copy_from(request.headers(), Name::RecordRoute);
    response.push(Name::Contact, contact).unwrap();
    response.to_bytes()
}

#[test]
fn a_call_goes_to_the_phone_and_its_dialog_both_ways() {
    for protocol in [Protocol::Udp, Protocol::Tcp, Protocol::Wss] {
        let (edge, phone) = (edge(), phone(protocol));
        let invite = request("INVITE", &edge.token(&phone), "Route: <sip:proxy.test;lr>\r\n");
        let sent = invite.as_request().unwrap().clone();
        assert!(edge.concerns(&invite) && edge.may_concern(&sent.to_bytes()));
        let (to, there) = forwarded(edge.relay(node(), invite.clone()));
        assert_eq!(to, phone);
        let there = there.as_request().unwrap().clone();
        assert_eq!((there.max_forwards(), there.vias().unwrap().len()), (Some(69), 2));
        let routes: Vec<_> = there.routes().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(routes, ["<sip:proxy.test;lr>"], "the Path of the phone stays");
        let again = forwarded(edge.relay(node(), invite)).1;
        assert_eq!(again.headers().via_top(), there.via_top(), "a retransmission has the same branch");
        let (_, cancel) = forwarded(edge.relay(node(), request("CANCEL", &edge.token(&phone), "")));
        assert_eq!(cancel.headers().via_top(), there.via_top(), "and so has the CANCEL");
        assert_eq!(cancel.headers().record_routes().unwrap().len(), 0);

        let answer = reply(&there, StatusCode::OK, "<sip:1002@192.168.1.5:5062>");
        assert!(edge.may_concern(&answer));
        let response = parse(answer);
        assert!(edge.concerns(&response));
        let (to, back) = forwarded(edge.relay(phone, response));
        assert_eq!((to, back.headers().vias().unwrap().len()), (node(), 1));
        let back = back.as_response().unwrap();
        assert!(!edge.concerns(&Message::Response(back.clone())), "the node itself is meant");

        // BYE of the node.
        let mut caller = Dialog::uac(&sent, back, node(), "<sip:1001@10.0.0.1:5070>".to_owned()).unwrap();
        let cseq = caller.next_cseq();
        let mut bye = caller.request(Method::Bye, cseq).unwrap();
        assert_eq!(caller.route().remote, "10.0.0.2:5070".parse().unwrap());
        bye.prepend(Name::Via, "SIP/2.0/UDP 10.0.0.1:5070;rport;branch=z9hG4bKbye").unwrap();
        let (to, bye) = forwarded(edge.relay(node(), Message::Request(bye)));
        assert_eq!((to, bye.headers().routes().unwrap().len()), (phone, 0));
        // BYE of the phone.
        let mut callee = Dialog::uas(&there, "b", phone, "<sip:1002@192.168.1.5:5062>".to_owned()).unwrap();
        let cseq = callee.next_cseq();
        let mut bye = callee.request(Method::Bye, cseq).unwrap();
        let first = bye.routes().unwrap()[0].to_string();
        assert!(first.contains("@203.0.113.5:5060"), "{first}");
        assert_eq!(first.contains(";transport="), protocol != Protocol::Udp, "{first}");
        bye.prepend(Name::Via, "SIP/2.0/UDP 192.168.1.5:5062;rport;branch=z9hG4bKend").unwrap();
        let (to, bye) = forwarded(edge.relay(phone, Message::Request(bye)));
        assert_eq!((to, bye.headers().routes().unwrap().len()), (node(), 0));
        assert_eq!(bye.as_request().unwrap().uri(), "sip:1001@10.0.0.1:5070");
        let answer = reply(bye.as_request().unwrap(), StatusCode::OK, "<sip:x@10.0.0.1>");
        assert_eq!(forwarded(edge.relay(node(), parse(answer))).0, phone);
    }
}

#[test]
fn what_the_edge_has_not_signed_leads_nowhere() {
    let (edge, phone) = (edge(), phone(Protocol::Udp));
    let good = edge.token(&phone);
    let others = [edge_of(KEY, b"c").token(&phone), edge_of(b"another key", b"b").token(&phone)];
    let mut forged: Vec<String> = others.to_vec();
    for at in "edge~".len()..good.len() {
        let mut bytes = good.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        forged.push(String::from_utf8(bytes).unwrap());
    }
    forged.extend([
        "edge~".to_owned(),
        "edge~A".to_owned(),
        format!("{good}{good}"),
        good[..good.len() - 4].to_owned(),
    ]);
    for token in &forged {
        assert_eq!(refused(edge.relay(node(), request("INVITE", token, ""))), (node(), 403), "{token}");
        assert_eq!(edge.relay(node(), request("ACK", token, "")), Relayed::Nothing);
    }
    for branch in forged.iter().map(String::as_str).chain([good.as_str()]) {
        let text = format!(
            "SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 203.0.113.5;branch=z9hG4bK{branch}.x\r\nVia: SIP/2.0/UDP 10.0.0.1\r\n\
             From: <sip:a@b>;tag=a\r\nTo: <sip:a@b>;tag=b\r\nCall-ID: c\r\nCSeq: 1 BYE\r\nContent-Length: 0\r\n\r\n"
        );
        // The branch always contains the flow of the request's sender, never that of the responder.
        assert_eq!(edge.relay(phone, parse(text.into())), Relayed::Nothing, "{branch}");
    }
}

#[test]
fn requests_pass_from_one_side_to_the_other_only() {
    let (edge, phone) = (edge(), phone(Protocol::Udp));
    let (to_phone, to_node) = (edge.token(&phone), edge.token(&node()));
    assert_eq!(refused(edge.relay(phone, request("INVITE", &to_phone, ""))).1, 403, "between phones");
    assert_eq!(refused(edge.relay(node(), request("INVITE", &to_node, ""))).1, 403, "between nodes");
    assert_eq!(refused(edge.relay(phone, request("INVITE", &to_node, ""))).1, 403, "no call to another node");
    let text = |message: Message| message.as_request().unwrap().to_bytes();
    let spent = String::from_utf8(text(request("INVITE", &to_phone, "")).to_vec()).unwrap();
    let spent = spent.replace("Max-Forwards: 70", "Max-Forwards: 0");
    assert_eq!(refused(edge.relay(node(), parse(spent.into()))).1, 483);
    let plain = request("OPTIONS", "alice", "");
    assert!(!edge.concerns(&plain) && !edge.may_concern(&text(plain.clone())));
}

#[test]
fn a_closed_connection_is_430() {
    let edge = edge();
    let to = |protocol| edge.relay(node(), request("INVITE", &edge.token(&phone(protocol)), ""));
    let Relayed::Forward { failed: Some((back, bytes)), .. } = to(Protocol::Tcp) else {
        panic!("no refusal")
    };
    let response = parse(bytes);
    let response = response.as_response().unwrap();
    assert_eq!((back, response.status().as_u16()), (node(), 430));
    assert_eq!((response.reason().as_ref(), response.vias().unwrap().len()), ("Flow Failed", 1));
    assert!(matches!(to(Protocol::Udp), Relayed::Forward { failed: None, .. }));
}

#[test]
fn a_refused_datagram_is_known_by_its_branch() {
    let (edge, phone) = (edge(), phone(Protocol::Udp));
    let (_, there) = forwarded(edge.relay(node(), request("INVITE", &edge.token(&phone), "")));
    let bytes = there.as_request().unwrap().to_bytes();
    assert!(edge.sent(&phone, &bytes[..300]));
    assert!(!edge.sent(&node(), &bytes), "another node");
    let own = request("INVITE", "alice", "").as_request().unwrap().to_bytes();
    assert!(!edge.sent(&phone, &own));
}
