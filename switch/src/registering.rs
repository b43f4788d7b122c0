//! Registers the switch with trunks: sends the REGISTERs of each [`Registrant`].

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_model::directory::Secret;
use sidetone_model::ids::TrunkId;
use sidetone_model::trunk_address::TrunkAddress;
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Contacts, Method, NameAddr, Request, Response, Uri};
use sidetone_sip::transaction::ClientKey;
use sidetone_sip::ua::{Draft, Retried};

use crate::machine::{Notice, Now, Output, Switch};
use crate::names::Waiter;
use crate::outbound::{retry_after, server_uri};
use crate::registrant::{self, Registrant};
use crate::routing::Directory;
use crate::trunks::Challenge;

/// Our registrations with trunks.
#[derive(Default)]
pub(super) struct Registrations {
    links: HashMap<TrunkId, Link>,
    /// The trunk of each REGISTER in progress.
    requests: HashMap<ClientKey, TrunkId>,
    timers: BTreeSet<(Instant, TrunkId)>,
    /// Whether all registrations are being removed because the engine stops.
    is_leaving: bool,
}

struct Link {
    registrant: Registrant,
    server: TrunkAddress,
    username: String,
    password: Secret,
    /// All REGISTERs of one registration have the same Call-ID and an increasing CSeq (RFC 3261 §10.2).
    call_id: String,
    cseq: u32,
    /// The address that the last REGISTER was sent to, and whether it answered a challenge.
    sent: Option<(SocketAddr, bool)>,
    due: Option<Instant>,
}

impl Registrations {
    /// Returns when the next registration has a timeout.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Returns the number of registrations, including those that are being removed.
    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    /// Returns the addresses of the servers that we are registered with now.
    pub(super) fn servers(&self, now: Instant) -> impl Iterator<Item = IpAddr> {
        self.links.values().filter_map(move |link| link.registrant.registered_at(now))
    }

    /// Whether a trunk's calls may come from that address because we are registered there.
    pub(super) fn is_registered_from(&self, now: Instant, trunk: TrunkId, source: IpAddr) -> bool {
        let source = source.to_canonical();
        self.links.get(&trunk).is_some_and(|link| link.registrant.is_registered_at(now, source))
    }

    /// Returns the trunk whose account `user` is, if calls from `source` may be for it. A registrar calls the
    /// Contact that we registered (RFC 3261 §10.2.1), which contains the account, not the number.
    pub(super) fn account(&self, now: Instant, user: &str, source: IpAddr) -> Option<TrunkId> {
        let source = source.to_canonical();
        let mut links = self.links.iter().filter(|(_, link)| link.username == user);
        links.find(|(_, link)| link.registrant.is_registered_at(now, source)).map(|(id, _)| *id)
    }
}

