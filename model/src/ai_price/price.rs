//! A price of a model, and the amount of one conversation at that price.
//!
//! Prices are per 1,000,000 tokens. Audio is part of the input: of 100 input tokens with 60 of audio, 40 are
//! charged at the text price and 60 at the audio price. If the provider does not report the split, all input
//! is charged at the text price.

use crate::call::words;
use crate::conversation::{AiBillingMode, AiUse, Charge};
use crate::ids::{AiPriceId, OrganisationId};
use crate::money::{Amount, Currency};
use crate::time::Timestamp;

words! {
    /// Whether a price is a cost or a sell price.
    AiPriceKind {
        /// What the provider charges the operator.
        Cost = "cost",
        /// What the operator charges a customer.
        Sell = "sell",
    }
}

/// The price of a model, or of all models whose names begin alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AiPrice {
    /// Primary key.
    pub id: AiPriceId,
    /// See [`AiPriceKind`].
    pub kind: AiPriceKind,
    /// The customer of the price; `None` for costs, and for every customer without a price of their own.
    pub organisation_id: Option<OrganisationId>,
    /// The provider of the model.
    pub provider: String,
    /// The models of the price.
    pub model: ModelPattern,
    /// For a million input tokens that are not audio.
    pub text_input_per_million: Amount,
    /// The price of a million input tokens of audio; `None` means the text price.
    pub audio_input_per_million: Option<Amount>,
    /// For a million output tokens.
    pub output_per_million: Amount,
    /// The currency of all three.
    pub currency: Currency,
    /// For conversations that start at this instant or later.
    pub from_time: Timestamp,
    /// For conversations that start before this instant; `None` means without end.
    pub to_time: Option<Timestamp>,
}

impl AiPrice {
    /// The largest price: with it and [`crate::conversation::LIMITS`] every amount can be stored.
    pub const PER_MILLION_MAX: Amount = Amount::from_scaled(100_000_000_000_000);

    /// Returns the amount for `ai` at this price, rounded once; `None` when it cannot be stored.
    pub fn amount(&self, ai: &AiUse) -> Option<Amount> {
        let audio = if ai.audio_split_known { ai.tokens_audio.min(ai.tokens_input) } else { 0 };
        let lines = [
            (self.text_input_per_million, ai.tokens_input.saturating_sub(audio)),
            (self.audio_input_per_million.unwrap_or(self.text_input_per_million), audio),
            (self.output_per_million, ai.tokens_output),
        ];
        Amount::sum_of_products(&lines, TOKENS_PER_UNIT)
    }

    fn is_valid_at(&self, at: Timestamp) -> bool {
        self.from_time <= at && self.to_time.is_none_or(|to| at < to)
    }
}

/// The models of a price: one name, or every name with a prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ModelPattern {
    /// Only that model.
    Exact(String),
    /// Every model whose name begins with it; the empty prefix means every model of the provider.
    Prefix(String),
}

impl ModelPattern {
    /// Reads `name` or `prefix*`; `None` for an empty text and for a star elsewhere.
    pub fn from_text(text: &str) -> Option<Self> {
        let (name, prefix) = text.strip_suffix('*').map_or((text, false), |name| (name, true));
        match (name.contains('*'), prefix, name.is_empty()) {
            (true, ..) | (false, false, true) => None,
            (false, true, _) => Some(ModelPattern::Prefix(name.to_owned())),
            (false, false, false) => Some(ModelPattern::Exact(name.to_owned())),
        }
    }

    /// Returns the text that [`ModelPattern::from_text`] reads as this pattern.
    pub fn to_text(&self) -> String {
        match self {
            ModelPattern::Exact(name) => name.clone(),
            ModelPattern::Prefix(prefix) => format!("{prefix}*"),
        }
    }

    /// The quality of the match: a longer prefix matches better than a shorter one, the complete name best;
    /// `None` if the name does not match.
    fn fit(&self, model: &str) -> Option<usize> {
        match self {
            ModelPattern::Exact(name) => (name == model).then_some(usize::MAX),
            ModelPattern::Prefix(prefix) => model.starts_with(prefix.as_str()).then_some(prefix.len()),
        }
    }
}

/// The sell price and the cost of a conversation of `organisation` that started at `at`, by the prices in
/// force at that time.
///
/// A customer's own price takes precedence over a price for all, then the better pattern, then the newest.
/// There is no amount if the organisation paid the provider, and none on a side without a matching price.
pub fn charge(prices: &[AiPrice], organisation: OrganisationId, ai: &AiUse, at: Timestamp) -> Charge {
    if ai.billing_mode == AiBillingMode::Byo {
        return Charge::default();
    }
    let side = |kind| {
        let price = choose(prices, kind, organisation, ai, at)?;
        Some((price.amount(ai)?, price.currency))
    };
    Charge { sell: side(AiPriceKind::Sell), cost: side(AiPriceKind::Cost) }
}

