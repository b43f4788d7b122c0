//! The tasks that process the tap's reports: one adds messages to the ladders of their calls, one stores ended calls.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sidetone_model::ids::{CallId, NodeId, OrganisationId};
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::signalling::{CallSignalling, SignallingLog, SipDirection, SipMessage};
use sidetone_model::time::{Now, Timestamp};
use sidetone_sip::flow::{Flow, Protocol};
use sidetone_store::Store;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::hep::{self, HepCounters, HepSender, LiveCallIds, Packet};
use crate::signalling::counters::SignallingCounters;
use crate::signalling::ladders::{Finished, Ladders, digest_of, message, pass_on};
use crate::signalling::report::{Ended, Heard, OwnedCall, Report};
use crate::signalling::tap::SignallingTap;
use crate::storing::{Fault, RETRY_AFTER};
use crate::supervise::{Running, Supervisor, Task};

/// `[signalling]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignallingSettings {
    /// How many days the messages of a call are kept; 0 keeps none.
    pub keep_days: u32,
}

/// Returns the local address of a flow.
type LocalAddress = Box<dyn Fn(&Flow) -> Option<SocketAddr> + Send>;

/// The parts of the node that the tasks use.
pub struct SignallingNode {
    /// The database.
    pub store: Store,
    /// The node's id in it.
    pub node: NodeId,
    /// The clocks.
    pub clock: fn() -> Now,
    /// The local address of a flow.
    pub local: LocalAddress,
}

/// The kept SIP messages of calls.
#[derive(Clone)]
pub struct KeptSignalling {
    ladders: Arc<Mutex<Ladders>>,
    counters: Arc<SignallingCounters>,
    store: Store,
    /// The destination of the export of messages and figures.
    hep: Option<HepSender>,
    /// The calls that are up, for the export of their figures.
    live: LiveCallIds,
}

impl KeptSignalling {
    /// Starts the tasks, which end after the tap is dropped and everything is stored. Without days and without an
    /// export there is no tap and no task; earlier calls are still found.
    pub fn start(
        settings: SignallingSettings,
        node: SignallingNode,
        hep: Option<HepSender>,
        supervisor: &Supervisor,
    ) -> (Self, Option<SignallingTap>, Vec<Running>) {
        let signalling = KeptSignalling {
            ladders: Arc::default(),
            counters: Arc::default(),
            store: node.store.clone(),
            hep,
            live: Arc::default(),
        };
        let (keeps, exports) = (settings.keep_days > 0, signalling.hep.is_some());
        if !keeps && !exports {
            return (signalling, None, Vec::new());
        }
        let (sender, reports) = mpsc::channel(REPORTS_MAX);
        let (finished, stored) = mpsc::channel(FINISHED_MAX);
        let SignallingNode { store, node, clock, local } = node;
        let collector = Collector { signalling: signalling.clone(), keeps, reports, finished, clock, local };
        let writer = Writer {
            store,
            node,
            days: settings.keep_days,
            finished: stored,
            group: Vec::new(),
            counters: Arc::clone(&signalling.counters),
        };
        let tasks = vec![
            supervisor
                .keep(Task::Signalling, Some(collector), |collector| Box::pin(Collector::run(collector))),
            supervisor.keep(Task::SignallingWriter, writer, |writer| Box::pin(writer.run())),
        ];
        let tap = SignallingTap::new(sender, Arc::clone(&signalling.counters), exports)
            .with_rtcp_to(signalling.hep.clone());
        (signalling, Some(tap), tasks)
    }

    /// Returns the calls that are up, with their Call-IDs; empty without an export.
    pub fn live(&self) -> LiveCallIds {
        Arc::clone(&self.live)
    }

    /// Returns the counters of the export; `None` without one.
    pub fn hep_counters(&self) -> Option<Arc<HepCounters>> {
        self.hep.as_ref().map(HepSender::counters)
    }

    /// Returns the counters.
    pub fn counters(&self) -> Arc<SignallingCounters> {
        Arc::clone(&self.counters)
    }
}

impl SignallingLog for KeptSignalling {
    fn of_call(&self, organisation: OrganisationId, call: CallId) -> PortFuture<'_, Option<CallSignalling>> {
        let live = self.ladders.lock().find(organisation, call);
        Box::pin(async move {
            if live.is_some() {
                return Ok(live);
            }
            Ok(self.store.signalling(organisation, call).await?)
        })
    }
}

/// Adds messages to the ladders of their calls.
struct Collector {
    signalling: KeptSignalling,
    keeps: bool,
    reports: mpsc::Receiver<Report>,
    finished: mpsc::Sender<Finished>,
    clock: fn() -> Now,
    local: LocalAddress,
}

