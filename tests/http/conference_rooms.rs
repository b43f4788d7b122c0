//! Conference rooms over HTTP: every rule of their fields.

use serde_json::{Value, json};

use crate::http::desk::{As, Desk, hold_the_rules_for};

const FIELDS: [&str; 18] = [
    "announce_names",
    "created_at",
    "end_when_moderator_leaves",
    "exemptions",
    "id",
    "live_members",
    "max_members",
    "minutes_email",
    "moderator_pin",
    "name",
    "number",
    "numbers",
    "organisation_id",
    "participant_pin",
    "record",
    "record_channels",
    "updated_at",
    "wait_for_moderator",
];

fn made(desk: &Desk, body: Value) -> (String, Value) {
    let answer = desk.post(As::Acme, "/conference-rooms", body);
    assert_eq!(answer.status, 201, "{}", answer.body);
    (answer.location().to_owned(), answer.body)
}

fn stand_up(desk: &Desk) -> (String, Value) {
    let body = json!({
        "name": "Stand-up", "number": "200", "participant_pin": "1234", "moderator_pin": "9876",
        "wait_for_moderator": true, "end_when_moderator_leaves": true, "record": true, "announce_names": true, "max_members": 5,
        "minutes_email": "Minutes@acme.test"
    });
    made(desk, body)
}

#[test]
fn the_rules_of_all_managed_things_hold() {
    let desk = Desk::start();
    let (_, room) = stand_up(&desk);
    let id = room["id"].as_str().unwrap();
    let (read, write) = ("conferences:read", "conferences:write");
    hold_the_rules_for(&desk, "/conference-rooms", id, read, write, As::Reader);
}

#[test]
fn one_is_made_read_changed_and_removed() {
    let desk = Desk::start();
    let (path, room) = stand_up(&desk);
    let found = desk.get(As::Rooms, &path);
    assert_eq!((found.fields(), &found.body), (FIELDS.to_vec(), &room));
    assert_eq!(room["organisation_id"], desk.organisation("Acme"));
    assert_eq!((&room["participant_pin"], &room["moderator_pin"]), (&json!("1234"), &json!("9876")));
    assert_eq!((&room["max_members"], &room["minutes_email"]), (&json!(5), &json!("minutes@acme.test")));
    assert_eq!(
        (&room["numbers"], &room["exemptions"], &room["live_members"]),
        (&json!([]), &json!([]), &json!(0))
    );
    for field in ["wait_for_moderator", "end_when_moderator_leaves", "record", "announce_names"] {
        assert_eq!(room[field], true, "{field}");
    }
    let changed = desk.patch(As::Acme, &path, json!({"name": "Retro", "record": false, "max_members": 0}));
    assert_eq!((changed.status, &changed.body["name"]), (200, &json!("Retro")));
    assert_eq!((&changed.body["record"], &changed.body["max_members"]), (&json!(false), &json!(0)));
    assert_eq!(changed.body["participant_pin"], "1234", "what is left out stays as it is");
    let again = desk.patch(As::Acme, &path, changed.body.clone());
    assert_eq!((again.status, &again.body), (200, &changed.body), "what was read can be sent back");
    assert_eq!(desk.delete(As::Acme, &path).status, 204);
    assert_eq!(desk.delete(As::Acme, &path).status, 404);
    assert_eq!(desk.get(As::Acme, &path).status, 404);
}

#[test]
fn what_is_left_out_is_nothing() {
    let desk = Desk::start();
    let (_, room) = made(&desk, json!({"name": "Open", "number": "20"}));
    for field in ["participant_pin", "moderator_pin", "minutes_email"] {
        assert_eq!(room[field], "", "{field}");
    }
    for field in ["wait_for_moderator", "end_when_moderator_leaves", "record", "announce_names"] {
        assert_eq!(room[field], false, "{field}");
    }
    assert_eq!(room["max_members"], 0);
}

