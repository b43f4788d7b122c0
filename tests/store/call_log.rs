//! Lists of the call log against a model that filters and sorts in memory.

use std::cmp::Ordering;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_model::access::Scope;
use sidetone_model::call::{BillingMode, Direction, HangupCause, Transport};
use sidetone_model::call_log::{CdrFilter, CdrPlace, CdrQuery, CdrSort};
use sidetone_model::cdr::{Called, Cdr};
use sidetone_model::cursor::Cursor;
use sidetone_model::device::Device;
use sidetone_model::ids::{CallId, RoomId, TeamId};
use sidetone_model::money::Amount;
use sidetone_model::page::{Order, Window};
use sidetone_model::ports::{CdrLog, CdrSink};
use sidetone_model::quality::{Hundredths, MediaVerdict, Quality};
use sidetone_model::room::rows::Rows;
use sidetone_store::Store;
use uuid::Uuid;

use crate::common::records::{answered, at, organisation};
use crate::store::sessions::{Home, NODE, person_on, row};
use crate::store::with_store;

pub(crate) const ACME: u128 = 1;

/// Records in which every column repeats values, and optional ones are sometimes missing.
pub(crate) fn records(rng: &mut StdRng, count: u128) -> Vec<Cdr> {
    (0..count).map(|_| record(rng)).collect()
}

fn record(rng: &mut StdRng) -> Cdr {
    Cdr {
        call_uuid: CallId(Uuid::from_u128(rng.random())),
        organisation_id: organisation(if rng.random_ratio(1, 8) { 2 } else { ACME }),
        extension_id: id(rng),
        trunk_id: id(rng),
        direction: pick(rng, [Direction::Inbound, Direction::Internal, Direction::Outbound]),
        transport: pick(rng, [Transport::Sip, Transport::Whatsapp]),
        started_at: at(instant(rng)),
        ended_at: pick(rng, [None, Some(60), Some(61)]).map(at),
        billsec: pick(rng, [0, 1, 2, 59, 60, 61, 119, 120, 3600]),
        billing_mode: pick(rng, [BillingMode::Free, BillingMode::Rated]),
        called: id(rng).map(|extension_id| Called { extension_id, team_id: None }),
        codec_a: pick(rng, [None, Some("PCMU"), Some("pcmu"), Some("opus")]).map(str::to_owned),
        codec_b: pick(rng, [None, Some("PCMU"), Some("opus")]).map(str::to_owned),
        caller_number: number(rng),
        destination_number: number(rng),
        dialled_number: number(rng),
        agent_id: id(rng),
        team_id: id(rng),
        campaign_id: id(rng),
        node_id: id(rng),
        hangup_cause: pick(rng, [None, Some(HangupCause::UserBusy), Some(HangupCause::NoAnswer)]),
        quality: Quality {
            mos: pick(rng, [None, Some(100), Some(349), Some(350), Some(441)]).map(Hundredths),
            verdict: verdict(rng),
            ..Quality::default()
        },
        media_b: Quality { verdict: verdict(rng), ..Quality::default() }.of_callee(),
        reference: reference(rng),
        device_a: device(rng),
        device_b: device(rng),
        // Smaller amounts have more digits, so a sort as text would fail.
        sell_amount: Amount::from_scaled(pick(rng, [0, 910_000_000, 1_050_000_000, -5])),
        ..answered(0)
    }
}

