//! Billing of calls: the prices at the start of a call, the check of its organisation's credit, and the
//! amount charged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sidetone_call::record::Facts;
use sidetone_model::call::HangupCause;
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::{CallId, OrganisationId, TrunkId};
use sidetone_model::money::Currency;
use sidetone_model::rating::{Account, CreditRate, Drawn, Price, Tariff, Undrawn};
use sidetone_model::time::{Now, Timestamp};
use sidetone_sip::message::StatusCode;

use crate::rating::{self, CreditNeed, CreditReserved, Ledger, Meter, Quote, Tariffs, credit};
use crate::routing::is_short;

/// The prices in force and the credit of every organisation.
pub(super) struct Billing {
    tariffs: Arc<Tariffs>,
    ledger: Ledger,
    accounts: Vec<Account>,
}

impl Billing {
    /// Creates the state without rates, which bills no organisation. `is_shared`: other nodes use the same credit.
    pub(super) fn new(warning: Duration, is_shared: bool) -> Self {
        let ledger = Ledger::new(warning);
        let ledger = if is_shared { ledger.shared() } else { ledger };
        Billing { tariffs: Arc::default(), ledger, accounts: Vec::new() }
    }

    /// Returns when [`Billing::timeout`] is due.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.ledger.next_timeout()
    }

    /// Returns the price that the carrier of an attempt charges for a rated call.
    pub(super) fn cost(&self, trunk: TrunkId, number: &str, started_at: Timestamp) -> Option<Price> {
        self.tariffs.cost(trunk, number, started_at)
    }

    /// Replaces the prices; they apply to calls that begin from now on.
    pub(super) fn replace_tariffs(&mut self, tariffs: Arc<Tariffs>) {
        self.tariffs = tariffs;
    }

    /// Replaces the credit accounts of the organisations.
    pub(super) fn replace_accounts(&mut self, now: Instant, mut accounts: Vec<Account>) {
        accounts.sort_unstable_by_key(|account| account.organisation_id);
        self.ledger.accounts(now, &accounts);
        self.accounts = accounts;
    }

    /// Restores the charges of an earlier run that may not be in the database yet.
    pub(super) fn carry_over(&mut self, undrawn: &[Undrawn]) {
        for Undrawn { organisation, call, amount } in undrawn {
            self.ledger.carried_over(*organisation, *call, *amount);
        }
    }

    /// Records that the database includes the charges of these calls.
    pub(super) fn drawn(&mut self, now: Now, drawn: &[Drawn]) {
        for Drawn { organisation, used, calls } in drawn {
            self.ledger.stored(now.instant, *organisation, *used, calls);
        }
    }

    /// Sets the prices of an outbound call and reserves its credit.
    ///
    /// # Errors
    /// When no rate covers the number, or the credit does not cover the first increment.
    pub(super) fn rate(&mut self, now: Now, mut facts: Facts) -> Result<Facts, (Unpaid, Box<Facts>)> {
        let number = facts.destination_number.as_deref().unwrap_or_default();
        let unpaid = match self.price(facts.organisation, number, facts.started_at) {
            Err(unpaid) => unpaid,
            Ok(None) => return Ok(facts),
            Ok(Some((tariff, is_payable))) => {
                facts.tariff = Some(tariff);
                let (call, organisation) = (facts.call, facts.organisation);
                let admitted = match Meter::of(&tariff).filter(|_| is_payable) {
                    Some(meter) => self.ledger.admit(now.instant, call, organisation, meter).is_ok(),
                    None => is_payable,
                };
                if admitted {
                    return Ok(facts);
                }
                Unpaid::NoCredit
            }
        };
        Err((unpaid, Box::new(facts)))
    }

    /// Whether a call waits for credit to be reserved.
    pub(super) fn is_reserving(&self, call: CallId) -> bool {
        self.ledger.is_reserving(call)
    }

    /// Returns the reservations that calls need on credit that other nodes use, too.
    pub(super) fn credit_needs(&mut self, now: Now) -> Vec<CreditNeed> {
        self.ledger.needs(now.instant)
    }

    /// Handles the results of credit reservations.
    pub(super) fn reserved(&mut self, now: Now, reserved: Vec<CreditReserved>) {
        reserved.into_iter().for_each(|reserved| self.ledger.reserved(now.instant, reserved));
    }

    /// Checks whether an outbound call could be paid now.
    ///
    /// # Errors
    /// When no rate covers the number, or the credit does not cover the first increment.
    pub(super) fn may_pay(
        &mut self,
        now: Now,
        organisation: OrganisationId,
        number: &str,
    ) -> Result<(), Unpaid> {
        let Some((tariff, is_payable)) = self.price(organisation, number, now.wall)? else { return Ok(()) };
        let affords = |meter| self.ledger.affords(now.instant, organisation, &meter);
        if is_payable && Meter::of(&tariff).is_none_or(affords) { Ok(()) } else { Err(Unpaid::NoCredit) }
    }

    /// Returns the price of an outbound call; `None` when it is not billed.
    pub(super) fn sell_price(
        &self,
        organisation: OrganisationId,
        number: &str,
        at: Timestamp,
    ) -> Option<Price> {
        let (tariff, _) = self.price(organisation, number, at).ok()??;
        Some(tariff.sell)
    }

    /// Returns the prices of an outbound call, and whether the credit can be charged at all; `None` for a
    /// call that is not billed.
    fn price(
        &self,
        organisation: OrganisationId,
        number: &str,
        at: Timestamp,
    ) -> Result<Option<(Tariff, bool)>, Unpaid> {
        let sell = match self.tariffs.quote(organisation, number, at) {
            // A short number that a trunk lists needs no price: emergency calls must go out in any case.
            Quote::Barred if is_short(number) => return Ok(None),
            Quote::Barred => return Err(Unpaid::NoRate),
            Quote::Free => return Ok(None),
            Quote::Rated(price) => price,
        };
        let credit = self.credit_rate(organisation, sell.currency, at);
        Ok(Some((Tariff { sell, credit: credit.unwrap_or_default(), cost: None }, credit.is_ok())))
    }

    /// Releases the credit of a rated call that is not placed after all.
    pub(super) fn forget(&mut self, now: Now, id: CallId) {
        self.ledger.ended(now.instant, id, None);
    }

    /// Starts charging: the caller's leg was answered.
    pub(super) fn answered(&mut self, now: Now, id: CallId) {
        self.ledger.answered(now.instant, id);
    }

    /// Stops charging: the call is over, and its record will follow.
    pub(super) fn over(&mut self, now: Now, id: CallId) {
        self.ledger.over(now.instant, id);
    }

    /// Settles a record and draws its charge from the credit.
    pub(super) fn settle(&mut self, now: Now, record: &mut Cdr) {
        rating::settle(record, self.tariffs.fx());
        let draw = record.billing.credit.map(|draw| draw.amount);
        self.ledger.ended(now.instant, record.call_uuid, draw);
    }

    /// Handles a timeout; call it at [`Billing::next_timeout`].
    pub(super) fn timeout(&mut self, now: Now) {
        self.ledger.timeout(now.instant);
    }

    /// Returns the next call to warn or to end; drain to `None` after every input.
    pub(super) fn poll_output(&mut self) -> Option<credit::Output> {
        self.ledger.poll_output()
    }

    fn account(&self, organisation: OrganisationId) -> Option<&Account> {
        let at = self.accounts.binary_search_by_key(&organisation, |account| account.organisation_id);
        self.accounts.get(at.ok()?)
    }

    /// Returns how amounts in `currency` are taken from the credit; `Err` when no conversion rate is known
    /// and the credit is limited.
    fn credit_rate(
        &self,
        organisation: OrganisationId,
        currency: Currency,
        at: Timestamp,
    ) -> Result<Option<CreditRate>, ()> {
        let Some(account) = self.account(organisation) else { return Err(()) };
        let fx_rate = self.tariffs.fx().rate(currency, account.currency, at);
        match fx_rate {
            Some(fx_rate) => Ok(Some(CreditRate { currency: account.currency, fx_rate })),
            None if account.credit.is_some() => Err(()),
            None => Ok(None),
        }
    }
}

/// Why an outbound call cannot be paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unpaid {
    /// The credit does not cover the first increment.
    NoCredit,
    /// No rate covers the number.
    NoRate,
}

impl Unpaid {
    /// Returns the status of the refusal.
    pub(super) fn status(self) -> StatusCode {
        match self {
            Unpaid::NoCredit => StatusCode::PAYMENT_REQUIRED,
            Unpaid::NoRate => StatusCode::FORBIDDEN,
        }
    }

    /// Returns the cause for the record.
    pub(super) fn cause(self) -> HangupCause {
        match self {
            Unpaid::NoCredit => HangupCause::CallRejected,
            Unpaid::NoRate => HangupCause::OutgoingCallBarred,
        }
    }

    /// Returns the reason phrase of the refusal.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Unpaid::NoCredit => "Credit Used Up",
            Unpaid::NoRate => "No Rate For This Number",
        }
    }
}