#[test]
fn every_wrong_field_is_named() {
    let desk = Desk::start();
    let refused = |body: Value, said: &str| {
        let answer = desk.post(As::Acme, "/conference-rooms", body);
        assert_eq!((answer.status, answer.message()), (400, said));
    };
    let number = "must be 2 to 8 digits, such as \"200\"";
    let pin = "must be 4 to 10 digits, or empty for none";
    refused(json!({}), "name: is required; number: is required");
    refused(
        json!({"name": " ", "number": "2", "participant_pin": "123", "moderator_pin": "12345678901",
            "wait_for_moderator": "yes", "max_members": 1001, "minutes_email": "nobody", "colour": "red"}),
        &format!(
            "name: must not be empty; number: {number}; participant_pin: {pin}; moderator_pin: {pin}; \
             wait_for_moderator: must be true or false, not a string; max_members: must be between 0 and 1000; \
             minutes_email: must be an address such as minutes@acme.test, or empty; colour: is not a field here, \
             the fields are organisation_id, name, number, participant_pin, moderator_pin, wait_for_moderator, \
             end_when_moderator_leaves, record, record_channels, announce_names, max_members, minutes_email"
        ),
    );
    for wrong in ["123456789", "2a", "", "+20", "２０"] {
        refused(json!({"name": "A", "number": wrong}), &format!("number: {number}"));
    }
    refused(
        json!({"name": "A", "number": "200", "participant_pin": "1234", "moderator_pin": "1234"}),
        "moderator_pin: must differ from participant_pin",
    );
    let waits = "wait_for_moderator: needs a moderator_pin: without one the room has no moderator; moderator_pin: \
                 must not be empty while wait_for_moderator is true";
    refused(json!({"name": "A", "number": "200", "wait_for_moderator": true}), waits);
    let null = json!({"name": null, "number": "200", "max_members": null, "participant_pin": null});
    assert_eq!(desk.post(As::Acme, "/conference-rooms", null).status, 400);
    assert_eq!(desk.get(As::Acme, "/conference-rooms").body["total"], 0, "nothing was made");
}

#[test]
fn a_change_is_checked_as_it_becomes() {
    let desk = Desk::start();
    let (path, before) = stand_up(&desk);
    let cases = [
        (json!({"participant_pin": "9876"}), vec!["moderator_pin"]),
        (json!({"moderator_pin": "1234"}), vec!["moderator_pin"]),
        (json!({"participant_pin": "5555", "moderator_pin": "5555"}), vec!["moderator_pin"]),
        (json!({"moderator_pin": ""}), vec!["wait_for_moderator", "moderator_pin"]),
        (json!({"participant_pin": "123"}), vec!["participant_pin"]),
        (json!({"number": "123456789"}), vec!["number"]),
        (json!({"max_members": -1}), vec!["max_members"]),
        (json!({"name": ""}), vec!["name"]),
        (json!({"name": null}), vec!["name"]),
        (json!({"colour": "red"}), vec!["colour"]),
    ];
    for (change, expected) in cases {
        let answer = desk.patch(As::Acme, &path, change.clone());
        assert_eq!(answer.status, 400, "{change}: {}", answer.body);
        let fields = answer.body["error"]["fields"].as_array().unwrap().iter();
        let fields: Vec<&str> = fields.map(|field| field["field"].as_str().unwrap()).collect();
        assert_eq!(fields, expected, "{change}");
    }
    assert_eq!(desk.get(As::Acme, &path).body, before);
    // One request may swap the PINs, and remove the moderator PIN together with the waiting.
    let swapped = desk.patch(As::Acme, &path, json!({"participant_pin": "9876", "moderator_pin": "1234"}));
    assert_eq!((swapped.status, &swapped.body["moderator_pin"]), (200, &json!("1234")));
    let without = json!({"moderator_pin": "", "wait_for_moderator": false});
    assert_eq!(desk.patch(As::Acme, &path, without).status, 200);
    // Ids, tenants and times are read-only.
    let assigned = json!({"id": desk.team(), "organisation_id": desk.organisation("Bolt"), "live_members": 9,
        "numbers": [], "exemptions": [{"extension_id": desk.extension("1001"), "role": "moderator"}]});
    let answer = desk.patch(As::Acme, &path, assigned);
    assert_eq!((answer.status, &answer.body["exemptions"]), (200, &json!([])));
    for field in ["id", "organisation_id", "live_members", "created_at"] {
        assert_eq!(answer.body[field], before[field], "{field}");
    }
}

