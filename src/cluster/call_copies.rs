//! Writes the entries of this node's answered calls to NATS, so that another node can record them if this one dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};
use sidetone_cluster::copies::{Copies, Operation};
use sidetone_cluster::membership::RunId;
use sidetone_cluster::nats::{CallBucket, MemberHandle};
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::{CallId, NodeId};
use sidetone_model::metrics::Family;
use tokio::sync::{mpsc, watch};

use super::bucket_work::stopped;
use crate::cdr::copies::CallCopy;
use crate::cdr::segment;

/// The entry of a call: versioned JSON; unknown fields are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct CallEntry {
    /// The version of the format: [`CallEntry::FORMAT`].
    pub(super) v: u32,
    /// The run of the node that has the call.
    pub(super) run: RunId,
    /// The record, as the journal writes it; without an end while the call is up.
    record: serde_json::Value,
}

/// The same for writing.
#[derive(Debug, Serialize)]
struct WrittenEntry<R> {
    v: u32,
    run: RunId,
    record: R,
}

impl CallEntry {
    const FORMAT: u32 = 1;

    fn write(run: RunId, cdr: &Cdr) -> Option<Bytes> {
        let entry = WrittenEntry { v: Self::FORMAT, run, record: segment::written(cdr) };
        serde_json::to_vec(&entry).ok().map(Bytes::from)
    }

    /// Reads an entry, and the record in it.
    pub(super) fn read(value: &[u8]) -> Option<(CallEntry, Cdr)> {
        let entry: CallEntry = serde_json::from_slice(value).ok()?;
        let cdr = segment::of_json(&entry.record).filter(|_| entry.v == Self::FORMAT)?;
        Some((entry, cdr))
    }
}

/// The task, not started yet.
pub struct CopyWriter {
    member: MemberHandle,
    node: NodeId,
    run: RunId,
    received: mpsc::Receiver<CallCopy>,
    copies: Copies<Arc<Cdr>>,
    counters: Arc<CopyCounters>,
}

/// The counters of the entries of calls.
#[derive(Debug, Default)]
pub struct CopyCounters {
    /// Operations that NATS executed.
    pub done: AtomicU64,
    /// Operations that failed, and are repeated.
    pub failed: AtomicU64,
    /// Calls with an entry.
    pub calls: AtomicU64,
    /// Copies that were dropped because the queue or the table was full.
    pub dropped: Arc<AtomicU64>,
}

type Work = FuturesUnordered<BoxFuture<'static, (CallId, Result<Option<u64>, String>)>>;

impl CopyWriter {
    /// Writes the received copies for this run of the node.
    pub fn new(
        member: MemberHandle,
        (node, run): (NodeId, RunId),
        received: mpsc::Receiver<CallCopy>,
        dropped: Arc<AtomicU64>,
    ) -> (Self, Arc<CopyCounters>) {
        let counters = Arc::new(CopyCounters { dropped, ..CopyCounters::default() });
        let writer = CopyWriter {
            member,
            node,
            run,
            received,
            copies: Copies::default(),
            counters: Arc::clone(&counters),
        };
        (writer, counters)
    }

