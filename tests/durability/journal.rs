//! The journal across crashes; a crash is simulated by a copy of its directory at that instant.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sidetone::cdr::journal::{Journal, JournalError, JournalOptions, Recovery, SteadyClock};
use sidetone::cdr::writer::CdrWriter;
use sidetone_call::quality::{self, WallClock};
use sidetone_media::session::Report;
use sidetone_media::stats::Timeline;
use sidetone_model::call::HangupCause;
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::CallId;
use sidetone_model::media_quality::{LegSide, QualitySecond, QualityState, QualityTimeline};
use sidetone_model::money::Amount;
use sidetone_model::ports::{CallRows, CallSink, PortFuture, Stored};
use sidetone_model::problem::Problem;
use sidetone_model::quality::{Hundredths, MediaVerdict, Quality};
use sidetone_model::rating::{Billing, CreditRate, Increments, Price, Tariff};
use sidetone_model::time::Timestamp;
use sidetone_switch::rating::{FxTable, settle};

use crate::common::records::{TempDir, answered, at, ended};

/// A database in memory that refuses the first `refusals` transactions.
#[derive(Default)]
struct Memory {
    rows: Mutex<BTreeMap<CallId, Cdr>>,
    offered: AtomicUsize,
    refusals: AtomicUsize,
}

impl CallSink for Memory {
    fn store_calls<'a>(&'a self, calls: CallRows<'a>) -> PortFuture<'a, Stored> {
        Box::pin(async move {
            let cdrs = calls.records;
            if self.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok() {
                return Err(Problem::Unavailable { reason: "away".to_owned(), retry_after_s: 1 });
            }
            self.offered.fetch_add(cdrs.len(), Ordering::SeqCst);
            let mut rows = self.rows.lock();
            let before = rows.len();
            for cdr in cdrs {
                rows.entry(cdr.call_uuid).or_insert_with(|| cdr.clone());
            }
            Ok(Stored { new: rows.len() - before, drawn: Vec::new() })
        })
    }
}

/// Opens the journal in `dir`, stores all its records and closes it.
fn drain(dir: &Path, database: &Memory) -> Recovery {
    let (journal, reader, recovery) = Journal::open(dir).unwrap();
    drop(journal);
    run(CdrWriter::new(reader), database);
    recovery
}

fn run(writer: CdrWriter, database: &Memory) {
    let mut writer = writer.with_pause(Duration::from_millis(1));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(writer.run(database));
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "journal"));
    files.sort();
    files
}

/// A segment without the zeros at the end of its file; the JSON of a record ends with a bracket.
fn records_of(segment: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(segment).unwrap();
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}

/// The longest possible timelines, on both legs, with the largest numbers: they survive a crash.
#[test]
fn the_media_of_a_call_comes_with_its_record() {
    let second = QualitySecond {
        received: u32::from(u16::MAX),
        lost: u32::from(u16::MAX),
        late: u32::from(u16::MAX),
        duplicates: u32::from(u16::MAX),
        jitter_max_ms: Some(Hundredths(104_855)),
        interval_mean_ms: Some(Hundredths(104_855)),
        interval_max_ms: Some(Hundredths(429_496_729)),
        lateness_max_ms: Some(Hundredths(429_496_729)),
        level_dbov: Some(Hundredths(-12_700)),
        audio_expected: true,
        silence_announced: true,
        event: true,
    };
    let leg = |side| {
        let mut leg = quality::leg(&Report::default(), side, None, WallClock::unix());
        let rows = vec![second; Timeline::ROWS_MAX];
        leg.inbound.timeline = Some(QualityTimeline::new(at(2).whole_millis(), 1, rows));
        leg
    };
    let call = ended(1).call_uuid;
    let legs = vec![leg(LegSide::A), leg(LegSide::B)];
    let media = quality::call(call, QualityState::Final, at(62).whole_millis(), legs);
    let dir = TempDir::new();
    let (journal, reader, _) = Journal::open(dir.path()).unwrap();
    let far = Quality { verdict: Some(MediaVerdict::LossyInbound), ..ended(1).quality };
    let record = Cdr { media_b: Some(far), media: Some(Box::new(media.clone())), ..ended(1) };
    assert!(journal.ended(record).unwrap().wait());
    // The process dies here.
    let crashed = TempDir::snapshot(dir.path());
    drop((journal, reader));
    let database = Memory::default();
    drain(crashed.path(), &database);
    let rows = database.rows.lock();
    assert_eq!(rows[&call].media.as_deref(), Some(&media));
    assert_eq!(rows[&call].media_b, Some(far));
}

