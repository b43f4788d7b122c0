//! Rating and credit, compared with independent, simple models on random calls, rates and currencies.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rust_decimal::{Decimal, RoundingStrategy};
use sidetone_call::record::{Facts, Outcome, build};
use sidetone_model::call::BillingMode;
use sidetone_model::ids::{CallId, CostRateId, FxRateId, OrganisationId, SellRateId, TrunkId};
use sidetone_model::money::{Amount, Currency};
use sidetone_model::rating::{
    Account, CostRate, CreditRate, FxRate, Increments, Price, RateSnapshot, SellRate, Tariff, Validity,
};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use super::credit::Output;
use super::{Ledger, Meter, NoCredit, Quote, Tariffs, settle};

/// Number of random calls; `SIDETONE_TEST_CASES` overrides it.
fn cases() -> u32 {
    std::env::var("SIDETONE_TEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(100_000)
}

fn currency(rng: &mut StdRng) -> Currency {
    ["EUR", "USD", "GBP", "JPY", "KWD"][rng.random_range(0..5)].parse().unwrap()
}

fn price(rng: &mut StdRng) -> Price {
    let digits = rng.random_range(0..12_u32);
    Price {
        per_minute: Amount::from_scaled(rng.random_range(0..=10_i64.pow(digits))),
        currency: currency(rng),
        increments: Increments::new(rng.random_range(1..=90), rng.random_range(1..=90)).unwrap(),
    }
}

/// Few digits and instants, so that rates overlap, follow each other and leave gaps.
fn number(rng: &mut StdRng, len: std::ops::RangeInclusive<usize>) -> String {
    let digits: String = (0..rng.random_range(len)).map(|_| if rng.random() { '1' } else { '2' }).collect();
    format!("+{digits}")
}

fn validity(rng: &mut StdRng) -> Validity {
    let from = rng.random_range(0..50);
    let to = rng.random_bool(0.3).then(|| Timestamp::from_micros(from + rng.random_range(1..50)));
    Validity { from: Timestamp::from_micros(from), to }
}

fn snapshot(rng: &mut StdRng) -> RateSnapshot {
    let mut rates = RateSnapshot::default();
    for _ in 0..rng.random_range(0..12) {
        let rate = SellRate {
            id: SellRateId(Uuid::nil()),
            organisation_id: organisation(rng.random_range(0..3)),
            prefix: number(rng, 0..=4).parse().unwrap(),
            price: price(rng),
            validity: validity(rng),
        };
        // The natural key excludes duplicates, so none are generated.
        let key = |r: &SellRate| (r.organisation_id, r.prefix.clone(), r.validity.from);
        if !rates.sell.iter().any(|other| key(other) == key(&rate)) {
            rates.sell.push(rate);
        }
    }
    for _ in 0..rng.random_range(0..8) {
        let rate = CostRate {
            id: CostRateId(Uuid::nil()),
            trunk_id: TrunkId(Uuid::from_u128(rng.random_range(0..2))),
            prefix: number(rng, 0..=4).parse().unwrap(),
            price: price(rng),
            validity: validity(rng),
        };
        let key = |r: &CostRate| (r.trunk_id, r.prefix.clone(), r.validity.from);
        if !rates.cost.iter().any(|other| key(other) == key(&rate)) {
            rates.cost.push(rate);
        }
    }
    for _ in 0..rng.random_range(0..20) {
        let digits = rng.random_range(1..12);
        let rate = FxRate {
            id: FxRateId(Uuid::nil()),
            from: currency(rng),
            to: currency(rng),
            rate: Amount::from_scaled(rng.random_range(1..=10_i64.pow(digits))),
            from_time: Timestamp::from_micros(rng.random_range(0..5_000_000)),
        };
        let key = |r: &FxRate| (r.from, r.to, r.from_time);
        if rate.from != rate.to && !rates.fx.iter().any(|other| key(other) == key(&rate)) {
            rates.fx.push(rate);
        }
    }
    rates
}

pub(super) fn organisation(number: u128) -> OrganisationId {
    OrganisationId(Uuid::from_u128(0xACE + number))
}

fn facts(organisation: OrganisationId, at: Timestamp, tariff: Option<Tariff>) -> Facts {
    Facts {
        call: CallId(Uuid::from_u128(1)),
        organisation,
        currency: "EUR".parse().unwrap(),
        extension: None,
        agent: None,
        team: None,
        called: None,
        trunk: None,
        direction: sidetone_model::call::Direction::Outbound,
        transport: sidetone_model::call::Transport::Sip,
        node: sidetone_model::ids::NodeId(Uuid::nil()),
        started_at: at,
        caller_number: None,
        destination_number: None,
        dialled_number: None,
        forwarded: None,
        tariff,
    }
}

/// The model: searches every rate, and computes with a decimal library.
mod model {
    use super::*;

    /// Returns the rate for `number` at `at` among all rates of one payer.
    pub(super) fn find<'a>(
        rates: impl Iterator<Item = (&'a str, Validity, Price)>,
        number: &str,
        at: Timestamp,
    ) -> Option<Price> {
        let mut best: Option<(usize, Timestamp, Price)> = None;
        for (prefix, validity, price) in rates {
            let begun = validity.from.as_micros() <= at.as_micros();
            let over = validity.to.is_some_and(|to| to.as_micros() <= at.as_micros());
            if !number.starts_with(prefix) || !begun || over {
                continue;
            }
            let better = best.is_none_or(|(len, from, _)| (len, from) < (prefix.len(), validity.from));
            if better {
                best = Some((prefix.len(), validity.from, price));
            }
        }
        best.map(|(_, _, price)| price)
    }

    pub(super) fn charge(price: &Price, billsec: u32) -> Decimal {
        let mut seconds = price.increments.first_s();
        while seconds < billsec {
            seconds += price.increments.next_s();
        }
        rounded(price.per_minute.decimal() * Decimal::from(seconds) / Decimal::from(60))
    }

    pub(super) fn fx(rates: &[FxRate], from: Currency, to: Currency, at: Timestamp) -> Option<Decimal> {
        if from == to {
            return Some(Decimal::ONE);
        }
        let of_pair = rates.iter().filter(|rate| rate.from == from && rate.to == to);
        let begun = of_pair.filter(|rate| rate.from_time <= at);
        begun.max_by_key(|rate| rate.from_time).map(|rate| rate.rate.decimal())
    }

    pub(super) fn rounded(exact: Decimal) -> Decimal {
        exact.round_dp_with_strategy(8, RoundingStrategy::MidpointNearestEven)
    }
}

/// Random calls at random rates in random currencies: engine and model agree to the last digit.
#[test]
fn random_calls_are_rated_as_the_model_rates_them() {
    let mut rng = StdRng::seed_from_u64(0x51DE_70AE);
    let (mut rated, mut converted, mut unconverted, mut barred) = (0, 0, 0, 0);
    let mut rates = RateSnapshot::default();
    let mut tariffs = Tariffs::default();
    for case in 0..cases() {
        if case % 20 == 0 {
            rates = snapshot(&mut rng);
            tariffs = Tariffs::new(rates.clone());
        }
        let (payer, trunk) =
            (organisation(rng.random_range(0..3)), TrunkId(Uuid::from_u128(rng.random_range(0..2))));
        let (dialled, at) = (number(&mut rng, 1..=6), Timestamp::from_micros(rng.random_range(0..100)));
        let own = rates.sell.iter().filter(|rate| rate.organisation_id == payer);
        let sell = model::find(own.clone().map(|r| (r.prefix.as_str(), r.validity, r.price)), &dialled, at);
        let expected = match (own.count(), sell) {
            (0, _) => Quote::Free,
            (_, None) => Quote::Barred,
            (_, Some(price)) => Quote::Rated(price),
        };
        let quote = tariffs.quote(payer, &dialled, at);
        assert_eq!(quote, expected, "case {case}");
        let carriers = rates.cost.iter().filter(|rate| rate.trunk_id == trunk);
        let cost = model::find(carriers.map(|r| (r.prefix.as_str(), r.validity, r.price)), &dialled, at);
        assert_eq!(tariffs.cost(trunk, &dialled, at), cost, "case {case}");
        let Quote::Rated(sell) = quote else {
            barred += u32::from(quote == Quote::Barred);
            continue;
        };
        rated += 1;
        let answered = rng.random_bool(0.9);
        let ended_us = rng.random_range(0..6_000_000_i64) * rng.random_range(1..1_000);
        let outcome = Outcome {
            answered_after_us: answered.then_some(1_000),
            ended_after_us: Some(1_000 + ended_us),
            ..Outcome::default()
        };
        let mut cdr = build(&facts(payer, at, Some(Tariff { sell, credit: None, cost })), outcome);
        settle(&mut cdr, tariffs.fx());
        assert_eq!(
            (cdr.billing_mode, cdr.currency),
            (BillingMode::Rated, Some(sell.currency)),
            "case {case}"
        );
        let billsec = u32::try_from(ended_us / 1_000_000).unwrap();
        let expected_sell = if answered { model::charge(&sell, billsec) } else { Decimal::ZERO };
        assert_eq!(cdr.sell_amount.decimal(), expected_sell, "case {case}");
        let Some(cost) = cost.filter(|_| answered) else {
            assert_eq!((cdr.cost_amount, cdr.billing.cost), (Amount::ZERO, None), "case {case}");
            continue;
        };
        let original = model::charge(&cost, billsec);
        let rate = model::fx(&rates.fx, cost.currency, sell.currency, cdr.ended_at.unwrap());
        let charged = cdr.billing.cost.unwrap();
        assert_eq!(charged.amount.decimal(), original, "case {case}");
        assert_eq!(charged.fx_rate.map(Amount::decimal), rate, "case {case}");
        let in_currency = rate.map_or(original, |rate| model::rounded(original * rate));
        assert_eq!(cdr.cost_amount.decimal(), in_currency, "case {case}");
        *if rate.is_some() { &mut converted } else { &mut unconverted } += 1;
    }
    let least = cases() / 100;
    for (what, count) in
        [("rated", rated), ("converted", converted), ("unconverted", unconverted), ("barred", barred)]
    {
        assert!(count >= least, "only {count} of {} cases were {what}", cases());
    }
}

/// A settled record has no prices left: settling it again with other rates changes nothing.
#[test]
fn settling_twice_changes_nothing() {
    let mut rng = StdRng::seed_from_u64(7);
    let rates = |rate: &str| {
        Tariffs::new(RateSnapshot {
            fx: vec![FxRate {
                id: FxRateId(Uuid::nil()),
                from: "USD".parse().unwrap(),
                to: "EUR".parse().unwrap(),
                rate: rate.parse().unwrap(),
                from_time: Timestamp::from_micros(0),
            }],
            ..RateSnapshot::default()
        })
    };
    let price = |code: &str, rng: &mut StdRng| Price { currency: code.parse().unwrap(), ..price(rng) };
    let tariff = Tariff { sell: price("EUR", &mut rng), credit: None, cost: Some(price("USD", &mut rng)) };
    let outcome =
        Outcome { answered_after_us: Some(0), ended_after_us: Some(90_000_000), ..Outcome::default() };
    let mut cdr = build(&facts(organisation(1), Timestamp::from_micros(5), Some(tariff)), outcome);
    settle(&mut cdr, rates("0.92").fx());
    let settled = cdr.clone();
    settle(&mut cdr, rates("1.50").fx());
    assert_eq!(cdr, settled);
    assert!(settled.billing.cost.unwrap().fx_rate.is_some());
}

#[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
pub(super) fn any_instant() -> Instant {
    Instant::now()
}

pub(super) fn account(number: u128, credit: Option<i64>, used: i64) -> Account {
    Account {
        organisation_id: organisation(number),
        currency: "EUR".parse().unwrap(),
        credit: credit.map(Amount::from_scaled),
        used: Amount::from_scaled(used),
        used_before: Amount::ZERO,
    }
}

pub(super) fn tariff(per_minute: i64, first: u32, next: u32) -> Tariff {
    let currency = "EUR".parse().unwrap();
    let increments = Increments::new(first, next).unwrap();
    Tariff {
        sell: Price { per_minute: Amount::from_scaled(per_minute), currency, increments },
        credit: Some(CreditRate { currency, fx_rate: Amount::ONE }),
        cost: None,
    }
}

fn call(number: u128) -> CallId {
    CallId(Uuid::from_u128(number))
}

/// Runs a ledger with timers served on time; logs its outputs with their milliseconds.
struct Desk {
    ledger: Ledger,
    start: Instant,
    now: Instant,
    said: Vec<(u128, String)>,
}

impl Desk {
    fn with(accounts: &[Account]) -> Self {
        let start = any_instant();
        let mut ledger = Ledger::new(Duration::from_secs(10));
        ledger.accounts(start, accounts);
        Desk { ledger, start, now: start, said: Vec::new() }
    }

    fn until(&mut self, ms: u64) {
        let until = self.start + Duration::from_millis(ms);
        while let Some(due) = self.ledger.next_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.ledger.timeout(self.now);
            self.listen();
        }
        self.now = until;
    }

    fn listen(&mut self) {
        while let Some(output) = self.ledger.poll_output() {
            let ms = self.now.duration_since(self.start).as_millis();
            let text = match output {
                Output::End(id) => format!("end {}", id.0.as_u128()),
                Output::GoOn(id) => format!("go on {}", id.0.as_u128()),
                Output::Refuse(id) => format!("refuse {}", id.0.as_u128()),
                Output::Warn(id) => format!("warn {}", id.0.as_u128()),
            };
            self.said.push((ms, text));
        }
    }

    fn begin(&mut self, number: u128, tariff: &Tariff) -> Result<(), NoCredit> {
        let meter = Meter::of(tariff).unwrap();
        let result = self.ledger.admit(self.now, call(number), organisation(1), meter);
        self.listen();
        result
    }

    fn answer(&mut self, number: u128) {
        self.ledger.answered(self.now, call(number));
        self.listen();
    }

    fn end(&mut self, number: u128, draw: i64) {
        self.ledger.ended(self.now, call(number), Some(Amount::from_scaled(draw)));
        self.listen();
    }

    fn said(&mut self) -> Vec<String> {
        self.said.drain(..).map(|(ms, text)| format!("{ms} {text}")).collect()
    }
}

