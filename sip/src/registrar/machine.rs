//! The registrar: bindings, their order, their expiry.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::flow::{Flow, source_of};
use crate::message::{NameAddr, Uri};
use crate::registrar::binding::{needs_keep_alive, seconds_up};
use crate::registrar::elsewhere::Elsewhere;
use crate::registrar::lost::Lost;
use crate::registrar::order::{displaced, keep_one_flow_of_each, sort};
use crate::registrar::pace::{Pace, first_wait};
use crate::registrar::saved::SavedBinding;
use crate::registrar::{
    Binding, BindingElsewhere, BindingId, BindingState, ContactUpdate, Contacts, ProbeResult, Reachability,
    RegisterError, Registration,
};

/// Limits of a registrar.
#[derive(Clone, Debug)]
pub struct RegistrarConfig {
    /// Shorter registrations are refused with 423 (RFC 3261 §10.2.8).
    pub expires_min: Duration,
    /// The life of a registration without an Expires.
    pub expires_default: Duration,
    /// Longer registrations are shortened to this.
    pub expires_max: Duration,
    /// The largest number of bindings of an address of record whose account has no limit of its own. A new binding
    /// replaces the one with the oldest refresh: first of the same instance, then of the same User-Agent, then of any.
    pub bindings_max: usize,
    /// The largest number of addresses of record with bindings here, and of those with bindings at other nodes.
    pub aors_max: usize,
    /// Interval of keep-alives on flows through a NAT and on connections. Most NATs drop a flow after 30 s.
    pub keep_alive: Duration,
    /// Interval of probes of every binding; `None` sends keep-alives only, whose answers are not evaluated.
    pub qualify: Option<Duration>,
    /// Consecutive unanswered probes after which a phone counts as unreachable.
    pub unanswered_max: u32,
    /// The largest number of probes per second, over all bindings.
    pub probes_per_second: u32,
}

impl Default for RegistrarConfig {
    fn default() -> Self {
        RegistrarConfig {
            expires_min: Duration::from_secs(60),
            expires_default: Duration::from_secs(3_600),
            expires_max: Duration::from_secs(7_200),
            bindings_max: 10,
            aors_max: 100_000,
            keep_alive: Duration::from_secs(25),
            qualify: Some(Duration::from_secs(60)),
            unanswered_max: 2,
            probes_per_second: 4_000,
        }
    }
}

/// Events other than registrations.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A flow failed: its connection closed, or its peer no longer answers.
    FlowFailed(&'a Flow),
    /// The account of an address of record was deleted, or its credential was changed.
    Forget {
        /// The address of record.
        aor: &'a str,
    },
    /// The result of a probe, or of another request to a binding.
    Probed {
        /// The address of record.
        aor: &'a str,
        /// The binding.
        binding: BindingId,
        /// The flow of the request; the result for an earlier flow of the binding is ignored.
        flow: &'a Flow,
        /// The result.
        result: ProbeResult,
    },
    /// The time of [`Registrar::next_timeout`] has been reached.
    Timeout,
}

/// Outputs of a registrar.
#[derive(Clone, Debug)]
pub enum Output {
    /// Send an OPTIONS on this flow, which shows whether the phone is there, and feed its result as
    /// [`Input::Probed`]. Without it a NAT in front of the phone drops the flow.
    KeepAlive {
        /// The address of record.
        aor: Arc<str>,
        /// The binding.
        binding: BindingId,
        /// The contact, for a Request-URI.
        contact: Uri,
        /// The flow.
        flow: Flow,
    },
    /// The device of a binding registered from another address or connection; its calls are reached there.
    Moved {
        /// The binding.
        binding: BindingId,
        /// The flow for requests to it from now on.
        flow: Flow,
    },
    /// A phone no longer answers and is not called, or it answers again.
    Reachability {
        /// The address of record.
        aor: Arc<str>,
        /// The binding.
        binding: BindingId,
        /// Whether the phone is called.
        state: BindingState,
    },
    /// A binding was created or refreshed.
    Registered {
        /// The address of record.
        aor: Arc<str>,
        /// The binding.
        binding: BindingId,
        /// Whether it did not exist before.
        is_new: bool,
    },
    /// A binding was removed.
    Removed {
        /// The address of record.
        aor: Arc<str>,
        /// The removed binding.
        binding: Box<Binding>,
        /// The reason.
        reason: RemovalReason,
    },
}

