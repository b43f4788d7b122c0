//! Prices in apply files: sell rates, cost rates, conversion rates.

use sidetone_model::ids::{CostRateId, FxRateId, SellRateId};
use sidetone_model::money::{Amount, Currency};
use sidetone_model::rating::{
    CostRate as StoredCostRate, FxRate as StoredFxRate, Increments, Prefix, Price,
    SellRate as StoredSellRate, Validity,
};
use sidetone_model::rules;
use sidetone_model::time::Timestamp;
use toml::{Table, Value};
use uuid::Uuid;

use crate::fields::{Fields, Problem};
use crate::provision::apply::Work;
use crate::store::StoreError;

/// The prices of one file.
#[derive(Debug, Default)]
pub(super) struct Rates {
    pub(super) sell: Vec<PricedRate>,
    pub(super) cost: Vec<PricedRate>,
    pub(super) fx: Vec<FxRate>,
}

/// A price for a prefix; its owner is in `organisation` or `trunk`.
#[derive(Debug)]
pub(super) struct PricedRate {
    path: String,
    owner: String,
    prefix: Prefix,
    per_minute: Amount,
    currency: Option<Currency>,
    increments: Increments,
    validity: Validity,
}

#[derive(Debug)]
pub(super) struct FxRate {
    path: String,
    from: Currency,
    to: Currency,
    rate: Amount,
    from_time: Timestamp,
}

impl Rates {
    /// The natural keys of the rates in a file, which must be unique, with the path of each.
    pub(super) fn keys(&self) -> Vec<(&str, &'static str, String)> {
        let priced = |kind: &'static str| {
            move |rate: &PricedRate| {
                let PricedRate { owner, prefix, validity, .. } = rate;
                format!("{kind} {owner} {prefix} {}", validity.from)
            }
        };
        let (sell, cost) = (priced("sell"), priced("cost"));
        let sell = self.sell.iter().map(|rate| (rate.path.as_str(), "prefix", sell(rate)));
        let cost = self.cost.iter().map(|rate| (rate.path.as_str(), "prefix", cost(rate)));
        let fx = self.fx.iter().map(|rate| {
            let FxRate { from, to, from_time, .. } = rate;
            (rate.path.as_str(), "from_time", format!("{from} {to} {from_time}"))
        });
        sell.chain(cost).chain(fx).collect()
    }
}

pub(super) fn sell_rate(path: String, table: Table, problems: &mut Vec<Problem>) -> Option<PricedRate> {
    priced_rate("organisation", false, path, table, problems)
}

pub(super) fn cost_rate(path: String, table: Table, problems: &mut Vec<Problem>) -> Option<PricedRate> {
    priced_rate("trunk", true, path, table, problems)
}

fn priced_rate(
    owner: &'static str,
    needs_currency: bool,
    path: String,
    table: Table,
    problems: &mut Vec<Problem>,
) -> Option<PricedRate> {
    let mut fields = Fields::new(path.clone(), table, problems);
    let owner = fields.required_text(owner);
    let prefix = fields.required_checked("prefix", rules::prefix);
    let per_minute = fields.required_checked("per_minute", rules::per_minute);
    let currency = if needs_currency {
        fields.required_checked("currency", rules::currency).map(Some)
    } else {
        let given = fields.has("currency");
        let currency = fields.checked("currency", rules::currency);
        if given && currency.is_none() { None } else { Some(currency) }
    };
    let increments = increments(&mut fields);
    let from = instant(&mut fields, "from_time");
    let to = instant(&mut fields, "to_time");
    if let (Some(from), Some(Some(to))) = (from, to)
        && to <= from.unwrap_or_default()
    {
        fields.refuse::<()>("to_time", "must be later than from_time");
    }
    fields.finish();
    Some(PricedRate {
        path,
        owner: owner?,
        prefix: prefix?,
        per_minute: per_minute?,
        currency: currency?,
        increments: increments?,
        validity: Validity { from: from?.unwrap_or_default(), to: to? },
    })
}

pub(super) fn fx_rate(path: String, table: Table, problems: &mut Vec<Problem>) -> Option<FxRate> {
    let mut fields = Fields::new(path.clone(), table, problems);
    let from = fields.required_checked("from", rules::currency);
    let to = fields.required_checked("to", rules::currency);
    if from.is_some() && from == to {
        fields.refuse::<()>("to", "must be another currency than from");
    }
    let rate = fields.required_checked("rate", rules::fx_rate);
    let from_time = instant(&mut fields, "from_time");
    fields.finish();
    Some(FxRate { path, from: from?, to: to?, rate: rate?, from_time: from_time?.unwrap_or_default() })
}