#[test]
fn a_call_is_warned_and_then_ended_when_its_last_paid_second_is_over() {
    // The price is 60 scaled units a minute, charged by the second: 30 units last 30 seconds.
    let mut desk = Desk::with(&[account(1, Some(30), 0)]);
    let by_second = tariff(60, 1, 1);
    desk.begin(1, &by_second).unwrap();
    desk.until(5_000);
    desk.answer(1);
    desk.until(60_000);
    assert_eq!(desk.said(), ["25000 warn 1", "35000 end 1"]);
    desk.end(1, 30);
    assert_eq!(desk.begin(2, &by_second), Err(NoCredit));
    // A call that costs nothing needs no credit.
    assert_eq!(desk.begin(3, &tariff(0, 60, 60)), Ok(()));
}

#[test]
fn increments_are_paid_ahead() {
    // A minute costs 60; the second one would exceed the credit, so the call ends after the first.
    let mut desk = Desk::with(&[account(1, Some(100), 0)]);
    desk.begin(1, &tariff(60, 60, 60)).unwrap();
    desk.answer(1);
    assert_eq!(desk.begin(2, &tariff(60, 60, 60)), Err(NoCredit));
    assert_eq!(desk.begin(3, &tariff(40, 60, 60)), Ok(()));
    desk.until(90_000);
    assert_eq!(desk.said(), ["50000 warn 1", "60000 end 1"]);
}

