//! The entries of a node's answered calls in the shared store: which to write and remove, and in which order.
//!
//! A state machine without I/O. Each call has at most one operation in progress; later changes wait for it, and only
//! the last of several changes is written. A call that ends before its entry is written costs no message.
//!
//! The entry of an answered call is written immediately. Ends and removals wait for the second [`Copies::tick`] from
//! now: by then most records are in the database, so no message is needed for the end, and removals share the wake-ups
//! of the task and of the connection.

use std::collections::{BTreeMap, VecDeque};

use sidetone_model::ids::CallId;

/// The operations that the machine requests; `C` is the content of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation<C> {
    /// Write the entry of a call.
    Put(CallId, C),
    /// Remove the entry of a call, which has this revision.
    Remove(CallId, u64),
}

/// The entries of this node's calls; `C` must be cheap to clone.
#[derive(Debug)]
pub struct Copies<C> {
    calls: BTreeMap<CallId, Entry<C>>,
    /// Calls with a pending change and no operation in progress.
    ready: VecDeque<CallId>,
    /// Calls that become ready at the second tick from now.
    newer: Vec<CallId>,
    /// Calls that become ready at the next tick.
    older: Vec<CallId>,
    under_way: usize,
    refused: u64,
}

#[derive(Debug)]
struct Entry<C> {
    content: C,
    /// Whether the store has `content`.
    is_written: bool,
    /// The revision of the entry, if one was written.
    revision: Option<u64>,
    /// Whether the record is in the database, so the entry is to be removed.
    is_over: bool,
    is_under_way: bool,
    /// Whether the call is in one of the queues.
    is_queued: bool,
}

impl<C> Default for Copies<C> {
    fn default() -> Self {
        Copies {
            calls: BTreeMap::new(),
            ready: VecDeque::new(),
            newer: Vec::new(),
            older: Vec::new(),
            under_way: 0,
            refused: 0,
        }
    }
}

impl<C: Clone> Copies<C> {
    /// A call was answered; `content` is its entry.
    pub fn answered(&mut self, call: CallId, content: C) {
        if self.calls.len() >= CALLS_MAX && !self.calls.contains_key(&call) {
            self.refused = self.refused.saturating_add(1);
            return;
        }
        match self.calls.get_mut(&call) {
            Some(entry) => (entry.content, entry.is_written) = (content, false),
            None => {
                let entry = Entry {
                    content,
                    is_written: false,
                    revision: None,
                    is_over: false,
                    is_under_way: false,
                    is_queued: false,
                };
                self.calls.insert(call, entry);
            }
        }
        self.make_ready(call);
    }

    /// An answered call is over; `content` is its entry. Calls that were not answered have none.
    pub fn ended(&mut self, call: CallId, content: C) {
        let Some(entry) = self.calls.get_mut(&call) else { return };
        (entry.content, entry.is_written) = (content, false);
        self.make_ready_later(call);
    }

    /// The database has the record of a call.
    pub fn stored(&mut self, call: CallId) {
        let Some(entry) = self.calls.get_mut(&call) else { return };
        entry.is_over = true;
        if entry.revision.is_none() && !entry.is_under_way {
            self.calls.remove(&call);
            return;
        }
        self.make_ready_later(call);
    }

    /// Advances the delay of ends and removals by one tick.
    pub fn tick(&mut self) {
        self.ready.extend(self.older.drain(..));
        std::mem::swap(&mut self.older, &mut self.newer);
    }

    /// Whether a call waits for a tick.
    pub fn waits(&self) -> bool {
        !self.older.is_empty() || !self.newer.is_empty()
    }

    /// The store may have lost every entry: all are written again.
    pub fn write_again(&mut self) {
        let calls: Vec<CallId> = self.calls.keys().copied().collect();
        for call in calls {
            if let Some(entry) = self.calls.get_mut(&call) {
                (entry.is_written, entry.revision) = (false, None);
                if entry.is_over && !entry.is_under_way {
                    self.calls.remove(&call);
                    continue;
                }
            }
            self.make_ready(call);
        }
    }

    /// The operations in progress are lost: all entries are written again.
    pub fn begin_again(&mut self) {
        self.under_way = 0;
        self.ready.clear();
        self.newer.clear();
        self.older.clear();
        for entry in self.calls.values_mut() {
            (entry.is_under_way, entry.is_queued) = (false, false);
        }
        self.write_again();
    }

