//! Senders of requests: admission of datagrams, identification of senders, and the challenge or refusal for a
//! sender that has not authenticated.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_model::directory::Trunk;
use sidetone_model::ids::ExtensionId;
use sidetone_model::time::Now;
use sidetone_sip::admission::{Admission, AdmissionConfig, Dropped, Grant};
use sidetone_sip::auth::{Algorithm, Authenticator, Refusal as AuthRefusal, fitting_challenges};
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Name, Request, StatusCode, glance};
use sidetone_sip::registrar::{self, Registrar};
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::{Reply, Standing, Ua};

use crate::admitting::{Rank, TrunkAddresses};
use crate::authentication::{Gate, Registered, Sender};
use crate::denied::{Denial, Denied};
use crate::guess_alerts::GuessAlerts;
use crate::node_entry::NodeEntries;
use crate::registering::Registrations;
use crate::routing::Directory;
use crate::shared::Shared;
use crate::switch_io::{Notice, Output, Outputs};
use crate::trunk_access::TrunkAccess;
use crate::trunk_servers::all_servers;

/// Admission and authentication of senders.
pub(super) struct Senders {
    gate: Gate,
    guess_alerts: GuessAlerts,
    admission: Admission,
    trunk_addresses: TrunkAddresses,
    md5_only: Vec<String>,
    /// The host names that peers of connections proved by their certificates.
    ///
    /// *Bounds*: the number of connections.
    proven_names: HashMap<Flow, Vec<String>>,
    /// Checks the assertions of other nodes; `None` for a single node.
    entries: Option<NodeEntries>,
}

/// The lower parts that identify a sender and respond to it.
pub(super) struct SenderContext<'a> {
    pub(super) ua: &'a mut Ua,
    pub(super) registrar: &'a Registrar,
    pub(super) directory: &'a Directory,
    pub(super) outputs: &'a mut Outputs,
}

impl Senders {
    pub(super) fn new(
        authenticator: Authenticator,
        admission: (AdmissionConfig, Instant),
        md5_only: Vec<String>,
        (directory, entries): (&Directory, Option<NodeEntries>),
        seed: u64,
    ) -> Self {
        let (config, epoch) = admission;
        Senders {
            gate: Gate::new(authenticator),
            guess_alerts: GuessAlerts::default(),
            admission: Admission::new(config, epoch, &mut StdRng::seed_from_u64(seed)),
            trunk_addresses: TrunkAddresses::of(directory),
            md5_only,
            proven_names: HashMap::new(),
            entries,
        }
    }

    /// Records the host names that the peer of a connection proved.
    pub(super) fn identified(&mut self, flow: Flow, names: Vec<String>) {
        self.proven_names.insert(flow, names);
    }

    /// Forgets a closed connection.
    pub(super) fn closed(&mut self, flow: &Flow) {
        self.proven_names.remove(flow);
    }

    /// Replaces the digest algorithms to offer, and the phones that get MD5 only.
    pub(super) fn configure(&mut self, digest: Vec<Algorithm>, md5_only: Vec<String>) {
        self.gate.offer(digest);
        self.md5_only = md5_only;
    }

    /// Updates the addresses of trunks after a change of the directory.
    pub(super) fn replace(&mut self, directory: &Directory) {
        self.trunk_addresses = TrunkAddresses::of(directory);
    }

    /// Removes everything authenticated by former credentials of extensions: bindings, subscriptions, and connections
    /// that no other binding uses. Also resets the failures, which were counted against the former passwords.
    pub(super) fn forget_changed_lines(&mut self, now: Now, after: &Directory, shared: &mut Shared) {
        let before = Arc::clone(&shared.directory);
        let mut flows = HashSet::new();
        for line in before.lines_changed_in(after) {
            let Some(organisation) = before.organisation(line.organisation_id) else { continue };
            shared.subscriptions.forget(line.id, after.extension(line.id).is_none());
            self.gate.forget_failures(&organisation.sip_domain, &line.number);
            let Some(aor) = before.aor(line) else { continue };
            let bindings = shared.registrar.bindings_of(&aor).iter().map(|binding| binding.flow);
            flows.extend(bindings.filter(|flow| flow.protocol.is_reliable()));
            shared.registrar.handle_input(now.instant, registrar::Input::Forget { aor: &aor });
        }
        shared.outputs.extend(shared.registrar.unused(flows).into_iter().map(Output::Close));
    }

