//! Starts a switch: one function for each step, in the order in which the parts need each other.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rand::rngs::{StdRng, SysRng};
use rand::{RngExt, SeedableRng};
use sidetone_api::{ApiState, HttpServer, Ports, SharedSettings};
use sidetone_media::net::Relay;
use sidetone_model::ids::NodeId;
use sidetone_model::time::Now;
use sidetone_sip::flow::Protocol;
use sidetone_sip::sdp::Fingerprint;
use sidetone_sip::transport::{Sender, Sockets, TcpSender};
use sidetone_store::{IdempotencyKeys, Store};
use sidetone_switch::rating::{Tariffs, settle};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

use super::certificates::{http_server, open_tls};
use super::clustering::ClusterPart;
use super::edge::{NodeEdge, NodeLinks};
use super::engine::{Engine, Recorded, RunningTasks, StartError, journal_dir, trace_dir, trace_settings};
use super::listeners::{Listeners, kept_registrations};
use super::ports::{
    api_state, directory_ports, node_traces, own_files, panel, rate_ports, room_history, rooms,
};
use super::senders::Senders;
use super::stored::Stored;
use super::switching::{our_addresses, start_relay, switch};
use crate::call_info::{AnsweredCall, CallInfo, Counts};
use crate::call_recordings::{self, CallRecordingEnds, CallRecordingService};
use crate::call_requests::{CallRequestService, CallbackCounters, CallbackSender};
use crate::cdr::copies::CallCopies;
use crate::cdr::journal::{Journal, JournalOptions};
use crate::cdr::reader::JournalReader;
use crate::cdr::writer::CdrWriter;
use crate::clock::{Clock, ClockCounts, instant, steady_clock, wall_clock};
use crate::cluster::{DrainRequest, FigureSource, Joining};
use crate::conference_audio::{ENDED_LEN_MAX, NodeAudio, pass_on_recordings};
use crate::conference_history::HistoryTasks;
use crate::config::Config;
use crate::dead_letters::DeadLetters;
use crate::dns::Resolver;
use crate::driver::{Driver, EdgeTraffic, Handle};
use crate::events::call_events::{CallEventCounters, call_events};
use crate::far_files::FarFiles;
use crate::followers::{Followers, serve_http};
use crate::hep::{HepSender, LiveFigures};
use crate::load::Load;
use crate::metrics::EngineMetrics;
use crate::notes::NoteTasks;
use crate::outbound_http::Client;
use crate::process;
use crate::prompts::{Followed, Library, PromptService};
use crate::readiness::EngineReadiness;
use crate::recorder::{DataDisk, Playback, Recorder, channels_of, recover};
use crate::signalling::{KeptSignalling, SignallingNode, SignallingTap};
use crate::spoken_names::{SpokenNames, keep_names};
use crate::supervise::{Running, Supervisor, Task};
use crate::sweep::Sweeper;
use crate::tls::TlsStore;
use crate::traces::Traces;
use crate::watch::{DRAWN_LEN_MAX, DirectoryCounts, Heard, pass_on_draws};

/// The values that every other part uses.
struct Base<'c> {
    config: &'c Config,
    rng: StdRng,
    supervisor: Supervisor,
    store: Store,
    node: NodeId,
    letters: DeadLetters,
    load: Arc<Load>,
    joining: Option<Joining>,
    /// The edge for other nodes, once the sockets are open.
    edge: Option<NodeEdge>,
    tls: TlsStore,
    stopped: watch::Receiver<bool>,
}

/// The switch with its driver, not started yet.
struct Signalling {
    driver: Driver,
    handle: Handle,
    relay: Arc<Relay>,
    journal: Journal,
    reader: JournalReader,
    revisions: Heard,
    tcp: TcpSender,
    kept: (KeptSignalling, Vec<Running>),
}

/// The audio that rooms play and record, and the traces of legs.
struct Audio {
    library: Library,
    recorder: Recorder,
    recorded: JoinHandle<Recorded>,
    traces: Traces,
}

