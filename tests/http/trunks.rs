//! Trunks over HTTP.

use serde_json::{Value, json};

use crate::http::desk::{As, Desk, hold_the_rules};

#[test]
fn the_rules_of_all_managed_things_hold() {
    let desk = Desk::start();
    hold_the_rules(&desk, "/trunks", &desk.trunk("acme carrier"), "trunks:write", "trunks:write");
}

#[test]
fn one_is_made_read_changed_and_removed() {
    let desk = Desk::start();
    let body = json!({
        "name": "backup", "address": "sip:Carrier.example", "accept_from": ["203.0.113.7/24", "2a00:1450::1/64"],
        "username": "acme", "password": "s3cret", "register": true, "priority": 20, "short_numbers": ["112"],
        "strict_source": "sdp", "max_call_seconds": 3600
    });
    let made = desk.post(As::Acme, "/trunks", body);
    assert_eq!(made.status, 201, "{}", made.body);
    let fields = [
        "accept_from",
        "address",
        "backup_addresses",
        "codecs",
        "country_code",
        "created_at",
        "from_domain",
        "has_password",
        "headers",
        "id",
        "inbound_numbers",
        "max_call_seconds",
        "name",
        "national_prefix",
        "organisation_id",
        "outbound_numbers",
        "outbound_proxy",
        "priority",
        "progress_seconds",
        "qualify_seconds",
        "realm",
        "register",
        "short_numbers",
        "srtp",
        "strict_source",
        "transfers",
        "updated_at",
        "username",
        "video",
    ];
    assert_eq!(made.fields(), fields);
    assert!(!made.body.to_string().contains("s3cret"));
    assert_eq!(made.body["address"], "sip:carrier.example");
    assert_eq!(made.body["accept_from"], json!(["203.0.113.0/24", "2a00:1450::/64"]));
    assert_eq!((&made.body["has_password"], &made.body["priority"]), (&json!(true), &json!(20)));
    assert_eq!(made.body["organisation_id"], desk.organisation("Acme"));
    let bounds = |body: &Value| (body["strict_source"].clone(), body["max_call_seconds"].clone());
    assert_eq!(bounds(&made.body), (json!("sdp"), json!(3_600)));
    let path = made.location().to_owned();
    assert_eq!(desk.get(As::Acme, &path).body, made.body);
    let changed = desk.patch(As::Acme, &path, json!({"password": "", "priority": 5}));
    assert_eq!((&changed.body["has_password"], &changed.body["priority"]), (&json!(false), &json!(5)));
    assert_eq!(changed.body["username"], "acme");
    assert_eq!(bounds(&changed.body), (json!("sdp"), json!(3_600)));
    let cleared = desk.patch(As::Acme, &path, json!({"strict_source": null, "max_call_seconds": null}));
    assert_eq!(bounds(&cleared.body), (json!(null), json!(null)));
    let changed = desk.patch(
        As::Acme,
        &path,
        json!({"strict_source": "any", "srtp": "required", "video": "pass", "max_call_seconds": 60}),
    );
    assert_eq!((&changed.body["srtp"], &changed.body["video"]), (&json!("required"), &json!("pass")));
    assert_eq!(bounds(&changed.body), (json!("any"), json!(60)));
    let again = desk.patch(As::Acme, &path, changed.body.clone());
    assert_eq!((again.status, &again.body), (200, &changed.body));
    assert_eq!(desk.delete(As::Acme, &path).status, 204);
    assert_eq!(desk.delete(As::Acme, &path).status, 404);
}

