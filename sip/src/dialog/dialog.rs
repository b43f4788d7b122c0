//! One dialog: its identity, its sequence numbers, its target and its route (RFC 3261 §12).

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use thiserror::Error;

use crate::dialog::RouteSet;
use crate::flow::Flow;
use crate::message::{Headers, InvalidValue, Malformed, Method, Name, Request, Response, Uri};
use crate::reach::is_public;
use crate::transaction::outgoing::MAX_FORWARDS;

/// Identifies a dialog at one of its ends (§12).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DialogId {
    /// The Call-ID.
    pub call_id: String,
    /// Our tag.
    pub local_tag: String,
    /// The peer's tag; empty for a peer of RFC 2543 that sends none.
    pub remote_tag: String,
}

/// Our role in the first INVITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// We sent it.
    Uac,
    /// We answered it.
    Uas,
}

/// The state of a dialog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Created by a provisional response.
    Early,
    /// Confirmed by a 2xx.
    Confirmed,
    /// A BYE was sent or received.
    Terminated,
}

/// Why a request inside a dialog is refused. Completes "failed to take the request: …".
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum DialogError {
    /// Its CSeq is lower than an earlier one: answer 500 (§12.2.2).
    #[error("the request is out of order")]
    OutOfOrder,
    /// A header that the dialog needs cannot be parsed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// A dialog with one peer.
#[derive(Clone, Debug)]
pub struct Dialog {
    id: DialogId,
    role: Role,
    state: State,
    /// From header of our requests and To header of our responses, with our tag.
    local: Bytes,
    /// To header of our requests, with the peer's tag.
    remote: Bytes,
    local_cseq: u32,
    remote_cseq: Option<u32>,
    routes: RouteSet,
    remote_target: Uri,
    contact: String,
    /// The flow on which the peer's messages arrive.
    flow: Flow,
    /// Whether requests use the flow although the peer's messages name another address: because of a NAT, or because
    /// the user chose the flow.
    keeps_flow: bool,
    /// The ACK of the latest 2xx, with its CSeq number and its flow, for sending it again (§13.2.2.4).
    last_ack: Option<(u32, Flow, Bytes)>,
}

impl Dialog {
    /// The dialog of an INVITE that we answer with `local_tag` (§12.1.1).
    ///
    /// # Errors
    ///
    /// When From, To, Contact or Record-Route cannot be read.
    pub fn uas(request: &Request, local_tag: &str, flow: Flow, contact: String) -> Result<Self, DialogError> {
        let from = request.from().map_err(|_| Malformed("From"))?;
        let id = DialogId {
            call_id: request.call_id().to_owned(),
            local_tag: local_tag.to_owned(),
            remote_tag: from.tag().unwrap_or_default().to_owned(),
        };
        // Display names need not be UTF-8; the tag is appended after any value.
        let mut local = header(request, Name::To)?.to_vec();
        local.extend_from_slice(b";tag=");
        local.extend_from_slice(local_tag.as_bytes());
        let via = request.via_top().map_err(|_| Malformed("Via"))?;
        let sent_from = SocketAddr::new(flow.remote.ip(), flow.remote.port());
        let keeps_flow = via.host.ip().is_some_and(|ip| SocketAddr::new(ip, via.sent_by_port()) != sent_from);
        Ok(Self {
            role: Role::Uas,
            state: State::Early,
            local: local.into(),
            remote: header(request, Name::From)?,
            local_cseq: 0,
            remote_cseq: Some(request.cseq().map_err(|_| Malformed("CSeq"))?.number),
            routes: RouteSet::of_request(request)?,
            // §8.1.1.8 requires a Contact; without one the sender's own address is the best assumption.
            remote_target: target(request)?.unwrap_or(from.uri),
            contact,
            flow,
            keeps_flow,
            last_ack: None,
            id,
        })
    }

    /// The dialog that a response creates for the sender of `invite` (§12.1.2).
    ///
    /// # Errors
    ///
    /// When To, Contact or Record-Route cannot be read.
    pub fn uac(
        invite: &Request,
        response: &Response,
        flow: Flow,
        contact: String,
    ) -> Result<Self, DialogError> {
        let cseq = invite.cseq().map_err(|_| Malformed("CSeq"))?.number;
        let from = invite.from().map_err(|_| Malformed("From"))?;
        let to = response.to().map_err(|_| Malformed("To"))?;
        let id = DialogId {
            call_id: invite.call_id().to_owned(),
            local_tag: from.tag().unwrap_or_default().to_owned(),
            remote_tag: to.tag().unwrap_or_default().to_owned(),
        };
        let remote_target = match target(response)? {
            Some(target) => target,
            None => Uri::parse(invite.uri())?,
        };
        let mut dialog = Self {
            id,
            role: Role::Uac,
            state: State::Early,
            local: header(invite, Name::From)?,
            remote: header(response, Name::To)?,
            local_cseq: cseq,
            remote_cseq: None,
            routes: RouteSet::of_response(response)?,
            remote_target,
            contact,
            flow,
            keeps_flow: false,
            last_ack: None,
        };
        if response.status().as_u16() >= 200 {
            dialog.state = State::Confirmed;
        }
        Ok(dialog)
    }

    /// Confirms our early dialog with a 2xx: the route set is computed again, for the last time (§13.2.2.4).
    ///
    /// # Errors
    ///
    /// When Record-Route or Contact cannot be read.
    pub fn confirm_uac(&mut self, response: &Response) -> Result<(), DialogError> {
        if self.state == State::Early {
            self.routes = RouteSet::of_response(response)?;
        }
        self.state = State::Confirmed;
        self.refresh_target(response)
    }

    /// Confirms the dialog, because we send a 2xx.
    pub fn confirm_uas(&mut self) {
        self.state = State::Confirmed;
    }

    /// Ends the dialog, because a BYE was sent or received.
    pub fn terminate(&mut self) {
        self.state = State::Terminated;
    }

    /// Checks a request of the peer against the sequence (§12.2.2).
    ///
    /// # Errors
    ///
    /// [`DialogError::OutOfOrder`] for a CSeq that is not higher than the last one.
    pub fn receive(&mut self, flow: Flow, request: &Request) -> Result<(), DialogError> {
        let number = request.cseq().map_err(|_| Malformed("CSeq"))?.number;
        // A new transaction with an equal number is not a retransmission either.
        if self.remote_cseq.is_some_and(|last| number <= last) {
            return Err(DialogError::OutOfOrder);
        }
        self.remote_cseq = Some(number);
        self.flow = flow;
        Ok(())
    }

    /// Uses the Contact of an INVITE or UPDATE of the peer that is not refused (§12.2.2, RFC 3311 §5.1).
    ///
    /// # Errors
    ///
    /// When Contact cannot be read.
    pub fn refresh_target_by(&mut self, request: &Request) -> Result<(), DialogError> {
        if refreshes_target(request.method())
            && let Some(target) = target(request)?
        {
            self.remote_target = target;
        }
        Ok(())
    }

    /// Uses the Contact of a 2xx to our INVITE or UPDATE (§12.2.1.2).
    ///
    /// # Errors
    ///
    /// When Contact cannot be read.
    pub fn refresh_target(&mut self, response: &Response) -> Result<(), DialogError> {
        if let Some(target) = target(response)? {
            self.remote_target = target;
        }
        Ok(())
    }

    /// The number of our next request; an ACK keeps the number of its INVITE.
    pub fn next_cseq(&mut self) -> u32 {
        self.local_cseq = (self.local_cseq + 1) % CSEQ_LIMIT;
        self.local_cseq
    }

    /// A request inside this dialog (§12.2.1.1), without body. `cseq` is from [`Dialog::next_cseq`]; for an
    /// ACK it is the number of its INVITE.
    ///
    /// # Errors
    ///
    /// When the peer's Contact or Record-Route do not give a valid header.
    pub fn request(&self, method: Method, cseq: u32) -> Result<Request, InvalidValue> {
        let (uri, routes) = self.routes.apply(&self.remote_target);
        let mut request = Request::new(method, uri)?;
        let method = request.method().clone();
        for route in routes {
            request.push(Name::Route, route)?;
        }
        request.push(Name::MaxForwards, MAX_FORWARDS)?;
        request.push_bytes(Name::From, &self.local)?;
        request.push_bytes(Name::To, &self.remote)?;
        request.push(Name::CallId, &self.id.call_id)?;
        request.push(Name::CSeq, format_args!("{cseq} {method}"))?;
        if !matches!(method, Method::Ack | Method::Bye | Method::Cancel) {
            request.push(Name::Contact, &self.contact)?;
        }
        Ok(request)
    }

    /// The flow for requests of this dialog.
    ///
    /// Over UDP, an IP address in the first route or the remote target is used, unless the peer is behind a NAT or the
    /// user chose the flow ([`Dialog::keep_to_flow`]). In all other cases, and for a host name, requests use the flow
    /// on which the peer's own messages arrive (for the reason of RFC 3581).
    pub fn route(&self) -> Flow {
        let hop = self.routes.next_hop(&self.remote_target);
        let address = hop.host().and_then(|host| host.ip());
        match address {
            Some(ip) if !self.flow.protocol.is_reliable() && self.is_reachable(ip) => {
                let port = hop.port().unwrap_or_else(|| self.flow.protocol.default_port());
                Flow { remote: SocketAddr::new(ip, port), ..self.flow }
            }
            _ => self.flow,
        }
    }

    /// Sends requests on the flow from now on, whatever the peer's Contact is; a route of proxies still applies.
    ///
    /// For a registered phone, which is reachable only on the flow of its REGISTER (RFC 5626 §5.3).
    pub fn keep_to_flow(&mut self) {
        self.keeps_flow = true;
    }

    /// Uses another flow to the peer from now on.
    pub fn move_to(&mut self, flow: Flow) {
        self.flow = flow;
    }

    /// The flow to the peer.
    pub fn flow(&self) -> Flow {
        self.flow
    }

    /// Stores the ACK of a 2xx.
    pub fn keep_ack(&mut self, cseq: u32, flow: Flow, bytes: Bytes) {
        self.last_ack = Some((cseq, flow, bytes));
    }

    /// The ACK to send again when the 2xx with this CSeq is repeated.
    pub fn ack_of(&self, cseq: u32) -> Option<(Flow, Bytes)> {
        self.last_ack.as_ref().filter(|(of, ..)| *of == cseq).map(|(_, flow, bytes)| (*flow, bytes.clone()))
    }

    /// The identity.
    pub fn id(&self) -> &DialogId {
        &self.id
    }

    /// Our role in the first INVITE.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// From header of our requests.
    pub fn local(&self) -> &[u8] {
        &self.local
    }

    /// To header of our requests.
    pub fn remote(&self) -> &[u8] {
        &self.remote
    }

    /// Contact header of our requests and responses.
    pub fn contact(&self) -> &str {
        &self.contact
    }

    /// The proxies of the dialog.
    pub fn routes(&self) -> &RouteSet {
        &self.routes
    }

    /// The peer's Contact.
    pub fn remote_target(&self) -> &Uri {
        &self.remote_target
    }

    fn is_reachable(&self, ip: IpAddr) -> bool {
        let same_family = ip.is_ipv4() == self.flow.remote.is_ipv4();
        let seen = self.flow.remote.ip();
        let keeps_flow = self.routes.is_empty() && self.keeps_flow;
        same_family && !ip.is_unspecified() && !keeps_flow && (is_public(ip) || !is_public(seen))
    }
}

/// Which requests carry a new remote target (§12.2, RFC 3311 §5.1, RFC 6665 §4.4.1).
fn refreshes_target(method: &Method) -> bool {
    matches!(method, Method::Invite | Method::Subscribe | Method::Update)
}

fn header(headers: &Headers, name: Name<'static>) -> Result<Bytes, Malformed> {
    headers.header_bytes(name).map(Bytes::copy_from_slice).ok_or(Malformed(name.as_str()))
}

/// The first Contact, in the form of a Request-URI.
fn target(headers: &Headers) -> Result<Option<Uri>, Malformed> {
    let contacts = headers.contacts().map_err(|_| Malformed("Contact"))?;
    Ok(contacts.first().map(|contact| {
        let mut uri = contact.uri.clone();
        uri.clear_headers();
        uri
    }))
}

/// CSeq numbers stay below 2³¹ (§8.1.1.5).
const CSEQ_LIMIT: u32 = 1 << 31;
