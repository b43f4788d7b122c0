//! Webhooks over HTTP: managing them, their secret, their deliveries.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::http::desk::{As, Desk, hold_the_rules};
use crate::http::face::Answer;

/// A webhook of Acme's.
fn made(desk: &Desk) -> Answer {
    let body = json!({"url": "https://crm.example/hook", "events": ["call.ended"]});
    let made = desk.post(As::Acme, "/webhooks", body);
    assert_eq!(made.status, 201, "{}", made.body);
    made
}

#[test]
fn the_rules_of_all_managed_things_hold() {
    let desk = Desk::start();
    let id = made(&desk).body["id"].as_str().unwrap().to_owned();
    hold_the_rules(&desk, "/webhooks", &id, "webhooks:read", "webhooks:write");
    let test = format!("/webhooks/{id}/test");
    let delivery = desk.post(As::Acme, &test, json!({})).body["id"].as_str().unwrap().to_owned();
    let one = format!("/webhooks/{id}/deliveries/{delivery}");
    let requests = [
        ("POST", test, "webhooks:write"),
        ("POST", format!("/webhooks/{id}/rotate-secret"), "webhooks:write"),
        ("POST", format!("{one}/redeliver"), "webhooks:write"),
        ("GET", format!("/webhooks/{id}/deliveries"), "webhooks:read"),
        ("GET", one, "webhooks:read"),
    ];
    let absent = "00000000-0000-4000-8000-000000000000";
    for (method, path, lacking) in requests {
        let answer = desk.send(As::Nobody, method, &path, None);
        assert_eq!((answer.status, answer.code()), (401, "unauthenticated"), "{method} {path}");
        let answer = desk.send(As::Rooms, method, &path, None);
        assert_eq!((answer.status, answer.code()), (403, "forbidden"), "{method} {path}");
        assert!(answer.message().contains(lacking), "{}", answer.message());
        let answer = desk.send(As::Bolt, method, &path, None);
        assert_eq!((answer.status, answer.code()), (403, "forbidden"), "foreign {method} {path}");
        let gone = path.replace(&id, absent);
        assert_eq!(desk.send(As::Operator, method, &gone, None).status, 404, "{method} {gone}");
        let wrong = path.replace(&id, "1");
        let answer = desk.send(As::Operator, method, &wrong, None);
        assert_eq!((answer.status, answer.message()), (400, "id: must be a UUID"), "{method} {wrong}");
        if path.contains(&delivery) {
            assert_eq!(desk.send(As::Acme, method, &path.replace(&delivery, absent), None).status, 404);
            let answer = desk.send(As::Acme, method, &path.replace(&delivery, "x"), None);
            assert_eq!((answer.status, answer.message()), (400, "delivery_id: must be a UUID"));
        }
    }
}

#[test]
fn one_is_made_read_changed_and_removed() {
    let desk = Desk::start();
    let body = json!({
        "url": "https://crm.example:8443/hook?tenant=1", "events": ["conference.*", "call.info.acked", "conference.*"],
        "description": "the CRM", "active": false
    });
    let made = desk.post(As::Acme, "/webhooks", body);
    assert_eq!(made.status, 201, "{}", made.body);
    let fields = [
        "active",
        "created_at",
        "description",
        "disabled_reason",
        "events",
        "failing_since",
        "id",
        "old_secret_until",
        "organisation_id",
        "updated_at",
        "url",
    ];
    let shown: Vec<&str> = made.fields().into_iter().filter(|field| *field != "secret").collect();
    assert_eq!((shown.as_slice(), made.fields().len()), (&fields[..], fields.len() + 1));
    let secret = made.body["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_") && secret.len() == 6 + 44, "{secret}");
    let expected = [
        ("url", json!("https://crm.example:8443/hook?tenant=1")),
        ("events", json!(["conference.*", "call.info.acked"])),
        ("description", json!("the CRM")),
        ("active", json!(false)),
        ("disabled_reason", json!(null)),
        ("failing_since", json!(null)),
        ("old_secret_until", json!(null)),
        ("organisation_id", json!(desk.organisation("Acme"))),
    ];
    for (field, value) in expected {
        assert_eq!(made.body[field], value, "{field}");
    }
    let path = made.location().to_owned();
    let read = desk.get(As::Acme, &path);
    assert_eq!((read.status, read.fields().as_slice()), (200, &fields[..]), "the secret is shown once");
    assert!(!desk.get(As::Acme, "/webhooks").body.to_string().contains("whsec_"));
    // A body that was read can be sent back.
    let again = desk.patch(As::Acme, &path, read.body.clone());
    assert_eq!((again.status, &again.body), (200, &read.body), "{}", again.body);
    let change =
        json!({"url": "https://crm.example/other", "events": ["*"], "description": "", "active": true});
    let changed = desk.patch(As::Acme, &path, change.clone());
    for (field, value) in change.as_object().unwrap() {
        assert_eq!(changed.body[field], *value, "{field}");
    }
    assert_eq!(desk.get(As::Acme, &path).body, changed.body);
    assert_eq!(desk.patch(As::Acme, &path, json!({})).body, changed.body);
    assert_eq!(desk.delete(As::Acme, &path).status, 204);
    for answer in
        [desk.delete(As::Acme, &path), desk.get(As::Acme, &path), desk.patch(As::Acme, &path, json!({}))]
    {
        assert_eq!((answer.status, answer.code()), (404, "not_found"));
    }
}

