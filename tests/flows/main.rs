//! Calls, registrations and refusals through a complete engine: real sockets, built-in phones, records read over HTTP.
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
#[path = "../common/browser.rs"]
mod browser;
mod browsers;
mod busy_machine;
mod by_hand;
mod call_events;
mod call_parking;
mod call_prompts;
mod call_recorded;
mod call_session_timers;
mod callback;
mod callee_updates;
mod carrier_settings;
#[path = "../common/chosen.rs"]
mod chosen;
#[path = "../../media/tests/support/client_hello.rs"]
mod client_hello;
mod connections;
mod converted_keys;
#[path = "../common/database.rs"]
mod database;
#[path = "../common/device.rs"]
mod device;
mod drain;
mod enumeration;
mod events;
mod fax;
mod flooding;
mod forking;
mod forwarded;
mod frozen;
mod gone;
mod guessing;
mod hep;
mod ice;
mod kept_signalling;
mod lamps;
mod levels;
mod linked_calls;
mod live_calls;
mod live_equals_offline;
mod managed;
mod media;
mod merged;
mod messages;
mod metrics;
mod money;
mod name_server;
mod named;
mod nat;
mod note_taps;
mod notes;
mod operated;
mod outbound;
mod passed_through;
mod quality;
#[path = "../common/receiver.rs"]
mod receiver;
mod recorded;
#[path = "../common/records.rs"]
mod records;
mod refused;
mod register;
mod requested;
#[path = "../common/room.rs"]
mod room;
mod room_audio;
mod room_contract;
mod room_faults;
mod room_history;
mod room_soak;
mod rooms;
mod secure;
mod signalling;
#[path = "../common/site.rs"]
mod site;
mod srtp;
mod star_pickup;
mod strangers;
mod stream;
mod tone_keys;
#[path = "../common/tones.rs"]
mod tones;
mod torture;
mod transcoded;
mod transferred;
mod trunk;
#[path = "../common/tunnel.rs"]
mod tunnel;
mod vanished;
mod video;
#[path = "../common/wire.rs"]
mod wire;