#[test]
fn a_number_is_unique_among_the_rooms_of_the_organisation() {
    let desk = Desk::start();
    stand_up(&desk);
    let twin = json!({"name": "Twin", "number": "200"});
    let said = "number: the organisation already has a conference room 200";
    let answer = desk.post(As::Acme, "/conference-rooms", twin.clone());
    assert_eq!((answer.status, answer.code(), answer.message()), (409, "conflict", said));
    // Another organisation has its own numbers, and an extension may have the same number.
    assert_eq!(desk.post(As::Bolt, "/conference-rooms", twin).status, 201);
    let (path, _) = made(&desk, json!({"name": "As Ada", "number": "1001"}));
    let answer = desk.patch(As::Acme, &path, json!({"number": "200"}));
    assert_eq!((answer.status, answer.message()), (409, said));
}

#[test]
fn default_members_are_replaced_as_a_whole() {
    let desk = Desk::start();
    let (path, _) = stand_up(&desk);
    let (ada, grace) = (desk.extension("1001"), desk.extension("1002"));
    let members = format!("{path}/members");
    assert_eq!(desk.get(As::Rooms, &members).body, json!({"items": []}));
    let put = |items: Value| desk.send(As::Acme, "PUT", &members, Some(json!({"items": items})));
    let answer = put(json!([{"extension_id": grace}, {"extension_id": ada}]));
    let both = json!({"items": [
        {"extension_id": grace, "number": "1002", "name": "Grace"},
        {"extension_id": ada, "number": "1001", "name": "Ada"},
    ]});
    assert_eq!((answer.status, &answer.body), (200, &both), "in the order in which they are rung");
    assert_eq!(put(both["items"].clone()).body, both, "what was read can be sent back");
    assert_eq!(put(json!([{"extension_id": ada}])).body["items"].as_array().unwrap().len(), 1);

    let foreign = desk.extension("2001");
    let answer =
        put(json!([{"extension_id": ada}, {"extension_id": foreign}, {"extension_id": desk.team()}]));
    let none = "the organisation has no such extension";
    let said = format!("items[1].extension_id: {none}; items[2].extension_id: {none}");
    assert_eq!((answer.status, answer.message()), (400, said.as_str()));
    let answer = put(json!([{"extension_id": ada}, {"extension_id": ada}]));
    assert_eq!(answer.message(), "items[1].extension_id: is named twice");
    assert_eq!(put(json!([{"extension_id": "1001"}])).message(), "items[0].extension_id: must be a UUID");
    assert_eq!(put(json!([{}])).message(), "items[0].extension_id: is required");
    assert_eq!(put(json!([{"extension_id": ada, "role": "moderator"}])).status, 400);
    let many: Vec<Value> = (0..101).map(|_| json!({"extension_id": ada})).collect();
    assert_eq!(put(json!(many)).message(), "items: must hold 0 to 100 items");
    assert_eq!(desk.send(As::Acme, "PUT", &members, Some(json!({}))).message(), "items: is required");
    assert_eq!(desk.get(As::Acme, &members).body["items"][0]["extension_id"], ada, "all or nothing");
    assert_eq!(put(json!([])).body, json!({"items": []}));
    for (who, status) in [(As::Nobody, 401), (As::Reader, 403), (As::Bolt, 403)] {
        assert_eq!(desk.get(who, &members).status, status, "{who:?}");
        assert_eq!(desk.send(who, "PUT", &members, Some(json!({"items": []}))).status, status, "{who:?}");
    }
}

