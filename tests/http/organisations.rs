//! Organisations over HTTP.

use serde_json::json;

use crate::http::desk::{As, Desk, hold_the_rules};

#[test]
fn the_rules_of_all_managed_things_hold() {
    let desk = Desk::start();
    let acme = desk.organisation("Acme");
    hold_the_rules(&desk, "/organisations", &acme, "directory:read", "organisations:write");
}

#[test]
fn one_is_made_read_changed_and_removed() {
    let desk = Desk::start();
    let made = desk.post(As::Operator, "/organisations", json!({"name": "Coil", "sip_domain": "COIL.test"}));
    assert_eq!(made.status, 201, "{}", made.body);
    let fields = [
        "call_info_url",
        "country_code",
        "created_at",
        "currency",
        "has_call_info_secret",
        "has_callback_secret",
        "id",
        "international_prefix",
        "language",
        "max_call_seconds",
        "max_outbound_calls",
        "name",
        "national_prefix",
        "recording_retention_days",
        "sip_domain",
        "star_codes",
        "updated_at",
    ];
    assert_eq!(made.fields(), fields, "no limit is no credit");
    assert_eq!((&made.body["sip_domain"], &made.body["currency"]), (&json!("coil.test"), &json!("EUR")));
    assert_eq!(
        (&made.body["max_outbound_calls"], &made.body["max_call_seconds"]),
        (&json!(null), &json!(null))
    );
    let path = made.location().to_owned();
    assert_eq!(desk.get(As::Operator, &path).body, made.body);
    let body = json!({
        "credit": "12.5", "currency": "GBP", "country_code": "44", "max_outbound_calls": 5, "max_call_seconds": 7_200,
        "sip_domain": "coil.example", "recording_retention_days": 30, "language": "de", "star_codes": false
    });
    let changed = desk.patch(As::Operator, &path, body);
    assert_eq!(changed.status, 200, "{}", changed.body);
    assert_eq!((&changed.body["credit"], &changed.body["country_code"]), (&json!("12.50"), &json!("44")));
    assert_eq!(changed.body["sip_domain"], "coil.example");
    assert_eq!(changed.body["max_call_seconds"], json!(7_200));
    assert_eq!(
        (&made.body["recording_retention_days"], &changed.body["recording_retention_days"]),
        (&json!(0), &json!(30))
    );
    assert_eq!((&made.body["language"], &changed.body["language"]), (&json!("en"), &json!("de")));
    assert_eq!((&made.body["star_codes"], &changed.body["star_codes"]), (&json!(true), &json!(false)));
    let again = desk.patch(As::Operator, &path, changed.body.clone());
    assert_eq!((again.status, &again.body), (200, &changed.body));
    let none = json!({"credit": null, "max_outbound_calls": null, "max_call_seconds": null});
    let cleared = desk.patch(As::Operator, &path, none);
    assert_eq!(cleared.body.get("credit"), None);
    assert_eq!(cleared.body["max_call_seconds"], json!(null));
    assert_eq!(desk.delete(As::Operator, &path).status, 204);
    assert_eq!(desk.delete(As::Operator, &path).status, 404);
}

#[test]
fn every_wrong_field_is_named() {
    let desk = Desk::start();
    let body = json!({
        "sip_domain": "acme..test", "currency": "eur", "credit": 12.5, "max_outbound_calls": -1,
        "max_call_seconds": 86_401, "recording_retention_days": 36_501, "language": "fr", "star_codes": 1,
        "colour": "red"
    });
    let answer = desk.post(As::Operator, "/organisations", body);
    let expected = [
        "sip_domain: must be a host name such as acme.test",
        "currency: must be the three letters of a currency, such as EUR",
        "credit: must be a decimal in a string, such as \"12.50\": a JSON number is not exact",
        "max_outbound_calls: must be between 0 and 1000000",
        "max_call_seconds: must be between 60 and 86400",
        "recording_retention_days: must be between 0 and 36500",
        "language: must be de or en",
        "star_codes: must be true or false, not a number",
        "colour: is not a field here, the fields are name, sip_domain, currency, credit, country_code, national_prefix, \
         international_prefix, max_outbound_calls, max_call_seconds, call_info_url, call_info_secret, \
         callback_secret, recording_retention_days, language, star_codes",
        "name: is required",
    ];
    assert_eq!(answer.message(), expected.join("; "));
    let body = json!({"name": "Coil", "sip_domain": "coil.test", "credit": "-1"});
    assert_eq!(desk.post(As::Operator, "/organisations", body).message(), "credit: must not be negative");
}