pub(crate) fn filter(rng: &mut StdRng) -> CdrFilter {
    let mut sometimes = {
        let mut seeded = StdRng::seed_from_u64(rng.random());
        move || seeded.random_ratio(1, 5)
    };
    CdrFilter {
        agent_id: if sometimes() { id(rng) } else { None },
        billing_mode: sometimes().then_some(BillingMode::Rated),
        campaign_id: if sometimes() { id(rng) } else { None },
        did: if sometimes() { part(rng) } else { None },
        direction: sometimes().then_some(Direction::Inbound),
        extension_id: if sometimes() { id(rng) } else { None },
        from: sometimes().then(|| at(instant(rng))),
        hangup_cause: sometimes().then(|| pick(rng, ["USER_BUSY", "user_busy", "NONE"]).to_owned()),
        media_verdict: if sometimes() { verdict(rng) } else { None },
        media_verdict_b: if sometimes() { verdict(rng) } else { None },
        min_billsec: sometimes().then(|| pick(rng, [0, 1, 2, 60, 61, 90, 120, 3601, u64::MAX])),
        mos_max: sometimes().then(|| Hundredths(pick(rng, [100, 349, 350, 500]))),
        network: if sometimes() { device(rng).network } else { None },
        node_id: if sometimes() { id(rng) } else { None },
        organisation_id: sometimes().then(|| organisation(pick(rng, [ACME, ACME, 2]))),
        q: if sometimes() { part(rng) } else { None },
        reference: if sometimes() { reference(rng) } else { None },
        room_id: if sometimes() { id(rng) } else { None },
        team_id: if sometimes() { id(rng) } else { None },
        to: sometimes().then(|| at(instant(rng) + 1)),
        transcoded: if sometimes() { pick(rng, [Some(true), Some(false)]) } else { None },
        transport: sometimes().then_some(Transport::Whatsapp),
        trunk_id: if sometimes() { id(rng) } else { None },
        user_agent: if sometimes() { device(rng).user_agent } else { None },
    }
}

fn device(rng: &mut StdRng) -> Device {
    let user_agent = pick(rng, [None, Some("Example Phone 7"), Some("%' OR 1=1 --")]).map(str::to_owned);
    let network = pick(rng, [None, Some("192.0.2.0/24"), Some("2001:db8::/64")]).map(str::to_owned);
    Device { user_agent, network }
}

fn verdict(rng: &mut StdRng) -> Option<MediaVerdict> {
    pick(rng, [None, Some(MediaVerdict::Ok), Some(MediaVerdict::LossyInbound)])
}

/// Seconds of two months: some instants are equal, and some bounds are between them.
fn instant(rng: &mut StdRng) -> i64 {
    pick(rng, [0, 1, 2, 300_000, 900_000, 3_000_000, 5_500_000])
}

pub(crate) fn pick<T: Copy, const N: usize>(rng: &mut StdRng, choices: [T; N]) -> T {
    choices[rng.random_range(0..N)]
}

fn id<T: From<Uuid>>(rng: &mut StdRng) -> Option<T> {
    pick(rng, [None, Some(1), Some(2)]).map(|number| Uuid::from_u128(number).into())
}

fn number(rng: &mut StdRng) -> Option<String> {
    pick(rng, [None, Some("1001"), Some("9"), Some("+44207"), Some("50%_\\O'x"), Some("İß")])
        .map(str::to_owned)
}

fn reference(rng: &mut StdRng) -> Option<String> {
    pick(rng, [None, Some("ticket-1"), Some("Ticket-1"), Some("50%")]).map(str::to_owned)
}

fn part(rng: &mut StdRng) -> Option<String> {
    pick(rng, ["0", "1001", "%", "_", "\\", "'", "X", "i", "İ", "ẞ", "busy", "9"]).to_owned().into()
}

/// The filter semantics of the document, implemented without a database.
pub(crate) fn matches(scope: Scope, filter: &CdrFilter, cdr: &Cdr) -> bool {
    scope.covers(cdr.organisation_id, cdr.team_id) && holds(filter, cdr)
}

