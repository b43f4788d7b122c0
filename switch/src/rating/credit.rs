//! How long an organisation's credit lasts: a ledger of the credit granted, the amounts used by settled
//! calls, and the amounts held by live calls.
//!
//! A live call *holds* the amount that it would be charged if it ended in its current increment. A ringing
//! call holds its first increment. For every organisation with a limit, the ledger keeps
//!
//! ```text
//! used + charges of ended calls not yet stored + Σ holds ≤ granted
//! ```
//!
//! A call whose first increment does not fit is refused. A call whose next increment does not fit is ended
//! when its paid increment is over; one warning precedes that. Because a record counts whole seconds, the end
//! may be served up to one second late without charging a further second. **So the balance never goes below
//! zero**, with three exceptions. The ledger may be served more than a second late; the balance then falls
//! below zero by at most the increments that began in between. The limit may be lowered below the amount in use.
//! In a cluster a node uses the credit that it has reserved (`reserve.rs`); a call that does not fit into it waits
//! until more is reserved, or is refused when there is no more.
//!
//! *Cost*: while the credit covers another minute of all live calls, a call costs a few additions. The
//! instant at which the credit ends is computed only in the last minute.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use sidetone_model::ids::{CallId, OrganisationId};
use sidetone_model::money::Amount;
use sidetone_model::rating::{Account, Price, Tariff};

use super::rate::{charge_seconds, charged_seconds};
use super::reserve::{CreditNeed, CreditReserved, Reserve, amount};
use super::settle::convert;

/// The credit ledger: one account per organisation, and its live calls.
#[derive(Debug)]
pub struct Ledger {
    warning: Duration,
    /// Whether other nodes use the same credit.
    is_shared: bool,
    books: HashMap<OrganisationId, Book>,
    owners: HashMap<CallId, OrganisationId>,
    due: BTreeSet<(Instant, OrganisationId)>,
    outputs: VecDeque<Output>,
}

/// An action that the ledger requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The credit is used up: end the call now.
    End(CallId),
    /// Credit is reserved for a call that waited for it.
    GoOn(CallId),
    /// No credit is left for a call that waited for it.
    Refuse(CallId),
    /// The credit will be used up after the warning time: play the warning to the caller.
    Warn(CallId),
}

/// The credit does not last for the call's first increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the credit does not last for the first increment")]
pub struct NoCredit;

/// The charge of a call to the credit, as a function of its seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meter {
    price: Price,
    fx_rate: Amount,
}

impl Meter {
    /// Returns the meter of a call with these prices; `None` when the call does not use the credit.
    pub fn of(tariff: &Tariff) -> Option<Meter> {
        tariff.credit.map(|credit| Meter { price: tariff.sell, fx_rate: credit.fx_rate })
    }

    fn amount(&self, seconds: u64) -> i128 {
        convert(charge_seconds(&self.price, seconds), self.fx_rate).scaled().into()
    }

    fn grows(&self) -> bool {
        self.price.per_minute > Amount::ZERO
    }

    fn first_s(&self) -> u64 {
        self.price.increments.first_s().into()
    }

    fn next_s(&self) -> u64 {
        self.price.increments.next_s().into()
    }

    /// Returns the seconds paid after `elapsed`, including the current increment.
    fn held_s(&self, elapsed: Duration) -> u64 {
        let whole = elapsed.as_secs();
        match whole.checked_sub(self.first_s()) {
            None => self.first_s(),
            Some(beyond) => self.first_s() + (beyond / self.next_s() + 1) * self.next_s(),
        }
    }

    /// Returns when the first increment at or after `elapsed` begins, in seconds after the answer.
    fn next_step_s(&self, elapsed: Duration) -> u64 {
        let up = elapsed.as_secs() + u64::from(elapsed.subsec_nanos() > 0);
        self.first_s() + up.saturating_sub(self.first_s()).div_ceil(self.next_s()) * self.next_s()
    }
}