impl Switch {
    /// Starts and stops registrations to match the directory.
    pub(super) fn follow_registrations(&mut self, now: Now, directory: &Directory) {
        if self.registrations.is_leaving {
            return;
        }
        let mut wanted = HashMap::new();
        for trunk in directory.trunks().iter().filter(|trunk| trunk.register && !trunk.username.is_empty()) {
            let server = trunk.address.as_deref().and_then(|address| address.parse::<TrunkAddress>().ok());
            if let Some(server) = server {
                wanted.insert(trunk.id, (server, trunk.username.clone(), trunk.password.clone()));
            }
        }
        let links = self.registrations.links.iter();
        let over: Vec<TrunkId> = links
            .filter(|(id, link)| {
                wanted.get(id).is_none_or(|(server, username, password)| {
                    *server != link.server || *username != link.username || *password != link.password
                })
            })
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            self.tell_registrant(now, id, registrant::Input::Stop);
            // A changed registration starts again. If its removal is lost, the old binding expires by itself.
            if wanted.contains_key(&id) {
                self.remove_registration(id);
            }
        }
        for (id, (server, username, password)) in wanted {
            if self.registrations.links.contains_key(&id) {
                continue;
            }
            let registrant = Registrant::new(now.instant, StdRng::from_rng(&mut self.rng));
            let call_id = self.call_id(now.wall).to_string();
            let link =
                Link { registrant, server, username, password, call_id, cseq: 0, sent: None, due: None };
            self.registrations.links.insert(id, link);
            self.drive_registrant(now, id);
        }
    }

    /// Removes every registration.
    pub(super) fn leave_trunks(&mut self, now: Now) {
        self.registrations.is_leaving = true;
        let ids: Vec<TrunkId> = self.registrations.links.keys().copied().collect();
        for id in ids {
            self.tell_registrant(now, id, registrant::Input::Stop);
        }
    }

    /// Passes the resolved addresses of a trunk's name to its registration.
    pub(super) fn registrant_resolved(&mut self, now: Now, id: TrunkId) {
        let Some(link) = self.registrations.links.get(&id) else { return };
        let addresses = self.names.last(&link.server, &mut self.rng);
        let addresses = self.reachable(id, addresses);
        self.tell_registrant(now, id, registrant::Input::Addresses(addresses));
    }

    /// Handles the response to a request outside of dialogs, if it was our REGISTER.
    pub(super) fn register_answered(
        &mut self,
        now: Now,
        key: ClientKey,
        flow: &Flow,
        response: &Response,
        request: Option<Request>,
    ) {
        if response.status().is_provisional() {
            return;
        }
        let Some(id) = self.registrations.requests.remove(&key) else { return };
        let status = response.status().as_u16();
        if matches!(status, 401 | 407)
            && let Some(request) = request
        {
            match self.authorize_register(now, id, flow, response, request) {
                Some(key) => {
                    self.registrations.requests.insert(key, id);
                    return;
                }
                None => self.push(Output::Notice(Notice::Credentials(id))),
            }
            let input = registrant::Input::Refused {
                status,
                min_expires_s: None,
                retry_after: retry_after(response),
            };
            return self.tell_registrant(now, id, input);
        }
        let input = if response.status().is_success() {
            registrant::Input::Granted(granted_s(response, request.as_ref()))
        } else {
            registrant::Input::Refused {
                status,
                min_expires_s: response.min_expires().filter(|_| status == 423),
                retry_after: retry_after(response),
            }
        };
        self.tell_registrant(now, id, input);
    }

    /// Handles a REGISTER without a response.
    pub(super) fn register_unanswered(&mut self, now: Now, key: ClientKey) {
        if let Some(id) = self.registrations.requests.remove(&key) {
            self.tell_registrant(now, id, registrant::Input::Silence);
        }
    }

    /// Feeds a timeout to the registrations that are due.
    pub(super) fn wake_registrants(&mut self, now: Now) {
        while let Some((due, id)) = self.registrations.timers.first().copied()
            && due <= now.instant
        {
            self.registrations.timers.remove(&(due, id));
            self.tell_registrant(now, id, registrant::Input::Timeout);
        }
    }

    fn tell_registrant(&mut self, now: Now, id: TrunkId, input: registrant::Input) {
        if let Some(link) = self.registrations.links.get_mut(&id) {
            link.registrant.handle_input(now.instant, input);
            self.drive_registrant(now, id);
        }
    }

    fn drive_registrant(&mut self, now: Now, id: TrunkId) {
        while let Some(link) = self.registrations.links.get_mut(&id)
            && let Some(output) = link.registrant.poll_output()
        {
            match output {
                registrant::Output::Lookup => {
                    let server = link.server.clone();
                    let waiter = Waiter::Trunk(id);
                    let found = self.names.lookup(now.instant, &server, waiter, &mut self.rng);
                    let found = found.map(|addresses| self.reachable(id, addresses));
                    if let (Some(addresses), Some(link)) = (found, self.registrations.links.get_mut(&id)) {
                        let input = registrant::Input::Addresses(addresses);
                        link.registrant.handle_input(now.instant, input);
                    }
                }
                registrant::Output::Register { to, expires_s } => {
                    if self.send_register(now, id, to, expires_s).is_none()
                        && let Some(link) = self.registrations.links.get_mut(&id)
                    {
                        link.registrant.handle_input(now.instant, registrant::Input::Silence);
                    }
                }
                registrant::Output::Registered => {
                    self.push(Output::Notice(Notice::Registered(id)));
                }
                registrant::Output::Failed(status) => {
                    self.push(Output::Notice(Notice::Unregistered(id, status)));
                }
            }
        }
        let Some(link) = self.registrations.links.get_mut(&id) else { return };
        let due = link.registrant.next_timeout();
        if let Some(before) = std::mem::replace(&mut link.due, due) {
            self.registrations.timers.remove(&(before, id));
        }
        if let Some(due) = due {
            self.registrations.timers.insert((due, id));
        }
        if link.registrant.is_gone() {
            self.remove_registration(id);
        }
    }

    fn remove_registration(&mut self, id: TrunkId) {
        if let Some(due) = self.registrations.links.remove(&id).and_then(|link| link.due) {
            self.registrations.timers.remove(&(due, id));
        }
        // Responses that arrive later belong to the removed registration.
        self.registrations.requests.retain(|_, trunk| *trunk != id);
    }

    fn send_register(&mut self, now: Now, id: TrunkId, to: SocketAddr, expires_s: u32) -> Option<()> {
        let flow = self.config.reach.flow_to(to).ok()?;
        let link = self.registrations.links.get_mut(&id)?;
        let server = server_uri(&link.server)?;
        let address = NameAddr::new(server.clone().with_user(&link.username)).to_string();
        let uri = server.to_string();
        link.cseq += 1;
        let mut draft = Draft::new(Method::Register, uri.clone(), address.clone(), address)
            .sequence(link.call_id.clone(), link.cseq)
            .header("Expires", expires_s.to_string());
        if let Some((header, value)) = self.trunks.credentials(id, flow.remote, "REGISTER", &uri) {
            draft = draft.header(header.as_str(), value);
        }
        link.sent = Some((flow.remote, false));
        let key = self.ua.request(now.instant, flow, draft).ok()?;
        self.registrations.requests.insert(key, id);
        Some(())
    }

    fn authorize_register(
        &mut self,
        now: Now,
        id: TrunkId,
        flow: &Flow,
        response: &Response,
        request: Request,
    ) -> Option<ClientKey> {
        let link = self.registrations.links.get_mut(&id)?;
        let (to, tried) = link.sent?;
        let challenge = Challenge {
            to,
            from: flow.remote,
            response,
            method: "REGISTER",
            uri: request.uri(),
            tried,
            in_dialog: false,
        };
        let extra = self.trunks.answer(id, challenge)?;
        link.sent = Some((to, true));
        link.cseq += 1; // The repetition counts on by itself (RFC 3261 §22.2).
        let out = self.config.reach.flow_to(to).ok()?;
        match self.ua.retry(now.instant, out, request, &extra) {
            Ok(Retried::Transaction(key)) => Some(key),
            _ => None,
        }
    }
}

/// Returns the seconds that a trunk granted: the expiry of our own Contact, else the Expires header, else the
/// requested value.
fn granted_s(response: &Response, request: Option<&Request>) -> u32 {
    let own = request.and_then(|request| match request.contacts() {
        Ok(contacts) => contacts.first().map(|contact| contact.uri.clone()),
        Err(_) => None,
    });
    let is_own = |uri: &Uri| own.as_ref().is_some_and(|own| own.is_equivalent(uri));
    let listed = match response.contacts() {
        Ok(Contacts::List(list)) => {
            list.iter().find(|contact| is_own(&contact.uri)).and_then(NameAddr::expires)
        }
        _ => None,
    };
    listed.or(response.expires()).or(request.and_then(|request| request.expires())).unwrap_or_default()
}
