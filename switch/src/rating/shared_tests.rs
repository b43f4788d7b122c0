//! Credit that several nodes use: each reserves a part in a database, and together they never exceed the credit.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_model::ids::CallId;
use sidetone_model::money::Amount;
use sidetone_model::rating::{Account, Tariff};
use uuid::Uuid;

use super::credit::Output;
use super::rate::charge;
use super::tests::{account, any_instant, organisation, tariff};
use super::{CreditNeed, CreditReserved, Ledger, Meter, NoCredit};

const NODES: usize = 3;

/// The only account.
fn shared_account(credit: i128, used: i128) -> Account {
    let scaled = |amount: i128| i64::try_from(amount).unwrap();
    account(1, Some(scaled(credit)), scaled(used))
}

#[derive(Clone, Copy)]
struct Call {
    node: usize,
    tariff: Tariff,
    /// Whether it waits for credit.
    waits: bool,
    since: Option<Instant>,
}

impl Call {
    fn charge(&self, now: Instant) -> i128 {
        let Some(since) = self.since else { return 0 };
        let billsec = u32::try_from(now.duration_since(since).as_secs()).unwrap();
        charge(&self.tariff.sell, billsec).scaled().into()
    }
}

/// Nodes with their ledgers, and the database.
struct World {
    rng: StdRng,
    now: Instant,
    credit: i128,
    used: i128,
    reserves: [i128; NODES],
    ledgers: Vec<Ledger>,
    live: HashMap<CallId, Call>,
    /// Ended calls that the database does not include yet, oldest first.
    unstored: Vec<(usize, CallId, i128)>,
    /// Nodes whose database does not answer.
    is_away: [bool; NODES],
    begun: u128,
    refused: u32,
    cut: u32,
    waited: u32,
}

impl World {
    fn new(seed: u64, credit: i128) -> World {
        let now = any_instant();
        let ledgers = (0..NODES).map(|_| {
            let mut ledger = Ledger::new(Duration::from_secs(10)).shared();
            ledger.accounts(now, &[shared_account(credit, 0)]);
            ledger
        });
        World {
            rng: StdRng::seed_from_u64(seed),
            now,
            credit,
            used: 0,
            reserves: [0; NODES],
            ledgers: ledgers.collect(),
            live: HashMap::new(),
            unstored: Vec::new(),
            is_away: [false; NODES],
            begun: 0,
            refused: 0,
            cut: 0,
            waited: 0,
        }
    }

    fn begin(&mut self, node: usize, tariff: Tariff) -> bool {
        self.begun += 1;
        let id = CallId(Uuid::from_u128(self.begun));
        let admitted = self.ledgers[node].admit(self.now, id, organisation(1), Meter::of(&tariff).unwrap());
        match admitted {
            Ok(()) => {
                let waits = self.ledgers[node].is_reserving(id);
                self.waited += u32::from(waits);
                self.live.insert(id, Call { node, tariff, waits, since: None });
            }
            Err(NoCredit) => self.refused += 1,
        }
        self.obey(node);
        admitted.is_ok()
    }

    fn end(&mut self, id: CallId) {
        let call = self.live.remove(&id).expect("only live calls are ended");
        let charge = call.charge(self.now);
        let drawn = (charge > 0).then(|| Amount::from_scaled(i64::try_from(charge).unwrap()));
        self.ledgers[call.node].ended(self.now, id, drawn);
        if charge > 0 {
            self.unstored.push((call.node, id, charge));
        }
    }

    fn obey(&mut self, node: usize) {
        while let Some(output) = self.ledgers[node].poll_output() {
            match output {
                Output::End(id) => {
                    self.cut += 1;
                    self.end(id);
                }
                Output::GoOn(id) => self.live.get_mut(&id).unwrap().waits = false,
                Output::Refuse(id) => {
                    assert!(self.live.remove(&id).unwrap().waits);
                    self.refused += 1;
                }
                Output::Warn(_) => {}
            }
        }
    }

