//! The names of the engine's tasks, and the reaction to a panic in each of them.

/// A task or thread of the engine, or a kind of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Task {
    /// Reports that the answer of a call is on the disk.
    Answers,
    /// Requests the organisations' call-info URLs for answered calls.
    CallInfo,
    /// Stores the events of live calls.
    CallNews,
    /// Compares the wall clock with the monotonic clock and checks the disk.
    Clock,
    /// Reports deductions from credits.
    CreditDraws,
    /// Reads the stored directory again when it has changed.
    Directory,
    /// Reads the event log for the live streams.
    Events,
    /// Accepts HTTP connections.
    Http,
    /// Writes the call journal.
    Journal,
    /// Resolves the names of trunks.
    Names,
    /// Passes stored notes to the switch.
    NoteCourier,
    /// Processes the switch's reports about notes.
    NoteNews,
    /// Deletes old notes.
    NoteSweep,
    /// Stores notes and receipts.
    NoteWriter,
    /// Writes ended calls from the journal into the database.
    RecordWriter,
    /// Writes recordings to the disk.
    Recorder,
    /// Reports the results of recordings.
    Recordings,
    /// Relays media.
    Relay,
    /// Deletes old recordings.
    Retention,
    /// Stores sessions and events of rooms.
    RoomNews,
    /// Closes the sessions of crashed nodes.
    RoomSweep,
    /// Runs the switch and its SIP sockets.
    Sip,
    /// Accepts and serves SIP connections over TCP.
    SipTcp,
    /// Reads the stored prompts again when they have changed.
    Sounds,
    /// Deletes old events, deliveries and idempotency keys.
    Sweep,
    /// Reads packets from the tapped interfaces.
    Tap,
    /// Writes records of tapped calls.
    TapScribe,
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
    /// One unit of work (a lookup, a connection, a leg) is lost; the others go on.
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
    /// Every task, each at the index of its discriminant.
    pub const ALL: [Task; 29] = [
        Task::Answers,
        Task::CallInfo,
        Task::CallNews,
        Task::Clock,
        Task::CreditDraws,
        Task::Directory,
        Task::Events,
        Task::Http,
        Task::Journal,
        Task::Names,
        Task::NoteCourier,
        Task::NoteNews,
        Task::NoteSweep,
        Task::NoteWriter,
        Task::RecordWriter,
        Task::Recorder,
        Task::Recordings,
        Task::Relay,
        Task::Retention,
        Task::RoomNews,
        Task::RoomSweep,
        Task::Sip,
        Task::SipTcp,
        Task::Sounds,
        Task::Sweep,
        Task::Tap,
        Task::TapScribe,
        Task::Traces,
        Task::Webhooks,
    ];

    /// The name in the log, in `/metrics` and in `/readyz`.
    pub fn as_str(self) -> &'static str {
        match self {
            Task::Answers => "answers",
            Task::CallInfo => "call_info",
            Task::CallNews => "call_news",
            Task::Clock => "clock",
            Task::CreditDraws => "credit_draws",
            Task::Directory => "directory",
            Task::Events => "events",
            Task::Http => "http",
            Task::Journal => "journal",
            Task::Names => "names",
            Task::NoteCourier => "note_courier",
            Task::NoteNews => "note_news",
            Task::NoteSweep => "note_sweep",
            Task::NoteWriter => "note_writer",
            Task::RecordWriter => "record_writer",
            Task::Recorder => "recorder",
            Task::Recordings => "recordings",
            Task::Relay => "relay",
            Task::Retention => "retention",
            Task::RoomNews => "room_news",
            Task::RoomSweep => "room_sweep",
            Task::Sip => "sip",
            Task::SipTcp => "sip_tcp",
            Task::Sounds => "sounds",
            Task::Sweep => "sweep",
            Task::Tap => "tap",
            Task::TapScribe => "tap_scribe",
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
            Task::Answers | Task::Names | Task::Relay | Task::SipTcp => Reaction::LoseOne,
            _ => Reaction::Restart,
        }
    }
}
