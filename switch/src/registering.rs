//! Registers the switch with trunks: sends the REGISTERs of each [`Registrant`].

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_model::directory::{Secret, Trunk};
use sidetone_model::ids::TrunkId;
use sidetone_model::time::Now;
use sidetone_model::trunk_address::TrunkAddress;
use sidetone_model::trunk_status::{TrunkRegistration, TrunkRegistrationState};
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Contacts, Host, Method, Name, NameAddr, Request, Response, Uri};
use sidetone_sip::transaction::ClientKey;
use sidetone_sip::ua::{Draft, Retried, Ua};

use crate::ids::Ids;
use crate::registrant::{self, Registrant};
use crate::routing::Directory;
use crate::switch_io::{Notice, Output, Outputs};
use crate::trunk_access::{TrunkAccess, retry_after};
use crate::trunk_dns::Waiter;
use crate::trunk_health::TrunkProbes;
use crate::trunk_homes::TrunkHomes;
use crate::trunk_servers::{named_server, next_hops, proxy_route, server_uri};
use crate::trunks::Challenge;
use crate::wall_time::wall;

/// Our registrations with trunks.
#[derive(Default)]
pub(super) struct Registrations {
    links: HashMap<TrunkId, Link>,
    /// The trunk of each REGISTER in progress.
    requests: HashMap<ClientKey, TrunkId>,
    timers: BTreeSet<(Instant, TrunkId)>,
    /// Which trunks this node registers with.
    homes: TrunkHomes,
    /// The trunks with which another node registers now, and when this node removes its own registration.
    moving: BTreeSet<(Instant, TrunkId)>,
    /// Whether all registrations are being removed because the engine stops.
    is_leaving: bool,
    /// OPTIONS to trunks.
    probes: TrunkProbes,
}

/// The lower parts by which registrations send their requests.
pub(super) struct RegisterContext<'a> {
    pub(super) ua: &'a mut Ua,
    pub(super) trunks: &'a mut TrunkAccess,
    pub(super) ids: &'a mut Ids,
    pub(super) outputs: &'a mut Outputs,
}

/// The parameters of a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Login {
    /// The servers that REGISTERs are sent to, in the order to try, with those in their Request-URIs; at least one.
    servers: Vec<(TrunkAddress, TrunkAddress)>,
    /// The address of record.
    account: Option<Uri>,
    route: Option<String>,
    username: String,
    password: Secret,
}

struct Link {
    registrant: Registrant,
    login: Login,
    /// The index of the server in use.
    at: usize,
    /// All REGISTERs of one registration have the same Call-ID and an increasing CSeq (RFC 3261 §10.2).
    call_id: String,
    cseq: u32,
    /// The address that the last REGISTER was sent to, and whether it answered a challenge.
    sent: Option<(SocketAddr, bool)>,
    due: Option<Instant>,
    /// Whether it is being removed.
    is_ending: bool,
}

impl Registrations {
    /// Creates the state without registrations; `is_member`: other nodes may register instead of this one.
    pub(super) fn new(is_member: bool) -> Self {
        let homes = if is_member { TrunkHomes::Unknown } else { TrunkHomes::Alone };
        Registrations { homes, ..Registrations::default() }
    }

