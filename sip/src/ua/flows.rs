//! The flows on which the peers of legs are reached.

use std::collections::HashMap;
use std::net::SocketAddr;

use crate::dialog::Dialog;
use crate::flow::{Flow, Protocol};
use crate::message::Host;
use crate::transaction::ClientKey;
use crate::ua::leg::{Leg, LegKey};
use crate::ua::state::{Purpose, Ua};

impl Ua {
    /// Sends the requests of a leg on the flow of its INVITE, whatever the peer's Contact is: for a phone, which behind
    /// a NAT is reachable only there. A route of proxies still applies.
    pub fn keep_to_flow(&mut self, key: LegKey) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        leg.keeps_flow = true;
        leg.dialogs.iter_mut().for_each(Dialog::keep_to_flow);
    }

    /// Sends the requests of a leg on another flow from now on, because its peer has moved there. Requests in progress
    /// stay on their flow.
    pub fn move_to(&mut self, key: LegKey, flow: Flow) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        leg.flow = flow;
        leg.dialogs.iter_mut().for_each(|dialog| dialog.move_to(flow));
        self.hold_flow(key);
    }

    /// Finds a new path to peers whose TCP connection to us has closed: requests of their legs, including those in
    /// progress, use a connection that we open (RFC 5923). A leg that keeps to its flow waits for its peer.
    pub(super) fn reopen(&mut self, closed: &Flow) {
        if closed.listener.is_outbound() || closed.protocol != Protocol::Tcp {
            return;
        }
        let mut ways = HashMap::new();
        for key in self.legs_on(closed) {
            let leg = self.legs.get(&key).filter(|leg| !leg.keeps_flow);
            if let Some(way) = leg.and_then(|leg| leg.dialogs.first()).map(|dialog| way_back(dialog, closed))
            {
                self.move_to(key, way);
                ways.insert(key, way);
            }
        }
        if ways.is_empty() {
            return;
        }
        let of_leg = |purpose: &Purpose| purpose.leg().and_then(|leg| ways.get(&leg).copied());
        let waiting = self.purposes.iter().filter_map(|(client, purpose)| Some((*client, of_leg(purpose)?)));
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_unstable();
        for (client, way) in waiting {
            self.layer.resend(&client, closed, way);
        }
    }

    /// Finds a new path as [`Ua::reopen`] does, for the leg of a request that could not be sent: its connection has
    /// closed, but the close is not reported yet. Returns whether the request was sent again.
    pub(super) fn reopen_for(&mut self, client: &ClientKey) -> bool {
        let Some(key) = self.purposes.get(client).and_then(Purpose::leg) else { return false };
        let leg = self.legs.get(&key).filter(|leg| !leg.keeps_flow);
        let Some(dialog) = leg.and_then(|leg| leg.dialogs.first()) else { return false };
        let closed = dialog.flow();
        if closed.listener.is_outbound() || closed.protocol != Protocol::Tcp {
            return false;
        }
        let way = way_back(dialog, &closed);
        self.move_to(key, way);
        self.layer.resend(client, &closed, way)
    }

    /// The legs whose peers are on this connection.
    pub fn legs_on(&self, flow: &Flow) -> Vec<LegKey> {
        let legs = self.on_connections.range((*flow, LegKey::MIN)..=(*flow, LegKey::MAX));
        legs.map(|(_, leg)| *leg).collect()
    }
}

impl Leg {
    /// Gives a new dialog of the leg the same routing as the leg.
    pub(super) fn on_its_flow(&self, mut dialog: Dialog) -> Dialog {
        if self.keeps_flow {
            dialog.keep_to_flow();
        }
        dialog
    }
}

/// The flow to a peer whose connection has closed: to its host, at the port of its Contact. A Contact may name any
/// address, so we connect only to the peer's own.
fn way_back(dialog: &Dialog, closed: &Flow) -> Flow {
    let contact = dialog.remote_target();
    let ip = closed.remote.ip();
    let is_there = contact.host().and_then(Host::ip).is_none_or(|named| named.to_canonical() == ip);
    let port = contact.port().filter(|_| is_there).unwrap_or(closed.protocol.default_port());
    Flow::tcp_to(SocketAddr::new(ip, port))
}
