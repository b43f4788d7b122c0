//! A network namespace of its own for a test: it has no foreign packets, and its interfaces may be switched off.

use std::process::Command;

use nix::sched::{CloneFlags, unshare};

/// Runs `test` on a thread in its own network namespace, whose loopback is up; prints a notice where that is not
/// permitted.
pub fn apart(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(|| {
        // The namespace applies to the thread, and to all threads that it starts.
        if unshare(CloneFlags::CLONE_NEWNET).is_err() || !ip("link set lo up") {
            eprintln!(
                "\nSKIPPED: no network of its own may be made here (CAP_SYS_ADMIN, CAP_NET_RAW, iproute2)\n"
            );
            return;
        }
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Runs `ip` with these arguments; returns whether it succeeded.
pub fn ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split(' ')).status().is_ok_and(|status| status.success())
}
