//! How long the credit of organisations lasts: a ledger of what was granted, what settled calls have used, and
//! what the live ones hold.
//!
//! A live call *holds* what it would be charged if it ended in the increment it is in; one that still rings holds
//! its first increment. The ledger keeps, for every organisation with a limit,
//!
//! ```text
//! used + what ended calls wait to be drawn + Σ holds ≤ granted
//! ```
//!
//! A call that could not hold its first increment is refused. A call that cannot hold its next one is ended at
//! the instant the paid one is over; ahead of that comes one warning. Since a record counts whole seconds, the
//! instant may be served up to a second late without a further second being charged. **So the balance never goes
//! below zero**, unless the ledger is served more than a second late (then by at most the increments that began
//! in between), the limit is lowered below what is in use, or another node spends the same credit.
//!
//! *Cost*: while there is credit for another minute of everything that is up, a call costs a few additions; the
//! instant itself is searched for only in the last minute.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use sidetone_model::ids::{CallId, OrganisationId};
use sidetone_model::money::Amount;
use sidetone_model::rating::{Account, Price, Tariff};

use super::rate::{charge_seconds, charged_seconds};
use super::settle::convert;

/// The ledger.
#[derive(Debug)]
pub struct Ledger {
    warning: Duration,
    books: HashMap<OrganisationId, Book>,
    owners: HashMap<CallId, OrganisationId>,
    due: BTreeSet<(Instant, OrganisationId)>,
    outputs: VecDeque<Output>,
}

/// What the ledger says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The credit is used up: end the call now.
    End(CallId),
    /// The credit will be used up in the warning time: let the caller hear it.
    Warn(CallId),
}

/// The credit does not last for the call's first increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the credit does not last for the first increment")]
pub struct NoCredit;

/// What a call takes from the credit, by its seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meter {
    price: Price,
    fx_rate: Amount,
}

impl Meter {
    /// The meter of a call with these prices; `None` when they do not reach the credit.
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

    /// The seconds that are paid once `elapsed` have passed: the increment that is under way included.
    fn held_s(&self, elapsed: Duration) -> u64 {
        let whole = elapsed.as_secs();
        match whole.checked_sub(self.first_s()) {
            None => self.first_s(),
            Some(beyond) => self.first_s() + (beyond / self.next_s() + 1) * self.next_s(),
        }
    }

    /// When, after the answer, the first increment begins that is not before `elapsed`.
    fn next_step_s(&self, elapsed: Duration) -> u64 {
        let up = elapsed.as_secs() + u64::from(elapsed.subsec_nanos() > 0);
        self.first_s() + up.saturating_sub(self.first_s()).div_ceil(self.next_s()) * self.next_s()
    }
}

/// The account of one organisation and its live calls.
#[derive(Debug, Default)]
struct Book {
    /// What may be used in all; `None` is no limit.
    limit: Option<i128>,
    /// What the database knows to be used; only grows.
    used: i128,
    /// Ended calls that the database does not know yet.
    waiting: HashMap<CallId, i128>,
    waiting_sum: i128,
    /// Live calls. In the order of their ids, so that what happens does not depend on a hash.
    calls: BTreeMap<CallId, Metered>,
    /// Up to here everything stays within the limit, whatever the calls known so far do.
    horizon: Option<Instant>,
    /// What is left at the horizon even so.
    slack: i128,
    /// When the book is looked at again.
    due: Option<Instant>,
}

/// A live call.
#[derive(Clone, Copy, Debug)]
struct Metered {
    meter: Meter,
    state: State,
    warned: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// It was told to end and holds what it will be charged.
    Ending { held: i128 },
    /// It has no answer yet.
    Ringing,
    /// It was answered.
    Up { since: Instant },
}

impl Metered {
    fn held(&self, at: Instant) -> i128 {
        match self.state {
            State::Ending { held } => held,
            State::Ringing => self.meter.amount(self.meter.first_s()),
            State::Up { since } => self.meter.amount(self.meter.held_s(at.saturating_duration_since(since))),
        }
    }