/// The account of one organisation and its live calls.
#[derive(Debug, Default)]
struct Book {
    /// The highest total that may be used; `None` means no limit.
    limit: Option<i128>,
    /// The part that this node may use; `None` for a single node.
    reserve: Option<Reserve>,
    /// The amount used according to the database; only grows.
    used: i128,
    /// Charges of ended calls that the database does not include yet.
    waiting: HashMap<CallId, i128>,
    waiting_sum: i128,
    /// Live calls, ordered by id so that the outputs do not depend on hash order.
    calls: BTreeMap<CallId, Metered>,
    /// Until this instant, the present calls cannot exceed the limit.
    horizon: Option<Instant>,
    /// The credit left at the horizon in the worst case.
    slack: i128,
    /// When the account is reviewed next.
    due: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Metered {
    meter: Meter,
    state: State,
    warned: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The end of the call was requested; `held` is its final charge.
    Ending { held: i128 },
    /// It waits for credit to be reserved, until then.
    Reserving { until: Instant },
    /// Not answered yet.
    Ringing,
    /// Answered.
    Up { since: Instant },
}

impl Metered {
    /// Until when the call waits for credit to be reserved, if it does.
    fn reserves_until(&self) -> Option<Instant> {
        match self.state {
            State::Reserving { until } => Some(until),
            State::Ending { .. } | State::Ringing | State::Up { .. } => None,
        }
    }

    fn held(&self, at: Instant) -> i128 {
        match self.state {
            State::Ending { held } => held,
            State::Reserving { .. } => 0,
            State::Ringing => self.meter.amount(self.meter.first_s()),
            State::Up { since } => self.meter.amount(self.meter.held_s(at.saturating_duration_since(since))),
        }
    }

    /// Returns the most that the call can hold at `at`: a ringing call may be answered immediately.
    fn held_at_most(&self, now: Instant, at: Instant) -> i128 {
        match self.state {
            State::Reserving { .. } | State::Ringing => {
                Metered { state: State::Up { since: now }, ..*self }.held(at)
            }
            State::Ending { .. } | State::Up { .. } => self.held(at),
        }
    }

    /// Returns the charge of the call if it ended now.
    fn charge(&self, now: Instant) -> i128 {
        let State::Up { since } = self.state else { return 0 };
        let billsec = now.saturating_duration_since(since).as_secs();
        let billsec = u32::try_from(billsec).unwrap_or(u32::MAX);
        self.meter.amount(charged_seconds(self.meter.price.increments, billsec))
    }

    /// Returns when the current increment began.
    fn stepped_at(&self, now: Instant) -> Option<Instant> {
        let State::Up { since } = self.state else { return None };
        let held = self.meter.held_s(now.saturating_duration_since(since));
        let before = if held > self.meter.first_s() { held - self.meter.next_s() } else { 0 };
        Some(since + Duration::from_secs(before))
    }

