//! Settling a call: computes the amounts of its record from its frozen prices and its seconds.

use sidetone_model::call::BillingMode;
use sidetone_model::cdr::Cdr;
use sidetone_model::money::Amount;
use sidetone_model::rating::{Billing, CarrierCharge, CreditDraw, Tariff};

use super::fx::FxTable;
use super::rate::charge;

/// Writes the amounts of an ended call into its record, by the prices that were frozen when it began.
/// Only the conversion of the carrier's charge is chosen now, as of the call's end. A record without prices
/// is free.
///
/// Settling removes the prices from the record, so settling it again changes nothing.
pub fn settle(cdr: &mut Cdr, fx: &FxTable) {
    let Some(tariff) = cdr.billing.tariff.take() else { return };
    cdr.billing_mode = BillingMode::Rated;
    cdr.currency = Some(tariff.sell.currency);
    (cdr.sell_amount, cdr.cost_amount) = (Amount::ZERO, Amount::ZERO);
    cdr.billing = Billing::default();
    if cdr.answered_at.is_none() {
        return;
    }
    let ended_at = cdr.ended_at.unwrap_or(cdr.started_at);
    cdr.sell_amount = charge(&tariff.sell, cdr.billsec);
    cdr.billing.credit = draw(&tariff, cdr.billsec);
    let Some(price) = tariff.cost else { return };
    let amount = charge(&price, cdr.billsec);
    let fx_rate = fx.rate(price.currency, tariff.sell.currency, ended_at);
    cdr.cost_amount = fx_rate.map_or(amount, |rate| convert(amount, rate));
    cdr.billing.cost = Some(CarrierCharge { currency: price.currency, amount, fx_rate });
}

/// Returns the charge of a call of `billsec` whole seconds to its organisation's credit.
pub fn draw(tariff: &Tariff, billsec: u32) -> Option<CreditDraw> {
    let rate = tariff.credit?;
    let amount = convert(charge(&tariff.sell, billsec), rate.fx_rate);
    Some(CreditDraw { currency: rate.currency, amount })
}

/// Converts an amount at a rate.
///
/// *Bounds*: an amount too large for [`Amount`] becomes the largest [`Amount`].
pub(super) fn convert(amount: Amount, rate: Amount) -> Amount {
    amount.converted(rate).unwrap_or(Amount::MAX)
}