/// The tasks that store the reports of the switch.
struct Writers {
    notes: NoteTasks,
    history: HistoryTasks,
    call_events: Arc<CallEventCounters>,
    call_info: Arc<Counts>,
    callbacks: Running,
    records: CdrWriter,
}

/// State that the HTTP API reports and other parts set.
#[derive(Default)]
struct Reported {
    callbacks: Arc<CallbackCounters>,
    clock: Arc<ClockCounts>,
    database_away: Arc<AtomicBool>,
    directory: Arc<DirectoryCounts>,
    /// Notified when an operator requests that the node drains.
    drain: DrainRequest,
    draining: Arc<AtomicBool>,
}

impl Engine {
    /// Starts everything that `config` describes. Must run within a tokio runtime.
    ///
    /// # Errors
    /// The first part that cannot start; everything started before is stopped.
    pub async fn start(config: &Config) -> Result<Engine, StartError> {
        Engine::start_supervised(config, Supervisor::default()).await
    }

    /// Like [`Engine::start`], with the owner of its tasks.
    ///
    /// # Errors
    /// The same.
    pub async fn start_supervised(config: &Config, supervisor: Supervisor) -> Result<Engine, StartError> {
        let (stop, stopped) = watch::channel(false);
        let mut base = Base::open(config, supervisor, stopped).await?;
        let idempotency = IdempotencyKeys::open(base.store.clone(), base.node).await?;
        let stored = Stored::read(&base.store).await?;
        let listeners = Listeners::bind(config, &base.tls).await?;
        let (journal, reader) = open_journal(&base, &stored.tariffs)?;
        let (sip, sip_connections) = listeners.sip_addresses(config);
        let signalling =
            Signalling::new(&mut base, (listeners.sip, listeners.links), stored, (journal, reader))?;
        let Signalling { driver, handle, relay, journal, reader, revisions, tcp, kept } = signalling;
        let (driver, audio) = Audio::start(&mut base, driver, &handle)?;
        let outbound = Client::new(&config.outbound_http, our_addresses(config))?;
        let (driver, writers) = Writers::start(&base, driver, &handle, reader, &outbound).await?;
        let senders = Senders::new(&base.store, base.node, &outbound, &mut base.rng);
        let mut followed = Followed::default();
        followed.catch_up(&base.store, &audio.library).await?;
        let reported = Reported::default();
        let cluster = base.cluster(&handle, &reported, (&sip, &sip_connections, listeners.http_address));
        let playback = audio.playback(&base, cluster.far_files());
        let served = Served::new(
            (&handle, &relay, &journal, tcp, &kept.0),
            (&audio, &writers, &senders),
            (&reported, &playback, &cluster),
        );
        let ports = served.ports(&mut base, idempotency.clone(), &outbound).await?;
        let state = api_state(config, &base.store, ports);
        let cluster = cluster.into_tasks((base.node, &handle, own_files(config)), &state, &reported.drain);
        let (http_settings, web) = serving(config, &base.tls, listeners.http, state);
        let followers = Followers {
            calls: base.calls(&outbound, reported.callbacks, &relay),
            clock: reported.clock,
            cluster,
            database_away: reported.database_away,
            directory: Heard { counts: reported.directory, ..revisions },
            events: (senders.events.clone(), senders.listener),
            handle: handle.clone(),
            playback,
            registrations: kept_registrations(config),
            sounds: (audio.library, followed),
            store: base.store.clone(),
            sweeper: Sweeper { store: base.store.clone(), keys: idempotency, clock: wall_clock },
            webhooks: senders.webhooks,
        };
        Ok(Engine {
            sip,
            sip_connections,
            http: listeners.http_address,
            node: base.node,
            load: Arc::clone(&base.load),
            running: start_tasks(&base, (driver, kept.1), writers.records, web, followers),
            store: base.store,
            journal: Some(journal),
            notes: writers.notes,
            sessions: writers.history,
            bus: senders.events,
            callbacks: writers.callbacks,
            switch: handle,
            stop,
            drain: reported.drain.asked,
            draining: reported.draining,
            relay,
            recorder: audio.recorder,
            traces: audio.traces,
            recorded: audio.recorded,
            http_settings,
            tls: base.tls,
            supervisor: base.supervisor,
        })
    }
}

