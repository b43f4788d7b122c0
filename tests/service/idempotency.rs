//! `Idempotency-Key` over HTTP: one effect, whatever happens, and the same response again.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::common::records::TempDir;
use crate::common::schema::DOCUMENT;
use crate::common::site::{PASSWORD, Site, answering, calls, declare, established, open_end, until, within};
use crate::service::client::{Answer, Ask};
use crate::service::served::{Served, Start, config};

pub const ADMIN: &str = "tel_acmeadmin001_0123456789abcdefghijklmnopqrstuvwxyz";
pub const OTHER: &str = "tel_acmeother001_0123456789abcdefghijklmnopqrstuvwxyz";

/// Acme with two keys with all permissions, six phones, a room, and an operator.
pub fn directory() -> String {
    let key = |name: &str, key: &str| {
        format!(
            "[[organisations.api_keys]]\nname = \"{name}\"\nkey = \"{key}\"\npreset = \"full\"\n\
             allow = [\"127.0.0.1\"]\nrate_per_minute = 60000\n"
        )
    };
    let phone = |number: &str| {
        format!("[[organisations.extensions]]\nnumber = \"{number}\"\npassword = \"{PASSWORD}\"\n")
    };
    format!(
        "[[organisations]]\nname = \"Acme\"\nsip_domain = \"acme.test\"\n{}{}{}\
         [[organisations.rooms]]\nname = \"Lobby\"\nnumber = \"300\"\n\
         [[organisations.users]]\nemail = \"root@acme.test\"\npassword = \"a very good password\"\nrole = \"operator\"\n",
        key("admin", ADMIN),
        key("other", OTHER),
        ["1001", "1002", "1003", "1004", "1005", "1006", "1007", "1008", "1009"].map(phone).concat()
    )
}

pub fn post(path: &str, token: &str, key: &str, body: &Value) -> Ask {
    Ask::new("POST", format!("/api/v1{path}")).bearer(token).key(key).json(body)
}

pub async fn teams(http: SocketAddr) -> Vec<Value> {
    let page = Ask::new("GET", "/api/v1/teams?limit=500").bearer(ADMIN).send(http).await;
    page.json()["items"].as_array().unwrap().clone()
}

fn id(answer: &Answer) -> String {
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// An engine that accepts a hundred connections of this host.
async fn serve(dir: &TempDir) -> Served {
    let http = "[http]\nlisten = \"127.0.0.1:0\"\nconnections_per_address_max = 200\n";
    let start = Start { config: config(dir.path(), http), log: "error", files_max: None, env: Vec::new() };
    Served::with(dir.path(), start).await
}

/// H5: a storm of identical requests with a kill in its middle has one effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_twins_and_a_kill_make_one_team() {
    let dir = TempDir::new();
    declare(dir.path(), &directory()).await;
    for (round, answers_before_the_kill) in [0, 1, 5, 30].into_iter().enumerate() {
        let name = format!("team {round}");
        let ask = post("/teams", ADMIN, &format!("storm-{round}"), &json!({"name": name}));
        let engine = serve(&dir).await;
        let http = engine.http;
        let mut storm = JoinSet::new();
        for _ in 0..100 {
            let ask = ask.clone();
            storm.spawn(async move { ask.try_send(http).await });
        }
        let mut answers = Vec::new();
        while answers.len() < answers_before_the_kill {
            answers.extend(storm.join_next().await.unwrap().unwrap().ok());
        }
        engine.kill();
        while let Some(answer) = storm.join_next().await {
            answers.extend(answer.unwrap().ok());
        }

        let engine = serve(&dir).await;
        let again = ask.send(engine.http).await;
        assert_eq!(again.status, 201, "{again:?}");
        let mut ids: HashSet<String> = HashSet::from([id(&again)]);
        for answer in &answers {
            match answer.status {
                201 => assert!(ids.insert(id(answer)) || ids.len() == 1),
                409 => assert!(answer.code() == "conflict" && answer.has("retry-after: 1"), "{answer:?}"),
                // A hundred requests at once may wait too long for a connection to the database.
                503 => assert!(answer.code() == "node_busy" && answer.has("retry-after: "), "{answer:?}"),
                _ => panic!("{answer:?}"),
            }
        }
        assert_eq!(ids.len(), 1, "round {round}: {ids:?}");
        let made = teams(engine.http).await;
        let own: Vec<&Value> = made.iter().filter(|team| team["name"] == name.as_str()).collect();
        assert!(own.len() == 1 && ids.contains(own[0]["id"].as_str().unwrap()), "{own:?}");
        engine.kill();
    }
}