/// [`matches`] in any scope.
fn holds(filter: &CdrFilter, cdr: &Cdr) -> bool {
    let folded = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<String>();
    let contains = |texts: &[Option<&str>], part: &str| {
        texts.iter().flatten().any(|text| folded(text).contains(&folded(part)))
    };
    let numbers = [cdr.destination_number.as_deref(), cdr.dialled_number.as_deref()];
    let cause = cdr.hangup_cause.map(HangupCause::as_str);
    let texts = [cdr.caller_number.as_deref(), numbers[0], numbers[1], cause];
    let devices = [&cdr.device_a, &cdr.device_b];
    filter.agent_id.is_none_or(|id| cdr.agent_id == Some(id))
        && filter.billing_mode.is_none_or(|mode| cdr.billing_mode == mode)
        && filter.campaign_id.is_none_or(|id| cdr.campaign_id == Some(id))
        && filter.did.as_ref().is_none_or(|part| contains(&numbers, part))
        && filter.direction.is_none_or(|direction| cdr.direction == direction)
        && filter.extension_id.is_none_or(|id| {
            cdr.extension_id == Some(id) || cdr.called.is_some_and(|called| called.extension_id == id)
        })
        && filter.from.is_none_or(|from| cdr.started_at >= from)
        && filter.hangup_cause.as_ref().is_none_or(|name| cause == Some(name))
        && filter.media_verdict.is_none_or(|verdict| cdr.quality.verdict == Some(verdict))
        && filter.media_verdict_b.is_none_or(|verdict| cdr.media_b.and_then(|b| b.verdict) == Some(verdict))
        && filter.min_billsec.is_none_or(|billsec| u64::from(cdr.billsec) >= billsec)
        && filter.mos_max.is_none_or(|max| cdr.quality.mos.is_some_and(|mos| mos <= max))
        && filter.network.as_ref().is_none_or(|of| devices.iter().any(|one| one.network.as_ref() == Some(of)))
        && filter.node_id.is_none_or(|id| cdr.node_id == Some(id))
        && filter.organisation_id.is_none_or(|id| cdr.organisation_id == id)
        && filter.q.as_ref().is_none_or(|part| contains(&texts, part))
        && filter.reference.as_ref().is_none_or(|text| cdr.reference.as_ref() == Some(text))
        && filter.room_id.is_none_or(|id| room_of(cdr) == Some(id))
        && filter.team_id.is_none_or(|id| cdr.team_id == Some(id))
        && filter.to.is_none_or(|to| cdr.started_at < to)
        && filter.transcoded.is_none_or(|transcoded| cdr.transcoded() == transcoded)
        && filter.transport.is_none_or(|transport| cdr.transport == transport)
        && filter.trunk_id.is_none_or(|id| cdr.trunk_id == Some(id))
        && filter
            .user_agent
            .as_ref()
            .is_none_or(|of| devices.iter().any(|one| one.user_agent.as_ref() == Some(of)))
}

/// The room of a party of the call: two rooms, each with a fifth of the calls.
fn room_of(cdr: &Cdr) -> Option<RoomId> {
    let number = cdr.call_uuid.0.as_u128() % 5;
    (1..=2).contains(&number).then(|| RoomId(Uuid::from_u128(number)))
}

/// Stores the records, and the sessions of the rooms that their calls were in.
pub(crate) async fn store_with_rooms(store: &Store, all: &[Cdr]) {
    store.store(all).await.unwrap();
    let mut rows = Rows::default();
    for (number, (cdr, room)) in all.iter().filter_map(|cdr| Some((cdr, room_of(cdr)?))).enumerate() {
        let home = Home { room, owner: cdr.organisation_id };
        // Two people of one call: its record is found once.
        rows.sessions.push(row(home, number as u128));
        rows.people.extend([1, 2].map(|member| person_on(home, number as u128, member, cdr.call_uuid)));
    }
    store.store_sessions(NODE, &rows).await.unwrap();
}

/// Missing values last in either order, then by the key, then by the id.
fn compare(sort: CdrSort, order: Order, a: &Cdr, b: &Cdr) -> Ordering {
    fn by<T: Ord>(order: Order, a: Option<T>, b: Option<T>) -> Ordering {
        match (a, b, order) {
            (Some(a), Some(b), Order::Ascending) => a.cmp(&b),
            (Some(a), Some(b), Order::Descending) => b.cmp(&a),
            (a, b, _) => a.is_none().cmp(&b.is_none()),
        }
    }
    let key = match sort {
        CdrSort::Billsec => by(order, Some(a.billsec), Some(b.billsec)),
        CdrSort::CallerNumber => by(order, a.caller_number.as_ref(), b.caller_number.as_ref()),
        CdrSort::DestinationNumber => by(order, a.destination_number.as_ref(), b.destination_number.as_ref()),
        CdrSort::Direction => by(order, Some(a.direction.as_str()), Some(b.direction.as_str())),
        CdrSort::EndedAt => by(order, a.ended_at, b.ended_at),
        CdrSort::Mos => by(order, a.quality.mos, b.quality.mos),
        CdrSort::SellAmount => by(order, Some(a.sell_amount), Some(b.sell_amount)),
        CdrSort::StartedAt => by(order, Some(a.started_at), Some(b.started_at)),
    };
    key.then_with(|| by(order, Some(a.call_uuid), Some(b.call_uuid)))
}