#[test]
fn a_call_that_ends_leaves_its_share_to_the_others() {
    let mut desk = Desk::with(&[account(1, Some(100), 0)]);
    let by_second = tariff(60, 1, 1);
    for number in [1, 2] {
        desk.begin(number, &by_second).unwrap();
        desk.answer(number);
    }
    // Both calls together would last 50 seconds.
    desk.until(45_000);
    assert_eq!(desk.said(), ["40000 warn 1", "40000 warn 2"]);
    desk.end(2, 45);
    desk.until(54_000);
    assert_eq!(desk.said(), [""; 0]);
    desk.until(70_000);
    assert_eq!(desk.said(), ["55000 end 1"]);
}

#[test]
fn more_credit_lets_a_warned_call_go_on() {
    let mut desk = Desk::with(&[account(1, Some(30), 0)]);
    desk.begin(1, &tariff(60, 1, 1)).unwrap();
    desk.answer(1);
    desk.until(25_000);
    assert_eq!(desk.said(), ["20000 warn 1"]);
    desk.ledger.accounts(desk.now, &[account(1, Some(200), 0)]);
    desk.until(189_000);
    assert_eq!(desk.said(), [""; 0]);
    desk.until(300_000);
    assert_eq!(desk.said(), ["190000 warn 1", "200000 end 1"]);
}

