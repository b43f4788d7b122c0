//! Phone numbers over HTTP.

use serde_json::json;

use crate::http::desk::{As, Desk, hold_the_rules};

#[test]
fn the_rules_of_all_managed_things_hold() {
    let desk = Desk::start();
    hold_the_rules(&desk, "/numbers", &desk.number(), "directory:read", "directory:write");
}

#[test]
fn one_is_made_read_changed_and_removed() {
    let desk = Desk::start();
    let (first, second) = (desk.extension("1001"), desk.extension("1002"));
    let body = json!({"number": "+442071230001", "destination": "extension", "destination_id": first});
    let made = desk.post(As::Acme, "/numbers", body);
    assert_eq!(made.status, 201, "{}", made.body);
    let fields =
        ["created_at", "destination", "destination_id", "id", "number", "organisation_id", "updated_at"];
    assert_eq!(made.fields(), fields);
    let path = made.location().to_owned();
    assert_eq!(desk.get(As::Reader, &path).body, made.body);
    let changed = desk.patch(As::Acme, &path, json!({"destination_id": second}));
    assert_eq!((changed.status, &changed.body["destination_id"]), (200, &json!(second)));
    assert_eq!(changed.body["number"], "+442071230001");
    let again = desk.patch(As::Acme, &path, changed.body.clone());
    assert_eq!((again.status, &again.body), (200, &changed.body));
    assert_eq!(desk.delete(As::Acme, &path).status, 204);
    assert_eq!(desk.delete(As::Acme, &path).status, 404);
}

#[test]
fn every_wrong_field_is_named() {
    let desk = Desk::start();
    let answer = desk.post(As::Acme, "/numbers", json!({"number": "02071230001", "destination": "fax"}));
    assert_eq!(
        answer.message(),
        "number: must be written like +442071230000; destination: must be conference or extension"
    );
    let body = json!({"number": "+442071230001", "destination": "extension"});
    let answer = desk.post(As::Acme, "/numbers", body);
    let said = "destination_id: is required: name the extension that the number leads to";
    assert_eq!((answer.status, answer.message()), (400, said));
}

#[test]
fn a_number_is_unique_over_all_organisations() {
    let desk = Desk::start();
    let body = json!({
        "number": "+442071230000", "destination": "extension", "destination_id": desk.extension("2001")
    });
    let answer = desk.post(As::Bolt, "/numbers", body);
    assert_eq!((answer.status, answer.message()), (409, "number: the number is taken"));
}

#[test]
fn it_leads_to_the_organisations_own() {
    let desk = Desk::start();
    let foreign = desk.extension("2001");
    let body = json!({"number": "+442071230001", "destination": "extension", "destination_id": foreign});
    let answer = desk.post(As::Acme, "/numbers", body);
    let said = "destination_id: the organisation has no such extension";
    assert_eq!((answer.status, answer.message()), (400, said));
    let path = format!("/numbers/{}", desk.number());
    assert_eq!(desk.patch(As::Acme, &path, json!({"destination_id": foreign})).message(), said);
}

#[test]
fn lists_are_of_the_callers_scope() {
    let desk = Desk::start();
    assert_eq!(desk.get(As::Reader, "/numbers").items("number"), ["+442071230000"]);
    assert_eq!(desk.get(As::Operator, "/numbers?q=7123").items("number"), ["+442071230000"]);
    assert_eq!(desk.get(As::Operator, "/numbers?q=_").body["total"], 0);
    assert_eq!(desk.get(As::Bolt, "/numbers").body["total"], 0);
    assert_eq!(desk.get(As::Supervisor, "/numbers").body["total"], 0, "a number is in no team");
    let acme = desk.organisation("Acme");
    assert_eq!(desk.get(As::Bolt, &format!("/numbers?organisation_id={acme}")).status, 403);
    assert_eq!(desk.get(As::Acme, &format!("/numbers?team_id={}", desk.team())).status, 400);
}
