//! Runs a [`Switch`]: one task owns the machine, the sockets, the clock, the relay and the journal.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use sidetone_media::mix::MixId;
use sidetone_media::net::{self, Relay};
use sidetone_model::call::HangupCause;
use sidetone_model::cdr::Cdr;
use sidetone_model::extension::{ExtensionChange, Extensions};
use sidetone_model::ids::{CallId, ExtensionId, OrganisationId};
use sidetone_model::room::event::RoomEvent;
use sidetone_model::switch_event::SwitchEvent;
use sidetone_model::time::Timestamp;
use sidetone_model::trunk_address::TrunkAddress;
use sidetone_sip::admission::Dropped;
use sidetone_sip::flow::Flow;
use sidetone_sip::transport::{Arrival, Sender, Sockets};
use sidetone_switch::conference::RoomNote;
use sidetone_switch::machine::{Input, Notice, Now, Output, Switch};
use sidetone_switch::mixing::{MixOrder, Recording};
use sidetone_switch::queries::{Answer as QueryAnswer, ReplyToken};
use sidetone_switch::trunk_dns::Answer;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::cdr::journal::{DETAILED_LEN_MAX, Journal, JournalFull};
use crate::dns::Resolver;
use crate::driver::edge::{self, EdgeTraffic};
use crate::driver::handle::{self, Gauges, Handle, Request, WaitingQuery};
use crate::driver::intake::Intake;
use crate::driver::media::{ConferenceAudio, Media, Tracing};
use crate::driver::notices::NoticeLog;
use crate::driver::refusals::RefusalLog;
use crate::driver::signalling::Tapped;
use crate::driver::star_codes;
use crate::notes::PhoneReply;
use crate::signalling::SignallingTap;
use crate::supervise::{Supervisor, Task};

/// A name and its result from DNS.
type Resolved = (TrunkAddress, Answer);

/// An extension and the result of its change.
type Changed = (ExtensionId, Result<(), u16>);

/// The task around a [`Switch`].
pub struct Driver {
    switch: Switch,
    sockets: Sockets,
    sender: Sender,
    media: Media,
    /// Notified by the relay's workers when notices are waiting.
    notices: Arc<Notify>,
    journal: Journal,
    /// Records of ended calls that did not fit in the journal yet.
    unwritten: VecDeque<Box<Cdr>>,
    /// The channel to the task that stores the notes.
    notes: Option<mpsc::Sender<PhoneReply>>,
    requests: mpsc::Receiver<Request>,
    questions: mpsc::Receiver<WaitingQuery>,
    /// Receivers of the answers to queries.
    replies: HashMap<ReplyToken, oneshot::Sender<QueryAnswer>>,
    last_token: u64,
    /// Calls whose answers are on the disk; at most as many as wait in the journal.
    journalled: (mpsc::UnboundedSender<CallId>, mpsc::UnboundedReceiver<CallId>),
    /// Stores the changes that phones request by star codes; without it they get 503.
    extensions: Option<Arc<dyn Extensions>>,
    changed: (mpsc::Sender<Changed>, mpsc::Receiver<Changed>),
    resolver: Arc<Resolver>,
    resolved: (mpsc::Sender<Resolved>, mpsc::Receiver<Resolved>),
    news: Option<Box<dyn Fn(SwitchEvent) + Send>>,
    room_news: Option<Box<dyn Fn(RoomEvent) + Send>>,
    room_notes: Option<Box<dyn Fn(RoomNote) + Send>>,
    refusals: RefusalLog,
    tapped: Tapped,
    /// Relays between phones of this node and other nodes of its cluster.
    edge: Option<EdgeTraffic>,
    gauges: Arc<Gauges>,
    /// Admitted datagrams that wait.
    intake: Intake,
    log: NoticeLog,
    supervisor: Supervisor,
    /// The clocks as of the last reading; they are read once in each iteration, and between groups of messages.
    clock: Now,
    /// Whether new calls are accepted, as last fed to the switch.
    accepts: bool,
    drain_until: Option<Instant>,
    /// How long the last CANCELs and BYEs may wait for their answers.
    last_words: Option<Instant>,
}