#[test]
fn what_ended_is_stored_once_and_the_files_go_away() {
    let dir = TempDir::new();
    let database = Memory::default();
    let (journal, reader, recovery) = Journal::open(dir.path()).unwrap();
    assert_eq!(recovery, Recovery::default());
    for number in 0..500 {
        drop(journal.answered(answered(number)).unwrap());
        drop(journal.tick(at(5)).unwrap());
        drop(journal.ended(ended(number)).unwrap());
    }
    drop(journal);
    run(CdrWriter::new(reader), &database);
    let rows = database.rows.lock();
    assert_eq!(rows.len(), 500);
    assert_eq!(rows.values().next(), Some(&ended(0)), "microseconds and all");
    assert_eq!(database.offered.load(Ordering::SeqCst), 500);
    assert!(segments(dir.path()).is_empty());
}

#[test]
fn a_call_that_a_crash_interrupted_ends_at_the_last_sign_of_life() {
    let dir = TempDir::new();
    let (journal, _reader, _) = Journal::open(dir.path()).unwrap();
    drop(journal.answered(answered(1)).unwrap());
    drop(journal.answered(answered(2)).unwrap());
    drop(journal.ended(ended(3)).unwrap());
    assert!(journal.tick(at(37)).unwrap().wait());
    let crashed = TempDir::snapshot(dir.path());

    let database = Memory::default();
    assert_eq!(drain(crashed.path(), &database).crashed_calls, 2);
    let rows = database.rows.lock();
    assert_eq!(rows.len(), 3);
    let interrupted = rows.get(&answered(1).call_uuid).unwrap();
    assert_eq!(interrupted.hangup_cause, Some(HangupCause::Crash));
    assert_eq!(
        (interrupted.ended_at, interrupted.billsec),
        (Some(at(62)), 60),
        "call 3 ended later than the tick"
    );
}

/// D12: the ticks follow a monotonic clock, so a jump of the wall clock before a crash is not charged.
#[test]
fn a_jump_of_the_wall_clock_before_a_crash_is_no_part_of_the_call() {
    for jump_s in [3_600, -3_600, 86_400, -86_400] {
        let dir = TempDir::new();
        let steady = Arc::new(AtomicI64::new(at(0).as_micros()));
        let read = Arc::clone(&steady);
        let clock = move || Timestamp::from_micros(read.load(Ordering::SeqCst));
        let options =
            JournalOptions { clock: Some(SteadyClock(Arc::new(clock))), ..JournalOptions::default() };
        let (journal, _reader, _) = Journal::open_with(dir.path(), &|_| {}, options).unwrap();
        // Answered before the jump and after it, 30 and 10 seconds before the crash.
        steady.store(at(2).as_micros(), Ordering::SeqCst);
        drop(journal.answered(answered(1)).unwrap());
        steady.store(at(22).as_micros(), Ordering::SeqCst);
        let late = Cdr { started_at: at(20 + jump_s), answered_at: Some(at(22 + jump_s)), ..answered(2) };
        drop(journal.answered(late).unwrap());
        drop(journal.ended(Cdr { ended_at: Some(at(25 + jump_s)), ..ended(3) }).unwrap());
        steady.store(at(32).as_micros(), Ordering::SeqCst);
        assert!(journal.tick(at(32 + jump_s)).unwrap().wait());
        let crashed = TempDir::snapshot(dir.path());
        let database = Memory::default();
        drain(crashed.path(), &database);
        let rows = database.rows.lock();
        let billed = |number| rows[&answered(number).call_uuid].billsec;
        assert_eq!((billed(1), billed(2)), (30, 10), "the wall clock jumped by {jump_s} s");
        for number in [1, 2] {
            let row = &rows[&answered(number).call_uuid];
            assert!(row.ended_at >= row.answered_at && row.ended_at > Some(row.started_at));
        }
    }
}