#[test]
fn a_new_one_has_plain_defaults() {
    let desk = Desk::start();
    let made = desk.post(As::Operator, "/trunks", json!({"name": "plain", "organisation_id": null}));
    assert_eq!(made.status, 201, "{}", made.body);
    let expected = [
        ("organisation_id", json!(null)),
        ("address", json!("")),
        ("accept_from", json!([])),
        ("priority", json!(10)),
        ("username", json!("")),
        ("has_password", json!(false)),
        ("realm", json!("")),
        ("register", json!(false)),
        ("short_numbers", json!([])),
        ("strict_source", json!(null)),
        ("srtp", json!("off")),
        ("video", json!("off")),
        ("max_call_seconds", json!(null)),
        ("backup_addresses", json!([])),
        ("outbound_proxy", json!("")),
        ("from_domain", json!("")),
        ("country_code", json!("")),
        ("national_prefix", json!("0")),
        ("inbound_numbers", json!("international")),
        ("outbound_numbers", json!("e164")),
        ("codecs", json!([])),
        ("headers", json!([])),
        ("progress_seconds", json!(20)),
        ("qualify_seconds", json!(0)),
        ("transfers", json!(false)),
    ];
    for (field, value) in expected {
        assert_eq!(made.body[field], value, "{field}");
    }
}

#[test]
fn how_a_carrier_differs_is_set_and_changed() {
    let desk = Desk::start();
    let settings = json!({
        "name": "carrier", "address": "sip:carrier.example", "backup_addresses": ["sip:B.carrier.example", "sip:8.8.8.8"],
        "from_domain": "Acme.carrier.example", "country_code": "44", "national_prefix": "0",
        "inbound_numbers": "national", "outbound_numbers": "digits", "codecs": ["pcma", "G722"],
        "headers": ["X-Account:42"], "transfers": true
    });
    let made = desk.post(As::Acme, "/trunks", settings);
    assert_eq!(made.status, 201, "{}", made.body);
    let expected = [
        ("backup_addresses", json!(["sip:b.carrier.example", "sip:8.8.8.8"])),
        ("from_domain", json!("acme.carrier.example")),
        ("inbound_numbers", json!("national")),
        ("outbound_numbers", json!("digits")),
        ("codecs", json!(["PCMA", "G722"])),
        ("headers", json!(["X-Account: 42"])),
        ("transfers", json!(true)),
    ];
    for (field, value) in expected {
        assert_eq!(made.body[field], value, "{field}");
    }
    let path = made.location().to_owned();
    let again = desk.patch(As::Acme, &path, made.body.clone());
    assert_eq!((again.status, &again.body["headers"]), (200, &json!(["X-Account: 42"])));
    let cleared = json!({"backup_addresses": [], "outbound_proxy": "sip:proxy.example:5080;transport=tcp"});
    let cleared = desk.patch(As::Acme, &path, cleared);
    assert_eq!(cleared.body["outbound_proxy"], "sip:proxy.example:5080;transport=tcp");
    for (wrong, message) in [
        (
            json!({"backup_addresses": ["sip:8.8.8.8"]}),
            "backup_addresses: must be empty, because every request goes to outbound_proxy",
        ),
        (json!({"qualify_seconds": 9}), "qualify_seconds: must be 0 for none, or at least 10"),
        (json!({"country_code": ""}), "inbound_numbers: needs country_code, the country of national numbers"),
        (
            json!({"outbound_proxy": "sip:10.0.0.1"}),
            "outbound_proxy: must be on a public address; only an operator names another",
        ),
    ] {
        let answer = desk.patch(As::Acme, &path, wrong);
        assert_eq!((answer.status, answer.message()), (400, message));
    }
    let taken =
        json!({"name": "thief", "address": "sip:other.example", "backup_addresses": ["sip:carrier.example"]});
    assert_eq!(desk.post(As::Bolt, "/trunks", taken).status, 409);
}

