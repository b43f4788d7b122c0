//! The INVITE by which a node connects a caller to a room at another node, and its assertion about the caller.

use std::net::{IpAddr, SocketAddr};

use sidetone_model::ids::{ExtensionId, RoomId, TrunkId};
use sidetone_sip::edge::NodePass;
use sidetone_sip::flow::{Flow, ListenerId, Protocol};
use sidetone_sip::message::{Host, Request, Uri};
use sidetone_sip::ua::Invite;
use uuid::Uuid;

use crate::authentication::Sender;

/// The key and the listener for INVITEs between nodes.
#[derive(Clone, Debug)]
pub struct NodeEntries {
    /// Signs and checks their assertions.
    pub pass: NodePass,
    /// The listener for other nodes.
    pub internal: ListenerId,
}

/// A caller who is connected to a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeEntry {
    pub(super) sender: Sender,
    pub(super) room: RoomId,
    /// The fence of the room's owner, in the view of the other node.
    pub(super) fence: u64,
    /// The party's seat at the node that has handed the room over.
    pub(super) seat: Option<String>,
}

impl NodeEntries {
    /// Whether a flow comes from another node.
    pub(super) fn is_internal(&self, flow: &Flow) -> bool {
        flow.listener == self.internal && flow.protocol == Protocol::Udp
    }

    /// Reads the assertion in an INVITE of another node; `None` for any other request, and for a forged one.
    pub(super) fn read(&self, flow: &Flow, request: &Request) -> Option<NodeEntry> {
        if !self.is_internal(flow) {
            return None;
        }
        let (text, pass) = request.header(HEADER)?.rsplit_once(' ')?;
        if !self.pass.is_valid(&parts(text, request.call_id(), request.uri()), pass) {
            return None;
        }
        let mut words = text.split(' ');
        let (kind, sender, room, fence) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let id: Uuid = sender.parse().ok()?;
        let sender = match kind {
            "extension" => Sender::Extension(ExtensionId(id)),
            "trunk" => Sender::Trunk(TrunkId(id)),
            _ => return None,
        };
        let seat = words.next().map(str::to_owned);
        Some(NodeEntry { sender, room: RoomId(room.parse().ok()?), fence: fence.parse().ok()?, seat })
    }

    /// The INVITE that connects a caller, who dialled this number, to the node at an address; `None` for an
    /// unidentified sender.
    pub(super) fn invite(
        &self,
        entry: &NodeEntry,
        dialled: &str,
        (from, call_id): (&str, &str),
        to: SocketAddr,
    ) -> Option<Invite> {
        let (kind, id) = match &entry.sender {
            Sender::Extension(id) => ("extension", id.0),
            Sender::Trunk(id) => ("trunk", id.0),
            Sender::Challenge(..) | Sender::Limited(_) | Sender::Refused => return None,
        };
        let uri = Uri::sip(host_of(to), Some(to.port())).with_user(dialled).to_string();
        let seat = entry.seat.as_deref().filter(|seat| is_word(seat));
        let seat = seat.map(|seat| format!(" {seat}")).unwrap_or_default();
        let text = format!("{kind} {id} {} {}{seat}", entry.room, entry.fence);
        let pass = self.pass.sign(&parts(&text, call_id, &uri));
        let target = format!("<{uri}>");
        Some(Invite::new(uri, from, target).call_id(call_id).header(HEADER, format!("{text} {pass}")))
    }
}

/// The host of an address in a URI.
pub(super) fn host_of(address: SocketAddr) -> Host {
    match address.ip() {
        IpAddr::V4(v4) => Host::V4(v4),
        IpAddr::V6(v6) => Host::V6(v6),
    }
}

/// Whether a text is one word of a header.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= SEAT_LEN_MAX && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The signed data: the assertion, valid for one dialog only.
fn parts<'a>(text: &'a str, call_id: &'a str, uri: &'a str) -> [&'a [u8]; 3] {
    [text.as_bytes(), call_id.as_bytes(), uri.as_bytes()]
}

/// The longest name of a seat: a random token, or a leg id.
const SEAT_LEN_MAX: usize = 64;
const HEADER: &str = "X-Sidetone-Node";
