//! Calls, registrations and refusals through a whole engine: real sockets, built-in phones, records read over HTTP.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a helper of a test may fail the test"
)]

mod answered;
mod both_directions;
mod call_events;
mod callback;
#[path = "../common/chosen.rs"]
mod chosen;
#[path = "../common/database.rs"]
mod database;
mod drain;
mod enumeration;
mod events;
mod flooding;
mod forking;
mod frozen;
mod guessing;
mod live_calls;
mod managed;
mod media;
mod merged;
mod metrics;
mod money;
mod name_server;
mod note_taps;
mod notes;
mod outbound;
mod quality;
#[path = "../common/receiver.rs"]
mod receiver;
mod recorded;
#[path = "../common/records.rs"]
mod records;
mod refused;
mod register;
#[path = "../common/room.rs"]
mod room;
mod room_audio;
mod room_contract;
mod room_history;
mod room_soak;
mod rooms;
mod signalling;
#[path = "../common/site.rs"]
mod site;
mod strangers;
mod stream;
#[path = "../common/tones.rs"]
mod tones;
mod transcoded;
mod trunk;
mod vanished;
#[path = "../common/wire.rs"]
mod wire;
