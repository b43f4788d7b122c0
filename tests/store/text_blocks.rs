//! Searches in text blocks compared with searches in the records themselves.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_model::access::Scope;
use sidetone_model::call::{Direction, HangupCause};
use sidetone_model::call_log::{CdrFilter, CdrQuery, CdrSort};
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::{AgentId, CallId, TeamId};
use sidetone_model::page::{Order, Window};
use sidetone_model::ports::{CdrLog, CdrSink};
use sidetone_model::problem::Problem;
use sidetone_store::{Filled, Store};
use uuid::Uuid;

use crate::common::database::TestDatabase;
use crate::common::records::{answered, at, organisation};
use crate::store::with_database;

const RECORDS: u32 = 900;

/// A page, and the total number of records.
type Answer = (Vec<CallId>, u64, u64);

fn pick<T: Copy, const N: usize>(rng: &mut StdRng, choices: [T; N]) -> T {
    choices[rng.random_range(0..N)]
}

/// A text of few different characters, so that short parts are frequent and long ones rare.
fn text(rng: &mut StdRng, characters: usize) -> String {
    (0..characters)
        .map(|_| {
            pick(rng, ['0', '4', '4', '7', '+', '%', '_', '\'', '"', '\\', 'a', 'B', 'É', 'σ', 'Σ', '\0'])
        })
        .collect()
}

fn record(rng: &mut StdRng, number: u128) -> Cdr {
    let mut some = |characters| {
        let characters = rng.random_range(0..=characters);
        (characters > 0).then(|| text(rng, characters))
    };
    let numbers = [some(9), some(7), some(3)];
    let [caller_number, destination_number, dialled_number] = numbers;
    Cdr {
        call_uuid: CallId(Uuid::from_u128(rng.random::<u128>() ^ number)),
        organisation_id: organisation(if rng.random_ratio(1, 5) { 2 } else { 1 }),
        // Mostly in the order of time, some of them at the same instant.
        started_at: at(if rng.random_ratio(1, 9) { rng.random_range(0..300) } else { number as i64 / 3 }),
        direction: pick(rng, [Direction::Inbound, Direction::Outbound]),
        agent_id: Some(AgentId(Uuid::from_u128(rng.random_range(1..4)))),
        team_id: pick(rng, [None, Some(1), Some(2)]).map(|team| TeamId(Uuid::from_u128(team))),
        hangup_cause: pick(rng, [None, Some(HangupCause::UserBusy), Some(HangupCause::NormalClearing)]),
        caller_number,
        destination_number,
        dialled_number,
        ..answered(number)
    }
}

fn query(rng: &mut StdRng) -> (Scope, CdrQuery) {
    let part = |rng: &mut StdRng| {
        let characters = pick(rng, [0, 1, 1, 2, 2, 3, 4]);
        match rng.random_range(0..8) {
            0 => pick(rng, ["busy", "NORMAL_", "l_c", "4\n", "\n"]).to_owned(),
            _ => text(rng, characters),
        }
    };
    let mut filter = CdrFilter { q: Some(part(rng)), ..CdrFilter::default() };
    match rng.random_range(0..6) {
        0..3 => {}
        3 | 4 => filter.did = filter.q.take(),
        _ => filter.did = Some(part(rng)),
    }
    let mut sometimes = || rng.random_ratio(1, 5);
    let asked = [sometimes(), sometimes(), sometimes(), sometimes(), sometimes(), sometimes()];
    filter.direction = asked[0].then_some(Direction::Inbound);
    filter.from = asked[1].then(|| at(rng.random_range(0..300)));
    filter.to = asked[2].then(|| at(rng.random_range(0..300)));
    filter.hangup_cause = asked[3].then(|| pick(rng, ["USER_BUSY", "user_busy"]).to_owned());
    filter.agent_id = asked[4].then(|| AgentId(Uuid::from_u128(1)));
    filter.organisation_id = asked[5].then(|| organisation(1));
    let (sort, _) = pick(rng, CdrSort::ALL);
    let team = |team| Some(TeamId(Uuid::from_u128(team)));
    let own = Scope::Organisation(organisation(1));
    let scope = pick(
        rng,
        [own, own, Scope::Everything, Scope::Team { organisation: organisation(1), team: team(1) }],
    );
    let window = Window::at(pick(rng, [0, 0, 1, 40, 400, 20_000]), rng.random_range(1..60));
    let sort = pick(rng, [CdrSort::StartedAt, CdrSort::StartedAt, sort]);
    (scope, CdrQuery { filter, sort, order: pick(rng, [Order::Ascending, Order::Descending]), window })
}