/// The HTTP server, and the settings that a reload changes.
fn serving(
    config: &Config,
    tls: &TlsStore,
    listener: TcpListener,
    state: ApiState,
) -> (SharedSettings, HttpServer) {
    (state.settings(), http_server(config, tls, listener, state))
}

/// Starts the tasks that the engine awaits at its end; the driver is first, because it accepts calls.
fn start_tasks(
    base: &Base<'_>,
    (driver, signalling): (Driver, Vec<Running>),
    records: CdrWriter,
    web: HttpServer,
    followers: Followers,
) -> RunningTasks {
    let Base { supervisor, store, stopped, .. } = base;
    RunningTasks {
        driver: supervisor.vital(
            Task::Sip,
            driver,
            |driver| Box::pin(driver.run()),
            |driver| Box::pin(driver.save()),
        ),
        signalling,
        records: supervisor.keep(Task::RecordWriter, (records, store.clone()), |(writer, store)| {
            Box::pin(writer.run(store))
        }),
        web: serve_http(supervisor, web, stopped.clone()),
        followers: followers.start(supervisor, stopped),
    }
}

impl<'c> Base<'c> {
    /// Opens the database, and registers this node by its name.
    async fn open(
        config: &'c Config,
        supervisor: Supervisor,
        stopped: watch::Receiver<bool>,
    ) -> Result<Self, StartError> {
        let rng = StdRng::try_from_rng(&mut SysRng).map_err(|error| StartError::Random(error.to_string()))?;
        let tls = open_tls(config)?;
        let database = config.database.clone();
        let store = supervisor.in_background(async move { Store::open(&database).await }).await?;
        let node = store.node(&config.node.name, wall_clock()).await?;
        // Before any work is done under this node's id.
        let joining = match &config.cluster {
            Some(settings) => Some(Joining::new(settings, &config.node.name, node).await?),
            None => None,
        };
        let interrupted = store.end_interrupted_requests(node, wall_clock()).await?;
        if interrupted > 0 {
            tracing::warn!(interrupted, "call requests of an earlier run were not finished; they failed");
        }
        let letters = DeadLetters::below(&config.node.data_dir);
        let load = Load::new(config.node.busy, instant());
        Ok(Self { config, rng, supervisor, store, node, letters, load, joining, edge: None, tls, stopped })
    }

    /// The destination of the data that the journal and the writer of records send to other nodes; `None` without a
    /// cluster.
    fn copies(&self) -> Option<CallCopies> {
        self.joining.as_ref().map(|joining| joining.copies.clone())
    }

    /// The node as a member of its cluster, or standalone; its tasks are not started yet.
    fn cluster(
        &mut self,
        switch: &Handle,
        reported: &Reported,
        addresses: (&[SocketAddr], &[(Protocol, SocketAddr)], SocketAddr),
    ) -> ClusterPart {
        let figures =
            FigureSource::new(switch.clone(), Arc::clone(&self.load), Arc::clone(&reported.draining));
        let joined = (self.joining.take(), self.edge.take());
        let draining = (Arc::clone(&reported.draining), Arc::clone(&reported.drain.keep_rooms));
        ClusterPart::new(
            self.config,
            (self.node, &self.store, switch),
            joined,
            (figures, draining),
            addresses,
        )
    }