#[test]
fn a_new_one_has_plain_defaults() {
    let desk = Desk::start();
    let made = made(&desk);
    let expected = [("active", json!(true)), ("description", json!("")), ("events", json!(["call.ended"]))];
    for (field, value) in expected {
        assert_eq!(made.body[field], value, "{field}");
    }
}

#[test]
fn every_wrong_field_is_named() {
    let desk = Desk::start();
    let body = json!({
        "url": "http://crm.example", "events": ["call.ended", "call.endet", 7], "description": "x".repeat(201),
        "active": "yes", "colour": "red"
    });
    let answer = desk.post(As::Acme, "/webhooks", body);
    let expected = [
        "url: must begin with https://",
        "events[1]: 'call.endet' is no event and no family of events; use a name such as call.ended, a family such as \
         call.info.*, or *",
        "events[2]: must be a string, not a number",
        "description: must be at most 200 characters",
        "active: must be true or false, not a string",
        "colour: is not a field here, the fields are url, events, description, active, organisation_id",
    ];
    assert_eq!((answer.status, answer.message()), (400, expected.join("; ").as_str()));
    let answer = desk.post(As::Acme, "/webhooks", json!({}));
    assert_eq!(answer.message(), "url: is required; events: is required");
    let path = made(&desk).location().to_owned();
    let cases: [(Value, &str); 6] = [
        (json!({"events": []}), "events: must hold 1 to 32 items"),
        (json!({"events": vec!["call.ended"; 33]}), "events: must hold 1 to 32 items"),
        (json!({"url": ""}), "url: must begin with https://"),
        (json!({"url": null}), "url: must not be null"),
        (
            json!({"description": "two\nlines"}),
            "description: must be on one line, without control characters",
        ),
        (
            json!({"secret": "whsec_AAAA"}),
            "secret: is not a field here, the fields are url, events, description, active",
        ),
    ];
    for (body, said) in cases {
        let answer = desk.patch(As::Acme, &path, body.clone());
        assert_eq!((answer.status, answer.message()), (400, said), "{body}");
    }
}

/// W6 when the URL is saved; refusals at sending are in the tests of `outbound_http`.
#[test]
fn an_address_that_is_not_public_is_refused_at_save() {
    let desk = Desk::start();
    let path = made(&desk).location().to_owned();
    let refused = [
        "https://127.0.0.1/",
        "https://127.1/",
        "https://0x7f.1/",
        "https://2130706433/",
        "https://0177.0.0.1/",
        "https://0/",
        "https://①②⑦.⓪.⓪.①/",
        "https://127.0.0.1./",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[2002:7f00:1::]/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest/meta-data",
        "https://[fd00::1]/",
        "https://localhost/",
        "https://localhost./",
        "https://good@127.0.0.1/",
        "https://user:secret@crm.example/",
        "https://crm.example:22/",
        "ftp://crm.example/",
        "crm.example",
    ];
    for url in refused {
        for answer in [
            desk.post(As::Acme, "/webhooks", json!({"url": url, "events": ["*"]})),
            desk.patch(As::Acme, &path, json!({"url": url})),
        ] {
            assert_eq!((answer.status, answer.code()), (400, "invalid_request"), "{url}");
            assert!(answer.message().starts_with("url: must"), "{url}: {}", answer.message());
            assert!(!answer.body.to_string().contains("secret"), "{url}");
        }
    }
}