    /// What it holds at `at` at most: a ringing call may be answered at once.
    fn held_at_most(&self, now: Instant, at: Instant) -> i128 {
        match self.state {
            State::Ringing => Metered { state: State::Up { since: now }, ..*self }.held(at),
            State::Ending { .. } | State::Up { .. } => self.held(at),
        }
    }

    /// What it would be charged if it ended now.
    fn charge(&self, now: Instant) -> i128 {
        let State::Up { since } = self.state else { return 0 };
        let billsec = now.saturating_duration_since(since).as_secs();
        let billsec = u32::try_from(billsec).unwrap_or(u32::MAX);
        self.meter.amount(charged_seconds(self.meter.price.increments, billsec))
    }

    /// When its present increment began.
    fn stepped_at(&self, now: Instant) -> Option<Instant> {
        let State::Up { since } = self.state else { return None };
        let held = self.meter.held_s(now.saturating_duration_since(since));
        let before = if held > self.meter.first_s() { held - self.meter.next_s() } else { 0 };
        Some(since + Duration::from_secs(before))
    }

    /// When its first increment begins that is not before `at`; `None` for one that does not grow.
    fn next_step(&self, at: Instant) -> Option<Instant> {
        let State::Up { since } = self.state else { return None };
        let step = self.meter.next_step_s(at.saturating_duration_since(since));
        since.checked_add(Duration::from_secs(step))
    }
}

impl Ledger {
    /// A ledger without accounts, which warns that long before a call has to end.
    pub fn new(warning: Duration) -> Self {
        Ledger {
            warning,
            books: HashMap::new(),
            owners: HashMap::new(),
            due: BTreeSet::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Takes the stored accounts; those that are missing are gone.
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
            self.review(now, account.organisation_id);
        }
    }

    /// Takes a call in that begins to ring.
    ///
    /// # Errors
    /// [`NoCredit`] when its organisation's credit does not last for its first increment. A call that costs
    /// nothing needs none.
    pub fn admit(
        &mut self,
        now: Instant,
        call: CallId,
        organisation: OrganisationId,
        meter: Meter,
    ) -> Result<(), NoCredit> {
        let book = self.books.get_mut(&organisation).ok_or(NoCredit)?;
        let metered = Metered { meter, state: State::Ringing, warned: false };
        if let Some(limit) = book.limit {
            let at_most = book.horizon.map(|horizon| metered.held_at_most(now, horizon));
            let fits = book.horizon.is_some_and(|horizon| now < horizon)
                && at_most.is_some_and(|at_most| at_most <= book.slack);
            let first = metered.held(now);
            if fits {
                book.slack -= at_most.unwrap_or_default();
            } else if first > 0 && book.exposure(now) + first > limit {
                return Err(NoCredit);
            } else {
                book.horizon = None;
            }
        }
        book.calls.insert(call, metered);
        self.owners.insert(call, organisation);
        self.review_if_unsure(now, organisation);
        Ok(())
    }

    /// Whether a call would be taken in now.
    pub fn affords(&self, now: Instant, organisation: OrganisationId, meter: &Meter) -> bool {
        let Some(book) = self.books.get(&organisation) else { return false };
        let first = Metered { meter: *meter, state: State::Ringing, warned: false }.held(now);
        book.limit.is_none_or(|limit| first <= 0 || book.exposure(now) + first <= limit)
    }

    /// The call was answered.
    pub fn answered(&mut self, now: Instant, call: CallId) {
        let Some(organisation) = self.owners.get(&call).copied() else { return };
        if let Some(metered) = self.books.get_mut(&organisation).and_then(|book| book.calls.get_mut(&call))
            && matches!(metered.state, State::Ringing)
        {
            metered.state = State::Up { since: now };
        }
        self.review_if_unsure(now, organisation);
    }

    /// The call is over, and costs no more than it does now; [`Ledger::ended`] follows.
    pub fn over(&mut self, now: Instant, call: CallId) {
        let Some(organisation) = self.owners.get(&call).copied() else { return };
        if let Some(metered) = self.books.get_mut(&organisation).and_then(|book| book.calls.get_mut(&call))
            && !matches!(metered.state, State::Ending { .. })
        {
            metered.state = State::Ending { held: metered.charge(now) };
            self.review_if_unsure(now, organisation);
        }
    }

