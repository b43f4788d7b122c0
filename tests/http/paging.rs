//! Cursor pages, on every list.

use serde_json::{Value, json};

use crate::http::desk::{As, Desk};

/// The lists of the desk, each with at least three items for the operator.
const LISTS: [&str; 12] = [
    "/agents",
    "/ai-prices",
    "/api-keys",
    "/conference-rooms",
    "/cost-rates",
    "/extensions",
    "/fx-rates",
    "/sell-rates",
    "/teams",
    "/trunks",
    "/users",
    "/webhooks",
];

/// Creates three items of every list that has fewer.
fn furnish(desk: &Desk) {
    let made = |path: &str, body: Value| {
        let made = desk.post(As::Operator, path, body);
        assert_eq!(made.status, 201, "{path}: {}", made.body);
    };
    for number in 1..=3 {
        let name = format!("thing {number}");
        made("/agents", json!({"name": "of one name", "kind": "human"}));
        made(
            "/ai-prices",
            json!({"kind": "sell", "provider": "openai", "model": name, "text_input_per_million": "1",
                "output_per_million": "1", "currency": "EUR"}),
        );
        made("/api-keys", json!({"name": name, "permissions": ["calls:read"], "allow": ["192.0.2.1"]}));
        made("/conference-rooms", json!({"name": "of one name", "number": format!("20{number}")}));
        made("/extensions", json!({"number": format!("30{number}")}));
        let price = json!({"prefix": format!("+{number}"), "per_minute": "0.01", "currency": "EUR"});
        let owned = |field: &str, owner: String| {
            let mut price = price.clone();
            price[field] = json!(owner);
            price
        };
        made("/cost-rates", owned("trunk_id", desk.trunk("acme carrier")));
        made("/sell-rates", owned("organisation_id", desk.organisation("Acme")));
        let from_time = format!("2026-01-0{number}T00:00:00Z");
        made("/fx-rates", json!({"from": "EUR", "to": "USD", "rate": "1.1", "from_time": from_time}));
        made("/teams", json!({"name": name}));
        made("/users", json!({"email": format!("user{number}@acme.test"), "role": "agent"}));
        made("/webhooks", json!({"url": "https://crm.example.com/hook", "events": ["call.ended"]}));
    }
}

/// The ids on every page by cursor, with pages of one item.
fn by_cursor(desk: &Desk, who: As, list: &str, query: &str) -> Vec<String> {
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = desk.get(who, &format!("{list}?limit=1&{query}cursor={cursor}"));
        assert_eq!(page.status, 200, "{list}: {}", page.body);
        assert_eq!(page.fields(), ["items", "limit", "next_cursor", "offset", "total"], "{list}");
        assert_eq!(page.body["offset"], seen.len(), "{list}");
        seen.extend(page.items("id").into_iter().map(str::to_owned));
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => {
                assert_eq!(page.body["total"], seen.len(), "{list}");
                return seen;
            }
        }
        assert!(seen.len() < 100, "{list}");
    }
}

#[test]
fn every_list_has_the_same_items_by_cursor_as_by_offset() {
    let desk = Desk::start();
    furnish(&desk);
    for list in LISTS {
        let whole = desk.get(As::Operator, &format!("{list}?limit=500"));
        assert_eq!(whole.fields(), ["items", "limit", "offset", "total"], "{list}");
        let ids: Vec<String> = whole.items("id").into_iter().map(str::to_owned).collect();
        assert!(ids.len() >= 3, "{list}");
        assert_eq!(by_cursor(&desk, As::Operator, list, ""), ids, "{list}");
    }
    for query in ["order=desc&", "sort=created_at&", "sort=created_at&order=desc&", "q=of&"] {
        let whole = desk.get(As::Operator, &format!("/agents?{query}limit=500"));
        let ids: Vec<String> = whole.items("id").into_iter().map(str::to_owned).collect();
        assert_eq!(by_cursor(&desk, As::Operator, "/agents", query), ids, "{query}");
    }
    for empty in ["/cdrs", "/conversations", "/numbers?q=none"] {
        let mark = if empty.contains('?') { '&' } else { '?' };
        let page = desk.get(As::Acme, &format!("{empty}{mark}cursor="));
        assert_eq!((page.status, page.body.get("next_cursor")), (200, Some(&Value::Null)), "{}", page.body);
    }
}

#[test]
fn a_page_by_cursor_goes_on_where_the_last_one_ended() {
    let desk = Desk::start();
    furnish(&desk);
    let page = |cursor: &str| desk.get(As::Acme, &format!("/extensions?limit=2&cursor={cursor}"));
    let first = page("");
    assert_eq!(first.items("number"), ["1001", "1002"]);
    let made = desk.post(As::Acme, "/extensions", json!({"number": "0999"}));
    assert_eq!(made.status, 201);
    let path = format!("/extensions/{}", desk.extension("1002"));
    assert_eq!(desk.delete(As::Acme, &path).status, 204, "the item that the page ended with");
    let second = page(first.body["next_cursor"].as_str().unwrap());
    assert_eq!(second.items("number"), ["301", "302"], "no item twice, none left out");
    assert_eq!((&second.body["total"], &second.body["offset"]), (&json!(5), &json!(2)));
}

/// A cursor belongs to the list, the filters, the sort and the organisation for which it was issued.
#[test]
fn a_cursor_of_another_list_is_refused() {
    let desk = Desk::start();
    furnish(&desk);
    let first = desk.get(As::Acme, "/extensions?limit=1&order=asc&cursor=");
    let cursor = first.body["next_cursor"].as_str().unwrap().to_owned();
    let list = |query: &str| format!("/extensions?{query}&cursor={cursor}");
    let changed = cursor.replacen('0', "1", 1);
    let organisation = desk.organisation("Acme");
    let cases = [
        (As::Bolt, list("limit=1&order=asc")),
        (As::Operator, list("limit=1&order=asc")),
        (As::Supervisor, list("limit=1&order=asc")),
        (As::Acme, list("limit=1&order=desc")),
        (As::Acme, list("limit=1&order=asc&sort=created_at")),
        (As::Acme, list("limit=1&order=asc&q=1")),
        (As::Acme, list(&format!("limit=1&order=asc&organisation_id={organisation}"))),
        (As::Acme, format!("/teams?order=asc&cursor={cursor}")),
        (As::Acme, format!("/extensions?order=asc&cursor={changed}")),
        (As::Acme, format!("/extensions?order=asc&cursor={}", &cursor[..cursor.len() - 2])),
        (As::Acme, "/extensions?cursor=next".to_owned()),
    ];
    for (who, path) in cases {
        let answer = desk.get(who, &path);
        assert_eq!((answer.status, answer.code()), (400, "invalid_request"), "{who:?} {path}");
        assert!(answer.message().starts_with("cursor: must be the next_cursor"), "{}", answer.message());
    }
    for accepted in [list("order=asc&limit=1"), list("order=asc&limit=2"), list("order=asc")] {
        assert_eq!(desk.get(As::Acme, &accepted).status, 200, "{accepted}");
    }
    let both = desk.get(As::Acme, "/extensions?offset=1&cursor=");
    assert_eq!((both.status, both.message().starts_with("offset: ")), (400, true), "{}", both.message());
}