    /// Returns when the next registration has a timeout.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let due = self.timers.first().map(|(due, _)| *due);
        let moving = self.moving.first().map(|(due, _)| *due);
        due.into_iter().chain(moving).chain(self.probes.next_timeout()).min()
    }

    /// Returns the number of registrations, including those that are being removed.
    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    /// Returns the addresses of the servers that we are registered with now.
    pub(super) fn servers(&self, now: Instant) -> impl Iterator<Item = IpAddr> {
        self.links.values().filter_map(move |link| link.registrant.registered(now).map(|(to, _)| to.ip()))
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
        let mut links = self.links.iter().filter(|(_, link)| link.login.username == user);
        links.find(|(_, link)| link.registrant.is_registered_at(now, source)).map(|(id, _)| *id)
    }

    /// Starts and stops registrations to match the directory.
    pub(super) fn follow(&mut self, now: Now, directory: &Directory, context: &mut RegisterContext<'_>) {
        if self.is_leaving {
            return;
        }
        self.probes.follow(now.instant, directory);
        let mut wanted = HashMap::new();
        for trunk in directory.trunks().iter().filter(|trunk| trunk.register && !trunk.username.is_empty()) {
            let login = Login::of(trunk);
            if !login.servers.is_empty() {
                wanted.insert(trunk.id, login);
            }
        }
        let links = self.links.iter();
        let over: Vec<TrunkId> = links
            .filter(|(id, link)| wanted.get(id).is_none_or(|login| *login != link.login))
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            self.stop(now, id, context);
            // A changed registration starts again. If its removal is lost, the old binding expires by itself.
            if wanted.contains_key(&id) {
                self.remove(id);
            }
        }
        wanted.retain(|id, _| self.homes.is_ours(*id));
        for (id, login) in wanted {
            match self.links.get(&id) {
                // It is created again with another Call-ID. If its removal is lost, the old binding expires by itself.
                Some(link) if link.is_ending => self.remove(id),
                Some(_) => continue,
                None => {}
            }
            let registrant = Registrant::new(now.instant, StdRng::from_rng(context.ids.rng()));
            let call_id = context.ids.call(now.wall).to_string();
            let link =
                Link { registrant, login, at: 0, call_id, cseq: 0, sent: None, due: None, is_ending: false };
            self.links.insert(id, link);
            self.drive(now, id, context);
        }
    }

    /// Applies new homes of trunks. If another node becomes the home of a trunk, it registers before this one
    /// removes its registration, so that the carrier can call at any time.
    pub(super) fn share(
        &mut self,
        now: Now,
        homes: TrunkHomes,
        directory: &Directory,
        context: &mut RegisterContext<'_>,
    ) {
        self.homes = homes;
        let homes = &self.homes;
        self.moving.retain(|(_, id)| !homes.is_ours(*id));
        let moving: HashSet<TrunkId> = self.moving.iter().map(|(_, id)| *id).collect();
        let links = self.links.iter().filter(|(id, link)| !link.is_ending && !homes.is_ours(**id));
        let begun = links.map(|(id, _)| *id).filter(|id| !moving.contains(id));
        self.moving.extend(begun.map(|id| (now.instant + OVERLAP, id)));
        self.follow(now, directory, context);
    }

    /// Removes every registration.
    pub(super) fn leave(&mut self, now: Now, context: &mut RegisterContext<'_>) {
        self.is_leaving = true;
        let ids: Vec<TrunkId> = self.links.keys().copied().collect();
        for id in ids {
            self.stop(now, id, context);
        }
    }

    fn stop(&mut self, now: Now, id: TrunkId, context: &mut RegisterContext<'_>) {
        if let Some(link) = self.links.get_mut(&id) {
            link.is_ending = true;
        }
        self.feed(now, id, registrant::Input::Stop, context);
    }

    /// Passes the resolved addresses of a trunk's name to its registration.
    pub(super) fn resolved(&mut self, now: Now, id: TrunkId, context: &mut RegisterContext<'_>) {
        let Some((server, _)) = self.links.get(&id).and_then(Link::server) else { return };
        let RegisterContext { trunks, ids, outputs, .. } = context;
        let addresses = trunks.last(id, server, ids.rng(), outputs);
        self.feed(now, id, registrant::Input::Addresses(addresses), context);
    }

    /// Handles the response to a request outside of dialogs, if it was our REGISTER.
    pub(super) fn answered(
        &mut self,
        now: Now,
        key: ClientKey,
        flow: &Flow,
        response: &Response,
        request: Option<Request>,
        context: &mut RegisterContext<'_>,
    ) {
        if response.status().is_provisional() {
            return;
        }
        if self.probes.ended(now, key, true, &mut context.trunks.health) {
            return;
        }
        let Some(id) = self.requests.remove(&key) else { return };
        let status = response.status().as_u16();
        if matches!(status, 401 | 407)
            && let Some(request) = request
        {
            match self.authorize(now, (id, flow), response, request, context) {
                Some(key) => {
                    self.requests.insert(key, id);
                    return;
                }
                None => context.outputs.push_back(Output::Notice(Notice::Credentials(id))),
            }
            context.trunks.health.refused(now, id, flow.remote, &Method::Register, Some(response));
            let input = registrant::Input::Refused {
                status,
                min_expires_s: None,
                retry_after: retry_after(response),
            };
            return self.feed(now, id, input, context);
        }
        let input = if response.status().is_success() {
            registrant::Input::Granted(granted_s(response, request.as_ref()))
        } else {
            context.trunks.health.refused(now, id, flow.remote, &Method::Register, Some(response));
            registrant::Input::Refused {
                status,
                min_expires_s: response.min_expires().filter(|_| status == 423),
                retry_after: retry_after(response),
            }
        };
        self.feed(now, id, input, context);
    }

    /// Handles a REGISTER without a response.
    pub(super) fn unanswered(&mut self, now: Now, key: ClientKey, context: &mut RegisterContext<'_>) {
        if self.probes.ended(now, key, false, &mut context.trunks.health) {
            return;
        }
        if let Some(id) = self.requests.remove(&key) {
            if let Some((to, _)) = self.links.get(&id).and_then(|link| link.sent) {
                context.trunks.health.refused(now, id, to, &Method::Register, None);
            }
            self.feed(now, id, registrant::Input::Silence, context);
        }
    }

    /// Feeds a timeout to the registrations that are due.
    pub(super) fn timeout(&mut self, now: Now, context: &mut RegisterContext<'_>) {
        while let Some((due, id)) = self.timers.first().copied()
            && due <= now.instant
        {
            self.timers.remove(&(due, id));
            self.feed(now, id, registrant::Input::Timeout, context);
        }
        while let Some((due, id)) = self.moving.first().copied()
            && due <= now.instant
        {
            self.moving.remove(&(due, id));
            self.stop(now, id, context);
        }
        while let Some((id, servers)) = self.probes.pop_due(now.instant) {
            for server in servers {
                for address in context.trunks.addresses_of(id, &server) {
                    if let Ok(flow) = context.trunks.flow_to(&server, address) {
                        self.probes.send(now.instant, id, &server, flow, context.ua);
                    }
                }
            }
        }
    }

    /// Returns the state of the registration of a trunk; `None` when it does not register.
    pub(super) fn status(&self, now: Now, id: TrunkId) -> Option<TrunkRegistration> {
        let registrant = &self.links.get(&id)?.registrant;
        let registered = registrant.registered(now.instant);
        let state = match registered {
            Some(_) => TrunkRegistrationState::Registered,
            None if registrant.is_failing() => TrunkRegistrationState::Failed,
            None => TrunkRegistrationState::Registering,
        };
        Some(TrunkRegistration {
            state,
            address: registered.map(|(to, _)| to.to_string()),
            expires_at: registered.map(|(_, until)| wall(now, until)),
        })
    }

    fn feed(&mut self, now: Now, id: TrunkId, input: registrant::Input, context: &mut RegisterContext<'_>) {
        if let Some(link) = self.links.get_mut(&id) {
            link.registrant.handle_input(now.instant, input);
            self.drive(now, id, context);
        }
    }

    fn drive(&mut self, now: Now, id: TrunkId, context: &mut RegisterContext<'_>) {
        while let Some(link) = self.links.get_mut(&id)
            && let Some(output) = link.registrant.poll_output()
        {
            match output {
                registrant::Output::Lookup => {
                    let RegisterContext { trunks, ids, outputs, .. } = context;
                    // The next server of the trunk may accept the REGISTER that the last one refused.
                    link.at += usize::from(link.registrant.is_failing());
                    let waiter = (id, Waiter::Trunk(id));
                    let Some((server, _)) = link.server() else { return };
                    let found = trunks.lookup(now.instant, server, waiter, ids.rng(), outputs);
                    if let Some(addresses) = found {
                        let input = registrant::Input::Addresses(addresses);
                        link.registrant.handle_input(now.instant, input);
                    }
                }
                registrant::Output::Register { to, expires_s } => {
                    if self.send(now, id, to, expires_s, context).is_none()
                        && let Some(link) = self.links.get_mut(&id)
                    {
                        link.registrant.handle_input(now.instant, registrant::Input::Silence);
                    }
                }
                registrant::Output::Registered => {
                    context.outputs.push_back(Output::Notice(Notice::Registered(id)));
                }
                registrant::Output::Failed(status) => {
                    context.outputs.push_back(Output::Notice(Notice::Unregistered(id, status)));
                }
            }
        }
        let Some(link) = self.links.get_mut(&id) else { return };
        let due = link.registrant.next_timeout();
        if let Some(before) = std::mem::replace(&mut link.due, due) {
            self.timers.remove(&(before, id));
        }
        if let Some(due) = due {
            self.timers.insert((due, id));
        }
        if link.registrant.is_gone() {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: TrunkId) {
        if let Some(due) = self.links.remove(&id).and_then(|link| link.due) {
            self.timers.remove(&(due, id));
        }
        // Responses that arrive later belong to the removed registration.
        self.requests.retain(|_, trunk| *trunk != id);
    }

    fn send(
        &mut self,
        now: Now,
        id: TrunkId,
        to: SocketAddr,
        expires_s: u32,
        context: &mut RegisterContext<'_>,
    ) -> Option<()> {
        let link = self.links.get_mut(&id)?;
        let (hop, named) = link.server()?;
        let flow = context.trunks.flow_to(hop, to).ok()?;
        let server = server_uri(named)?;
        let uri = server.to_string();
        let account = link.login.account.clone().unwrap_or(server);
        let address = NameAddr::new(account.with_user(&link.login.username)).to_string();
        link.cseq += 1;
        let mut draft = Draft::new(Method::Register, uri.clone(), address.clone(), address)
            .sequence(link.call_id.clone(), link.cseq)
            .header("Expires", expires_s.to_string());
        if let Some(route) = &link.login.route {
            draft = draft.header(Name::Route.as_str(), route);
        }
        if let Some((header, value)) = context.trunks.state.credentials(id, flow.remote, "REGISTER", &uri) {
            draft = draft.header(header.as_str(), value);
        }
        link.sent = Some((flow.remote, false));
        let key = context.ua.request(now.instant, flow, draft).ok()?;
        self.requests.insert(key, id);
        Some(())
    }

    fn authorize(
        &mut self,
        now: Now,
        (id, flow): (TrunkId, &Flow),
        response: &Response,
        request: Request,
        context: &mut RegisterContext<'_>,
    ) -> Option<ClientKey> {
        let link = self.links.get_mut(&id)?;
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
        let extra = context.trunks.state.answer(id, challenge)?;
        link.sent = Some((to, true));
        link.cseq += 1; // The repeated request increments its own CSeq (RFC 3261 §22.2).
        let out = context.trunks.flow_to(&link.server()?.0, to).ok()?;
        match context.ua.retry(now.instant, out, request, &extra) {
            Ok(Retried::Transaction(key)) => Some(key),
            _ => None,
        }
    }
}

impl Link {
    /// Returns the server that REGISTERs are sent to now, and the server in their Request-URI.
    fn server(&self) -> Option<&(TrunkAddress, TrunkAddress)> {
        self.login.servers.get(self.at % self.login.servers.len().max(1))
    }
}

impl Login {
    fn of(trunk: &Trunk) -> Self {
        let hops = next_hops(trunk).into_iter();
        let has_domain = !trunk.interop.from_domain.is_empty();
        let domain = Host::parse(&trunk.interop.from_domain).ok().filter(|_| has_domain);
        Login {
            servers: hops.filter_map(|hop| named_server(trunk, &hop).map(|named| (hop, named))).collect(),
            account: domain.map(|host| Uri::sip(host, None)),
            route: proxy_route(trunk),
            username: trunk.username.clone(),
            password: trunk.password.clone(),
        }
    }
}

/// How long this node stays registered after another node has become the trunk's home.
const OVERLAP: Duration = Duration::from_secs(2);

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
