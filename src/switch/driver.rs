//! Runs a [`Switch`]: sockets, clock, relay and journal around the machine; one task owns it all.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sidetone_media::net::{self, Relay};
use sidetone_model::call::HangupCause;
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::CallId;
use sidetone_model::time::Timestamp;
use sidetone_model::trunk_address::TrunkAddress;
use sidetone_sip::transport::{UdpSender, UdpTransport, local_address_towards};
use tokio::sync::{Notify, mpsc};

use crate::cdr::journal::{Committed, Journal, JournalFull};
use crate::dns::Resolver;
use crate::routing::Directory;
use crate::switch::counters::Counters;
use crate::switch::face::{MediaCommand, Port, PortId, Ports};
use crate::switch::machine::{Input, Notice, Now, Output, Settings, Switch};
use crate::switch::names::Answer;

/// What others ask of the running switch.
#[derive(Debug)]
pub enum Request {
    /// What organisations have to spend, or the prices: fed to the switch as they are.
    Billing(Input),
    /// The stored directory changed.
    Directory(Arc<Directory>),
    /// Other settings hold from now on.
    Settings(Settings),
    /// Take no new calls, and stop once the last has ended or the time is over.
    Drain(Duration),
}

/// How the engine's other tasks reach the driver.
#[derive(Clone, Debug)]
pub struct Handle {
    requests: mpsc::Sender<Request>,
    gauges: Arc<Gauges>,
}

/// What can be read of a running switch at any time.
#[derive(Debug, Default)]
struct Gauges {
    live_calls: AtomicUsize,
    legs: AtomicUsize,
    bindings: AtomicUsize,
    ports: AtomicUsize,
    orders: AtomicUsize,
    unwritten: AtomicUsize,
    counters: Counters,
}

impl Handle {
    /// Passes a request on; `false` when the switch has stopped.
    pub async fn send(&self, request: Request) -> bool {
        self.requests.send(request).await.is_ok()
    }

    /// How many calls there are.
    pub fn live_calls(&self) -> usize {
        self.gauges.live_calls.load(Ordering::Relaxed)
    }

    /// How many bindings are registered.
    pub fn bindings(&self) -> usize {
        self.gauges.bindings.load(Ordering::Relaxed)
    }

    /// How many legs there are, in SIP.
    pub fn legs(&self) -> usize {
        self.gauges.legs.load(Ordering::Relaxed)
    }

    /// How many media ports are open or close now.
    pub fn ports(&self) -> usize {
        self.gauges.ports.load(Ordering::Relaxed)
    }

    /// What waits, by the queue it waits in.
    pub fn queues(&self) -> [(&'static str, usize); 3] {
        let waiting = self.requests.max_capacity().saturating_sub(self.requests.capacity());
        [
            ("media_orders", self.gauges.orders.load(Ordering::Relaxed)),
            ("switch_mailbox", waiting),
            ("unwritten_records", self.gauges.unwritten.load(Ordering::Relaxed)),
        ]
    }

    /// What the switch counts.
    pub fn counters(&self) -> &Counters {
        &self.gauges.counters
    }

    /// Whether the switch still runs.
    pub fn is_running(&self) -> bool {
        !self.requests.is_closed()
    }
}

/// A name and what the name service says of it.
type Resolved = (TrunkAddress, Answer);

/// The task around a [`Switch`].
pub struct Driver {
    switch: Switch,
    transport: UdpTransport,
    sender: UdpSender,
    media: Media,
    /// Rung by the relay's workers when notices wait.
    notices: Arc<Notify>,
    journal: Journal,
    /// Ended calls that the journal had no room for.
    unwritten: VecDeque<Box<Cdr>>,
    requests: mpsc::Receiver<Request>,
    journalled: (mpsc::Sender<CallId>, mpsc::Receiver<CallId>),
    resolver: Arc<Resolver>,
    resolved: (mpsc::Sender<Resolved>, mpsc::Receiver<Resolved>),
    gauges: Arc<Gauges>,
    drain_until: Option<Instant>,
    /// Until when the last CANCELs and BYEs may wait for their answers.
    last_words: Option<Instant>,
}

impl Driver {
    /// A driver, and the handle to reach it by. `external` is what SDP names instead of our own address.
    pub fn new(
        switch: Switch,
        transport: UdpTransport,
        relay: Arc<Relay>,
        notices: Arc<Notify>,
        external: Option<IpAddr>,
        journal: Journal,
        resolver: Resolver,
    ) -> (Driver, Handle) {
        let (sender, requests) = mpsc::channel(REQUESTS_MAX);
        let gauges = Arc::new(Gauges::default());
        let handle = Handle { requests: sender, gauges: Arc::clone(&gauges) };
        let driver = Driver {
            switch,
            sender: transport.sender(),
            transport,
            media: Media {
                relay,
                external,
                ids: HashMap::new(),
                keys: HashMap::new(),
                next: 0,
                orders: VecDeque::new(),
            },
            notices,
            journal,
            unwritten: VecDeque::new(),
            requests,
            journalled: mpsc::channel(REQUESTS_MAX),
            resolver: Arc::new(resolver),
            resolved: mpsc::channel(REQUESTS_MAX),
            gauges,
            drain_until: None,
            last_words: None,
        };
        (driver, handle)
    }

