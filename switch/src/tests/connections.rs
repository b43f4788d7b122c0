//! Calls of carriers over connections that close.

use std::time::Duration;

use sidetone_model::directory::{Network, Trunk};
use sidetone_sip::flow::{Flow, ListenerId, Protocol};
use sidetone_sip::message::{Datagram, Message, Method, parse_datagram};

use crate::machine::Input;
use crate::tests::nat::{CARRIER, of_carrier};
use crate::tests::network::{Net, Plan, SDP, acme, address, trunk};

const SECOND: &str = "203.0.113.2:5060";

/// The connection that the carrier opened.
fn connection() -> Flow {
    Flow { listener: ListenerId(0), remote: address("203.0.113.1:34567"), protocol: Protocol::Tcp }
}

fn say(net: &mut Net, text: &str) {
    let text = text.replace("SIP/2.0/UDP", "SIP/2.0/TCP");
    let Ok(Datagram::Message(message)) = parse_datagram(text.into()) else { panic!("a message") };
    net.feed(Input::Message { flow: connection(), message });
    net.run();
}

#[test]
fn a_carrier_whose_connection_closed_is_hung_up_by_a_new_one() {
    let from = Network { address: address(CARRIER).ip(), prefix_len: 32 };
    let mut net = Net::new(acme(vec![Trunk { accept_from: vec![from], ..trunk(1, CARRIER) }]));
    net.carrier(CARRIER, [Plan::Accept]);
    net.register();
    say(&mut net, &of_carrier("INVITE", 1, "", SDP));
    net.pick_up();
    let answer = net.elsewhere.last().unwrap().1.clone();
    let Ok(Datagram::Message(Message::Response(answer))) = parse_datagram(answer) else {
        panic!("a response")
    };
    let tag = format!(";tag={}", answer.to_tag().unwrap());
    say(&mut net, &of_carrier("ACK", 1, &tag, ""));
    assert_eq!(net.holds, [(connection(), true)]);
    let back = Flow::tcp_to(address(CARRIER));
    net.feed(Input::Closed(connection()));
    net.run();
    assert_eq!(net.holds[1..], [(connection(), false), (back, true)]);
    net.hang_up();
    assert_eq!(net.carriers[&address(CARRIER)].of(&Method::Bye).len(), 1);
    net.wait(Duration::from_secs(5));
    assert_eq!(net.holds[3..], [(back, false)]);
    assert_eq!((net.records.len(), net.switch.legs()), (1, 0));
}

#[test]
fn a_trunk_to_which_no_connection_opens_makes_room_at_once() {
    let first = Trunk { address: Some(format!("sip:{CARRIER};transport=tcp")), ..trunk(1, CARRIER) };
    let mut net = Net::new(acme(vec![first, trunk(2, SECOND)]));
    net.carrier(SECOND, [Plan::Accept]);
    net.dial("+447700900123");
    assert!(net.heard.is_empty());
    net.feed(Input::Unopened(Flow::tcp_to(address(CARRIER))));
    net.run();
    assert_eq!(net.heard, ["200"]);
    net.hang_up();
    assert_eq!(net.records[0].trunk_id, Some(trunk(2, SECOND).id));
}
