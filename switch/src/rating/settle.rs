//! Settling a call: from its frozen prices and its seconds to the amounts of its record.

use sidetone_model::call::BillingMode;
use sidetone_model::cdr::Cdr;
use sidetone_model::money::Amount;
use sidetone_model::rating::{Billing, CarrierCharge, CreditDraw, Tariff};

use super::fx::FxTable;
use super::rate::charge;

/// Writes what a call that is over came to into its record, by the prices that were frozen when it began; only
/// the conversion of the carrier's charge is found now, as of the call's end. A record without prices is free.
///
/// Once settled a record has no prices left: settling it again changes nothing.
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

/// What a call of `billsec` whole seconds takes from its organisation's credit.
pub fn draw(tariff: &Tariff, billsec: u32) -> Option<CreditDraw> {
    let rate = tariff.credit?;
    let amount = convert(charge(&tariff.sell, billsec), rate.fx_rate);
    Some(CreditDraw { currency: rate.currency, amount })
}

/// *Bounds*: an amount that no [`Amount`] can hold becomes the largest.
pub(super) fn convert(amount: Amount, rate: Amount) -> Amount {
    amount.converted(rate).unwrap_or(Amount::MAX)
}