/// A webhook gets only events that the caller who sets it may read.
#[test]
fn events_are_those_that_the_caller_may_read() {
    let desk = Desk::start();
    let key = |permissions: &[&str]| {
        let body = json!({"name": permissions.join(" "), "permissions": permissions, "allow": ["127.0.0.1"]});
        desk.post(As::Acme, "/api-keys", body).body["key"].as_str().unwrap().to_owned()
    };
    let ask = |key: &str, events: Value| {
        let body = json!({"url": "https://crm.example/hook", "events": events}).to_string();
        let headers = format!("Authorization: Bearer {key}\r\nContent-Type: application/json\r\n");
        desk.raw(As::Nobody, "POST", "/webhooks", &headers, body.as_bytes())
    };
    let calls = key(&["calls:read", "webhooks:write"]);
    let rooms = key(&["conferences:read", "webhooks:write"]);
    let neither = key(&["webhooks:write"]);
    let directory = key(&["directory:write", "webhooks:write"]);
    let cases = [
        (&calls, json!(["call.*", "conversation.completed"]), 201),
        (&calls, json!(["call.*", "conference.updated"]), 403),
        (&calls, json!(["security.*"]), 403),
        (&directory, json!(["security.guessing"]), 201),
        (&calls, json!(["*"]), 403),
        (&rooms, json!(["conference.*"]), 201),
        (&rooms, json!(["call.ended"]), 403),
        (&neither, json!(["call.ended"]), 403),
    ];
    for (key, events, status) in cases {
        let answer = ask(key, events.clone());
        assert_eq!(answer.status, status, "{events}: {}", answer.body);
        if status == 403 {
            let lacking = if events == json!(["security.*"]) { "directory:write" } else { "s:read" };
            assert!(answer.message().contains(lacking), "{}", answer.message());
        }
    }
    // A caller may send back the webhook's existing event kinds even when it could not set them itself.
    let path = desk.post(As::Acme, "/webhooks", json!({"url": "https://a.example", "events": ["*"]}));
    let path = path.location().to_owned();
    let patch = |body: Value| {
        let headers = format!("Authorization: Bearer {calls}\r\nContent-Type: application/json\r\n");
        desk.raw(As::Nobody, "PATCH", &path, &headers, body.to_string().as_bytes())
    };
    assert_eq!(patch(json!({"events": ["*"], "description": "mine"})).status, 200);
    assert_eq!(patch(json!({"events": ["*", "conference.*"]})).status, 403);
    assert_eq!(patch(json!({"events": ["call.*"]})).status, 200);
}

#[test]
fn a_list_is_paged_searched_and_sorted() {
    let desk = Desk::start();
    for name in ["b", "c", "a"] {
        let body = json!({"url": format!("https://{name}.example/"), "events": ["*"], "description": format!("For {name}%")});
        assert_eq!(desk.post(As::Acme, "/webhooks", body).status, 201);
    }
    let body = json!({"url": "https://bolt.example/", "events": ["*"]});
    assert_eq!(desk.post(As::Bolt, "/webhooks", body).status, 201);
    let urls = |who: As, query: &str| {
        let page = desk.get(who, &format!("/webhooks{query}"));
        assert_eq!(page.status, 200, "{query}: {}", page.body);
        let hosts = page.items("url").into_iter().map(|url| url[8..].split('.').next().unwrap().to_owned());
        (page.body["total"].as_u64().unwrap(), hosts.collect::<Vec<_>>().join(","))
    };
    let cases = [
        ("", 3, "a,b,c"),
        ("?order=desc", 3, "c,b,a"),
        ("?sort=url&limit=1&offset=1", 3, "b"),
        ("?q=FOR%20C%25", 1, "c"),
        ("?q=.example", 3, "a,b,c"),
        ("?q=100%25", 0, ""),
    ];
    for (query, total, expected) in cases {
        assert_eq!(urls(As::Acme, query), (total, expected.to_owned()), "{query}");
    }
    assert_eq!(urls(As::Acme, "?sort=created_at").0, 3);
    assert_eq!(urls(As::Operator, "").0, 4);
    let bolt = desk.organisation("Bolt");
    assert_eq!(urls(As::Operator, &format!("?organisation_id={bolt}")), (1, "bolt".to_owned()));
    assert_eq!(desk.get(As::Acme, &format!("/webhooks?organisation_id={bolt}")).status, 403);
    let answer = desk.post(
        As::Acme,
        "/webhooks",
        json!({"url": "https://x.example", "events": ["*"], "organisation_id": bolt}),
    );
    assert_eq!((answer.status, answer.code()), (403, "forbidden"));
    let absent = json!({"url": "https://x.example", "events": ["*"], "organisation_id": "00000000-0000-4000-8000-000000000000"});
    assert_eq!(desk.post(As::Operator, "/webhooks", absent).status, 400);
}