/// H6, and the rules of the header.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_its_callers_for_one_method_path_and_request() {
    let site = Site::with(&directory()).await;
    let http = site.http;
    let red = json!({"name": "red"});
    let first = post("/teams", ADMIN, "k1", &red).send(http).await;
    assert_eq!((first.status, first.has("idempotency-replayed: true")), (201, false), "{first:?}");
    let again = post("/teams", ADMIN, "\"k1\"", &red).send(http).await;
    assert_eq!((again.status, &again.text), (201, &first.text));
    assert!(again.has("idempotency-replayed: true"), "{again:?}");
    let location = format!("location: /api/v1/teams/{}", id(&first));
    assert!(first.has(&location) && again.has(&location) && again.has("content-type: application/json"));

    let reused = post("/teams", ADMIN, "k1", &json!({"name": "blue"})).send(http).await;
    assert_eq!((reused.status, reused.code().as_str()), (422, "idempotency_key_reused"));
    let query = post("/teams?x=1", ADMIN, "k1", &red).send(http).await;
    assert_eq!((query.status, query.code().as_str()), (422, "idempotency_key_reused"));

    // Keys of another caller and another path are separate: these requests are carried out.
    let twin = post("/teams", OTHER, "k1", &red).send(http).await;
    assert_eq!((twin.status, twin.code().as_str()), (409, "conflict"), "the name is taken");
    let agent = post("/agents", ADMIN, "k1", &json!({"name": "red", "kind": "human"})).send(http).await;
    assert_eq!(agent.status, 201, "{agent:?}");
    // A failed execution is a response, too; it is kept although the name is free by now.
    let team = format!("/api/v1/teams/{}", id(&first));
    assert_eq!(Ask::new("DELETE", &team).bearer(ADMIN).send(http).await.status, 204);
    let twin = post("/teams", OTHER, "k1", &red).send(http).await;
    assert_eq!((twin.status, twin.has("idempotency-replayed: true")), (409, true));
    assert_eq!(post("/teams", OTHER, "k2", &red).send(http).await.status, 201);

    // A request refused before its execution is not kept: the same key may be sent with the corrected request.
    let wrong = post("/teams", ADMIN, "k3", &json!({"nam": "green"})).send(http).await;
    assert_eq!(wrong.status, 400);
    let right = post("/teams", ADMIN, "k3", &json!({"name": "green"})).send(http).await;
    assert_eq!((right.status, right.has("idempotency-replayed: true")), (201, false), "{right:?}");
    let nobody = Ask::new("POST", "/api/v1/teams").key("k4").json(&red).send(http).await;
    assert_eq!(nobody.status, 401);
    for key in ["", "\"", "a b", &"k".repeat(256)] {
        let answer = post("/teams", ADMIN, key, &red).send(http).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "invalid_request"), "{key}");
        assert!(answer.text.contains("Idempotency-Key: must be 1 to 255"), "{answer:?}");
    }
    // GET ignores the header.
    let page = Ask::new("GET", "/api/v1/teams").bearer(ADMIN).key("a b").send(http).await;
    assert_eq!(page.status, 200);
}