/// The expected complete list: every matching record, in order.
fn expected(all: &[Cdr], scope: Scope, filter: &CdrFilter, sort: CdrSort, order: Order) -> Vec<Cdr> {
    let mut found: Vec<Cdr> = all.iter().filter(|cdr| matches(scope, filter, cdr)).cloned().collect();
    found.sort_by(|a, b| compare(sort, order, a, b));
    found
}

/// Every page of `limit`, one after the other.
async fn pages(
    store: &Store,
    scope: Scope,
    filter: &CdrFilter,
    sort: CdrSort,
    order: Order,
    limit: u32,
) -> Vec<Cdr> {
    let mut seen = Vec::new();
    loop {
        let window = Window::at(seen.len() as u64, limit);
        let query = CdrQuery { filter: filter.clone(), sort, order, window };
        let page = store.list(scope, query).await.unwrap();
        let read = page.items.len();
        seen.extend(page.items);
        if read < limit as usize {
            assert_eq!(page.total, seen.len() as u64, "the total is exact");
            return seen;
        }
    }
}

/// Every page of `limit` by cursor, one after the other.
async fn cursor_pages(
    store: &Store,
    scope: Scope,
    filter: &CdrFilter,
    sort: CdrSort,
    order: Order,
    limit: u32,
) -> Vec<Cdr> {
    let (mut seen, mut cursor) = (Vec::new(), Cursor::default());
    loop {
        let window = Window { limit, offset: 0, cursor: Some(cursor) };
        let query = CdrQuery { filter: filter.clone(), sort, order, window };
        let page = store.list(scope, query).await.unwrap();
        assert_eq!(page.offset, seen.len() as u64, "the items before it");
        let (total, next) = (page.total, page.next_cursor.unwrap());
        seen.extend(page.items);
        // The client sends the cursor as it was received.
        let Some(next) = next else {
            assert_eq!(total, seen.len() as u64, "the total of the first page");
            return seen;
        };
        cursor = Cursor::from_token(&next.to_token()).unwrap();
    }
}

/// Every chunk of `limit`, each starting after the last record.
async fn chunks(store: &Store, scope: Scope, filter: &CdrFilter, order: Order, limit: u32) -> Vec<Cdr> {
    let mut seen: Vec<Cdr> = Vec::new();
    loop {
        let after = seen.last().map(CdrPlace::from);
        let chunk = store.chunk(scope, filter, order, after, limit).await.unwrap();
        let read = chunk.len();
        seen.extend(chunk);
        if read < limit as usize {
            return seen;
        }
    }
}

const OWN: fn() -> Scope = || Scope::Organisation(organisation(ACME));

fn ids(cdrs: &[Cdr]) -> Vec<CallId> {
    cdrs.iter().map(|cdr| cdr.call_uuid).collect()
}

/// H12: for every sort and order, pages are disjoint, their union is complete, and their order is the model's,
/// although every key repeats and some are missing.
#[test]
fn pages_are_disjoint_and_complete_for_every_sort_and_order() {
    let rng = &mut StdRng::seed_from_u64(12);
    let count = std::env::var("SIDETONE_TEST_PAGING_ROWS").map_or(1500, |rows| rows.parse().unwrap());
    let all = records(rng, count);
    with_store(async |store| {
        for batch in all.chunks(1000) {
            store.store(batch).await.unwrap();
        }
        let (scope, filter) = (OWN(), CdrFilter::default());
        for (sort, name) in CdrSort::ALL {
            for order in [Order::Ascending, Order::Descending] {
                let limit = rng.random_range(50..=500);
                let seen = pages(store, scope, &filter, sort, order, limit).await;
                let expected = expected(&all, scope, &filter, sort, order);
                assert_eq!(ids(&seen), ids(&expected), "{name} {order:?} by {limit}");
                let seen = cursor_pages(store, scope, &filter, sort, order, limit).await;
                assert_eq!(ids(&seen), ids(&expected), "{name} {order:?} by {limit}, by cursor");
            }
        }
        for order in [Order::Ascending, Order::Descending] {
            let expected = expected(&all, scope, &filter, CdrSort::StartedAt, order);
            assert_eq!(ids(&chunks(store, scope, &filter, order, 97).await), ids(&expected), "{order:?}");
        }
    });
}