#[test]
fn a_limit_below_what_is_used_ends_every_call_that_costs() {
    let mut desk = Desk::with(&[account(1, None, 500)]);
    desk.begin(1, &tariff(60, 1, 1)).unwrap();
    desk.answer(1);
    desk.begin(2, &tariff(60, 1, 1)).unwrap();
    desk.begin(3, &tariff(0, 1, 1)).unwrap();
    desk.answer(3);
    desk.until(1_000);
    desk.ledger.accounts(desk.now, &[account(1, Some(400), 500)]);
    desk.listen();
    assert_eq!(desk.said(), ["1000 end 1", "1000 end 2"]);
}

#[test]
fn what_waits_for_the_database_is_counted_once() {
    let mut desk = Desk::with(&[account(1, Some(100), 0)]);
    desk.ledger.carried_over(organisation(1), call(9), Amount::from_scaled(50));
    desk.begin(1, &tariff(60, 1, 1)).unwrap();
    desk.answer(1);
    desk.until(10_000);
    desk.end(1, 10);
    // The database includes the call of the earlier run, then both; the directory's value arrives late.
    desk.ledger.stored(desk.now, organisation(1), Amount::from_scaled(50), &[call(9)]);
    desk.ledger.stored(desk.now, organisation(1), Amount::from_scaled(60), &[call(1)]);
    desk.ledger.accounts(desk.now, &[account(1, Some(100), 50)]);
    assert_eq!(desk.begin(2, &tariff(41, 60, 60)), Err(NoCredit));
    assert_eq!(desk.begin(3, &tariff(40, 60, 60)), Ok(()));
}