#[test]
fn an_organisation_has_fifty() {
    let desk = Desk::start();
    for _ in 0..50 {
        made(&desk);
    }
    let body = json!({"url": "https://crm.example/hook", "events": ["*"]});
    let answer = desk.post(As::Acme, "/webhooks", body.clone());
    assert_eq!((answer.status, answer.code()), (409, "conflict"));
    assert!(answer.message().contains("50 webhooks"), "{}", answer.message());
    assert_eq!(desk.post(As::Bolt, "/webhooks", body.clone()).status, 201, "another one's are not counted");
    let path = format!("/webhooks/{}", desk.get(As::Acme, "/webhooks?limit=1").items("id")[0]);
    assert_eq!(desk.delete(As::Acme, &path).status, 204);
    assert_eq!(desk.post(As::Acme, "/webhooks", body).status, 201);
}

#[test]
fn a_secret_is_rotated_and_shown_once() {
    let desk = Desk::start();
    let made = made(&desk);
    let path = made.location().to_owned();
    let rotated = desk.send(As::Acme, "POST", &format!("{path}/rotate-secret"), None);
    assert_eq!(rotated.status, 200, "{}", rotated.body);
    let mut secrets = BTreeSet::from([made.body["secret"].to_string(), rotated.body["secret"].to_string()]);
    // The clock of the desk stands at second 100.
    assert_eq!(rotated.body["old_secret_until"], "2026-01-02T00:01:40.123Z");
    let read = desk.get(As::Acme, &path);
    assert_eq!(read.body["old_secret_until"], rotated.body["old_secret_until"]);
    assert!(read.body.get("secret").is_none());
    secrets
        .insert(desk.post(As::Acme, &format!("{path}/rotate-secret"), json!({})).body["secret"].to_string());
    assert_eq!(secrets.len(), 3);
}

