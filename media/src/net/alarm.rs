//! Wakes a worker that waits for packets, from another thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::eventfd::{EfdFlags, EventFd};

/// An eventfd that wakes a worker which may be asleep.
#[derive(Debug)]
pub(super) struct Alarm {
    event: EventFd,
    rung: AtomicBool,
}

impl Alarm {
    /// An alarm that has not been rung.
    pub(super) fn new() -> io::Result<Alarm> {
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Alarm { event, rung: AtomicBool::new(false) })
    }

    /// Wakes the worker; it then sees everything queued before this call. Never blocks.
    pub(super) fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            // The counter of a non-blocking eventfd overflows after 2^64 - 2 rings; nothing else can fail.
            let _ = self.event.write(1);
        }
    }

    /// Resets the alarm. The worker calls it *before* it reads its queue, so that anything queued meanwhile
    /// rings again.
    pub(super) fn silence(&self) {
        let _ = self.event.read();
        self.rung.store(false, Ordering::SeqCst);
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
