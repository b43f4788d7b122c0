//! The edge for other nodes in the driver: which messages it relays, and at which rate.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use rand::rngs::StdRng;
use sidetone_sip::admission::{Buckets, Rate};
use sidetone_sip::edge::{Edge, Relayed};
use sidetone_sip::flow::Flow;
use sidetone_sip::message::limits::PEER_DATAGRAM_LEN_MAX;
use sidetone_sip::message::{Datagram, Message, parse_datagram};
use sidetone_sip::transport::Sender;

use crate::driver::handle::Gauges;

/// The edge, the addresses of the other nodes, and the rates of phones.
pub struct EdgeTraffic {
    edge: Edge,
    members: HashSet<IpAddr>,
    by_phone: Buckets,
}

impl EdgeTraffic {
    /// Relays through `edge`; the addresses of the other nodes are set later.
    pub fn new(edge: Edge, epoch: Instant, rng: &mut StdRng) -> Self {
        EdgeTraffic { edge, members: HashSet::new(), by_phone: Buckets::new(PHONE, PHONES_BITS, epoch, rng) }
    }
}

/// Replaces the addresses of the other nodes.
pub(super) fn replace_members(edge: &mut Option<EdgeTraffic>, members: HashSet<IpAddr>) {
    if let Some(edge) = edge {
        edge.members = members;
    }
}

/// Handles a datagram after a quick scan; `None` if it is for the switch.
pub(super) fn of_datagram(
    edge: &mut Option<EdgeTraffic>,
    now: Instant,
    flow: &Flow,
    bytes: &Bytes,
) -> Option<Relayed> {
    let EdgeTraffic { edge, members, by_phone } = edge.as_mut()?;
    let is_internal = edge.is_internal(flow);
    if is_internal && !members.contains(&flow.remote.ip()) {
        // Only members may use the listener.
        return Some(Relayed::Nothing);
    }
    if bytes.len() > PEER_DATAGRAM_LEN_MAX || !edge.may_concern(bytes) {
        return None;
    }
    match parse_datagram(bytes.clone()) {
        Ok(Datagram::Message(message)) if edge.concerns(&message) => {
            let is_within = is_internal || by_phone.take(now, flow.remote);
            Some(if is_within { edge.relay(*flow, message) } else { Relayed::Nothing })
        }
        _ => None,
    }
}

/// Handles a message of a connection.
///
/// # Errors
/// The message, if it is for the switch.
#[expect(clippy::result_large_err, reason = "a message passes by once and is not stored")]
pub(super) fn of_message(
    edge: &mut Option<EdgeTraffic>,
    now: Instant,
    flow: &Flow,
    message: Message,
) -> Result<Relayed, Message> {
    let Some(EdgeTraffic { edge, by_phone, .. }) = edge else { return Err(message) };
    if !edge.concerns(&message) {
        return Err(message);
    }
    let is_within = by_phone.take(now, flow.remote);
    Ok(if is_within { edge.relay(*flow, message) } else { Relayed::Nothing })
}

/// Whether a datagram that its destination refused was sent by another node to a phone.
pub(super) fn has_sent(edge: &Option<EdgeTraffic>, to: &Flow, start: &[u8]) -> bool {
    edge.as_ref().is_some_and(|traffic| traffic.edge.sent(to, start))
}

/// Sends the relayed message, or the edge's response.
pub(super) fn send(relayed: Relayed, sender: &Sender, gauges: &Gauges) {
    let [passed, refused, dropped] = &gauges.edge;
    match relayed {
        Relayed::Forward { to, bytes, failed } => {
            passed.fetch_add(1, Ordering::Relaxed);
            if sender.try_send(&to, &bytes).is_err()
                && let Some((back, refusal)) = failed
            {
                // A refusal that cannot be sent is equivalent to a lost one.
                let _ = sender.try_send(&back, &refusal);
            }
        }
        Relayed::Refuse { to, bytes } => {
            refused.fetch_add(1, Ordering::Relaxed);
            let _ = sender.try_send(&to, &bytes);
        }
        Relayed::Nothing => {
            dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The rate at which a phone may send to other nodes: DTMF as INFO is up to ten messages a second, with their
/// responses twenty.
const PHONE: Rate = Rate { per_second: 60, burst: 240 };
const PHONES_BITS: u32 = 16;
