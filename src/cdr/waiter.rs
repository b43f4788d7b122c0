//! The callers that wait until a record of the journal is on the disk.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use sidetone_model::ids::CallId;
use tokio::sync::{mpsc, oneshot};

/// Completes with `true` once a record is on the disk, or with `false` if the journal ended before that.
#[derive(Debug)]
pub struct Committed(oneshot::Receiver<()>);

impl Committed {
    pub(super) fn new(committed: oneshot::Receiver<()>) -> Self {
        Self(committed)
    }

    /// Waits without a runtime; `true` once the record is on the disk.
    pub fn wait(self) -> bool {
        self.0.blocking_recv().is_ok()
    }
}

impl Future for Committed {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        Pin::new(&mut self.0).poll(context).map(|result| result.is_ok())
    }
}

/// The receiver of the notification that a record is on the disk.
#[derive(Debug)]
pub(super) enum Waiter {
    /// A caller, unless it has dropped its receiver.
    Caller(oneshot::Sender<()>),
    /// The driver of the call.
    Driver(CallId, mpsc::UnboundedSender<CallId>),
}

impl Waiter {
    /// Whether the receiver still waits.
    pub(super) fn waits(&self) -> bool {
        match self {
            Waiter::Caller(committed) => !committed.is_closed(),
            Waiter::Driver(..) => true,
        }
    }

    /// Reports that the record is on the disk.
    pub(super) fn tell(self) {
        // Both fail only if the receiver no longer waits.
        match self {
            Waiter::Caller(committed) => {
                let _ = committed.send(());
            }
            Waiter::Driver(call, done) => {
                let _ = done.send(call);
            }
        }
    }
}
