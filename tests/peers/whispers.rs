//! A room calls Linphone, which must press 1 before it joins, and a member whispers only to Linphone. The received
//! audio of each phone is read from its own recording.

use serde_json::{Value, json};

use crate::peers::engine::Engine;
use crate::peers::linphone;
use crate::peers::peer::{self, Kind, OURS_HZ, Peer};
use crate::peers::tell;
use crate::peers::turn;

#[test]
fn linphone_hears_the_question_to_confirm_and_a_whisper() {
    let Some(_turn) = turn() else { return };
    if !linphone::is_there() {
        return tell("NOTICE: whispers to Linphone are SKIPPED; apt-get install linphone-cli");
    }
    let mut engine = Engine::with(8, peer::DIRECTORY);
    peer::announce(&engine, "confirm-join");
    let mut coach = Peer::register(&engine, Kind::Baresip, "1001");
    let mut agent = Peer::register(&engine, Kind::Linphone, "1002");
    let mut customer = Peer::register(&engine, Kind::Linphone, "1004");
    for phone in [&mut coach, &mut agent] {
        phone.call("300");
    }
    let live = engine.wait_for("/api/v1/conferences", "two in the room", |page| {
        let room = &page["items"][0];
        (room["members"].as_array()?.len() == 2).then(|| room.clone())
    });
    coach.hears_phone(&mut agent);
    let path = format!("/api/v1/conferences/{}", live["room"].as_str().unwrap());
    let dial =
        json!({"kind": "extension", "target": customer.number, "role": "participant", "confirm": true});
    let dialled = format!("/api/v1/conference-rooms/{}/dial", live["room_id"].as_str().unwrap());
    assert_eq!(engine.post(&dialled, &dial).0, 202);
    customer.answer();
    customer.hears(&[OURS_HZ]);
    let room = engine.get(&path);
    assert_eq!(id_of(&room, customer.number), None, "it has not confirmed: {room:#}");
    customer.press("1");
    customer.hears_phones(&mut [&mut coach, &mut agent]);
    agent.hears_phones(&mut [&mut coach, &mut customer]);

    let room = engine.get(&path);
    let [coach_id, agent_id] = ["1001", "1002"].map(|number| id_of(&room, number).unwrap());
    let whisper = format!("{path}/members/{coach_id}/whisper");
    assert_eq!(engine.post(&whisper, &json!({"to": agent_id})).0, 204);
    customer.hears_phone(&mut agent);
    agent.hears_phones(&mut [&mut coach, &mut customer]);
    assert_eq!(engine.order(&format!("{path}/members/{coach_id}/unwhisper")), 204);
    customer.hears_phones(&mut [&mut coach, &mut agent]);
    assert_eq!(engine.order(&format!("{path}/end")), 204);
    for phone in [&mut coach, &mut agent, &mut customer] {
        phone.released();
    }
}

/// The member with that number.
fn id_of(room: &Value, number: &str) -> Option<u64> {
    let mut members = room["members"].as_array()?.iter();
    members.find(|member| member["number"] == number)?["id"].as_u64()
}