/// New records appear on no later page of a reader, and no record is duplicated or missing.
#[test]
fn pages_by_cursor_are_stable_while_records_are_added() {
    let record = |number: u128| Cdr { started_at: at(number as i64), ..answered(number) };
    with_store(async |store| {
        store.store(&(1..=10).map(record).collect::<Vec<_>>()).await.unwrap();
        let (mut seen, mut cursor) = (Vec::new(), Some(Cursor::default()));
        let mut fresh = 11;
        while let Some(place) = cursor {
            let window = Window { limit: 3, offset: 0, cursor: Some(place) };
            let page = store.list(OWN(), window.into()).await.unwrap();
            assert_eq!((page.total, page.limit), (10, 3));
            seen.extend(ids(&page.items));
            cursor = page.next_cursor.unwrap();
            store.store(&[record(fresh), record(fresh + 1)]).await.unwrap();
            fresh += 2;
        }
        let expected: Vec<CallId> = (1..=10).rev().map(|number| answered(number).call_uuid).collect();
        assert_eq!(seen, expected);
    });
}

/// Combined filters must all match, in lists, totals, counts and chunks alike.
#[test]
fn filters_combine_freely() {
    let rng = &mut StdRng::seed_from_u64(21);
    let few = records(rng, 300);
    with_store(async |store| {
        let mut all = few.clone();
        store_with_rooms(store, &all).await;
        let mut found = 0;
        for round in 0..400 {
            if round == 300 {
                // One text is too long for an index, so all texts are searched in the records.
                let long = Some(format!("9{}", "é".repeat(400)));
                all.push(Cdr {
                    destination_number: long,
                    organisation_id: organisation(ACME),
                    call_uuid: CallId(Uuid::from_u128(5)),
                    ..record(rng)
                });
                store.store(&all).await.unwrap();
            }
            let filter = filter(rng);
            let team = |number| TeamId(Uuid::from_u128(number));
            let part = |team| Scope::Team { organisation: organisation(ACME), team };
            let scope = pick(rng, [OWN(), OWN(), Scope::Everything, part(None), part(Some(team(1)))]);
            let (sort, _) = pick(rng, CdrSort::ALL);
            let order = pick(rng, [Order::Ascending, Order::Descending]);
            let wanted = expected(&all, scope, &filter, sort, order);
            let seen = pages(store, scope, &filter, sort, order, 40).await;
            assert_eq!(ids(&seen), ids(&wanted), "round {round}: {filter:?}");
            let seen = cursor_pages(store, scope, &filter, sort, order, 40).await;
            assert_eq!(ids(&seen), ids(&wanted), "round {round}, by cursor: {sort:?} {order:?} {filter:?}");
            let count = store.count(scope, &filter, 20).await.unwrap();
            assert_eq!(count, wanted.len().min(20) as u64, "round {round}: {filter:?}");
            let wanted = expected(&all, scope, &filter, CdrSort::StartedAt, order);
            let seen = chunks(store, scope, &filter, order, 40).await;
            assert_eq!(ids(&seen), ids(&wanted), "round {round}: {filter:?}");
            found += usize::from(!wanted.is_empty());
        }
        assert!(found > 100, "most rounds prove nothing: {found}");
    });
}

