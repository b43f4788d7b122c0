//! The engine's metrics for `/metrics`: read on request from counters that its parts keep anyway.
//!
//! The RTP workers publish their counters once per batch; reading them takes none of their locks.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sidetone_media::net::{Counters, Relay};
use sidetone_media::session::Reason;
use sidetone_model::metrics::{Family, Kind, Metrics, Sample, Value};
use sidetone_model::ports::PortFuture;
use sidetone_sip::transport::{TcpCounters, TcpSender};
use sidetone_store::Store;
use sidetone_switch::counters::{self, Messages};

use crate::call_info;
use crate::call_requests::CallbackCounters;
use crate::cdr::journal::Journal;
use crate::clock::{ClockCounts, instant};
use crate::cluster::ClusterMember;
use crate::conference_history::HistoryCounters;
use crate::dead_letters::DeadLetters;
use crate::driver::Handle;
use crate::events::Bus;
use crate::events::call_events::CallEventCounters;
use crate::hep::HepCounters;
use crate::load::Load;
use crate::notes::NoteCounters;
use crate::process;
use crate::recorder::RecorderCounters;
use crate::signalling::SignallingCounters;
use crate::supervise::{Supervisor, Task};
use crate::traces::TraceCounters;
use crate::watch::DirectoryCounts;
use crate::webhooks::counters::WebhookCounters;

/// The engine's parts that have counters.
pub struct EngineMetrics {
    /// Media.
    pub relay: Arc<Relay>,
    /// The load of the node.
    pub load: Arc<Load>,
    /// Signalling and calls.
    pub switch: Handle,
    /// SIP connections.
    pub tcp: TcpSender,
    /// The queue for the disk.
    pub journal: Journal,
    /// The journal's directory.
    pub journal_dir: PathBuf,
    /// Rows that the database refused permanently.
    pub letters: DeadLetters,
    /// Notes to phones.
    pub notes: Arc<NoteCounters>,
    /// Recordings of rooms.
    pub recordings: Arc<RecorderCounters>,
    /// Traces of legs.
    pub traces: Arc<TraceCounters>,
    /// The export to a Homer server; `None` without one.
    pub hep: Option<Arc<HepCounters>>,
    /// The kept SIP messages.
    pub kept_signalling: Arc<SignallingCounters>,
    /// The events of live rooms.
    pub sessions: Arc<HistoryCounters>,
    /// Records that this run added to the database.
    pub stored: Arc<AtomicU64>,
    /// The events of live calls.
    pub call_events: Arc<CallEventCounters>,
    /// The results of call-info requests.
    pub call_info: Arc<call_info::Counts>,
    /// The database.
    pub store: Store,
    /// Live event streams.
    pub events: Bus,
    /// The deliveries of webhooks.
    pub webhooks: Arc<WebhookCounters>,
    /// The callbacks of requested calls.
    pub callbacks: Arc<CallbackCounters>,
    /// The tasks and their panics.
    pub supervisor: Supervisor,
    /// Jumps of the wall clock.
    pub clock: Arc<ClockCounts>,
    /// How changes of the directory were detected.
    pub directory: Arc<DirectoryCounts>,
    /// The member of a cluster; `None` for a standalone node.
    pub cluster: Option<ClusterMember>,
}

