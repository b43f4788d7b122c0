//! State machine of the bindings that one node shares with the others: what it writes, reads and reports to its switch.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sidetone_model::ids::NodeId;
use sidetone_model::time::Timestamp;

use crate::bindings::entry::{BindingKey, ENTRY_BYTES_MAX, Entry, SharedContact};

/// Events.
#[derive(Clone, Debug)]
pub enum Input {
    /// The contacts that an extension has at this node now, and how many it may have at all nodes together.
    Own(BindingKey, Vec<SharedContact>, usize),
    /// An entry as stored, with its revision; an empty value is a deletion.
    Seen(BindingKey, u64, Vec<u8>),
    /// The entry of a key is not in the store.
    Absent(BindingKey),
    /// The reader restarts from the first entry; no operation is in progress any more.
    Reopened,
    /// The reader has delivered every entry that was stored when it started.
    Replayed,
    /// A write succeeded with this revision.
    Written(BindingKey, u64),
    /// A write was refused because the entry has another revision: read the entry and feed it.
    Conflict(BindingKey),
    /// A write has no result; it is repeated after [`Input::Retry`].
    Failed(BindingKey),
    /// Retry the failed operations.
    Retry,
}

/// Actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Write an entry if the stored one has this revision; 0: if no entry is stored.
    Write(BindingKey, Vec<u8>, u64),
    /// Read an entry.
    Read(BindingKey),
    /// The contacts at other nodes have changed; the listed contacts of this node are displaced.
    Changed(BindingKey, Vec<String>),
}

/// The shared bindings as one node sees them.
#[derive(Debug)]
pub struct SharedBindings {
    node: NodeId,
    entries: BTreeMap<BindingKey, State>,
    generation: u64,
    failed: BTreeSet<BindingKey>,
    outputs: VecDeque<Output>,
}

#[derive(Debug, Default)]
struct State {
    /// The contacts of this node, each with a flag: its REGISTER is not written yet.
    own: Vec<(SharedContact, bool)>,
    bindings_max: usize,
    /// The entry as last seen.
    seen: Vec<SharedContact>,
    revision: u64,
    /// The pass of the reader that last saw the entry.
    generation: u64,
    under_way: Option<Work>,
}

/// The operation in progress on the store.
#[derive(Debug)]
enum Work {
    Reading,
    Writing(Vec<SharedContact>),
}

