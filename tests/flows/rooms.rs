//! Rooms with real phones: every way to join, every key, every control, and members that the room calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_phone::{Answering, CallOutcome, CallPlan, Channel, Parcel, Phone, PhoneConfig, Voice};
use tokio::task::JoinHandle;

use crate::common::device::Device;
use crate::common::room::directory;
use crate::common::site::{Site, found, phone_config, post, until, within};

/// Rooms of every kind, two numbers that lead to them, and a trunk for other callers from loopback.
const ROOMS: &str = r#"
[[organisations.numbers]]
number = "+442071230000"
destination = { extension = "1001" }
[[organisations.numbers]]
number = "+442071230001"
destination = { conference = "300" }
[[organisations.numbers]]
number = "+442071230002"
destination = { conference = true }
[[organisations.rooms]]
name = "Open"
number = "200"
[[organisations.rooms]]
name = "Guarded"
number = "300"
participant_pin = "1234"
moderator_pin = "9876"
exemptions = [{ extension = "1005", role = "moderator" }, { extension = "1006", role = "participant" }]
[[organisations.rooms]]
name = "Small"
number = "400"
max_members = 1
[[organisations.rooms]]
name = "Led"
number = "500"
participant_pin = "1234"
moderator_pin = "9876"
wait_for_moderator = true
end_when_moderator_leaves = true
[[organisations.rooms]]
name = "Called"
number = "600"
members = ["1002", "1003", "1004"]
"#;

fn declared(carrier: Option<&Phone>) -> String {
    let directory =
        directory(1006).replacen("currency = \"EUR\"\n", "currency = \"EUR\"\ncountry_code = \"44\"\n", 1);
    let address = carrier.map_or(String::new(), |carrier| format!("address = \"sip:{}\"\n", carrier.local()));
    format!("{directory}{ROOMS}[[trunks]]\nname = \"carrier\"\naccept_from = [\"127.0.0.1\"]\n{address}")
}

async fn site() -> Site {
    Site::with(&declared(None)).await
}

/// A phone that can send digits.
fn keyed(config: PhoneConfig) -> PhoneConfig {
    PhoneConfig { voice: Some(Voice::Silence), ..config }
}

/// A phone in a call.
struct Caller {
    phone: Arc<Phone>,
    call: JoinHandle<CallOutcome>,
}

impl Caller {
    /// `phone` dials and is answered.
    async fn dials(phone: Phone, number: &str) -> Caller {
        let phone = Arc::new(phone);
        let (caller, plan) = (Arc::clone(&phone), CallPlan { talk_time: None, ..CallPlan::to(number) });
        let call = tokio::spawn(async move { caller.call(plan).await.unwrap() });
        // A caller that the room refuses is up only for the announcement.
        until("the answer", || phone.calls().borrow().up == 1 || call.is_finished()).await;
        Caller { phone, call }
    }

    /// Sends keys by events in the media (RFC 4733).
    async fn keys(&self, digits: &str) {
        self.phone.dial(digits).await.unwrap();
    }

    /// Sends keys by INFO.
    async fn informs(&self, digits: &str) {
        for digit in digits.chars() {
            let mut parcel = Parcel::new(Channel::Info, format!("Signal={digit}\r\nDuration=160\r\n"));
            parcel.content_type = "application/dtmf-relay".into();
            assert_eq!(self.phone.send(parcel).await.unwrap(), 200);
        }
    }

    /// Waits until the switch hangs up.
    async fn hung_up(self) {
        let outcome = within("to be hung up", self.call).await.unwrap();
        assert_eq!((outcome.status, outcome.ended_by_peer), (200, true));
    }

    async fn hangs_up(self) {
        self.phone.hang_up().await.unwrap();
        within("the end of the call", self.call).await.unwrap();
    }
}

/// An extension that dials.
async fn extension(site: &Site, number: &str, dialled: &str) -> Caller {
    let phone = site.phone_of(keyed(site.phone_config(number, Answering::Ring))).await;
    Caller::dials(phone, dialled).await
}

/// An external caller that dials.
async fn outsider(site: &Site, number: &str, dialled: &str) -> Caller {
    let mut config = keyed(phone_config(site.sip, number, Answering::Ring));
    config.domain = "carrier.example".into();
    config.password = String::new();
    Caller::dials(Phone::start(config).await.unwrap(), dialled).await
}