impl Metrics for EngineMetrics {
    fn families(&self) -> PortFuture<'_, Vec<Family>> {
        Box::pin(async move {
            let database_up = is_up(&self.store).await;
            let mut families = vec![build_info(), database(database_up)];
            families.extend(self.calls());
            families.extend(self.signalling());
            families.extend(connections(&self.tcp.counters()));
            let relay = self.relay.counters();
            families.extend(media(&relay));
            families.extend(mixes(&relay));
            families.push(self.load.family(instant()));
            families.extend(self.records());
            families.extend(notes(&self.notes));
            families.extend(self.recordings.families());
            families.extend(self.traces.families());
            families.extend(self.kept_signalling.families());
            families.extend(self.hep.iter().flat_map(|hep| hep.families()));
            families.extend(rooms(&self.sessions));
            families.extend(self.events());
            families.extend(self.webhooks.families(self.webhook_queue_len(database_up).await));
            families.extend(self.callbacks.families());
            families.push(self.supervisor.family(&[
                (Task::CallCallbacks, self.callbacks.panics.load(Ordering::Relaxed)),
                (Task::Relay, relay.panics),
                (Task::SipTcp, self.tcp.counters().panics),
                (Task::Webhooks, self.webhooks.panics.load(Ordering::Relaxed)),
            ]));
            families.extend(self.clock.families());
            families.push(self.directory.family());
            families.extend(self.cluster.iter().flat_map(ClusterMember::families));
            families.extend(disk(&self.journal));
            families.extend(process());
            Ok(families)
        })
    }
}

impl EngineMetrics {
    /// The number of waiting deliveries; not queried while the database is unavailable.
    async fn webhook_queue_len(&self, database_up: bool) -> Option<u64> {
        if !database_up {
            return None;
        }
        tokio::time::timeout(PING_MAX, self.store.webhook_queue_len()).await.ok()?.ok()
    }

    fn calls(&self) -> Vec<Family> {
        let ended = self.switch.counters().ended();
        let mut calls = Family::counter("sidetone_calls_total", "Calls that ended, by direction and cause.");
        for ((direction, cause), count) in &ended.calls {
            calls = calls.with([("direction", direction), ("hangup_cause", cause)], *count);
        }
        let mut verdicts = Family::counter(
            "sidetone_media_verdicts_total",
            "Legs of calls that ended, by the verdict on their audio: leg a is the caller's, leg b the called party's.",
        );
        for ((leg, verdict), count) in &ended.verdicts {
            verdicts = verdicts.with([("leg", leg), ("verdict", verdict)], *count);
        }
        vec![
            Family::gauge("sidetone_calls_live", "Calls up or being set up.")
                .is(self.switch.live_calls() as u64),
            Family::gauge("sidetone_legs_live", "Legs of calls, in SIP.").is(self.switch.legs() as u64),
            Family::gauge("sidetone_media_ports_open", "Pairs of RTP and RTCP ports in use.")
                .is(self.switch.ports() as u64),
            calls,
            verdicts,
        ]
    }

    fn signalling(&self) -> Vec<Family> {
        let counters = self.switch.counters();
        let [dropped, refused, addresses] = notices(counters);
        let [failures, calls_refused, guessed, pins_guessed] = denials(counters);
        vec![
            requests(
                "sidetone_sip_requests_received_total",
                "SIP requests received, by method.",
                counters.received(),
            ),
            requests("sidetone_sip_requests_sent_total", "SIP requests sent, by method.", counters.sent()),
            responses(
                "sidetone_sip_responses_received_total",
                "SIP responses received, by class.",
                counters.received(),
            ),
            responses("sidetone_sip_responses_sent_total", "SIP responses sent, by class.", counters.sent()),
            Family::gauge("sidetone_sip_bindings", "Bindings registered now.")
                .is(self.switch.bindings() as u64),
            self.transactions(),
            dropped,
            failures,
            guessed,
            pins_guessed,
            calls_refused,
            refused,
            addresses,
            self.queues(),
        ]
    }

    fn queues(&self) -> Family {
        let mut queues = Family::gauge("sidetone_queue_length", "Items waiting in a queue.")
            .with([("queue", "call_news")], self.call_events.waiting())
            .with([("queue", "journal")], self.journal.queue_len() as u64)
            .with([("queue", "room_news")], self.sessions.waiting());
        for (queue, length) in self.switch.queues() {
            queues = queues.with([("queue", queue)], length as u64);
        }
        queues
    }

    fn transactions(&self) -> Family {
        let (clients, servers) = self.switch.transactions();
        Family::gauge(
            "sidetone_sip_transactions",
            "SIP transactions, including those kept for retransmissions.",
        )
        .with([("role", "client")], clients as u64)
        .with([("role", "server")], servers as u64)
    }

