//! The engine's tasks that follow a source of changes until the engine stops, and the task that serves HTTP.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sidetone_api::HttpServer;
use sidetone_cluster::nats::{Member, PeerListener};
use sidetone_media::net::Relay;
use sidetone_sip::transport::NodeLinkTask;
use sidetone_store::{Listener, Store};
use tokio::sync::watch;

use crate::call_log_texts;
use crate::call_requests::CallbackSender;
use crate::clock::{self, ClockCounts, wall_clock};
use crate::cluster::{
    BindingTask, ChangeTask, CopyWriter, CreditTask, LimitTask, LostCalls, RoomTask, SplitRoomWatch,
};
use crate::driver::Handle;
use crate::events::Bus;
use crate::load::{self, Load};
use crate::prompts::{self, Followed, Library};
use crate::recorder::{Playback, retain};
use crate::registrations::KeptRegistrations;
use crate::supervise::{Running, Supervisor, Task};
use crate::sweep::Sweeper;
use crate::watch::{Heard, watch_stored};
use crate::webhooks::worker::Worker;

/// The parts that these tasks use.
pub struct Followers {
    /// The parts for calls of programs: the sender of their callbacks, and the load, measured at the relay.
    pub calls: (CallbackSender, Arc<Load>, Arc<Relay>),
    /// The counters of the wall clock's watch.
    pub clock: Arc<ClockCounts>,
    /// The member of a cluster; `None` for a standalone node.
    pub cluster: Option<ClusterTasks>,
    /// Whether the last query of the database failed.
    pub database_away: Arc<AtomicBool>,
    /// The revisions of the directory and the rates that the switch has.
    pub directory: Heard,
    /// The reader of the event log.
    pub events: (Bus, Listener),
    /// The switch.
    pub handle: Handle,
    /// Recordings.
    pub playback: Playback,
    /// The file of registrations.
    pub registrations: KeptRegistrations,
    /// The prompts in memory, and the ones that were read.
    pub sounds: (Library, Followed),
    /// The database.
    pub store: Store,
    /// Deletes old rows.
    pub sweeper: Sweeper,
    /// Sends to webhooks.
    pub webhooks: Worker,
}

/// The tasks of a member of a cluster.
pub struct ClusterTasks {
    /// Writes and reads heartbeats.
    pub member: Member,
    /// Writes the entries of this node's calls.
    pub copies: CopyWriter,
    /// Exchanges notices of changes with the other nodes.
    pub changes: ChangeTask,
    /// Records the calls of nodes that died.
    pub lost_calls: LostCalls,
    /// Finds rooms that are live at two nodes.
    pub split_rooms: SplitRoomWatch,
    /// Enforces the limits of all nodes, and answers the others about them.
    pub limits: (LimitTask, PeerListener),
    /// Reserves credit for the calls of this node.
    pub credit: CreditTask,
    /// Answers other nodes.
    pub peers: PeerListener,
    /// Sends them the files of this node.
    pub files: PeerListener,
    /// Shares the bindings of phones; `None` without `[cluster] listen`.
    pub bindings: Option<BindingTask>,
    /// Claims rooms; `None` without `[cluster] listen`.
    pub rooms: Option<RoomTask>,
    /// Connects the nodes over TLS; `None` if they use UDP.
    pub links: Option<NodeLinkTask>,
}