/// Why a binding was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RemovalReason {
    /// A newer one replaced it.
    Displaced,
    /// It was not refreshed in time.
    Expired,
    /// Its flow failed.
    FlowFailed,
    /// Its account was deleted, or its credential was changed.
    Forgotten,
    /// The phone removed it.
    Unregistered,
}

/// The bindings of all addresses of record.
///
/// [`Registrar::register`] answers a registration immediately; its effects, and timeouts, are outputs of
/// [`Registrar::poll_output`].
///
/// ```
/// # use std::time::Instant;
/// # use sidetone_sip::flow::Flow;
/// # use sidetone_sip::message::Request;
/// use sidetone_sip::registrar::{Input, Registrar, RegistrarConfig, Registration, reply};
///
/// # fn run(now: Instant, flow: Flow, request: &Request) {
/// let mut registrar = Registrar::new(RegistrarConfig::default());
/// // An authenticated REGISTER of acme.test's extension 1001:
/// let result = Registration::from_request(request, flow)
///     .and_then(|registration| registrar.register(now, "1001@acme.test", registration));
/// let response = reply(request, result.as_deref(), now);
/// // The loop of its driver:
/// while let Some(output) = registrar.poll_output() { /* keep alive, log, notify waiting callers */ }
/// if registrar.next_timeout().is_some_and(|at| at <= now) {
///     registrar.handle_input(now, Input::Timeout);
/// }
/// # }
/// ```
pub struct Registrar {
    config: RegistrarConfig,
    /// The bindings in the order in which to try them.
    aors: HashMap<Arc<str>, Vec<Binding>>,
    /// The next processing time of each binding.
    wakes: BTreeMap<(Instant, BindingId), Arc<str>>,
    pace: Pace,
    lost: Lost,
    elsewhere: Elsewhere,
    next_id: u64,
    outputs: VecDeque<Output>,
}

impl Registrar {
    /// A registrar without bindings.
    pub fn new(config: RegistrarConfig) -> Self {
        Registrar {
            pace: Pace::new(config.probes_per_second),
            config,
            aors: HashMap::new(),
            wakes: BTreeMap::new(),
            lost: Lost::default(),
            elsewhere: Elsewhere::default(),
            next_id: 0,
            outputs: VecDeque::new(),
        }
    }

    /// Processes an authorised registration and returns the valid bindings for the 200 (RFC 3261 §10.3 steps
    /// 6–8), in the order of [`Registrar::lookup`]. It applies the whole request or nothing.
    ///
    /// # Errors
    /// Each error gives the status of the response.
    pub fn register(
        &mut self,
        now: Instant,
        aor: &str,
        registration: Registration,
    ) -> Result<&[Binding], RegisterError> {
        let lives = self.check(now, aor, &registration)?;
        let (key, mut bindings) = match self.aors.remove_entry(aor) {
            Some((key, bindings)) => (key, bindings),
            None => (Arc::from(aor), Vec::new()),
        };
        for binding in &bindings {
            self.wakes.remove(&(binding.wakes_at(), binding.id));
        }
        // Removals are reported in the order of the last refresh.
        bindings.sort_by_key(|binding| (binding.refreshed_at, binding.id));
        self.remove(&key, &mut bindings, RemovalReason::Expired, |binding| binding.expires_at <= now);
        match (registration.contacts, lives) {
            (Contacts::All, _) => self.remove(&key, &mut bindings, RemovalReason::Unregistered, |_| true),
            (Contacts::List(contacts), lives) => {
                let common = Refresh {
                    now,
                    bindings_max: registration.bindings_max.unwrap_or(self.config.bindings_max),
                    flow: registration.flow,
                    call_id: registration.call_id,
                    cseq: registration.cseq,
                    user_agent: registration.user_agent,
                    path: registration.path,
                };
                self.refresh(&key, &mut bindings, &common, contacts.into_iter().zip(lives));
            }
        }
        sort(&mut bindings);
        for binding in &bindings {
            self.wakes.insert((binding.wakes_at(), binding.id), Arc::clone(&key));
        }
        if bindings.is_empty() {
            return Ok(&[]);
        }
        Ok(self.aors.entry(key).insert_entry(bindings).into_mut())
    }

