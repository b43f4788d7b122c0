//! The request and answer bodies of AI prices.

use axum::http::Uri;
use serde::Serialize;
use sidetone_model::ai_price::{AiPrice, AiPriceFilter, AiPriceKind, rules};
use sidetone_model::ids::{AiPriceId, OrganisationId};
use sidetone_model::money::{Amount, Currency};
use sidetone_model::page::Window;
use sidetone_model::rules::currency;
use sidetone_model::time::Timestamp;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::body::Fields;
use crate::error::ApiError;
use crate::page;

/// The public JSON of a price.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AiPrice)]
pub(crate) struct AiPriceView {
    /// Primary key.
    id: AiPriceId,
    /// What the provider charges the operator, or what the operator charges a customer.
    kind: AiPriceKind,
    /// The customer it is for; null for every customer without one of their own, and for costs.
    #[schema(required)]
    organisation_id: Option<OrganisationId>,
    /// Who runs the model.
    provider: String,
    /// The model's name, or the beginning of names followed by `*`.
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
    /// For conversations that start before this instant; null is for ever.
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

/// A price as it is set.
#[derive(ToSchema)]
#[schema(as = NewAiPrice)]
#[expect(dead_code, reason = "described, never made: the reader names every wrong field")]
pub(crate) struct AiPriceBody {
    /// What the provider charges the operator, or what the operator charges a customer.
    kind: AiPriceKind,
    /// The customer it is for; null for every customer without one of their own, and for costs.
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    organisation_id: Option<OrganisationId>,
    /// Who runs the model.
    #[schema(min_length = 1, max_length = 200, example = "openai")]
    provider: String,
    /// The model's name, or the beginning of names followed by `*`; the longest beginning goes first.
    #[schema(min_length = 1, max_length = 200, example = "gpt-realtime*")]
    model: String,
    /// For a million input tokens that are not audio; 0 to 1,000,000.
    text_input_per_million: Amount,
    /// For a million input tokens of audio; null is the text price.
    #[schema(value_type = Option<String>, pattern = r"^-?\d+(\.\d{1,8})?$", extensions(("x-nullable" = json!(true))))]
    audio_input_per_million: Option<Amount>,
    /// For a million output tokens.
    output_per_million: Amount,
    /// The currency of all three.
    currency: Currency,
    /// For conversations that start at this instant or later; left out: for all that started earlier, too.
    from_time: Option<Timestamp>,
    /// For conversations that start before this instant; null is for ever.
    #[schema(value_type = Option<String>, format = DateTime, extensions(("x-nullable" = json!(true))))]
    to_time: Option<Timestamp>,
}

/// What is to change of a price; what is left out stays as it is.
#[derive(ToSchema)]
#[schema(as = AiPricePatch)]
#[expect(dead_code, reason = "described, never made: the reader names every wrong field")]
pub(crate) struct AiPricePatchBody {
    /// See the price.
    kind: Option<AiPriceKind>,
    /// See the price.
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    organisation_id: Option<OrganisationId>,
    /// See the price.
    #[schema(min_length = 1, max_length = 200)]
    provider: Option<String>,
    /// See the price.
    #[schema(min_length = 1, max_length = 200)]
    model: Option<String>,
    /// See the price.
    text_input_per_million: Option<Amount>,
    /// See the price.
    #[schema(value_type = Option<String>, pattern = r"^-?\d+(\.\d{1,8})?$", extensions(("x-nullable" = json!(true))))]
    audio_input_per_million: Option<Amount>,
    /// See the price.
    output_per_million: Option<Amount>,
    /// See the price.
    currency: Option<Currency>,
    /// See the price.
    from_time: Option<Timestamp>,
    /// See the price.
    #[schema(value_type = Option<String>, format = DateTime, extensions(("x-nullable" = json!(true))))]
    to_time: Option<Timestamp>,
}

/// The part of the list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: the reader names every wrong field")]
pub(crate) struct AiPriceParams {
    /// One side of the bill: `cost` (only with `margin:read`) or `sell`.
    #[param(inline)]
    kind: Option<AiPriceKind>,
    /// The prices of one organisation's own, without those for all.
    organisation_id: Option<OrganisationId>,
    /// One provider, exactly.
    #[param(max_length = 1000)]
    provider: Option<String>,
    /// How many.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<i64>,
    /// How many to skip.
    #[param(minimum = 0, default = 0)]
    offset: Option<i64>,
}

/// Reads the query of the list.
///
/// # Errors
/// `invalid_request` with every wrong field.
pub(crate) fn query(uri: &Uri) -> Result<(AiPriceFilter, Window), ApiError> {
    let (mut filter, mut window) = (AiPriceFilter::default(), Window::default());
    page::read(uri, |name, value| {
        match name {
            "kind" => {
                let kind = AiPriceKind::from_name(value);
                filter.kind = Some(kind.ok_or_else(|| "must be one of cost, sell".to_owned())?);
            }
            "limit" => window.limit = page::limit(value)?,
            "offset" => window.offset = page::count(value)?,
            "organisation_id" => filter.organisation_id = Some(page::uuid(value)?.into()),
            "provider" => filter.provider = page::text(value)?,
            _ => page::unknown()?,
        }
        Ok(())
    })?;
    Ok((filter, window))
}

/// Builds the price from the fields and `old`, or a new price.
pub(crate) fn price(fields: &mut Fields, old: Option<&AiPrice>) -> Option<AiPrice> {
    fields.read_only(&["id"]);
    let kind = given(fields, "kind", old.map(|old| old.kind), |fields, name| fields.word(name, &KINDS));
    let organisation_id = fields.or_null("organisation_id", Fields::uuid);
    let organisation_id = organisation_id.unwrap_or_else(|| old.and_then(|old| old.organisation_id));
    if kind == Some(AiPriceKind::Cost) && organisation_id.is_some() {
        fields.refuse::<()>("organisation_id", "must be null: a cost is the operator's, whoever caused it");
    }
    let provider = given(fields, "provider", old.map(|old| old.provider.clone()), |fields, name| {
        fields.parsed(name, rules::provider)
    });
    let model = given(fields, "model", old.map(|old| old.model.clone()), |fields, name| {
        fields.parsed(name, rules::model)
    });
    let text_input =
        given(fields, "text_input_per_million", old.map(|old| old.text_input_per_million), amount);
    let audio_input = fields.or_null("audio_input_per_million", amount);
    let audio_input = audio_input.unwrap_or_else(|| old.and_then(|old| old.audio_input_per_million));
    let output = given(fields, "output_per_million", old.map(|old| old.output_per_million), amount);
    let currency =
        given(fields, "currency", old.map(|old| old.currency), |fields, name| fields.parsed(name, currency));
    let from_time = fields.timestamp("from_time").map(Timestamp::whole_millis);
    let from_time = from_time.or_else(|| old.map(|old| old.from_time)).unwrap_or_default();
    let to_time = fields.or_null("to_time", Fields::timestamp);
    let to_time = to_time.unwrap_or_else(|| old.and_then(|old| old.to_time)).map(Timestamp::whole_millis);
    if to_time.is_some_and(|to| to <= from_time) {
        fields.refuse::<()>("to_time", "must be after from_time");
    }
    Some(AiPrice {
        id: old.map_or_else(|| AiPriceId(Uuid::new_v4()), |old| old.id),
        kind: kind?,
        organisation_id,
        provider: provider?,
        model: model?,
        text_input_per_million: text_input?,
        audio_input_per_million: audio_input,
        output_per_million: output?,
        currency: currency?,
        from_time,
        to_time,
    })
}

/// A field that a new price requires, and that keeps its value when a price is changed without it.
fn given<T>(
    fields: &mut Fields,
    name: &'static str,
    old: Option<T>,
    read: impl FnOnce(&mut Fields, &'static str) -> Option<T>,
) -> Option<T> {
    if fields.has(name) || old.is_none() { fields.required(name, read) } else { old }
}

fn amount(fields: &mut Fields, name: &'static str) -> Option<Amount> {
    match rules::per_million(fields.amount(name)?) {
        Ok(amount) => Some(amount),
        Err(wrong) => fields.refuse(name, wrong),
    }
}

const KINDS: [(&str, AiPriceKind); 2] = [("cost", AiPriceKind::Cost), ("sell", AiPriceKind::Sell)];