    /// The next operation, if fewer than [`UNDER_WAY_MAX`] are in progress.
    pub fn poll_operation(&mut self) -> Option<Operation<C>> {
        while self.under_way < UNDER_WAY_MAX {
            let call = self.ready.pop_front()?;
            let Some(entry) = self.calls.get_mut(&call) else { continue };
            entry.is_queued = false;
            let operation = match entry {
                Entry { is_over: true, revision: Some(revision), .. } => Operation::Remove(call, *revision),
                Entry { is_over: true, revision: None, .. } => {
                    self.calls.remove(&call);
                    continue;
                }
                Entry { is_written: true, .. } => continue,
                Entry { content, .. } => Operation::Put(call, content.clone()),
            };
            entry.is_under_way = true;
            // A change from now on sets this to false again.
            entry.is_written = true;
            self.under_way += 1;
            return Some(operation);
        }
        None
    }

    /// An operation has succeeded: the revision of the written entry, or `None` after a removal.
    pub fn done(&mut self, call: CallId, revision: Option<u64>) {
        self.under_way = self.under_way.saturating_sub(1);
        let Some(entry) = self.calls.get_mut(&call) else { return };
        entry.is_under_way = false;
        entry.revision = revision;
        if revision.is_none() {
            self.calls.remove(&call);
            return;
        }
        if entry.is_over || !entry.is_written {
            self.make_ready_later(call);
        }
    }

    /// An operation failed; the next poll may repeat it.
    pub fn failed(&mut self, call: CallId) {
        self.under_way = self.under_way.saturating_sub(1);
        if let Some(entry) = self.calls.get_mut(&call) {
            entry.is_under_way = false;
            entry.is_written = entry.is_over;
            self.make_ready(call);
        }
    }

    /// The number of calls that have an entry, or one waiting to be written.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether no call has an entry, or one waiting to be written.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The number of calls refused because the table was full; no other node can record them.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn make_ready(&mut self, call: CallId) {
        if self.enqueue(call) {
            self.ready.push_back(call);
        }
    }

    fn make_ready_later(&mut self, call: CallId) {
        if self.enqueue(call) {
            self.newer.push(call);
        }
    }

    /// Whether to queue a call: it is in no queue and no operation on it is in progress.
    fn enqueue(&mut self, call: CallId) -> bool {
        let Some(entry) = self.calls.get_mut(&call) else { return false };
        let comes = !entry.is_under_way && !entry.is_queued;
        entry.is_queued |= comes;
        comes
    }
}