/// Many concurrent calls at random prices ring, are answered and end at random, with timers up to a second
/// late: the charges never exceed the credit, and every warning precedes its end.
#[test]
fn whatever_calls_do_the_credit_is_never_exceeded() {
    let (mut ended_by_ledger, mut refused, mut settled) = (0, 0, 0);
    for seed in 0..u64::from(cases() / 250) {
        let mut rng = StdRng::seed_from_u64(seed);
        let credit = rng.random_range(0..60_000_i64);
        let start = any_instant();
        let mut ledger = Ledger::new(Duration::from_secs(10));
        ledger.accounts(start, &[account(1, Some(credit), 0)]);
        let mut live: HashMap<CallId, (Tariff, Option<Instant>)> = HashMap::new();
        let mut now = start;
        let mut used = 0_i64;
        for number in 0..300_u128 {
            let pause = Duration::from_micros(rng.random_range(0..8_000_000));
            let next = now + pause;
            // Timers are served in order, each up to 0.9 s late.
            while let Some(due) = ledger.next_timeout() {
                let served = due.max(now) + Duration::from_millis(rng.random_range(0..900));
                if due > next {
                    break;
                }
                now = now.max(served);
                ledger.timeout(now);
                used += obey(&mut ledger, now, &mut live, &mut ended_by_ledger);
            }
            now = now.max(next);
            let any = live.keys().min().copied();
            match rng.random_range(0..4) {
                0 | 1 => {
                    let (first, next) = (rng.random_range(1..=60), rng.random_range(1..=60));
                    let tariff = tariff(rng.random_range(0..6_000), first, next);
                    match ledger.admit(now, call(number), organisation(1), Meter::of(&tariff).unwrap()) {
                        Ok(()) => _ = live.insert(call(number), (tariff, None)),
                        Err(NoCredit) => refused += 1,
                    }
                }
                2 => {
                    if let Some((id, (_, answered))) =
                        live.iter_mut().filter(|(_, (_, a))| a.is_none()).min_by_key(|(id, _)| **id)
                    {
                        *answered = Some(now);
                        ledger.answered(now, *id);
                    }
                }
                _ => {
                    if let Some(id) = any {
                        used += hang_up(&mut ledger, now, &mut live, id);
                        settled += 1;
                    }
                }
            }
            used += obey(&mut ledger, now, &mut live, &mut ended_by_ledger);
            assert!(used <= credit, "seed {seed}: {used} of {credit}");
        }
    }
    assert!(ended_by_ledger > 100 && refused > 100 && settled > 100, "{ended_by_ledger} {refused} {settled}");
}

