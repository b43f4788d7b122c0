//! Manual REGISTER: several bindings, refresh, removal, and what is not allowed (RFC 3261 §10.3).

use sidetone_sip::message::Response;

use crate::common::site::{PASSWORD, Site, answering, directory, within};
use crate::common::wire::{Ask, Wire};

fn contacts(response: &Response) -> Vec<String> {
    let mut contacts: Vec<String> = response
        .list("Contact")
        .map(|contact| contact.split('>').next().unwrap_or_default().trim_start_matches('<').to_owned())
        .collect();
    contacts.sort();
    contacts
}

/// The registrations of one phone: one Call-ID, and a CSeq that counts up.
struct Registrations {
    wire: Wire,
    last: Ask,
}

impl Registrations {
    async fn of(site: &Site, user: &str) -> Self {
        let mut wire = Wire::open(site.sip).await;
        let last = wire.register(user, None);
        Self { wire, last }
    }

    async fn send(&mut self, headers: &[&str]) -> Response {
        let user = self.last.to.trim_start_matches("<sip:").split('@').next().unwrap().to_owned();
        let fresh = self.wire.register(&user, None);
        self.last.cseq += 1;
        self.last.branch = fresh.branch;
        self.last.headers = headers.iter().map(|line| (*line).to_owned()).collect();
        let again = self.wire.authorize(&self.last, &user, PASSWORD).await;
        self.last.cseq = again.cseq;
        self.wire.exchange(&again).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bindings_come_stay_and_go() {
    let site = Site::start().await;
    let mut phone = Registrations::of(&site, "1002").await;
    let (one, two) = ("sip:1002@127.0.0.1:40002", "sip:1002@127.0.0.1:40004");

    let answer = phone.send(&[&format!("Contact: <{one}>"), "Expires: 300"]).await;
    assert_eq!((answer.status().as_u16(), contacts(&answer)), (200, vec![one.to_owned()]));
    let answer = phone.send(&[&format!("Contact: <{two}>;expires=120")]).await;
    assert_eq!(contacts(&answer), [one, two]);
    crate::common::site::until("two bindings", || site.engine().bindings() == 2).await;

    // A refresh adds no binding, and its expiry counts from now.
    let answer = phone.send(&[&format!("Contact: <{one}>;expires=600")]).await;
    assert_eq!(contacts(&answer), [one, two]);
    let refreshed = answer.list("Contact").find(|contact| contact.contains(one)).unwrap();
    let seconds: u32 =
        refreshed.split("expires=").nth(1).unwrap().split(';').next().unwrap().parse().unwrap();
    assert!((500..=600).contains(&seconds), "{refreshed}");

    // Without a Contact it is a query.
    assert_eq!(contacts(&phone.send(&[]).await), [one, two]);
    let answer = phone.send(&[&format!("Contact: <{two}>;expires=0")]).await;
    assert_eq!(contacts(&answer), [one]);
    let answer = phone.send(&["Contact: *"]).await;
    assert_eq!(answer.status().as_u16(), 400, "* only with Expires: 0");
    let answer = phone.send(&["Contact: *", "Expires: 0"]).await;
    assert_eq!((answer.status().as_u16(), contacts(&answer).len()), (200, 0));
    crate::common::site::until("no binding is left", || site.engine().bindings() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binding_that_is_gone_rings_no_more() {
    let site = Site::start().await;
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    let mut phone = Registrations::of(&site, "1002").await;
    let gone = format!("Contact: <sip:1002@{}>;expires=0", callee.local());
    assert_eq!(phone.send(&[&gone]).await.status().as_u16(), 200);
    let outcome = within("the call", caller.call(sidetone_phone::CallPlan::to("1002"))).await.unwrap();
    assert_eq!(outcome.status, 480);
    assert_eq!(site.record().await["hangup_cause"], "USER_NOT_REGISTERED");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registration_too_brief_is_423_with_the_least() {
    let site = Site::start().await;
    let mut phone = Registrations::of(&site, "1002").await;
    let answer = phone.send(&["Contact: <sip:1002@127.0.0.1:40002>;expires=5"]).await;
    assert_eq!(answer.status().as_u16(), 423);
    assert!(answer.min_expires().is_some_and(|least| least > 5));
    assert_eq!(site.engine().bindings(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_registers_for_another() {
    let site = Site::start().await;
    let mut wire = Wire::open(site.sip).await;
    let mut ask = wire.register("1001", Some("<sip:1001@127.0.0.1:40002>"));
    ask.to = ask.to.replace("1001", "1002");
    assert_eq!(wire.authorized(&ask, "1001", PASSWORD).await.status().as_u16(), 403);
    // A domain that belongs to no organisation.
    let mut ask = wire.register("1001", Some("<sip:1001@127.0.0.1:40002>"));
    ask.uri = "sip:elsewhere.test".into();
    ask.from = ask.from.replace("acme.test", "elsewhere.test");
    ask.to = ask.to.replace("acme.test", "elsewhere.test");
    let status = wire.exchange(&ask).await.status().as_u16();
    assert!(matches!(status, 401 | 403), "{status}");
    assert_eq!(site.engine().bindings(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_registers_and_calls_nobody() {
    let site = Site::start().await;
    let callee = site.phone("1002", answering()).await;
    let mut config = site.phone_config("1001", answering());
    config.password = "wrong".into();
    let intruder = sidetone_phone::Phone::start(config).await.unwrap();
    let refused = within("the registration", intruder.register("1001")).await;
    assert!(matches!(refused, Err(sidetone_phone::PhoneError::Refused { status: 401, .. })), "{refused:?}");
    let outcome = within("the call", intruder.call(sidetone_phone::CallPlan::to("1002"))).await.unwrap();
    assert!(matches!(outcome.status, 401 | 403), "{outcome:?}");
    // However many attempts there are.
    let mut wire = Wire::open(site.sip).await;
    for attempt in 0..30 {
        let ask = wire.invite("1001", "1002");
        if wire.exchange(&ask).await.status().as_u16() == 403 {
            break; // Too many failures: the source is not even challenged for a while.
        }
        let fresh = Ask { branch: format!("{}x", ask.branch), cseq: 3, ..ask };
        let answer = wire.authorize(&fresh, "1001", &format!("guess {attempt}")).await;
        let status = wire.exchange(&answer).await.status().as_u16();
        assert!(matches!(status, 401 | 403), "{status}");
        if status == 403 {
            break;
        }
    }
    assert_eq!((site.engine().bindings(), site.engine().live_calls()), (1, 0));
    assert_eq!(*callee.calls().borrow(), sidetone_phone::Calls::default());
    let (_, page) = site.get("/cdrs").await;
    assert_eq!(page["total"], 0, "who is nobody leaves no record");
}

/// The bindings of a phone are read over HTTP, each with its source, until the phone removes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registrations_are_read_over_http() {
    let readable = directory().replace("\"margin:read\"", "\"margin:read\", \"directory:read\"");
    let site = Site::with(&readable).await;
    let mut phone = Registrations::of(&site, "1002").await;
    let (_, nothing) = site.get("/registrations").await;
    assert_eq!((&nothing["items"], &nothing["total"]), (&serde_json::json!([]), &serde_json::json!(0)));

    let agent = format!("User-Agent: Tést {}", "x".repeat(300));
    let contact = "Contact: <sip:1002@192.0.2.9:40002>;+sip.instance=\"<urn:uuid:7>\";expires=600";
    assert_eq!(phone.send(&[contact, &agent]).await.status().as_u16(), 200);
    assert_eq!(phone.send(&["Contact: <sip:1002@192.0.2.9:40004>;expires=300"]).await.status().as_u16(), 200);
    let mut other = Registrations::of(&site, "1001").await;
    assert_eq!(other.send(&["Contact: <sip:1001@192.0.2.8>"]).await.status().as_u16(), 200);

    let (status, page) = site.get("/registrations").await;
    assert_eq!((status, &page["total"]), (200, &serde_json::json!(3)), "{page}");
    let numbers: Vec<&str> =
        page["items"].as_array().unwrap().iter().map(|item| item["number"].as_str().unwrap()).collect();
    assert_eq!(numbers, ["1001", "1002", "1002"]);
    let first = &page["items"][1];
    assert_eq!(first["contact"], "sip:1002@192.0.2.9:40002");
    assert_eq!(
        (first["transport"].as_str(), first["instance"].as_str()),
        (Some("udp"), Some("<urn:uuid:7>"))
    );
    assert!(first["source"].as_str().unwrap().starts_with("127.0.0.1:"), "{first}");
    let agent = first["user_agent"].as_str().unwrap();
    assert!(agent.starts_with("Tést xx") && agent.chars().count() == 200, "{agent}");
    let second = &page["items"][2];
    assert!(second["user_agent"].is_null() && second["instance"].is_null(), "{second}");
    let at = |item: &serde_json::Value, key: &str| -> sidetone_model::time::Timestamp {
        item[key].as_str().unwrap().parse().unwrap()
    };
    let lasts = at(first, "expires_at").as_micros() - at(first, "registered_at").as_micros();
    assert!((599_000_000..=601_000_000).contains(&lasts), "{first}");

    let own = first["extension_id"].as_str().unwrap();
    let (_, page) = site.get(&format!("/registrations?extension_id={own}&limit=1&offset=1")).await;
    assert_eq!((page["items"].as_array().unwrap().len(), &page["total"]), (1, &serde_json::json!(2)));
    assert_eq!(page["items"][0]["contact"], "sip:1002@192.0.2.9:40004");
    let (status, _) = site.get("/registrations?extension_id=1002").await;
    assert_eq!(status, 400);

    assert_eq!(phone.send(&["Contact: *", "Expires: 0"]).await.status().as_u16(), 200);
    let (_, page) = site.get("/registrations").await;
    assert_eq!((&page["total"], &page["items"][0]["number"]), (&serde_json::json!(1), &"1001".into()));
}
