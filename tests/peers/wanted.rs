//! Whether peers are run, and one test at a time.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whether the real peers are to be run; prints a notice where they are not.
pub fn are_peers_wanted() -> bool {
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
pub fn turn() -> Option<MutexGuard<'static, ()>> {
    if !are_peers_wanted() {
        return None;
    }
    static TURN: Mutex<()> = Mutex::new(());
    // A failed test leaves no state that could affect the next one.
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Prints a line directly to stderr, because the test harness hides the output of passing tests.
pub fn tell(line: &str) {
    // A closed stderr fails no test.
    let _ = writeln!(std::io::stderr(), "{line}");
}
