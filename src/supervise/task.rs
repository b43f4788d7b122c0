//! The names of the engine's tasks, and the reaction to a panic in each of them.

/// A task or thread of the engine, or a kind of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Task {
    /// Shares the registrations of phones with the other nodes.
    Bindings,
    /// Sends the callbacks of requested calls.
    CallCallbacks,
    /// Writes to NATS the data that other nodes need to record the calls of this one.
    CallCopies,
    /// Requests the organisations' call-info URLs for answered calls.
    CallInfo,
    /// Prepares the texts of old call records for searches.
    CallLogTexts,
    /// Passes stored call requests to the switch.
    CallRequests,
    /// Notifies the other nodes of changes of the directory and of credentials, and receives their notices.
    Changes,
    /// Compares the wall clock with the monotonic clock and checks the disk.
    Clock,
    /// Writes the heartbeats of this node to NATS, and reads those of the others.
    Cluster,
    /// Reserves credit for the calls of this node.
    Credit,
    /// Reports deductions from credits.
    CreditDraws,
    /// Reads the stored directory again when it has changed.
    Directory,
    /// Reads the event log for the live streams.
    Events,
    /// Sends the files of this node to the other nodes.
    FileQuestions,
    /// Sends HEP packets to a Homer server.
    Hep,
    /// Reports the figures of live legs to a Homer server.
    HepFigures,
    /// Accepts HTTP connections.
    Http,
    /// Writes the call journal.
    Journal,
    /// Answers the requests of other nodes about limits.
    LimitQuestions,
    /// Enforces the limits of outbound calls together with the other nodes.
    Limits,
    /// Measures the load of the node.
    Load,
    /// Records the calls of nodes that died.
    LostCalls,
    /// Resolves the names of trunks.
    Names,
    /// Connects the nodes of a cluster over TLS.
    NodeLinks,
    /// Passes stored notes to the switch.
    NoteDispatch,
    /// Processes the switch's reports about notes.
    PhoneReplies,
    /// Answers the requests of other nodes.
    Peers,
    /// Deletes old notes.
    NoteSweep,
    /// Stores notes and receipts.
    NoteWriter,
    /// Writes ended calls from the journal and the events of live calls into the database.
    RecordWriter,
    /// Writes recordings to the disk.
    Recorder,
    /// Reports the results of recordings.
    Recordings,
    /// Keeps the registrations of phones across a restart.
    Registrations,
    /// Relays media.
    Relay,
    /// Deletes old recordings.
    Retention,
    /// Claims the rooms that are live at this node, and follows the owners of the others.
    RoomOwners,
    /// Stores sessions and events of rooms.
    ConferenceHistory,
    /// Closes the sessions of crashed nodes.
    RoomSweep,
    /// Collects the SIP messages of calls.
    Signalling,
    /// Stores the SIP messages of ended calls.
    SignallingWriter,
    /// Runs the switch and its SIP sockets.
    Sip,
    /// Accepts and serves SIP connections over TCP.
    SipTcp,
    /// Reads the stored prompts again when they have changed.
    Sounds,
    /// Finds rooms that are live at two nodes.
    SplitRooms,
    /// Finds and stores the recorded names of room members.
    SpokenNames,
    /// Stores the changes that phones request by star codes.
    StarCodes,
    /// Deletes old events, deliveries and idempotency keys.
    Sweep,
    /// Reads packets from the tapped interfaces.
    Tap,
    /// Writes records of tapped calls.
    TapWriter,
    /// Writes traces of legs.
    Traces,
    /// Sends events to webhooks.
    Webhooks,
}

/// The reaction to a panic in a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// The process ends: its calls cannot continue without the task.
    EndProcess,
    /// One unit of work (a lookup, a connection, a leg) is lost; the others continue.
    LoseOne,
    /// The task starts again with the state that survived.
    Restart,
}

/// The condition of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It was not started, or it ended normally.
    Ended,
    /// It failed; the process is about to end.
    Failed,
    /// It panicked and will be started again.
    Restarting,
    /// It runs.
    Running,
}

impl Task {
    /// Whether no call waits for the task: it stores or sends records and events, or serves HTTP. Its iterations may
    /// take many milliseconds; on a thread of the switch they would delay SIP messages.
    pub(super) fn is_background(self) -> bool {
        matches!(
            self,
            Task::CallCallbacks
                | Task::CallLogTexts
                | Task::ConferenceHistory
                | Task::Events
                | Task::FileQuestions
                | Task::Http
                | Task::LostCalls
                | Task::NoteSweep
                | Task::RecordWriter
                | Task::Retention
                | Task::RoomSweep
                | Task::SignallingWriter
                | Task::SpokenNames
                | Task::Sweep
                | Task::Webhooks
        )
    }