fn choose<'p>(
    prices: &'p [AiPrice],
    kind: AiPriceKind,
    organisation: OrganisationId,
    ai: &AiUse,
    at: Timestamp,
) -> Option<&'p AiPrice> {
    prices
        .iter()
        .filter(|price| price.kind == kind && price.provider == ai.provider && price.is_valid_at(at))
        .filter(|price| price.organisation_id.is_none_or(|own| own == organisation))
        .filter_map(|price| Some((price, price.model.fit(&ai.model)?)))
        .max_by_key(|(price, fit)| (price.organisation_id.is_some(), *fit, price.from_time, price.id))
        .map(|(price, _)| price)
}

const TOKENS_PER_UNIT: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rust_decimal::{Decimal, RoundingStrategy};
    use uuid::Uuid;

    use super::*;
    use crate::conversation::LIMITS;

    fn price(model: &str, text: &str) -> AiPrice {
        AiPrice {
            id: AiPriceId(Uuid::from_u128(1)),
            kind: AiPriceKind::Sell,
            organisation_id: None,
            provider: "acme-ai".to_owned(),
            model: ModelPattern::from_text(model).unwrap(),
            text_input_per_million: text.parse().unwrap(),
            audio_input_per_million: Some("40".parse().unwrap()),
            output_per_million: "20".parse().unwrap(),
            currency: "EUR".parse().unwrap(),
            from_time: Timestamp::from_micros(0),
            to_time: None,
        }
    }

    fn used(input: u64, audio: u64, output: u64) -> AiUse {
        AiUse {
            provider: "acme-ai".to_owned(),
            model: "talk-1-mini".to_owned(),
            billing_mode: AiBillingMode::Rated,
            profile_id: None,
            profile_name: None,
            tokens_input: input,
            tokens_output: output,
            tokens_audio: audio,
            audio_split_known: true,
        }
    }

    fn organisation(number: u128) -> OrganisationId {
        OrganisationId(Uuid::from_u128(number))
    }

    fn sold(prices: &[AiPrice], ai: &AiUse, at: i64) -> Option<String> {
        let charge = charge(prices, organisation(1), ai, Timestamp::from_micros(at));
        charge.sell.map(|(amount, _)| amount.to_text(2))
    }

    #[test]
    fn patterns_are_names_or_prefixes() {
        let exact = |name: &str| Some(ModelPattern::Exact(name.to_owned()));
        let prefix = |name: &str| Some(ModelPattern::Prefix(name.to_owned()));
        let cases = [
            ("talk-1", exact("talk-1")),
            ("talk-*", prefix("talk-")),
            ("*", prefix("")),
            ("", None),
            ("t*k", None),
            ("**", None),
        ];
        for (text, pattern) in cases {
            assert_eq!(ModelPattern::from_text(text), pattern, "{text}");
            assert!(pattern.is_none_or(|pattern| pattern.to_text() == text));
        }
    }

    #[test]
    fn audio_is_part_of_the_input() {
        let per_million = [price("*", "4")];
        // 400,000 at 4, 600,000 at 40, 100,000 at 20.
        assert_eq!(sold(&per_million, &used(1_000_000, 600_000, 100_000), 1).as_deref(), Some("27.60"));
        let unsplit = AiUse { audio_split_known: false, ..used(1_000_000, 0, 100_000) };
        assert_eq!(sold(&per_million, &unsplit, 1).as_deref(), Some("6.00"));
        let plain = [AiPrice { audio_input_per_million: None, ..price("*", "4") }];
        assert_eq!(sold(&plain, &used(1_000_000, 600_000, 100_000), 1).as_deref(), Some("6.00"));
        assert_eq!(sold(&per_million, &used(0, 0, 0), 1).as_deref(), Some("0.00"));
    }

    #[test]
    fn one_rounding_half_to_even() {
        let mut tiny = price("*", "0.00000001");
        tiny.output_per_million = "0.00000001".parse().unwrap();
        let tiny = [tiny];
        for (input, output, text) in [
            (500_000, 0, "0.00"),
            (250_000, 250_001, "0.00000001"),
            (1_500_000, 0, "0.00000002"),
            (2_500_000, 0, "0.00000002"),
        ] {
            assert_eq!(sold(&tiny, &used(input, 0, output), 1).as_deref(), Some(text), "{input} {output}");
        }
    }

    #[test]
    fn the_best_price_is_chosen() {
        let own = |mut price: AiPrice, number| {
            price.organisation_id = Some(organisation(number));
            price
        };
        let from = |mut price: AiPrice, from, to| {
            (price.from_time, price.to_time) =
                (Timestamp::from_micros(from), Some(Timestamp::from_micros(to)));
            price
        };
        let ai = used(1_000_000, 0, 0);
        let cases: [(&str, Vec<AiPrice>, Option<&str>); 9] = [
            ("none", vec![], None),
            (
                "another model",
                vec![price("talk-2*", "1"), price("talk-1", "2"), price("TALK-1-mini", "3")],
                None,
            ),
            (
                "longest prefix",
                vec![price("talk-*", "1"), price("talk-1-*", "2"), price("*", "3")],
                Some("2.00"),
            ),
            ("exact name", vec![price("talk-1-mini*", "1"), price("talk-1-mini", "2")], Some("2.00")),
            ("own before better", vec![price("talk-1-mini", "1"), own(price("*", "2"), 1)], Some("2.00")),
            ("another's", vec![own(price("talk-1-mini", "1"), 2)], None),
            ("newest", vec![from(price("*", "1"), 0, 99), from(price("*", "2"), 5, 99)], Some("2.00")),
            ("over", vec![from(price("*", "1"), 0, 10)], None),
            ("not yet", vec![from(price("*", "1"), 11, 99)], None),
        ];
        for (name, prices, expected) in cases {
            assert_eq!(sold(&prices, &ai, 10).as_deref(), expected, "{name}");
        }
        let other_provider = [AiPrice { provider: "other".to_owned(), ..price("*", "1") }];
        assert_eq!(sold(&other_provider, &ai, 10), None);
    }

    #[test]
    fn the_tenants_own_credential_has_no_amounts() {
        let byo = AiUse { billing_mode: AiBillingMode::Byo, ..used(1_000_000, 0, 0) };
        let cost = AiPrice { kind: AiPriceKind::Cost, ..price("*", "1") };
        let prices = [price("*", "4"), cost];
        let at = Timestamp::from_micros(1);
        assert_eq!(charge(&prices, organisation(1), &byo, at), Charge::default());
        let rated = charge(&prices, organisation(1), &used(1_000_000, 0, 0), at);
        assert_eq!(rated.cost.map(|(amount, _)| amount.to_text(2)).as_deref(), Some("1.00"));
    }

    #[test]
    fn the_largest_conversation_at_the_largest_price_can_be_stored() {
        let mut highest = price("*", "0");
        highest.text_input_per_million = AiPrice::PER_MILLION_MAX;
        highest.output_per_million = AiPrice::PER_MILLION_MAX;
        assert!(highest.amount(&used(LIMITS.tokens, 0, LIMITS.tokens)).is_some());
    }

    /// A simpler model with a different calculation: decimals, one price after the other.
    fn by_decimals(price: &AiPrice, ai: &AiUse) -> Decimal {
        let line = |amount: Amount, tokens: u64| amount.decimal() * Decimal::from(tokens);
        let mut sum = line(price.output_per_million, ai.tokens_output);
        if ai.audio_split_known {
            sum += line(price.text_input_per_million, ai.tokens_input)
                - line(price.text_input_per_million, ai.tokens_audio);
            sum +=
                line(price.audio_input_per_million.unwrap_or(price.text_input_per_million), ai.tokens_audio);
        } else {
            sum += line(price.text_input_per_million, ai.tokens_input);
        }
        let mut exact = sum;
        // Exact: division by a million only moves the decimal point.
        exact.set_scale(sum.scale() + 6).unwrap();
        exact.round_dp_with_strategy(8, RoundingStrategy::MidpointNearestEven)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(
            std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(20_000)
        ))]

        #[test]
        fn amounts_are_those_of_an_independent_model(
            text in 0_i64..100_000_000_000, audio in prop::option::of(0_i64..100_000_000_000),
            output in 0_i64..100_000_000_000,
            tokens in (0_u64..10_000_000, 0_u64..10_000_000, 0_u64..10_000_000), known: bool,
        ) {
            let mut price = price("*", "0");
            price.text_input_per_million = Amount::from_scaled(text);
            price.audio_input_per_million = audio.map(Amount::from_scaled);
            price.output_per_million = Amount::from_scaled(output);
            let ai = AiUse { audio_split_known: known, ..used(tokens.0.max(tokens.1), tokens.1, tokens.2) };
            let amount = price.amount(&ai).unwrap();
            prop_assert_eq!(amount.decimal().normalize(), by_decimals(&price, &ai).normalize());
        }
    }
}