    fn callbacks(&self) -> Family {
        let counts = &self.call_info;
        let results = [
            ("dropped", &counts.dropped),
            ("failed", &counts.failed),
            ("note", &counts.notes),
            ("nothing", &counts.nothing),
        ];
        let family = Family::counter(
            "sidetone_call_info_total",
            "Answered calls with a call-info URL, by result; dropped: no request was sent.",
        );
        results.into_iter().fold(family, |family, (result, count)| {
            family.with([("result", result)], count.load(Ordering::Relaxed))
        })
    }

    fn records(&self) -> Vec<Family> {
        vec![
            stored(&self.stored),
            self.callbacks(),
            Family::counter(
                "sidetone_call_news_dropped_total",
                "Events call.ringing, call.answered, call.media_warning and security.guessing that were lost because too many waited for the database.",
            )
            .is(self.call_events.dropped()),
            journal_healthy(&self.journal),
            Family::gauge(
                "sidetone_journal_bytes",
                "Octets of the journal on disk; grows while the database takes no records.",
            )
            .is(process::dir_bytes(&self.journal_dir)),
            dead_letters(&self.letters),
            database_failures(&self.store),
        ]
    }
}

/// The metrics of a node that is not a switch: its version, its database, its process.
pub async fn of_process(store: &Store) -> Vec<Family> {
    let mut families = vec![build_info(), database(is_up(store).await)];
    families.extend(process());
    families
}

/// Records that this run added to the database.
pub fn stored(records: &AtomicU64) -> Family {
    Family::counter("sidetone_call_records_stored_total", "Call records added to the database.")
        .is(records.load(Ordering::Relaxed))
}

/// Whether the disk accepts records.
pub fn journal_healthy(journal: &Journal) -> Family {
    Family::gauge("sidetone_journal_healthy", "Whether the disk takes journal records.")
        .is(journal.is_healthy().into())
}

/// The disk of the journal.
pub fn disk(journal: &Journal) -> Vec<Family> {
    let mut families = vec![
        Family::gauge(
            "sidetone_disk_full",
            "Whether the disk of the data directory is full except for the journal's reserve: new calls are refused.",
        )
        .is((!journal.has_space()).into()),
        Family::gauge("sidetone_journal_reserve_ready", "Whether the journal's reserve is untouched.")
            .is(journal.has_reserve().into()),
        Family::counter(
            "sidetone_journal_segments_failed_total",
            "Journal segments that were abandoned because a write or sync failed.",
        )
        .is(journal.failed_segments()),
    ];
    if let Some(free) = journal.free_bytes() {
        let help = "Free octets on the disk of the data directory.";
        families.push(Family::gauge("sidetone_disk_free_bytes", help).is(free));
    }
    families
}

/// Files with rows that the database refused permanently.
pub fn dead_letters(letters: &DeadLetters) -> Family {
    let count = letters.files().map_or(0, |files| files.len() as u64);
    Family::gauge(
        "sidetone_dead_letters",
        "Call records, events and notes that the database refused and that are stored in files; check any value but 0.",
    )
    .is(count)
}

fn database_failures(store: &Store) -> Family {
    let family = Family::counter(
        "sidetone_database_failures_total",
        "Statements that failed: for now (passing), for good (refused), or for a reason that is not known.",
    );
    store.failures().fold(family, |family, (kind, count)| family.with([("kind", kind)], count))
}

async fn is_up(store: &Store) -> bool {
    matches!(tokio::time::timeout(PING_MAX, store.ping()).await, Ok(Ok(())))
}

fn build_info() -> Family {
    Family::gauge("sidetone_build_info", "The running version; the value has no meaning.")
        .with([("version", env!("CARGO_PKG_VERSION"))], 1)
}

fn database(is_up: bool) -> Family {
    Family::gauge("sidetone_database_up", "Whether the database answers.").is(is_up.into())
}

