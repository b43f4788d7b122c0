//! D2: the power fails at any operation of the disk, and unsynchronised data is lost, torn or zero.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone::cdr::journal::Journal;
use sidetone::cdr::segment;
use sidetone_model::call::HangupCause;
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::CallId;

use crate::common::records::{TempDir, answered, at, ended};
use crate::durability::disk::Faulty;

const SEEDS: u64 = 1_000;
const CALLS: u128 = 12;

/// A database that keeps everything and stores each record once.
#[derive(Default)]
struct Rows(BTreeMap<CallId, Cdr>);

impl Rows {
    fn store(&mut self, cdrs: &[Cdr]) {
        for cdr in cdrs {
            self.0.entry(cdr.call_uuid).or_insert_with(|| cdr.clone());
        }
    }
}

/// What the engine has promised: the calls whose 200 was sent, and those whose record was acknowledged.
#[derive(Default)]
struct Promised {
    answered: BTreeSet<u128>,
    ended: BTreeSet<u128>,
}

/// Runs calls until the power is cut; returns the promises, the stored rows and the content of the disk.
fn run(seed: u64) -> (Promised, Rows, TempDir) {
    let mut rng = StdRng::seed_from_u64(seed);
    let (dir, disk) = (TempDir::new(), Faulty::default());
    let reserve = if seed.is_multiple_of(3) { 64 << 10 } else { 0 };
    let (journal, mut reader) = disk.journal(dir.path(), reserve);
    let (mut promised, mut rows) = (Promised::default(), Rows::default());
    let now = disk.get(|faults| faults.operations);
    disk.set(|faults| {
        faults.cut_at = Some(now + rng.random_range(1..=60));
        faults.fails_once = rng.random_bool(0.2);
    });
    let is_cut = || disk.get(|faults| faults.is_cut);
    'calls: for number in 0..CALLS {
        assert!(journal.answered(answered(number)).unwrap().wait());
        if is_cut() {
            break;
        }
        promised.answered.insert(number);
        if rng.random_bool(0.3) {
            assert!(journal.tick(at(5)).unwrap().wait());
        }
        // Some calls are up at the cut, some end one after the other, some together.
        if rng.random_bool(0.7) {
            assert!(journal.ended(ended(number)).unwrap().wait());
            if is_cut() {
                break;
            }
            promised.ended.insert(number);
        }
        if rng.random_bool(0.5) {
            let batch = reader.next_batch(rng.random_range(1..5)).unwrap();
            if is_cut() {
                break 'calls;
            }
            rows.store(&batch);
            reader.settle(&batch);
        }
    }
    if !is_cut() {
        // Fewer operations than the random number: the cut happens now.
        disk.set(|faults| faults.is_cut = true);
    }
    drop(journal);
    // Nothing was removed after the cut.
    let present = segment::list(dir.path()).unwrap();
    (promised, rows, disk.after_the_cut(&present, seed))
}

#[test]
fn a_power_cut_at_any_operation_leaves_one_record_of_every_answered_call() {
    let (mut up, mut over, mut unpromised) = (0, 0, 0);
    for seed in 0..SEEDS {
        let (promised, mut rows, left) = run(seed);
        let (journal, mut reader, _) = Journal::open(left.path()).unwrap();
        drop(journal);
        loop {
            let batch = reader.next_batch(7).unwrap();
            if batch.is_empty() {
                break;
            }
            rows.store(&batch);
            reader.settle(&batch);
        }
        for number in &promised.answered {
            let call = answered(*number).call_uuid;
            let row = rows.0.get(&call).unwrap_or_else(|| panic!("seed {seed}: call {number} has no record"));
            if promised.ended.contains(number) {
                assert_eq!(row, &ended(*number), "seed {seed}: the record that was acknowledged");
                over += 1;
            } else {
                // The record of its end may have been in progress.
                let cause = row.hangup_cause;
                assert!(
                    cause == Some(HangupCause::Crash) || row == &ended(*number),
                    "seed {seed}: call {number} ended with {cause:?}"
                );
                up += 1;
            }
        }
        // A record without a promise belongs to a call that was really made.
        let known: BTreeSet<CallId> = (0..CALLS).map(|number| answered(number).call_uuid).collect();
        assert!(rows.0.keys().all(|call| known.contains(call)), "seed {seed}: a record of no call");
        unpromised += rows.0.len() - promised.answered.len();
    }
    println!(
        "D2: {SEEDS} power cuts, {over} ended and {up} live calls, {unpromised} records beyond the promise"
    );
    assert!(up > 500 && over > 1_000, "the model covers both: {up} up, {over} over");
}