/// The maximum number of operations in progress.
pub const UNDER_WAY_MAX: usize = 64;
/// More calls than a node carries at the same time, including calls whose records wait for the database.
const CALLS_MAX: usize = 50_000;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bytes::Bytes;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};
    use uuid::Uuid;

    use super::*;

    fn call(number: u128) -> CallId {
        CallId(Uuid::from_u128(number))
    }

    fn text(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    fn tick_twice(copies: &mut Copies<Bytes>) {
        copies.tick();
        copies.tick();
    }

    #[test]
    fn a_call_costs_a_write_and_a_removal() {
        let mut copies = Copies::default();
        copies.answered(call(1), text("up"));
        assert_eq!(copies.poll_operation(), Some(Operation::Put(call(1), text("up"))));
        // The call ends and is stored during the first write: its entry is removed, and the end is not written.
        copies.ended(call(1), text("over"));
        copies.stored(call(1));
        tick_twice(&mut copies);
        assert_eq!(copies.poll_operation(), None);
        copies.done(call(1), Some(7));
        tick_twice(&mut copies);
        assert_eq!(copies.poll_operation(), Some(Operation::Remove(call(1), 7)));
        copies.done(call(1), None);
        assert!(copies.is_empty());

        // The call is stored between the first and the second tick after its end.
        copies.answered(call(2), text("up"));
        copies.poll_operation().unwrap();
        copies.done(call(2), Some(8));
        copies.ended(call(2), text("over"));
        copies.tick();
        assert_eq!((copies.poll_operation(), copies.waits()), (None, true));
        copies.stored(call(2));
        copies.tick();
        assert_eq!(copies.poll_operation(), Some(Operation::Remove(call(2), 8)));
        copies.done(call(2), None);

        copies.answered(call(3), text("up"));
        copies.stored(call(3));
        copies.ended(call(4), text("a call that was not answered has no entry"));
        assert_eq!((copies.poll_operation(), copies.len(), copies.waits()), (None, 0, false));
    }

    #[test]
    fn the_end_of_a_call_is_written_when_the_database_takes_its_time() {
        let mut copies = Copies::default();
        copies.answered(call(2), text("up"));
        copies.poll_operation().unwrap();
        copies.done(call(2), Some(8));
        assert_eq!(copies.poll_operation(), None);
        copies.ended(call(2), text("over"));
        tick_twice(&mut copies);
        assert_eq!(copies.poll_operation(), Some(Operation::Put(call(2), text("over"))));
        copies.failed(call(2));
        assert_eq!(copies.poll_operation(), Some(Operation::Put(call(2), text("over"))));
        copies.done(call(2), Some(9));
        copies.stored(call(2));
        tick_twice(&mut copies);
        assert_eq!(copies.poll_operation(), Some(Operation::Remove(call(2), 9)));
        copies.failed(call(2));
        assert_eq!(copies.poll_operation(), Some(Operation::Remove(call(2), 9)));
        copies.done(call(2), None);
        assert!(copies.is_empty());
    }

    #[test]
    fn entries_that_the_store_lost_are_written_again() {
        let mut copies = Copies::default();
        for number in 1..=2 {
            copies.answered(call(number), text("up"));
            copies.poll_operation().unwrap();
            copies.done(call(number), Some(1));
        }
        copies.ended(call(2), text("over"));
        tick_twice(&mut copies);
        copies.poll_operation().unwrap();
        copies.write_again();
        assert_eq!(copies.poll_operation(), Some(Operation::Put(call(1), text("up"))));
        copies.done(call(2), Some(3));
        tick_twice(&mut copies);
        assert_eq!(copies.poll_operation(), Some(Operation::Put(call(2), text("over"))));
        // The task that executes the operations restarts.
        copies.begin_again();
        let again = [copies.poll_operation(), copies.poll_operation(), copies.poll_operation()];
        let put = |number, content| Some(Operation::Put(call(number), text(content)));
        assert_eq!(again, [put(1, "up"), put(2, "over"), None]);
    }

    /// Whatever fails, and in whatever order results arrive: finally the store has the entries of the live calls only.
    #[test]
    fn fuzz_the_store_ends_with_the_live_calls() {
        for seed in 0..300 {
            let mut rng = StdRng::seed_from_u64(seed);
            let (mut copies, mut store) = (Copies::default(), BTreeMap::<CallId, (u64, Bytes)>::new());
            let (mut live, mut over) = (BTreeSet::new(), BTreeSet::new());
            let (mut under_way, mut revision, mut next) = (Vec::new(), 0, 0_u128);
            for step in 0..1_000 {
                match rng.random_range(0..6) {
                    0 if step < 600 => {
                        next += 1;
                        live.insert(next);
                        copies.answered(call(next), text("up"));
                    }
                    1 => {
                        if let Some(number) = live.pop_first() {
                            over.insert(number);
                            copies.ended(call(number), text("over"));
                        }
                    }
                    2 => {
                        if let Some(number) = over.pop_first() {
                            copies.stored(call(number));
                        }
                    }
                    3 => under_way.extend(copies.poll_operation()),
                    4 => copies.tick(),
                    _ => {
                        let done = under_way.pop();
                        carry_out(&mut copies, &mut store, done, &mut revision, rng.random_bool(0.3));
                    }
                }
            }
            loop {
                tick_twice(&mut copies);
                under_way.extend(copies.poll_operation());
                let Some(done) = under_way.pop() else { break };
                carry_out(&mut copies, &mut store, Some(done), &mut revision, false);
            }
            let expected: BTreeMap<CallId, Bytes> = live
                .iter()
                .map(|number| (call(*number), text("up")))
                .chain(over.iter().map(|number| (call(*number), text("over"))))
                .collect();
            let stored: BTreeMap<CallId, Bytes> =
                store.into_iter().map(|(call, (_, content))| (call, content)).collect();
            assert_eq!(stored, expected, "seed {seed}");
            assert_eq!(copies.len(), expected.len(), "seed {seed}");
        }
    }

    fn carry_out(
        copies: &mut Copies<Bytes>,
        store: &mut BTreeMap<CallId, (u64, Bytes)>,
        operation: Option<Operation<Bytes>>,
        revision: &mut u64,
        fails: bool,
    ) {
        match operation {
            None => {}
            Some(Operation::Put(call, _) | Operation::Remove(call, _)) if fails => copies.failed(call),
            Some(Operation::Put(call, content)) => {
                *revision += 1;
                store.insert(call, (*revision, content));
                copies.done(call, Some(*revision));
            }
            Some(Operation::Remove(call, at)) => {
                assert_eq!(store.remove(&call).map(|(revision, _)| revision), Some(at));
                copies.done(call, None);
            }
        }
    }
}
