//! One binding of an address of record to a contact.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::flow::{Flow, Protocol};
use crate::message::{Host, NameAddr, Uri};
use crate::reach::is_public;
use crate::registrar::Reachability;

/// Identifies a binding for its life; a refresh keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BindingId(pub u64);

/// A registered contact and the path to it.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Its identifier.
    pub id: BindingId,
    /// The contact as registered: the Request-URI of requests to it.
    pub contact: Uri,
    /// The flow for requests to it: the one on which the REGISTER arrived, whatever the contact is.
    pub flow: Flow,
    /// Routes between us and the phone, nearest first (RFC 3327 §5.3).
    pub path: Vec<NameAddr>,
    /// Preference in thousandths, 0–1,000.
    pub q_permille: u16,
    /// `+sip.instance`: identifies the device independently of its address (RFC 5626 §4.1).
    pub instance: Option<String>,
    /// `reg-id`: identifies one of the device's flows.
    pub reg_id: Option<u32>,
    /// Whether the device supports ICE according to `Supported: ice` or `+sip.ice` (RFC 5768); false for a binding at
    /// another node.
    pub has_ice: bool,
    /// The User-Agent of the last REGISTER for it, at most 200 characters.
    pub user_agent: Option<Arc<str>>,
    /// The Call-ID of the last REGISTER for it.
    pub call_id: String,
    /// The CSeq of that REGISTER.
    pub cseq: u32,
    /// When it was created or last refreshed.
    pub refreshed_at: Instant,
    /// The time at which it expires without a refresh.
    pub expires_at: Instant,
    /// The results of its probes.
    pub reachability: Reachability,
    /// For a binding at another node: the flow of its phone there; `flow` then leads to that node.
    pub device_flow: Option<Flow>,
    /// When its next probe is due; `None` also while one waits to be sent.
    pub(super) probe_at: Option<Instant>,
}

impl Binding {
    /// The contact as a Request-URI, which has no headers (RFC 3261 §19.1.1).
    pub fn target(&self) -> Uri {
        let mut target = self.contact.clone();
        target.clear_headers();
        target
    }

    /// Whether its phone is registered at another node.
    pub fn is_elsewhere(&self) -> bool {
        self.device_flow.is_some()
    }

    /// The flow on which its phone registered, here or at another node.
    pub fn seen_at(&self) -> Flow {
        self.device_flow.unwrap_or(self.flow)
    }

    /// Remaining time until it expires.
    pub fn expires_in(&self, now: Instant) -> Duration {
        self.expires_at.saturating_duration_since(now)
    }

    /// Whether the contact differs from the source of the REGISTER: because of a NAT, or because it is a host
    /// name.
    pub fn is_behind_nat(&self) -> bool {
        is_behind_nat(&self.contact, &self.flow)
    }

    /// The flow for requests to it. Usually the registered one; TCP to the phone's own address when it
    /// registered over UDP and its contact requests TCP (RFC 3263 §4.1). Connections are opened only to the
    /// address from which the REGISTER came, because a contact could name any address.
    pub fn way(&self) -> Flow {
        let wants_tcp =
            self.contact.param("transport").is_some_and(|wanted| wanted.eq_ignore_ascii_case("tcp"));
        let seen = self.flow.remote.ip();
        if self.is_elsewhere()
            || self.flow.protocol.is_reliable()
            || !wants_tcp
            || device_ip(&self.contact) != Some(seen)
        {
            return self.flow;
        }
        let port = self.contact.port().unwrap_or(Protocol::Tcp.default_port());
        Flow::tcp_to(SocketAddr::new(seen, port))
    }

    /// Whether it belongs to the same device as `contact`, reached by `flow`: its contact has the same
    /// address and port, and its source has the same address. Phones behind one NAT or on one machine differ
    /// in the contact, those of two networks in the source.
    pub(super) fn is_beside(&self, contact: &Uri, flow: &Flow) -> bool {
        let own = |contact: &Uri| {
            Some((device_ip(contact)?, contact.port().unwrap_or(flow.protocol.default_port())))
        };
        own(&self.contact).is_some()
            && own(&self.contact) == own(contact)
            && self.flow.remote.ip() == flow.remote.ip()
    }

    /// Whether a registration of `contact` concerns this binding: the address is the same (RFC 3261 §19.1.4),
    /// or it is the same flow of the same device, which may have moved.
    pub(super) fn is_of(&self, contact: &Uri, instance: Option<&str>, reg_id: Option<u32>) -> bool {
        let same_device = instance.is_some() && self.instance.as_deref() == instance && self.reg_id == reg_id;
        same_device || self.contact.is_equivalent(contact)
    }

    /// When the binding next needs processing.
    pub(super) fn wakes_at(&self) -> Instant {
        self.probe_at.map_or(self.expires_at, |at| at.min(self.expires_at))
    }
}

/// The IP address in a contact.
fn device_ip(contact: &Uri) -> Option<IpAddr> {
    contact.host().and_then(Host::ip).map(|ip| ip.to_canonical())
}

/// Whether a flow is lost when it is not used: a NAT drops it, or we close an idle connection. The phone is reachable
/// only on this flow. A phone behind a NAT may have its public address as its contact, through STUN or because its
/// router rewrites SIP.
pub(super) fn needs_keep_alive(contact: &Uri, flow: &Flow) -> bool {
    flow.protocol.is_reliable() || is_behind_nat(contact, flow) || is_public(flow.remote.ip().to_canonical())
}

/// Whether a contact differs from the source of its REGISTER.
fn is_behind_nat(contact: &Uri, flow: &Flow) -> bool {
    let port = contact.port().unwrap_or(flow.protocol.default_port());
    device_ip(contact) != Some(flow.remote.ip()) || port != flow.remote.port()
}

/// Whole seconds, rounded up, so that a binding never ends later than reported.
pub(super) fn seconds_up(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
