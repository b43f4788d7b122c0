//! The prices of AI models in apply files.

use sidetone_model::ai_price::{AiPrice, AiPriceKind, rules as price_rules};
use sidetone_model::ids::AiPriceId;
use sidetone_model::money::Amount;
use sidetone_model::rules;
use sidetone_model::time::Timestamp;
use toml::Table;
use uuid::Uuid;

use crate::fields::{Fields, Problem};
use crate::provision::reading::instant;

/// A price for the organisation with that name, or for all.
#[derive(Debug)]
pub(super) struct DeclaredAiPrice {
    pub(super) path: String,
    pub(super) organisation: Option<String>,
    /// The price without its id and its organisation's id, which are in the database.
    pub(super) price: AiPrice,
}

impl DeclaredAiPrice {
    /// The key that identifies the price.
    pub(super) fn key(&self) -> String {
        let AiPrice { kind, provider, model, from_time, .. } = &self.price;
        let organisation = self.organisation.as_deref().unwrap_or("every organisation");
        format!("{kind} price of {provider} {} for {organisation} from {from_time}", model.to_text())
    }
}

pub(super) fn ai_price(path: String, table: Table, problems: &mut Vec<Problem>) -> Option<DeclaredAiPrice> {
    let mut fields = Fields::new(path.clone(), table, problems);
    let kind = fields.required_checked("kind", |text| {
        AiPriceKind::from_name(text).ok_or_else(|| "must be \"cost\" or \"sell\"".to_owned())
    });
    let organisation = fields.text("organisation").filter(|name| !name.is_empty());
    if kind == Some(AiPriceKind::Cost) && organisation.is_some() {
        fields.refuse::<()>("organisation", "must be left out: costs belong to the operator");
    }
    let provider = fields.required_checked("provider", price_rules::provider);
    let model = fields.required_checked("model", price_rules::model);
    let text_input = fields.required_checked("text_input_per_million", per_million);
    let audio_input = fields.checked("audio_input_per_million", per_million);
    let output = fields.required_checked("output_per_million", per_million);
    let currency = fields.required_checked("currency", rules::currency);
    let from_time = instant(&mut fields, "from_time").flatten().unwrap_or_default().whole_millis();
    let to_time = instant(&mut fields, "to_time").flatten().map(Timestamp::whole_millis);
    if to_time.is_some_and(|to| to <= from_time) {
        fields.refuse::<()>("to_time", "must be after from_time");
    }
    fields.finish();
    let price = AiPrice {
        id: AiPriceId(Uuid::nil()),
        kind: kind?,
        organisation_id: None,
        provider: provider?,
        model: model?,
        text_input_per_million: text_input?,
        audio_input_per_million: audio_input,
        output_per_million: output?,
        currency: currency?,
        from_time,
        to_time,
    };
    Some(DeclaredAiPrice { path, organisation, price })
}

fn per_million(text: &str) -> Result<Amount, String> {
    let amount =
        text.parse::<Amount>().map_err(|error| format!("must be a decimal such as \"4.00\": {error}"))?;
    price_rules::per_million(amount)
}