#[test]
fn every_wrong_field_is_named() {
    let desk = Desk::start();
    let body = json!({
        "address": "https://carrier.example", "accept_from": ["0.0.0.0/0", 7, "carrier"], "priority": 65536,
        "register": "yes", "short_numbers": ["1234567"], "strict_source": "Sdp", "srtp": "on", "video": "on", "max_call_seconds": 59, "name": " ",
        "backup_addresses": ["carrier"], "outbound_proxy": "sips:p.example", "from_domain": "a b", "country_code": "+44",
        "national_prefix": "x", "inbound_numbers": "local", "outbound_numbers": "plus", "codecs": ["PCMA", "pcma", "amrx"],
        "headers": ["X-Account", "Via: x", "X-Account: 1\r\nTo: x"], "progress_seconds": 121, "qualify_seconds": 3601,
        "transfers": "on"
    });
    let answer = desk.post(As::Acme, "/trunks", body);
    let expected = [
        "address: must be written like sip:carrier.example:5060",
        "accept_from[0]: is the whole Internet, name the addresses that call",
        "accept_from[1]: must be a string, not a number",
        "accept_from[2]: must be an address or a network, such as 192.0.2.0/24",
        "priority: must be between 0 and 65535",
        "register: must be true or false, not a string",
        "short_numbers[0]: must be 1 to 6 digits, such as \"112\"",
        "strict_source: must be one of any, sdp, signalling",
        "srtp: must be one of off, optional, required",
        "video: must be one of off, pass",
        "max_call_seconds: must be between 60 and 86400",
        "name: must not be empty",
        "backup_addresses[0]: must be written like sip:carrier.example:5060",
        "outbound_proxy: must be written like sip:carrier.example:5060",
        "from_domain: must be a host name such as acme.test",
        "country_code: must be 0 to 3 digits in quotes",
        "national_prefix: must be 0 to 5 digits in quotes",
        "inbound_numbers: must be one of international, national",
        "outbound_numbers: must be one of digits, e164, national, prefixed",
        "codecs[1]: PCMA is named twice",
        "codecs[2]: \"amrx\" is none of AMR, AMR-WB, EVS, G722, G723, G726-32, G729, GSM, L16, PCMA, PCMU, iLBC, opus, speex",
        "headers[0]: must be written like \"X-Account: 42\"",
        "headers[1]: sets Via, which the switch writes itself; choose another header",
        "headers[2]: must have a value of 1 to 256 bytes on one line",
        "progress_seconds: must be between 5 and 120",
        "qualify_seconds: must be between 0 and 3600",
        "transfers: must be true or false, not a string",
    ];
    assert_eq!(answer.message(), expected.join("; "));
    let answer = desk.post(As::Acme, "/trunks", json!({"name": "x", "register": true}));
    assert_eq!(answer.message(), "register: needs an address and a username to register with");
    // A change is validated together with the stored fields, too.
    let path = format!("/trunks/{}", desk.trunk("acme carrier"));
    assert_eq!(desk.patch(As::Acme, &path, json!({"register": true})).status, 400);
}

#[test]
fn tenants_name_the_internet_alone() {
    let desk = Desk::start();
    let cases: [(Value, &str); 3] = [
        (json!({"address": "sip:127.0.0.1:5060"}), "address: must be on a public address"),
        (json!({"accept_from": ["8.8.8.8", "10.0.0.0/8"]}), "accept_from[1]: must be public and of 24 bits"),
        (json!({"accept_from": ["8.0.0.0/9"]}), "accept_from[0]: must be public and of 24 bits"),
    ];
    for (mut body, said) in cases {
        body["name"] = json!("mine");
        let answer = desk.post(As::Acme, "/trunks", body.clone());
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.message().starts_with(said), "{}", answer.message());
        let made = desk.post(As::Operator, "/trunks", body);
        assert_eq!(made.status, 201, "an operator knows: {}", made.body);
        assert_eq!(desk.delete(As::Operator, made.location()).status, 204);
    }
}

/// Settings from the operator on a tenant's trunk are kept when the tenant changes another field.
#[test]
fn what_an_operator_gave_stays() {
    let desk = Desk::start();
    let path = format!("/trunks/{}", desk.trunk("acme carrier"));
    let body = json!({"address": "sip:10.0.0.1:5060", "accept_from": ["10.0.0.0/8"]});
    let given = desk.patch(As::Operator, &path, body);
    assert_eq!(given.status, 200, "{}", given.body);
    let mut same = given.body.clone();
    same["priority"] = json!(3);
    let changed = desk.patch(As::Acme, &path, same);
    assert_eq!((changed.status, &changed.body["priority"]), (200, &json!(3)), "{}", changed.body);
    assert_eq!(desk.patch(As::Acme, &path, json!({"address": "sip:10.0.0.2"})).status, 400);
    assert_eq!(desk.patch(As::Acme, &path, json!({"accept_from": ["10.0.0.0/9"]})).status, 400);
}