impl Collector {
    /// Runs until the tap is dropped, then passes all ended calls to the writer and ends it.
    async fn run(this: &mut Option<Self>) {
        let Some(collector) = this else { return };
        let mut tick = tokio::time::interval(TICK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                report = collector.reports.recv() => match report {
                    Some(report) => collector.take(report),
                    None => break,
                },
                _ = tick.tick() => {}
            }
            let KeptSignalling { ladders, counters, .. } = &collector.signalling;
            counters.note_lost(pass_on(ladders, &collector.finished, (collector.clock)()));
        }
        let wall = (collector.clock)().wall;
        let ended = collector.signalling.ladders.lock().drain_ended(wall);
        for finished in ended {
            // At the end, waiting is acceptable: the engine waits for the writer.
            if collector.finished.send(finished).await.is_err() {
                break;
            }
        }
        *this = None;
    }

    fn take(&self, report: Report) {
        let KeptSignalling { ladders, counters, hep, live, .. } = &self.signalling;
        match report {
            Report::Ended(Ended { of, quality }) => {
                ladders.lock().end((self.clock)().instant, of);
                let call_id = live.lock().remove(&of.call);
                if let (Some(hep), Some(call_id), Some(quality)) = (hep, call_id, quality) {
                    hep::report(hep, &call_id, &quality);
                }
            }
            Report::Heard(heard) => {
                let local = (self.local)(&heard.flow);
                let message = message(&heard, local);
                if let Some(hep) = hep {
                    self.export(hep, &heard, &message, local);
                }
                let Some(of) = heard.call.filter(|_| self.keeps) else { return };
                if ladders.lock().push(of, message, digest_of(&heard)) {
                    counters.note_kept();
                } else {
                    counters.note_dropped();
                }
            }
        }
    }

    /// Sends a message to the Homer server, with the Call-ID of the call's first leg as the correlation id of all
    /// legs.
    fn export(&self, hep: &HepSender, heard: &Heard, message: &SipMessage, local: Option<SocketAddr>) {
        let mut correlation = message.call_id.clone();
        if let Some(OwnedCall { call, .. }) = heard.call {
            let mut live = self.signalling.live.lock();
            if let Some(first) = live.get(&call) {
                correlation.clone_from(first);
            } else if message.method == "INVITE" && live.len() < LIVE_MAX {
                live.insert(call, correlation.clone());
            }
        }
        if heard.is_repeated {
            return;
        }
        let local = local.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
        let (source, destination) = match heard.direction {
            SipDirection::Received => (heard.flow.remote, local),
            SipDirection::Sent => (local, heard.flow.remote),
        };
        hep.send(&Packet {
            kind: hep::Kind::Sip,
            at: heard.at,
            source,
            destination,
            is_udp: heard.flow.protocol == Protocol::Udp,
            correlation: &correlation,
            payload: message.text.as_bytes(),
        });
    }
}

/// Stores the messages of ended calls.
struct Writer {
    store: Store,
    node: NodeId,
    days: u32,
    finished: mpsc::Receiver<Finished>,
    /// Taken from the queue and not stored yet.
    group: Vec<Finished>,
    counters: Arc<SignallingCounters>,
}

impl Writer {
    async fn run(&mut self) {
        loop {
            if self.group.is_empty() && self.finished.recv_many(&mut self.group, GROUP_MAX).await == 0 {
                return;
            }
            self.store_group().await;
        }
    }

    /// Stores the group, however long the database is unavailable; rows that the database refuses are lost and
    /// counted.
    async fn store_group(&mut self) {
        let calls = self.group.len() as u64;
        match self
            .store
            .store_signalling(self.node, self.days, &rows(&self.group))
            .await
            .map_err(Problem::from)
        {
            Ok(()) => self.counters.note_stored(calls),
            Err(error) if Fault::of(&error) == Fault::Passing => {
                tracing::debug!(%error, "SIP messages of calls wait for the database");
                tokio::time::sleep(RETRY_AFTER).await;
                return;
            }
            Err(error) => {
                tracing::error!(%error, calls, "the database refuses the SIP messages of calls; they are lost");
                self.counters.note_lost(calls);
            }
        }
        self.group.clear();
    }
}

fn rows(group: &[Finished]) -> Vec<(CallId, OrganisationId, Timestamp, &CallSignalling)> {
    group.iter().map(|one| (one.call, one.organisation, one.at, &one.signalling)).collect()
}

/// Calls that are up and may be exported.
const LIVE_MAX: usize = 65_536;
/// Messages that wait for the collector.
const REPORTS_MAX: usize = 8_192;
/// Ended calls in the queue to the database, of 64 KiB each at most; the others stay in the memory of their
/// organisation.
const FINISHED_MAX: usize = 256;
/// Calls that are stored in one transaction.
const GROUP_MAX: usize = 64;
/// How often ended calls are processed.
const TICK_EVERY: Duration = Duration::from_secs(1);