    /// Builds the sender of callbacks of requested calls, which is not started yet. Returns it with the load and the
    /// relay whose load is measured.
    fn calls(
        &mut self,
        outbound: &Client,
        counters: Arc<CallbackCounters>,
        relay: &Arc<Relay>,
    ) -> (CallbackSender, Arc<Load>, Arc<Relay>) {
        let (carrier, rng) = (Arc::new(outbound.clone()), StdRng::from_rng(&mut self.rng));
        let sender = CallbackSender::new(self.store.clone(), self.node, carrier, Arc::new(wall_clock), rng);
        (sender.counted_by(counters), Arc::clone(&self.load), Arc::clone(relay))
    }
}

/// Opens the journal, and ends the calls of an earlier run that a crash interrupted.
fn open_journal(base: &Base<'_>, tariffs: &Arc<Tariffs>) -> Result<(Journal, JournalReader), StartError> {
    let tariffs = Arc::clone(tariffs);
    let options = JournalOptions {
        reserve_bytes: base.config.node.journal_reserve_bytes,
        storage: None,
        supervisor: base.supervisor.clone(),
        clock: Some(steady_clock()),
    };
    // Interrupted calls are settled as of the time of the crash: the current rates include those that were in force
    // then.
    let settled = move |cdr: &mut _| settle(cdr, tariffs.fx());
    let (journal, reader, recovery) = Journal::open_with(&journal_dir(base.config), &settled, options)?;
    if recovery.crashed_calls > 0 || recovery.damaged_segments > 0 {
        tracing::warn!(
            calls = recovery.crashed_calls,
            damaged_segments = recovery.damaged_segments,
            "the journal of an earlier run was replayed; its answered calls ended with CRASH"
        );
    }
    Ok((journal.copying(base.copies()), reader))
}

impl Signalling {
    /// Starts the relay, and builds the switch with its driver.
    fn new(
        base: &mut Base<'_>,
        (sockets, links): (Sockets, Option<NodeLinks>),
        stored: Stored,
        (journal, mut reader): (Journal, JournalReader),
    ) -> Result<Self, StartError> {
        let config = base.config;
        let Stored { directory, tariffs, accounts, revisions } = stored;
        process::raise_open_files();
        let notices = Arc::new(Notify::new());
        let beat = base.supervisor.beat_of(Task::Relay);
        let relay = Arc::new(start_relay(config, &mut base.rng, &notices, beat)?);
        let sender = sockets.sender();
        let tcp = sender.tcp().clone();
        let local = sender.clone();
        base.edge = NodeEdge::of(config, base.node, &sender, links);
        let edge =
            base.edge.as_ref().map(|edge| EdgeTraffic::new(edge.edge.clone(), instant(), &mut base.rng));
        let mut switch = switch(config, base.node, directory, sender, relay.workers(), &mut base.rng);
        switch.certify(Fingerprint(relay.fingerprint()));
        switch.bill_by(instant(), tariffs, accounts, reader.take_undrawn());
        let (driver, handle) = Driver::new(
            switch,
            sockets,
            Arc::clone(&relay),
            notices,
            config.sip.external_address,
            journal.clone(),
            Resolver::new(&config.sip.dns),
        );
        let extensions = directory_ports(&base.store, StdRng::from_rng(&mut base.rng)).extensions;
        let (kept, tap, tasks) = kept_signalling(base, local, &handle);
        let driver =
            driver.supervised(base.supervisor.clone()).changing(extensions).tapped(tap).relaying(edge);
        Ok(Self { driver, handle, relay, journal, reader, revisions, tcp, kept: (kept, tasks) })
    }
}

/// Starts the parts that store SIP messages with their calls, and that export them.
fn kept_signalling(
    base: &Base<'_>,
    sender: Sender,
    handle: &Handle,
) -> (KeptSignalling, Option<SignallingTap>, Vec<Running>) {
    let node = SignallingNode {
        store: base.store.clone(),
        node: base.node,
        clock: || Now { instant: instant(), wall: wall_clock() },
        local: Box::new(move |flow| sender.local_address(flow).ok()),
    };
    let supervisor = &base.supervisor;
    let hep = base.config.hep.clone().map(|settings| HepSender::start(settings, supervisor).0);
    let started = KeptSignalling::start(base.config.signalling, node, hep.clone(), supervisor);
    if let Some(hep) = hep {
        let figures = LiveFigures { hep, calls: started.0.live(), quality: Arc::new(handle.clone()) };
        // It ends by itself when the engine stops.
        drop(supervisor.keep(Task::HepFigures, (figures, base.stopped.clone()), |(figures, stopped)| {
            Box::pin(figures.run(stopped.clone()))
        }));
    }
    started
}