/// The path of a live room.
async fn path(site: &Site, number: &str) -> String {
    let rooms = site.engine().store.directory().await.unwrap().rooms;
    let room = rooms.iter().find(|room| room.number == number).unwrap();
    format!("/conferences/svc-room-{}", room.id)
}

/// The members of a room, as `number role` in the order in which they joined, with `muted` where it applies; empty when
/// the room is not live.
fn people(room: &Value) -> Vec<String> {
    let members = room["members"].as_array().map(Vec::as_slice).unwrap_or_default();
    members
        .iter()
        .map(|member| {
            let muted = if member["muted"] == true { " muted" } else { "" };
            format!("{} {}{muted}", member["number"].as_str().unwrap(), member["role"].as_str().unwrap())
        })
        .collect()
}

/// The room, once its members are these; null when the list is empty and the room is not live.
async fn holds(site: &Site, number: &str, expected: &[&str]) -> Value {
    let path = path(site, number).await;
    found(&format!("{expected:?} in room {number}"), async || {
        let (status, room) = site.get(&path).await;
        assert!(status == 200 || status == 404, "{room}");
        (people(&room) == expected).then_some(room)
    })
    .await
}

async fn control(site: &Site, number: &str, what: &str, body: &str) -> (u16, Value) {
    post(site.http, &format!("{}/{what}", path(site, number).await), "", body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pins_are_keyed_and_every_key_of_the_table_works() {
    let site = site().await;
    let ada = extension(&site, "1001", "300").await;
    ada.keys("1234#").await;
    let room = holds(&site, "300", &["1001 participant"]).await;
    assert_eq!(room["room_name"], "Guarded");
    let bob = extension(&site, "1002", "300").await;
    bob.informs("9876#").await;
    holds(&site, "300", &["1001 participant", "1002 moderator"]).await;

    ada.keys("*1").await;
    holds(&site, "300", &["1001 participant muted", "1002 moderator"]).await;
    // Keys for moderators have no effect from a participant; the last of these keys shows that the others arrived.
    ada.keys("*5*7*0*2").await;
    let room = holds(&site, "300", &["1001 participant", "1002 moderator"]).await;
    assert_eq!((&room["locked"], &room["all_muted"]), (&json!(false), &json!(false)));

    bob.informs("*7").await;
    let room = holds(&site, "300", &["1001 participant muted", "1002 moderator"]).await;
    assert_eq!(room["all_muted"], true);
    bob.informs("*7").await;
    holds(&site, "300", &["1001 participant", "1002 moderator"]).await;

    bob.informs("*5").await;
    let live = path(&site, "300").await;
    found("a lock", async || site.get(&live).await.1["locked"].as_bool().filter(|locked| *locked)).await;
    // A participant is refused while the room is locked, even an exempt one; a moderator is admitted.
    let late = extension(&site, "1003", "300").await;
    late.keys("1234#").await;
    late.hung_up().await;
    extension(&site, "1006", "300").await.hung_up().await;
    let cy = extension(&site, "1004", "300").await;
    cy.keys("9876#").await;
    holds(&site, "300", &["1001 participant", "1002 moderator", "1004 moderator"]).await;

    bob.informs("*0").await;
    for caller in [ada, bob, cy] {
        caller.hung_up().await;
    }
    assert_eq!(site.get(&live).await.0, 404);
    site.idle().await;
    let records = site.records(5).await;
    assert!(records.iter().all(|record| record["hangup_cause"] == "NORMAL_CLEARING"), "{records:#?}");
    assert!(records.iter().all(|record| record["destination_number"] == "300"), "{records:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_wrong_pins_and_nobody_was_there() {
    let site = site().await;
    let eve = outsider(&site, "+447700900666", "+442071230001").await;
    eve.keys("1111#2222#3333#").await;
    eve.hung_up().await;
    let record = site.record().await;
    assert_eq!((&record["hangup_cause"], &record["direction"]), (&json!("CALL_REJECTED"), &json!("inbound")));
    assert_eq!(record["destination_number"], "+442071230001");
    let (_, page) = site
        .get(&format!(
            "{}/sessions",
            path(&site, "300").await.replace("conferences/svc-room-", "conference-rooms/")
        ))
        .await;
    assert_eq!(page["total"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_world_comes_in_and_exempt_extensions_need_no_pin() {
    let site = site().await;
    let cat = outsider(&site, "+447700900001", "+442071230001").await;
    // The digits end by a pause.
    cat.keys("1234").await;
    holds(&site, "300", &["+447700900001 participant"]).await;
    // First prompted for the number of the room.
    let dan = outsider(&site, "+447700900002", "+442071230002").await;
    dan.keys("999#").await;
    dan.keys("300#9876#").await;
    holds(&site, "300", &["+447700900001 participant", "+447700900002 moderator"]).await;
    let (ada, bob) = (extension(&site, "1005", "300").await, extension(&site, "1006", "300").await);
    let all = ["+447700900001 participant", "+447700900002 moderator", "1005 moderator", "1006 participant"];
    let room = found("four members", async || {
        let room = site.get(&path(&site, "300").await).await.1;
        (people(&room).len() == 4).then_some(room)
    })
    .await;
    let mut seen = people(&room);
    seen[2..].sort_unstable();
    assert_eq!(seen, all);
    // An external caller is not exempt, whatever number it shows.
    let eve = outsider(&site, "1005", "+442071230001").await;
    eve.keys("#").await;
    for caller in [cat, dan, ada, bob] {
        caller.hangs_up().await;
    }
    holds(&site, "300", &[]).await;
    eve.hangs_up().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_room_says_so_and_a_led_one_waits_and_ends() {
    let site = site().await;
    let ada = extension(&site, "1001", "400").await;
    holds(&site, "400", &["1001 participant"]).await;
    extension(&site, "1002", "400").await.hung_up().await;
    holds(&site, "400", &["1001 participant"]).await;
    ada.hangs_up().await;

    let bob = extension(&site, "1003", "500").await;
    bob.keys("1234#").await;
    holds(&site, "500", &["1003 participant"]).await;
    let heard = bob.phone.heard();
    until("music is heard", || bob.phone.heard() > heard + 25).await;
    let cy = extension(&site, "1004", "500").await;
    cy.keys("9876#").await;
    holds(&site, "500", &["1003 participant", "1004 moderator"]).await;
    cy.hangs_up().await;
    bob.hung_up().await;
    holds(&site, "500", &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_control_reaches_the_phones() {
    let site = site().await;
    let (ada, bob) = (extension(&site, "1001", "200").await, extension(&site, "1002", "200").await);
    let room = found("two members", async || {
        let room = site.get(&path(&site, "200").await).await.1;
        (people(&room).len() == 2).then_some(room)
    })
    .await;
    let id_of = |number: &str| {
        let member = room["members"].as_array().unwrap().iter().find(|member| member["number"] == number);
        member.unwrap()["id"].as_u64().unwrap()
    };
    let (first, second) = (id_of("1001"), id_of("1002"));
    let muted = async |id: u64| {
        let room = site.get(&path(&site, "200").await).await.1;
        let members = room["members"].as_array().unwrap().clone();
        members.iter().find(|member| member["id"] == id).unwrap()["muted"] == true
    };
    assert_eq!(control(&site, "200", &format!("members/{first}/mute"), "").await, (204, Value::Null));
    assert!(muted(first).await && !muted(second).await);
    // A muted member may unmute itself.
    ada.keys("*2").await;
    found("to be heard", async || (!muted(first).await).then_some(())).await;
    assert_eq!(control(&site, "200", "mute-all", "").await, (200, json!({"all_muted": true})));
    assert!(muted(first).await && muted(second).await);
    assert_eq!(control(&site, "200", &format!("members/{second}/unmute"), "").await.0, 204);
    assert!(muted(first).await && !muted(second).await);
    assert_eq!(control(&site, "200", "mute-all", "").await, (200, json!({"all_muted": false})));
    assert!(!muted(first).await);
    assert_eq!(control(&site, "200", "lock", "").await.0, 204);
    extension(&site, "1003", "200").await.hung_up().await;
    assert_eq!(control(&site, "200", "unlock", "").await.0, 204);
    assert_eq!(control(&site, "200", &format!("members/{second}/kick"), "").await.0, 204);
    bob.hung_up().await;
    holds(&site, "200", &["1001 participant"]).await;
    assert_eq!(control(&site, "200", &format!("members/{second}/kick"), "").await.0, 404);
    assert_eq!(control(&site, "200", "end", "").await.0, 204);
    ada.hung_up().await;
    assert_eq!(control(&site, "200", "end", "").await.0, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn default_members_are_rung_when_the_room_opens_and_again_when_they_are_there() {
    let site = site().await;
    let at_once = Answering::Answer { after: Duration::ZERO, talk: None };
    let _bob = site.phone_of(keyed(site.phone_config("1002", at_once.clone()))).await;
    let _cy = site.phone("1003", Answering::Refuse(603)).await;
    let ada = extension(&site, "1001", "600").await;
    holds(&site, "600", &["1001 participant", "1002 participant"]).await;
    let sessions =
        path(&site, "600").await.replace("conferences/svc-room-", "conference-rooms/") + "/sessions";
    let invites = async || {
        let (status, page) = site.get(&sessions).await;
        assert_eq!(status, 200, "{page}");
        let invites = page["items"][0]["invites"].as_array().cloned().unwrap_or_default();
        let line = |invite: &Value| {
            let word = |name: &str| invite[name].as_str().unwrap().to_owned();
            format!("{} {} {}", word("number"), word("state"), word("last_reason"))
        };
        invites.iter().map(line).collect::<Vec<_>>()
    };
    let expected = ["1002 joined ", "1003 declined declined", "1004 waiting unregistered"];
    found("invites", async || (invites().await == expected).then_some(())).await;
    // A phone is rung as soon as it registers.
    let _dee = site.phone_of(keyed(site.phone_config("1004", at_once))).await;
    holds(&site, "600", &["1001 participant", "1002 participant", "1004 participant"]).await;
    assert_eq!(control(&site, "600", "end", "").await.0, 204);
    ada.hung_up().await;
    site.idle().await;
}

/// A member with one busy phone and one unreachable one counts as busy, long before timer B (32 seconds) of the latter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_that_does_not_answer_does_not_delay_a_busy_member() {
    let site = site().await;
    let _busy = site.phone("1002", Answering::Refuse(486)).await;
    let mut silent = Device::udp(site.sip, "").await;
    silent.contact = format!("<sip:1002@{}>", silent.local);
    silent.register("1002").await;
    let ada = extension(&site, "1001", "600").await;
    let began = Instant::now();
    let sessions =
        path(&site, "600").await.replace("conferences/svc-room-", "conference-rooms/") + "/sessions";
    found("a busy member", async || {
        let (_, page) = site.get(&sessions).await;
        let invite = &page["items"][0]["invites"][0];
        (invite["state"] == "waiting" && invite["last_reason"] == "busy").then_some(())
    })
    .await;
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    ada.hangs_up().await;
    site.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_are_dialled_in_from_here_and_from_the_world() {
    let nobody = ([127, 0, 0, 1], 9).into();
    let at_once = Answering::Answer { after: Duration::ZERO, talk: None };
    let mut config = keyed(phone_config(nobody, "carrier", at_once.clone()));
    config.domain = "carrier.example".into();
    let carrier = Phone::start(config).await.unwrap();
    let site = Site::with(&declared(Some(&carrier))).await;
    let dial = async |body: Value| {
        let rooms = path(&site, "300").await.replace("conferences/svc-room-", "conference-rooms/");
        post(site.http, &format!("{rooms}/dial"), "", &body.to_string()).await
    };
    let request =
        |kind: &str, target: &str, role: &str| json!({"kind": kind, "target": target, "role": role});
    assert_eq!(dial(request("extension", "1001", "moderator")).await.0, 409, "no phone is registered");
    let _ada = site.phone_of(keyed(site.phone_config("1001", at_once))).await;
    let dialled = dial(request("extension", "1001", "moderator")).await;
    assert_eq!((dialled.0, &dialled.1["dialling"]), (202, &json!("1001")));
    holds(&site, "300", &["1001 moderator"]).await;
    let dialled = dial(request("external", "+447700900123", "participant")).await;
    assert_eq!((dialled.0, &dialled.1["dialling"]), (202, &json!("+447700900123")));
    holds(&site, "300", &["1001 moderator", "+447700900123 participant"]).await;
    assert_eq!(control(&site, "300", "lock", "").await.0, 204);
    assert_eq!(dial(request("external", "+447700900124", "participant")).await.0, 409, "locked");
    assert_eq!(control(&site, "300", "end", "").await.0, 204);
    site.idle().await;
    let records = site.records(2).await;
    let of = |direction: &str| records.iter().find(|record| record["direction"] == direction).unwrap();
    let out = of("outbound");
    assert_eq!(
        (&out["destination_number"], &out["caller_number"]),
        (&json!("+447700900123"), &json!("+442071230000"))
    );
    let inside = of("internal");
    assert_eq!((&inside["destination_number"], &inside["caller_number"]), (&json!("1001"), &json!("300")));
}