/// H4: ten thousand random filters, and never a row outside the caller's scope: not in the page, the total,
/// a count or a chunk.
#[test]
fn no_filter_shows_a_row_outside_the_scope() {
    let rng = &mut StdRng::seed_from_u64(4);
    let all = records(rng, 200);
    let team = |number: u128| Some(TeamId(Uuid::from_u128(number)));
    let (acme, other) = (organisation(ACME), organisation(2));
    let scopes = [
        Scope::Team { organisation: acme, team: team(1) },
        Scope::Team { organisation: acme, team: team(2) },
        Scope::Team { organisation: other, team: team(1) },
        Scope::Team { organisation: acme, team: None },
        Scope::Team { organisation: acme, team: team(9) },
        Scope::Organisation(other),
        Scope::Everything,
    ];
    with_store(async |store| {
        store_with_rooms(store, &all).await;
        let mut found = 0;
        for round in 0..10_000 {
            let filter = filter(rng);
            let scope = scopes[round % scopes.len()];
            let (sort, _) = pick(rng, CdrSort::ALL);
            let order = pick(rng, [Order::Ascending, Order::Descending]);
            let mut wanted: Vec<&Cdr> = all
                .iter()
                .filter(|cdr| scope.covers(cdr.organisation_id, cdr.team_id) && holds(&filter, cdr))
                .collect();
            wanted.sort_by(|a, b| compare(sort, order, a, b));
            let wanted: Vec<CallId> = wanted.iter().map(|cdr| cdr.call_uuid).collect();
            let window = Window::at(rng.random_range(0..3), 20);
            let query = CdrQuery { filter: filter.clone(), sort, order, window: window.clone() };
            let page = store.list(scope, query).await.unwrap();
            let shown: Vec<CallId> = wanted.iter().skip(window.offset as usize).take(20).copied().collect();
            let what = || format!("round {round}: {scope:?} {filter:?}");
            assert_eq!((page.total, ids(&page.items)), (wanted.len() as u64, shown), "{}", what());
            found += usize::from(!wanted.is_empty());
            if round % 10 != 0 {
                continue;
            }
            let count = store.count(scope, &filter, 1000).await.unwrap();
            assert_eq!(count, wanted.len() as u64, "{}", what());
            let chunk = store.chunk(scope, &filter, order, None, 500).await.unwrap();
            let mut chunk = ids(&chunk);
            let mut wanted = wanted;
            chunk.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(chunk, wanted, "{}", what());
        }
        assert!(found > 2000, "most rounds prove nothing: {found}");
    });
}

/// H13: a search term is literal text, never a pattern.
#[test]
fn searches_are_literal_and_in_any_case() {
    let long = "7".repeat(1000);
    let texts = ["50%", "5_0", "a\\b", "o'neil", "İstanbul", "Straße", "ΟΔΟΣ", "ÀB", long.as_str(), "plain"];
    let cases = [
        ("%", vec!["50%"]),
        ("50%", vec!["50%"]),
        ("_", vec!["5_0"]),
        ("\\", vec!["a\\b"]),
        ("A\\B", vec!["a\\b"]),
        ("O'N", vec!["o'neil"]),
        ("İST", vec!["İstanbul"]),
        ("i\u{307}st", vec!["İstanbul"]),
        ("STRAẞE", vec!["Straße"]),
        ("STRASSE", vec![]),
        ("οδος", vec!["ΟΔΟΣ"]),
        ("ΟΔΟΣ", vec!["ΟΔΟΣ"]),
        ("οδ", vec!["ΟΔΟΣ"]),
        ("àb", vec!["ÀB"]),
        (long.as_str(), vec![long.as_str()]),
        ("l%n", vec![]),
        ("' OR 1=1 --", vec![]),
    ];
    let all: Vec<Cdr> = (1..)
        .zip(texts)
        .map(|(number, text)| Cdr {
            started_at: at(-number),
            destination_number: Some(text.to_owned()),
            caller_number: None,
            ..answered(number as u128)
        })
        .collect();
    with_store(async |store| {
        // The index of searches has every text, then all but one.
        let short: Vec<Cdr> =
            all.iter().filter(|cdr| cdr.destination_number != Some(long.clone())).cloned().collect();
        store.store(&short).await.unwrap();
        for (index, (part, expected)) in cases.iter().chain(&cases).enumerate() {
            if index == cases.len() {
                store.store(&all).await.unwrap();
            }
            if index < cases.len() && *part == long {
                continue;
            }
            let part = Some((*part).to_owned());
            for filter in [
                CdrFilter { q: part.clone(), ..CdrFilter::default() },
                CdrFilter { did: part.clone(), ..CdrFilter::default() },
            ] {
                let seen = pages(store, OWN(), &filter, CdrSort::StartedAt, Order::Descending, 50).await;
                let seen: Vec<_> = seen.iter().filter_map(|cdr| cdr.destination_number.as_deref()).collect();
                assert_eq!(seen, *expected, "{filter:?}");
            }
        }
    });
}