impl Audio {
    /// Returns the service that plays recordings and checks whether one may start.
    fn playback(&self, base: &Base<'_>, far: Option<Arc<dyn FarFiles>>) -> Playback {
        let disk = DataDisk::of(&base.config.node.data_dir);
        let reserve_bytes = base.config.recordings.reserve_bytes;
        Playback::new(base.node, base.store.clone(), disk)
            .with_recorder(self.recorder.begins(), reserve_bytes)
            .with_far(far)
    }

    /// Starts the recorder and the traces, and gives the driver the audio of rooms.
    fn start(base: &mut Base<'_>, driver: Driver, handle: &Handle) -> Result<(Driver, Self), StartError> {
        let config = base.config;
        let (recorded, ended) = mpsc::channel(ENDED_LEN_MAX);
        let disk = DataDisk::of(&config.node.data_dir);
        let reserve_bytes = config.recordings.reserve_bytes;
        let refused = recorded.clone();
        let recorder = Recorder::start(disk, reserve_bytes, &base.supervisor, move |result| {
            // After the end of the engine there is no receiver.
            let _ = recorded.blocking_send(result);
        })
        .map_err(StartError::Recorder)?;
        let of_calls = CallRecordingEnds::new(base.store.clone(), Arc::new(wall_clock));
        let passed_on = Recorded { ended, untold: Vec::new(), of_calls, switch: handle.clone() };
        let recorded = base.supervisor.keep_state(Task::Recordings, passed_on, |recorded| {
            let Recorded { ended, untold, of_calls, switch } = recorded;
            Box::pin(pass_on_recordings(ended, untold, of_calls, switch))
        });
        let library = Library::new();
        let (names, keeper) = SpokenNames::new(base.store.clone(), handle.clone(), wall_clock);
        // It ends with the driver.
        drop(base.supervisor.keep(Task::SpokenNames, keeper, |keeper| Box::pin(keep_names(keeper))));
        let recordings = recorder.begins();
        let audio = NodeAudio { library: library.clone(), names, recordings, ended: refused };
        let driver = driver.sounding(audio, base.rng.random());
        let traces = start_traces(base)?;
        let driver = driver.traced(traces.begins());
        Ok((driver, Self { library, recorder, recorded, traces }))
    }
}

/// Starts the thread that writes traces of legs below the data directory.
fn start_traces(base: &Base<'_>) -> Result<Traces, StartError> {
    let (config, supervisor) = (base.config, &base.supervisor);
    let (dir, settings) = (trace_dir(config), trace_settings(config));
    let reserve_bytes = config.recordings.reserve_bytes;
    Traces::start(dir, base.node.to_string(), settings, reserve_bytes, wall_clock, supervisor)
        .map_err(StartError::Traces)
}