    /// The record of the call is written and it was charged `draw`, which [`Ledger::stored`] will name.
    pub fn ended(&mut self, now: Instant, call: CallId, draw: Option<Amount>) {
        let Some(organisation) = self.owners.remove(&call) else { return };
        if let Some(book) = self.books.get_mut(&organisation) {
            book.calls.remove(&call);
            book.wait(call, draw.unwrap_or_default().scaled().into());
            self.review_if_unsure(now, organisation);
        }
    }

    /// A call of an earlier run that the database may not know yet was charged `draw`.
    pub fn carried_over(&mut self, organisation: OrganisationId, call: CallId, draw: Amount) {
        self.books.entry(organisation).or_default().wait(call, draw.scaled().into());
    }

    /// The database knows these calls of the organisation, and that `used` is used with them.
    pub fn stored(&mut self, now: Instant, organisation: OrganisationId, used: Amount, calls: &[CallId]) {
        let Some(book) = self.books.get_mut(&organisation) else { return };
        let before = book.used + book.waiting_sum;
        for call in calls {
            book.waiting_sum -= book.waiting.remove(call).unwrap_or_default();
        }
        book.used = book.used.max(used.scaled().into());
        // More than ours: another node has spent some.
        if book.used + book.waiting_sum > before {
            self.review(now, organisation);
        }
    }

    /// When to feed [`Ledger::timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// The time of [`Ledger::next_timeout`] has come.
    pub fn timeout(&mut self, now: Instant) {
        while let Some((due, organisation)) = self.due.first().copied()
            && due <= now
        {
            self.due.remove(&(due, organisation));
            self.review(now, organisation);
        }
    }

    /// What to do now; drain to `None` after every input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Looks at a book again unless it is known to last.
    fn review_if_unsure(&mut self, now: Instant, organisation: OrganisationId) {
        let Some(book) = self.books.get(&organisation) else { return };
        if book.limit.is_some() && book.horizon.is_none_or(|horizon| horizon <= now) {
            self.review(now, organisation);
        } else if book.due.is_none() && !book.calls.is_empty() {
            // The first call since the book was last looked at.
            let due = book.horizon.and_then(|horizon| horizon.checked_sub(self.warning));
            self.schedule(organisation, due);
        }
    }

    /// Ends what is no longer paid for, warns what soon will not be, and finds when to look again.
    fn review(&mut self, now: Instant, organisation: OrganisationId) {
        let Some(book) = self.books.get_mut(&organisation) else { return };
        let due = book.review(now, self.warning, &mut self.outputs);
        self.schedule(organisation, due);
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

    /// What is used or held at `at`, should nothing else happen.
    fn exposure(&self, at: Instant) -> i128 {
        self.used + self.waiting_sum + self.calls.values().map(|call| call.held(at)).sum::<i128>()
    }

    fn review(&mut self, now: Instant, warning: Duration, outputs: &mut VecDeque<Output>) -> Option<Instant> {
        self.horizon = None;
        let limit = self.limit?;
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
            // Nothing is left that could be ended, or nothing grows before a call is answered.
            return far.checked_sub(warning).filter(|_| !self.calls.is_empty());
        }
        let used_up = self.used_up(now, far, limit);
        let mut due = used_up;
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

    /// The first instant at which more would be held than there is; between `now`, when there is enough, and
    /// `far`, when there is not.
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

    /// Ends calls until what the others hold is within the limit: those first whose increment began last, since
    /// these are the ones that are not paid for.
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
            // A ringing call ends uncharged; one that costs nothing more makes no room by ending.
            if matches!(call.state, State::Ending { .. }) || held == 0 {
                continue;
            }
            exposure -= held - charge;
            call.state = State::Ending { held: charge };
            outputs.push_back(Output::End(id));
        }
    }
}

/// How far ahead of its calls a book has to last not to be looked at with every one of them.
const LOOK_AHEAD: Duration = Duration::from_secs(60);