/// Ends the calls that the ledger ends; returns their charge.
fn obey(
    ledger: &mut Ledger,
    now: Instant,
    live: &mut HashMap<CallId, (Tariff, Option<Instant>)>,
    ended: &mut u32,
) -> i64 {
    let mut used = 0;
    while let Some(output) = ledger.poll_output() {
        if let Output::End(id) = output {
            *ended += 1;
            used += hang_up(ledger, now, live, id);
        }
    }
    used
}

fn hang_up(
    ledger: &mut Ledger,
    now: Instant,
    live: &mut HashMap<CallId, (Tariff, Option<Instant>)>,
    id: CallId,
) -> i64 {
    let (tariff, answered) = live.remove(&id).expect("only live calls are ended");
    let draw = answered.and_then(|answered| {
        let billsec = now.duration_since(answered).as_secs();
        super::settle::draw(&tariff, u32::try_from(billsec).unwrap())
    });
    let draw = draw.map(|draw| draw.amount);
    ledger.ended(now, id, draw);
    draw.unwrap_or_default().scaled()
}

/// Amounts, rates and credit stay whole numbers and decimals throughout.
#[test]
fn no_float_on_the_way_of_money() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = vec![
        root.join("model/src/money.rs"),
        root.join("model/src/rating.rs"),
        root.join("store/src/rates.rs"),
        root.join("store/src/credit.rs"),
        root.join("store/src/credit_reserves.rs"),
        root.join("src/provision/rates.rs"),
    ];
    for folder in ["switch/src/rating", "api/src/routes/rates"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("a folder of money");
        files.extend(entries.map(|entry| entry.expect("an entry of a folder").path()));
    }
    files.retain(|file| !file.ends_with("tests.rs"));
    for file in &files {
        let text =
            std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for float in ["f32", "f64", "to_f6", "from_f6", "to_f3", "from_f3"] {
            assert!(!text.contains(float), "{} names {float}", file.display());
        }
    }
    assert!(files.len() >= 10, "{files:?}");
}
