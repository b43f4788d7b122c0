//! Rates, credit and totals, the same on both databases.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rust_decimal::Decimal;
use sidetone_model::access::Scope;
use sidetone_model::call_log::CdrFilter;
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::{CallId, OrganisationId, SellRateId};
use sidetone_model::money::{Amount, Currency};
use sidetone_model::page::Window;
use sidetone_model::ports::{CdrLog, CdrSink, Stored};
use sidetone_model::problem::Problem;
use sidetone_model::rate_book::{Accounts, RateBook};
use sidetone_model::rating::{
    Billing, CarrierCharge, CreditDraw, Drawn, Increments, Price, RateFilter, SellRate, Validity,
};
use sidetone_model::totals::CdrTotals;
use sidetone_store::Store;
use uuid::Uuid;

use crate::common::records::{at, ended, organisation};
use crate::store::acme;
use crate::store::with_store;

fn amount(text: &str) -> Amount {
    text.parse().unwrap()
}

fn drawing(number: u128, organisation_id: OrganisationId, text: &str) -> Cdr {
    let draw = CreditDraw { currency: "EUR".parse().unwrap(), amount: amount(text) };
    Cdr { organisation_id, billing: Billing { credit: Some(draw), ..Billing::default() }, ..ended(number) }
}

async fn with_acme(store: &Store, credit: Option<&str>) -> OrganisationId {
    let mut write = store.write().await.unwrap();
    let row = sidetone_store::OrganisationRow { credit: credit.map(amount), ..acme() };
    let (id, _) = write.declare_organisation(&row, at(0)).await.unwrap();
    write.commit().await.unwrap();
    id
}

async fn with_acme_named(store: &Store, name: &str) -> OrganisationId {
    let mut write = store.write().await.unwrap();
    let row = sidetone_store::OrganisationRow {
        name: name.to_owned(),
        sip_domain: format!("{name}.test").to_lowercase(),
        credit: None,
        ..acme()
    };
    let (id, _) = write.declare_organisation(&row, at(0)).await.unwrap();
    write.commit().await.unwrap();
    id
}

async fn balance(store: &Store, id: OrganisationId) -> Option<String> {
    let account = store.account(id).await.unwrap().unwrap();
    account.balance().map(|left| left.to_text(2))
}

/// The reserves of nodes and the used amount stay within the credit, and a stored call is charged to its node's
/// reserve.
#[test]
fn nodes_reserve_no_more_credit_than_there_is() {
    with_store(async |store| {
        let id = with_acme(store, Some("10")).await;
        let one = store.node("one", at(0)).await.unwrap();
        let two = store.node("two", at(0)).await.unwrap();
        let hour = Duration::from_secs(3_600);
        let reserve = async |node, want: &str, seconds: i64| {
            let now = at(0).plus_micros(seconds * 1_000_000);
            let reserved = store.reserve_credit((id, node), amount(want), hour, now).await.unwrap().unwrap();
            (reserved.amount, reserved.used)
        };
        assert_eq!(reserve(one, "6", 1).await, (amount("6"), amount("0")));
        assert_eq!(reserve(two, "6", 2).await, (amount("4"), amount("0")));
        let of_one = Cdr { node_id: Some(one), ..drawing(1, id, "2.5") };
        store.store(std::slice::from_ref(&of_one)).await.unwrap();
        // A replay charges nothing.
        store.store(&[of_one]).await.unwrap();
        assert_eq!(reserve(two, "6", 3).await, (amount("4"), amount("2.5")));
        // A charge beyond the reserve uses up the reserve.
        store.store(&[Cdr { node_id: Some(one), ..drawing(2, id, "4") }]).await.unwrap();
        assert_eq!(reserve(two, "6", 4).await, (amount("3.5"), amount("6.5")));
        assert_eq!(reserve(two, "0", 5).await, (amount("0"), amount("6.5")));
        assert_eq!(reserve(one, "9", 6).await, (amount("3.5"), amount("6.5")));
        assert_eq!(reserve(two, "1", 7).await, (amount("0"), amount("6.5")));
        // A node that is silent for longer than any call loses its reserve; one that starts releases it.
        assert_eq!(reserve(two, "1", 3_607).await, (amount("1"), amount("6.5")));
        store.release_credit(two).await.unwrap();
        assert_eq!(reserve(one, "9", 3_608).await, (amount("3.5"), amount("6.5")));
        let unknown = store.reserve_credit((organisation(9), one), amount("1"), hour, at(0)).await.unwrap();
        assert_eq!(unknown, None);
        // Without a limit any amount can be reserved.
        let unlimited = with_acme_named(store, "Unlimited").await;
        let reserved =
            store.reserve_credit((unlimited, one), amount("99"), hour, at(0)).await.unwrap().unwrap();
        assert_eq!(reserved.amount, amount("99"));
    });
}