/// A carrier that identifies the engine by its address cannot distinguish two tenants: calls of one would be billed to
/// the other.
#[test]
fn a_carrier_is_one_organisations_or_shared_by_the_operator() {
    let desk = Desk::start();
    let first =
        json!({"name": "first", "address": "sip:carrier.example:5060", "accept_from": ["203.0.114.0/24"]});
    assert_eq!(desk.post(As::Acme, "/trunks", first).status, 201);
    let own =
        json!({"name": "second of acme", "address": "sip:carrier.example", "accept_from": ["203.0.114.7"]});
    let own = desk.post(As::Acme, "/trunks", own);
    assert_eq!(own.status, 201, "an organisation may have two: {}", own.body);
    let cases = [
        (json!({"address": "sip:Carrier.example"}), "address"),
        (json!({"address": "sip:carrier.example.:5070"}), "address"),
        (json!({"address": "sip:203.0.114.9"}), "address"),
        (json!({"accept_from": ["203.0.114.7"]}), "accept_from"),
        (json!({"accept_from": ["203.0.114.0/25"]}), "accept_from"),
        (json!({"accept_from": ["192.0.2.1"]}), "accept_from"),
    ];
    for (mut body, field) in cases {
        body["name"] = json!("bolt's");
        let refused = desk.post(As::Bolt, "/trunks", body.clone());
        assert_eq!(refused.status, 409, "{body}: {}", refused.body);
        assert!(
            refused.message().starts_with(&format!("{field}: a trunk of another")),
            "{}",
            refused.message()
        );
        let path = format!("/trunks/{}", desk.trunk("bolt carrier"));
        assert_eq!(desk.patch(As::Bolt, &path, body).status, 409);
    }
    // Even an operator cannot give one carrier address to two organisations.
    let both = json!({
        "name": "bolt's", "address": "sip:carrier.example", "organisation_id": desk.organisation("Bolt")
    });
    assert_eq!(desk.post(As::Operator, "/trunks", both).status, 409);
    // An operator may also assign a shared address to one organisation.
    let shared = json!({
        "name": "bolt's", "accept_from": ["192.0.2.1"], "organisation_id": desk.organisation("Bolt")
    });
    let given = desk.post(As::Operator, "/trunks", shared);
    assert_eq!(given.status, 201, "{}", given.body);
}

#[test]
fn names_are_unique() {
    let desk = Desk::start();
    let answer = desk.post(As::Acme, "/trunks", json!({"name": "shared carrier"}));
    assert_eq!((answer.status, answer.message()), (409, "name: another trunk has this name"));
}

#[test]
fn what_all_share_is_the_operators() {
    let desk = Desk::start();
    assert_eq!(desk.get(As::Acme, "/trunks").items("name"), ["acme carrier"]);
    let all = ["acme carrier", "bolt carrier", "shared carrier"];
    assert_eq!(desk.get(As::Operator, "/trunks").items("name"), all);
    assert_eq!(desk.get(As::Operator, "/trunks?q=192.0.2").items("name"), ["shared carrier"]);
    let shared = format!("/trunks/{}", desk.trunk("shared carrier"));
    assert_eq!(desk.get(As::Acme, &shared).status, 403);
    assert_eq!(desk.patch(As::Acme, &shared, json!({"priority": 1})).status, 403);
    assert_eq!(desk.get(As::Operator, &shared).status, 200);
    let answer = desk.post(As::Acme, "/trunks", json!({"name": "x", "organisation_id": null}));
    assert_eq!((answer.status, answer.code()), (403, "forbidden"));
    let bolt = desk.organisation("Bolt");
    let body = json!({"name": "x", "organisation_id": bolt});
    assert_eq!(desk.post(As::Acme, "/trunks", body).status, 403);
    let own = format!("/trunks/{}", desk.trunk("acme carrier"));
    for owner in [json!(null), json!(bolt)] {
        assert_eq!(desk.patch(As::Acme, &own, json!({"organisation_id": owner})).status, 403);
    }
    assert_eq!(desk.get(As::Reader, "/trunks").status, 403);
}
