//! Wakes a wire that waits for packets, from another thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::eventfd::{EfdFlags, EventFd};

/// An eventfd that ends the wait of a [`Wire`](crate::Wire).
#[derive(Debug)]
pub struct Waker {
    event: EventFd,
    pending: AtomicBool,
}

impl Waker {
    /// A waker that was not used yet.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> io::Result<Waker> {
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Waker { event, pending: AtomicBool::new(false) })
    }

    /// Ends the wait; the thread then sees everything queued before this call. Never blocks.
    pub fn wake(&self) {
        if !self.pending.swap(true, Ordering::SeqCst) {
            // The counter of a non-blocking eventfd overflows after 2^64 - 2 wakes; nothing else can fail.
            let _ = self.event.write(1);
        }
    }

    /// Resets it. Call this *before* the queue is read, so that an entry queued meanwhile wakes the thread again.
    pub fn reset(&self) {
        let _ = self.event.read();
        self.pending.store(false, Ordering::SeqCst);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