    /// Runs until drained.
    pub async fn run(mut self) {
        let mut tick = tokio::time::interval(TICK_EVERY);
        self.feed(Input::Begin);
        loop {
            let deadline = self.deadline();
            tokio::select! {
                (flow, bytes) = self.transport.recv() => {
                    self.feed(Input::Datagram { flow, bytes });
                    // A burst is worked off before the clock is looked at again.
                    for _ in 0..BURST_MAX {
                        let Some((flow, bytes)) = self.transport.try_recv() else { break };
                        self.feed(Input::Datagram { flow, bytes });
                    }
                }
                () = self.notices.notified() => self.take_notices(),
                Some(call) = self.journalled.1.recv() => self.feed(Input::Journalled(call)),
                Some((address, answer)) = self.resolved.1.recv() => self.feed(Input::Resolved(address, answer)),
                Some(request) = self.requests.recv() => self.request(request),
                _ = tick.tick() => self.tick(),
                () = tokio::time::sleep_until(deadline.into()) => {}
            }
            if self.switch.next_timeout().is_some_and(|due| due <= now().instant) {
                self.feed(Input::Timeout);
            }
            self.media.flush();
            self.flush_records();
            self.gauges.live_calls.store(self.switch.live_calls(), Ordering::Relaxed);
            self.gauges.bindings.store(self.switch.bindings(), Ordering::Relaxed);
            self.gauges.legs.store(self.switch.legs(), Ordering::Relaxed);
            self.gauges.ports.store(self.media.ids.len(), Ordering::Relaxed);
            self.gauges.orders.store(self.media.orders.len(), Ordering::Relaxed);
            self.gauges.unwritten.store(self.unwritten.len(), Ordering::Relaxed);
            if self.is_drained() {
                return;
            }
        }
    }

    fn deadline(&self) -> Instant {
        let now = now().instant;
        let backlog = !self.media.orders.is_empty() || !self.unwritten.is_empty();
        let retry = backlog.then(|| now + RETRY_AFTER);
        [self.switch.next_timeout(), self.last_words.or(self.drain_until), retry]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(now + TICK_EVERY)
    }

    fn feed(&mut self, input: Input) {
        let now = now();
        if let Input::Datagram { bytes, .. } = &input {
            self.gauges.counters.received().note(bytes);
        }
        self.switch.handle_input(now, input, &mut self.media);
        while let Some(output) = self.switch.poll_output() {
            self.carry_out(now, output);
        }
    }

    fn carry_out(&mut self, now: Now, output: Output) {
        match output {
            Output::Answered(call, record) => self.note_answer(call, record),
            Output::Ended(record) => {
                tracing::info!(
                    call.id = %record.call_uuid,
                    call.direction = record.direction.as_str(),
                    call.hangup_cause = record.hangup_cause.map(HangupCause::as_str),
                    call.billsec = record.billsec,
                    call.media_verdict = record.quality.verdict.map(|verdict| verdict.as_str()),
                    "call ended"
                );
                self.gauges.counters.note_end(&record);
                self.unwritten.push_back(record);
                self.flush_records();
            }
            Output::Media(port, command) => self.media.order(port, command),
            Output::Notice(notice) => {
                self.gauges.counters.note_notice(&notice);
                log(&notice);
            }
            Output::Resolve(address) => self.resolve(address),
            Output::Transmit { flow, bytes, key } => {
                self.gauges.counters.sent().note(&bytes);
                let failed = self.sender.try_send(&flow, &bytes).is_err();
                if let Some(key) = key.filter(|_| failed) {
                    self.switch.handle_input(now, Input::TransportError(key), &mut self.media);
                }
            }
        }
    }

    /// Names are asked for beside the switch, which never waits.
    fn resolve(&self, address: TrunkAddress) {
        let (resolver, done) = (Arc::clone(&self.resolver), self.resolved.0.clone());
        tokio::spawn(async move {
            let answer = resolver.lookup(&address).await;
            // The driver is gone only when the engine stops.
            let _ = done.send((address, answer)).await;
        });
    }

    /// The caller hears of the answer once the disk knows it.
    fn note_answer(&mut self, call: CallId, record: Box<Cdr>) {
        match self.journal.answered(*record) {
            Ok(committed) => {
                let done = self.journalled.0.clone();
                tokio::spawn(wait_for(committed, call, done));
            }
            // A disk that stalls delays records, not people: the record follows at the call's end.
            Err(JournalFull { .. }) => {
                tracing::error!(call.id = %call, "the journal is full: this call's record would not survive a crash");
                let done = self.journalled.0.clone();
                tokio::spawn(async move { done.send(call).await });
            }
        }
    }

