//! Wakes a worker that waits for packets, from another thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::eventfd::{EfdFlags, EventFd};

/// An eventfd that wakes a worker which may be asleep.
#[derive(Debug)]
pub(super) struct Waker {
    event: EventFd,
    pending: AtomicBool,
}

impl Waker {
    /// A waker that was not used yet.
    pub(super) fn new() -> io::Result<Waker> {
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Waker { event, pending: AtomicBool::new(false) })
    }

    /// Wakes the worker; it then sees everything queued before this call. Never blocks.
    pub(super) fn wake(&self) {
        if !self.pending.swap(true, Ordering::SeqCst) {
            // The counter of a non-blocking eventfd overflows after 2^64 - 2 wakes; nothing else can fail.
            let _ = self.event.write(1);
        }
    }

    /// Forgets that it was used. The worker calls it *before* it reads its queue, so that what is queued
    /// meanwhile wakes it again.
    pub(super) fn reset(&self) {
        let _ = self.event.read();
        self.pending.store(false, Ordering::SeqCst);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
