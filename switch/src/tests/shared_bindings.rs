//! Calls to phones at other nodes, and this node's own bindings as it reports them.

use sidetone_model::directory::DirectorySnapshot;
use sidetone_model::ids::ExtensionId;
use sidetone_model::time::Timestamp;
use sidetone_sip::flow::{Flow, ListenerId, Protocol};
use sidetone_sip::message::{Datagram, Message, Method, Request, Response, StatusCode, parse_datagram};
use uuid::Uuid;

use crate::queries::{DevicesOf, ReplaceElsewhere, TakeNodeBindings};
use crate::shared_binding::{BindingsElsewhere, RemoteBinding, SharedBinding};
use crate::tests::network::{Net, acme, address, extension};

/// Another node, and the phone of 1002 that is registered there.
const NODE: &str = "10.0.0.2:5070";
const PHONE: &str = "192.0.2.2:5060";

fn directory() -> DirectorySnapshot {
    let mut directory = acme(Vec::new());
    directory.extensions.push(extension(12, 1, "acme.test", "1002"));
    directory
}

fn id(extension: u128) -> ExtensionId {
    Uuid::from_u128(extension).into()
}

fn remote(token: &str, protocol: Protocol) -> RemoteBinding {
    RemoteBinding {
        binding: SharedBinding {
            contact: format!("sip:1002@{PHONE}"),
            device_flow: Flow { listener: ListenerId(0), remote: address(PHONE), protocol },
            path: vec!["<sip:proxy.test;lr>".to_owned()],
            q_permille: 1_000,
            instance: None,
            reg_id: None,
            user_agent: None,
            registered_at: Timestamp::from_micros(0),
            expires_at: Timestamp::from_micros(600_000_000),
        },
        way: Flow::udp(ListenerId(0), address(NODE)),
        route: format!("<sip:{token}@{NODE};lr>"),
    }
}

fn change(bindings: Vec<RemoteBinding>, is_node_lost: bool) -> ReplaceElsewhere {
    let displaced = Vec::new();
    ReplaceElsewhere(vec![BindingsElsewhere { extension: id(12), bindings, displaced, is_node_lost }])
}

/// The requests of a method that went to another node.
pub(super) fn sent(net: &Net, node: &str, method: &Method) -> Vec<Request> {
    let to_node = net.elsewhere.iter().filter(|(to, _)| *to == address(node));
    let requests = to_node.filter_map(|(_, bytes)| match parse_datagram(bytes.clone()) {
        Ok(Datagram::Message(Message::Request(request))) => Some(request),
        _ => None,
    });
    requests.filter(|request| request.method() == method).collect()
}

fn answer(net: &mut Net, request: &Request, status: StatusCode) {
    let mut response = Response::reply_to(request, status);
    response.set_to_tag("b").unwrap();
    net.inject(NODE, String::from_utf8(response.to_bytes().to_vec()).unwrap());
}

#[test]
fn a_phone_elsewhere_is_invited_at_its_node_by_its_token() {
    let mut net = Net::new(directory());
    assert_eq!(net.ask(change(vec![remote("edge~a", Protocol::Udp)], false)), []);
    assert_eq!(net.ask(DevicesOf(id(12))), [format!("sip:1002@{PHONE}")]);
    net.dial("1002");
    let invite = sent(&net, NODE, &Method::Invite).remove(0);
    assert_eq!(invite.uri(), format!("sip:1002@{PHONE}"));
    let routes: Vec<_> = invite.routes().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(routes, [format!("<sip:edge~a@{NODE};lr>"), "<sip:proxy.test;lr>".to_owned()]);
    // The same phone with a new REGISTER keeps its call.
    let mut refreshed = remote("edge~a", Protocol::Udp);
    refreshed.binding.registered_at = Timestamp::from_micros(1_000_000);
    net.ask(change(vec![refreshed], false));
    answer(&mut net, &invite, StatusCode::BUSY_HERE);
    assert!(net.heard.last().is_some_and(|last| last.starts_with("486 ")), "{:?}", net.heard);
}

#[test]
fn a_fork_ends_with_its_node_and_without_an_answer_with_its_binding() {
    for (rings, is_node_lost, ends) in [(false, false, true), (true, false, false), (true, true, true)] {
        let mut net = Net::new(directory());
        net.ask(change(vec![remote("edge~a", Protocol::Udp)], false));
        net.dial("1002");
        let invite = sent(&net, NODE, &Method::Invite).remove(0);
        if rings {
            answer(&mut net, &invite, StatusCode::RINGING);
        }
        net.ask(change(Vec::new(), is_node_lost));
        let heard = net.heard.clone();
        assert_eq!(heard.iter().any(|heard| heard.starts_with("480 ")), ends, "{heard:?}");
        assert_eq!(net.records.len(), usize::from(ends), "{rings} {is_node_lost}");
    }
}

#[test]
fn an_extension_that_the_directory_does_not_have_yet_is_returned() {
    let mut net = Net::new(acme(Vec::new()));
    assert_eq!(net.ask(change(vec![remote("edge~a", Protocol::Udp)], false)), [id(12)]);
}

#[test]
fn bindings_are_shown_to_other_nodes_when_they_change() {
    let mut net = Net::new(acme(Vec::new()));
    net.register();
    let taken = net.ask(TakeNodeBindings(10));
    assert_eq!((taken.len(), taken[0].extension, taken[0].bindings.len()), (1, id(11), 1));
    assert_eq!(taken[0].bindings_max, 10);
    let contact = taken[0].bindings[0].contact.clone();
    assert_eq!(net.ask(TakeNodeBindings(10)), [], "taken once");
    // The phone has registered at another node since.
    let displaced = vec![contact];
    let change =
        BindingsElsewhere { extension: id(11), bindings: Vec::new(), displaced, is_node_lost: false };
    assert_eq!(net.ask(ReplaceElsewhere(vec![change])), []);
    assert_eq!(net.switch.bindings(), 0);
    assert_eq!(net.ask(TakeNodeBindings(10))[0].bindings, []);
}
