//! The relay as the switch sees it: ports by our own numbers, commands that wait while a worker is busy.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use sidetone_media::net::{self, Relay};
use sidetone_sip::transport::local_address_towards;

use crate::switch::face::{MediaCommand, Port, PortId, Ports};

/// The relay as the switch sees it: ports by our own numbers, commands that wait while a worker is busy.
pub(super) struct Media {
    relay: Arc<Relay>,
    external: Option<IpAddr>,
    ids: HashMap<PortId, net::PortId>,
    keys: HashMap<net::PortId, PortId>,
    next: u64,
    orders: VecDeque<(net::PortId, net::Command)>,
}

impl Ports for Media {
    fn open(&mut self, group: u64, towards: IpAddr) -> Option<Port> {
        let local = local_address_towards(towards).ok()?;
        let port = match self.relay.open(group, local) {
            Ok(port) => port,
            Err(error) => {
                tracing::error!(%error, "no media port for a call");
                return None;
            }
        };
        let id = PortId(self.next);
        self.next = self.next.wrapping_add(1);
        self.ids.insert(id, port.id);
        self.keys.insert(port.id, id);
        let advertised = match self.external.filter(|_| !local.is_loopback()) {
            Some(external) => SocketAddr::new(external, port.rtp.port()),
            None => port.rtp,
        };
        Some(Port { id, advertised })
    }
}

impl Media {
    /// The relay, with nothing open; `external` is what SDP names instead of our own address.
    pub(super) fn new(relay: Arc<Relay>, external: Option<IpAddr>) -> Self {
        Media { relay, external, ids: HashMap::new(), keys: HashMap::new(), next: 0, orders: VecDeque::new() }
    }

    /// How many ports are open or close now.
    pub(super) fn ports(&self) -> usize {
        self.ids.len()
    }

    /// How many commands wait for a worker.
    pub(super) fn orders(&self) -> usize {
        self.orders.len()
    }

    /// The next notice of a worker.
    pub(super) fn notice(&self) -> Option<net::Notice> {
        self.relay.notices().try_recv().ok()
    }

    pub(super) fn order(&mut self, port: PortId, command: MediaCommand) {
        let Some(id) = self.ids.get(&port).copied() else { return };
        let command = match command {
            MediaCommand::Answered => net::Command::Answered,
            MediaCommand::Bridge { peer, payload_map } => match self.ids.get(&peer) {
                Some(peer) => net::Command::Bridge { peer: *peer, payload_map },
                None => return, // The peer has reported already: there is nobody to relay to.
            },
            MediaCommand::Close => net::Command::Close,
            MediaCommand::Describe(description) => net::Command::Describe(description),
            MediaCommand::Tone => net::Command::Tone,
        };
        self.orders.push_back((id, command));
        self.flush();
    }

    /// Gives the workers what they take, in order.
    pub(super) fn flush(&mut self) {
        while let Some((id, command)) = self.orders.pop_front() {
            if let Err(net::CommandError::Busy) = self.relay.command(id, command.clone()) {
                self.orders.push_front((id, command));
                return;
            }
        }
    }

    pub(super) fn forget(&mut self, id: net::PortId) -> Option<PortId> {
        let port = self.keys.remove(&id)?;
        self.ids.remove(&port);
        Some(port)
    }
}