#[test]
fn exemptions_are_replaced_as_a_whole_and_shown_on_the_room() {
    let desk = Desk::start();
    let (path, _) = stand_up(&desk);
    let (ada, grace) = (desk.extension("1001"), desk.extension("1002"));
    let exemptions = format!("{path}/exemptions");
    let put = |items: Value| desk.send(As::Acme, "PUT", &exemptions, Some(json!({"items": items})));
    let both = json!([
        {"extension_id": ada, "role": "moderator"}, {"extension_id": grace, "role": "participant"}
    ]);
    let answer = put(both.clone());
    assert_eq!((answer.status, &answer.body), (200, &json!({"items": both})));
    assert_eq!(desk.get(As::Rooms, &path).body["exemptions"], both);
    assert_eq!(desk.get(As::Rooms, "/conference-rooms").body["items"][0]["exemptions"], both);
    let wrong = put(json!([{"extension_id": ada, "role": "guest"}, {"extension_id": ada}]));
    assert_eq!(
        wrong.message(),
        "items[0].role: must be participant or moderator; items[1].extension_id: is named twice; \
         items[1].role: is required"
    );
    let foreign = put(json!([{"extension_id": desk.extension("2001"), "role": "moderator"}]));
    assert_eq!(foreign.message(), "items[0].extension_id: the organisation has no such extension");
    assert_eq!(desk.get(As::Rooms, &path).body["exemptions"], both, "all or nothing");
    assert_eq!(put(json!([])).body, json!({"items": []}));
    for (who, status) in [(As::Nobody, 401), (As::Reader, 403), (As::Bolt, 403)] {
        let answer = desk.send(who, "PUT", &exemptions, Some(json!({"items": []})));
        assert_eq!(answer.status, status, "{who:?}");
    }
}

#[test]
fn an_extension_that_goes_is_no_member_any_more() {
    let desk = Desk::start();
    let (path, _) = stand_up(&desk);
    let grace = desk.extension("1002");
    let members = json!({"items": [{"extension_id": grace}]});
    assert_eq!(desk.send(As::Acme, "PUT", &format!("{path}/members"), Some(members)).status, 200);
    let exempt = json!({"items": [{"extension_id": grace, "role": "moderator"}]});
    assert_eq!(desk.send(As::Acme, "PUT", &format!("{path}/exemptions"), Some(exempt)).status, 200);
    assert_eq!(desk.delete(As::Acme, &format!("/extensions/{grace}")).status, 204);
    assert_eq!(desk.get(As::Acme, &format!("{path}/members")).body, json!({"items": []}));
    assert_eq!(desk.get(As::Acme, &path).body["exemptions"], json!([]));
}

#[test]
fn a_number_leads_to_a_room_or_to_whichever_is_keyed() {
    let desk = Desk::start();
    let (path, room) = stand_up(&desk);
    let body = json!({"number": "+442071230009", "destination": "conference", "destination_id": room["id"]});
    let number = desk.post(As::Acme, "/numbers", body);
    assert_eq!(number.status, 201, "{}", number.body);
    assert_eq!(
        (&number.body["destination"], &number.body["destination_id"]),
        (&json!("conference"), &room["id"])
    );
    let at = number.location().to_owned();
    let numbers = json!([{"id": number.body["id"], "number": "+442071230009"}]);
    assert_eq!(desk.get(As::Acme, &path).body["numbers"], numbers);
    let answer = desk.delete(As::Acme, &path);
    let said = "the phone numbers +442071230009 lead to the room: let them lead elsewhere first";
    assert_eq!((answer.status, answer.code(), answer.message()), (409, "conflict", said));

    // A body that was read can be sent back; naming only the kind keeps the room.
    assert_eq!(desk.patch(As::Acme, &at, number.body.clone()).body, number.body);
    let kind = json!({"destination": "conference"});
    assert_eq!(desk.patch(As::Acme, &at, kind.clone()).body["destination_id"], room["id"]);
    let shared = desk.patch(As::Acme, &at, json!({"destination_id": null}));
    assert_eq!((shared.status, &shared.body["destination"]), (200, &json!("conference")));
    assert_eq!(shared.body.get("destination_id"), None);
    assert_eq!(desk.patch(As::Acme, &at, shared.body.clone()).body, shared.body);
    assert_eq!(desk.get(As::Acme, &path).body["numbers"], json!([]), "this room alone");

    let extension = json!({"destination": "extension"});
    let said = "destination_id: is required: name the extension that the number leads to";
    assert_eq!(desk.patch(As::Acme, &at, extension).message(), said);
    let ada = json!({"destination": "extension", "destination_id": desk.extension("1001")});
    assert_eq!(desk.patch(As::Acme, &at, ada).status, 200);
    assert_eq!(desk.patch(As::Acme, &at, json!({"destination_id": null})).message(), said);
    let wrong = json!({"destination_id": room["id"]});
    let said = "destination_id: the organisation has no such extension";
    assert_eq!(desk.patch(As::Acme, &at, wrong).message(), said, "a room is no extension");
    let back = desk.patch(As::Acme, &at, kind);
    assert_eq!((back.status, back.body.get("destination_id")), (200, None), "an id stays with its kind");
    assert_eq!(desk.delete(As::Acme, &path).status, 204);

    let foreign = desk.post(As::Bolt, "/conference-rooms", json!({"name": "Bolts", "number": "300"}));
    let said = "destination_id: the organisation has no such conference room";
    assert_eq!(desk.patch(As::Acme, &at, json!({"destination_id": foreign.body["id"]})).message(), said);
}