    /// Returns when the first increment at or after `at` begins; `None` for a call that is not up.
    fn next_step(&self, at: Instant) -> Option<Instant> {
        let State::Up { since } = self.state else { return None };
        let step = self.meter.next_step_s(at.saturating_duration_since(since));
        since.checked_add(Duration::from_secs(step))
    }
}

impl Ledger {
    /// Creates a ledger without accounts. It warns `warning` before it ends a call.
    pub fn new(warning: Duration) -> Self {
        Ledger {
            warning,
            is_shared: false,
            books: HashMap::new(),
            owners: HashMap::new(),
            due: BTreeSet::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Sets that other nodes use the same credit; this node has not reserved any of it yet.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.is_shared = true;
        self
    }

    /// Replaces the accounts by the stored ones; accounts missing from the list are removed.
    pub fn accounts(&mut self, now: Instant, accounts: &[Account]) {
        let known: HashSet<OrganisationId> = accounts.iter().map(|account| account.organisation_id).collect();
        let gone: Vec<_> = self.books.keys().filter(|id| !known.contains(id)).copied().collect();
        for id in gone {
            self.schedule(id, None);
            self.books.remove(&id);
        }
        for account in accounts {
            let book = self.books.entry(account.organisation_id).or_default();
            let limit = account
                .credit
                .map(|credit| i128::from(credit.scaled()) + i128::from(account.used_before.scaled()));
            let used = book.used.max(account.used.scaled().into());
            if book.limit == limit && book.used == used {
                continue;
            }
            (book.limit, book.used) = (limit, used);
            if self.is_shared {
                // There may be more credit than before.
                book.reserve.get_or_insert_default().is_all = false;
            }
            self.review(now, account.organisation_id);
        }
    }

    /// Admits a call that begins to ring.
    ///
    /// # Errors
    /// [`NoCredit`] when its organisation's credit does not cover the first increment. A call that costs
    /// nothing needs no credit. In a cluster a call may have to wait: see [`Ledger::is_reserving`].
    pub fn admit(
        &mut self,
        now: Instant,
        call: CallId,
        organisation: OrganisationId,
        meter: Meter,
    ) -> Result<(), NoCredit> {
        let book = self.books.get_mut(&organisation).ok_or(NoCredit)?;
        let mut metered = Metered { meter, state: State::Ringing, warned: false };
        if let (Some(limit), Some(cap)) = (book.limit, book.cap()) {
            let at_most = book.horizon.map(|horizon| metered.held_at_most(now, horizon));
            let fits = book.horizon.is_some_and(|horizon| now < horizon)
                && at_most.is_some_and(|at_most| at_most <= book.slack);
            let first = metered.held(now);
            if fits {
                book.slack -= at_most.unwrap_or_default();
            } else if first > 0 && book.exposure(now) + first > limit {
                return Err(NoCredit);
            } else if first > 0 && book.exposure(now) + first > cap {
                (metered.state, book.horizon) = (State::Reserving { until: now + RESERVES_FOR }, None);
            } else {
                book.horizon = None;
            }
        }
        book.calls.insert(call, metered);
        self.owners.insert(call, organisation);
        self.review_if_unsure(now, organisation);
        Ok(())
    }

    /// Whether [`Ledger::admit`] would accept a call now.
    pub fn affords(&self, now: Instant, organisation: OrganisationId, meter: &Meter) -> bool {
        let Some(book) = self.books.get(&organisation) else { return false };
        let first = Metered { meter: *meter, state: State::Ringing, warned: false }.held(now);
        book.limit.is_none_or(|limit| first <= 0 || book.exposure(now) + first <= limit)
    }

    /// Whether a call waits for a reservation; [`Output::GoOn`] or [`Output::Refuse`] follows within two seconds.
    pub fn is_reserving(&self, call: CallId) -> bool {
        let book = self.owners.get(&call).and_then(|organisation| self.books.get(organisation));
        let metered = book.and_then(|book| book.calls.get(&call));
        metered.is_some_and(|metered| metered.reserves_until().is_some())
    }

    /// Returns the needs of the calls of every organisation whose credit other nodes use, too. A reserve far above the
    /// need is reduced from now on.
    pub fn needs(&mut self, now: Instant) -> Vec<CreditNeed> {
        let soon = now + self.warning + LOOK_AHEAD;
        let needs = self.books.iter_mut().filter_map(|(organisation, book)| {
            book.limit?;
            let (low, need) = (book.needed(now, soon), book.needed(now, soon + RESERVED_AHEAD));
            let is_urgent = book.reserving().next().is_some();
            let reserve = book.reserve.as_mut()?;
            if reserve.give_up(need) {
                book.horizon = None;
            }
            let Reserve { amount: reserved, is_all, has_surplus } = *reserve;
            (need > 0 || reserved > 0 || has_surplus).then(|| CreditNeed {
                organisation: *organisation,
                reserved: amount(reserved),
                low: amount(low),
                need: amount(need),
                is_urgent,
                is_all,
                has_surplus,
            })
        });
        needs.collect()
    }

    /// Applies a new reserve: calls that wait for credit continue, or are refused when there is no more.
    pub fn reserved(&mut self, now: Instant, reserved: CreditReserved) {
        let CreditReserved { organisation, reserved, is_all } = reserved;
        let Some(book) = self.books.get_mut(&organisation) else { return };
        let Some(reserve) = &mut book.reserve else { return };
        if let Some((amount, used)) = reserved {
            let used = i128::from(used.scaled());
            if used < book.used {
                // Calls were stored since, so the rest of this reserve is unknown. It is requested again.
                return;
            }
            (book.used, reserve.amount) = (used, amount.scaled().into());
            reserve.has_surplus = false;
        }
        reserve.is_all = is_all;
        let reserving: Vec<CallId> = book.reserving().map(|(id, _)| id).collect();
        for id in reserving {
            let Some(metered) = book.calls.get(&id).copied() else { continue };
            let ringing = Metered { state: State::Ringing, ..metered };
            if book.cap().is_none_or(|cap| book.exposure(now) + ringing.held(now) <= cap) {
                book.calls.insert(id, ringing);
                self.outputs.push_back(Output::GoOn(id));
            } else if is_all {
                book.refuse(id, &mut self.owners, &mut self.outputs);
            }
        }
        self.review(now, organisation);
    }

    /// Records that the call was answered.
    pub fn answered(&mut self, now: Instant, call: CallId) {
        let Some(organisation) = self.owners.get(&call).copied() else { return };
        if let Some(metered) = self.books.get_mut(&organisation).and_then(|book| book.calls.get_mut(&call))
            && matches!(metered.state, State::Ringing)
        {
            metered.state = State::Up { since: now };
        }
        self.review_if_unsure(now, organisation);
    }

    /// Records that the call is over and stops its charge growing; [`Ledger::ended`] follows.
    pub fn over(&mut self, now: Instant, call: CallId) {
        let Some(organisation) = self.owners.get(&call).copied() else { return };
        if let Some(metered) = self.books.get_mut(&organisation).and_then(|book| book.calls.get_mut(&call))
            && !matches!(metered.state, State::Ending { .. })
        {
            metered.state = State::Ending { held: metered.charge(now) };
            self.review_if_unsure(now, organisation);
        }
    }

    /// Records that the CDR is written with the charge `draw`; [`Ledger::stored`] confirms it later.
    pub fn ended(&mut self, now: Instant, call: CallId, draw: Option<Amount>) {
        let Some(organisation) = self.owners.remove(&call) else { return };
        if let Some(book) = self.books.get_mut(&organisation) {
            book.calls.remove(&call);
            book.wait(call, draw.unwrap_or_default().scaled().into());
            self.review_if_unsure(now, organisation);
        }
    }

    /// Adds the charge `draw` of a call from an earlier run that may not be in the database yet.
    pub fn carried_over(&mut self, organisation: OrganisationId, call: CallId, draw: Amount) {
        self.books.entry(organisation).or_default().wait(call, draw.scaled().into());
    }

    /// Records that the database includes these calls of the organisation, and that its total is now `used`.
    pub fn stored(&mut self, now: Instant, organisation: OrganisationId, used: Amount, calls: &[CallId]) {
        let Some(book) = self.books.get_mut(&organisation) else { return };
        let before = book.used + book.waiting_sum;
        for call in calls {
            let charge = book.waiting.remove(call).unwrap_or_default();
            book.waiting_sum -= charge;
            book.reserve.iter_mut().for_each(|reserve| reserve.stored(charge));
        }
        book.used = book.used.max(used.scaled().into());
        // The total grew by more than the charges of our calls: another node spent credit.
        if book.used + book.waiting_sum > before {
            self.review(now, organisation);
        }
    }

    /// Returns when [`Ledger::timeout`] must be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Must be called at [`Ledger::next_timeout`].
    pub fn timeout(&mut self, now: Instant) {
        while let Some((due, organisation)) = self.due.first().copied()
            && due <= now
        {
            self.due.remove(&(due, organisation));
            self.review(now, organisation);
        }
    }

    /// Returns the next action; drain to `None` after every input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Reviews an account unless its horizon shows that the credit lasts.
    fn review_if_unsure(&mut self, now: Instant, organisation: OrganisationId) {
        let Some(book) = self.books.get(&organisation) else { return };
        if book.limit.is_some() && book.horizon.is_none_or(|horizon| horizon <= now) {
            self.review(now, organisation);
        } else if book.due.is_none() && !book.calls.is_empty() {
            // The first call since the last review.
            let due = book.horizon.and_then(|horizon| horizon.checked_sub(self.warning));
            self.schedule(organisation, due);
        }
    }

    /// Ends calls that are no longer covered, warns calls that soon will not be, and schedules the next
    /// review.
    fn review(&mut self, now: Instant, organisation: OrganisationId) {
        let Some(book) = self.books.get_mut(&organisation) else { return };
        let late: Vec<CallId> =
            book.reserving().filter(|(_, until)| *until <= now).map(|(id, _)| id).collect();
        for id in late {
            book.refuse(id, &mut self.owners, &mut self.outputs);
        }
        let due = book.review(now, self.warning, &mut self.outputs);
        let reserving = book.reserving().map(|(_, until)| until).min();
        self.schedule(organisation, due.into_iter().chain(reserving).min());
    }

    fn schedule(&mut self, organisation: OrganisationId, due: Option<Instant>) {
        let Some(book) = self.books.get_mut(&organisation) else { return };
        if let Some(before) = std::mem::replace(&mut book.due, due) {
            self.due.remove(&(before, organisation));
        }
        if let Some(due) = due {
            self.due.insert((due, organisation));
        }
    }
}

impl Book {
    fn wait(&mut self, call: CallId, draw: i128) {
        if draw > 0 && self.waiting.insert(call, draw).is_none() {
            self.waiting_sum += draw;
        }
    }