impl Driver {
    /// Creates a driver and its handle. `external` is the address in SDP instead of the local one.
    pub fn new(
        switch: Switch,
        sockets: Sockets,
        relay: Arc<Relay>,
        notices: Arc<Notify>,
        external: Option<IpAddr>,
        journal: Journal,
        resolver: Resolver,
    ) -> (Driver, Handle) {
        let gauges = Arc::new(Gauges::default());
        let (handle, handle::Mailbox { requests, questions }) = Handle::new(Arc::clone(&gauges));
        let driver = Driver {
            switch,
            sender: sockets.sender(),
            sockets,
            media: Media::new(relay, external),
            notices,
            journal,
            unwritten: VecDeque::new(),
            notes: None,
            requests,
            questions,
            replies: HashMap::new(),
            last_token: 0,
            journalled: mpsc::unbounded_channel(),
            extensions: None,
            changed: mpsc::channel(NEWS_MAX),
            resolver: Arc::new(resolver),
            resolved: mpsc::channel(NEWS_MAX),
            news: None,
            room_news: None,
            room_notes: None,
            refusals: RefusalLog::default(),
            tapped: Tapped::default(),
            edge: None,
            gauges,
            intake: Intake::default(),
            log: NoticeLog::default(),
            supervisor: Supervisor::default(),
            clock: now(),
            accepts: true,
            drain_until: None,
            last_words: None,
        };
        (driver, handle)
    }

    /// Calls `news` for events of calls and of guessed passwords; `news` must not block.
    #[must_use]
    pub fn telling(mut self, news: impl Fn(SwitchEvent) + Send + 'static) -> Self {
        self.news = Some(Box::new(news));
        self
    }

    /// Calls `news` for changes in live rooms; `news` must not block.
    #[must_use]
    pub fn telling_of_rooms(mut self, news: impl Fn(RoomEvent) + Send + 'static) -> Self {
        self.room_news = Some(Box::new(news));
        self
    }

    /// Calls `notes` for notes to phones in rooms; `notes` must not block.
    #[must_use]
    pub fn noting_rooms(mut self, notes: impl Fn(RoomNote) + Send + 'static) -> Self {
        self.room_notes = Some(Box::new(notes));
        self
    }

    /// Sends phones' responses to notes, and phones' own messages, to `notes`.
    #[must_use]
    pub fn noting(mut self, notes: mpsc::Sender<PhoneReply>) -> Self {
        self.notes = Some(notes);
        self
    }

    /// Stores in `extensions` the changes that phones request by star codes.
    #[must_use]
    pub fn changing(mut self, extensions: Arc<dyn Extensions>) -> Self {
        self.extensions = Some(extensions);
        self
    }

    /// Traces the legs that `tracing` selects.
    #[must_use]
    pub fn traced(mut self, tracing: impl Tracing + 'static) -> Self {
        self.media.trace(Box::new(tracing));
        self
    }

    /// Passes SIP messages with their calls to `tap`; call it before [`Driver::run`].
    #[must_use]
    pub fn tapped(mut self, tap: Option<SignallingTap>) -> Self {
        self.tapped = tap.map(|tap| Tapped::by(tap, &mut self.switch)).unwrap_or_default();
        self
    }

    /// Relays between phones of this node and other nodes of its cluster.
    #[must_use]
    pub fn relaying(mut self, edge: Option<EdgeTraffic>) -> Self {
        self.edge = edge;
        self
    }

    /// Enables the audio of rooms: `audio` provides prompts and recordings, `seed` determines the SSRCs and
    /// sequence numbers of the mixes' streams.
    #[must_use]
    pub fn sounding(mut self, audio: impl ConferenceAudio + 'static, seed: u64) -> Self {
        self.media.sound(Box::new(audio), seed);
        self
    }

