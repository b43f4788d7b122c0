//! The settings of an organisation's call-info URL and its secret.

use serde_json::{Value, json};

use crate::common::refused_urls::REFUSED_URLS;
use crate::http::desk::{As, Desk};

const URL: &str = "https://crm.example/sidetone?key=1";
const SECRET: &str = "a secret of twenty-six signs";

fn desk() -> (Desk, String) {
    let desk = Desk::start();
    let path = format!("/organisations/{}", desk.organisation("Acme"));
    (desk, path)
}

fn shown(body: &Value) -> (&str, bool) {
    (body["call_info_url"].as_str().unwrap(), body["has_call_info_secret"].as_bool().unwrap())
}

#[test]
fn the_url_is_read_back_and_the_secret_never() {
    let (desk, path) = desk();
    assert_eq!(shown(&desk.get(As::Acme, &path).body), ("", false));
    let set = desk.patch(As::Acme, &path, json!({"call_info_url": URL, "call_info_secret": SECRET}));
    assert_eq!((set.status, shown(&set.body)), (200, (URL, true)), "{}", set.body);
    assert!(set.body.get("call_info_secret").is_none());
    for who in [As::Acme, As::Operator, As::Reader] {
        for path in [path.as_str(), "/organisations"] {
            let read = desk.get(who, path);
            assert_eq!(read.status, 200);
            assert!(!read.body.to_string().contains(SECRET), "{}", read.body);
        }
        assert_eq!(shown(&desk.get(who, &path).body), (URL, true));
    }
}

#[test]
fn what_was_read_can_be_sent_back() {
    let (desk, path) = desk();
    let plain = desk.get(As::Acme, &path).body;
    assert_eq!(shown(&desk.patch(As::Acme, &path, plain).body), ("", false));
    let set = desk.patch(As::Acme, &path, json!({"call_info_url": URL, "call_info_secret": SECRET}));
    let again = desk.patch(As::Acme, &path, set.body);
    assert_eq!((again.status, shown(&again.body)), (200, (URL, true)), "the secret stays");
}

#[test]
fn a_url_needs_a_secret_and_a_secret_a_url() {
    let (desk, path) = desk();
    let cases = [
        (
            json!({"call_info_url": URL}),
            "call_info_secret: is required with call_info_url: what is sent there is signed with it",
        ),
        (
            json!({"call_info_url": URL, "call_info_secret": ""}),
            "call_info_secret: must not be empty with a call_info_url",
        ),
        (json!({"call_info_secret": SECRET}), "call_info_url: is required with call_info_secret"),
        (
            json!({"call_info_url": "", "call_info_secret": SECRET}),
            "call_info_url: must not be empty with a call_info_secret; empty clears both",
        ),
        (json!({"call_info_url": null}), "call_info_url: must not be null"),
        (json!({"call_info_secret": null}), "call_info_secret: must not be null"),
        (json!({"call_info_secret": 1}), "call_info_secret: must be a string, not a number"),
    ];
    for (body, expected) in &cases {
        let answer = desk.patch(As::Acme, &path, body.clone());
        assert_eq!((answer.status, answer.code()), (400, "invalid_request"), "{body}");
        assert_eq!(answer.message(), *expected, "{body}");
    }
    // The same for a new organisation.
    for (body, expected) in &cases[..4] {
        let mut new = json!({"name": "Coil", "sip_domain": "coil.test"});
        new.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let answer = desk.post(As::Operator, "/organisations", new);
        assert_eq!((answer.status, answer.message()), (400, *expected), "{body}");
    }
    assert_eq!(shown(&desk.get(As::Acme, &path).body), ("", false), "nothing was kept");
}

#[test]
fn the_two_change_apart_and_empty_clears_both() {
    let (desk, path) = desk();
    let patch = |body: Value| {
        let answer = desk.patch(As::Acme, &path, body);
        assert_eq!(answer.status, 200, "{}", answer.body);
        let (url, secret) = shown(&answer.body);
        (url.to_owned(), secret)
    };
    let both = || json!({"call_info_url": URL, "call_info_secret": SECRET});
    let set = (URL.to_owned(), true);
    let cleared = (String::new(), false);
    assert_eq!(patch(both()), set);
    assert_eq!(patch(json!({"call_info_url": "https://erp.example/"})).0, "https://erp.example/");
    assert_eq!(patch(json!({"call_info_secret": "x".repeat(16)})), ("https://erp.example/".to_owned(), true));
    assert_eq!(patch(json!({"call_info_url": ""})), cleared);
    assert_eq!(patch(both()), set);
    assert_eq!(patch(json!({"call_info_secret": ""})), cleared);
    assert_eq!(patch(both()), set);
    assert_eq!(patch(json!({"call_info_url": "", "call_info_secret": ""})), cleared);
    let again = desk.patch(As::Acme, &path, json!({"call_info_url": URL}));
    assert_eq!(again.status, 400, "the old secret is gone with its URL");
}

