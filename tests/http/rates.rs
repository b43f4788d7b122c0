//! The prices of calls, over HTTP.

use serde_json::{Value, json};

use crate::http::desk::{As, Desk};

fn sell(desk: &Desk) -> Value {
    json!({
        "organisation_id": desk.organisation("Acme"), "prefix": "+44", "per_minute": "0.0120", "currency": "EUR",
        "increments": [60, 1]
    })
}

fn cost(desk: &Desk) -> Value {
    json!({"trunk_id": desk.trunk("acme carrier"), "prefix": "+44", "per_minute": "0.008", "currency": "USD"})
}

fn fx() -> Value {
    json!({"from": "USD", "to": "EUR", "rate": "0.9200", "from_time": "2026-01-01T00:00:00Z"})
}

#[test]
fn one_of_each_is_made_read_changed_and_removed() {
    let desk = Desk::start();
    let cases = [
        ("/sell-rates", sell(&desk), json!({"per_minute": "0.0130", "to_time": "2027-01-01T00:00:00Z"})),
        ("/cost-rates", cost(&desk), json!({"increments": [30, 6], "prefix": "+4420"})),
        ("/fx-rates", fx(), json!({"rate": "0.93"})),
    ];
    for (collection, body, change) in cases {
        let made = desk.post(As::Operator, collection, body.clone());
        assert_eq!(made.status, 201, "{}", made.body);
        let path = made.location().to_owned();
        assert_eq!(desk.get(As::Operator, &path).body, made.body);
        assert_eq!(desk.get(As::Operator, collection).body["total"], 1);
        let twin = desk.post(As::Operator, collection, body);
        assert_eq!((twin.status, twin.code()), (409, "conflict"), "{collection}");
        let changed = desk.patch(As::Operator, &path, change.clone());
        assert_eq!(changed.status, 200, "{}", changed.body);
        assert_ne!(changed.body, made.body);
        let again = desk.patch(As::Operator, &path, changed.body.clone());
        assert_eq!((again.status, &again.body), (200, &changed.body));
        assert_eq!(desk.delete(As::Operator, &path).status, 204);
        assert_eq!(desk.delete(As::Operator, &path).status, 404);
        assert_eq!(desk.get(As::Operator, &path).status, 404);
        assert_eq!(desk.get(As::Operator, &format!("{collection}/7")).status, 400);
    }
}

#[test]
fn rates_are_shown_whole() {
    let desk = Desk::start();
    let made = desk.post(As::Operator, "/sell-rates", sell(&desk));
    let fields =
        ["currency", "from_time", "id", "increments", "organisation_id", "per_minute", "prefix", "to_time"];
    assert_eq!(made.fields(), fields);
    assert_eq!((&made.body["per_minute"], &made.body["increments"]), (&json!("0.012"), &json!([60, 1])));
    let since_ever = json!("1970-01-01T00:00:00.000Z");
    assert_eq!((&made.body["from_time"], &made.body["to_time"]), (&since_ever, &json!(null)));
    let made = desk.post(As::Operator, "/cost-rates", cost(&desk));
    assert_eq!(made.body["increments"], json!([1, 1]));
    let made = desk.post(As::Operator, "/fx-rates", fx());
    assert_eq!(made.fields(), ["from", "from_time", "id", "rate", "to"]);
}

#[test]
fn every_wrong_field_is_named() {
    let desk = Desk::start();
    let body = json!({
        "organisation_id": "x", "prefix": "44+", "per_minute": 0.01, "currency": "eur", "increments": [0, 1],
        "to_time": "soon", "price": 1
    });
    let answer = desk.post(As::Operator, "/sell-rates", body);
    assert_eq!(answer.status, 400);
    for named in [
        "organisation_id: ",
        "prefix: ",
        "per_minute: ",
        "currency: ",
        "increments: ",
        "to_time: ",
        "price: ",
    ] {
        assert!(answer.message().contains(named), "{named}{}", answer.message());
    }
    let answer = desk.post(As::Operator, "/sell-rates", json!({}));
    let required =
        ["organisation_id", "prefix", "per_minute", "currency"].map(|name| format!("{name}: is required"));
    assert_eq!(answer.message(), required.join("; "));
    let mut body = sell(&desk);
    body["to_time"] = json!("1970-01-01T00:00:00Z");
    assert_eq!(
        desk.post(As::Operator, "/sell-rates", body).message(),
        "to_time: must be later than from_time"
    );
    let mut body = sell(&desk);
    body["organisation_id"] = json!("00000000-0000-4000-8000-000000000000");
    let answer = desk.post(As::Operator, "/sell-rates", body);
    assert_eq!((answer.status, answer.message()), (400, "organisation_id: there is none with this id"));
    let mut body = fx();
    body["to"] = json!("USD");
    assert_eq!(
        desk.post(As::Operator, "/fx-rates", body).message(),
        "to: must be another currency than from"
    );
    let made = desk.post(As::Operator, "/sell-rates", sell(&desk));
    let moved = json!({"organisation_id": desk.organisation("Bolt")});
    let answer = desk.patch(As::Operator, made.location(), moved);
    assert_eq!(answer.message(), "organisation_id: cannot be changed, make another rate");
    for query in ["sort=prefix", "trunk_id=x", "limit=0", "prefix=4a"] {
        assert_eq!(desk.get(As::Operator, &format!("/sell-rates?{query}")).status, 400, "{query}");
    }
}

