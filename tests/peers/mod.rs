//! Calls with third-party phones and carriers, through the `sidetone` binary: sipp, baresip, Linphone, Chromium and
//! kamailio.
//!
//! They run where `SIDETONE_PEERS=1` is set, as `.ci/run` does, and need the Debian packages `sip-tester` and
//! `baresip-core`, and use `linphone-cli`, `chromium`, `kamailio` and `kamailio-tls-modules` where installed; sipp
//! plays captures through raw sockets, which needs root.

mod baresip;
mod browser;
mod engine;
mod forged;
mod kamailio;
mod linphone;
mod notes;
mod peer;
mod phone_transfers;
mod programs;
mod rooms;
mod sipp;
mod sipp_scenarios;
mod sipvicious;
mod sound;
mod wanted;
mod whispers;

use wanted::{are_peers_wanted, tell, turn};