    /// Adds bindings of an earlier process, reports them as registrations, and returns their number. Bindings that have
    /// expired, are registered already or exceed `bindings_max` are omitted. Nothing is sent: their flows worked
    /// before, and the sockets have the same addresses.
    pub fn restore(
        &mut self,
        now: Instant,
        aor: &str,
        bindings_max: usize,
        saved: Vec<SavedBinding>,
    ) -> usize {
        if !self.aors.contains_key(aor) && self.aors.len() >= self.config.aors_max {
            return 0;
        }
        let (key, mut bindings) = match self.aors.remove_entry(aor) {
            Some((key, bindings)) => (key, bindings),
            None => (Arc::from(aor), Vec::new()),
        };
        let mut restored = 0;
        for saved in saved {
            let is_known =
                |known: &Binding| known.is_of(&saved.contact, saved.instance.as_deref(), saved.reg_id);
            let is_over = saved.expires_at <= now || bindings.len() >= bindings_max;
            if is_over || bindings.iter().any(is_known) {
                continue;
            }
            let id = BindingId(self.next_id);
            self.next_id += 1;
            restored += 1;
            let interval = probe_interval(&self.config, &saved.contact, &saved.flow);
            let binding = saved.into_binding(id, interval.map(|interval| now + first_wait(id, interval)));
            self.wakes.insert((binding.wakes_at(), id), Arc::clone(&key));
            bindings.push(binding);
            let aor = Arc::clone(&key);
            self.outputs.push_back(Output::Registered { aor, binding: id, is_new: true });
        }
        sort(&mut bindings);
        if !bindings.is_empty() {
            self.aors.insert(key, bindings);
        }
        restored
    }