/// Messages that were not served, and refusals of trunks.
fn notices(counters: &counters::Counters) -> [Family; 3] {
    let mut dropped = Family::counter(
        "sidetone_sip_dropped_total",
        "SIP messages not served, by reason: docs/configuration.md describes them.",
    );
    let mut refused = Family::counter(
        "sidetone_trunk_credentials_refused_total",
        "Times that a trunk refused our credentials, or challenged for a realm that may not have them.",
    );
    let mut addresses = Family::counter(
        "sidetone_trunk_addresses_refused_total",
        "Times that a trunk was not used because it resolved to an internal or another organisation's address.",
    );
    for (notice, count) in counters.notices() {
        if notice == "credentials" {
            refused = refused.is(count);
        } else if notice == "trunk_address" {
            addresses = addresses.is(count);
        } else {
            dropped = dropped.with([("reason", notice)], count);
        }
    }
    for (reason, count) in counters.dropped() {
        dropped = dropped.with([("reason", reason)], count);
    }
    [dropped, refused, addresses]
}

/// Requests and calls that were refused, and limits on wrong passwords that were reached.
fn denials(counters: &counters::Counters) -> [Family; 4] {
    let denied = counters.denied();
    let mut failures = Family::counter(
        "sidetone_sip_auth_failures_total",
        "SIP requests that failed authentication, by reason.",
    );
    for (reason, count) in denied.authentication {
        failures = failures.with([("reason", reason)], count);
    }
    let mut calls_refused = Family::counter(
        "sidetone_sip_calls_refused_total",
        "Calls of known senders that were refused, by hangup cause.",
    );
    for (cause, count) in denied.calls {
        calls_refused = calls_refused.with([("hangup_cause", cause)], count);
    }
    let mut guessed = Family::counter(
        "sidetone_sip_guessing_total",
        "Limits that wrong passwords reached: account (one source at one account), source (one source over all accounts), all_sources (one account over all sources).",
    );
    for (limit, count) in counters.guessed() {
        guessed = guessed.with([("limit", limit)], count);
    }
    let mut pins_guessed = Family::counter(
        "sidetone_room_pin_guessing_total",
        "Limits that wrong PINs of rooms reached: caller, known, organisation, room, trunk and withheld.",
    );
    for (limit, count) in counters.pins_guessed() {
        pins_guessed = pins_guessed.with([("limit", limit)], count);
    }
    [failures, calls_refused, guessed, pins_guessed]
}

fn rooms(counts: &HistoryCounters) -> Vec<Family> {
    vec![
        Family::gauge("sidetone_room_sessions_live", "Sessions of conference rooms that are live.")
            .is(counts.live()),
        Family::counter("sidetone_room_events_total", "Events of live rooms that were stored.")
            .is(counts.stored()),
        Family::counter("sidetone_room_changes_lost_total", "Changes of live rooms that were not stored.")
            .with([("what", "change")], counts.dropped())
            .with([("what", "event")], counts.discarded())
            .with([("what", "talk")], counts.talk_dropped()),
    ]
}

fn notes(counters: &NoteCounters) -> Vec<Family> {
    let family = |name, help, label: &'static str, counts: [(&'static str, u64); 2]| {
        let family = Family::counter(name, help);
        counts.into_iter().fold(family, |family, (value, count)| family.with([(label, value)], count))
    };
    vec![
        family("sidetone_notes_total", "Notes stored to be sent, by channel.", "channel", counters.sent()),
        family(
            "sidetone_note_receipts_total",
            "Answers of phones to notes; sent: accepted.",
            "status",
            counters.receipts(),
        ),
        family(
            "sidetone_note_acknowledgements_total",
            "Acknowledgements by phones: accepted ones, and forged, repeated or unrequested ones.",
            "result",
            counters.acknowledgements(),
        ),
    ]
}