impl Writers {
    /// Starts the tasks that store notes and the history of rooms, builds the writers of records and events, and
    /// gives the driver their queues.
    async fn start(
        base: &Base<'_>,
        driver: Driver,
        handle: &Handle,
        reader: JournalReader,
        outbound: &Client,
    ) -> Result<(Driver, Self), StartError> {
        let Base { supervisor, store, node, letters, stopped, .. } = base;
        let clock: Clock = Arc::new(wall_clock);
        let (replies, received) = NoteTasks::replies();
        let notes =
            NoteTasks::open(store, handle, *node, received, Arc::clone(&clock), supervisor, letters).await?;
        let (targets, sink) = (Arc::new(store.clone()), Arc::new(notes.service()));
        let (call_info, callbacks) =
            CallInfo::start(outbound.clone(), targets, sink, Arc::clone(&clock), supervisor);
        let call_info_counts = call_info.counts();
        let (event_sender, call_events) = call_events();
        let event_sender = event_sender.telling(move |call| call_info.answered(AnsweredCall::of(call)));
        let disk = DataDisk::of(&base.config.node.data_dir);
        call_recordings::recover_all(store, *node, &disk, &clock).await?;
        let recover = move |organisation, session| {
            let channels = channels_of(&disk, organisation, session).unwrap_or(1);
            recover(&disk, organisation, session, channels)
        };
        let (history, history_sender) =
            HistoryTasks::open(store, *node, clock, &recover, stopped.clone(), supervisor, letters).await?;
        let conference_notes = notes.from_conferences();
        let driver = driver
            .noting(replies)
            .telling(move |event| event_sender.send(event))
            .telling_of_rooms(move |event| history_sender.send(event))
            .noting_rooms(move |note| conference_notes.send(note));
        let (draws, drawn) = mpsc::channel(DRAWN_LEN_MAX);
        // It ends with the writer.
        drop(supervisor.keep(Task::CreditDraws, (drawn, handle.clone()), |(drawn, switch)| {
            Box::pin(pass_on_draws(drawn, switch))
        }));
        let writers = Self {
            notes,
            history,
            call_events: call_events.counts(),
            call_info: call_info_counts,
            callbacks,
            records: CdrWriter::new(reader)
                .with_events(call_events)
                .telling(draws)
                .with_letters(letters.clone())
                .copying(base.copies()),
        };
        Ok((driver, writers))
    }
}

/// The parts that the HTTP API uses.
struct Served<'p> {
    handle: &'p Handle,
    relay: &'p Arc<Relay>,
    journal: &'p Journal,
    tcp: TcpSender,
    kept_signalling: &'p KeptSignalling,
    audio: &'p Audio,
    writers: &'p Writers,
    senders: &'p Senders,
    reported: &'p Reported,
    playback: &'p Playback,
    cluster: &'p ClusterPart,
}

