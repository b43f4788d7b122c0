//! The deliveries of a webhook: who sees them, and how one is sent again.

use serde_json::json;
use sidetone_model::ids::NodeId;
use sidetone_model::webhook::Attempt;
use sidetone_store::SettledAttempt;
use uuid::Uuid;

use crate::common::records::at;
use crate::panel::site::{Page, Site};

/// The response of the test's endpoint: markup, as an attacker would send.
const ANSWER: &str = "<script>alert(1)</script>";

/// A webhook of Acme.
struct Hook {
    id: String,
    token: String,
}

impl Hook {
    fn new(site: &Site) -> Self {
        let token = site.office.login("boss@acme.test");
        let body = json!({"url": "https://crm.example/hook?a=<b>", "events": ["call.ended"]});
        let made = site.office.ask(&token, "POST /webhooks", body);
        assert_eq!(made.status, 201, "{}", made.text);
        Self { id: made.id().to_owned(), token }
    }

    /// Queues a test event; the delivery's id.
    fn queue(&self, site: &Site) -> String {
        let made = site.office.ask(&self.token, &format!("POST /webhooks/{}/test", self.id), json!({}));
        assert!((200..300).contains(&made.status), "{}", made.text);
        made.id().to_owned()
    }

    /// Attempts what is due; `error` is null for a success.
    fn attempt(&self, site: &Site, second: i64, status_code: u16, error: Option<&str>) {
        let (store, webhook) = (&site.office.store, self.id.parse().unwrap());
        site.office.runtime.block_on(async {
            let now = at(100 + second);
            let due =
                store.claim_deliveries(NodeId(Uuid::from_u128(1)), &[(webhook, 9)], 9, now).await.unwrap();
            assert!(!due.is_empty(), "there is a delivery to attempt");
            let settled = due.into_iter().map(|delivery| SettledAttempt {
                delivery,
                attempt: Attempt {
                    at: now,
                    status_code: Some(status_code),
                    duration_ms: 1_234,
                    error: error.map(str::to_owned),
                    answer: Some(ANSWER.to_owned()),
                },
                retry_at: error.map(|_| at(101 + second)),
            });
            store.settle_deliveries(&settled.collect::<Vec<_>>(), now).await.unwrap();
        });
    }

    fn path(&self) -> String {
        format!("/settings/webhooks/{}/deliveries", self.id)
    }
}

/// The positions of these texts in a page, which must contain all of them.
fn places(page: &Page, texts: &[&str]) -> Vec<usize> {
    texts.iter().map(|text| page.text.find(text).unwrap_or_else(|| panic!("{text}: {}", page.text))).collect()
}

#[test]
fn a_delivery_is_shown_with_its_attempts_and_its_payload() {
    let site = Site::open(false);
    let hook = Hook::new(&site);
    let mut boss = site.logged_in("boss@acme.test");
    assert!(boss.get(&hook.path()).text.contains("There is no delivery."));
    let id = hook.queue(&site);
    hook.attempt(&site, 0, 503, Some("the endpoint answered <b>503"));
    hook.attempt(&site, 1, 502, Some("the endpoint answered 502"));
    let list = boss.get(&hook.path());
    // Only the last attempt.
    places(&list, &["webhook.test", ">retrying<", ">2<", ">502<", "answered 502", "a=&lt;b&gt;"]);
    assert!(!list.text.contains(">503<") && !list.text.contains("<b>"), "{}", list.text);
    let one = format!("{}/{id}", hook.path());
    for page in [&list, &boss.get(&format!("/settings/webhooks/{}", hook.id))] {
        assert!(page.links().contains(&one), "{}", page.text);
    }
    let page = boss.get(&one);
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(places(&page, &[">502<", ">503<"]).is_sorted(), "the newest attempt is the first: {}", page.text);
    places(&page, &["answered &lt;b&gt;503", "&lt;script&gt;alert(1)", "ms<", "<time datetime=\""]);
    // One field per line.
    let payload =
        format!("\n  &quot;data&quot;: {{\n    &quot;webhook_id&quot;: &quot;{}&quot;\n  }}", hook.id);
    places(&page, &[&payload]);
    assert!(!page.text.contains(ANSWER));
}

#[test]
fn deliveries_are_filtered_and_paged() {
    let site = Site::open(false);
    let hook = Hook::new(&site);
    let mut boss = site.logged_in("boss@acme.test");
    let delivered = hook.queue(&site);
    hook.attempt(&site, 0, 200, None);
    let waiting: Vec<String> = (0..51).map(|_| hook.queue(&site)).collect();
    let page = boss.get(&format!("{}?status=delivered", hook.path()));
    assert!(page.text.contains("<option value=\"delivered\" selected>"), "{}", page.text);
    let shown = |page: &Page, id: &str| page.links().contains(&format!("{}/{id}", hook.path()));
    assert!(shown(&page, &delivered) && !shown(&page, &waiting[0]));
    let page = boss.get(&format!("{}?status=pending", hook.path()));
    assert!(!shown(&page, &delivered) && shown(&page, &waiting[50]) && !shown(&page, &waiting[0]));
    // The next page keeps the filter.
    let (_, next) = page.text.split_once("rel=\"next\" href=\"").unwrap();
    let page = boss.get(&next.split('"').next().unwrap().replace("&amp;", "&"));
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(shown(&page, &waiting[0]) && !shown(&page, &waiting[50]) && !shown(&page, &delivered));
    let page = boss.get(&format!("{}?status=lost", hook.path()));
    assert_eq!(page.status, 400);
    places(&page, &["id=\"status-problem\"", "<option value=\"lost\" selected>"]);
}