/// A call is deducted from the credit with its record: once, however often the record is stored.
#[test]
fn a_call_is_drawn_with_its_record_and_once() {
    with_store(async |store| {
        let id = with_acme(store, Some("25")).await;
        let calls = [drawing(1, id, "0.5"), drawing(2, id, "0.00000001"), ended(3)];
        let call = |at: usize| calls[at].call_uuid;
        let used =
            |text: &str, calls: Vec<CallId>| vec![Drawn { organisation: id, used: amount(text), calls }];
        let first = store.store(&calls[..1]).await.unwrap();
        assert_eq!(first, Stored { new: 1, drawn: used("0.5", vec![call(0)]) });
        // A replay after a crash.
        let again = store.store(&calls).await.unwrap();
        assert_eq!(again, Stored { new: 2, drawn: used("0.50000001", vec![call(0), call(1)]) });
        let again = store.store(&calls).await.unwrap();
        assert_eq!(again, Stored { new: 0, drawn: used("0.50000001", vec![call(0), call(1)]) });
        assert_eq!(balance(store, id).await.unwrap(), "24.49999999");
        // A call of a deleted organisation still has a record.
        let gone = store.store(&[drawing(9, organisation(99), "1")]).await.unwrap();
        assert_eq!((gone.new, gone.drawn[0].used), (1, Amount::ZERO));
    });
}

/// The used amount is kept when the credit changes; a first credit is granted in full.
#[test]
fn a_credit_that_is_granted_is_granted_whole() {
    with_store(async |store| {
        let id = with_acme(store, None).await;
        store.store(&[drawing(1, id, "7")]).await.unwrap();
        assert_eq!(balance(store, id).await, None);
        with_acme(store, Some("25")).await;
        assert_eq!(balance(store, id).await.unwrap(), "25.00");
        store.store(&[drawing(2, id, "5")]).await.unwrap();
        with_acme(store, Some("30")).await;
        assert_eq!(balance(store, id).await.unwrap(), "25.00");
        with_acme(store, Some("4")).await;
        assert_eq!(balance(store, id).await.unwrap(), "-1.00");
        // Another currency is another account.
        let dollars = CreditDraw { currency: "USD".parse().unwrap(), amount: amount("3") };
        let mut cdr = drawing(3, id, "3");
        cdr.billing.credit = Some(dollars);
        store.store(&[cdr]).await.unwrap();
        assert_eq!(balance(store, id).await.unwrap(), "-1.00");
    });
}

fn record(rng: &mut StdRng, number: u128) -> Cdr {
    let currency = [Some("EUR"), Some("JPY"), Some("USD"), None][rng.random_range(0..4)];
    let currency: Option<Currency> = currency.and_then(|code| code.parse().ok());
    // Some amounts are so large that the sum of two exceeds 64 bits.
    let amount = |rng: &mut StdRng| {
        let max = if rng.random_bool(0.2) { i64::MAX } else { 1_000_000_000_000 };
        Amount::from_scaled(rng.random_range(0..=max))
    };
    let cost = rng.random_bool(0.7).then(|| CarrierCharge {
        currency: "USD".parse().unwrap(),
        amount: amount(rng),
        fx_rate: rng.random_bool(0.7).then(|| Amount::from_scaled(92_000_000)),
    });
    Cdr {
        call_uuid: CallId(Uuid::from_u128(number + 1)),
        organisation_id: organisation(rng.random_range(1..=2)),
        started_at: at(rng.random_range(0..172_800)),
        billsec: rng.random_range(0..10_000),
        sell_amount: amount(rng),
        cost_amount: if cost.is_some() { amount(rng) } else { Amount::ZERO },
        currency,
        billing: Billing { cost, ..Billing::default() },
        ..ended(number)
    }
}

/// The totals of a day equal the sums of its records exactly, computed by another decimal library.
#[test]
fn totals_are_the_sums_of_the_records() {
    let rng = &mut StdRng::seed_from_u64(40);
    let all: Vec<Cdr> = (0..2_000).map(|number| record(rng, number)).collect();
    with_store(async |store| {
        for batch in all.chunks(500) {
            store.store(batch).await.unwrap();
        }
        let scope = Scope::Organisation(organisation(1));
        let day = CdrFilter { from: Some(at(0)), to: Some(at(86_400)), ..CdrFilter::default() };
        let totals = store.totals(scope, &day).await.unwrap();
        let of_day = |cdr: &&Cdr| {
            cdr.organisation_id == organisation(1) && cdr.started_at >= at(0) && cdr.started_at < at(86_400)
        };
        let mut count = 0;
        for (place, code) in [Some("EUR"), Some("JPY"), Some("USD"), None].into_iter().enumerate() {
            let currency: Option<Currency> = code.and_then(|code| code.parse().ok());
            let records: Vec<&Cdr> =
                all.iter().filter(of_day).filter(|cdr| cdr.currency == currency).collect();
            let converted = |cdr: &&&Cdr| cdr.billing.cost.is_none_or(|cost| cost.fx_rate.is_some());
            let sum =
                |amounts: &mut dyn Iterator<Item = Decimal>| amounts.sum::<Decimal>().normalize().to_string();
            let places = currency.map_or(2, Currency::places);
            let view = &totals.view(true).by_currency[place];
            assert_eq!(view.currency, currency);
            assert_eq!(view.count, records.len() as u64);
            assert_eq!(view.billsec, records.iter().map(|cdr| u64::from(cdr.billsec)).sum::<u64>());
            let plain = |text: &str| text.parse::<Decimal>().unwrap().normalize().to_string();
            assert!(view.sell_amount.split_once('.').is_none_or(|(_, rest)| rest.len() >= places as usize));
            assert_eq!(plain(&view.sell_amount), sum(&mut records.iter().map(|c| c.sell_amount.decimal())));
            let cost = sum(&mut records.iter().filter(converted).map(|c| c.cost_amount.decimal()));
            assert_eq!(plain(view.cost_amount.as_ref().unwrap()), cost);
            let margin = sum(&mut records
                .iter()
                .filter(converted)
                .map(|c| c.sell_amount.decimal() - c.cost_amount.decimal()));
            assert_eq!(plain(view.margin.as_ref().unwrap()), margin);
            let unconverted = records.len() - records.iter().filter(converted).count();
            assert_eq!(view.unconverted_count, Some(unconverted as u64).filter(|count| *count > 0));
            count += records.len() as u64;
        }
        assert_eq!(totals.view(false).count, count);
        assert!(totals.view(false).by_currency.iter().all(|view| view.cost_amount.is_none()));
        let unknown = store.totals(Scope::Organisation(organisation(3)), &day).await.unwrap();
        assert_eq!(unknown, CdrTotals::default());
    });
}