/// A tenant reads its own prices and sets none; only operators see the carriers' prices.
#[test]
fn prices_are_the_operators_to_set() {
    let desk = Desk::start();
    let made = desk.post(As::Operator, "/sell-rates", sell(&desk));
    let path = made.location().to_owned();
    assert_eq!(desk.get(As::Acme, &path).body, made.body);
    assert_eq!(desk.get(As::Acme, "/sell-rates?prefix=%2B4").body["total"], 1);
    assert_eq!(desk.get(As::Bolt, &path).status, 403);
    assert_eq!(desk.get(As::Bolt, "/sell-rates").body["total"], 0);
    let foreign = format!("/sell-rates?organisation_id={}", desk.organisation("Acme"));
    assert_eq!(desk.get(As::Bolt, &foreign).status, 403);
    let cost_rate = desk.post(As::Operator, "/cost-rates", cost(&desk)).location().to_owned();
    let fx_rate = desk.post(As::Operator, "/fx-rates", fx()).location().to_owned();
    for who in [As::Acme, As::Reader, As::Supervisor] {
        assert_eq!(desk.post(who, "/sell-rates", sell(&desk)).status, 403, "{who:?}");
        assert_eq!(desk.patch(who, &path, json!({"per_minute": "0"})).status, 403, "{who:?}");
        assert_eq!(desk.delete(who, &path).status, 403, "{who:?}");
        for path in ["/cost-rates", "/fx-rates", &cost_rate, &fx_rate] {
            assert_eq!(desk.get(who, path).status, 403, "{who:?} {path}");
        }
        assert_eq!(desk.post(who, "/cost-rates", cost(&desk)).status, 403, "{who:?}");
        assert_eq!(desk.post(who, "/fx-rates", fx()).status, 403, "{who:?}");
    }
    assert_eq!(desk.get(As::Reader, "/sell-rates").status, 403);
    assert_eq!(desk.get(As::Nobody, "/sell-rates").status, 401);
}

/// Rates are never deleted implicitly: organisations and trunks cannot be deleted while they have rates.
#[test]
fn what_has_rates_stays() {
    let desk = Desk::start();
    let made = desk.post(As::Operator, "/organisations", json!({"name": "Coil", "sip_domain": "coil.test"}));
    let (coil, mut rate) = (made.location().to_owned(), sell(&desk));
    rate["organisation_id"] = made.body["id"].clone();
    let rate = desk.post(As::Operator, "/sell-rates", rate).location().to_owned();
    let answer = desk.delete(As::Operator, &coil);
    assert_eq!(answer.status, 409);
    assert!(answer.message().contains("sell rates (1)"), "{}", answer.message());
    assert_eq!(desk.delete(As::Operator, &rate).status, 204);
    assert_eq!(desk.delete(As::Operator, &coil).status, 204);
    let trunk = format!("/trunks/{}", desk.trunk("acme carrier"));
    let rate = desk.post(As::Operator, "/cost-rates", cost(&desk)).location().to_owned();
    let answer = desk.delete(As::Operator, &trunk);
    assert_eq!(answer.status, 409);
    assert!(answer.message().contains("cost rates (1)"), "{}", answer.message());
    assert_eq!(desk.delete(As::Operator, &rate).status, 204);
    assert_eq!(desk.delete(As::Operator, &trunk).status, 204);
}

#[test]
fn the_balance_is_what_is_left_of_the_credit() {
    let desk = Desk::start();
    let acme = format!("/organisations/{}", desk.organisation("Acme"));
    let read = desk.get(As::Acme, &acme);
    assert_eq!((&read.body["credit"], &read.body["balance"]), (&json!("25.00"), &json!("25.00")));
    assert_eq!(desk.get(As::Reader, &acme).body.get("balance"), None);
    let bolt = format!("/organisations/{}", desk.organisation("Bolt"));
    assert_eq!(desk.get(As::Operator, &bolt).body.get("balance"), None);
}