#[test]
fn lists_are_of_the_callers_scope_and_searched() {
    let desk = Desk::start();
    for (name, number) in [("Retro", "201"), ("Stand-up", "200"), ("100%", "202")] {
        made(&desk, json!({"name": name, "number": number}));
    }
    assert_eq!(desk.get(As::Rooms, "/conference-rooms").items("name"), ["100%", "Retro", "Stand-up"]);
    let listed = |query: &str| desk.get(As::Rooms, &format!("/conference-rooms?{query}"));
    assert_eq!(listed("order=desc&limit=1").items("name"), ["Stand-up"]);
    assert_eq!(listed("q=retro").items("name"), ["Retro"]);
    assert_eq!(listed("q=201").items("name"), ["Retro"]);
    assert_eq!(listed("q=%25").items("name"), ["100%"]);
    assert_eq!(listed("sort=number").status, 400);
    assert_eq!(listed("team_id=00000000-0000-4000-8000-000000000000").status, 400);
    assert_eq!(desk.get(As::Bolt, "/conference-rooms").body["total"], 0);
    assert_eq!(desk.get(As::Supervisor, "/conference-rooms").body["total"], 0, "a room is in no team");
    let acme = desk.organisation("Acme");
    assert_eq!(desk.get(As::Bolt, &format!("/conference-rooms?organisation_id={acme}")).status, 403);
    assert_eq!(desk.get(As::Operator, &format!("/conference-rooms?organisation_id={acme}")).body["total"], 3);
}

#[test]
fn an_operator_makes_rooms_where_they_say() {
    let desk = Desk::start();
    let bolt = desk.organisation("Bolt");
    let body = |organisation: &str| json!({"name": "A", "number": "200", "organisation_id": organisation});
    let made = desk.post(As::Operator, "/conference-rooms", body(&bolt));
    assert_eq!((made.status, &made.body["organisation_id"]), (201, &json!(bolt)));
    assert_eq!(desk.get(As::Bolt, "/conference-rooms").body["total"], 1);
    assert_eq!(desk.post(As::Acme, "/conference-rooms", body(&bolt)).status, 403);
    let nowhere = body("00000000-0000-4000-8000-000000000000");
    let answer = desk.post(As::Operator, "/conference-rooms", nowhere);
    assert_eq!((answer.status, answer.message()), (400, "organisation_id: there is no such organisation"));
}

#[test]
fn an_organisation_with_rooms_is_not_removed() {
    let desk = Desk::start();
    let organisation =
        desk.post(As::Operator, "/organisations", json!({"name": "C", "sip_domain": "c.test"}));
    let body = json!({"name": "A", "number": "200", "organisation_id": organisation.body["id"]});
    assert_eq!(desk.post(As::Operator, "/conference-rooms", body).status, 201);
    let answer = desk.delete(As::Operator, organisation.location());
    let said = "the organisation still has conference rooms (1): remove them first";
    assert_eq!((answer.status, answer.message()), (409, said));
}

#[test]
fn a_room_without_a_pin_gets_six_digits_where_that_is_the_rule() {
    let desk = Desk::with_random_pins();
    let (path, room) = made(&desk, json!({"name": "A", "number": "200"}));
    let pin = room["participant_pin"].as_str().unwrap();
    assert!(pin.len() == 6 && pin.bytes().all(|byte| byte.is_ascii_digit()), "{pin}");
    assert_eq!(desk.get(As::Rooms, &path).body["participant_pin"], pin);
    let (_, open) = made(&desk, json!({"name": "B", "number": "201", "participant_pin": ""}));
    assert_eq!(open["participant_pin"], "", "an empty one was asked for");
}