    /// Processes an event.
    pub fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::FlowFailed(flow) => self.remove_where(RemovalReason::FlowFailed, |_, b| b.flow == *flow),
            Input::Forget { aor } => self.forget(aor),
            Input::Probed { aor, binding, flow, result } => self.probed(now, aor, (binding, flow), result),
            Input::Timeout => self.wake(now),
        }
    }

    /// The next output; drain after every input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to feed [`Input::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        let wake = self.wakes.first_key_value().map(|((at, _), _)| *at);
        wake.into_iter().chain(self.pace.next_timeout()).chain(self.elsewhere.next_timeout()).min()
    }

    /// The bindings of an address of record in the order in which to try them: by `q`, then the most recent. Phones
    /// that do not answer are omitted; bindings at other nodes are included. Of the flows of a device only the one that
    /// was refreshed last is included (RFC 5626 §7); after it failed, expired or no longer answers, another one is.
    pub fn lookup(&self, aor: &str, now: Instant) -> Vec<Binding> {
        let mut found = self.flows(aor, now);
        keep_one_flow_of_each(&mut found);
        found
    }

    /// The bindings as of [`Registrar::lookup`], with all flows of each device.
    pub fn flows(&self, aor: &str, now: Instant) -> Vec<Binding> {
        let here = self.bindings_of(aor);
        let is_there = |b: &&Binding| b.expires_at > now && b.reachability.is_callable();
        let mut found: Vec<Binding> = here.iter().filter(is_there).cloned().collect();
        // The bindings at this node are stored in this order.
        let here_len = found.len();
        found.extend(self.elsewhere.beside(aor, now, here).cloned());
        if found.len() > here_len {
            sort(&mut found);
        }
        found
    }

    /// Replaces the bindings of an address of record at other nodes; returns those that are removed.
    pub fn replace_elsewhere(&mut self, aor: &str, bindings: Vec<BindingElsewhere>) -> Vec<BindingId> {
        self.elsewhere.replace(aor, bindings, self.config.aors_max, &mut self.next_id)
    }

    /// Removes the bindings to these contacts, because their devices have registered at another node.
    pub fn displace(&mut self, aor: &str, contacts: &[Uri]) {
        let Some((key, mut bindings)) = self.aors.remove_entry(aor) else { return };
        let is_displaced = |b: &Binding| contacts.iter().any(|contact| b.contact.is_equivalent(contact));
        for binding in bindings.iter().filter(|b| is_displaced(b)) {
            self.wakes.remove(&(binding.wakes_at(), binding.id));
        }
        self.remove(&key, &mut bindings, RemovalReason::Displaced, is_displaced);
        if !bindings.is_empty() {
            self.aors.insert(key, bindings);
        }
    }

    /// Every binding of an address of record, including phones that do not answer.
    pub fn bindings_of(&self, aor: &str) -> &[Binding] {
        self.aors.get(aor).map(Vec::as_slice).unwrap_or_default()
    }

    /// Every binding with its address of record, including phones that do not answer.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Binding)> {
        self.aors.iter().flat_map(|(aor, bindings)| bindings.iter().map(move |binding| (&**aor, binding)))
    }

    /// A connection that the device at `contact`, reached by `flow`, has also registered; for requests that
    /// are too long for a datagram.
    pub fn connection_of(&self, aor: &str, now: Instant, contact: &Uri, flow: &Flow) -> Option<Flow> {
        let mut bindings = self.flows(aor, now);
        bindings.retain(|binding| !binding.is_elsewhere());
        let instance = bindings
            .iter()
            .find(|binding| binding.flow == *flow && binding.contact.is_equivalent(contact))
            .and_then(|binding| binding.instance.as_deref());
        let is_it = |binding: &&Binding| {
            binding.flow.protocol.is_reliable()
                && ((instance.is_some() && binding.instance.as_deref() == instance)
                    || binding.is_beside(contact, flow))
        };
        bindings.iter().find(is_it).map(|binding| binding.flow)
    }

    /// The binding of the device that sent a request from `flow` with this Contact: the instance, the contact or
    /// the flow is the same.
    pub fn binding_of(
        &self,
        aor: &str,
        now: Instant,
        contact: Option<&NameAddr>,
        flow: &Flow,
    ) -> Option<BindingId> {
        let bindings = self.aors.get(aor)?;
        let instance = contact.and_then(|contact| contact.params.unquoted("+sip.instance"));
        let is_instance = |b: &Binding| instance.is_some() && b.instance.as_deref() == instance.as_deref();
        let is_contact = |b: &Binding| contact.is_some_and(|contact| b.contact.is_equivalent(&contact.uri));
        let find = |is_it: &dyn Fn(&Binding) -> bool| {
            bindings.iter().find(|b| b.expires_at > now && is_it(b)).map(|b| b.id)
        };
        find(&is_instance).or_else(|| find(&is_contact)).or_else(|| find(&|b| b.flow == *flow))
    }

    /// Whether an address of record has a registration from a source; sources are compared as limits count
    /// them.
    pub fn is_registered_from(&self, aor: &str, now: Instant, source: IpAddr) -> bool {
        let source = source_of(source);
        self.aors.get(aor).is_some_and(|bindings| {
            bindings.iter().any(|b| b.expires_at > now && source_of(b.flow.remote.ip()) == source)
        })
    }

    /// The flows that no binding uses.
    pub fn unused(&self, mut flows: HashSet<Flow>) -> HashSet<Flow> {
        if !flows.is_empty() {
            for binding in self.aors.values().flatten() {
                flows.remove(&binding.flow);
            }
        }
        flows
    }

    /// Number of bindings.
    pub fn bindings(&self) -> usize {
        // Each binding has exactly one entry.
        self.wakes.len()
    }

    /// Number of addresses of record with bindings.
    pub fn len(&self) -> usize {
        self.aors.len()
    }

    /// Whether there are no registrations.
    pub fn is_empty(&self) -> bool {
        self.aors.is_empty()
    }

    /// Checks everything that can cause a refusal. Returns the lifetime of each contact, `None` for one to remove.
    fn check(
        &self,
        now: Instant,
        aor: &str,
        registration: &Registration,
    ) -> Result<Vec<Option<Duration>>, RegisterError> {
        let known = self.aors.get(aor);
        let valid = known.into_iter().flatten().filter(|binding| binding.expires_at > now);
        let lives = match &registration.contacts {
            Contacts::All if registration.expires != Some(0) => return Err(RegisterError::Star),
            Contacts::All => {
                in_order(valid, registration)?;
                Vec::new()
            }
            Contacts::List(contacts) => self.lives(registration, contacts, valid)?,
        };
        let is_new = known.is_none() && lives.iter().any(Option::is_some);
        if is_new && self.aors.len() >= self.config.aors_max {
            return Err(RegisterError::Full);
        }
        Ok(lives)
    }

    /// The lifetime of each contact, `None` for one to remove.
    fn lives<'a>(
        &self,
        registration: &Registration,
        contacts: &[ContactUpdate],
        bindings: impl Iterator<Item = &'a Binding>,
    ) -> Result<Vec<Option<Duration>>, RegisterError> {
        if contacts.len() > registration.bindings_max.unwrap_or(self.config.bindings_max) {
            return Err(RegisterError::TooMany);
        }
        let concerned = bindings.filter(|binding| contacts.iter().any(|contact| contact.is_of(binding)));
        in_order(concerned, registration)?;
        let life = |contact: &ContactUpdate| {
            let asked = contact.expires.or(registration.expires);
            let asked =
                asked.map_or(self.config.expires_default, |seconds| Duration::from_secs(seconds.into()));
            match asked {
                Duration::ZERO => Ok(None),
                brief if brief < self.config.expires_min => {
                    Err(RegisterError::TooBrief { min_seconds: seconds_up(self.config.expires_min) })
                }
                life => Ok(Some(life.min(self.config.expires_max))),
            }
        };
        contacts.iter().map(life).collect()
    }

    /// Removes the bindings for which `which` is true, and reports each.
    fn remove(
        &mut self,
        aor: &Arc<str>,
        bindings: &mut Vec<Binding>,
        reason: RemovalReason,
        which: impl Fn(&Binding) -> bool,
    ) {
        for binding in bindings.extract_if(.., |binding| which(binding)) {
            let (aor, binding) = (Arc::clone(aor), Box::new(binding));
            self.outputs.push_back(Output::Removed { aor, binding, reason });
        }
    }

    /// Applies the contacts of a registration, each with its lifetime.
    fn refresh(
        &mut self,
        aor: &Arc<str>,
        bindings: &mut Vec<Binding>,
        common: &Refresh,
        contacts: impl Iterator<Item = (ContactUpdate, Option<Duration>)>,
    ) {
        let mut registered = VecDeque::new();
        for (contact, life) in contacts {
            let is_it = |binding: &Binding| contact.is_of(binding);
            let Some(life) = life else {
                self.remove(aor, bindings, RemovalReason::Unregistered, is_it);
                continue;
            };
            let known = bindings.iter().position(is_it).map(|at| bindings.remove(at));
            let is_new = known.is_none();
            let known = known.or_else(|| self.lost.take(common.now, aor, &contact, &common.call_id));
            let id = known.as_ref().map_or(BindingId(self.next_id), |binding| binding.id);
            self.next_id += u64::from(known.is_none());
            let stays = |before: &&Binding| before.flow == common.flow;
            let reachability = known.as_ref().filter(stays).map(|before| before.reachability.refreshed());
            if known.is_some_and(|before| before.flow != common.flow) {
                self.outputs.push_back(Output::Moved { binding: id, flow: common.flow });
            }
            // A second old binding that this contact replaces: the device moved to the address of another one.
            self.remove(aor, bindings, RemovalReason::Unregistered, is_it);
            registered.push_back((id, is_new));
            let reachability = reachability.unwrap_or_default();
            bindings.push(self.binding(id, common, contact, life, reachability));
        }
        while bindings.len() > common.bindings_max {
            let displaced = displaced(bindings, &registered);
            self.remove(aor, bindings, RemovalReason::Displaced, |binding| Some(binding.id) == displaced);
        }
        self.outputs.extend(registered.into_iter().map(|(binding, is_new)| Output::Registered {
            aor: Arc::clone(aor),
            binding,
            is_new,
        }));
    }

    fn binding(
        &self,
        id: BindingId,
        common: &Refresh,
        contact: ContactUpdate,
        life: Duration,
        reachability: Reachability,
    ) -> Binding {
        let interval = probe_interval(&self.config, &contact.uri, &common.flow);
        Binding {
            id,
            contact: contact.uri,
            flow: common.flow,
            path: common.path.clone(),
            q_permille: contact.q_permille,
            instance: contact.instance,
            reg_id: contact.reg_id,
            has_ice: contact.has_ice,
            user_agent: common.user_agent.clone(),
            call_id: common.call_id.clone(),
            cseq: common.cseq,
            refreshed_at: common.now,
            expires_at: common.now + life,
            reachability,
            device_flow: None,
            probe_at: interval.map(|interval| common.now + first_wait(id, interval)),
        }
    }

    /// Processes what is due, at most [`WAKES_AT_ONCE`] entries; the rest stays due.
    fn wake(&mut self, now: Instant) {
        self.elsewhere.expire(now);
        for _ in 0..WAKES_AT_ONCE {
            let Some(entry) = self.wakes.first_entry().filter(|entry| entry.key().0 <= now) else {
                break;
            };
            let ((_, id), aor) = entry.remove_entry();
            let Some(bindings) = self.aors.get_mut(&aor) else {
                continue;
            };
            let over = bindings.extract_if(.., |b| b.id == id && b.expires_at <= now).next();
            if let Some(binding) = over {
                let (binding, reason) = (Box::new(binding), RemovalReason::Expired);
                if bindings.is_empty() {
                    self.aors.remove(&aor);
                }
                self.outputs.push_back(Output::Removed { aor, binding, reason });
            } else if let Some(binding) = bindings.iter_mut().find(|b| b.id == id) {
                binding.probe_at = None;
                self.wakes.insert((binding.wakes_at(), id), Arc::clone(&aor));
                self.pace.push(&aor, id);
            }
        }
        self.send_probes(now);
    }

    /// Sends the probes that are due within the rate.
    fn send_probes(&mut self, now: Instant) {
        while let Some((aor, id)) = self.pace.pop(now) {
            let binding =
                self.aors.get_mut(&aor).and_then(|bindings| bindings.iter_mut().find(|b| b.id == id));
            // It was removed, or it registered meanwhile and was rescheduled.
            let Some(binding) = binding.filter(|binding| binding.probe_at.is_none()) else { continue };
            let (contact, flow) = (binding.target(), binding.flow);
            self.wakes.remove(&(binding.wakes_at(), id));
            // Counted from now and not from the due time, so that there is no burst after a pause.
            binding.probe_at = probe_interval(&self.config, &contact, &flow).map(|interval| now + interval);
            self.wakes.insert((binding.wakes_at(), id), Arc::clone(&aor));
            self.outputs.push_back(Output::KeepAlive { aor, binding: id, contact, flow });
        }
    }

    /// Records the result of a probe; a result for an earlier flow of the binding is ignored.
    fn probed(&mut self, now: Instant, aor: &str, (id, flow): (BindingId, &Flow), result: ProbeResult) {
        let bindings = self.aors.get_mut(aor).map(Vec::as_mut_slice).unwrap_or_default();
        let Some(binding) = bindings.iter_mut().find(|b| b.id == id && b.flow == *flow) else { return };
        if self.config.qualify.is_none() && !matches!(result, ProbeResult::Answered(_)) {
            return;
        }
        let was_callable = binding.reachability.is_callable();
        binding.reachability.note(now, result, self.config.unanswered_max);
        let state = binding.reachability.state;
        if binding.reachability.is_callable() != was_callable
            && let Some((aor, _)) = self.aors.get_key_value(aor)
        {
            self.outputs.push_back(Output::Reachability { aor: Arc::clone(aor), binding: id, state });
        }
    }

    fn forget(&mut self, aor: &str) {
        self.lost.forget(aor);
        let Some((aor, bindings)) = self.aors.remove_entry(aor) else { return };
        for binding in bindings {
            self.wakes.remove(&(binding.wakes_at(), binding.id));
            let (aor, binding) = (Arc::clone(&aor), Box::new(binding));
            self.outputs.push_back(Output::Removed { aor, binding, reason: RemovalReason::Forgotten });
        }
    }

    /// Removes every binding for which `which` is true; rare, so it checks all of them.
    fn remove_where(&mut self, reason: RemovalReason, which: impl Fn(&str, &Binding) -> bool) {
        let (wakes, lost, outputs) = (&mut self.wakes, &mut self.lost, &mut self.outputs);
        self.aors.retain(|aor, bindings| {
            for binding in bindings.extract_if(.., |binding| which(aor, binding)) {
                wakes.remove(&(binding.wakes_at(), binding.id));
                if reason == RemovalReason::FlowFailed {
                    lost.insert(aor, binding.clone());
                }
                outputs.push_back(Output::Removed {
                    aor: Arc::clone(aor),
                    binding: Box::new(binding),
                    reason,
                });
            }
            !bindings.is_empty()
        });
    }
}

/// The properties that the contacts of one registration share.
struct Refresh {
    now: Instant,
    bindings_max: usize,
    flow: Flow,
    call_id: String,
    cseq: u32,
    user_agent: Option<Arc<str>>,
    path: Vec<NameAddr>,
}

/// RFC 3261 §10.3 step 7: within one Call-ID a REGISTER counts only when its CSeq is higher than that of the binding.
fn in_order<'a>(
    mut bindings: impl Iterator<Item = &'a Binding>,
    registration: &Registration,
) -> Result<(), RegisterError> {
    let stale = bindings.any(|b| b.call_id == registration.call_id && b.cseq >= registration.cseq);
    if stale { Err(RegisterError::OutOfOrder) } else { Ok(()) }
}

/// The interval of probes to a flow: shorter where the flow is lost when it is not used.
fn probe_interval(config: &RegistrarConfig, contact: &Uri, flow: &Flow) -> Option<Duration> {
    let keep_alive = needs_keep_alive(contact, flow).then_some(config.keep_alive);
    [keep_alive, config.qualify].into_iter().flatten().min()
}

/// Due bindings processed by one [`Input::Timeout`], so that a long pause does not cause a burst of outputs.
const WAKES_AT_ONCE: usize = 1_024;
