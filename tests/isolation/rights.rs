//! Every operation of the document with every kind of caller; reading and writing across tenants and teams.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::common::schema::DOCUMENT;
use crate::isolation::client::Answer;
use crate::isolation::fixture::{Fixture, Tenant};
use crate::isolation::policy::{ROWS, Row, Shape};

/// Every operation of the document has one row, and every row an operation.
#[test]
fn every_operation_has_a_row() {
    let documented: BTreeSet<String> = operations().into_iter().map(|(name, _)| name).collect();
    let rows: BTreeSet<String> = ROWS.iter().map(|row| row.operation.to_owned()).collect();
    let missing: Vec<_> = documented.difference(&rows).collect();
    assert!(missing.is_empty(), "who may use these? add rows to tests/isolation/policy.rs: {missing:#?}");
    let stale: Vec<_> = rows.difference(&documented).collect();
    assert!(stale.is_empty(), "the document has no such operations: {stale:#?}");
    assert_eq!(rows.len(), ROWS.len(), "an operation has two rows");
}

#[test]
fn without_a_token_nothing_but_the_public_is_answered() {
    let fixture = Fixture::shared();
    for row in ROWS {
        let address = row.path(&fixture.acme);
        let answer = fixture.send(row.method(), &address, None, &row.body(&fixture.acme));
        match row.shape {
            Shape::Public => assert_eq!(answer.status, row.right(), "{}: {}", row.operation, answer.text),
            Shape::Local => refused(row, &answer, 403, "forbidden"),
            _ => refused(row, &answer, 401, "unauthenticated"),
        }
        clean(fixture, row, &answer, &address, &[&fixture.acme, &fixture.bolt]);
    }
}

#[test]
fn a_caller_without_the_permission_is_refused() {
    let fixture = Fixture::shared();
    for (name, operation) in operations() {
        let Some(permission) = operation["x-permission"].as_str() else { continue };
        let row = row_of(&name);
        let key = fixture.acme.key_without(permission);
        let answer =
            fixture.send(row.method(), &row.path(&fixture.acme), Some(&key), &row.body(&fixture.acme));
        refused(row, &answer, 403, "forbidden");
        assert!(answer.message().contains(permission), "{name}: {}", answer.message());
    }
}

/// A key of another tenant with every permission.
#[test]
fn a_foreign_tenant_reaches_nothing() {
    let fixture = Fixture::shared();
    let (acme, bolt) = (&fixture.acme, &fixture.bolt);
    for row in ROWS {
        let address = row.path(acme);
        let answer = fixture.send(row.method(), &address, Some(&bolt.key), &row.body(acme));
        match row.shape {
            _ if row.operator => refused(row, &answer, 403, "forbidden"),
            Shape::Act | Shape::One | Shape::Change | Shape::Delete | Shape::Put => {
                refused(row, &answer, 403, "forbidden")
            }
            Shape::Create => assert!(
                [400, 403].contains(&answer.status),
                "{}: made something out of foreign ids: {} {}",
                row.operation,
                answer.status,
                answer.text
            ),
            Shape::List => {
                assert_eq!(answer.status, 200, "{}: {}", row.operation, answer.text);
                let own = [&bolt.plant, &bolt.organisation].into_iter().any(|own| answer.text.contains(own));
                assert!(own, "{} hides their own: {}", row.operation, answer.text);
            }
            Shape::Shared(status) => assert_eq!(answer.status, status, "{}: {}", row.operation, answer.text),
            Shape::Local | Shape::Public | Shape::Session => {}
        }
        clean(fixture, row, &answer, &address, &[acme]);
    }
}