#[test]
fn a_secret_has_16_to_256_characters() {
    let (desk, path) = desk();
    let set = |secret: String| {
        desk.patch(As::Acme, &path, json!({"call_info_url": URL, "call_info_secret": secret}))
    };
    for good in ["x".repeat(16), "é".repeat(256), " spaces are kept ".to_owned()] {
        assert_eq!(set(good.clone()).status, 200, "{good}");
    }
    for bad in ["x".repeat(15), "é".repeat(257), "a secret\nof two lines".to_owned()] {
        let answer = set(bad.clone());
        assert_eq!(answer.status, 400);
        let expected =
            "call_info_secret: must be 16 to 256 characters on one line, without control characters";
        assert_eq!(answer.message(), expected, "{bad}");
    }
}

/// W6 when the URL is saved.
#[test]
fn no_url_that_is_not_public_is_kept() {
    let (desk, path) = desk();
    for (url, expected) in REFUSED_URLS {
        let answer = desk.patch(As::Acme, &path, json!({"call_info_url": url, "call_info_secret": SECRET}));
        assert_eq!((answer.status, answer.code()), (400, "invalid_request"), "{url}");
        assert!(
            answer.message().starts_with(&format!("call_info_url: {expected}")),
            "{url}: {}",
            answer.message()
        );
    }
    let long = format!("https://crm.example/{}", "x".repeat(2_029));
    let answer = desk.patch(As::Acme, &path, json!({"call_info_url": long, "call_info_secret": SECRET}));
    assert_eq!(answer.message(), "call_info_url: must be at most 2048 characters");
    assert_eq!(shown(&desk.get(As::Acme, &path).body), ("", false));
    // The same rules apply to the operator.
    let answer = desk.patch(
        As::Operator,
        &path,
        json!({"call_info_url": "https://127.0.0.1/", "call_info_secret": SECRET}),
    );
    assert_eq!(answer.status, 400);
}

#[test]
fn it_is_for_who_writes_organisations_and_for_ones_own() {
    let (desk, path) = desk();
    let body = || json!({"call_info_url": URL, "call_info_secret": SECRET});
    for (who, status) in [
        (As::Nobody, 401),
        (As::Reader, 403),
        (As::Rooms, 403),
        (As::Supervisor, 403),
        (As::Bolt, 403),
        (As::Acme, 200),
        (As::Operator, 200),
    ] {
        assert_eq!(desk.patch(who, &path, body()).status, status, "{who:?}");
    }
}

#[test]
fn a_new_organisation_may_have_one_from_the_start() {
    let desk = Desk::start();
    let body = json!({
        "name": "Coil", "sip_domain": "coil.test", "call_info_url": URL, "call_info_secret": SECRET
    });
    let made = desk.post(As::Operator, "/organisations", body);
    assert_eq!((made.status, shown(&made.body)), (201, (URL, true)), "{}", made.body);
    assert_eq!(shown(&desk.get(As::Operator, made.location()).body), (URL, true));
}

/// The secret that signs the callbacks of calls: set, shown as present only, removed.
#[test]
fn the_secret_of_callbacks_is_set_and_never_shown() {
    let desk = Desk::start();
    let path = format!("/organisations/{}", desk.organisation("Acme"));
    assert_eq!(desk.get(As::Acme, &path).body["has_callback_secret"], false);
    for (secret, has) in [(SECRET, true), ("", false)] {
        let set = desk.patch(As::Acme, &path, json!({"callback_secret": secret}));
        assert_eq!((set.status, &set.body["has_callback_secret"]), (200, &json!(has)), "{}", set.body);
        assert!(set.body.get("callback_secret").is_none());
        assert_eq!(desk.get(As::Acme, &path).body["has_callback_secret"], has);
    }
    let short = desk.patch(As::Acme, &path, json!({"callback_secret": "short"}));
    assert_eq!(
        (short.status, short.message()),
        (400, "callback_secret: must be 16 to 256 characters on one line, without control characters")
    );
    let body = json!({"name": "Coil", "sip_domain": "coil.test", "callback_secret": SECRET});
    assert_eq!(desk.post(As::Operator, "/organisations", body).body["has_callback_secret"], true);
}
