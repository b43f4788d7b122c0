//! From packets to records without a socket: through the tap, the journal and the writer into both databases.

use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone::cdr::journal::Journal;
use sidetone::cdr::writer::CdrWriter;
use sidetone::provision::{Declaration, apply};
use sidetone::tap::cdr_mapper::{CdrMapper, OwnerError};
use sidetone::tap::cdr_writer::TapWriter;
use sidetone::tap::counters::TapCounters;
use sidetone::tap::session::{TapSession, TappedCall};
use sidetone_capture::{compose, golden};
use sidetone_media::pcap::Records;
use sidetone_media::simulate::Scenario;
use sidetone_media::time::Micros;
use sidetone_model::access::Scope;
use sidetone_model::call::{Direction, HangupCause};
use sidetone_model::cdr::Cdr;
use sidetone_model::media_quality::StoredQuality;
use sidetone_model::page::Window;
use sidetone_model::ports::CdrLog;
use sidetone_model::quality::MediaVerdict;
use sidetone_store::Store;
use tokio::sync::mpsc;

use crate::common::database::{TestDatabase, kinds};
use crate::common::records::{TempDir, at};

/// The capture of a simulated call.
fn captured(scenario: &str) -> Vec<u8> {
    let mut file = Vec::new();
    compose(&scenario.parse::<Scenario>().unwrap(), &mut file).unwrap();
    file
}

/// Reads a capture into the tap, followed by `after_us` without packets.
fn hear(session: &mut TapSession, file: &[u8], after_us: i64) -> Vec<TappedCall> {
    let mut last = Micros(0);
    let mut calls = Vec::new();
    for record in Records::new(file) {
        let record = record.unwrap();
        session.record(&record);
        calls.extend(session.poll(record.at));
        last = record.at;
    }
    calls.extend(std::iter::from_fn(|| session.poll(last + after_us)));
    calls
}

/// The calls of these captures, each read separately to its end.
fn heard(scenarios: &[&str]) -> Vec<TappedCall> {
    scenarios
        .iter()
        .flat_map(|scenario| hear(&mut TapSession::new(), &captured(scenario), 10_000_000))
        .collect()
}

/// An organisation that has one of the two numbers of simulated calls.
fn declared(organisations: &[&str], number: Option<&str>) -> String {
    let mut text = String::new();
    for name in organisations {
        let domain = name.to_lowercase();
        text += &format!(
            "[[organisations]]\nname = \"{name}\"\nsip_domain = \"{domain}.test\"\ncurrency = \"EUR\"\n"
        );
        if let Some(number) = number {
            text += &format!(
                "[[organisations.extensions]]\nnumber = \"{number}\"\npassword = \"long enough to be one\"\n"
            );
        }
    }
    text
}

async fn store_with(database: &TestDatabase, text: &str) -> Store {
    let store = Store::open(&database.database).await.unwrap();
    let declaration = Declaration::parse(text.parse().unwrap()).unwrap();
    apply(&store, &[declaration], false, at(0), &mut StdRng::seed_from_u64(1)).await.unwrap();
    store
}

/// Stores calls as a running tap does, and waits until all of them are stored.
async fn write(store: &Store, dir: &TempDir, calls: Vec<TappedCall>) -> Arc<TapCounters> {
    let node = store.node("tap", at(0)).await.unwrap();
    let mapper = CdrMapper::new(store.directory().await.unwrap(), None, node).unwrap();
    let (journal, reader, _) = Journal::open(&dir.path().join("tap-journal")).unwrap();
    let counters = Arc::new(TapCounters::default());
    let (sender, mut receiver) = mpsc::channel(100);
    let mut writer = TapWriter {
        mapper,
        journal,
        store: store.clone(),
        counters: Arc::clone(&counters),
        tell: Box::new(|_| {}),
    };
    for call in calls {
        sender.send(call).await.unwrap();
    }
    drop(sender);
    writer.run(&mut receiver).await;
    // The journal closes with it.
    drop(writer);
    CdrWriter::new(reader).run(store).await;
    counters
}

async fn stored(store: &Store) -> Vec<Cdr> {
    let page = store.list(Scope::Everything, Window::default().into()).await.unwrap();
    page.items
}