    /// Returns the highest total that the calls of this node may reach; `None` means no limit.
    fn cap(&self) -> Option<i128> {
        let limit = self.limit?;
        Some(self.reserve.map_or(limit, |reserve| limit.min(self.used + reserve.amount)))
    }

    /// Returns the most that this node's calls hold at `at`, plus the charges that are not stored yet.
    fn needed(&self, now: Instant, at: Instant) -> i128 {
        self.waiting_sum + self.calls.values().map(|call| call.held_at_most(now, at)).sum::<i128>()
    }

    /// Returns the calls that wait for credit to be reserved, and until when.
    fn reserving(&self) -> impl Iterator<Item = (CallId, Instant)> {
        self.calls.iter().filter_map(|(id, call)| Some((*id, call.reserves_until()?)))
    }

    /// Refuses a call that waits for credit.
    fn refuse(
        &mut self,
        id: CallId,
        owners: &mut HashMap<CallId, OrganisationId>,
        outputs: &mut VecDeque<Output>,
    ) {
        self.calls.remove(&id);
        owners.remove(&id);
        outputs.push_back(Output::Refuse(id));
    }

    /// Returns the amount used or held at `at` if no further input arrives.
    fn exposure(&self, at: Instant) -> i128 {
        self.used + self.waiting_sum + self.calls.values().map(|call| call.held(at)).sum::<i128>()
    }