async fn ask(store: &Store, (scope, query): &(Scope, CdrQuery)) -> Answer {
    let page = store.list(*scope, query.clone()).await.unwrap();
    let count = store.count(*scope, &query.filter, 500).await.unwrap();
    assert_eq!(count, page.total.min(500), "{query:?}");
    let calls = store.totals(*scope, &query.filter).await.unwrap();
    assert_eq!(calls.by_currency.iter().map(|totals| totals.count).sum::<u64>(), page.total, "{query:?}");
    (page.items.iter().map(|cdr| cdr.call_uuid).collect(), page.total, count)
}

/// The numbers of records, of records in blocks, and of blocks.
async fn sizes(database: &TestDatabase) -> (u64, u64, u64) {
    let rows = database
        .texts(
            "SELECT CAST((SELECT COUNT(*) FROM cdrs) AS TEXT), CAST(COALESCE(SUM(records), 0) AS TEXT),
             CAST(COUNT(*) AS TEXT) FROM cdr_text_blocks",
        )
        .await;
    let number = |place: usize| rows[0][place].as_ref().unwrap().parse().unwrap();
    (number(0), number(1), number(2))
}

/// Restores the state left by a version without blocks.
async fn without_blocks(database: &TestDatabase) {
    database.texts("DELETE FROM cdr_text_blocks").await;
    database.texts("UPDATE cdrs SET search_packed = 0").await;
    database.texts("UPDATE cdr_text_fill SET is_done = 0, organisation_id = '', call_uuid = ''").await;
}

/// Searches return the same records, pages and totals with blocks stored together with the records and merged, without
/// blocks, and with blocks made afterwards: for any search text, with any other filter.
#[test]
fn fuzz_blocks_find_what_the_records_contain() {
    let rng = &mut StdRng::seed_from_u64(190);
    let all: Vec<Cdr> = (0..RECORDS).map(|number| record(rng, number.into())).collect();
    let queries: Vec<(Scope, CdrQuery)> = (0..160).map(|_| query(rng)).collect();
    with_database(async |store, database| {
        let mut left = all.as_slice();
        while !left.is_empty() {
            let (group, rest) = left.split_at(rng.random_range(1..8).min(left.len()));
            store.store(group).await.unwrap();
            left = rest;
        }
        // Stored once more: no record is new.
        store.store(&all).await.unwrap();
        let (records, in_blocks, blocks) = sizes(database).await;
        assert_eq!((records, in_blocks), (RECORDS.into(), RECORDS.into()));
        assert!(blocks < 100, "{blocks} blocks are left after merges");
        let mut by_blocks = Vec::new();
        for query in &queries {
            by_blocks.push(ask(store, query).await);
        }
        assert!(by_blocks.iter().filter(|(_, total, _)| *total > 0).count() > 60, "most find nothing");

        without_blocks(database).await;
        for (query, expected) in queries.iter().zip(&by_blocks) {
            assert_eq!(ask(store, query).await, *expected, "{query:?}");
        }

        assert_eq!(store.fill_text_blocks().await.unwrap(), Filled::All);
        assert_eq!(sizes(database).await.1, u64::from(RECORDS));
        // Another process: its blocks in memory are those of the filled database.
        let again = Store::open(&database.database).await.unwrap();
        for (query, expected) in queries.iter().zip(&by_blocks) {
            assert_eq!(ask(&again, query).await, *expected, "{query:?}");
        }
        again.close().await;
    });
}

