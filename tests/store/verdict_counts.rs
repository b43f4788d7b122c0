//! Verdicts by hour, day, trunk, extension, network and User-Agent compared with a count in memory, on both databases.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_model::access::Scope;
use sidetone_model::call::Direction;
use sidetone_model::call_log::{CdrFilter, CdrQuery};
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::TeamId;
use sidetone_model::ports::{CdrLog, CdrSink};
use sidetone_model::quality::MediaVerdict;
use sidetone_model::time::Timestamp;
use sidetone_model::verdict_counts::{CountBy, VerdictGroup};
use uuid::Uuid;

use crate::common::records::{at, organisation};
use crate::store::call_log::{ACME, filter, matches, pick, records, store_with_rooms};
use crate::store::with_database;
use crate::store::with_store;

/// The groups of the caller's leg and of the called party's leg of a record.
fn groups_of(by: CountBy, cdr: &Cdr) -> [Option<String>; 2] {
    let started = |length_us: i64| {
        let us = cdr.started_at.as_micros();
        Some(Timestamp::from_micros(us - us.rem_euclid(length_us)).to_string())
    };
    let text = |id: Option<Uuid>| id.map(|id| id.to_string());
    let extension = text(cdr.extension_id.map(|id| id.0));
    let trunk = text(cdr.trunk_id.map(|id| id.0));
    let called =
        text(cdr.called.map(|called| called.extension_id.0)).filter(|id| Some(id) != extension.as_ref());
    match (by, cdr.direction) {
        (CountBy::Day, _) => [started(86_400_000_000), started(86_400_000_000)],
        (CountBy::Hour, _) => [started(3_600_000_000), started(3_600_000_000)],
        (CountBy::Extension, Direction::Inbound) => [None, extension],
        (CountBy::Extension, Direction::Outbound) => [extension, None],
        (CountBy::Extension, Direction::Internal) => [extension, called],
        (CountBy::Network, _) => [cdr.device_a.network.clone(), cdr.device_b.network.clone()],
        (CountBy::UserAgent, _) => [cdr.device_a.user_agent.clone(), cdr.device_b.user_agent.clone()],
        (CountBy::Trunk, Direction::Inbound) => [trunk, None],
        (CountBy::Trunk, Direction::Outbound) => [None, trunk],
        (CountBy::Trunk, Direction::Internal) => [None, None],
    }
}

fn counted(by: CountBy, cdrs: &[&Cdr]) -> Vec<VerdictGroup> {
    let mut groups = BTreeMap::new();
    for cdr in cdrs {
        let verdicts = [cdr.quality.verdict, cdr.media_b.and_then(|media| media.verdict)];
        for (leg, (value, verdict)) in groups_of(by, cdr).into_iter().zip(verdicts).enumerate() {
            let (Some(value), Some(verdict)) = (value, verdict) else { continue };
            let group: &mut VerdictGroup =
                groups.entry(value.clone()).or_insert_with(|| VerdictGroup::new(value));
            let counts = if leg == 0 { &mut group.caller } else { &mut group.callee };
            counts.add(verdict, 1);
        }
    }
    groups.into_values().collect()
}

const ALL: [CountBy; 6] =
    [CountBy::Day, CountBy::Extension, CountBy::Hour, CountBy::Network, CountBy::Trunk, CountBy::UserAgent];

#[test]
fn every_leg_counts_where_it_belongs() {
    let rng = &mut StdRng::seed_from_u64(19);
    let all = records(rng, 300);
    with_store(async |store| {
        store_with_rooms(store, &all).await;
        let mut legs = 0;
        for round in 0..200 {
            // The first rounds without a filter.
            let filter = if round < 12 { CdrFilter::default() } else { filter(rng) };
            let acme = organisation(ACME);
            let team = Scope::Team { organisation: acme, team: Some(TeamId(Uuid::from_u128(1))) };
            let scope = pick(rng, [Scope::Organisation(acme), Scope::Everything, team]);
            let by = ALL[round % ALL.len()];
            // No extension is stored, so none belongs to the team.
            let is_hidden = by == CountBy::Extension && scope == team;
            let found: Vec<&Cdr> =
                all.iter().filter(|cdr| !is_hidden && matches(scope, &filter, cdr)).collect();
            let expected = counted(by, &found);
            let mut groups = store.verdicts(scope, &filter, by).await.unwrap();
            groups.sort_by(|one, other| one.value.cmp(&other.value));
            assert_eq!(groups, expected, "round {round}: {by:?} {scope:?} {filter:?}");
            legs += groups.iter().map(|group| group.caller.judged()).sum::<u64>();
        }
        assert!(legs > 1_000, "most rounds prove nothing: {legs}");
    });
}