#[test]
fn names_and_domains_are_unique() {
    let desk = Desk::start();
    let post = |body| desk.post(As::Operator, "/organisations", body);
    let answer = post(json!({"name": "Acme", "sip_domain": "other.test"}));
    assert_eq!((answer.status, answer.message()), (409, "name: another organisation has this name"));
    let answer = post(json!({"name": "Other", "sip_domain": "ACME.test"}));
    assert_eq!((answer.status, answer.message()), (409, "sip_domain: another organisation has this domain"));
}

#[test]
fn a_domain_stays_while_passwords_belong_to_it() {
    let desk = Desk::start();
    let path = format!("/organisations/{}", desk.organisation("Acme"));
    let answer = desk.patch(As::Operator, &path, json!({"sip_domain": "acme.example"}));
    assert_eq!((answer.status, answer.code()), (409, "conflict"));
    assert!(answer.message().contains("1001, 1002"), "{}", answer.message());
    assert_eq!(desk.patch(As::Operator, &path, json!({"sip_domain": "acme.test"})).status, 200);
}

#[test]
fn tenants_change_their_own_name_and_nothing_that_is_the_operators() {
    let desk = Desk::start();
    let path = format!("/organisations/{}", desk.organisation("Acme"));
    let read = desk.get(As::Acme, &path);
    assert_eq!((read.status, &read.body["credit"]), (200, &json!("25.00")));
    let body = json!({"name": "Acme Ltd", "national_prefix": "9"});
    let changed = desk.patch(As::Acme, &path, body);
    assert_eq!((changed.status, &changed.body["name"]), (200, &json!("Acme Ltd")), "{}", changed.body);
    let same = desk.patch(As::Acme, &path, changed.body.clone());
    assert_eq!(same.status, 200, "what was read can be sent back");
    let body = json!({"credit": "1000", "currency": "USD", "sip_domain": "x.test", "max_outbound_calls": 9});
    let answer = desk.patch(As::Acme, &path, body);
    assert_eq!((answer.status, answer.code()), (403, "forbidden"));
    assert_eq!(answer.message(), "only an operator changes sip_domain, currency, credit, max_outbound_calls");
    assert_eq!(desk.patch(As::Acme, &path, json!({"credit": null})).status, 403);
    assert_eq!(desk.patch(As::Acme, &path, json!({"max_call_seconds": 86_400})).status, 403);
    assert_eq!(desk.delete(As::Acme, &path).status, 403);
    let body = json!({"name": "Coil", "sip_domain": "coil.test"});
    assert_eq!(desk.post(As::Acme, "/organisations", body).status, 403);
}

#[test]
fn credit_is_for_those_who_read_billing() {
    let desk = Desk::start();
    let path = format!("/organisations/{}", desk.organisation("Acme"));
    let read = desk.get(As::Reader, &path);
    assert_eq!((read.status, read.body.get("credit")), (200, None));
    let list = desk.get(As::Reader, "/organisations");
    assert_eq!(list.body["items"][0].get("credit"), None);
}

#[test]
fn one_that_owns_something_stays() {
    let desk = Desk::start();
    let answer = desk.delete(As::Operator, &format!("/organisations/{}", desk.organisation("Bolt")));
    assert_eq!((answer.status, answer.code()), (409, "conflict"));
    assert_eq!(
        answer.message(),
        "the organisation still has teams (1), extensions (1), trunks (1), API keys (1): remove them first"
    );
}

#[test]
fn lists_are_of_the_callers_scope() {
    let desk = Desk::start();
    assert_eq!(desk.get(As::Operator, "/organisations").items("name"), ["Acme", "Bolt"]);
    assert_eq!(desk.get(As::Operator, "/organisations?q=BOLT.T").items("name"), ["Bolt"]);
    for who in [As::Acme, As::Reader, As::Supervisor] {
        assert_eq!(desk.get(who, "/organisations").items("name"), ["Acme"], "{who:?}");
    }
    assert_eq!(desk.get(As::Bolt, "/organisations?sort=created_at&order=desc").items("name"), ["Bolt"]);
}