/// No sender runs at the desk: a queued delivery keeps its state.
#[test]
fn a_test_is_queued_and_read_back() {
    let desk = Desk::start();
    let webhook = made(&desk);
    let path = webhook.location().to_owned();
    let queued = desk.post(As::Acme, &format!("{path}/test"), json!({}));
    assert_eq!(queued.status, 202, "{}", queued.body);
    let fields = [
        "attempts",
        "created_at",
        "event_id",
        "id",
        "next_attempt_at",
        "payload",
        "status",
        "type",
        "updated_at",
        "webhook_id",
    ];
    assert_eq!(queued.fields(), fields);
    assert_eq!((&queued.body["type"], &queued.body["status"]), (&json!("webhook.test"), &json!("pending")));
    assert_eq!((&queued.body["attempts"], &queued.body["webhook_id"]), (&json!([]), &webhook.body["id"]));
    let payload = json!({
        "id": queued.body["event_id"], "type": "webhook.test", "timestamp": "2026-01-01T00:01:40.123Z",
        "organisation_id": desk.organisation("Acme"), "data": {"webhook_id": webhook.body["id"]}
    });
    assert_eq!(queued.body["payload"], payload);
    let one = format!("{path}/deliveries/{}", queued.body["id"].as_str().unwrap());
    assert_eq!(desk.get(As::Acme, &one).body, queued.body);
    let second = desk.post(As::Acme, &format!("{path}/test"), json!({}));

    // Newest first, without the payload.
    let list = format!("{path}/deliveries");
    let page = desk.get(As::Acme, &list);
    assert_eq!(page.fields(), ["items", "limit", "offset", "total"]);
    assert_eq!(page.items("id"), [&second.body["id"], &queued.body["id"]]);
    assert!(page.body["items"][0].get("payload").is_none());
    assert_eq!(desk.get(As::Acme, &format!("{list}?limit=1&offset=1")).items("id"), [&queued.body["id"]]);
    for (status, total) in [
        ("pending", 2),
        ("delivering", 0),
        ("delivered", 0),
        ("retrying", 0),
        ("failed", 0),
        ("cancelled", 0),
    ] {
        let page = desk.get(As::Acme, &format!("{list}?status={status}"));
        assert_eq!(page.body["total"], total, "{status}");
    }
    let answer = desk.get(As::Acme, &format!("{list}?status=lost&limit=0&sort=id"));
    let expected = "status: must be one of cancelled, delivered, delivering, failed, pending, retrying; \
                    limit: must be between 1 and 500; sort: is not a parameter of this list";
    assert_eq!((answer.status, answer.message()), (400, expected));

    let again = desk.send(As::Acme, "POST", &format!("{one}/redeliver"), None);
    assert_eq!((again.status, &again.body["status"]), (202, &json!("pending")), "{}", again.body);
    // When the webhook is switched off, waiting deliveries are cancelled, and nothing is queued.
    assert_eq!(desk.patch(As::Acme, &path, json!({"active": false})).status, 200);
    assert_eq!(desk.get(As::Acme, &one).body["status"], "cancelled");
    assert_eq!(desk.get(As::Acme, &one).body["next_attempt_at"], json!(null));
    for asked in [format!("{path}/test"), format!("{one}/redeliver")] {
        let answer = desk.send(As::Acme, "POST", &asked, None);
        assert_eq!((answer.status, answer.code()), (409, "conflict"), "{asked}");
        assert!(answer.message().contains("switched off"), "{}", answer.message());
    }
    assert_eq!(desk.patch(As::Acme, &path, json!({"active": true})).status, 200);
    let again = desk.send(As::Acme, "POST", &format!("{one}/redeliver"), None);
    assert_eq!((again.status, &again.body["status"]), (202, &json!("pending")));
}

/// A delivery is not found below another webhook, not even of the same organisation.
#[test]
fn a_delivery_belongs_to_its_webhook() {
    let desk = Desk::start();
    let (one, other) = (made(&desk), made(&desk));
    let queued = desk.post(As::Acme, &format!("{}/test", one.location()), json!({}));
    let delivery = queued.body["id"].as_str().unwrap();
    assert_eq!(desk.get(As::Acme, &format!("{}/deliveries/{delivery}", one.location())).status, 200);
    assert_eq!(desk.get(As::Acme, &format!("{}/deliveries/{delivery}", other.location())).status, 404);
    let asked = format!("{}/deliveries/{delivery}/redeliver", other.location());
    assert_eq!(desk.send(As::Acme, "POST", &asked, None).status, 404);
    assert_eq!(desk.get(As::Acme, &format!("{}/deliveries", other.location())).body["total"], 0);
}

#[test]
fn an_organisation_with_webhooks_stays() {
    let desk = Desk::start();
    let own = desk.post(As::Operator, "/organisations", json!({"name": "New", "sip_domain": "new.test"}));
    let body = json!({"url": "https://crm.example", "events": ["*"], "organisation_id": own.body["id"]});
    let webhook = desk.post(As::Operator, "/webhooks", body);
    assert_eq!(webhook.status, 201, "{}", webhook.body);
    let answer = desk.delete(As::Operator, own.location());
    assert_eq!((answer.status, answer.code()), (409, "conflict"));
    assert!(answer.message().contains("webhooks (1)"), "{}", answer.message());
    assert_eq!(desk.delete(As::Operator, webhook.location()).status, 204);
    assert_eq!(desk.delete(As::Operator, own.location()).status, 204);
}