    /// Runs the task of a node that reserves credit.
    fn reserve(&mut self, node: usize) {
        let Some(need) = self.ledgers[node].needs(self.now).into_iter().next() else { return };
        let CreditNeed { reserved, low, need, is_urgent, has_surplus, .. } = need;
        if !is_urgent && reserved >= low && !has_surplus {
            return;
        }
        let organisation = organisation(1);
        let reserved = if self.is_away[node] {
            CreditReserved { organisation, reserved: None, is_all: true }
        } else {
            let want = i128::from(need.max(reserved).scaled());
            let others: i128 =
                (0..NODES).filter(|other| *other != node).map(|other| self.reserves[other]).sum();
            let amount = want.min((self.credit - self.used - others).max(0));
            self.reserves[node] = amount;
            let scaled = |amount: i128| Amount::from_scaled(i64::try_from(amount).unwrap());
            CreditReserved {
                organisation,
                reserved: Some((scaled(amount), scaled(self.used))),
                is_all: amount < want,
            }
        };
        if self.rng.random_bool(0.2) {
            // A call is stored before the switch receives the reserve.
            self.store();
        }
        self.ledgers[node].reserved(self.now, reserved);
        self.obey(node);
    }

    /// Stores the oldest call, and reports that to its node, with the total that all nodes have used.
    fn store(&mut self) {
        if self.unstored.is_empty() {
            return;
        }
        let (node, id, charge) = self.unstored.remove(0);
        self.used += charge;
        self.reserves[node] = (self.reserves[node] - charge).max(0);
        let used = Amount::from_scaled(i64::try_from(self.used).unwrap());
        self.ledgers[node].stored(self.now, organisation(1), used, &[id]);
        self.obey(node);
    }

    fn step(&mut self, step: Duration) {
        self.now += step;
        for node in 0..NODES {
            if self.ledgers[node].next_timeout().is_some_and(|due| due <= self.now) {
                self.ledgers[node].timeout(self.now);
                self.obey(node);
            }
            self.reserve(node);
        }
        let live: i128 = self.live.values().map(|call| call.charge(self.now)).sum();
        let unstored: i128 = self.unstored.iter().map(|(.., charge)| charge).sum();
        let spent = self.used + unstored + live;
        assert!(spent <= self.credit, "{spent} of {} are spent", self.credit);
        let reserved: i128 = self.reserves.iter().sum();
        assert!(self.used + reserved <= self.credit, "more is reserved than there is");
    }

    fn act(&mut self) {
        let node = self.rng.random_range(0..NODES);
        let mut ids: Vec<CallId> = self.live.keys().copied().collect();
        ids.sort_unstable();
        match self.rng.random_range(0..8) {
            0 | 1 => {
                let (first, next) = (self.rng.random_range(1..=60), self.rng.random_range(1..=60));
                let tariff = tariff(self.rng.random_range(0..6_000), first, next);
                self.begin(node, tariff);
            }
            2 | 3 => {
                let rings = |id: &&CallId| {
                    let call = &self.live[*id];
                    call.since.is_none() && !call.waits
                };
                if let Some(id) = ids.iter().find(rings).copied() {
                    let call = self.live.get_mut(&id).unwrap();
                    call.since = Some(self.now);
                    let node = call.node;
                    self.ledgers[node].answered(self.now, id);
                    self.obey(node);
                }
            }
            4 => {
                if let Some(id) = ids.first().copied() {
                    self.end(id);
                }
            }
            5 => self.store(),
            6 => {
                let account = shared_account(self.credit, self.used);
                self.ledgers[node].accounts(self.now, &[account]);
                self.obey(node);
            }
            _ if self.rng.random_bool(0.05) => self.is_away[node] = !self.is_away[node],
            _ => {}
        }
    }
}

#[test]
fn nodes_never_spend_more_than_there_is_and_give_back_what_they_do_not_need() {
    hold_the_laws(150);
}

#[test]
#[ignore = "long: a thousand seeds, a minute or two"]
fn long_nodes_never_spend_more_than_there_is_with_a_thousand_seeds() {
    hold_the_laws(1_000);
}