    /// Decides whether a received datagram is read, and when. Takes a token from the sender's buckets.
    ///
    /// # Errors
    /// Why the datagram is dropped.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        flow: &Flow,
        datagram: &[u8],
        ua: &Ua,
        (registrations, trunks): (&Registrations, &TrunkAccess),
    ) -> Result<Rank, Dropped> {
        let seen = glance(datagram);
        match ua.standing(&seen) {
            Standing::Live(number) => self.admission.admit_live(now, number).map(|()| Rank::Urgent),
            Standing::NotSip => Err(Dropped::NotSip),
            Standing::Stray => Err(Dropped::Stray),
            // The driver passes on only datagrams from members of the cluster.
            Standing::New if self.entries.as_ref().is_some_and(|entries| entries.is_internal(flow)) => {
                Ok(Rank::New(Grant::Known))
            }
            Standing::New => {
                let source = flow.remote.ip();
                if self.trunk_addresses.is_old(now) {
                    let servers = registrations.servers(now).chain(trunks.source_ips());
                    self.trunk_addresses.registered(now, servers);
                }
                let (addresses, gate) = (&self.trunk_addresses, &self.gate);
                let is_trunk = || addresses.contains(source);
                let has_credentials =
                    || seen.authorization.is_some_and(|answer| gate.has_challenged(now, answer, source));
                self.admission.admit(now, flow.remote, is_trunk, has_credentials).map(Rank::New)
            }
        }
    }

    /// Returns the sender of an INVITE; challenges or refuses an unknown one.
    pub(super) fn caller(
        &mut self,
        now: Now,
        (key, flow): (&ServerKey, &Flow),
        request: &Request,
        dialled: &str,
        (registrations, trunks): (&Registrations, &TrunkAccess),
        context: SenderContext<'_>,
    ) -> Option<Sender> {
        let source = flow.remote.ip();
        if let Some(entry) = self.entries.as_ref().and_then(|entries| entries.read(flow, request)) {
            context.ua.prove(key);
            return Some(entry.sender);
        }
        let registrar = context.registrar;
        let names = self.proven_names.get(flow).map(Vec::as_slice).unwrap_or_default();
        let is_named = |trunk: &Trunk| {
            !names.is_empty() && all_servers(trunk).any(|server| names.contains(&server.host))
        };
        let registered = Registered {
            trunk: &|trunk| {
                is_named(trunk)
                    || trunks.is_source(trunk.id, flow)
                    || (trunk.register && registrations.is_registered_from(now.instant, trunk.id, source))
            },
            line: &|aor| registrar.is_registered_from(aor, now.instant, source),
        };
        let sender = self.gate.caller(now.instant, context.directory, request, dialled, source, registered);
        self.known(now, (key, flow), request, sender, context)
    }

    /// Returns the extension that sent a request that only a phone may send; challenges or refuses any other
    /// sender.
    pub(super) fn phone(
        &mut self,
        now: Now,
        (key, flow): (&ServerKey, &Flow),
        request: &Request,
        context: SenderContext<'_>,
    ) -> Option<ExtensionId> {
        let source = flow.remote.ip();
        let registrar = context.registrar;
        let registered = |aor: &str| registrar.is_registered_from(aor, now.instant, source);
        let sender = self.gate.phone(now.instant, context.directory, request, source, &registered);
        match self.known(now, (key, flow), request, sender, context)? {
            Sender::Extension(id) => Some(id),
            Sender::Challenge(..) | Sender::Limited(_) | Sender::Refused | Sender::Trunk(_) => None,
        }
    }

    /// Returns an identified sender; challenges or refuses any other.
    fn known(
        &mut self,
        now: Now,
        (key, flow): (&ServerKey, &Flow),
        request: &Request,
        sender: Sender,
        context: SenderContext<'_>,
    ) -> Option<Sender> {
        let SenderContext { ua, directory, outputs, .. } = context;
        let source = flow.remote.ip();
        let denied = |denial| Output::Notice(Notice::Denied(Denied::new(source, request, denial)));
        let reply = match sender {
            Sender::Extension(_) | Sender::Trunk(_) => {
                ua.prove(key);
                if flow.protocol.is_reliable() {
                    outputs.push_back(Output::Proven(*flow));
                } else if matches!(sender, Sender::Extension(_)) {
                    self.admission.prove(now.instant, flow.remote);
                }
                return Some(sender);
            }
            Sender::Challenge(challenges, why) => {
                let reply = self.challenge(request, flow, challenges);
                outputs.extend(Denial::of(why).map(denied));
                if let AuthRefusal::Wrong { reached: Some(limit) } = why {
                    self.guess_alerts.guessed(now, source, request, limit, directory, outputs);
                }
                reply
            }
            Sender::Limited(retry_after) => {
                outputs.push_back(denied(Denial::Limited));
                // Sent only to a source that failed before, whether or not the account exists.
                let reply = Reply::new(StatusCode::FORBIDDEN).reason(LOCKED_OUT);
                let seconds = retry_after.as_secs().max(1);
                reply.header(Name::RetryAfter.as_str(), seconds.to_string())
            }
            Sender::Refused => Reply::new(StatusCode::FORBIDDEN),
        };
        // Fails when the transaction is already over; then no response is needed.
        let _ = ua.refuse(now.instant, key, reply);
        None
    }

    /// Returns the 401 with the challenges that the sender's phone can answer.
    fn challenge(&self, request: &Request, flow: &Flow, mut challenges: Vec<String>) -> Reply {
        let agent = request.user_agent().unwrap_or_default();
        let is_md5 = |challenge: &String| challenge.contains("algorithm=MD5");
        if self.md5_only.iter().any(|prefix| agent.starts_with(prefix.as_str()))
            && challenges.iter().any(is_md5)
        {
            challenges.retain(is_md5);
        }
        let mut reply = Reply::new(StatusCode::UNAUTHORIZED);
        // Only a datagram can have a forged source address. A long response to it would amplify an attack.
        let sent = if flow.protocol.is_reliable() {
            challenges.as_slice()
        } else {
            fitting_challenges(request, reply.status(), TO_TAG_LEN, &challenges)
        };
        for challenge in sent {
            reply = reply.header(Name::WwwAuthenticate.as_str(), challenge);
        }
        reply
    }
}

/// Length of the tag that the user agent sets.
const TO_TAG_LEN: usize = 16;
/// The reason phrase that a phone shows after too many wrong passwords.
const LOCKED_OUT: &str = "Too Many Wrong Passwords";