    /// Every task, each at the index of its discriminant.
    pub const ALL: [Task; 51] = [
        Task::Bindings,
        Task::CallCallbacks,
        Task::CallCopies,
        Task::CallInfo,
        Task::CallLogTexts,
        Task::CallRequests,
        Task::Changes,
        Task::Clock,
        Task::Cluster,
        Task::Credit,
        Task::CreditDraws,
        Task::Directory,
        Task::Events,
        Task::FileQuestions,
        Task::Hep,
        Task::HepFigures,
        Task::Http,
        Task::Journal,
        Task::LimitQuestions,
        Task::Limits,
        Task::Load,
        Task::LostCalls,
        Task::Names,
        Task::NodeLinks,
        Task::NoteDispatch,
        Task::PhoneReplies,
        Task::Peers,
        Task::NoteSweep,
        Task::NoteWriter,
        Task::RecordWriter,
        Task::Recorder,
        Task::Recordings,
        Task::Registrations,
        Task::Relay,
        Task::Retention,
        Task::RoomOwners,
        Task::ConferenceHistory,
        Task::RoomSweep,
        Task::Signalling,
        Task::SignallingWriter,
        Task::Sip,
        Task::SipTcp,
        Task::Sounds,
        Task::SplitRooms,
        Task::SpokenNames,
        Task::StarCodes,
        Task::Sweep,
        Task::Tap,
        Task::TapWriter,
        Task::Traces,
        Task::Webhooks,
    ];

    /// The name in the log, in `/metrics` and in `/readyz`.
    pub fn as_str(self) -> &'static str {
        match self {
            Task::Bindings => "bindings",
            Task::CallCallbacks => "call_callbacks",
            Task::CallCopies => "call_copies",
            Task::CallInfo => "call_info",
            Task::CallLogTexts => "call_log_texts",
            Task::CallRequests => "call_requests",
            Task::Changes => "changes",
            Task::Clock => "clock",
            Task::Cluster => "cluster",
            Task::Credit => "credit",
            Task::CreditDraws => "credit_draws",
            Task::Directory => "directory",
            Task::Events => "events",
            Task::FileQuestions => "file_questions",
            Task::Hep => "hep",
            Task::HepFigures => "hep_figures",
            Task::Http => "http",
            Task::Journal => "journal",
            Task::LimitQuestions => "limit_questions",
            Task::Limits => "limits",
            Task::Load => "load",
            Task::LostCalls => "lost_calls",
            Task::Names => "names",
            Task::NodeLinks => "node_links",
            Task::NoteDispatch => "note_courier",
            Task::PhoneReplies => "note_news",
            Task::Peers => "peers",
            Task::NoteSweep => "note_sweep",
            Task::NoteWriter => "note_writer",
            Task::RecordWriter => "record_writer",
            Task::Recorder => "recorder",
            Task::Recordings => "recordings",
            Task::Registrations => "registrations",
            Task::Relay => "relay",
            Task::RoomOwners => "room_owners",
            Task::Retention => "retention",
            Task::ConferenceHistory => "room_news",
            Task::RoomSweep => "room_sweep",
            Task::Signalling => "signalling",
            Task::SignallingWriter => "signalling_writer",
            Task::Sip => "sip",
            Task::SipTcp => "sip_tcp",
            Task::Sounds => "sounds",
            Task::SplitRooms => "split_rooms",
            Task::SpokenNames => "spoken_names",
            Task::StarCodes => "star_codes",
            Task::Sweep => "sweep",
            Task::Tap => "tap",
            Task::TapWriter => "tap_scribe",
            Task::Traces => "traces",
            Task::Webhooks => "webhooks",
        }
    }

    /// The task of that name.
    pub fn from_name(name: &str) -> Option<Task> {
        Task::ALL.into_iter().find(|task| task.as_str() == name)
    }

    /// The reaction to a panic.
    pub fn reaction(self) -> Reaction {
        match self {
            Task::Journal | Task::Sip | Task::Tap => Reaction::EndProcess,
            Task::CallRequests | Task::Names | Task::Relay | Task::SipTcp | Task::StarCodes => {
                Reaction::LoseOne
            }
            _ => Reaction::Restart,
        }
    }
}