    fn flush_records(&mut self) {
        while let Some(record) = self.unwritten.pop_front() {
            if let Err(JournalFull { record }) = self.journal.ended(*record) {
                self.unwritten.extend(record);
                self.unwritten.rotate_right(1);
                return;
            }
        }
    }

    fn take_notices(&mut self) {
        while let Ok(notice) = self.media.relay.notices().try_recv() {
            if let net::Notice::Closed { id, report } = notice
                && let Some(port) = self.media.forget(id)
            {
                self.feed(Input::Report(port, report));
            }
        }
    }

    fn request(&mut self, request: Request) {
        match request {
            Request::Billing(input) => self.feed(input),
            Request::Directory(directory) => {
                tracing::info!(revision = directory.revision(), "directory changed");
                self.feed(Input::Directory(directory));
            }
            Request::Settings(settings) => self.feed(Input::Settings(settings)),
            Request::Drain(limit) => {
                self.feed(Input::Accept(false));
                self.feed(Input::LeaveTrunks);
                self.drain_until = Some(now().instant + limit);
            }
        }
    }

    fn tick(&mut self) {
        // A full queue misses one tick; the next follows in seconds.
        let _ = self.journal.tick(now().wall);
        if self.drain_until.is_none() {
            // A disk that takes no records takes no calls.
            self.feed(Input::Accept(self.journal.is_healthy()));
        }
    }

    fn is_drained(&mut self) -> bool {
        let Some(until) = self.drain_until else { return false };
        let now = now().instant;
        if self.switch.live_calls() > 0 && until <= now {
            self.drain_until = Some(now + LAST_WORDS);
            self.feed(Input::EndCalls(HangupCause::NormalClearing));
        }
        if self.switch.live_calls() > 0 || !self.unwritten.is_empty() {
            return false;
        }
        // A phone that has not even said 100 cannot be cancelled yet (RFC 3261 §9.1): left alone it would ring on.
        let last_words = *self.last_words.get_or_insert(now + LAST_WORDS);
        (self.switch.legs() == 0 && self.switch.registrations() == 0) || last_words <= now
    }
}

/// The relay as the switch sees it: ports by our own numbers, commands that wait while a worker is busy.
struct Media {
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
    fn order(&mut self, port: PortId, command: MediaCommand) {
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
    fn flush(&mut self) {
        while let Some((id, command)) = self.orders.pop_front() {
            if let Err(net::CommandError::Busy) = self.relay.command(id, command.clone()) {
                self.orders.push_front((id, command));
                return;
            }
        }
    }

    fn forget(&mut self, id: net::PortId) -> Option<PortId> {
        let port = self.keys.remove(&id)?;
        self.ids.remove(&port);
        Some(port)
    }
}

async fn wait_for(committed: Committed, call: CallId, done: mpsc::Sender<CallId>) {
    if !committed.await {
        tracing::error!(call.id = %call, "the journal ended before an answer was on disk");
    }
    // The driver is gone only when the engine stops.
    let _ = done.send(call).await;
}

fn log(notice: &Notice) {
    match notice {
        Notice::Credentials(trunk) => {
            tracing::warn!(trunk.id = %trunk, "the trunk does not take our credentials; check username, password and realm")
        }
        Notice::Guessing(source) => {
            tracing::warn!(%source, "too many wrong passwords, source refused for a while")
        }
        Notice::Overload(source) => {
            tracing::warn!(%source, "too many SIP transactions, message answered 503")
        }
        Notice::Registered(trunk) => tracing::info!(trunk.id = %trunk, "registered with the trunk"),
        Notice::Unregistered(trunk, status) => tracing::warn!(
            trunk.id = %trunk,
            sip.status = status,
            "cannot register with the trunk; trying again, less often each time"
        ),
        Notice::Rejected(source, reason) => tracing::debug!(%source, %reason, "datagram is no SIP message"),
    }
}

#[expect(clippy::disallowed_methods, reason = "the driver is where the clocks are read")]
fn now() -> Now {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let micros = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
    Now { instant: Instant::now(), wall: Timestamp::from_micros(micros) }
}

/// Datagrams taken in a row before timers and notices have their turn.
const BURST_MAX: usize = 64;
/// After the drain time, how long the last BYEs and reports may take.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Requests that wait for the driver.
const REQUESTS_MAX: usize = 1_024;
/// How soon a busy worker or journal is asked again.
const RETRY_AFTER: Duration = Duration::from_millis(5);
/// How often the journal hears that calls are alive.
const TICK_EVERY: Duration = Duration::from_secs(5);