/// The prices are in the `answered` record: a call that a crash interrupted is charged up to its last tick, and
/// its amount is deducted from the credit before its record is stored.
#[test]
fn a_call_that_a_crash_interrupted_is_charged_at_the_prices_it_began_with() {
    let dir = TempDir::new();
    let (journal, _reader, _) = Journal::open(dir.path()).unwrap();
    let euro = "EUR".parse().unwrap();
    let amount = |text: &str| text.parse::<Amount>().unwrap();
    let price = |per_minute: &str, currency: &str| Price {
        per_minute: amount(per_minute),
        currency: currency.parse().unwrap(),
        increments: Increments::SECONDS,
    };
    let tariff = Tariff {
        sell: price("0.60", "EUR"),
        credit: Some(CreditRate { currency: euro, fx_rate: Amount::ONE }),
        cost: Some(price("0.30", "USD")),
    };
    let rated =
        |number| Cdr { billing: Billing { tariff: Some(tariff), ..Billing::default() }, ..answered(number) };
    drop(journal.answered(rated(1)).unwrap());
    assert!(journal.tick(at(32)).unwrap().wait());
    let crashed = TempDir::snapshot(dir.path());

    let database = Memory::default();
    let mut dirs = vec![crashed];
    for _ in 0..2 {
        let dir = dirs.last().unwrap().path().to_path_buf();
        let (journal, mut reader, _) =
            Journal::open_settling(&dir, &|cdr| settle(cdr, &FxTable::default())).unwrap();
        let undrawn = reader.take_undrawn();
        assert_eq!(undrawn.iter().map(|call| call.amount).collect::<Vec<_>>(), [amount("0.30")]);
        assert_eq!(reader.take_undrawn(), []);
        // It crashes again before anything is stored: the next start computes the same.
        dirs.push(TempDir::snapshot(&dir));
        drop(journal);
    }
    drain(dirs.last().unwrap().path(), &database);
    let rows = database.rows.lock();
    let record = rows.get(&answered(1).call_uuid).unwrap();
    assert_eq!((record.hangup_cause, record.billsec), (Some(HangupCause::Crash), 30));
    assert_eq!((record.sell_amount, record.cost_amount), (amount("0.30"), amount("0.15")));
    assert_eq!(record.billing.cost.unwrap().fx_rate, None);
    assert_eq!(record.billing.credit.unwrap().amount, amount("0.30"));
}

#[test]
fn without_any_later_sign_of_life_the_call_lasted_nothing() {
    let dir = TempDir::new();
    let (journal, _reader, _) = Journal::open(dir.path()).unwrap();
    assert!(journal.answered(answered(1)).unwrap().wait());
    let crashed = TempDir::snapshot(dir.path());
    let database = Memory::default();
    drain(crashed.path(), &database);
    let rows = database.rows.lock();
    let record = rows.values().next().unwrap();
    assert_eq!((record.ended_at, record.billsec), (record.answered_at, 0));
}

#[test]
fn a_tick_is_within_five_seconds_of_the_end() {
    let dir = TempDir::new();
    let (journal, _reader, _) = Journal::open(dir.path()).unwrap();
    drop(journal.answered(answered(1)).unwrap());
    for second in (5..=40).step_by(5) {
        drop(journal.tick(at(second)).unwrap());
    }
    assert!(journal.tick(at(44)).unwrap().wait());
    let crashed = TempDir::snapshot(dir.path());
    let database = Memory::default();
    drain(crashed.path(), &database);
    assert_eq!(database.rows.lock().values().next().unwrap().billsec, 42);
}