/// Every writing route: carried out once, and the second response equals the first one, secrets included.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_post_and_patch_is_done_once() {
    let site = Site::configured(&directory(), |config| {
        // Webhooks are sent to this host, where nothing listens.
        config.outbound_http.allow_addresses = vec!["127.0.0.1/32".parse().unwrap()];
    })
    .await;
    let http = site.http;
    let login = json!({"email": "root@acme.test", "password": "a very good password"});
    let session = Ask::new("POST", "/api/v1/auth/login").key("login").json(&login).send(http).await;
    assert_eq!(session.status, 200, "{session:?}");
    let token = session.json()["token"].as_str().unwrap().to_owned();
    let second = Ask::new("POST", "/api/v1/auth/login").key("login").json(&login).send(http).await;
    assert!(!second.has("idempotency-replayed: true"), "a session is nobody's to be given again");

    let mut made: HashMap<&str, String> = HashMap::new();
    let mut done = HashSet::new();
    for (path, mut body, change) in resources() {
        // The resource that it belongs to was created before it.
        for (field, of) in [
            ("destination_id", "/extensions"),
            ("organisation_id", "/organisations"),
            ("trunk_id", "/trunks"),
        ] {
            if body.get(field).is_some() {
                body[field] = json!(made[of]);
            }
        }
        let ask = post(path, &token, "create", &body);
        let first = ask.send(http).await;
        assert_eq!(first.status, 201, "{path}: {first:?}");
        let again = ask.send(http).await;
        assert_eq!((again.status, &again.text), (201, &first.text), "{path}");
        assert!(again.has("idempotency-replayed: true"), "{path}: {again:?}");
        // It exists once, for all readers.
        let one = format!("/api/v1{path}/{}", id(&first));
        let found = Ask::new("GET", &one).bearer(&token).send(http).await;
        assert_eq!(found.status, 200, "{path}: {found:?}");
        let patch = Ask::new("PATCH", &one).bearer(&token).key("change").json(&change);
        let changed = patch.send(http).await;
        assert_eq!(changed.status, 200, "{path}: {changed:?}");
        let again = patch.send(http).await;
        assert_eq!((again.status, &again.text), (200, &changed.text), "{path}");
        assert!(again.has("idempotency-replayed: true"), "{path}: {again:?}");
        done.insert(format!("post /api/v1{path}"));
        done.insert(format!("patch /api/v1{path}/{{id}}"));
        made.insert(path, id(&first));
    }
    act_once(&site, &token, &made["/webhooks"], &mut done).await;
    run_a_room_once(&site, &token, &mut done).await;
    move_calls_once(&site, &token, &mut done).await;
    assert_eq!(writing_operations().difference(&done).collect::<Vec<_>>(), Vec::<&String>::new());
    // The scope is the user: a later session gets the answer too, with the secret in it.
    let body = json!({"name": "crm", "preset": "read_only", "allow": ["127.0.0.1"]});
    let first = post("/api-keys", &token, "create", &body).send(http).await;
    assert!(first.json()["key"].is_string());
    let later = second.json()["token"].as_str().unwrap().to_owned();
    let again = post("/api-keys", &later, "create", &body).send(http).await;
    assert_eq!((again.status, &again.text), (201, &first.text));
    assert!(again.has("idempotency-replayed: true"), "{again:?}");
}

/// The bodies that create and change every resource, each after the resource that it belongs to.
fn resources() -> Vec<(&'static str, Value, Value)> {
    let rate = json!({"prefix": "+44", "per_minute": "0.0120", "currency": "EUR", "increments": [60, 1]});
    let (mut sell_rate, mut cost_rate) = (rate.clone(), rate);
    sell_rate["organisation_id"] = json!("");
    cost_rate["trunk_id"] = json!("");
    let price = json!({
        "kind": "cost", "provider": "openai", "model": "gpt", "currency": "USD",
        "text_input_per_million": "4", "output_per_million": "16"
    });
    let number = json!({"number": "+442071230000", "destination": "extension", "destination_id": ""});
    let key = json!({"name": "crm", "preset": "read_only", "allow": ["127.0.0.1"]});
    vec![
        ("/teams", json!({"name": "red"}), json!({"name": "blue"})),
        ("/organisations", json!({"name": "Bolt", "sip_domain": "bolt.test"}), json!({"credit": "5.00"})),
        ("/extensions", json!({"number": "2001"}), json!({"name": "Ada"})),
        ("/numbers", number, json!({"number": "+442071230001"})),
        ("/conference-rooms", json!({"name": "Stand-up", "number": "200"}), json!({"record": true})),
        ("/trunks", json!({"name": "carrier", "address": "sip:192.0.2.1"}), json!({"priority": 20})),
        ("/agents", json!({"name": "Ada", "kind": "human"}), json!({"name": "Grace"})),
        ("/api-keys", key, json!({"name": "erp"})),
        ("/users", json!({"email": "ada@acme.test", "role": "org_member"}), json!({"name": "Ada"})),
        ("/sell-rates", sell_rate, json!({"per_minute": "0.0130"})),
        ("/cost-rates", cost_rate, json!({"per_minute": "0.0090"})),
        ("/fx-rates", json!({"from": "USD", "to": "EUR", "rate": "0.92"}), json!({"rate": "0.93"})),
        ("/ai-prices", price, json!({"output_per_million": "17"})),
        (
            "/webhooks",
            json!({"url": "https://127.0.0.1:8443/", "events": ["conference.*"]}),
            json!({"description": "CRM"}),
        ),
    ]
}