impl<'p> Served<'p> {
    /// The switch, the tasks that store its reports, and the values that other parts share.
    fn new(
        (handle, relay, journal, tcp, kept_signalling): (
            &'p Handle,
            &'p Arc<Relay>,
            &'p Journal,
            TcpSender,
            &'p KeptSignalling,
        ),
        (audio, writers, senders): (&'p Audio, &'p Writers, &'p Senders),
        (reported, playback, cluster): (&'p Reported, &'p Playback, &'p ClusterPart),
    ) -> Self {
        Served {
            handle,
            relay,
            journal,
            tcp,
            kept_signalling,
            audio,
            writers,
            senders,
            reported,
            playback,
            cluster,
        }
    }
}

impl Served<'_> {
    /// Every port of the HTTP API; a missing port is a compile error.
    async fn ports(
        self,
        base: &mut Base<'_>,
        idempotency: IdempotencyKeys,
        outbound: &Client,
    ) -> Result<Ports, StartError> {
        let config = base.config;
        let (store, handle) = (Arc::new(base.store.clone()), Arc::new(self.handle.clone()));
        let panel = panel(&base.store, &mut base.rng).await?;
        let prompts = PromptService::new(base.store.clone(), self.audio.library.clone());
        Ok(Ports {
            ai_prices: Some(store.clone()),
            call_recordings: Some(self.call_recordings(base)),
            call_requests: Some(self.call_requests(base)),
            cdrs: store.clone(),
            conversations: Some(store.clone()),
            directory: Some(directory_ports(&store, StdRng::from_rng(&mut base.rng))),
            events: Some(Arc::new(self.senders.events.clone())),
            field_checks: Some(store.clone()),
            idempotency: Arc::new(idempotency),
            keys: store.clone(),
            leg_traces: Some(Arc::new(node_traces(config, base.node, self.cluster.far_files()))),
            live_calls: Some(handle.clone()),
            live_quality: Some(handle.clone()),
            live_rooms: Some(handle.clone()),
            notes: Some(Arc::new(self.writers.notes.service())),
            outgoing_urls: Some(Arc::new(outbound.policy().clone())),
            panel: Some(Arc::new(panel)),
            prompts: Some(Arc::new(prompts)),
            rates: Some(rate_ports(&store)),
            readiness: Arc::new(self.readiness(base)),
            recordings: Some(Arc::new(self.playback.clone())),
            registrations: Some(handle.clone()),
            signalling: Some(Arc::new(self.kept_signalling.clone())),
            trunk_statuses: Some(handle),
            room_history: Some(room_history(config, &store)),
            rooms: Some(rooms(&store, config, StdRng::from_rng(&mut base.rng))),
            stored_quality: Some(store.clone()),
            tenants: store,
            webhooks: Some(self.senders.webhook_service.clone()),
            nodes: Some(Arc::clone(&self.cluster.nodes)),
            peers: self.cluster.peers.clone(),
            metrics: Arc::new(self.metrics(base)),
        })
    }

    /// The service that records calls on behalf of programs.
    fn call_recordings(&self, base: &Base<'_>) -> Arc<CallRecordingService> {
        Arc::new(CallRecordingService {
            store: base.store.clone(),
            switch: self.handle.clone(),
            node: base.node,
            clock: Arc::new(wall_clock),
            disk: DataDisk::of(&base.config.node.data_dir),
            reserve_bytes: base.config.recordings.reserve_bytes,
            far: self.cluster.far_files(),
        })
    }

    /// The service that places calls on behalf of programs.
    fn call_requests(&self, base: &Base<'_>) -> Arc<CallRequestService> {
        let ports = &base.config.media.ports;
        Arc::new(CallRequestService {
            store: base.store.clone(),
            switch: self.handle.clone(),
            node: base.node,
            clock: Arc::new(wall_clock),
            supervisor: base.supervisor.clone(),
            // RTP and RTCP have a port each.
            load: Arc::clone(&base.load),
            draining: Arc::clone(&self.reported.draining),
            ports_max: usize::from(ports.end().saturating_sub(*ports.start())).saturating_add(1) / 2,
        })
    }

    fn readiness(&self, base: &Base<'_>) -> EngineReadiness {
        EngineReadiness {
            journal: self.journal.clone(),
            switch: self.handle.clone(),
            draining: Arc::clone(&self.reported.draining),
            supervisor: base.supervisor.clone(),
            database_away: Arc::clone(&self.reported.database_away),
            cluster: self.cluster.member.clone(),
        }
    }

    fn metrics(self, base: &Base<'_>) -> EngineMetrics {
        EngineMetrics {
            relay: Arc::clone(self.relay),
            load: Arc::clone(&base.load),
            switch: self.handle.clone(),
            tcp: self.tcp,
            journal: self.journal.clone(),
            journal_dir: journal_dir(base.config),
            letters: base.letters.clone(),
            notes: self.writers.notes.counters(),
            recordings: self.audio.recorder.counters(),
            traces: self.audio.traces.counters(),
            kept_signalling: self.kept_signalling.counters(),
            hep: self.kept_signalling.hep_counters(),
            sessions: self.writers.history.counts(),
            stored: self.writers.records.stored(),
            call_events: Arc::clone(&self.writers.call_events),
            call_info: Arc::clone(&self.writers.call_info),
            store: base.store.clone(),
            events: self.senders.events.clone(),
            webhooks: self.senders.webhooks.counters(),
            callbacks: Arc::clone(&self.reported.callbacks),
            supervisor: base.supervisor.clone(),
            clock: Arc::clone(&self.reported.clock),
            directory: Arc::clone(&self.reported.directory),
            cluster: self.cluster.member.clone(),
        }
    }
}