    fn review(&mut self, now: Instant, warning: Duration, outputs: &mut VecDeque<Output>) -> Option<Instant> {
        self.horizon = None;
        let limit = self.cap()?;
        self.cut(now, limit, outputs);
        let far = now + warning + LOOK_AHEAD;
        let settled = self.used + self.waiting_sum;
        let at_far = settled + self.calls.values().map(|call| call.held_at_most(now, far)).sum::<i128>();
        if at_far <= limit {
            self.horizon = Some(far);
            self.slack = limit - at_far;
            self.calls.values_mut().for_each(|call| call.warned = false);
            return far.checked_sub(warning).filter(|_| !self.calls.is_empty());
        }
        if self.exposure(now) > limit || self.exposure(far) <= limit {
            // No call is left to end, or no charge grows before a call is answered.
            return far.checked_sub(warning).filter(|_| !self.calls.is_empty());
        }
        let used_up = self.used_up(now, far, limit);
        let mut due = used_up;
        if self.reserve.is_some_and(|reserve| !reserve.is_all && self.limit.is_some_and(|all| limit < all)) {
            // More is about to be reserved.
            return Some(due);
        }
        for (id, call) in &mut self.calls {
            let Some(end) = call.next_step(used_up).filter(|_| call.meter.grows()) else { continue };
            let warn_at = end.checked_sub(warning).unwrap_or(now);
            if call.warned {
                continue;
            }
            if warn_at <= now {
                call.warned = true;
                outputs.push_back(Output::Warn(*id));
            } else {
                due = due.min(warn_at);
            }
        }
        Some(due)
    }

    /// Finds the first instant at which the holds exceed the limit. They fit at `now` and do not fit at
    /// `far`.
    fn used_up(&self, now: Instant, far: Instant, limit: i128) -> Instant {
        let span = far.saturating_duration_since(now);
        let (mut enough, mut lacking) = (0, u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
        while lacking - enough > 1 {
            let middle = enough + (lacking - enough) / 2;
            if self.exposure(now + Duration::from_nanos(middle)) > limit {
                lacking = middle;
            } else {
                enough = middle;
            }
        }
        now + Duration::from_nanos(lacking)
    }

    /// Ends calls until the holds of the rest are within the limit. Calls whose increment began last end
    /// first, because their increment is the one that is not covered.
    fn cut(&mut self, now: Instant, limit: i128, outputs: &mut VecDeque<Output>) {
        let mut exposure = self.exposure(now);
        if exposure <= limit {
            return;
        }
        let mut order: Vec<(Option<Instant>, CallId)> =
            self.calls.iter().map(|(id, call)| (call.stepped_at(now), *id)).collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        for (_, id) in order {
            if exposure <= limit {
                return;
            }
            let Some(call) = self.calls.get_mut(&id) else { continue };
            let (held, charge) = (call.held(now), call.charge(now));
            // Ending a ringing call charges nothing. Ending a call that holds nothing frees nothing.
            if matches!(call.state, State::Ending { .. }) || held == 0 {
                continue;
            }
            exposure -= held - charge;
            call.state = State::Ending { held: charge };
            outputs.push_back(Output::End(id));
        }
    }
}

/// How far ahead the credit must last for an account to be skipped on every input of its calls.
const LOOK_AHEAD: Duration = Duration::from_secs(60);
/// How much longer than [`LOOK_AHEAD`] the reserve of a node must last.
const RESERVED_AHEAD: Duration = Duration::from_secs(60);
/// How long a call waits for credit to be reserved: longer than the database may take.
const RESERVES_FOR: Duration = Duration::from_secs(2);
