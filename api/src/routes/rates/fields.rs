//! The fields of rates that are prices of calls to a prefix, and the parameters of the lists.

use serde::Serialize;
use sidetone_model::cursor::Cursor;
use sidetone_model::money::{Amount, Currency};
use sidetone_model::rating::{Increments, Prefix, Price, RateFilter, Validity};
use sidetone_model::rules;
use sidetone_model::time::Timestamp;
use utoipa::ToSchema;

use crate::body::declare::{nullable, optional, parsed};
use crate::body::{Fields, body};
use crate::listing::WindowParts;
use crate::page;
use crate::params::query;
use crate::routes::rates::resource::RateQuery;

query! {
    /// The window of a list of rates.
    pub(crate) struct RateWindowParams {
        /// Items on a page.
        #[param(value_type = Option<i64>, minimum = 1, maximum = 500, default = 50)]
        limit: u32 = page::limit,
        /// Items to skip.
        #[param(value_type = Option<i64>, minimum = 0, default = 0)]
        offset: u64 = page::count,
        /// Pages by cursor in place of offsets: empty for the first page, then the `next_cursor` of the page before, with the
        /// same other parameters.
        #[param(value_type = Option<String>, max_length = 4096)]
        cursor: Cursor = page::cursor,
    }
}

impl RateQuery for RateWindowParams {
    fn put(self, _: &mut RateFilter) {}

    fn window(&mut self) -> WindowParts {
        (self.limit, self.offset, self.cursor.take())
    }
}

query! {
    /// The prefix that rates are looked up by.
    pub(crate) struct PrefixParam {
        /// Rates whose prefix starts with this text; write `+` as `%2B`.
        #[param(value_type = Option<String>, example = "+44", pattern = r"^(\+[0-9]{0,15}|[0-9]{1,15})$")]
        prefix: Prefix = rules::prefix,
    }
}

impl RateQuery for PrefixParam {
    fn put(self, filter: &mut RateFilter) {
        filter.prefix = self.prefix;
    }
}

/// The price of calls to one prefix as it is shown.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct PriceView {
    /// The prefix of the numbers.
    #[schema(example = "+44")]
    prefix: String,
    /// The price of 60 seconds.
    #[schema(value_type = Amount)]
    per_minute: String,
    currency: Currency,
    /// Billing increments in seconds: the first, and each next one.
    #[schema(min_items = 2, max_items = 2)]
    increments: [u32; 2],
    /// Valid from this instant.
    from_time: Timestamp,
    /// Valid until this instant; null means no end.
    #[schema(required)]
    to_time: Option<Timestamp>,
}

impl PriceView {
    pub(super) fn of(prefix: &Prefix, price: &Price, validity: &Validity) -> Self {
        Self {
            prefix: prefix.to_string(),
            per_minute: price.per_minute.to_text(price.currency.places()),
            currency: price.currency,
            increments: price.increments.into(),
            from_time: validity.from,
            to_time: validity.to,
        }
    }
}

body! {
    /// The price of calls to one prefix: all of it to make one, what changes of it to change one.
    #[derive(Debug, Default)]
    pub(crate) struct PriceBody {
        /// The prefix of the numbers; a single `+` matches every E.164 number.
        #[schema(value_type = Option<String>, example = "+44", pattern = r"^(\+[0-9]{0,15}|[0-9]{1,15})$")]
        prefix: Option<Prefix> = optional(parsed(rules::prefix)),
        /// The price of 60 seconds, 0 to 10000.
        #[schema(example = "0.0120")]
        per_minute: Option<Amount> = optional(parsed(rules::per_minute)),
        /// The currency.
        #[schema(value_type = Option<String>, example = "EUR", pattern = "^[A-Z]{3}$")]
        currency: Option<Currency> = optional(parsed(rules::currency)),
        /// Billing increments in seconds: the first, and each next one; `[1, 1]` by default.
        #[schema(value_type = Option<Vec<u32>>, example = json!([60, 1]), min_items = 2, max_items = 2)]
        increments: Option<Increments> = optional(increments),
        /// Valid from this instant; by default without a start.
        from_time: Option<Timestamp> = optional(Fields::timestamp),
        /// Valid until this instant; null means no end.
        #[schema(value_type = Option<String>, format = DateTime, extensions(("x-nullable" = json!(true))))]
        to_time: Option<Option<Timestamp>> = nullable(Fields::timestamp),
    }
}

impl PriceBody {
    /// The price and its validity, with missing fields taken from `before`.
    pub(super) fn applied(
        &self,
        fields: &mut Fields,
        before: (Price, Validity),
    ) -> Option<(Price, Validity)> {
        let (price, validity) = before;
        let price = Price {
            per_minute: self.per_minute.unwrap_or(price.per_minute),
            currency: self.currency.unwrap_or(price.currency),
            increments: self.increments.unwrap_or(price.increments),
        };
        let from = self.from_time.unwrap_or(validity.from);
        let to = self.to_time.unwrap_or(validity.to);
        if to.is_some_and(|to| to <= from) {
            return fields.refuse("to_time", "must be later than from_time");
        }
        Some((price, Validity { from, to }))
    }

    /// A complete new price.
    pub(super) fn whole(self, fields: &mut Fields) -> Option<(Prefix, Price, Validity)> {
        let prefix = fields.require_given("prefix", self.prefix.clone());
        let per_minute = fields.require_given("per_minute", self.per_minute);
        let currency = fields.require_given("currency", self.currency);
        let (prefix, per_minute, currency) = (prefix?, per_minute?, currency?);
        let price = Price { per_minute, currency, increments: Increments::SECONDS };
        let (price, validity) = self.applied(fields, (price, Validity::default()))?;
        Some((prefix, price, validity))
    }
}

/// `[first, next]` in seconds.
fn increments(fields: &mut Fields, name: &'static str) -> Option<Increments> {
    let value = fields.value(name)?;
    let steps = value.as_array().map(Vec::as_slice);
    let seconds = |step: &serde_json::Value| step.as_u64().and_then(|step| u32::try_from(step).ok());
    let increments = match steps {
        Some([first, next]) => {
            seconds(first).zip(seconds(next)).and_then(|(first, next)| Increments::new(first, next))
        }
        _ => None,
    };
    increments.or_else(|| {
        let most = Increments::STEP_MAX_S;
        fields.refuse(name, format!("must be two numbers of seconds, 1 to {most}, such as [60, 1]"))
    })
}

pub(super) const READ_ONLY: &[&str] = &["id"];