/// The amounts in a record stay when rates change: stored ones are read back unchanged.
#[test]
fn rates_that_change_leave_records_alone() {
    let rng = &mut StdRng::seed_from_u64(41);
    let all: Vec<Cdr> = (0..50).map(|number| record(rng, number)).collect();
    with_store(async |store| {
        let id = with_acme(store, None).await;
        store.store(&all).await.unwrap();
        let rate = sell_rate(id, "+44", "0.01");
        store.create(rate.clone(), at(0)).await.unwrap();
        let dearer = SellRate { price: Price { per_minute: amount("9"), ..rate.price }, ..rate };
        store.replace(dearer, at(1)).await.unwrap();
        store.store(&all).await.unwrap();
        for cdr in &all {
            let stored = CdrLog::find(store, cdr.call_uuid).await.unwrap().unwrap();
            let amounts = |cdr: &Cdr| (cdr.sell_amount, cdr.cost_amount, cdr.currency, cdr.billing.cost);
            assert_eq!(amounts(&stored), amounts(cdr));
        }
    });
}

fn sell_rate(organisation_id: OrganisationId, prefix: &str, per_minute: &str) -> SellRate {
    SellRate {
        id: SellRateId(Uuid::new_v4()),
        organisation_id,
        prefix: prefix.parse().unwrap(),
        price: Price {
            per_minute: amount(per_minute),
            currency: "EUR".parse().unwrap(),
            increments: Increments::SECONDS,
        },
        validity: Validity::default(),
    }
}

#[test]
fn a_book_of_rates_is_kept_in_order() {
    with_store(async |store| {
        let id = with_acme(store, None).await;
        let revision = store.rate_revision().await.unwrap();
        let prefixes = ["+", "+1", "+44", "+4420", "112"];
        for prefix in prefixes.into_iter().rev() {
            store.create(sell_rate(id, prefix, "0.01"), at(0)).await.unwrap();
        }
        assert_eq!(store.rate_revision().await.unwrap(), revision + 5);
        let page = async |scope: Scope, filter: RateFilter, window: Window| {
            let page = RateBook::<SellRate>::list(store, scope, filter, window).await.unwrap();
            let found: Vec<String> = page.items.iter().map(|rate| rate.prefix.to_string()).collect();
            (found.join(" "), page.total)
        };
        let all = || (Scope::Organisation(id), RateFilter::default());
        let window = Window::at(1, 2);
        let (scope, filter) = all();
        assert_eq!(page(scope, filter, window).await, ("+1 +44".to_owned(), 5));
        let britain = RateFilter { prefix: "+44".parse().ok(), ..RateFilter::default() };
        assert_eq!(page(scope, britain, Window::default()).await, ("+44 +4420".to_owned(), 2));
        let other = Scope::Organisation(organisation(1));
        assert_eq!(page(other, RateFilter::default(), Window::default()).await, (String::new(), 0));
        // One rate per prefix and start time.
        let twin = store.create(sell_rate(id, "+44", "1"), at(0)).await;
        assert!(matches!(twin, Err(Problem::Conflict(_))), "{twin:?}");
        let unknown = store.create(sell_rate(organisation(9), "+44", "1"), at(0)).await;
        assert!(matches!(unknown, Err(Problem::InvalidRequest(_))), "{unknown:?}");
        let gone = store.replace(sell_rate(id, "+49", "1"), at(0)).await;
        assert!(matches!(gone, Err(Problem::NotFound(_))), "{gone:?}");
        let first = store.rates().await.unwrap().sell[0].id;
        assert_eq!(RateBook::<SellRate>::delete(store, first).await, Ok(true));
        assert_eq!(RateBook::<SellRate>::delete(store, first).await, Ok(false));
    });
}
