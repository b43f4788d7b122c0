//! One binding of an address of record to a contact.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use crate::flow::{Flow, Protocol};
use crate::message::{Host, NameAddr, Uri};

/// Names a binding for as long as it lives; a refresh keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BindingId(pub u64);

/// A registered contact and the way to it.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Its name.
    pub id: BindingId,
    /// The contact as registered: the Request-URI of requests to it.
    pub contact: Uri,
    /// Where requests to it are sent: back where the REGISTER came from, whatever the contact claims.
    pub flow: Flow,
    /// Routes between us and the phone, nearest first (RFC 3327 §5.3).
    pub path: Vec<NameAddr>,
    /// Preference in thousandths, 0–1,000.
    pub q_permille: u16,
    /// `+sip.instance`: which device this is, whatever its address (RFC 5626 §4.1).
    pub instance: Option<String>,
    /// `reg-id`: which of the device's flows.
    pub reg_id: Option<u32>,
    /// The Call-ID of the REGISTER that made it last.
    pub call_id: String,
    /// The CSeq of that REGISTER.
    pub cseq: u32,
    /// When it was made or refreshed last.
    pub refreshed_at: Instant,
    /// When it ends unless refreshed.
    pub expires_at: Instant,
    /// When its flow is to be kept alive next; only behind a NAT, or when it is a connection.
    pub(super) keep_alive_at: Option<Instant>,
}

impl Binding {
    /// What is left of its life.
    pub fn expires_in(&self, now: Instant) -> Duration {
        self.expires_at.saturating_duration_since(now)
    }

    /// Whether the contact is not the address that the REGISTER came from: a NAT is between, or a name.
    pub fn is_behind_nat(&self) -> bool {
        is_behind_nat(&self.contact, &self.flow)
    }

    /// The way of requests to it: the flow, or over TCP to the phone's own address where it registered by datagrams and
    /// its contact asks for connections (RFC 3263 §4.1). To another address than the one that it was seen at nobody
    /// connects: anybody could name any.
    pub fn way(&self) -> Flow {
        let wants_tcp =
            self.contact.param("transport").is_some_and(|wanted| wanted.eq_ignore_ascii_case("tcp"));
        let seen = self.flow.remote.ip();
        if self.flow.protocol.is_reliable() || !wants_tcp || device_ip(&self.contact) != Some(seen) {
            return self.flow;
        }
        let port = self.contact.port().unwrap_or(Protocol::Tcp.default_port());
        Flow::tcp_to(SocketAddr::new(seen, port))
    }

    /// Whether it is of the same device as `contact`, reached by `flow`: it says the same address and port of itself and
    /// is seen at the same address. Phones behind one NAT or on one machine differ in the first, those of two networks
    /// in the second.
    pub(super) fn is_beside(&self, contact: &Uri, flow: &Flow) -> bool {
        let own = |contact: &Uri| {
            Some((device_ip(contact)?, contact.port().unwrap_or(flow.protocol.default_port())))
        };
        own(&self.contact).is_some()
            && own(&self.contact) == own(contact)
            && self.flow.remote.ip() == flow.remote.ip()
    }

    /// Whether another registration of `contact` concerns this binding: the same address (RFC 3261 §19.1.4), or the
    /// same flow of the same device, wherever it moved.
    pub(super) fn is_of(&self, contact: &Uri, instance: Option<&str>, reg_id: Option<u32>) -> bool {
        let same_device = instance.is_some() && self.instance.as_deref() == instance && self.reg_id == reg_id;
        same_device || self.contact.is_equivalent(contact)
    }

    /// When something has to be done about it.
    pub(super) fn wakes_at(&self) -> Instant {
        self.keep_alive_at.map_or(self.expires_at, |at| at.min(self.expires_at))
    }
}

/// The address that a contact names.
fn device_ip(contact: &Uri) -> Option<IpAddr> {
    contact.host().and_then(Host::ip).map(|ip| ip.to_canonical())
}

/// Whether a flow is lost when nothing uses it: a NAT forgets it, or we close a connection on which nothing moves. The
/// phone could be reached by no other.
pub(super) fn needs_keep_alive(contact: &Uri, flow: &Flow) -> bool {
    flow.protocol.is_reliable() || is_behind_nat(contact, flow)
}

/// Whether a contact cannot be the address that its REGISTER came from.
fn is_behind_nat(contact: &Uri, flow: &Flow) -> bool {
    let port = contact.port().unwrap_or(flow.protocol.default_port());
    device_ip(contact) != Some(flow.remote.ip()) || port != flow.remote.port()
}

/// Whole seconds, rounded up: a binding is never said to end before it does.
pub(super) fn seconds_up(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