/// The actions on a live call, on an extension with a phone and on a webhook.
async fn act_once(site: &Site, token: &str, hook: &str, done: &mut HashSet<String>) {
    let read = async |path: String| {
        let answer = Ask::new("GET", format!("/api/v1{path}")).bearer(token).send(site.http).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    };
    let caller = Arc::new(site.phone("1001", answering()).await);
    let callee = site.phone("1002", answering()).await;
    let phone = Arc::clone(&caller);
    let talk = tokio::spawn(async move { phone.call(open_end("1002")).await.unwrap() });
    calls(&callee, 0, 1).await;
    let call = read("/calls".to_owned()).await["items"][0]["uuid"].as_str().unwrap().to_owned();
    let (third, fourth) =
        (Arc::new(site.phone("1003", answering()).await), site.phone("1004", answering()).await);
    let phone = Arc::clone(&third);
    let other = tokio::spawn(async move { phone.call(open_end("1004")).await.unwrap() });
    calls(&fourth, 0, 1).await;
    calls(&third, 0, 1).await;
    calls(&caller, 0, 1).await;
    let live = read("/calls?state=answered".to_owned()).await;
    let second = live["items"].as_array().unwrap().iter().find(|one| one["caller"] == "1003").unwrap();
    let with = json!({"with": second["uuid"]});
    let extensions = read("/extensions?limit=500".to_owned()).await;
    let person = extensions["items"].as_array().unwrap().iter().find(|one| one["number"] == "1001").unwrap();
    let person = person["id"].as_str().unwrap();
    let note = json!({"title": "Evacuate building 4"});
    // Between phones that have no other call; it ends by itself.
    let _ringing = (site.phone("1005", answering()).await, site.phone("1006", answering()).await);
    let requested = json!({"from": "1005", "to": "1006", "max_seconds": 1});
    let steps = [
        ("/calls", "", &requested),
        ("/calls/{uuid}/info", call.as_str(), &note),
        ("/extensions/{id}/message", person, &note),
        ("/webhooks/{id}/test", hook, &Value::Null),
        ("/webhooks/{id}/rotate-secret", hook, &Value::Null),
        ("/webhooks/{id}/deliveries/{delivery_id}/redeliver", hook, &Value::Null),
        // Last, because it causes many events.
        ("/calls/{uuid}/conference", call.as_str(), &with),
    ];
    for (operation, of, body) in steps {
        let mut path = operation.replace("{uuid}", of).replace("{id}", of);
        if path.contains("{delivery_id}") {
            let deliveries = read(format!("/webhooks/{hook}/deliveries")).await;
            assert_eq!(deliveries["total"], 1, "one test event: {deliveries}");
            path = path.replace("{delivery_id}", deliveries["items"][0]["id"].as_str().unwrap());
        }
        let ask = Ask::new("POST", format!("/api/v1{path}")).bearer(token).key("act");
        let ask = if body.is_null() { ask } else { ask.json(body) };
        let first = ask.send(site.http).await;
        assert!((200..300).contains(&first.status), "{operation}: {first:?}");
        let again = ask.send(site.http).await;
        assert_eq!((again.status, &again.text), (first.status, &first.text), "{operation}");
        assert!(again.has("idempotency-replayed: true"), "{operation}: {again:?}");
        done.insert(format!("post /api/v1{operation}"));
    }
    for list in [format!("/calls/{call}/infos?source=api"), format!("/extensions/{person}/messages")] {
        assert_eq!(read(list.clone()).await["total"], 1, "{list}");
    }
    // After the merge, each party leaves separately.
    for phone in [&*caller, &callee, &*third, &fourth] {
        phone.hang_up().await.unwrap();
    }
    talk.await.unwrap();
    other.await.unwrap();
}

