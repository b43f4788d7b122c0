//! The registrar: bindings, their order, their expiry.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::flow::{Flow, source_of};
use crate::message::Uri;
use crate::registrar::binding::{needs_keep_alive, seconds_up};
use crate::registrar::{Binding, BindingId, ContactUpdate, Contacts, RegisterError, Registration};

/// Limits of a registrar.
#[derive(Clone, Debug)]
pub struct RegistrarConfig {
    /// Shorter registrations are refused with 423 (RFC 3261 §10.2.8).
    pub expires_min: Duration,
    /// The life of a registration without an Expires.
    pub expires_default: Duration,
    /// Longer registrations are shortened to this.
    pub expires_max: Duration,
    /// The largest number of bindings per address of record; a new one replaces the one with the oldest
    /// refresh.
    pub bindings_max: usize,
    /// The largest number of addresses of record.
    pub aors_max: usize,
    /// Interval of keep-alives on flows through a NAT and on connections. Most NATs drop a flow after 30 s.
    pub keep_alive: Duration,
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
    /// The time of [`Registrar::next_timeout`] has come.
    Timeout,
}

/// Outputs of a registrar.
#[derive(Clone, Debug)]
pub enum Output {
    /// Send a packet on this flow, because otherwise the NAT in front of the phone drops it. An OPTIONS also
    /// shows whether the phone still answers.
    KeepAlive {
        /// The address of record.
        aor: Arc<str>,
        /// The contact, for a Request-URI.
        contact: Uri,
        /// The flow.
        flow: Flow,
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
    /// A newer one took its place.
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
/// [`Registrar::register`] answers a registration at once; its effects, and timeouts, come from
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
    aors: HashMap<Arc<str>, Vec<Binding>>,
    /// When which binding needs processing.
    wakes: BTreeMap<(Instant, BindingId), Arc<str>>,
    next_id: u64,
    outputs: VecDeque<Output>,
}

impl Registrar {
    /// A registrar without bindings.
    pub fn new(config: RegistrarConfig) -> Self {
        Registrar {
            config,
            aors: HashMap::new(),
            wakes: BTreeMap::new(),
            next_id: 0,
            outputs: VecDeque::new(),
        }
    }

    /// Processes an authorised registration and returns the valid bindings for the 200 (RFC 3261 §10.3 steps
    /// 6–8). It applies the whole request or nothing.
    ///
    /// # Errors
    /// Each error gives the status of the response.
    pub fn register(
        &mut self,
        now: Instant,
        aor: &str,
        registration: Registration,
    ) -> Result<Vec<Binding>, RegisterError> {
        let mut bindings = self.aors.get(aor).cloned().unwrap_or_default();
        let mut outputs = Vec::new();
        let aor: Arc<str> =
            self.aors.get_key_value(aor).map_or_else(|| Arc::from(aor), |(key, _)| Arc::clone(key));
        let mut remove = |bindings: &mut Vec<Binding>, reason, which: &dyn Fn(&Binding) -> bool| {
            for binding in bindings.extract_if(.., |binding| which(binding)) {
                outputs.push(Output::Removed { aor: Arc::clone(&aor), binding: Box::new(binding), reason });
            }
        };
        remove(&mut bindings, RemovalReason::Expired, &|binding| binding.expires_at <= now);
        let mut registered = Vec::new();
        match &registration.contacts {
            Contacts::All if registration.expires != Some(0) => return Err(RegisterError::Star),
            Contacts::All => {
                in_order(bindings.iter(), &registration)?;
                remove(&mut bindings, RemovalReason::Unregistered, &|_| true);
            }
            Contacts::List(contacts) => {
                let lives = self.lives(&registration, contacts, &bindings)?;
                for (contact, life) in contacts.iter().zip(lives) {
                    let is_it = |binding: &Binding| contact.is_of(binding);
                    let Some(life) = life else {
                        remove(&mut bindings, RemovalReason::Unregistered, &is_it);
                        continue;
                    };
                    let known = bindings.extract_if(.., |binding| is_it(binding)).next();
                    let id = known.as_ref().map_or(BindingId(self.next_id), |binding| binding.id);
                    self.next_id += u64::from(known.is_none());
                    // A second old binding that this contact replaces: the device moved to the address of
                    // another one.
                    remove(&mut bindings, RemovalReason::Unregistered, &is_it);
                    registered.push((id, known.is_none()));
                    bindings.push(self.binding(now, id, &registration, contact, life));
                }
                while bindings.len() > self.config.bindings_max {
                    let oldest = bindings.iter().min_by_key(|b| (b.refreshed_at, b.id)).map(|b| b.id);
                    remove(&mut bindings, RemovalReason::Displaced, &|binding| Some(binding.id) == oldest);
                }
            }
        }
        if self.aors.len() >= self.config.aors_max && !self.aors.contains_key(&aor) && !bindings.is_empty() {
            return Err(RegisterError::Full);
        }
        self.outputs.extend(outputs);
        self.outputs.extend(registered.into_iter().map(|(binding, is_new)| Output::Registered {
            aor: Arc::clone(&aor),
            binding,
            is_new,
        }));
        self.store(&aor, bindings.clone());
        sort(&mut bindings);
        Ok(bindings)
    }

