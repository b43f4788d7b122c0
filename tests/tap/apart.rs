//! A network of its own for a test: nobody else's packets are in it, and its interfaces may be switched off.

use std::process::Command;

use nix::sched::{CloneFlags, unshare};

/// Runs `test` on a thread in a network of its own, whose loopback is up; says aloud where that may not be.
pub fn apart(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(|| {
        // The network is the thread's, and of all threads that it starts.
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

/// `ip` with these arguments; whether it did it.
pub fn ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split(' ')).status().is_ok_and(|status| status.success())
}