impl EngineMetrics {
    fn events(&self) -> Vec<Family> {
        let mut gaps = Family::counter(
            "sidetone_event_stream_gaps_total",
            "Times that a stream could not deliver all events and sent stream.gap, by reason.",
        );
        for (reason, count) in self.events.gaps_total() {
            gaps = gaps.with([("reason", reason)], count);
        }
        vec![
            Family::counter(
                "sidetone_database_transactions_total",
                "Writing transactions that this node committed; many calls share one.",
            )
            .is(self.store.event_bell().writes_total()),
            Family::counter("sidetone_events_written_total", "Events that this node stored.")
                .is(self.store.event_bell().events_total()),
            Family::gauge("sidetone_event_streams_open", "Live streams of events open now.")
                .is(self.events.open_streams()),
            gaps,
        ]
    }
}

fn requests(name: &'static str, help: &'static str, messages: &Messages) -> Family {
    let family = Family::counter(name, help);
    messages.requests().fold(family, |family, (method, count)| family.with([("method", method)], count))
}

fn responses(name: &'static str, help: &'static str, messages: &Messages) -> Family {
    let family = Family::counter(name, help);
    messages.responses().fold(family, |family, (class, count)| family.with([("class", class)], count))
}

/// SIP over TCP.
fn connections(tcp: &TcpCounters) -> [Family; 3] {
    let refused = "SIP connections over TCP that were refused or ended by us, by reason.";
    [
        Family::gauge("sidetone_sip_tcp_connections", "SIP connections over TCP now.").is(tcp.open as u64),
        Family::counter("sidetone_sip_tcp_refused_total", refused)
            .with([("reason", "displaced")], tcp.displaced)
            .with([("reason", "no_place")], tcp.refused)
            .with([("reason", "no_descriptor")], tcp.accept_errors)
            .with([("reason", "timeout")], tcp.timeouts)
            .with([("reason", "unsecured")], tcp.unsecured),
        Family::counter(
            "sidetone_sip_tcp_dropped_total",
            "SIP messages that a TCP connection could not take.",
        )
        .is(tcp.dropped),
    ]
}

fn media(counters: &Counters) -> Vec<Family> {
    let dropped = [
        ("held", counters.held),
        ("originate_error", counters.originate_errors),
        ("oversize", counters.oversize),
        ("receive_queue", counters.local_drops),
        ("send_error", counters.send_errors),
        ("unmapped", counters.unmapped),
    ];
    let mut drops = Family::counter(
        "sidetone_rtp_dropped_total",
        "RTP and RTCP datagrams not relayed, by reason; those of receive_queue were never received.",
    );
    for (reason, count) in dropped {
        drops = drops.with([("reason", reason)], count);
    }
    for discard in &counters.discarded {
        let reason = format!("{:?}", discard.reason).to_ascii_lowercase();
        drops = drops.with([("reason", reason.as_str())], discard.packets);
    }
    let foreign = Family::counter(
        "sidetone_rtp_foreign_total",
        "RTP and RTCP refused because of its source, and RTP sent to a source that lost its leg again.",
    )
    .with([("direction", "received")], counters.discarded_for(Reason::Source))
    .with([("direction", "sent")], counters.foreign_sent);
    let one = |name, help, value| Family::counter(name, help).is(value);
    vec![
        one("sidetone_rtp_received_total", "RTP and RTCP datagrams received.", counters.received),
        one("sidetone_rtp_received_bytes_total", "Octets of RTP and RTCP received.", counters.received_bytes),
        one("sidetone_rtp_relayed_total", "RTP and RTCP datagrams sent to the other leg.", counters.relayed),
        one("sidetone_rtp_relayed_bytes_total", "Octets of RTP and RTCP sent.", counters.relayed_bytes),
        drops,
        foreign,
        one("sidetone_rtp_unstamped_total", "Datagrams without a kernel receive time.", counters.unstamped),
        one(
            "sidetone_rtp_waited_total",
            "Datagrams of batches whose first one waited 5 ms or longer for the relay.",
            counters.waited,
        ),
        one(
            "sidetone_rtp_system_calls_total",
            "System calls of the relay that wait, receive or send.",
            counters.system_calls,
        ),
        one("sidetone_rtp_unreachable_total", "ICMP errors about RTP that was sent.", counters.unreachable),
        one(
            "sidetone_media_commands_refused_total",
            "Commands to a worker whose queue was full; they are tried again.",
            counters.commands_refused,
        ),
        one(
            "sidetone_media_notices_dropped_total",
            "Notices of workers that were discarded; never the report of a call.",
            counters.notices_dropped,
        ),
    ]
}

