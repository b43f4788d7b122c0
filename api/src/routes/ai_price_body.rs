//! The request and answer bodies of AI prices.

use axum::http::Uri;
use serde::Serialize;
use sidetone_model::ai_price::{AiPrice, AiPriceFilter, AiPriceKind, ModelPattern, rules};
use sidetone_model::cursor::Cursor;
use sidetone_model::field_check::StoredRule;
use sidetone_model::ids::{AiPriceId, OrganisationId};
use sidetone_model::money::{Amount, Currency};
use sidetone_model::page::Window;
use sidetone_model::rules::currency;
use sidetone_model::time::Timestamp;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::Caller;
use crate::body::declare::{id_of, null_or, nullable, optional, parsed, required, word};
use crate::body::{Fields, body};
use crate::error::ApiError;
use crate::page::{self, Wrong};
use crate::params::{self, query};

/// A price of an AI model.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AiPrice)]
pub(crate) struct AiPriceView {
    /// Primary key.
    id: AiPriceId,
    /// The provider's price to the operator, or the operator's price to a customer.
    kind: AiPriceKind,
    /// The customer; null for all customers without a price of their own, and for costs.
    #[schema(required)]
    organisation_id: Option<OrganisationId>,
    /// The provider of the model.
    provider: String,
    /// The model's name, or a prefix followed by `*`.
    model: String,
    /// For a million input tokens that are not audio.
    #[schema(value_type = Amount)]
    text_input_per_million: String,
    /// For a million input tokens of audio; null is the text price.
    #[schema(required, value_type = Option<Amount>)]
    audio_input_per_million: Option<String>,
    /// For a million output tokens.
    #[schema(value_type = Amount)]
    output_per_million: String,
    /// The currency of all three.
    currency: Currency,
    /// For conversations that start at this instant or later.
    from_time: Timestamp,
    /// For conversations that start before this instant; null means no end.
    #[schema(required)]
    to_time: Option<Timestamp>,
}

impl From<&AiPrice> for AiPriceView {
    fn from(price: &AiPrice) -> Self {
        let text = |amount: Amount| amount.to_text(price.currency.places());
        Self {
            id: price.id,
            kind: price.kind,
            organisation_id: price.organisation_id,
            provider: price.provider.clone(),
            model: price.model.to_text(),
            text_input_per_million: text(price.text_input_per_million),
            audio_input_per_million: price.audio_input_per_million.map(text),
            output_per_million: text(price.output_per_million),
            currency: price.currency,
            from_time: price.from_time,
            to_time: price.to_time,
        }
    }
}

body! {
    /// A price as it is set.
    #[schema(as = NewAiPrice)]
    pub(crate) struct AiPriceBody {
        /// The provider's price to the operator, or the operator's price to a customer.
        kind: AiPriceKind = required(word(&KINDS)),
        /// The customer; null for all customers without a price of their own, and for costs.
        #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
        organisation_id: Option<OrganisationId> = null_or(id_of(StoredRule::Organisation)),
        /// The provider of the model.
        #[schema(min_length = 1, max_length = 200, example = "openai")]
        provider: String = required(parsed(rules::provider)),
        /// The model's name, or a prefix followed by `*`; the longest matching prefix applies.
        #[schema(value_type = String, min_length = 1, max_length = 200, example = "gpt-realtime*")]
        model: ModelPattern = required(parsed(rules::model)),
        /// For a million input tokens that are not audio; 0 to 1,000,000.
        text_input_per_million: Amount = required(amount),
        /// For a million input tokens of audio; null is the text price.
        #[schema(value_type = Option<String>, pattern = r"^-?\d+(\.\d{1,8})?$", extensions(("x-nullable" = json!(true))))]
        audio_input_per_million: Option<Amount> = null_or(amount),
        /// For a million output tokens.
        output_per_million: Amount = required(amount),
        /// The currency of all three.
        currency: Currency = required(parsed(currency)),
        /// For conversations that start at this instant or later; for all earlier ones too when it is left out.
        from_time: Option<Timestamp> = optional(instant),
        /// For conversations that start before this instant; null means no end.
        #[schema(value_type = Option<String>, format = DateTime, extensions(("x-nullable" = json!(true))))]
        to_time: Option<Timestamp> = null_or(instant),
    }
    ignores &["id"];
    checks |fields: &mut Fields| {
        check(fields, kind, organisation_id.flatten(), from_time.flatten().unwrap_or_default(), to_time.flatten());
    };
}

