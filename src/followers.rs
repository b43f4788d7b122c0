//! The engine's tasks that follow a source of changes until the engine stops, and the task that serves HTTP.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sidetone_api::HttpServer;
use sidetone_model::ids::NodeId;
use sidetone_store::{Listener, Store};
use tokio::sync::watch;

use crate::clock::{self, ClockCounts, wall_clock};
use crate::driver::Handle;
use crate::events::Bus;
use crate::recorder::{Shelf, retain};
use crate::sound::{self, Followed, Library};
use crate::supervise::{Running, Supervisor, Task};
use crate::sweep::Sweeper;
use crate::watch::{Heard, watch_stored};
use crate::webhooks::worker::Worker;

/// What these tasks need.
pub struct Followers {
    /// The counters of the wall clock's watch.
    pub clock: Arc<ClockCounts>,
    /// Whether the last query of the database failed.
    pub database_away: Arc<AtomicBool>,
    /// The revisions of the directory and the rates that the switch has.
    pub directory: Heard,
    /// The reader of the event log.
    pub events: (Bus, Listener),
    /// The switch.
    pub handle: Handle,
    /// This node.
    pub node: NodeId,
    /// Recordings.
    pub shelf: Shelf,
    /// The prompts in memory, and which were read.
    pub sounds: (Library, Followed),
    /// The database.
    pub store: Store,
    /// Deletes old rows.
    pub sweeper: Sweeper,
    /// Sends to webhooks.
    pub webhooks: Worker,
}

impl Followers {
    /// Starts every task; each ends once `stopped` turns true.
    pub fn start(self, supervisor: &Supervisor, stopped: &watch::Receiver<bool>) -> Vec<Running> {
        let stop = || stopped.clone();
        let Followers { clock, database_away, directory, events, handle, node, shelf, .. } = self;
        let (store, sounds, sweeper, webhooks) = (self.store, self.sounds, self.sweeper, self.webhooks);
        vec![
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
            supervisor.keep(Task::Retention, (shelf, stop()), move |(shelf, stop)| {
                Box::pin(retain(shelf.clone(), node, wall_clock, stop.clone()))
            }),
            supervisor.keep(Task::Sounds, (store, sounds, stop()), |(store, (library, followed), stop)| {
                Box::pin(sound::follow(store, library, followed, stop.clone()))
            }),
            supervisor
                .keep(Task::Sweep, (sweeper, stop()), |(sweeper, stop)| Box::pin(sweeper.run(stop.clone()))),
            supervisor.keep(Task::Webhooks, (webhooks, stop()), |(webhooks, stop)| {
                Box::pin(webhooks.run(stop.clone()))
            }),
        ]
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