/// `[first, next]` in seconds; per second if left out.
fn increments(fields: &mut Fields<'_>) -> Option<Increments> {
    let Some(value) = fields.take("increments") else { return Some(Increments::SECONDS) };
    let seconds = |value: &Value| value.as_integer().and_then(|seconds| u32::try_from(seconds).ok());
    let increments = match value.as_array().map(Vec::as_slice) {
        Some([first, next]) => {
            seconds(first).zip(seconds(next)).and_then(|(first, next)| Increments::new(first, next))
        }
        _ => None,
    };
    increments.or_else(|| {
        let most = Increments::STEP_MAX_S;
        fields.refuse("increments", format!("must be two numbers of seconds, 1 to {most}, such as [60, 1]"))
    })
}

/// A timestamp, with or without quotes; `Some(None)` when it is left out.
pub(super) fn instant(fields: &mut Fields<'_>, key: &'static str) -> Option<Option<Timestamp>> {
    let text = match fields.take(key) {
        None => return Some(None),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    };
    match Timestamp::parse_bound(&text) {
        Ok(instant) => Some(Some(instant)),
        Err(_) => fields.refuse(key, "must be an instant such as \"2026-01-01T00:00:00Z\""),
    }
}

impl<R> Work<'_, R> {
    /// Conversion rates first, because credit in another currency needs them.
    pub(super) async fn fx_rates(&mut self, rates: &Rates) -> Result<(), StoreError> {
        for FxRate { from, to, rate, from_time, .. } in &rates.fx {
            let (id, from, to, rate, from_time) = (FxRateId(Uuid::new_v4()), *from, *to, *rate, *from_time);
            let stored = StoredFxRate { id, from, to, rate, from_time };
            let change = self.write.declare_fx_rate(stored, self.now).await?;
            self.report.count(change, format_args!("rate from {from} to {to} of {from_time}"), None);
        }
        Ok(())
    }

    pub(super) async fn sell_rates(&mut self, rates: &Rates) -> Result<(), StoreError> {
        for rate in &rates.sell {
            let PricedRate { path, owner, prefix, validity, .. } = rate;
            let Some((organisation_id, currency)) = self.write.find_payer(owner).await? else {
                let message = format!("there is no organisation \"{owner}\", declare it");
                self.refuse(path, "organisation", message);
                continue;
            };
            let id = SellRateId(Uuid::new_v4());
            let (prefix, validity) = (prefix.clone(), *validity);
            let price = rate.price(rate.currency.unwrap_or(currency));
            if !self.write.reaches_credit(organisation_id, price.currency).await? {
                let message = format!(
                    "{owner} has its credit in {currency}, declare what {} is in it under fx_rates",
                    price.currency
                );
                self.refuse(path, "currency", message);
            }
            let stored = StoredSellRate { id, organisation_id, prefix, price, validity };
            let change = self.write.declare_sell_rate(stored, self.now).await?;
            let what = format_args!("sell rate {} of {owner} from {}", rate.prefix, validity.from);
            self.report.count(change, what, None);
        }
        Ok(())
    }

    pub(super) async fn cost_rates(&mut self, rates: &Rates) -> Result<(), StoreError> {
        for rate in &rates.cost {
            let PricedRate { path, owner, prefix, validity, currency, .. } = rate;
            let Some(trunk_id) = self.write.find_trunk(owner).await? else {
                self.refuse(path, "trunk", format!("there is no trunk \"{owner}\", declare it"));
                continue;
            };
            // The parser has required one.
            let Some(currency) = *currency else { continue };
            let id = CostRateId(Uuid::new_v4());
            let (prefix, price, validity) = (prefix.clone(), rate.price(currency), *validity);
            let stored = StoredCostRate { id, trunk_id, prefix, price, validity };
            let change = self.write.declare_cost_rate(stored, self.now).await?;
            let what = format_args!("cost rate {} of {owner} from {}", rate.prefix, validity.from);
            self.report.count(change, what, None);
        }
        Ok(())
    }
}

impl PricedRate {
    fn price(&self, currency: Currency) -> Price {
        Price { per_minute: self.per_minute, currency, increments: self.increments }
    }
}