/// Every call has one record, however often it is read, and its figures are those of its capture.
#[test]
fn calls_become_records_once_on_both_databases() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let scenarios = &["clean duration=6s", "clean duration=6s loss=8 seed=3"];
    for kind in kinds() {
        runtime.block_on(async {
            let dir = TempDir::new();
            let database = TestDatabase::new(kind, dir.path()).await;
            let store = store_with(&database, &declared(&["Acme"], None)).await;
            for _ in 0..2 {
                let counters = write(&store, &dir, heard(scenarios)).await;
                assert_eq!(
                    (TapCounters::read(&counters.calls), TapCounters::read(&counters.faulty_calls)),
                    (2, 1)
                );
            }
            let mut records = stored(&store).await;
            records.sort_by_key(|record| record.quality.verdict.map(MediaVerdict::as_str));
            assert_eq!(records.len(), 2, "{records:#?}");
            let verdicts: Vec<_> = records.iter().map(|record| record.quality.verdict).collect();
            assert_eq!(verdicts, [Some(MediaVerdict::LossyInbound), Some(MediaVerdict::Ok)]);
            for (record, call) in records.iter().rev().zip(heard(scenarios)) {
                assert_eq!(record.quality.loss_pct, call.call.loss_pct);
                assert_eq!(record.quality.jitter_ms, call.call.jitter_ms);
                assert_eq!(i64::from(record.billsec), call.call.billsec);
                assert_eq!(record.codec_a.as_deref(), Some("PCMU"));
                assert_eq!(record.codec_b.as_deref(), Some("PCMU"));
                assert_eq!(record.hangup_cause, Some(HangupCause::NormalClearing));
                assert_eq!(record.sip_status, Some(200));
                assert_eq!(record.direction, Direction::Internal);
                assert!(record.ended_at.is_some() && record.node_id.is_some());
            }
            store.close().await;
        });
    }
}

/// A call with good audio from only the caller is a faulty call, and its record has the called party's figures.
#[test]
fn the_called_party_is_recorded_too() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let golden = golden::all().find(|golden| golden.name == "lossy_towards_the_caller").unwrap();
    let mut file = Vec::new();
    golden.write(&mut file).unwrap();
    let calls = || hear(&mut TapSession::new(), &file, 10_000_000);
    let far = calls().remove(0).call.callee_quality().unwrap().figures();
    for kind in kinds() {
        runtime.block_on(async {
            let dir = TempDir::new();
            let database = TestDatabase::new(kind, dir.path()).await;
            let store = store_with(&database, &declared(&["Acme"], None)).await;
            let counters = write(&store, &dir, calls()).await;
            assert_eq!(TapCounters::read(&counters.faulty_calls), 1);
            let record = stored(&store).await.remove(0);
            assert_eq!(record.quality.verdict, Some(MediaVerdict::Ok));
            assert_eq!(record.media_b, Some(far));
            assert_eq!(
                (far.verdict, record.worse_verdict()),
                (Some(MediaVerdict::LossyInbound), far.verdict)
            );
            let kept = store.of_record(&record).await.unwrap().unwrap();
            assert_eq!(kept.media_verdict_worse, far.verdict);
            assert_eq!(kept.callee.unwrap().loss_pct, far.loss_pct);
            store.close().await;
        });
    }
}

/// The direction of a call follows from the organisation's declared numbers.
#[tokio::test]
async fn the_direction_is_that_of_the_numbers_that_are_known() {
    let (from, to) = {
        let call = heard(&["clean duration=6s"]).remove(0).call;
        (call.from, call.to)
    };
    let cases =
        [(None, Direction::Internal), (Some(from), Direction::Outbound), (Some(to), Direction::Inbound)];
    for (number, direction) in cases {
        let dir = TempDir::new();
        let database = TestDatabase::new(kinds()[0], dir.path()).await;
        let store = store_with(&database, &declared(&["Acme"], number.as_deref())).await;
        write(&store, &dir, heard(&["clean duration=6s"])).await;
        let record = stored(&store).await.remove(0);
        assert_eq!(record.direction, direction, "{number:?}");
        assert_eq!(record.extension_id.is_some(), number.is_some());
        store.close().await;
    }
}

/// The organisation of the records must be unambiguous.
#[tokio::test]
async fn the_owner_is_the_only_organisation_or_the_one_that_is_named() {
    let dir = TempDir::new();
    let database = TestDatabase::new(kinds()[0], dir.path()).await;
    let store = store_with(&database, "").await;
    let node = store.node("tap", at(0)).await.unwrap();
    let mapper = async |named| {
        CdrMapper::new(store.directory().await.unwrap(), named, node)
            .map(|mapper| mapper.organisation_name().to_owned())
    };
    assert_eq!(mapper(None).await, Err(OwnerError::Nobody));
    assert_eq!(mapper(Some("Acme")).await, Err(OwnerError::Nobody));
    let declare = async |names: &[&str]| {
        let declaration = Declaration::parse(declared(names, None).parse().unwrap()).unwrap();
        apply(&store, &[declaration], false, at(0), &mut StdRng::seed_from_u64(1)).await.unwrap();
    };
    declare(&["Acme"]).await;
    assert_eq!(mapper(None).await.as_deref(), Ok("Acme"));
    declare(&["Acme", "Globex"]).await;
    assert!(matches!(mapper(None).await, Err(OwnerError::Several(names)) if names.len() == 2));
    assert_eq!(mapper(Some("Globex")).await.as_deref(), Ok("Globex"));
    let unknown = mapper(Some("Initech")).await.unwrap_err();
    assert!(unknown.to_string().contains("Initech") && unknown.to_string().contains("Globex"), "{unknown}");
    store.close().await;
}

