//! The rules for the fields of a price, in apply files and over HTTP.

use crate::ai_price::{AiPrice, ModelPattern};
use crate::money::Amount;
use crate::rules::Rule;

/// Checks the provider of a model.
///
/// # Errors
/// The rule that the text breaks.
pub fn provider(text: &str) -> Result<String, Rule> {
    if text.trim().is_empty() || text.chars().count() > NAME_LEN_MAX || text.chars().any(char::is_control) {
        return Err(format!("must be 1 to {NAME_LEN_MAX} characters on one line"));
    }
    Ok(text.to_owned())
}

/// Checks the models that a price is for.
///
/// # Errors
/// The rule that the text breaks.
pub fn model(text: &str) -> Result<ModelPattern, Rule> {
    let pattern = provider(text).ok().and_then(|text| ModelPattern::from_text(&text));
    pattern.ok_or_else(|| "must be a model's name, or the beginning of names followed by *".to_owned())
}

/// Checks a price for a million tokens.
///
/// # Errors
/// The rule that the text breaks.
pub fn per_million(amount: Amount) -> Result<Amount, Rule> {
    if amount.is_negative() || amount > AiPrice::PER_MILLION_MAX {
        return Err(format!("must be between 0 and {}", AiPrice::PER_MILLION_MAX.to_text(0)));
    }
    Ok(amount)
}

const NAME_LEN_MAX: usize = 200;