/// A search that is repeated while records are stored finds the same as a process that has not searched before: results
/// in a block are cached, and blocks are added and merged.
#[test]
fn fuzz_repeated_searches_find_new_records() {
    let rng = &mut StdRng::seed_from_u64(28);
    let all: Vec<Cdr> = (0..RECORDS).map(|number| record(rng, number.into())).collect();
    let queries: Vec<(Scope, CdrQuery)> = (0..20).map(|_| query(rng)).collect();
    with_database(async |store, database| {
        for (round, group) in all.chunks(60).enumerate() {
            for part in group.chunks(rng.random_range(1..30)) {
                store.store(part).await.unwrap();
            }
            let mut answers = Vec::new();
            for query in &queries {
                answers.push(ask(store, query).await);
            }
            if round % 5 == 4 {
                let other = Store::open(&database.database).await.unwrap();
                for (query, answer) in queries.iter().zip(&answers) {
                    assert_eq!(ask(&other, query).await, *answer, "{query:?}");
                }
                other.close().await;
                assert!(answers.iter().any(|(_, total, _)| *total > 10), "all find nothing");
            }
        }
    });
}

/// Filling blocks for a million records takes many transactions: searches are right before, between and
/// after them, records are stored in the meantime, and a process that ends in between continues later.
#[test]
fn old_records_are_put_into_blocks_while_others_are_stored() {
    with_database(async |store, database| {
        let record = |number: u128| Cdr { started_at: at(number as i64 % 700), ..answered(number) };
        let old: Vec<Cdr> = (1..=4_500).map(record).collect();
        for group in old.chunks(1_500) {
            store.store(group).await.unwrap();
        }
        without_blocks(database).await;
        let found = async |store: &Store| {
            let filter = CdrFilter { q: old[0].caller_number.clone(), ..CdrFilter::default() };
            let query = CdrQuery { filter, ..CdrQuery::default() };
            store.list(Scope::Organisation(old[0].organisation_id), query).await.unwrap().total
        };
        assert_eq!(found(store).await, 4_500);
        store.store(&[record(9_001)]).await.unwrap();
        // The new record is among the examined ones.
        assert_eq!(store.fill_text_blocks().await.unwrap(), Filled::Some(4_095));
        assert_eq!(found(store).await, 4_501);

        let again = Store::open(&database.database).await.unwrap();
        again.store(&[record(9_002), record(9_003)]).await.unwrap();
        assert_eq!(found(&again).await, 4_503);
        assert_eq!(again.fill_text_blocks().await.unwrap(), Filled::All);
        assert_eq!(again.fill_text_blocks().await.unwrap(), Filled::All);
        assert_eq!(found(&again).await, 4_503);
        let (records, in_blocks, _) = sizes(database).await;
        assert_eq!((records, in_blocks), (4_503, 4_503));
        again.close().await;
    });
}

/// Nodes that store calls of one organisation concurrently merge its blocks: none is lost or duplicated.
#[test]
fn several_nodes_merge_blocks_of_one_organisation() {
    with_database(async |store, database| {
        let other = Store::open(&database.database).await.unwrap();
        let records = |from: u128| (from..from + 300).map(answered).collect::<Vec<Cdr>>();
        let each = async |store: &Store, records: Vec<Cdr>| {
            for record in records {
                // Two processes that write one file of SQLite may wait too long for each other.
                while let Err(problem) = store.store(std::slice::from_ref(&record)).await {
                    assert!(matches!(problem, Problem::Unavailable { .. }), "{problem:?}");
                }
            }
        };
        tokio::join!(each(store, records(1)), each(&other, records(1_001)), each(store, records(2_001)));
        let (records, in_blocks, blocks) = sizes(database).await;
        assert_eq!((records, in_blocks), (900, 900));
        assert!(blocks < 150, "{blocks}");
        other.close().await;
    });
}