#[test]
fn a_second_crash_during_recovery_changes_nothing() {
    let dir = TempDir::new();
    let (journal, _reader, _) = Journal::open(dir.path()).unwrap();
    assert!(journal.answered(answered(1)).unwrap().wait());
    let first = TempDir::snapshot(dir.path());
    let (_journal, _reader, recovery) = Journal::open(first.path()).unwrap();
    assert_eq!(recovery.crashed_calls, 1);
    let second = TempDir::snapshot(first.path());
    let database = Memory::default();
    assert_eq!(drain(second.path(), &database).crashed_calls, 0, "its end was journalled the first time");
    assert_eq!(database.rows.lock().len(), 1);
}

#[test]
fn a_crash_between_the_database_and_the_journal_stores_nothing_twice() {
    let dir = TempDir::new();
    let database = Memory::default();
    let (journal, reader, _) = Journal::open(dir.path()).unwrap();
    for number in 0..10 {
        drop(journal.answered(answered(number)).unwrap());
        assert!(journal.ended(ended(number)).unwrap().wait());
    }
    // Everything is stored, and the segments still exist.
    let crashed = TempDir::snapshot(dir.path());
    drop(journal);
    run(CdrWriter::new(reader), &database);
    assert_eq!(drain(crashed.path(), &database).crashed_calls, 0);
    assert_eq!(database.offered.load(Ordering::SeqCst), 20);
    assert_eq!(database.rows.lock().len(), 10);
}

#[test]
fn a_database_that_is_away_delays_and_never_drops() {
    let dir = TempDir::new();
    let database = Memory { refusals: AtomicUsize::new(7), ..Memory::default() };
    let (journal, reader, _) = Journal::open(dir.path()).unwrap();
    for number in 0..1000 {
        drop(journal.ended(ended(number)).unwrap());
    }
    drop(journal);
    run(CdrWriter::new(reader), &database);
    assert_eq!(database.rows.lock().len(), 1000);
    assert_eq!(database.offered.load(Ordering::SeqCst), 1000);
}

#[test]
fn a_torn_tail_loses_the_torn_record_alone() {
    let dir = TempDir::new();
    let (journal, _reader, _) = Journal::open(dir.path()).unwrap();
    for number in 0..3 {
        assert!(journal.ended(ended(number)).unwrap().wait());
    }
    let whole = TempDir::snapshot(dir.path());
    let bytes = records_of(&segments(whole.path())[0]);
    let record_len = (bytes.len() - 8) / 3;
    for cut in 1..=512.min(record_len) {
        let torn = TempDir::new();
        let file = torn.path().join("00000000000000000001.journal");
        std::fs::write(&file, &bytes[..bytes.len() - cut]).unwrap();
        let database = Memory::default();
        drain(torn.path(), &database);
        assert_eq!(database.rows.lock().len(), 2, "{cut} bytes cut");
    }
}

/// Space for records is allocated in advance: a record that does not extend the file is durable sooner.
#[test]
fn records_stand_in_space_that_was_filled_before() {
    let dir = TempDir::new();
    let (journal, _reader, _) = Journal::open(dir.path()).unwrap();
    let file = segments(dir.path()).remove(0);
    let mut lengths = Vec::new();
    for number in 0..400 {
        assert!(journal.ended(ended(number)).unwrap().wait());
        lengths.push(std::fs::metadata(&file).unwrap().len());
    }
    let records = records_of(&file);
    assert!(records.len() > 300_000, "the records need more space than is filled at once: {}", records.len());
    lengths.dedup();
    assert!(lengths.len() <= records.len() / (256 << 10) + 1, "the file became longer: {lengths:?}");
    assert!(lengths.last().unwrap() >= &(records.len() as u64 + 8), "the end of the records is seen");
    // A crash now, and one in the middle of the last record before the zeros.
    for (len, expected) in [(records.len(), (400, 0)), (records.len() - 1, (399, 1))] {
        let crashed = TempDir::new();
        let mut bytes = records[..len].to_vec();
        bytes.resize(512 << 10, 0);
        std::fs::write(crashed.path().join("00000000000000000001.journal"), bytes).unwrap();
        let database = Memory::default();
        let damaged = drain(crashed.path(), &database).damaged_segments;
        assert_eq!((database.rows.lock().len(), damaged), expected);
    }
}