/// The mixes of conferences.
fn mixes(counters: &Counters) -> Vec<Family> {
    let one = |name, help, value| Family::counter(name, help).is(value);
    let mut on_time = 0;
    let buckets = counters.ticks.late.map(|(bound_us, ticks)| {
        on_time += ticks;
        (bound_us, on_time)
    });
    let lateness = Value::Histogram {
        buckets: buckets.to_vec(),
        count: counters.ticks.total(),
        sum_us: counters.ticks.late_us,
    };
    let figures = &counters.mixing;
    vec![
        Family::gauge(
            "sidetone_mixes",
            "Conferences, and callers joining one, that are being mixed.",
        )
        .is(counters.mixes as u64),
        Family::gauge("sidetone_mix_seats", "Legs in a mix.").is(counters.seats as u64),
        Family::gauge("sidetone_mix_speakers", "Legs with audio in the last tick of their mix.")
            .is(figures.speakers),
        one("sidetone_mix_received_total", "RTP and RTCP datagrams of legs in a mix.", counters.mixed),
        one("sidetone_mix_sent_total", "RTP and RTCP datagrams that mixes sent.", counters.originated),
        one("sidetone_mix_sent_bytes_total", "Octets of RTP that mixes sent.", counters.originated_bytes),
        one(
            "sidetone_mix_decoded_frames_total",
            "Frames of 20 ms that mixes decoded.",
            figures.decoded_frames,
        ),
        one("sidetone_mix_encoded_packets_total", "Packets that mixes encoded.", figures.encoded_packets),
        one(
            "sidetone_mix_skipped_ticks_total",
            "Ticks of 20 ms that were skipped because a worker was late; audible.",
            figures.skipped_ticks,
        ),
        Family::counter(
            "sidetone_mix_unplayed_total",
            "RTP packets of parties in a mix that were not played: late ones, and early ones because too many waited.",
        )
        .with([("reason", "early")], figures.early_packets)
        .with([("reason", "late")], figures.late_packets),
        Family {
            samples: vec![Sample {
                labels: Vec::new(),
                value: Value::Micros(figures.concealed_ms.saturating_mul(1_000)),
            }],
            ..Family::counter(
                "sidetone_mix_concealed_seconds_total",
                "Concealed audio of parties in a mix.",
            )
        },
        Family {
            kind: Kind::Histogram,
            samples: vec![Sample { labels: Vec::new(), value: lateness }],
            ..Family::gauge("sidetone_mix_tick_lateness_seconds", "How late ticks of mixes began.")
        },
    ]
}

/// The process, with the metric names of Prometheus' own libraries.
fn process() -> Vec<Family> {
    let usage = process::usage();
    let micros = |name, help, value| Family {
        samples: vec![Sample { labels: Vec::new(), value: Value::Micros(value) }],
        ..Family::counter(name, help)
    };
    vec![
        micros("process_cpu_seconds_total", "Processor time used.", usage.cpu_us),
        Family::gauge("process_resident_memory_bytes", "Memory in use.").is(usage.resident_bytes),
        Family::gauge("process_open_fds", "Open file descriptors.").is(usage.open_files),
        Family::gauge("process_max_fds", "Open file descriptors at most.").is(usage.open_files_max),
    ]
}

/// A database that takes longer to answer counts as unavailable.
const PING_MAX: Duration = Duration::from_secs(1);