body! {
    /// Changes of a price; omitted fields keep their values.
    #[schema(as = AiPricePatch)]
    pub(crate) struct AiPricePatchBody {
        /// See the price.
        kind: Option<AiPriceKind> = optional(word(&KINDS)),
        /// See the price.
        #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
        organisation_id: Option<Option<OrganisationId>> = nullable(id_of(StoredRule::Organisation)),
        /// See the price.
        #[schema(min_length = 1, max_length = 200)]
        provider: Option<String> = optional(parsed(rules::provider)),
        /// See the price.
        #[schema(value_type = Option<String>, min_length = 1, max_length = 200)]
        model: Option<ModelPattern> = optional(parsed(rules::model)),
        /// See the price.
        text_input_per_million: Option<Amount> = optional(amount),
        /// See the price.
        #[schema(value_type = Option<String>, pattern = r"^-?\d+(\.\d{1,8})?$", extensions(("x-nullable" = json!(true))))]
        audio_input_per_million: Option<Option<Amount>> = nullable(amount),
        /// See the price.
        output_per_million: Option<Amount> = optional(amount),
        /// See the price.
        currency: Option<Currency> = optional(parsed(currency)),
        /// See the price.
        from_time: Option<Timestamp> = optional(instant),
        /// See the price.
        #[schema(value_type = Option<String>, format = DateTime, extensions(("x-nullable" = json!(true))))]
        to_time: Option<Option<Timestamp>> = nullable(instant),
    }
    ignores &["id"];
}

query! {
    /// The part of the list.
    pub(crate) struct AiPriceParams {
        /// One side of the bill: `cost` (only with `margin:read`) or `sell`.
        #[param(inline)]
        kind: AiPriceKind = kind,
        /// Prices of one organisation, without those for all organisations.
        organisation_id: OrganisationId = page::id,
        /// One provider, exactly.
        #[param(max_length = 1000)]
        provider: String = page::text,
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

fn kind(value: &str) -> Result<AiPriceKind, Wrong> {
    AiPriceKind::from_name(value).ok_or_else(|| "must be one of cost, sell".to_owned())
}

/// Reads the query of the list.
///
/// # Errors
/// `invalid_request` with every wrong field.
pub(crate) fn query(uri: &Uri, caller: &Caller) -> Result<(AiPriceFilter, Window), ApiError> {
    let AiPriceParams { kind, organisation_id, provider, limit, offset, cursor } = params::read(uri)?;
    let window = params::window(uri, caller, (limit, offset, cursor))?;
    Ok((AiPriceFilter { kind, organisation_id, provider: params::search(provider) }, window))
}

impl From<AiPriceBody> for AiPrice {
    fn from(body: AiPriceBody) -> Self {
        AiPrice {
            id: AiPriceId(Uuid::new_v4()),
            kind: body.kind,
            organisation_id: body.organisation_id,
            provider: body.provider,
            model: body.model,
            text_input_per_million: body.text_input_per_million,
            audio_input_per_million: body.audio_input_per_million,
            output_per_million: body.output_per_million,
            currency: body.currency,
            from_time: body.from_time.unwrap_or_default(),
            to_time: body.to_time,
        }
    }
}

/// Reads a change and applies it to `old`.
pub(crate) fn changed(fields: &mut Fields, old: AiPrice) -> Option<AiPrice> {
    let body = AiPricePatchBody::read(fields)?;
    let price = AiPrice {
        id: old.id,
        kind: body.kind.unwrap_or(old.kind),
        organisation_id: body.organisation_id.unwrap_or(old.organisation_id),
        provider: body.provider.unwrap_or(old.provider),
        model: body.model.unwrap_or(old.model),
        text_input_per_million: body.text_input_per_million.unwrap_or(old.text_input_per_million),
        audio_input_per_million: body.audio_input_per_million.unwrap_or(old.audio_input_per_million),
        output_per_million: body.output_per_million.unwrap_or(old.output_per_million),
        currency: body.currency.unwrap_or(old.currency),
        from_time: body.from_time.unwrap_or(old.from_time),
        to_time: body.to_time.unwrap_or(old.to_time),
    };
    check(fields, Some(price.kind), price.organisation_id, price.from_time, price.to_time);
    Some(price)
}

/// Reports problems that concern several fields of a price.
fn check(
    fields: &mut Fields,
    kind: Option<AiPriceKind>,
    organisation_id: Option<OrganisationId>,
    from_time: Timestamp,
    to_time: Option<Timestamp>,
) {
    if kind == Some(AiPriceKind::Cost) && organisation_id.is_some() {
        fields.refuse::<()>("organisation_id", "must be null: costs belong to the operator");
    }
    if to_time.is_some_and(|to| to <= from_time) {
        fields.refuse::<()>("to_time", "must be after from_time");
    }
}

/// Reads an instant in whole milliseconds, so that the stored value equals the one in answers.
fn instant(fields: &mut Fields, name: &'static str) -> Option<Timestamp> {
    fields.timestamp(name).map(Timestamp::whole_millis)
}

fn amount(fields: &mut Fields, name: &'static str) -> Option<Amount> {
    match rules::per_million(fields.amount(name)?) {
        Ok(amount) => Some(amount),
        Err(wrong) => fields.refuse(name, wrong),
    }
}

const KINDS: [(&str, AiPriceKind); 2] = [("cost", AiPriceKind::Cost), ("sell", AiPriceKind::Sell)];