/// Every id by which a list can be filtered, of another tenant.
#[test]
fn a_foreign_id_in_the_query_finds_nothing() {
    let fixture = Fixture::shared();
    let (acme, bolt) = (&fixture.acme, &fixture.bolt);
    let mut tried = 0;
    for (name, operation) in operations() {
        let row = row_of(&name);
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let id = parameter["name"].as_str().unwrap();
            if parameter["in"] != "query" || !id.ends_with("_id") {
                continue;
            }
            let address = format!("{}?{id}={}", row.path(acme), acme.id_for(id));
            let answer = fixture.send(row.method(), &address, Some(&bolt.key), &Value::Null);
            if id == "organisation_id" {
                refused(row, &answer, 403, "forbidden");
            } else {
                assert!([200, 403].contains(&answer.status), "{address}: {}", answer.text);
                for count in ["total", "count"] {
                    assert_eq!(answer.json()[count].as_u64().unwrap_or(0), 0, "{address}: {}", answer.text);
                }
            }
            clean(fixture, row, &answer, &address, &[acme]);
            tried += 1;
        }
    }
    assert!(tried >= 10, "only {tried} parameters");
}

/// A valid body except for one id, which belongs to another tenant.
#[test]
fn a_foreign_id_in_the_body_is_refused() {
    let fixture = Fixture::shared();
    let (acme, bolt) = (&fixture.acme, &fixture.bolt);
    let mut tried = 0;
    for row in ROWS {
        let Value::Object(right) = row.body(bolt) else { continue };
        for field in right
            .keys()
            .filter(|field| field.ends_with("_id") || ["call_uuid", "with"].contains(&field.as_str()))
        {
            let mut body = right.clone();
            body.insert(field.clone(), json!(acme.id_for(&row.body_id(field))));
            let address = row.path(bolt);
            let answer = fixture.send(row.method(), &address, Some(&bolt.key), &Value::Object(body));
            assert!(
                [400, 403].contains(&answer.status),
                "{} took a foreign {field}: {} {}",
                row.operation,
                answer.status,
                answer.text
            );
            clean(fixture, row, &answer, &acme.id_for(&row.body_id(field)), &[acme]);
            tried += 1;
        }
    }
    assert!(tried >= 4, "only {tried} fields");
}

/// A supervisor of the red team requests resources of the blue team.
#[test]
fn another_team_reaches_nothing() {
    let fixture = Fixture::shared();
    let acme = &fixture.acme;
    for who in ["supervisor", "agent"] {
        let token = fixture.session(&acme.user(who));
        for row in ROWS {
            if matches!(row.shape, Shape::Local | Shape::Public | Shape::Session) {
                continue;
            }
            let address = row.path(acme);
            let answer = fixture.send(row.method(), &address, Some(&token), &row.body(acme));
            assert_eq!(answer.status, row.other_team(), "{who}: {}: {}", row.operation, answer.text);
            if answer.status == 200 {
                assert!(answer.text.contains(row.team_sees()), "{who}: {}: {}", row.operation, answer.text);
                assert!(!answer.text.contains("blueplant"), "{who}: {}: {}", row.operation, answer.text);
            }
        }
    }
}

/// Read-only fields are not written: ids, tenants and times.
#[test]
fn read_only_fields_are_never_assigned() {
    let fixture = Fixture::shared();
    let (acme, bolt) = (&fixture.acme, &fixture.bolt);
    let mut tried = 0;
    for row in ROWS.iter().filter(|row| row.shape == Shape::Change) {
        let address = row.path(acme);
        let token = if row.operator { fixture.operator() } else { &acme.key };
        let before = fixture.send("GET", &address, Some(token), &Value::Null).json();
        let mut body = row.body(acme);
        for (field, value) in [
            ("id", json!(bolt.organisation)),
            ("organisation_id", json!(bolt.organisation)),
            ("created_at", json!("2000-01-01T00:00:00.000Z")),
        ] {
            body[field] = value;
        }
        let answer = fixture.send(row.method(), &address, Some(token), &body);
        assert!([200, 400, 403].contains(&answer.status), "{}: {}", row.operation, answer.text);
        let after = fixture.send("GET", &address, Some(token), &Value::Null).json();
        for field in ["id", "organisation_id", "created_at"] {
            assert_eq!(before[field], after[field], "{}: {field} was assigned", row.operation);
        }
        tried += 1;
    }
    assert!(tried >= 3, "only {tried} operations");
}