/// A call without a captured end ends when the tap stops, at its last packet.
#[test]
fn what_is_up_at_the_end_is_cut() {
    let file = captured("clean duration=6s");
    let mut session = TapSession::new();
    let mut last = Micros(0);
    // Without the BYE and what follows it.
    for record in Records::new(&file)
        .map(Result::unwrap)
        .filter(|record| !record.frame.windows(4).any(|four| four == b"BYE "))
    {
        session.record(&record);
        last = record.at;
    }
    assert_eq!(session.live_calls(), 1);
    assert!(session.poll(last + 60_000_000).is_none(), "it may go on");
    session.end(last + 60_000_000);
    let call = session.poll(last).unwrap();
    assert!(session.poll(last).is_none());
    assert_eq!((call.call.ended_at, session.live_calls()), (None, 0));
    let node = sidetone_model::ids::NodeId(uuid::Uuid::from_u128(1));
    let mapper = book_of_one(node);
    let entry = mapper.write(&call);
    assert_eq!(entry.cdr.ended_at.unwrap().as_micros(), last.0);
    assert_eq!(entry.cdr.hangup_cause, None);
    assert!((5..=6).contains(&entry.cdr.billsec), "{}", entry.cdr.billsec);
    assert!(entry.quality.flags.iter().any(|flag| flag == "cut"));
}

/// Packets dropped by the tap itself are reported for the calls that were up then, and not counted as network loss.
#[test]
fn drops_are_told_with_the_calls_that_were_up() {
    let file = captured("clean duration=6s loss=8 seed=3");
    let times: Vec<Micros> = Records::new(&file).map(|record| record.unwrap().at).collect();
    let (begin, end) = (times[0], times[times.len() - 1]);
    let mapper = book_of_one(sidetone_model::ids::NodeId(uuid::Uuid::from_u128(1)));
    for (from, to, told) in [(begin, begin + 1_000_000, true), (end + 2_000_000, end + 3_000_000, false)] {
        let mut session = TapSession::new();
        session.dropped(from, to, 17);
        let call = hear(&mut session, &file, 10_000_000).remove(0);
        assert_eq!(call.missed, if told { 17 } else { 0 });
        let quality = mapper.write(&call).quality;
        assert_eq!(quality.media_verdict, Some(MediaVerdict::LossyInbound));
        assert_eq!(quality.flags.iter().any(|flag| flag == "tap_drops"), told, "{:?}", quality.flags);
        assert_eq!(quality.sentence.contains("missed 17 packets"), told, "{}", quality.sentence);
        if told {
            assert_eq!(quality.blame, None);
        }
    }
}

fn book_of_one(node: sidetone_model::ids::NodeId) -> CdrMapper {
    let organisation = sidetone_model::directory::Organisation {
        id: crate::common::records::organisation(1),
        name: "Acme".to_owned(),
        sip_domain: "acme.test".to_owned(),
        currency: "EUR".parse().unwrap(),
        numbering: sidetone_model::directory::Numbering {
            country_code: None,
            national_prefix: "0".to_owned(),
            international_prefix: "00".to_owned(),
        },
        max_outbound_calls: None,
        max_call_seconds: None,
        language: Default::default(),
        star_codes: true,
    };
    let snapshot = sidetone_model::directory::DirectorySnapshot {
        organisations: vec![organisation],
        ..Default::default()
    };
    CdrMapper::new(snapshot, None, node).unwrap()
}

/// Days of calls need only the memory of concurrent calls: ended calls are dropped.
#[test]
fn what_is_over_is_forgotten() {
    let file = captured("clean duration=2s");
    let mut session = TapSession::new();
    let mut calls = 0;
    for round in 0..200_i64 {
        let shift = round * 20_000_000;
        let mut last = Micros(0);
        for record in Records::new(&file) {
            let mut record = record.unwrap();
            record.at = record.at + shift;
            session.record(&record);
            last = record.at;
        }
        while session.poll(last + 8_000_000).is_some() {
            calls += 1;
        }
        assert_eq!(session.live_calls(), 0, "after {round}");
    }
    assert_eq!(calls, 200);
}

#[test]
fn a_tap_judges_by_thresholds_of_its_own() {
    let file = captured("lossy duration=10s");
    let mut lenient = sidetone_media::verdict::Thresholds::default();
    for (name, value) in [("loss_pct", 90.0), ("quality_pct", 1.0)] {
        lenient.set(name, value).unwrap();
    }
    let verdicts = [TapSession::new(), TapSession::with_thresholds(lenient)].map(|mut session| {
        let heard = hear(&mut session, &file, 10_000_000);
        // A call that is interrupted by the end of the tap is judged by the same rules.
        let cut = hear(&mut session, &captured("lossy duration=10s seed=2"), 0);
        session.end(Micros(i64::MAX / 2));
        let cut = cut.into_iter().chain(std::iter::from_fn(|| session.poll(Micros(i64::MAX / 2))));
        heard.into_iter().chain(cut).map(|call| call.call.media_verdict).collect::<Vec<_>>()
    });
    assert_eq!(verdicts, [vec![Some("lossy_inbound"); 2], vec![Some("ok"); 2]]);
}
