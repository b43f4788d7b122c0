//! Rates, conversions and prices of AI models.

use sidetone_model::rating::{Increments, Validity};
use sidetone_model::time::Timestamp;

use crate::provision::ACME;
use crate::provision::declare;
use crate::provision::json;
use crate::provision::parse;
use crate::provision::refusals;
use crate::provision::with_store;

/// The prices of the contract.
const RATES: &str = r#"
[[sell_rates]]
organisation = "Acme"
prefix = "+44"
per_minute = "0.0120"
currency = "EUR"
increments = [60, 1]
[[sell_rates]]
organisation = "Acme"
prefix = "+1"
per_minute = "0.0200"
currency = "USD"
from_time = "2026-01-01T00:00:00Z"
to_time = 2027-01-01T00:00:00Z
[[cost_rates]]
trunk = "carrier"
prefix = "+44"
per_minute = "0.0080"
currency = "USD"
increments = [1, 1]
[[fx_rates]]
from = "USD"
to = "EUR"
rate = "0.9200"
from_time = "2026-01-01T00:00:00Z"
"#;

#[test]
fn rates_are_declared_once_and_changed_by_what_they_are_for() {
    with_store(async |store| {
        let report = json(&declare(store, &[RATES, ACME], false).await.unwrap());
        assert_eq!(report["created"], 12);
        let rates = store.rates().await.unwrap();
        assert_eq!((rates.sell.len(), rates.cost.len(), rates.fx.len()), (2, 1, 1));
        let (america, britain) = (&rates.sell[0], &rates.sell[1]);
        assert_eq!(britain.price.increments, Increments::new(60, 1).unwrap());
        assert_eq!(america.price.increments, Increments::SECONDS);
        let year = |year: i32| format!("{year}-01-01T00:00:00Z").parse::<Timestamp>().unwrap();
        assert_eq!(america.validity, Validity { from: year(2026), to: Some(year(2027)) });
        let (directory, revision) = (store.directory_revision().await.unwrap(), rates.revision);

        let again = json(&declare(store, &[RATES, ACME], false).await.unwrap());
        assert_eq!((&again["created"], &again["changed"]), (&0.into(), &0.into()));
        assert_eq!(store.rate_revision().await.unwrap(), revision);
        let dearer = RATES.replace("0.0120", "0.0130").replace("0.9200", "0.9300");
        let changed = json(&declare(store, &[&dearer], false).await.unwrap());
        assert_eq!((&changed["changed"], &changed["unchanged"]), (&2.into(), &2.into()));
        let changed = store.rates().await.unwrap();
        assert_eq!(changed.sell[1].price.per_minute, "0.0130".parse().unwrap());
        assert_eq!((changed.sell[1].id, changed.fx[0].id), (britain.id, rates.fx[0].id));
        // A changed price does not cause the extensions to be read again.
        assert_eq!(store.directory_revision().await.unwrap(), directory);
        assert!(changed.revision > revision);
    });
}

#[test]
fn rates_name_what_is_there() {
    with_store(async |store| {
        let error = declare(store, &[RATES], false).await.unwrap_err();
        let missing = "there is no organisation \"Acme\", declare it";
        assert_eq!(
            refusals(error),
            [
                format!("0: sell rate \"+44\" of \"Acme\": organisation: {missing}"),
                format!("0: sell rate \"+1\" of \"Acme\": organisation: {missing}"),
                "0: cost rate \"+44\" of \"carrier\": trunk: there is no trunk \"carrier\", declare it"
                    .to_owned(),
            ]
        );
        let without_fx = RATES.split("[[fx_rates]]").next().unwrap();
        let error = declare(store, &[ACME, without_fx], false).await.unwrap_err();
        assert_eq!(
            refusals(error),
            [
                "1: sell rate \"+1\" of \"Acme\": currency: Acme has its credit in EUR, declare a rate for USD under fx_rates"
            ]
        );
        // Without a limit no conversion is needed.
        let unlimited = ACME.replace("credit = \"25.00\"\n", "");
        declare(store, &[&unlimited, without_fx], false).await.unwrap();
        assert!(parse(&format!("{RATES}{RATES}")).unwrap_err()[0].contains("is declared twice"));
    });
}

/// Prices of AI models, one for all organisations and one of a single organisation.
const AI_PRICES: &str = r#"
[[ai_prices]]
kind = "sell"
provider = "acme-ai"
model = "talk-*"
text_input_per_million = "4.00"
audio_input_per_million = "40.00"
output_per_million = "16.00"
currency = "EUR"
[[ai_prices]]
kind = "sell"
organisation = "Acme"
provider = "acme-ai"
model = "talk-*"
text_input_per_million = "3.00"
output_per_million = "12.00"
currency = "EUR"
from_time = 2026-01-01T00:00:00Z
to_time = "2027-01-01"
"#;

#[test]
fn ai_prices_are_declared_once_and_changed_by_what_they_are_for() {
    with_store(async |store| {
        let report = json(&declare(store, &[AI_PRICES, ACME], false).await.unwrap());
        assert_eq!(report["created"], 10);
        let again = json(&declare(store, &[AI_PRICES, ACME], false).await.unwrap());
        assert_eq!((&again["created"], &again["changed"]), (&0.into(), &0.into()));
        let dearer = AI_PRICES.replace("40.00", "41.00");
        let changed = declare(store, &[&dearer], false).await.unwrap();
        let line =
            "changed sell price of acme-ai talk-* for every organisation from 1970-01-01T00:00:00.000Z";
        assert!(changed.to_string().starts_with(line), "{changed}");
        assert_eq!((&json(&changed)["changed"], &json(&changed)["unchanged"]), (&1.into(), &1.into()));
    });
}

#[test]
fn what_is_wrong_with_an_ai_price_is_named() {
    with_store(async |store| {
        let error = declare(store, &[AI_PRICES], false).await.unwrap_err();
        let missing =
            "0: AI price \"talk-*\" of \"Acme\": organisation: there is no organisation \"Acme\", declare it";
        assert_eq!(refusals(error), [missing]);
    });
    let wrong = "[[ai_prices]]\nkind = \"cost\"\norganisation = \"Acme\"\nprovider = \"\"\nmodel = \"a*b\"\n\
                 text_input_per_million = \"-1\"\noutput_per_million = \"1e3\"\nto_time = \"1969-01-01\"\nprice = 1\n";
    assert_eq!(
        parse(wrong).unwrap_err(),
        [
            "AI price \"a*b\" of \"Acme\": organisation: must be left out: costs belong to the operator",
            "AI price \"a*b\" of \"Acme\": provider: must not be empty",
            "AI price \"a*b\" of \"Acme\": model: must be a model's name, or the beginning of names followed by *",
            "AI price \"a*b\" of \"Acme\": text_input_per_million: must be between 0 and 1000000",
            "AI price \"a*b\" of \"Acme\": output_per_million: must be a decimal such as \"4.00\": not a decimal number such as 12.50",
            "AI price \"a*b\" of \"Acme\": currency: is missing",
            "AI price \"a*b\" of \"Acme\": to_time: must be after from_time",
            "AI price \"a*b\" of \"Acme\": price: unknown key, known here are: kind, organisation, provider, model, \
             text_input_per_million, audio_input_per_million, output_per_million, currency, from_time, to_time",
        ]
    );
    let twice = parse(&format!("{AI_PRICES}{AI_PRICES}")).unwrap_err();
    assert!(twice.len() == 2 && twice[0].contains("is declared twice"), "{twice:?}");
}