/// The last column of the matrix: permitted callers; deletions run last.
#[test]
fn who_may_is_answered() {
    let fixture = Fixture::new();
    let acme = &fixture.acme;
    let (deletes, others): (Vec<&Row>, Vec<&Row>) = ROWS.iter().partition(|row| row.shape == Shape::Delete);
    for row in others.into_iter().chain(deletes) {
        let token = match row.shape {
            Shape::Public => None,
            // A new session: the request may end it.
            Shape::Session => Some(fixture.log_in(&acme.user("member"))),
            _ if row.operator => Some(fixture.operator().to_owned()),
            _ => Some(acme.key.clone()),
        };
        let answer = fixture.send(row.method(), &row.path(acme), token.as_deref(), &row.body(acme));
        let is_right = answer.status == row.right() || Some(answer.status) == row.or;
        assert!(is_right, "{}: {} {}", row.operation, answer.status, answer.text);
        if !row.operator {
            clean(&fixture, row, &answer, "", &[&fixture.bolt]);
        }
    }
}

/// The list of nodes, which a process without a switch does not have.
#[test]
fn the_list_of_nodes_has_the_limits_of_the_others() {
    let fixture = Fixture::new();
    let get = |query: &str| {
        let path = format!("/api/v1/nodes{query}");
        fixture.send("GET", &path, Some(fixture.operator()), &Value::Null)
    };
    let page = get("").json();
    assert_eq!(
        (&page["limit"], &page["offset"], &page["total"]),
        (&50.into(), &0.into(), &crate::common::nodes::count().into()),
        "{page}"
    );
    let behind = get("?limit=500&offset=9223372036854775807").json();
    assert_eq!((&behind["limit"], &behind["items"]), (&500.into(), &Value::Array(Vec::new())), "{behind}");
    for wrong in ["limit=0", "limit=501", "limit=x", "limit=", "offset=-1", "offset=x"] {
        let answer = get(&format!("?{wrong}"));
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (400, &"invalid_request".into()),
            "{wrong}"
        );
    }
}

/// The error envelope with that status and code, and nothing else.
fn refused(row: &Row, answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{}: {}", row.operation, answer.text);
    let body = answer.json();
    assert_eq!(body["error"]["code"], code, "{}: {}", row.operation, answer.text);
    assert_eq!(body.as_object().unwrap().len(), 1, "{}: {}", row.operation, answer.text);
}

/// The response contains no name and no id of these tenants, except for what the caller sent.
fn clean(fixture: &Fixture, row: &Row, answer: &Answer, sent: &str, tenants: &[&Tenant]) {
    if row.operation == "POST /api/v1/auth/login" {
        // A login returns the user's own data.
        return;
    }
    let text = answer.text.to_lowercase();
    for tenant in tenants {
        assert!(!text.contains(&tenant.plant), "{} shows {}: {}", row.operation, tenant.plant, answer.text);
        for (name, id) in &tenant.ids {
            let shared = fixture.is_shared(id) || sent.contains(id.as_str());
            assert!(
                shared || !text.contains(id.as_str()),
                "{} shows {name} {id}: {}",
                row.operation,
                answer.text
            );
        }
    }
}

/// Every operation as `GET /path`.
fn operations() -> Vec<(String, Value)> {
    let document = &*DOCUMENT;
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, item): (&String, &Value)| -> Vec<(String, Value)> {
        let item = item.as_object().unwrap().iter();
        item.map(|(method, operation)| (format!("{} {path}", method.to_uppercase()), operation.clone()))
            .collect()
    };
    paths.iter().flat_map(of_path).collect()
}

fn row_of(operation: &str) -> &'static Row {
    let row = ROWS.iter().find(|row| row.operation == operation);
    row.unwrap_or_else(|| panic!("{operation} has no row in tests/isolation/policy.rs"))
}