impl SharedBindings {
    /// Without entries; `node` is this node.
    pub fn new(node: NodeId) -> Self {
        SharedBindings {
            node,
            entries: BTreeMap::new(),
            generation: 0,
            failed: BTreeSet::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Handles an event; drain [`SharedBindings::poll_output`] afterwards. `now` is the wall clock of this node.
    pub fn handle_input(&mut self, now: Timestamp, input: Input) {
        match input {
            Input::Own(key, contacts, bindings_max) => self.own(now, key, contacts, bindings_max),
            Input::Seen(key, revision, value) => self.seen(now, key, revision, &value),
            Input::Absent(key) => self.absent(now, key),
            Input::Reopened => {
                self.generation += 1;
                // A store that lost its memory restarts its revisions.
                for state in self.entries.values_mut() {
                    (state.revision, state.under_way) = (0, None);
                }
                self.failed.clear();
            }
            Input::Replayed => self.replayed(now),
            Input::Written(key, revision) => self.written(now, key, revision),
            Input::Conflict(key) => self.read(key),
            Input::Failed(key) => {
                self.failed.insert(key);
            }
            Input::Retry => {
                // The write may have succeeded, so the entry is read first.
                for key in std::mem::take(&mut self.failed) {
                    self.read(key);
                }
            }
        }
    }

    /// The next action.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The valid contacts of an extension at other nodes.
    pub fn elsewhere(&self, now: Timestamp, key: BindingKey) -> impl Iterator<Item = &SharedContact> {
        let seen = self.entries.get(&key).map(|state| state.seen.as_slice()).unwrap_or_default();
        seen.iter().filter(move |contact| contact.node != self.node && contact.expires_at > now)
    }

    /// The extensions with a contact at a node.
    pub fn at_node(&self, node: NodeId) -> impl Iterator<Item = BindingKey> {
        let has = move |state: &State| state.seen.iter().any(|contact| contact.node == node);
        self.entries.iter().filter(move |(_, state)| has(state)).map(|(key, _)| *key)
    }

    /// The number of entries, including entries without valid contacts that are not swept yet.
    pub fn known(&self) -> usize {
        self.entries.len()
    }

    /// Forgets entries without valid contacts.
    pub fn sweep(&mut self, now: Timestamp) {
        self.entries.retain(|_, state| {
            state.under_way.is_some()
                || !state.own.is_empty()
                || state.seen.iter().any(|contact| contact.expires_at > now)
        });
    }

    fn read(&mut self, key: BindingKey) {
        if let Some(state) = self.entries.get_mut(&key) {
            state.under_way = Some(Work::Reading);
            self.outputs.push_back(Output::Read(key));
        }
    }

    fn own(&mut self, now: Timestamp, key: BindingKey, contacts: Vec<SharedContact>, bindings_max: usize) {
        let state = self.entries.entry(key).or_default();
        let before = std::mem::take(&mut state.own);
        let is_new = |contact: &SharedContact| {
            let same = before.iter().find(|(old, _)| old.contact == contact.contact);
            same.is_none_or(|(old, waits)| *waits || old.registered_at != contact.registered_at)
        };
        state.own = contacts
            .into_iter()
            .map(SharedContact::into_stored)
            .map(|contact| {
                let waits = is_new(&contact);
                (contact, waits)
            })
            .collect();
        state.bindings_max = bindings_max.max(1);
        self.write(now, key);
    }

    fn seen(&mut self, now: Timestamp, key: BindingKey, revision: u64, value: &[u8]) {
        let generation = self.generation;
        let contacts = match value {
            [] => Some(Vec::new()),
            value => Entry::read(value),
        };
        // An entry of a later version is ignored.
        let Some(contacts) = contacts else { return };
        let state = self.entries.entry(key).or_default();
        state.generation = generation;
        if revision < state.revision {
            return;
        }
        state.revision = revision;
        for (own, waits) in &mut state.own {
            *waits &= !contacts.contains(own);
        }
        let before = std::mem::replace(&mut state.seen, contacts);
        if !others(&before, self.node).eq(others(&state.seen, self.node)) {
            self.outputs.push_back(Output::Changed(key, Vec::new()));
        }
        if matches!(state.under_way, Some(Work::Reading)) {
            state.under_way = None;
        }
        self.write(now, key);
    }

    fn absent(&mut self, now: Timestamp, key: BindingKey) {
        let Some(state) = self.entries.get_mut(&key) else { return };
        state.revision = 0;
        state.under_way = None;
        // The other nodes write their contacts again; until then the last seen ones are used.
        state.seen.retain(|contact| contact.node != self.node);
        self.write(now, key);
    }

    /// Removes the entries that the reader has not seen: the store no longer has them.
    fn replayed(&mut self, now: Timestamp) {
        let gone = self.entries.iter().filter(|(_, state)| state.generation < self.generation);
        let gone: Vec<BindingKey> = gone.map(|(key, _)| *key).collect();
        for key in gone {
            if let Some(state) = self.entries.get_mut(&key) {
                state.generation = self.generation;
            }
            self.absent(now, key);
        }
    }

    fn written(&mut self, now: Timestamp, key: BindingKey, revision: u64) {
        let Some(state) = self.entries.get_mut(&key) else { return };
        let Some(Work::Writing(written)) = state.under_way.take() else { return };
        for (own, waits) in &mut state.own {
            *waits &= !written.contains(own);
        }
        // The reader may already have seen this write, and a later one of another node.
        if revision > state.revision {
            if !others(&state.seen, self.node).eq(others(&written, self.node)) {
                self.outputs.push_back(Output::Changed(key, Vec::new()));
            }
            (state.seen, state.revision) = (written, revision);
        }
        self.write(now, key);
    }

    /// Writes the entry of a key, unless it is up to date or an operation on it is in progress.
    fn write(&mut self, now: Timestamp, key: BindingKey) {
        let node = self.node;
        let Some(state) = self.entries.get_mut(&key).filter(|state| state.under_way.is_none()) else {
            return;
        };
        let (contacts, displaced) = state.merged(now, node);
        if !displaced.is_empty() {
            state.own.retain(|(own, _)| !displaced.contains(&own.contact));
            self.outputs.push_back(Output::Changed(key, displaced));
        }
        // Expired contacts of other nodes alone are no reason to write.
        let is_written = own(&contacts, node).eq(own(&state.seen, node));
        if is_written {
            return;
        }
        let entry = Entry { v: Entry::FORMAT, contacts };
        // Cannot fail: the fields are numbers and strings.
        let value = serde_json::to_vec(&entry).unwrap_or_default();
        if value.len() <= ENTRY_BYTES_MAX {
            state.under_way = Some(Work::Writing(entry.contacts));
            self.outputs.push_back(Output::Write(key, value, state.revision));
        }
    }
}

impl State {
    /// The entry as it should be, and the contacts of this node that it displaces.
    fn merged(&self, now: Timestamp, node: NodeId) -> (Vec<SharedContact>, Vec<String>) {
        let mut displaced = Vec::new();
        let mut contacts: Vec<(&SharedContact, bool)> =
            others(&self.seen, node).filter(|c| c.expires_at > now).map(|contact| (contact, false)).collect();
        for (contact, waits) in &self.own {
            let is_twin =
                |(other, _): &(&SharedContact, bool)| other.node != node && other.is_same_device(contact);
            if *waits {
                // The device registered here after the stored contact.
                contacts.retain(|other| !is_twin(other));
            } else if contacts.iter().any(is_twin) {
                displaced.push(contact.contact.clone());
                continue;
            }
            contacts.push((contact, *waits));
        }
        while self.bindings_max > 0 && contacts.len() > self.bindings_max {
            let old = contacts.iter().enumerate().filter(|(_, (_, waits))| !waits);
            let Some((at, _)) = old.min_by_key(|(_, (contact, _))| contact.registered_at) else { break };
            let (contact, _) = contacts.remove(at);
            if contact.node == node {
                displaced.push(contact.contact.clone());
            }
        }
        (contacts.into_iter().map(|(contact, _)| contact.clone()).collect(), displaced)
    }
}

fn others(contacts: &[SharedContact], node: NodeId) -> impl Iterator<Item = &SharedContact> {
    contacts.iter().filter(move |contact| contact.node != node)
}

fn own(contacts: &[SharedContact], node: NodeId) -> impl Iterator<Item = &SharedContact> {
    contacts.iter().filter(move |contact| contact.node == node)
}