impl ClusterTasks {
    fn start(self, supervisor: &Supervisor, stopped: &watch::Receiver<bool>) -> Vec<Running> {
        let ClusterTasks {
            member,
            copies,
            changes,
            lost_calls,
            split_rooms,
            limits,
            credit,
            peers,
            files,
            bindings,
            rooms,
            links,
        } = self;
        let (limits, limit_questions) = limits;
        let stop = || stopped.clone();
        let bindings = bindings.map(|bindings| {
            supervisor.keep(Task::Bindings, (bindings, stop()), |(bindings, stop)| {
                Box::pin(bindings.run(stop.clone()))
            })
        });
        let rooms = rooms.map(|rooms| {
            supervisor
                .keep(Task::RoomOwners, (rooms, stop()), |(rooms, stop)| Box::pin(rooms.run(stop.clone())))
        });
        let links = links.map(|links| {
            supervisor.keep(Task::NodeLinks, (links, stop()), |(links, stop)| {
                Box::pin(async move {
                    tokio::select! {
                        () = links.run() => {}
                        // An error means that the sender was dropped, which stops the task too.
                        _ = stop.wait_for(|stop| *stop) => {}
                    }
                })
            })
        });
        let tasks = [
            supervisor
                .keep(Task::Cluster, (member, stop()), |(member, stop)| Box::pin(member.run(stop.clone()))),
            supervisor.keep(Task::CallCopies, (copies, stop()), |(copies, stop)| {
                Box::pin(copies.run(stop.clone()))
            }),
            supervisor.keep(Task::Changes, (changes, stop()), |(changes, stop)| {
                Box::pin(changes.run(stop.clone()))
            }),
            supervisor.keep(Task::LostCalls, (lost_calls, stop()), |(lost_calls, stop)| {
                Box::pin(lost_calls.run(stop.clone()))
            }),
            supervisor.keep(Task::SplitRooms, (split_rooms, stop()), |(split_rooms, stop)| {
                Box::pin(split_rooms.run(stop.clone()))
            }),
            supervisor
                .keep(Task::Limits, (limits, stop()), |(limits, stop)| Box::pin(limits.run(stop.clone()))),
            supervisor.keep(Task::LimitQuestions, (limit_questions, stop()), |(questions, stop)| {
                Box::pin(questions.run(stop.clone()))
            }),
            supervisor
                .keep(Task::Credit, (credit, stop()), |(credit, stop)| Box::pin(credit.run(stop.clone()))),
            supervisor.keep(Task::Peers, (peers, stop()), |(peers, stop)| Box::pin(peers.run(stop.clone()))),
            supervisor.keep(Task::FileQuestions, (files, stop()), |(files, stop)| {
                Box::pin(files.run(stop.clone()))
            }),
        ];
        tasks.into_iter().chain(bindings).chain(rooms).chain(links).collect()
    }
}

impl Followers {
    /// Starts every task; each ends once `stopped` turns true.
    pub fn start(self, supervisor: &Supervisor, stopped: &watch::Receiver<bool>) -> Vec<Running> {
        let stop = || stopped.clone();
        let Followers { clock, database_away, directory, events, handle, playback, .. } = self;
        let (store, sounds, sweeper, webhooks) = (self.store, self.sounds, self.sweeper, self.webhooks);
        let (callbacks, load, relay) = self.calls;
        let (callbacks, load) = ((callbacks, stop()), (load, relay, stop()));
        let registrations = (self.registrations, handle.clone(), stop());
        let mut tasks = vec![
            supervisor.keep(Task::CallCallbacks, callbacks, |(callbacks, stop)| {
                Box::pin(callbacks.run(stop.clone()))
            }),
            supervisor.keep(Task::CallLogTexts, (store.clone(), stop()), |(store, stop)| {
                Box::pin(call_log_texts::fill(store, stop.clone()))
            }),
            supervisor.keep(Task::Clock, (clock, stop()), |(counts, stop)| {
                Box::pin(clock::watch(counts, stop.clone()))
            }),
            supervisor.keep(
                Task::Directory,
                (store.clone(), handle, directory, database_away, stop()),
                |(store, switch, heard, away, stop)| {
                    Box::pin(watch_stored(store, switch, heard, away, stop.clone()))
                },
            ),
            supervisor.keep(Task::Events, (events, stop()), |((bus, heard), stop)| {
                Box::pin(bus.run(heard, stop.clone()))
            }),
            supervisor.keep(Task::Load, load, |(load, relay, stop)| {
                Box::pin(load::watch(load, relay, stop.clone()))
            }),
            supervisor.keep(Task::Registrations, registrations, |(registrations, switch, stop)| {
                Box::pin(registrations.run(switch, wall_clock, stop.clone()))
            }),
            supervisor.keep(Task::Retention, (playback, stop()), move |(playback, stop)| {
                Box::pin(retain(playback.clone(), wall_clock, stop.clone()))
            }),
            supervisor.keep(Task::Sounds, (store, sounds, stop()), |(store, (library, followed), stop)| {
                Box::pin(prompts::follow(store, library, followed, stop.clone()))
            }),
            supervisor
                .keep(Task::Sweep, (sweeper, stop()), |(sweeper, stop)| Box::pin(sweeper.run(stop.clone()))),
            supervisor.keep(Task::Webhooks, (webhooks, stop()), |(webhooks, stop)| {
                Box::pin(webhooks.run(stop.clone()))
            }),
        ];
        tasks.extend(self.cluster.into_iter().flat_map(|cluster| cluster.start(supervisor, stopped)));
        tasks
    }
}

/// Serves HTTP until `stopped` turns true.
pub fn serve_http(supervisor: &Supervisor, web: HttpServer, stopped: watch::Receiver<bool>) -> Running {
    supervisor.keep(Task::Http, (web, stopped), |(web, stopped)| {
        let mut stop = stopped.clone();
        Box::pin(async move {
            web.run(async move {
                let _ = stop.wait_for(|stop| *stop).await;
            })
            .await;
        })
    })
}
