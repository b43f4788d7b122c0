//! Functions across nodes, in every pairing: three nodes with phones at each, and requests at a node without any of
//! the phones involved.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sidetone_phone::{Answering, Phone};
use standardwebhooks::Webhook;
use tokio::task::JoinHandle;

use super::calls::{all_records, get, items, read};
use super::rooms::{Guest, one_room};
use super::site::{Cluster, Node, whole};
use super::stream::Stream;
use crate::common::killed::reaching;
use crate::common::receiver::{Receiver, Reply};
use crate::common::records::TempDir;
use crate::common::site::{
    answering, calls, established, found, open_end, phone_config, registered, until, within,
};
use crate::service::client::{Answer, Ask};
use crate::service::idempotency::{ADMIN, OTHER, post, teams};

const CALLERS: [&str; 3] = ["1001", "1002", "1003"];
const CALLEES: [&str; 3] = ["1004", "1005", "1006"];
const GUESTS: [&str; 3] = ["1007", "1008", "1009"];
const TONES: [u32; 3] = [430, 617, 941];
/// Each order of the three nodes.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
/// Calls that a key may place in a minute.
const PLACEMENTS: usize = 60;

/// Two phones at each of three nodes, the events of each node, and a webhook of all.
struct World {
    nodes: [Node; 3],
    callers: Vec<Arc<Phone>>,
    callees: Vec<Phone>,
    streams: Vec<Stream>,
    receiver: Receiver,
    /// The webhook's id and secret.
    webhook: (String, String),
    _cluster: Cluster,
    _dir: TempDir,
}

/// A request at a node. It is repeated, because another node may be unreachable for a moment on a busy machine.
async fn ask(node: &Node, method: &'static str, path: &str, body: &Value) -> Answer {
    let ask = Ask::new(method, format!("/api/v1{path}")).bearer(ADMIN);
    let ask = if body.is_null() { ask } else { ask.json(body) };
    whole(node.http(), &ask).await
}

