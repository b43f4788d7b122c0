//! The view of each role and of a foreign tenant.

use std::time::{SystemTime, UNIX_EPOCH};

use sidetone_model::call::Direction;
use sidetone_model::cdr::Cdr;
use sidetone_model::device::Device;
use sidetone_model::ids::{ExtensionId, OrganisationId};
use sidetone_model::quality::{MediaVerdict, Quality};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::common::records::ended;
use crate::http::office::Names;
use crate::panel::site::Site;

/// Each user, the calls that they see, and whether they manage users, keys and trunks.
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

#[test]
fn operators_alone_see_the_nodes() {
    let site = Site::open(false);
    for (email, ..) in PEOPLE {
        let mut browser = site.logged_in(email);
        let is_operator = email == "root@platform.test";
        let page = browser.get("/nodes");
        assert_eq!(page.status, if is_operator { 200 } else { 403 }, "{email}");
        assert_eq!(browser.get("/settings").text.contains("href=\"/nodes\""), is_operator, "{email}");
        let shown = [
            "node-&lt;a&gt;",
            "(this one)",
            "draining",
            "gone",
            "4\u{202f}000",
            "31 %",
            "udp://10.0.0.2:5060",
        ];
        for text in shown {
            assert_eq!(page.text.contains(text), is_operator, "{email} {text}: {}", page.text);
        }
    }
}

/// No page has a link that leads to a 403.
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
fn home_leaves_out_older_calls() {
    let site = Site::open(false);
    let page = site.logged_in("eve@acme.test").get("/?days=7");
    // The records of this test are older than a week.
    assert_eq!(page.status, 200);
    assert!(page.text.contains("Last 7 days") && page.text.contains("<b>0</b>"), "{}", page.text);
}

/// 90 calls of Acme an hour ago, in which one extension is much worse than the others and the trunks are alike; one of
/// Bolt.
fn calls_of_today(names: Names) -> Vec<Cdr> {
    let began = Timestamp::from_micros(now_us() - 3_600_000_000);
    let call = |number: u128, organisation_id: OrganisationId, extension: u128| {
        let verdict = match (extension, number % 10) {
            (1, 0..5) | (_, 0) => MediaVerdict::LossyInbound,
            _ => MediaVerdict::Ok,
        };
        Cdr {
            organisation_id,
            started_at: began,
            direction: Direction::Outbound,
            extension_id: Some(ExtensionId(Uuid::from_u128(extension))),
            quality: Quality { verdict: Some(verdict), ..Quality::default() },
            device_a: Device {
                user_agent: Some(format!("Example <b>Phone</b> {extension}")),
                network: Some(format!("192.0.{extension}.0/24")),
            },
            ..ended(number)
        }
    };
    let mut calls: Vec<Cdr> = (0..90).map(|number| call(number, names.acme, 1 + number % 3)).collect();
    calls.push(call(1_000, names.bolt, 9));
    calls
}

#[expect(clippy::disallowed_methods, reason = "Home shows the last day")]
fn now_us() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap()
}

#[test]
fn home_counts_what_is_in_scope_and_names_what_is_worse() {
    let site = Site::with_calls(false, calls_of_today);
    let tile = |email: &str| {
        let page = site.logged_in(email).get("/");
        assert_eq!(page.status, 200, "{email}: {}", page.text);
        page.text
    };
    let acme = tile("boss@acme.test");
    assert!(acme.contains("<b>90</b>"), "{acme}");
    // 15 of 30 calls compared with 6 of 60; the extensions of these records are not stored, so they have no name.
    let worse = format!("extension_id={}", Uuid::from_u128(1));
    assert!(acme.contains(&worse) && acme.contains("50.0 %") && acme.contains("10 %"), "{acme}");
    assert!(!acme.contains(&format!("extension_id={}", Uuid::from_u128(2))), "{acme}");
    assert!(acme.contains("class=\"bar bad-part\""), "{acme}");
    // Its network and its device are the same 30 calls; the links lead to these calls.
    let mut boss = site.logged_in("boss@acme.test");
    for (filter, of_others) in [
        ("network=192.0.1.0%2F24&amp;from=", "network=192.0.2.0"),
        ("user_agent=Example+%3Cb%3EPhone%3C%2Fb%3E+1&amp;from=", "Phone%3C%2Fb%3E+2"),
    ] {
        let link = acme.split("href=\"").find(|link| link.contains(filter)).expect(filter);
        assert!(!acme.contains(of_others), "{acme}");
        let list = boss.get(&link.split('"').next().unwrap().replace("&amp;", "&"));
        assert!(list.status == 200 && list.text.contains("<small>30</small>"), "{}", list.text);
    }
    assert!(acme.contains("Example &lt;b&gt;Phone&lt;/b&gt; 1"), "{acme}");
    let bolt = tile("boss@bolt.test");
    assert!(bolt.contains("<b>1</b>") && !bolt.contains(&worse), "{bolt}");
    let eve = tile("eve@acme.test");
    assert!(eve.contains("<b>0</b>"), "calls without a team are not of hers: {eve}");
}