/// Queries since a given time use hourly counts, which are updated as calls end, and return the same figures.
#[test]
fn hours_that_are_kept_have_the_figures_of_their_records() {
    let rng = &mut StdRng::seed_from_u64(20);
    let mut all = records(rng, 240);
    for cdr in &mut all {
        // Within four days; calls that began long ago are stored together with those that began later.
        cdr.started_at = at(rng.random_range(0..4 * 86_400) / 600 * 600);
    }
    let acme = organisation(ACME);
    let team = |number| Some(TeamId(Uuid::from_u128(number)));
    let scopes = [
        Scope::Organisation(acme),
        Scope::Everything,
        Scope::Team { organisation: acme, team: team(1) },
        Scope::Team { organisation: acme, team: None },
    ];
    with_store(async |store| {
        let mut stored = Vec::new();
        for part in all.chunks(60) {
            store.store(part).await.unwrap();
            stored.extend(part);
            for round in 0..90 {
                let by = ALL[round % ALL.len()];
                let scope = scopes[round / ALL.len() % scopes.len()];
                let seconds = [0, 3_600, 7_200 + 1, 2 * 86_400, 3 * 86_400 + 599, 5 * 86_400];
                let filter = CdrFilter {
                    from: Some(at(pick(rng, seconds))),
                    organisation_id: pick(rng, [None, None, Some(acme), Some(organisation(2))]),
                    team_id: pick(rng, [None, None, team(1)]),
                    ..CdrFilter::default()
                };
                let is_hidden = by == CountBy::Extension && matches!(scope, Scope::Team { .. });
                let found: Vec<&Cdr> =
                    stored.iter().copied().filter(|cdr| !is_hidden && matches(scope, &filter, cdr)).collect();
                let mut groups = store.verdicts(scope, &filter, by).await.unwrap();
                groups.sort_by(|one, other| one.value.cmp(&other.value));
                assert_eq!(groups, counted(by, &found), "round {round}: {by:?} {scope:?} {filter:?}");
                let listed = CdrQuery { filter, ..CdrQuery::default() };
                let expected = stored.iter().filter(|cdr| matches(scope, &listed.filter, cdr)).count() as u64;
                assert_eq!(
                    store.list(scope, listed).await.unwrap().total,
                    expected,
                    "round {round}: the total"
                );
            }
        }
    });
}

/// During an upgrade, a node of a version before migration 0380 stores records without an hourly count.
#[test]
fn records_that_are_not_counted_by_the_hour_are_counted_all_the_same() {
    let rng = &mut StdRng::seed_from_u64(21);
    let mut all = records(rng, 120);
    for cdr in &mut all {
        cdr.started_at = at(rng.random_range(0..4 * 86_400));
    }
    let scope = Scope::Organisation(organisation(ACME));
    with_database(async |store, database| {
        store.store(&all).await.unwrap();
        for changed in [false, true] {
            if changed {
                database.texts("DELETE FROM cdr_counts WHERE dimension = 'hour' AND period % 2 = 0").await;
            }
            for seconds in [1, 86_400 + 1, 3 * 86_400] {
                let filter = CdrFilter { from: Some(at(seconds)), ..CdrFilter::default() };
                let found: Vec<&Cdr> = all.iter().filter(|cdr| matches(scope, &filter, cdr)).collect();
                let mut groups = store.verdicts(scope, &filter, CountBy::Hour).await.unwrap();
                groups.sort_by(|one, other| one.value.cmp(&other.value));
                assert_eq!(groups, counted(CountBy::Hour, &found), "{changed}, from {seconds} s");
                let listed = CdrQuery { filter, ..CdrQuery::default() };
                assert_eq!(store.list(scope, listed).await.unwrap().total, found.len() as u64, "{changed}");
            }
        }
    });
}

#[test]
fn legs_without_a_verdict_or_a_place_are_left_out() {
    let mut call = crate::common::records::ended(1);
    (call.direction, call.quality.verdict) = (Direction::Outbound, Some(MediaVerdict::Unanswered));
    with_store(async |store| {
        store_with_rooms(store, std::slice::from_ref(&call)).await;
        for by in [CountBy::Trunk, CountBy::Extension, CountBy::Network, CountBy::UserAgent] {
            assert_eq!(store.verdicts(Scope::Everything, &CdrFilter::default(), by).await.unwrap(), []);
        }
        let days = store.verdicts(Scope::Everything, &CdrFilter::default(), CountBy::Day).await.unwrap();
        assert_eq!((days.len(), days[0].caller.judged(), days[0].callee.judged()), (1, 0, 0));
    });
}