    /// Runs until the journal and the writer of records have ended, or `stop` is true and no work remains.
    pub async fn run(&mut self, mut stop: watch::Receiver<bool>) {
        // Work that an earlier run of the task left unfinished is repeated.
        self.copies.begin_again();
        let (mut work, mut bucket, mut was_linked) = (Work::new(), None, false);
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut group = tokio::time::interval(GROUP_EVERY);
        group.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if let Some(bucket) = &bucket {
                while let Some(operation) = self.copies.poll_operation() {
                    work.push(self.carry_out(bucket, operation));
                }
            }
            self.counters.calls.store(self.copies.len() as u64, Ordering::Relaxed);
            tokio::select! {
                () = stopped(&mut stop) => return self.finish(&mut work, bucket).await,
                copy = self.received.recv() => match copy {
                    Some(copy) => self.take(copy),
                    None => return self.finish(&mut work, bucket).await,
                },
                Some((call, result)) = work.next() => {
                    if !self.note(call, result) {
                        // It is opened again at the next check, which provides the pause before the repetition.
                        bucket = None;
                    }
                }
                _ = group.tick(), if self.copies.waits() => self.copies.tick(),
                _ = look.tick() => {
                    let is_linked = self.member.view().is_linked;
                    if is_linked && !was_linked && bucket.is_some() {
                        // NATS may have lost its memory in the meantime.
                        self.copies.write_again();
                    }
                    was_linked = is_linked;
                    if bucket.is_none() && is_linked {
                        bucket = CallBucket::open(self.member.connection()).await.ok();
                        if bucket.is_some() {
                            self.copies.write_again();
                        }
                    }
                }
            }
        }
    }

    fn take(&mut self, copy: CallCopy) {
        match copy {
            CallCopy::Answered(cdr) => self.copies.answered(cdr.call_uuid, cdr),
            CallCopy::Ended(cdr) => self.copies.ended(cdr.call_uuid, cdr),
            CallCopy::Stored(calls) => calls.into_iter().for_each(|call| self.copies.stored(call)),
        }
    }

    fn carry_out(
        &self,
        bucket: &CallBucket,
        operation: Operation<Arc<Cdr>>,
    ) -> BoxFuture<'static, (CallId, Result<Option<u64>, String>)> {
        let (bucket, node) = (bucket.clone(), self.node);
        match operation {
            Operation::Put(call, cdr) => match CallEntry::write(self.run, &cdr) {
                Some(entry) => async move { (call, bucket.put(node, call, entry).await.map(Some)) }.boxed(),
                None => {
                    self.counters.dropped.fetch_add(1, Ordering::Relaxed);
                    std::future::ready((call, Ok(None))).boxed()
                }
            },
            Operation::Remove(call, revision) => {
                async move { (call, bucket.remove(revision).await.map(|()| None)) }.boxed()
            }
        }
    }

    /// Handles a result; returns whether it is a success.
    fn note(&mut self, call: CallId, result: Result<Option<u64>, String>) -> bool {
        match result {
            Ok(revision) => {
                self.copies.done(call, revision);
                self.counters.done.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(reason) => {
                tracing::debug!(call.id = %call, reason, "the entry of a call was not written");
                self.copies.failed(call);
                self.counters.failed.fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }

    /// The records of the last calls are being stored; their entries are removed before the node stops. The rest is
    /// in the journal.
    async fn finish(&mut self, work: &mut Work, bucket: Option<CallBucket>) {
        let Some(bucket) = bucket else { return };
        let last = async {
            loop {
                // No operation waits to be grouped with others any longer.
                self.copies.tick();
                self.copies.tick();
                while let Some(operation) = self.copies.poll_operation() {
                    work.push(self.carry_out(&bucket, operation));
                }
                tokio::select! {
                    copy = self.received.recv(), if !self.received.is_closed() || !self.received.is_empty() => {
                        match copy {
                            Some(copy) => self.take(copy),
                            None => self.received.close(),
                        }
                    }
                    Some((call, result)) = work.next() => {
                        if !self.note(call, result) {
                            return;
                        }
                    }
                    // Everything is stored and removed.
                    else => return,
                }
            }
        };
        let _ = tokio::time::timeout(FINISH_MAX, last).await;
    }
}

impl CopyCounters {
    /// The metrics.
    pub fn families(&self) -> [Family; 2] {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            Family::gauge("sidetone_cluster_call_entries", "Answered calls of this node that other nodes know of.")
                .is(read(&self.calls)),
            Family::counter(
                "sidetone_cluster_call_messages_total",
                "Writes and removals of the entries of calls, by result; dropped: no other node can record the call.",
            )
            .with([("result", "done")], read(&self.done))
            .with([("result", "repeated")], read(&self.failed))
            .with([("result", "dropped")], read(&self.dropped)),
        ]
    }
}

/// How often the connection is checked, and the pause after a failure.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often ends and removals are sent: an end waits for one to two of these intervals.
const GROUP_EVERY: Duration = Duration::from_millis(250);
/// How long the last entries may take when the task ends.
const FINISH_MAX: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use sidetone_model::time::Timestamp;
    use uuid::Uuid;

    use super::*;

    /// The record of a call as the journal has it.
    fn example() -> Cdr {
        segment::of_json(&serde_json::json!({
            "started_us": 1_700_000_000_000_001_i64,
            "answered_us": null,
            "ended_us": null,
            "cdr": {
                "call_uuid": Uuid::from_u128(1), "organisation_id": Uuid::from_u128(2), "direction": "internal",
                "transport": "sip", "started_at": "2023-11-14T22:13:20.000Z", "billsec": 0,
                "billing_mode": "free", "sell_amount": "0", "cost_amount": "0", "quality": {},
            }
        }))
        .expect("a record")
    }

    #[test]
    fn an_entry_has_the_record_in_full() {
        let run = RunId(Uuid::from_u128(7));
        let mut cdr = example();
        cdr.answered_at = Some(Timestamp::from_micros(1_700_000_000_123_456));
        cdr.ended_at = None;
        let bytes = CallEntry::write(run, &cdr).unwrap();
        let (entry, read) = CallEntry::read(&bytes).unwrap();
        assert_eq!((entry.run, read), (run, cdr));
        let later = String::from_utf8(bytes.to_vec()).unwrap().replacen("{\"v\":1,", "{\"v\":1,\"x\":[],", 1);
        assert!(CallEntry::read(later.as_bytes()).is_some(), "fields of a later version are ignored");
        let other = later.replacen("\"v\":1", "\"v\":2", 1);
        assert!(CallEntry::read(other.as_bytes()).is_none());
        assert!(CallEntry::read(b"{}").is_none());
    }
}