/// The actions that move the parties of calls: one to another phone, two into a room.
async fn move_calls_once(site: &Site, token: &str, done: &mut HashSet<String>) {
    let read = async |path: &str| {
        let answer = Ask::new("GET", format!("/api/v1{path}")).bearer(token).send(site.http).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    };
    let room = read("/conference-rooms?q=Lobby").await["items"][0]["id"].clone();
    // Extensions without earlier phones that could answer instead.
    let (caller, callee) =
        (Arc::new(site.phone("1007", answering()).await), site.phone("1008", answering()).await);
    let third = site.phone("1009", answering()).await;
    for (operation, body) in [("transfer", json!({"to": "1009"})), ("move-to-room", json!({"room_id": room}))]
    {
        let phone = Arc::clone(&caller);
        let talk = tokio::spawn(async move { phone.call(open_end("1008")).await.unwrap() });
        established(&caller, &callee).await;
        let live = read("/calls?state=answered").await;
        let call = live["items"].as_array().unwrap().iter().find(|one| one["caller"] == "1007").unwrap();
        let path = |operation: &str| format!("/api/v1/calls/{}/{operation}", call["uuid"].as_str().unwrap());
        let steps = [
            ("hold", json!({}), 200),
            ("unhold", json!({}), 200),
            ("play", json!({"prompt": "hold-music"}), 202),
            ("record", json!({"action": "start"}), 200),
        ];
        for (hold, body, status) in steps.into_iter().filter(|_| operation == "transfer") {
            let ask = Ask::new("POST", path(hold)).bearer(token).key(hold).json(&body);
            let first = ask.send(site.http).await;
            let again = ask.send(site.http).await;
            assert_eq!((first.status, again.status, &again.text), (status, status, &first.text), "{hold}");
            assert!(again.has("idempotency-replayed: true"), "{hold}: {again:?}");
            done.insert(format!("post /api/v1/calls/{{uuid}}/{hold}"));
        }
        let ask = Ask::new("POST", path(operation)).bearer(token).key("move").json(&body);
        let first = ask.send(site.http).await;
        assert_eq!(first.status, 202, "{operation}: {first:?}");
        let again = ask.send(site.http).await;
        assert_eq!((again.status, &again.text), (202, &first.text), "{operation}");
        assert!(again.has("idempotency-replayed: true"), "{operation}: {again:?}");
        done.insert(format!("post /api/v1/calls/{{uuid}}/{operation}"));
        if operation == "transfer" {
            calls(&caller, 0, 0).await;
            established(&callee, &third).await;
            third.hang_up().await.unwrap();
        } else {
            caller.hang_up().await.unwrap();
            callee.hang_up().await.unwrap();
        }
        for phone in [&*caller, &callee, &third] {
            calls(phone, 0, 0).await;
        }
        talk.await.unwrap();
    }
    // One is parked, and the third phone picks it up.
    let phone = Arc::clone(&caller);
    let talk = tokio::spawn(async move { phone.call(open_end("1008")).await.unwrap() });
    established(&caller, &callee).await;
    let live = read("/calls?state=answered").await;
    let call = live["items"].as_array().unwrap().iter().find(|one| one["caller"] == "1007").unwrap();
    for (operation, body, status) in [("park", json!({}), 200), ("pickup", json!({"from": "1009"}), 202)] {
        let path = format!("/api/v1/calls/{}/{operation}", call["uuid"].as_str().unwrap());
        let ask = Ask::new("POST", path).bearer(token).key(operation).json(&body);
        let first = ask.send(site.http).await;
        let again = ask.send(site.http).await;
        assert_eq!((first.status, again.status, &again.text), (status, status, &first.text), "{operation}");
        assert!(again.has("idempotency-replayed: true"), "{operation}: {again:?}");
        done.insert(format!("post /api/v1/calls/{{uuid}}/{operation}"));
    }
    talk.await.unwrap();
    established(&callee, &third).await;
    third.hang_up().await.unwrap();
    calls(&callee, 0, 0).await;
}

