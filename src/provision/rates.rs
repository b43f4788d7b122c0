//! The prices in apply files: sell rates, cost rates, conversion rates.

use sidetone_model::money::{Amount, Currency};
use sidetone_model::rating::{Increments, Prefix, Price, Validity};
use sidetone_model::rules;
use sidetone_model::time::Timestamp;
use toml::{Table, Value};

use crate::fields::{Fields, Problem};
use crate::provision::reading::instant;

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
    pub(super) path: String,
    pub(super) owner: String,
    pub(super) prefix: Prefix,
    pub(super) per_minute: Amount,
    pub(super) currency: Option<Currency>,
    pub(super) increments: Increments,
    pub(super) validity: Validity,
}

#[derive(Debug)]
pub(super) struct FxRate {
    pub(super) path: String,
    pub(super) from: Currency,
    pub(super) to: Currency,
    pub(super) rate: Amount,
    pub(super) from_time: Timestamp,
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

/// `[first, next]` in seconds; per second if omitted.
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

impl PricedRate {
    /// The price in its currency.
    pub(super) fn price(&self, currency: Currency) -> Price {
        Price { per_minute: self.per_minute, currency, increments: self.increments }
    }
}