    /// Runs the driver's further tasks under `supervisor`.
    #[must_use]
    pub fn supervised(mut self, supervisor: Supervisor) -> Self {
        self.supervisor = supervisor;
        self
    }

    /// Called after a panic: passes all remaining records to the journal, and waits until they are written.
    /// Answered calls are already in the journal; the next start ends them.
    pub async fn save(&mut self) {
        while !self.unwritten.is_empty() {
            self.flush_records();
            tokio::time::sleep(RETRY_AFTER).await;
        }
        if !self.journal.flush(now().wall, SAVE_MAX).await {
            tracing::error!("the journal did not take the last records in time");
        }
    }

    /// Runs until drained.
    pub async fn run(&mut self) {
        let mut tick = tokio::time::interval(TICK_EVERY);
        self.read_clock();
        self.feed(Input::Begin);
        // Reset only for an earlier deadline: most deadlines are withdrawn, and one unneeded iteration costs less
        // than a change of the timer in every iteration.
        let mut timer = pin!(tokio::time::sleep_until(self.deadline().into()));
        loop {
            let deadline = self.deadline();
            if timer.is_elapsed() || deadline < timer.deadline().into_std() {
                timer.as_mut().reset(deadline.into());
            }
            let event = tokio::select! {
                arrival = self.sockets.recv() => Event::Arrival(arrival),
                // Waiting datagrams are processed in turn with the other events.
                () = std::future::ready(()), if self.intake.len() > 0 => Event::Time,
                () = self.notices.notified() => Event::Notices,
                Some(call) = self.journalled.1.recv() => Event::Journalled(call),
                Some((extension, result)) = self.changed.1.recv() => Event::Changed(extension, result),
                Some((address, answer)) = self.resolved.1.recv() => Event::Resolved(address, answer),
                Some(request) = self.requests.recv() => Event::Request(request),
                Some(query) = self.questions.recv() => Event::Query(query),
                _ = tick.tick() => Event::Tick,
                () = &mut timer => Event::Time,
            };
            self.read_clock();
            self.handle(event);
            self.work_off();
            if self.switch.next_timeout().is_some_and(|due| due <= self.clock.instant) {
                self.feed(Input::Timeout);
            }
            self.media.flush();
            self.flush_records();
            self.follow_journal();
            let media = (self.media.ports(), self.media.orders());
            self.gauges.note(&self.switch, media, (self.intake.len(), self.unwritten.len()));
            if self.is_drained() {
                // Phones may have registered since the last query for changes.
                return self.query(self.gauges.last_query());
            }
        }
    }