    /// Processes an event.
    pub fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::FlowFailed(flow) => self.remove_where(RemovalReason::FlowFailed, |_, b| b.flow == *flow),
            Input::Forget { aor } => self.forget(aor),
            Input::Timeout => self.wake(now),
        }
    }

    /// The next output; drain after every input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to feed [`Input::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        self.wakes.first_key_value().map(|((at, _), _)| *at)
    }

    /// The bindings of an address of record in the order in which to try them: by `q`, then the most recent.
    pub fn lookup(&self, aor: &str, now: Instant) -> Vec<Binding> {
        let bindings = self.aors.get(aor).map(Vec::as_slice).unwrap_or_default();
        let mut alive: Vec<Binding> = bindings.iter().filter(|b| b.expires_at > now).cloned().collect();
        sort(&mut alive);
        alive
    }

    /// A connection that the device at `contact`, reached by `flow`, has also registered; for requests that
    /// are too long for a datagram.
    pub fn connection_of(&self, aor: &str, now: Instant, contact: &Uri, flow: &Flow) -> Option<Flow> {
        let bindings = self.lookup(aor, now);
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

    /// The life of each contact, `None` for one to remove. Checks everything that can cause a refusal.
    fn lives(
        &self,
        registration: &Registration,
        contacts: &[ContactUpdate],
        bindings: &[Binding],
    ) -> Result<Vec<Option<Duration>>, RegisterError> {
        if contacts.len() > self.config.bindings_max {
            return Err(RegisterError::TooMany);
        }
        let concerned =
            bindings.iter().filter(|binding| contacts.iter().any(|contact| contact.is_of(binding)));
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

    fn binding(
        &self,
        now: Instant,
        id: BindingId,
        registration: &Registration,
        contact: &ContactUpdate,
        life: Duration,
    ) -> Binding {
        let keep_alive =
            needs_keep_alive(&contact.uri, &registration.flow).then(|| now + self.config.keep_alive);
        Binding {
            id,
            contact: contact.uri.clone(),
            flow: registration.flow,
            path: registration.path.clone(),
            q_permille: contact.q_permille,
            instance: contact.instance.clone(),
            reg_id: contact.reg_id,
            call_id: registration.call_id.clone(),
            cseq: registration.cseq,
            refreshed_at: now,
            expires_at: now + life,
            keep_alive_at: keep_alive,
        }
    }

    /// Replaces the bindings of an address of record and their times.
    fn store(&mut self, aor: &Arc<str>, bindings: Vec<Binding>) {
        for binding in self.aors.get(aor).map(Vec::as_slice).unwrap_or_default() {
            self.wakes.remove(&(binding.wakes_at(), binding.id));
        }
        for binding in &bindings {
            self.wakes.insert((binding.wakes_at(), binding.id), Arc::clone(aor));
        }
        if bindings.is_empty() {
            self.aors.remove(aor);
        } else {
            self.aors.insert(Arc::clone(aor), bindings);
        }
    }

    /// Processes what is due, at most [`WAKES_AT_ONCE`] entries; the rest stays due.
    fn wake(&mut self, now: Instant) {
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
                // Counted from now and not from the due time, so that there is no burst after a pause.
                binding.keep_alive_at = binding.keep_alive_at.map(|_| now + self.config.keep_alive);
                self.wakes.insert((binding.wakes_at(), id), Arc::clone(&aor));
                let (contact, flow) = (binding.contact.clone(), binding.flow);
                self.outputs.push_back(Output::KeepAlive { aor, contact, flow });
            }
        }
    }

    fn forget(&mut self, aor: &str) {
        let Some((aor, bindings)) = self.aors.remove_entry(aor) else { return };
        for binding in bindings {
            self.wakes.remove(&(binding.wakes_at(), binding.id));
            let (aor, binding) = (Arc::clone(&aor), Box::new(binding));
            self.outputs.push_back(Output::Removed { aor, binding, reason: RemovalReason::Forgotten });
        }
    }

    /// Removes every binding for which `which` is true; rare, so it checks all of them.
    fn remove_where(&mut self, reason: RemovalReason, which: impl Fn(&str, &Binding) -> bool) {
        let (wakes, outputs) = (&mut self.wakes, &mut self.outputs);
        self.aors.retain(|aor, bindings| {
            for binding in bindings.extract_if(.., |binding| which(aor, binding)) {
                wakes.remove(&(binding.wakes_at(), binding.id));
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

/// RFC 3261 §10.3 step 7: within one Call-ID a REGISTER counts only when its CSeq is higher than that of the binding.
fn in_order<'a>(
    mut bindings: impl Iterator<Item = &'a Binding>,
    registration: &Registration,
) -> Result<(), RegisterError> {
    let stale = bindings.any(|b| b.call_id == registration.call_id && b.cseq >= registration.cseq);
    if stale { Err(RegisterError::OutOfOrder) } else { Ok(()) }
}

fn sort(bindings: &mut [Binding]) {
    bindings.sort_by_key(|b| (std::cmp::Reverse(b.q_permille), std::cmp::Reverse((b.refreshed_at, b.id))));
}

/// Due bindings processed by one [`Input::Timeout`], so that a long pause does not cause many outputs at
/// once.
const WAKES_AT_ONCE: usize = 1_024;
