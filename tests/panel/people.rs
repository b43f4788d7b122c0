//! What each role and a foreign tenant see.

use crate::records::ended;
use crate::site::Site;

/// Who, the calls that they see, and whether they manage: keys and people, and trunks.
const PEOPLE: [(&str, &[u128], bool); 5] = [
    ("root@platform.test", &[1, 2, 3], true),
    ("boss@acme.test", &[1, 2], true),
    ("eve@acme.test", &[1], false),
    ("bob@acme.test", &[1], false),
    ("boss@bolt.test", &[3], true),
];

#[test]
fn the_log_and_the_page_of_a_call_show_what_is_in_scope() {
    let site = Site::open(false);
    for (email, seen, _) in PEOPLE {
        let mut browser = site.logged_in(email);
        let log = browser.get("/calls");
        let export = browser.get("/calls/export");
        assert_eq!((log.status, export.status), (200, 200), "{email}");
        for number in 1..=3 {
            let (call, is_seen) = (ended(number).call_uuid, seen.contains(&number));
            assert_eq!(log.text.contains(&format!("/calls/{call}")), is_seen, "{email} {number}");
            assert_eq!(export.text.contains(&format!("700000000{number}")), is_seen, "{email} {number}");
            let page = browser.get(&format!("/calls/{call}"));
            assert_eq!(page.status, if is_seen { 200 } else { 403 }, "{email} {number}");
            assert_eq!(page.text.contains(&format!("700000000{number}")), is_seen, "{email} {number}");
        }
        assert_eq!(browser.get("/calls/00000000-0000-0000-0000-000000000009").status, 404);
        assert_eq!(browser.get("/calls/nothing").status, 400);
    }
}

#[test]
fn filters_are_those_of_the_api_and_errors_stand_beside_the_field() {
    let site = Site::open(false);
    let mut browser = site.logged_in("boss@acme.test");
    let page = browser.get("/calls?media_verdict=lossy_inbound&q=&from=2025-12-31");
    assert!(page.text.contains(&ended(1).call_uuid.to_string()));
    assert!(!page.text.contains(&ended(2).call_uuid.to_string()));
    assert!(page.text.contains("<option value=\"lossy_inbound\" selected>"), "{}", page.text);
    let page = browser.get("/calls?mos_max=9&from=yesterday");
    assert_eq!(page.status, 400);
    assert!(page.text.contains("id=\"mos_max-problem\"") && page.text.contains("id=\"from-problem\""));
    assert!(page.text.contains("value=\"yesterday\""));
    let page = browser.get(&format!("/calls?organisation_id={}", site.office.names.bolt));
    assert_eq!(page.status, 403);
}

#[test]
fn pages_by_cursor_are_disjoint() {
    let site = Site::open(false);
    let mut browser = site.logged_in("root@platform.test");
    let mut path = "/calls?limit=1".to_owned();
    let mut seen = Vec::new();
    loop {
        let page = browser.get(&path);
        assert_eq!(page.status, 200);
        seen.extend(
            (1..=3).filter(|number| page.text.contains(&format!("\"/calls/{}\"", ended(*number).call_uuid))),
        );
        let Some((_, next)) = page.text.split_once("rel=\"next\" href=\"") else { break };
        path = next.split('"').next().unwrap().replace("&amp;", "&");
        assert!(seen.len() <= 3, "{seen:?}");
    }
    seen.sort_unstable();
    assert_eq!(seen, [1, 2, 3]);
}

/// Cost and margin are for operators.
#[test]
fn margins_are_for_operators() {
    let site = Site::open(false);
    for (email, shown) in [("root@platform.test", true), ("boss@acme.test", false)] {
        let mut browser = site.logged_in(email);
        let pages = [browser.get("/calls"), browser.get(&format!("/calls/{}", ended(1).call_uuid))];
        for page in pages {
            assert_eq!(page.text.contains("Margin"), shown, "{email}");
        }
    }
}

/// No page links to one that answers 403.
#[test]
fn links_lead_to_pages_that_the_visitor_may_see() {
    let site = Site::open(false);
    for (email, _, manages) in PEOPLE {
        let mut browser = site.logged_in(email);
        let mut open: Vec<String> = vec!["/".to_owned()];
        let mut followed: Vec<String> = Vec::new();
        while let Some(path) = open.pop() {
            if followed.contains(&path) || path.starts_with("/api/") {
                continue;
            }
            let page = browser.get(&path);
            assert!(page.status != 403 && page.status < 500, "{email} {path}: {}", page.status);
            followed.push(path);
            if page.status == 200 && page.header("content-type").starts_with("text/html") {
                open.extend(page.links().into_iter().filter(|link| link.starts_with('/')));
            }
        }
        for path in ["/settings/users", "/settings/api-keys", "/trunks"] {
            assert_eq!(followed.iter().any(|seen| seen == path), manages, "{email} {path}");
            assert_eq!(browser.get(path).status == 403, !manages, "{email} {path}");
        }
        assert!(followed.iter().any(|path| path.starts_with("/calls/")), "{email}");
    }
}

#[test]
fn home_counts_what_is_in_scope() {
    let site = Site::open(false);
    let page = site.logged_in("eve@acme.test").get("/?days=7");
    // The records of this test are older than a week.
    assert_eq!(page.status, 200);
    assert!(page.text.contains("Last 7 days") && page.text.contains("<b>0</b>"), "{}", page.text);
}