/// The actions on a room with two members: a repeated toggle does not toggle back.
async fn run_a_room_once(site: &Site, token: &str, done: &mut HashSet<String>) {
    let rooms = Ask::new("GET", "/api/v1/conference-rooms?q=Lobby").bearer(token).send(site.http).await;
    let rooms = rooms.json();
    let room = rooms["items"][0]["id"].as_str().unwrap();
    let first = Arc::new(site.phone("1001", answering()).await);
    let second = Arc::new(site.phone("1002", answering()).await);
    for phone in [&first, &second] {
        let talking = Arc::clone(phone);
        tokio::spawn(async move { talking.call(open_end("300")).await });
        calls(phone, 0, 1).await;
    }
    let live = format!("/api/v1/conferences/svc-room-{room}");
    let read = async || Ask::new("GET", &live).bearer(token).send(site.http).await;
    let both = async || {
        let answer = read().await;
        answer.status == 200 && answer.json()["members"].as_array().unwrap().len() == 2
    };
    within("two members", async {
        while !both().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let (on, dial) =
        (json!({"on": true}), json!({"kind": "extension", "target": "1004", "role": "moderator"}));
    let (gain, whisper) = (json!({"gain_db": -6, "automatic_gain": true}), json!({"to": 1}));
    let sound = json!({"prompt": "hold-music"});
    let _dialled = site.phone("1004", answering()).await;
    let steps = [
        ("/conferences/{room}/lock", &Value::Null),
        ("/conferences/{room}/unlock", &Value::Null),
        ("/conferences/{room}/members/{id}/mute", &Value::Null),
        ("/conferences/{room}/members/{id}/unmute", &Value::Null),
        ("/conferences/{room}/members/{id}/deaf", &Value::Null),
        ("/conferences/{room}/members/{id}/undeaf", &Value::Null),
        ("/conferences/{room}/members/{id}/gain", &gain),
        ("/conferences/{room}/members/{id}/hold", &Value::Null),
        ("/conferences/{room}/members/{id}/unhold", &Value::Null),
        ("/conferences/{room}/members/{id}/lock-mute", &Value::Null),
        ("/conferences/{room}/members/{id}/whisper", &whisper),
        ("/conferences/{room}/members/{id}/unwhisper", &Value::Null),
        ("/conferences/{room}/mute-all", &Value::Null),
        ("/conferences/{room}/record", &on),
        ("/conferences/{room}/play", &sound),
        ("/conferences/{room}/stop-playing", &Value::Null),
        ("/conferences/{room}/members/{id}/kick", &Value::Null),
        ("/conference-rooms/{id}/dial", &dial),
        ("/conferences/{room}/end", &Value::Null),
    ];
    for (operation, body) in steps {
        let id = if operation.starts_with("/conference-rooms") { room } else { "2" };
        let path = operation.replace("{room}", &format!("svc-room-{room}")).replace("{id}", id);
        let ask = Ask::new("POST", format!("/api/v1{path}")).bearer(token).key("run");
        let ask = if body.is_null() { ask } else { ask.json(body) };
        let first = ask.send(site.http).await;
        assert!((200..300).contains(&first.status), "{operation}: {first:?}");
        let again = ask.send(site.http).await;
        assert_eq!((again.status, &again.text), (first.status, &first.text), "{operation}");
        assert!(again.has("idempotency-replayed: true"), "{operation}: {again:?}");
        if operation.ends_with("mute-all") {
            assert_eq!(read().await.json()["all_muted"], true);
        }
        done.insert(format!("post /api/v1{operation}"));
    }
    assert_eq!(read().await.status, 404, "it ended");
}

/// Every POST and PATCH of the document that accepts a key.
fn writing_operations() -> HashSet<String> {
    let document = &*DOCUMENT;
    let mut operations = HashSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            // Logins, logouts and password changes: their responses must not be repeated to any session.
            if ["post", "patch"].contains(&method.as_str()) && !path.starts_with("/api/v1/auth/") {
                operations.insert(format!("{method} {path}"));
            }
        }
    }
    operations
}

/// The request of a client that disconnects before the response is still carried out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_away_has_asked_all_the_same() {
    use tokio::io::AsyncWriteExt;

    let site = Site::with(&directory()).await;
    let body = r#"{"name":"red"}"#;
    let text = format!(
        "POST /api/v1/teams HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ADMIN}\r\nIdempotency-Key: gone\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = tokio::net::TcpStream::connect(site.http).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    drop(stream);
    let ask = post("/teams", ADMIN, "gone", &json!({"name": "red"}));
    let answer = within("an answer", async {
        loop {
            let answer = ask.send(site.http).await;
            if answer.status != 409 {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(teams(site.http).await.len(), 1);
    until("the engine is well", || site.engine().live_calls() == 0).await;
}
