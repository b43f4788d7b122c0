//! Tests of requests whose connection closes, cannot be opened, or whose datagram is refused.

use std::time::Instant;

use bytes::Bytes;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use crate::flow::{Flow, ListenerId, Protocol};
use crate::message::{Host, Method, Request};
use crate::transaction::ladder::start;

/// The messages that a layer sends, and how many requests it reports as failed.
fn drain(layer: &mut Layer) -> (Vec<Bytes>, usize) {
    let (mut sent, mut failed) = (Vec::new(), 0);
    while let Some(output) = layer.poll_output() {
        match output {
            Output::Transmit { bytes, .. } => sent.push(bytes),
            Output::Event(Event::TransportError { .. }) => failed += 1,
            other => panic!("{other:?}"),
        }
    }
    (sent, failed)
}

/// A layer that has sent a request by this flow.
fn sent(method: Method, flow: Flow) -> (Layer, Instant, Bytes) {
    let config = LayerConfig::new(Local::fixed(Host::V4([198, 51, 100, 1].into()), None));
    let mut layer = Layer::new(config, StdRng::seed_from_u64(1));
    let cseq = format!("1 {method}");
    let request = Request::builder(method, "sip:a@h").header("CSeq", cseq).build().unwrap();
    let now = start();
    layer.request(now, flow, request).unwrap();
    let (mut sent, _) = drain(&mut layer);
    (layer, now, sent.remove(0))
}

fn accepted() -> Flow {
    Flow { listener: ListenerId(0), remote: "192.0.2.1:40000".parse().unwrap(), protocol: Protocol::Tcp }
}

#[test]
fn a_request_is_sent_once_more_when_a_connection_of_ours_closes() {
    for method in [Method::Bye, Method::Invite] {
        let flow = Flow::tcp_to("192.0.2.1:5060".parse().unwrap());
        let (mut layer, now, request) = sent(method.clone(), flow);
        layer.handle_input(now, Input::FlowClosed { flow });
        assert_eq!(drain(&mut layer), (vec![request], 0), "{method}");
        layer.handle_input(now, Input::FlowClosed { flow });
        assert_eq!(drain(&mut layer), (vec![], 1), "{method}: only once");
        assert_eq!(layer.transactions(), (0, 0));
    }
}

#[test]
fn a_request_fails_at_once_when_no_connection_opens_and_when_the_peer_closes_its_own() {
    let ours = Flow::tcp_to("192.0.2.1:5060".parse().unwrap());
    for (flow, input) in
        [(ours, Input::FlowUnopened { flow: ours }), (accepted(), Input::FlowClosed { flow: accepted() })]
    {
        let (mut layer, now, _) = sent(Method::Invite, flow);
        layer.handle_input(now, input);
        assert_eq!((drain(&mut layer), layer.transactions()), ((vec![], 1), (0, 0)), "{flow}");
    }
}

#[test]
fn a_request_on_a_closed_connection_is_sent_by_another() {
    let (mut layer, now, request) = sent(Method::Bye, accepted());
    let other = Flow::tcp_to("192.0.2.1:5060".parse().unwrap());
    layer.resend(&ClientKey(1), &accepted(), other);
    layer.handle_input(now, Input::FlowClosed { flow: accepted() });
    assert_eq!(drain(&mut layer), (vec![request], 0));
    layer.handle_input(now, Input::FlowClosed { flow: other });
    assert_eq!(drain(&mut layer), (vec![], 1));
}

/// An ICMP error quotes the datagram: that of another branch, and one that claims another destination, have no effect.
#[test]
fn a_refused_datagram_fails_its_own_request_only() {
    let flow = Flow::udp(ListenerId(0), "192.0.2.1:5060".parse().unwrap());
    let elsewhere = Flow::udp(ListenerId(0), "192.0.2.2:5060".parse().unwrap());
    let (mut layer, now, request) = sent(Method::Invite, flow);
    let forged = String::from_utf8(request.to_vec()).unwrap().replacen("z9hG4bK", "z9hG4bK0", 1);
    let answer = Bytes::from_static(b"SIP/2.0 200 OK\r\n");
    let via_end = String::from_utf8_lossy(&request).match_indices("\r\n").nth(1).unwrap().0;
    let start = request.slice(..via_end + 6);
    for (flow, bytes) in [(elsewhere, request.clone()), (flow, forged.into()), (flow, answer)] {
        layer.handle_input(now, Input::Refused { flow, bytes });
        assert_eq!(drain(&mut layer), (vec![], 0));
    }
    layer.handle_input(now, Input::Refused { flow, bytes: start });
    assert_eq!(drain(&mut layer), (vec![], 1));
}
