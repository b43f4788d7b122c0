//! No text from a phone, a capture, a contact or a program becomes markup.

use crate::browser::Browser;
use crate::hostile;
use crate::markup::assert_harmless;

/// Texts that execute if a page forgets to escape: in text, in attributes with either quote, in URLs and in scripts.
/// The browser tests use the same texts.
fn attacks() -> Vec<String> {
    serde_json::from_str(include_str!("../../../tests/browser/attacks.json")).unwrap()
}

/// Every page, with an id where the path has one.
pub(crate) const PAGES: &[&str] = &[
    "/",
    "/?days=7",
    "/calls",
    "/calls?more=1",
    "/calls/1",
    "/live",
    "/live/calls/1",
    "/live/rooms/1",
    "/phones",
    "/rooms",
    "/rooms/1",
    "/settings",
    "/settings/agents",
    "/settings/agents/1",
    "/settings/agents/new",
    "/settings/ai-prices",
    "/settings/ai-prices/1",
    "/settings/api-keys",
    "/settings/api-keys/1",
    "/settings/cost-rates",
    "/settings/cost-rates/1",
    "/settings/conference-rooms",
    "/settings/conference-rooms/1",
    "/settings/extensions",
    "/settings/extensions/1",
    "/settings/fx-rates",
    "/settings/fx-rates/1",
    "/settings/numbers",
    "/settings/numbers/1",
    "/settings/organisations",
    "/settings/organisations/1",
    "/settings/own-extension",
    "/settings/prompts",
    "/settings/prompts/new",
    "/settings/sell-rates",
    "/settings/sell-rates/1",
    "/settings/sell-rates/new",
    "/settings/teams",
    "/settings/users",
    "/settings/users/1",
    "/settings/webhooks",
    "/settings/webhooks/1",
    "/settings/webhooks/1/deliveries",
    "/settings/webhooks/1/deliveries/1",
    "/trunks",
];

#[tokio::test]
async fn no_text_of_the_api_becomes_markup() {
    for attack in &attacks() {
        let mut browser = Browser::logged_in(hostile::api(attack));
        for path in PAGES {
            let page = browser.get(path).await;
            assert_eq!(page.status, 200, "{path}: {}", page.text);
            assert!(page.text.contains("mark"), "{path} shows the user's name");
            assert_harmless(&page.text, &format!("{path} with {attack:?}"));
        }
    }
}

/// Ensures that the test above sees texts: most pages show many texts of the API.
#[tokio::test]
async fn pages_show_texts() {
    let mut browser = Browser::logged_in(hostile::api("mark<i>"));
    for (path, least) in [
        ("/calls", 5),
        ("/calls?more=1", 8),
        ("/calls/1", 36),
        ("/live/calls/1", 8),
        ("/live", 8),
        ("/live/rooms/1", 4),
        ("/phones", 6),
        ("/settings/numbers/1", 4),
        // The number, four targets, and the values the form showed.
        ("/settings/own-extension", 9),
        ("/settings/webhooks/1", 8),
        ("/settings/webhooks/1/deliveries", 4),
        // Event, ids, error, answer, and both sides of the payload.
        ("/settings/webhooks/1/deliveries/1", 7),
        ("/trunks", 8),
        ("/rooms/1", 4),
    ] {
        let page = browser.get(path).await;
        let shown = page.text.matches("mark&lt;i&gt;").count();
        assert!(shown >= least, "{path} shows {shown}");
    }
}

#[tokio::test]
async fn no_text_of_an_error_becomes_markup() {
    for attack in &attacks() {
        for status in [400, 403, 404, 409, 429, 503] {
            let mut browser = Browser::logged_in(hostile::refusing(status, attack));
            for path in PAGES {
                let page = browser.get(path).await;
                // A live call that is over leads to its record.
                assert!([status, 200, 303].contains(&page.status), "{path}: {}", page.status);
                assert_harmless(&page.text, &format!("{path} refused with {attack:?}"));
            }
        }
    }
}

/// The file is a separate page, opened from the reader's disk.
#[tokio::test]
async fn no_text_of_a_call_becomes_markup_in_its_report() {
    for attack in &attacks() {
        let mut browser = Browser::logged_in(hostile::api(attack));
        let page = browser.get("/calls/1/report").await;
        assert_eq!(page.status, 200, "{}", page.text);
        assert_eq!(page.headers["content-disposition"], "attachment; filename=\"call-1.html\"");
        for mark in ["<img", "<iframe", "<svg/", "<!--", "onload=\"", "onfocus=\""] {
            assert!(!page.text.contains(mark), "{mark} with {attack:?}");
        }
        assert_eq!(page.text.matches("<script").count(), 1, "the page's own, with {attack:?}");
    }
    let mut browser = Browser::logged_in(hostile::api("mark<i>"));
    let page = browser.get("/calls/1/report").await;
    let shown = page.text.matches("mark&lt;i&gt;").count();
    // The parties, the record, both sentences, and for each leg its name, rules and addresses.
    assert!(shown >= 40, "{shown} texts");
    let refused = Browser::logged_in(hostile::refusing(404, "mark")).get("/calls/1/report").await;
    assert_eq!(refused.status, 404);
    assert!(refused.headers.get("content-disposition").is_none());
}

/// Texts from the URL are shown in forms.
#[tokio::test]
async fn no_text_of_the_address_becomes_markup() {
    for attack in &attacks() {
        let encoded: String = form_urlencoded::byte_serialize(attack.as_bytes()).collect();
        let mut browser = Browser::logged_in(hostile::api("plain"));
        let paths =
            ["q", "from", "direction", "hangup_cause", "extension_id", "sort", "order", "cursor", "limit"];
        for name in paths {
            let page = browser.get(&format!("/calls?{name}={encoded}")).await;
            assert_harmless(&page.text, &format!("{name}={attack:?}"));
        }
        let page = browser.get(&format!("/settings/webhooks/1/deliveries?status={encoded}")).await;
        assert_harmless(&page.text, &format!("status of deliveries {attack:?}"));
        let page = browser.get(&format!("/settings/prompts/new?name={encoded}")).await;
        assert_harmless(&page.text, &format!("name of a prompt {attack:?}"));
        let page = browser.get(&format!("/login?next={encoded}")).await;
        assert_harmless(&page.text, attack);
        let page = browser.get(&format!("/calls/{}", encoded.replace('+', "%20"))).await;
        assert_harmless(&page.text, attack);
    }
}
