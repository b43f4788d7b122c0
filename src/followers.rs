//! The engine's tasks that follow a source of changes until the engine stops, and the task that serves HTTP.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sidetone_api::HttpServer;
use sidetone_media::net::Relay;
use sidetone_store::{Listener, Store};
use tokio::sync::watch;

use crate::call_log_texts;
use crate::call_requests::CallbackSender;
use crate::clock::{self, ClockCounts, wall_clock};
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

/// What these tasks need.
pub struct Followers {
    /// What serves calls of programs: the sender of their callbacks, and the load, measured at the relay.
    pub calls: (CallbackSender, Arc<Load>, Arc<Relay>),
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
    /// Recordings.
    pub playback: Playback,
    /// The file of registrations.
    pub registrations: KeptRegistrations,
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
        let Followers { clock, database_away, directory, events, handle, playback, .. } = self;
        let (store, sounds, sweeper, webhooks) = (self.store, self.sounds, self.sweeper, self.webhooks);
        let (callbacks, load, relay) = self.calls;
        let (callbacks, load) = ((callbacks, stop()), (load, relay, stop()));
        let registrations = (self.registrations, handle.clone(), stop());
        vec![
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
