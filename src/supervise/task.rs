//! The names of the engine's tasks, and what follows a panic in each of them.

/// A task or thread of the engine, or a kind of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Task {
    /// Passes on that the answer of a call is on the disk.
    Answers,
    /// Asks the organisations' URLs about answered calls.
    CallInfo,
    /// Stores the events of live calls.
    CallNews,
    /// Compares the wall clock with the monotonic clock and looks at the disk.
    Clock,
    /// Passes on what records took from credits.
    CreditDraws,
    /// Reads the stored directory again when it changed.
    Directory,
    /// Reads the event log for the live streams.
    Events,
    /// Accepts HTTP connections.
    Http,
    /// Writes the call journal.
    Journal,
    /// Asks the name service about trunks.
    Names,
    /// Hands stored notes to the switch.
    NoteCourier,
    /// Takes what the switch reports of notes.
    NoteNews,
    /// Deletes old notes.
    NoteSweep,
    /// Stores notes and receipts.
    NoteWriter,
    /// Writes ended calls from the journal into the database.
    RecordWriter,
    /// Writes recordings to the disk.
    Recorder,
    /// Passes on what became of recordings.
    Recordings,
    /// Relays media.
    Relay,
    /// Deletes old recordings.
    Retention,
    /// Stores sessions and events of rooms.
    RoomNews,
    /// Closes the sessions of nodes that died.
    RoomSweep,
    /// Runs the switch and its SIP sockets.
    Sip,
    /// Accepts and serves SIP connections over TCP.
    SipTcp,
    /// Reads the stored prompts again when they changed.
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

/// What follows a panic in a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// The process ends: the calls of this process cannot go on without the task.
    EndProcess,
    /// One unit of work (a lookup, a connection, a leg) is lost; the others go on.
    LoseOne,
    /// The task starts again on the state that survived.
    Restart,
}

/// How a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It was not started, or it ended in order.
    Ended,
    /// It failed; the process is about to end.
    Failed,
    /// It panicked and waits to be started again.
    Restarting,
    /// It runs.
    Running,
}

impl Task {
    /// Every task, each at its own position.
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

    /// The word of the log, of `/metrics` and of `/readyz`.
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

    /// What follows a panic.
    pub fn reaction(self) -> Reaction {
        match self {
            Task::Journal | Task::Sip | Task::Tap => Reaction::EndProcess,
            Task::Answers | Task::Names | Task::Relay | Task::SipTcp => Reaction::LoseOne,
            _ => Reaction::Restart,
        }
    }
}