    /// Handles the event that ended the wait of an iteration.
    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrival(arrival) => self.arrived(arrival),
            Event::Changed(extension, result) => self.feed(Input::ExtensionChanged(extension, result)),
            Event::Journalled(call) => {
                self.feed(Input::Journalled(call));
                // One synchronisation makes the answers of several calls durable.
                for _ in 0..BURST_MAX {
                    let Ok(call) = self.journalled.1.try_recv() else { break };
                    self.feed(Input::Journalled(call));
                }
            }
            Event::Notices => self.take_notices(),
            Event::Query(query) => {
                self.query(query);
                for _ in 0..BURST_MAX {
                    let Ok(query) = self.questions.try_recv() else { break };
                    self.query(query);
                }
            }
            Event::Request(request) => self.request(request),
            Event::Resolved(address, answer) => self.feed(Input::Resolved(address, answer)),
            Event::Tick => self.tick(),
            Event::Time => {}
        }
    }

    fn read_clock(&mut self) {
        self.clock = now();
    }

    fn deadline(&self) -> Instant {
        let now = self.clock.instant;
        let backlog = self.media.orders() > 0 || !self.unwritten.is_empty();
        let retry = backlog.then(|| now + RETRY_AFTER);
        [self.switch.next_timeout(), self.last_words.or(self.drain_until), retry]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(now + TICK_EVERY)
    }

    fn arrived(&mut self, arrival: Arrival) {
        // `/readyz` reads the journal directly: a call that arrives after it returned 200 must be accepted.
        self.follow_journal();
        match arrival {
            Arrival::Closed(flow) => self.feed(Input::Closed(flow)),
            Arrival::Unopened(flow) => self.feed(Input::Unopened(flow)),
            Arrival::Datagram { flow, bytes } => self.knocked(flow, bytes),
            Arrival::Identified { flow, names } => self.feed(Input::Identified(flow, names)),
            Arrival::Unsecured { flow, server, error } => {
                self.log.note_unsecured(now().instant, &flow, server.as_deref(), &error);
            }
            Arrival::Message { flow, message } => {
                self.gauges.counters.received().note_message(&message);
                match edge::of_message(&mut self.edge, self.clock.instant, &flow, message) {
                    Ok(relayed) => edge::send(relayed, &self.sender, &self.gauges),
                    Err(message) => self.feed(Input::Message { flow, message }),
                }
            }
            // A phone that another node called is unreachable.
            Arrival::Refused { flow, bytes } if edge::has_sent(&self.edge, &flow, &bytes) => {
                self.feed(Input::Closed(flow));
            }
            Arrival::Refused { flow, bytes } => self.feed(Input::Refused(flow, bytes)),
            Arrival::Rejected { flow, reason } => {
                self.carry_out(self.clock, Output::Notice(Notice::Rejected(flow.remote.ip(), reason)));
            }
        }
    }

    /// Handles a datagram from a socket: queues it, or drops it after a quick scan.
    fn knocked(&mut self, flow: Flow, bytes: Bytes) {
        self.gauges.counters.received().note(&bytes);
        let now = self.clock;
        if let Some(relayed) = edge::of_datagram(&mut self.edge, now.instant, &flow, &bytes) {
            return edge::send(relayed, &self.sender, &self.gauges);
        }
        let unread = self.tapped.datagram(flow, &bytes);
        let admitted = self
            .switch
            .admit(now.instant, &flow, &bytes)
            .and_then(|rank| if self.intake.push(rank, flow, bytes) { Ok(()) } else { Err(Dropped::Queue) });
        if let Err(reason) = admitted {
            // The ACK of a refusal that left no transaction belongs to a call nevertheless.
            self.tapped.fed(now, &mut self.switch, unread.filter(|_| reason == Dropped::Stray));
            self.carry_out(now, Output::Notice(Notice::Dropped(flow.remote.ip(), reason)));
        }
    }

    /// Processes waiting datagrams, and drains the sockets in between, so that datagrams that will be dropped do not
    /// fill the system's socket buffers.
    fn work_off(&mut self) {
        for turn in 0..BURST_MAX {
            if turn.is_multiple_of(READ_EVERY) {
                self.empty_sockets();
                if turn > 0 {
                    self.read_clock();
                }
            }
            let Some((flow, bytes)) = self.intake.pop() else { break };
            self.feed(Input::Datagram { flow, bytes });
        }
        for _ in 0..BURST_MAX {
            let Some(arrival) = self.sockets.try_recv_message() else { break };
            self.arrived(arrival);
        }
    }

    fn empty_sockets(&mut self) {
        for _ in 0..READ_MAX {
            let Some((flow, bytes)) = self.sockets.try_recv_datagram() else { break };
            self.knocked(flow, bytes);
        }
    }

    fn feed(&mut self, input: Input) {
        let now = self.clock;
        let message = self.tapped.message(&input);
        self.switch.handle_input(now, input);
        self.tapped.fed(now, &mut self.switch, message);
        while let Some(output) = self.switch.poll_output() {
            self.tapped.output(now, &mut self.switch, &output);
            self.carry_out(now, output);
        }
    }

    /// Feeds a query to the switch, unless its client has abandoned it.
    fn query(&mut self, waiting: WaitingQuery) {
        let Some((query, reply)) = waiting.begin() else { return };
        self.last_token = self.last_token.wrapping_add(1);
        let token = ReplyToken(self.last_token);
        self.replies.insert(token, reply);
        self.feed(Input::Query(token, query));
    }

    fn carry_out(&mut self, now: Now, output: Output) {
        match output {
            Output::Answered(call, record) => self.note_answer(call, record),
            Output::ChangeExtension(extension, organisation, change) => {
                self.change(now, (extension, organisation), *change);
            }
            Output::Ended(record) => self.note_end(record),
            Output::Media(port, command) => self.media.order(port, command),
            Output::Mix(mix, order) => self.order_mix(now, mix, order),
            Output::Name(order, language) => self.media.order_name(order, language),
            Output::News(news) => {
                if let Some(tell) = &self.news {
                    tell(*news);
                }
            }
            Output::Notice(notice) => {
                self.gauges.counters.note_notice(&notice);
                match &notice {
                    Notice::Denied(denied) => self.refusals.write(now.wall, denied),
                    notice => self.log.note(now.instant, notice),
                }
            }
            Output::Proven(flow) => self.sender.trust(&flow),
            Output::Close(flow) => self.sender.close(&flow),
            Output::Hold(flow, is_held) => self.sender.hold(&flow, is_held),
            Output::RoomEvent(news) => {
                if let Some(tell) = &self.room_news {
                    tell(*news);
                }
            }
            Output::RoomNote(note) => {
                if let Some(tell) = &self.room_notes {
                    tell(*note);
                }
            }
            Output::OpenPort { leg, group, towards, video } => {
                let rtcp = self.tapped.rtcp_of(leg.call);
                let port = self.media.open(now.instant, leg, group, (towards, video), rtcp);
                self.switch.handle_input(now, Input::PortOpened(leg, port));
            }
            Output::Reply(token, answer) => {
                if let Some(reply) = self.replies.remove(&token) {
                    // Fails if the client has disconnected in the meantime; that is harmless.
                    let _ = reply.send(answer);
                }
            }
            Output::Resolve(address) => self.resolve(address),
            Output::NoteAnswered(note, place, answer) => {
                self.tell_notes(now, PhoneReply::Answered { note, place, answer });
            }
            Output::IncomingMessage(said) => self.tell_notes(now, PhoneReply::IncomingMessage(said)),
            Output::Transmit { flow, bytes, key } => {
                self.gauges.counters.sent().note(&bytes);
                // The peer may send from a new address, or with a new key, as soon as it has its answer.
                if self.media.orders() > 0 {
                    self.media.flush();
                }
                let failed = self.sender.try_send(&flow, &bytes).is_err();
                if let Some(key) = key.filter(|_| failed) {
                    self.switch.handle_input(now, Input::TransportError(key));
                }
            }
        }
    }

    /// Logs and counts an ended call, and passes its record to the journal.
    fn note_end(&mut self, mut record: Box<Cdr>) {
        tracing::info!(
            call.id = %record.call_uuid,
            call.direction = record.direction.as_str(),
            call.hangup_cause = record.hangup_cause.map(HangupCause::as_str),
            call.billsec = record.billsec,
            call.media_verdict = record.quality.verdict.map(|verdict| verdict.as_str()),
            call.media_verdict_worse = record.worse_verdict().map(|verdict| verdict.as_str()),
            "call ended"
        );
        self.gauges.counters.note_end(&record);
        if self.unwritten.len() + self.journal.queue_len() > DETAILED_LEN_MAX {
            record.media = record.media.map(|media| Box::new(media.without_timeline()));
        }
        self.unwritten.push_back(record);
        self.flush_records();
    }

    /// Sends an order to a mix; reports a recording that cannot begin as ended.
    fn order_mix(&mut self, now: Now, mix: MixId, order: MixOrder) {
        let session = if let MixOrder::Record(plan) = &order { Some(plan.session) } else { None };
        if let Err(error) = self.media.order_mix(mix, order)
            && let Some(session) = session
        {
            tracing::error!(conference.session = %session, error, "a conference is not recorded");
            let recording = Recording { bytes: 0, error: Some(error) };
            self.switch.handle_input(now, Input::Recorded(session, recording));
        }
    }

    /// Passes a reply to the task that stores the notes, without waiting.
    fn tell_notes(&mut self, now: Now, news: PhoneReply) {
        let refused = match &self.notes {
            Some(notes) => notes.try_send(news).err().map(TrySendError::into_inner),
            None => Some(news),
        };
        match refused {
            None => {}
            // The note's receipt expires if no answer is stored for a while.
            Some(PhoneReply::Answered { note, .. }) => {
                tracing::error!(note.id = %note, "the answer of a phone to a note is lost: too many wait to be stored");
            }
            Some(PhoneReply::IncomingMessage(said)) => {
                let answer = Input::Answer(said.key, SERVICE_UNAVAILABLE);
                self.switch.handle_input(now, answer);
            }
        }
    }

    /// Starts a DNS lookup in its own task, because the switch never waits.
    fn resolve(&self, address: TrunkAddress) {
        let (resolver, done) = (Arc::clone(&self.resolver), self.resolved.0.clone());
        let supervisor = self.supervisor.clone();
        drop(self.supervisor.once(Task::Names, async move {
            // A lookup that panics counts as an unknown name, so that the waiting call continues.
            let answer = supervisor.attempt(Task::Names, resolver.lookup(&address)).await;
            // Fails only if the engine stops and the driver no longer exists.
            let _ = done.send((address, answer.unwrap_or_default())).await;
        }));
    }

    /// Stores a change of an extension in its own task, because the switch never waits.
    fn change(&self, now: Now, extension: (ExtensionId, OrganisationId), change: ExtensionChange) {
        let (extensions, done) = (self.extensions.clone(), self.changed.0.clone());
        let supervisor = self.supervisor.clone();
        drop(self.supervisor.once(Task::StarCodes, async move {
            let stored = star_codes::store(extensions, extension, change, now.wall);
            let result = supervisor.attempt(Task::StarCodes, stored).await;
            // Fails only if the engine stops and the driver no longer exists.
            let _ = done.send((extension.0, result.unwrap_or(Err(SERVICE_UNAVAILABLE)))).await;
        }));
    }

    /// Writes an answered call to the journal; its commit lets the switch answer the caller.
    fn note_answer(&mut self, call: CallId, record: Box<Cdr>) {
        let done = &self.journalled.0;
        // A stalled disk delays records, not calls: the record is written at the call's end.
        if let Err(JournalFull { .. }) = self.journal.answered_then(*record, done.clone()) {
            tracing::error!(call.id = %call, "the journal is full: this call's record would not survive a crash");
            // The driver has the receiver.
            let _ = done.send(call);
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
        while let Some(notice) = self.media.notice() {
            let input = match notice {
                net::Notice::Closed { id, report } => {
                    self.media.forget(id).map(|port| Input::Report(port, report))
                }
                net::Notice::Digit { id, digit } => self.media.port(id).map(|port| Input::Digit(port, digit)),
                net::Notice::Key { id, digit, duration_ms } => {
                    self.media.port(id).map(|port| Input::Key(port, digit, duration_ms))
                }
                net::Notice::Played { id, token } => {
                    self.media.port(id).map(|port| Input::Played(port, token))
                }
                net::Notice::Silent { id, since_us } => {
                    let since = since_us.map(|us| Duration::from_micros(us.unsigned_abs()));
                    self.media.port(id).map(|port| Input::Silent(port, since))
                }
                net::Notice::Snapshot { id, report } => {
                    self.media.port(id).map(|port| Input::Snapshot(port, report))
                }
                net::Notice::Warning { id, warning } => {
                    self.media.port(id).map(|port| Input::Warning(port, warning))
                }
                net::Notice::Talking { id, talking } => {
                    self.media.port(id).map(|port| Input::Talking(port, talking))
                }
                // The recorder reports the end of a recording itself; the driver does not use `Latched`.
                net::Notice::RecordingEnded { .. } | net::Notice::Latched { .. } => None,
            };
            if let Some(input) = input {
                self.feed(input);
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
            Request::Members(members) => edge::replace_members(&mut self.edge, members),
            Request::NameKnown(leg, is_known) => self.feed(Input::Name(leg, is_known)),
            Request::Recorded(session, recording) => self.feed(Input::Recorded(session, recording)),
            Request::Settings(settings) => self.feed(Input::Settings(settings)),
            Request::Drain(limit) => {
                self.feed(Input::Accept(false));
                self.feed(Input::LeaveTrunks);
                self.drain_until = Some(self.clock.instant + limit);
            }
        }
    }

    fn tick(&mut self) {
        // A full queue skips one tick; the next follows within seconds.
        let _ = self.journal.tick(self.clock.wall);
        if self.media.has_lost_a_worker() {
            self.supervisor.fail(Task::Relay);
        }
    }

    /// Stops accepting new calls while the journal cannot write records, and resumes afterwards.
    fn follow_journal(&mut self) {
        let accepts = self.journal.is_healthy();
        if self.drain_until.is_none() && accepts != self.accepts {
            self.accepts = accepts;
            self.feed(Input::Accept(accepts));
        }
    }

    fn is_drained(&mut self) -> bool {
        let Some(until) = self.drain_until else { return false };
        let now = self.clock.instant;
        if self.switch.live_calls() > 0 && until <= now {
            self.drain_until = Some(now + LAST_WORDS);
            self.feed(Input::EndCalls(HangupCause::NormalClearing));
        }
        if self.switch.live_calls() > 0 || !self.unwritten.is_empty() {
            return false;
        }
        // A phone that has not sent a 100 cannot be cancelled yet (RFC 3261 §9.1). Stopping now would leave
        // it ringing.
        let last_words = *self.last_words.get_or_insert(now + LAST_WORDS);
        // Recordings must be closed too, because their session reports their result.
        let is_silent = self.switch.legs() == 0 && self.switch.registrations() == 0;
        (is_silent && self.switch.open_recordings() == 0) || last_words <= now
    }
}

/// The event that ends the wait of an iteration.
enum Event {
    Arrival(Arrival),
    Changed(ExtensionId, Result<(), u16>),
    Journalled(CallId),
    Notices,
    Query(WaitingQuery),
    Request(Request),
    Resolved(TrunkAddress, Answer),
    Tick,
    /// A deadline has come, or datagrams wait.
    Time,
}

#[expect(clippy::disallowed_methods, reason = "the driver is where the clocks are read")]
fn now() -> Now {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let micros = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
    Now { instant: Instant::now(), wall: Timestamp::from_micros(micros) }
}

/// Messages or queries processed in a row before timers and notices.
const BURST_MAX: usize = 64;
/// Messages processed between two reads of the sockets.
const READ_EVERY: usize = 4;
/// Datagrams read from the sockets in a row: what a flood delivers in a few milliseconds.
const READ_MAX: usize = 256;
/// The response to a phone's message that no task can accept.
const SERVICE_UNAVAILABLE: u16 = 503;
/// How long the last BYEs and reports may take after the drain time.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Results of DNS and of the database that may wait for the driver.
const NEWS_MAX: usize = 1_024;
/// Time until a busy worker or journal is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(5);
/// How long the last records may take to reach the disk after a panic.
const SAVE_MAX: Duration = Duration::from_secs(4);
/// Interval at which live calls are confirmed in the journal.
const TICK_EVERY: Duration = Duration::from_secs(5);