/// The same; it must succeed.
async fn done(node: &Node, method: &'static str, path: &str, body: Value) -> Answer {
    let answer = ask(node, method, path, &body).await;
    assert!((200..300).contains(&answer.status), "{method} {path} at {}: {answer:?}", node.name);
    answer
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

impl World {
    async fn start() -> Option<World> {
        let mut cluster = Cluster::start().await?;
        let dir = TempDir::new();
        let receiver = Receiver::start(|_| Reply::status(200)).await;
        cluster.more = reaching(&receiver, dir.path());
        let (nodes, _) = cluster.three().await;
        let hook = json!({"url": receiver.url("/events"), "events": ["call.ended", "conference.updated"]});
        let hook = done(&nodes[1], "POST", "/webhooks", hook).await.json();
        let webhook = (text(&hook["id"]), text(&hook["secret"]));
        let (mut callers, mut callees, mut streams) = (Vec::new(), Vec::new(), Vec::new());
        for (at, node) in nodes.iter().enumerate() {
            let phone = async |number| registered(phone_config(node.served.sip, number, answering())).await;
            callers.push(Arc::new(phone(CALLERS[at]).await));
            callees.push(phone(CALLEES[at]).await);
            streams.push(Stream::open(node.http()).await);
        }
        for node in &nodes {
            found("the phones of all nodes", async || {
                (node.metric("sidetone_cluster_binding_entries").await == 6).then_some(())
            })
            .await;
        }
        Some(World { nodes, callers, callees, streams, receiver, webhook, _cluster: cluster, _dir: dir })
    }

    /// A call of a phone at one node to a phone at another one that stays up; returned with its id, read at a third.
    async fn call(&self, [from, to, reader]: [usize; 3]) -> (String, JoinHandle<()>) {
        let (caller, number) = (Arc::clone(&self.callers[from]), CALLEES[to]);
        let placed = tokio::spawn(async move { drop(caller.call(open_end(number)).await) });
        established(&self.callers[from], &self.callees[to]).await;
        let call = found("the call", async || {
            let answer = get(self.nodes[reader].http(), "/calls").await;
            let calls = if answer.status == 503 { Vec::new() } else { items(&answer) };
            let call = calls.iter().find(|call| call["caller"] == CALLERS[from])?;
            (call["state"] == "answered").then(|| text(&call["uuid"]))
        })
        .await;
        (call, placed)
    }

    /// A note with a button, sent at one node: shown by the phone of another one, acknowledged there, read at a third.
    async fn note(&self, [sender, shower, reader]: [usize; 3], (send, list): (&str, &str)) {
        let (phone, title) = (&self.callees[shower], format!("{sender}{shower}{reader} {send}"));
        let sent = done(&self.nodes[sender], "POST", send, json!({"title": title, "ack": true})).await;
        let note = text(&sent.json()["id"]);
        until("the note on the phone", || phone.notes().iter().any(|shown| shown.id == note)).await;
        assert_eq!(within("an answer", phone.acknowledge(&note)).await.unwrap(), 200);
        let kept = found("the acknowledgement", async || {
            let kept = items(&ask(&self.nodes[reader], "GET", list, &Value::Null).await);
            kept.into_iter().find(|kept| kept["id"] == note && kept["status"] == "acked")
        })
        .await;
        assert_eq!(kept["acked_count"], 1, "{kept:#}");
        let times = phone.notes().iter().filter(|shown| shown.id == note).count();
        assert_eq!(times, 1, "{title} is shown once");
    }

    /// All nine pairings of a caller's node and a callee's.
    async fn calls_are_heard(&self) {
        for shift in 0..3 {
            let one = async |from: usize| {
                let to = (from + shift) % 3;
                let (caller, callee, number) = (&self.callers[from], &self.callees[to], CALLEES[to]);
                let before = (caller.heard(), callee.heard());
                let placed = {
                    let caller = Arc::clone(caller);
                    tokio::spawn(async move { caller.call(open_end(number)).await.unwrap().status })
                };
                established(caller, callee).await;
                until(&format!("audio both ways, from {from}, {shift} on"), || {
                    caller.heard() > before.0 + 5 && callee.heard() > before.1 + 5
                })
                .await;
                caller.hang_up().await.unwrap();
                let status = within("the end of the call", placed).await.unwrap();
                assert_eq!(status, 200, "from {from}, {shift} on");
                calls(callee, 0, 0).await;
            };
            tokio::join!(one(0), one(1), one(2));
        }
    }

    /// Notes to idle phones, and into calls; each call is held, resumed and ended through a node with neither of its
    /// phones.
    async fn notes_and_controls_reach_every_node(&self) {
        let extensions = items(&read(self.nodes[0].http(), "/extensions?limit=100").await);
        let id = |number: &str| {
            let extension = extensions.iter().find(|extension| extension["number"] == number).unwrap();
            text(&extension["id"])
        };
        for order in ORDERS {
            let extension = id(CALLEES[order[1]]);
            let (send, list) =
                (format!("/extensions/{extension}/message"), format!("/extensions/{extension}/messages"));
            self.note(order, (&send, &list)).await;
        }
        for order in ORDERS {
            let [owner, at, other] = order;
            let (call, placed) = self.call(order).await;
            let path = format!("/calls/{call}");
            self.note([other, at, owner], (&format!("{path}/info"), &format!("{path}/infos"))).await;
            let held = done(&self.nodes[other], "POST", &format!("{path}/hold"), json!({})).await.json();
            assert!(held["held_by"].is_object() || held["held_by"].is_string(), "{held}");
            let seen = done(&self.nodes[at], "GET", &path, Value::Null).await.json();
            assert_eq!(seen["held_by"], held["held_by"], "{seen}");
            done(&self.nodes[at], "POST", &format!("{path}/unhold"), json!({})).await;
            done(&self.nodes[other], "DELETE", &path, Value::Null).await;
            within("the end of the call", placed).await.unwrap();
            calls(&self.callees[at], 0, 0).await;
        }
    }

    /// A room with a member at each node is controlled through the nodes that do not own it.
    async fn a_room_is_controlled_from_every_node(&mut self) {
        let [first, second, third] = &self.nodes;
        let mut guests = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            guests.push(Guest::joins(node, GUESTS[at], TONES[at]).await);
            one_room(&self.nodes[(at + 1) % 3], &GUESTS[..=at]).await;
        }
        let room = items(&ask(third, "GET", "/conferences", &Value::Null).await).remove(0);
        let path = format!("/conferences/{}", text(&room["room"]));
        let member = |number: &str| {
            let members = room["members"].as_array().unwrap();
            members.iter().find(|member| member["number"] == number).unwrap()["id"].clone()
        };
        let shown = async |node: &Node| done(node, "GET", &path, Value::Null).await.json();
        let stored = format!("/conference-rooms/{}", text(&room["room_id"]));
        for node in &self.nodes {
            found(&format!("three members at {}", node.name), async || {
                let own = done(node, "GET", &stored, Value::Null).await.json();
                let rooms = items(&done(node, "GET", "/conference-rooms", Value::Null).await);
                let listed = rooms.iter().find(|listed| listed["id"] == room["room_id"]).unwrap();
                for shown in [&own, listed] {
                    assert!(shown["live_members"].as_u64().unwrap() <= 3, "{shown} at {}", node.name);
                }
                (own["live_members"] == 3 && listed["live_members"] == 3).then_some(())
            })
            .await;
            let refused = ask(node, "DELETE", &stored, &Value::Null).await;
            assert_eq!((refused.status, refused.code().as_str()), (409, "conflict"), "{refused:?}");
        }
        done(second, "POST", &format!("{path}/lock"), Value::Null).await;
        assert_eq!(shown(third).await["locked"], true);
        done(third, "POST", &format!("{path}/members/{}/mute", member(GUESTS[1])), Value::Null).await;
        let muted = shown(first).await;
        let muted = muted["members"].as_array().unwrap().iter().filter(|member| member["muted"] == true);
        assert_eq!(muted.map(|member| text(&member["number"])).collect::<Vec<_>>(), [GUESTS[1]]);
        done(second, "POST", &format!("{path}/members/{}/kick", member(GUESTS[2])), Value::Null).await;
        one_room(second, &GUESTS[..2]).await;
        done(third, "POST", &format!("{path}/end"), Value::Null).await;
        for guest in guests {
            within("the end of the room", guest.call).await.unwrap();
        }
        let name = room["room"].clone();
        for stream in &mut self.streams {
            stream.has("conference.updated", "room", &name, 1).await;
            found("the end of the room on the streams", async || {
                let news = stream.of("conference.updated", "room", &name);
                let ends = news.iter().filter(|event| event["data"]["action"] == "ended").count();
                assert!(ends <= 1, "{news:#?}");
                (ends == 1).then_some(())
            })
            .await;
        }
        let gone = ask(second, "GET", &path, &Value::Null).await;
        assert_eq!(gone.status, 404, "{gone:?}");
    }

    /// A request with an idempotency key is carried out once, across all nodes.
    async fn an_idempotency_key_is_that_of_all_nodes(&self) {
        for (round, order) in ORDERS.into_iter().enumerate() {
            let name = format!("team {round}");
            let ask = post("/teams", ADMIN, &format!("round-{round}"), &json!({"name": name}));
            let [first, second, third] = order.map(|at| self.nodes[at].http());
            let (one, two) = tokio::join!(ask.send(first), ask.send(second));
            let again = ask.send(third).await;
            assert_eq!(again.status, 201, "{again:?}");
            assert!(again.has("idempotency-replayed: true"), "{again:?}");
            for answer in [one, two] {
                match answer.status {
                    201 => assert_eq!(answer.json()["id"], again.json()["id"]),
                    409 => assert!(answer.has("retry-after: 1"), "{answer:?}"),
                    _ => panic!("{answer:?}"),
                }
            }
            for node in &self.nodes {
                let own =
                    teams(node.http()).await.iter().filter(|team| team["name"] == name.as_str()).count();
                assert_eq!(own, 1, "{name} at {}", node.name);
            }
        }
    }

    /// A call that is requested at one node is cancelled through another one.
    async fn a_request_is_cancelled_at_another_node(&self) {
        let [first, second, third] = &self.nodes;
        let ringing = registered(phone_config(third.served.sip, GUESTS[2], Answering::Ring)).await;
        let call = json!({"from": GUESTS[2], "to": CALLEES[0]});
        // Until the node knows this phone, a request rings an earlier phone of the extension, or none.
        let placed = found("a request that rings", async || {
            let placed = Ask::new("POST", "/api/v1/calls").bearer(OTHER).json(&call).send(first.http()).await;
            let mut state = ringing.calls();
            let rings = state.wait_for(|calls| calls.ringing == 1);
            let rings = tokio::time::timeout(Duration::from_secs(2), rings).await.is_ok();
            (placed.status == 202 && rings).then(|| placed.json())
        })
        .await;
        let path = format!("/call-requests/{}", text(&placed["call_request_id"]));
        done(second, "DELETE", &path, Value::Null).await;
        calls(&ringing, 0, 0).await;
        found("the end of the request", async || {
            let request = done(third, "GET", &path, Value::Null).await.json();
            (request["state"] == "cancelled").then_some(())
        })
        .await;
    }

    /// H10: a key places sixty calls a minute, at whatever node; a dry run is not counted.
    async fn a_key_places_sixty_calls_a_minute(&self) {
        let _refusing =
            registered(phone_config(self.nodes[0].served.sip, GUESTS[0], Answering::Refuse(486))).await;
        let call = json!({"from": GUESTS[0], "to": CALLEES[0]});
        let placed = async |at: usize, path: &str| ask(&self.nodes[at % 3], "POST", path, &call).await.status;
        found("a phone that every node knows", async || {
            for at in 0..3 {
                if placed(at, "/calls?dry_run=true").await != 200 {
                    return None;
                }
            }
            Some(())
        })
        .await;
        for at in 0..PLACEMENTS {
            assert_eq!(placed(at, "/calls").await, 202, "call {at} of a minute");
        }
        for at in 0..3 {
            let refused = ask(&self.nodes[at], "POST", "/calls", &call).await;
            assert_eq!((refused.status, refused.code().as_str()), (429, "rate_limited"), "{refused:?}");
            assert_eq!(placed(at, "/calls?dry_run=true").await, 200);
        }
        found("the end of all of them", async || {
            let page = ask(&self.nodes[2], "GET", "/call-requests?state=failed&limit=1", &Value::Null).await;
            assert_eq!(page.status, 200, "{page:?}");
            // Including the requests before the cancelled call, which an earlier phone had refused.
            (page.json()["total"].as_u64() >= Some(PLACEMENTS as u64)).then_some(())
        })
        .await;
    }

    /// Each event has arrived on every stream once, and at the webhook in one delivery that its secret verifies.
    async fn every_event_arrives_once(&mut self) {
        let records = found("all records", async || {
            let records = all_records(self.nodes[2].http()).await;
            records.iter().all(|record| record["ended_at"].is_string()).then_some(records)
        })
        .await;
        let uuids: Vec<Value> = records.iter().map(|record| record["call_uuid"].clone()).collect();
        for stream in &mut self.streams {
            for uuid in &uuids {
                stream.has("call.ended", "call_uuid", uuid, 1).await;
            }
        }
        let (id, secret) = &self.webhook;
        let list = format!("/webhooks/{id}/deliveries?limit=500");
        let deliveries = found("the end of all deliveries", async || {
            let page = ask(&self.nodes[0], "GET", &list, &Value::Null).await;
            let deliveries = items(&page);
            let ended = deliveries.iter().filter(|delivery| delivery["type"] == "call.ended").count();
            let is_over = deliveries.iter().all(|delivery| delivery["status"] == "delivered");
            (ended >= uuids.len() && is_over).then_some(deliveries)
        })
        .await;
        let verifier = Webhook::new(secret).unwrap();
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        let mut calls: BTreeMap<String, usize> = BTreeMap::new();
        for request in self.receiver.seen.now() {
            let mut headers = http::HeaderMap::new();
            for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
                headers.insert(name, request.header(name).parse().unwrap());
            }
            verifier.verify(&request.body, &headers).unwrap();
            *times.entry(request.header("webhook-id").to_owned()).or_default() += 1;
            let event = request.json();
            if event["type"] == "call.ended" {
                *calls.entry(text(&event["data"]["call_uuid"])).or_default() += 1;
            }
        }
        assert_eq!(times.len(), deliveries.len(), "each delivery is one event");
        assert!(times.values().all(|count| *count == 1), "an event is sent once: {times:?}");
        assert_eq!(calls.len(), uuids.len());
        for (stream, node) in self.streams.iter().zip(&self.nodes) {
            for uuid in &uuids {
                assert_eq!(stream.of("call.ended", "call_uuid", uuid).len(), 1, "{uuid} at {}", node.name);
            }
        }
        eprintln!("{} calls, {} deliveries of three nodes, each event once", uuids.len(), deliveries.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_serves_the_phones_programs_and_readers_of_every_other_one() {
    let Some(mut world) = World::start().await else { return };
    world.calls_are_heard().await;
    world.notes_and_controls_reach_every_node().await;
    world.a_room_is_controlled_from_every_node().await;
    world.an_idempotency_key_is_that_of_all_nodes().await;
    world.a_request_is_cancelled_at_another_node().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: the placements of a minute, and the events of all calls at every node"]
async fn long_sixty_calls_are_placed_a_minute_and_every_event_arrives_once() {
    let Some(mut world) = World::start().await else { return };
    world.calls_are_heard().await;
    world.a_key_places_sixty_calls_a_minute().await;
    world.every_event_arrives_once().await;
}