#[test]
fn a_flipped_byte_stops_the_replay_at_the_last_good_record() {
    let dir = TempDir::new();
    let (journal, _reader, _) = Journal::open(dir.path()).unwrap();
    for number in 0..3 {
        assert!(journal.ended(ended(number)).unwrap().wait());
    }
    let bytes = records_of(&segments(dir.path())[0]);
    let record_len = (bytes.len() - 8) / 3;
    for back in 1..=512.min(record_len) {
        let mut damaged = bytes.clone();
        let position = damaged.len() - back;
        damaged[position] ^= 0x40;
        let flipped = TempDir::new();
        std::fs::write(flipped.path().join("00000000000000000001.journal"), damaged).unwrap();
        let database = Memory::default();
        assert_eq!(drain(flipped.path(), &database).damaged_segments, 1);
        assert_eq!(database.rows.lock().len(), 2, "byte {back} from the end");
    }
}

#[test]
fn files_that_are_no_segments_stop_nothing() {
    let dir = TempDir::new();
    let cases: [(&str, &[u8]); 4] = [
        ("00000000000000000001.journal", b""),
        ("00000000000000000002.journal", b"SIDE"),
        ("00000000000000000003.journal", b"SIDEJNL1\xff\xff\xff\xff\0\0\0\0"),
        ("notes.txt", b"hello"),
    ];
    for (name, bytes) in cases {
        std::fs::write(dir.path().join(name), bytes).unwrap();
    }
    let (journal, reader, recovery) = Journal::open(dir.path()).unwrap();
    assert_eq!(recovery, Recovery { segments: 3, damaged_segments: 3, crashed_calls: 0 });
    drop(journal.ended(ended(1)).unwrap());
    drop(journal);
    let database = Memory::default();
    run(CdrWriter::new(reader), &database);
    assert_eq!(database.rows.lock().len(), 1);
    assert!(dir.path().join("notes.txt").exists());
}

#[test]
fn a_long_call_keeps_its_segment_while_others_go() {
    let dir = TempDir::new();
    let (journal, mut reader, _) = Journal::open(dir.path()).unwrap();
    drop(journal.answered(answered(1)).unwrap());
    let mut stored = 0;
    let mut number = 100;
    // Three segments of four megabytes and a little of the fourth.
    while segments(dir.path()).last().unwrap().to_str().unwrap()
        < dir.path().join("00000000000000000004").to_str().unwrap()
    {
        for _ in 0..500 {
            number += 1;
            drop(journal.ended(ended(number)).unwrap());
        }
        assert!(journal.tick(at(9)).unwrap().wait());
        let batch = reader.next_batch(10_000).unwrap();
        stored += batch.len();
        reader.settle(&batch);
    }
    let names = |dir: &Path| -> Vec<String> {
        segments(dir)
            .iter()
            .map(|path| path.file_stem().unwrap().to_str().unwrap()[18..].to_owned())
            .collect()
    };
    let batch = reader.next_batch(10_000).unwrap();
    stored += batch.len();
    reader.settle(&batch);
    assert_eq!(stored as u128, number - 100);
    assert_eq!(names(dir.path()), ["01", "04"], "the first holds the answer of a call that is up");
    assert!(journal.ended(ended(1)).unwrap().wait());
    let batch = reader.next_batch(10).unwrap();
    assert_eq!(batch, [ended(1)]);
    reader.settle(&batch);
    assert_eq!(names(dir.path()), ["04"]);
}

#[test]
fn a_second_process_is_refused() {
    let dir = TempDir::new();
    let (_journal, _reader, _) = Journal::open(dir.path()).unwrap();
    let error = Journal::open(dir.path()).unwrap_err();
    assert!(matches!(error, JournalError::InUse { .. }), "{error}");
}

#[test]
fn committed_means_readable() {
    let dir = TempDir::new();
    let (journal, mut reader, _) = Journal::open(dir.path()).unwrap();
    for number in 0..20 {
        assert!(journal.ended(ended(number)).unwrap().wait());
        assert_eq!(reader.next_batch(10).unwrap(), [ended(number)]);
        assert!(reader.next_batch(10).unwrap().is_empty());
    }
    assert!(journal.is_healthy());
}