/// Runs random worlds with `seeds` seeds, in which nodes lose their database.
fn hold_the_laws(seeds: u32) {
    let (mut refused, mut cut, mut waited, mut left) = (0, 0, 0, 0);
    for seed in (0..seeds).map(u64::from) {
        let credit = StdRng::seed_from_u64(seed).random_range(0..120_000_i128);
        let mut world = World::new(seed, credit);
        for _ in 0..3_000 {
            world.act();
            world.step(Duration::from_millis(250));
        }
        // All calls end and are stored: no credit stays reserved.
        world.is_away = [false; NODES];
        let mut ids: Vec<CallId> = world.live.keys().copied().collect();
        ids.sort_unstable();
        ids.into_iter().for_each(|id| world.end(id));
        while !world.unstored.is_empty() {
            world.store();
        }
        for _ in 0..3 {
            world.step(Duration::from_secs(1));
        }
        assert_eq!(world.reserves, [0; NODES], "seed {seed}");
        left += u32::from(world.used < credit / 2);
        (refused, cut, waited) = (refused + world.refused, cut + world.cut, waited + world.waited);
    }
    assert!(refused > 100 && cut > 100 && waited > 100, "{refused} refused, {cut} cut, {waited} waited");
    assert!(left < seeds / 2, "in {left} of {seeds} runs more than half of the credit was not used");
}

/// One node holds all credit; when its calls are over, another one can use the rest.
#[test]
fn a_call_waits_for_its_reserve_and_is_refused_when_the_others_hold_all() {
    let mut world = World::new(1, 100);
    let dear = tariff(60, 60, 60);
    assert!(world.begin(0, dear));
    assert_eq!(world.live.values().filter(|call| call.waits).count(), 1, "nothing is reserved yet");
    world.step(Duration::from_millis(50));
    assert!(world.live.values().all(|call| !call.waits));
    assert_eq!(world.reserves[0], 100, "what the call may need soon");
    // The first increment fits into the credit in the view of this node, but not into the actual rest.
    assert!(world.begin(1, dear));
    world.step(Duration::from_millis(50));
    assert_eq!((world.live.len(), world.refused), (1, 1));
    let first = *world.live.keys().next().unwrap();
    world.end(first);
    world.step(Duration::from_millis(50));
    assert_eq!(world.reserves, [0; NODES]);
    assert!(world.begin(1, dear));
    world.step(Duration::from_millis(50));
    assert!(world.live.values().all(|call| !call.waits));
}

/// The node gets no result of its request at all: its task or the database is stuck.
#[test]
fn a_call_waits_for_its_reserve_no_longer_than_two_seconds() {
    let mut world = World::new(1, 100_000);
    assert!(world.begin(0, tariff(60, 60, 60)));
    world.now += Duration::from_millis(500);
    assert!(world.begin(0, tariff(60, 60, 60)));
    let began = world.now;
    for (after_ms, refused) in [(1_499, 0), (1_500, 1), (1_999, 1), (2_000, 2)] {
        world.now = began + Duration::from_millis(after_ms);
        while world.ledgers[0].next_timeout().is_some_and(|due| due <= world.now) {
            world.ledgers[0].timeout(world.now);
        }
        world.obey(0);
        assert_eq!((world.refused, world.live.len()), (refused, 2 - refused as usize), "{after_ms} ms");
    }
}

/// Without the database, live calls use up the reserve and are then ended; new calls are refused.
#[test]
fn without_the_database_calls_last_as_long_as_their_reserve() {
    let mut world = World::new(1, 100_000);
    assert!(world.begin(0, tariff(60, 1, 1)));
    world.step(Duration::from_millis(50));
    let id = *world.live.keys().next().unwrap();
    let began = world.now;
    world.live.get_mut(&id).unwrap().since = Some(began);
    world.ledgers[0].answered(began, id);
    world.is_away = [true; NODES];
    while world.live.contains_key(&id) {
        world.step(Duration::from_millis(250));
        assert!(world.now < began + Duration::from_secs(600), "it lasts for ever");
    }
    let lasted = world.now.duration_since(began);
    assert!(lasted >= Duration::from_secs(120), "{lasted:?}");
    assert!(world.begin(0, tariff(60_000, 60, 60)));
    world.step(Duration::from_millis(50));
    assert!(world.live.is_empty(), "refused");
}
