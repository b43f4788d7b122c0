//! A task's work in progress with a bucket of NATS: opening it, its reader, and requests without a result so far.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use sidetone_cluster::nats::{Connection, MemberHandle};
use tokio::sync::watch;

/// The work with a bucket `B`, whose requests have results `I`.
pub(super) struct BucketWork<B, I> {
    /// The bucket, while it is open.
    pub(super) bucket: Option<B>,
    pub(super) opening: Option<BoxFuture<'static, Result<B, String>>>,
    pub(super) operations: FuturesUnordered<BoxFuture<'static, I>>,
    /// Consecutive operations without a result.
    failures: u32,
}

impl<B, I> Default for BucketWork<B, I> {
    fn default() -> Self {
        BucketWork { bucket: None, opening: None, operations: FuturesUnordered::new(), failures: 0 }
    }
}

impl<B, I> BucketWork<B, I> {
    /// Starts to open the bucket, unless it is open, is being opened, or NATS does not answer.
    pub(super) fn open<F>(&mut self, member: &MemberHandle, open: impl FnOnce(Connection) -> F)
    where
        F: Future<Output = Result<B, String>> + Send + 'static,
    {
        if self.bucket.is_none() && self.opening.is_none() && member.view().is_linked {
            self.opening = Some(open(member.connection().clone()).boxed());
        }
    }

    /// Stores the opened bucket. Requests to the previous one can no longer have a result.
    pub(super) fn opened(&mut self, bucket: Result<B, String>) {
        (self.opening, self.bucket) = (None, bucket.ok());
        self.operations = FuturesUnordered::new();
    }

    /// Counts a result. The servers may have lost the bucket when they lost their memory: after consecutive failures
    /// it is opened again.
    pub(super) fn note(&mut self, has_failed: bool) {
        self.failures = if has_failed { self.failures + 1 } else { 0 };
        if self.failures >= FAILURES_MAX {
            (self.bucket, self.failures) = (None, 0);
        }
    }
}

/// Waits until the engine stops; the borrow of the channel is released.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the sender was dropped, which stops the task too.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Consecutive failures after which the bucket is opened again.
const FAILURES_MAX: u32 = 3;