#[test]
fn a_delivery_is_sent_again_unless_its_webhook_is_switched_off() {
    let site = Site::open(false);
    let hook = Hook::new(&site);
    let mut boss = site.logged_in("boss@acme.test");
    let one = format!("{}/{}", hook.path(), hook.queue(&site));
    hook.attempt(&site, 0, 200, None);
    let page = boss.get(&one);
    places(&page, &[">delivered<", "Send again"]);
    let again = format!("{one}/redeliver");
    assert_eq!(boss.post(&again, &[]).status, 403, "without the token of the form");
    places(&boss.get(&one), &[">delivered<"]);
    let token = page.token();
    let sent = boss.post(&again, &[("csrf", &token)]);
    assert_eq!((sent.status, sent.header("location")), (303, one.as_str()), "{}", sent.text);
    places(&boss.get(&one), &[">pending<"]);
    let off = site.office.ask(&hook.token, &format!("PATCH /webhooks/{}", hook.id), json!({"active": false}));
    assert_eq!(off.status, 200, "{}", off.text);
    let refused = boss.post(&again, &[("csrf", &token)]);
    assert_eq!(refused.status, 409, "{}", refused.text);
    places(&refused, &["role=\"alert\"", "The webhook is switched off", "Send again"]);
    places(&boss.get(&hook.path()), &["switched off"]);
}

/// The API answers 403 for resources of another organisation, and 404 for unknown ones.
#[test]
fn deliveries_are_for_those_who_manage_webhooks_of_the_organisation() {
    let site = Site::open(false);
    let hook = Hook::new(&site);
    let id = hook.queue(&site);
    let one = format!("{}/{id}", hook.path());
    for email in ["eve@acme.test", "bob@acme.test", "mia@acme.test", "boss@bolt.test"] {
        let mut browser = site.logged_in(email);
        for path in [hook.path(), one.clone(), format!("/settings/webhooks/{}", hook.id)] {
            let page = browser.get(&path);
            assert_eq!(page.status, 403, "{email} {path}");
            assert!(!page.text.contains("crm.example") && !page.text.contains("webhook.test"), "{email}");
        }
        let token = browser.get("/settings").token();
        assert_eq!(browser.post(&format!("{one}/redeliver"), &[("csrf", &token)]).status, 403, "{email}");
    }
    // A delivery is found only below its own webhook.
    let bolt = site.office.login("boss@bolt.test");
    let body = json!({"url": "https://bolt.example/", "events": ["call.ended"]});
    let foreign = site.office.ask(&bolt, "POST /webhooks", body).id().to_owned();
    let mut browser = site.logged_in("boss@bolt.test");
    let path = format!("/settings/webhooks/{foreign}/deliveries/{id}");
    assert_eq!(browser.get(&path).status, 404);
    let token = browser.get("/settings").token();
    assert_eq!(browser.post(&format!("{path}/redeliver"), &[("csrf", &token)]).status, 404);
    let mut root = site.logged_in("root@platform.test");
    assert_eq!(root.get(&one).status, 200, "the operator sees every organisation");
}

#[test]
fn a_test_event_is_sent_and_a_new_secret_is_shown_once() {
    let site = Site::open(false);
    let hook = Hook::new(&site);
    let mut boss = site.logged_in("boss@acme.test");
    let page = format!("/settings/webhooks/{}", hook.id);
    for action in ["test", "rotate-secret"] {
        assert_eq!(boss.post(&format!("{page}/{action}"), &[]).status, 403, "without the token of the form");
    }
    let token = boss.get(&page).token();
    let sent = boss.post(&format!("{page}/test"), &[("csrf", &token)]);
    assert_eq!(sent.status, 303, "{}", sent.text);
    places(&boss.get(sent.header("location")), &["webhook.test", ">pending<"]);
    let rotated = boss.post(&format!("{page}/rotate-secret"), &[("csrf", &token)]);
    assert_eq!(rotated.status, 200, "{}", rotated.text);
    let (_, secret) = rotated.text.split_once("<p class=\"secret\">").unwrap();
    let secret = secret.split('<').next().unwrap();
    assert!(secret.starts_with("whsec_"), "{secret}");
    assert!(!boss.get(&page).text.contains(secret));
    let stored = site.office.get(&hook.token, &format!("/webhooks/{}", hook.id));
    assert!(stored.body["old_secret_until"].is_string(), "{}", stored.text);
    for (email, status) in [("bob@acme.test", 403), ("boss@bolt.test", 403)] {
        let mut other = site.logged_in(email);
        let token = other.get("/settings").token();
        for action in ["test", "rotate-secret"] {
            let page = other.post(&format!("{page}/{action}"), &[("csrf", &token)]);
            assert_eq!(page.status, status, "{email} {action}");
        }
    }
}
