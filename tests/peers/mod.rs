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
mod whispers;

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whether the real peers are to be run; prints a notice where they are not.
fn are_peers_wanted() -> bool {
    let wanted = std::env::var("SIDETONE_PEERS").as_deref() == Ok("1");
    if !wanted {
        tell("NOTICE: real peers are SKIPPED; SIDETONE_PEERS=1 runs them (sip-tester, baresip-core, root)");
    }
    wanted
}

/// The lock of one test whose peers send audio, or `None` where peers are not requested.
///
/// One test at a time: a phone that shares the machine with the phones of another test sends its packets at less even
/// intervals, and that is measured.
fn turn() -> Option<MutexGuard<'static, ()>> {
    if !are_peers_wanted() {
        return None;
    }
    static TURN: Mutex<()> = Mutex::new(());
    // A failed test leaves no state that could affect the next one.
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Prints a line directly to stderr, because the test harness hides the output of passing tests.
fn tell(line: &str) {
    // A closed stderr fails no test.
    let _ = writeln!(std::io::stderr(), "{line}");
}
