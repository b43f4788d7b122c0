//! Third-party phones in a conference room: they enter its PIN, hear each other, use its keys, are muted and removed.
//! Each plays its own tone; its received audio is read from its own recording.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::process::Process;
use crate::peers::baresip;
use crate::peers::engine::Engine;
use crate::peers::linphone;
use crate::peers::sound;
use crate::peers::tell;
use crate::peers::turn;

/// A phone of the test: its tone, and the place of its recording.
struct Peer {
    number: &'static str,
    hz: f64,
    phone: Process,
    heard: PathBuf,
    rate_hz: u32,
}

impl Peer {
    /// Waits until the latest received audio has these tones and no others.
    fn hears(&mut self, wanted: &[f64]) {
        let (heard, rate_hz) = (self.heard.clone(), self.rate_hz);
        let what = format!("{} hears {wanted:?}", self.number);
        self.phone.wait(&what, |_| {
            let loud = sound::at_the_end(&heard, rate_hz, &TONES_HZ)?;
            let mut tones = TONES_HZ.iter().zip(loud);
            tones.all(|(hz, loud)| if wanted.contains(hz) { loud > LOUD } else { loud < QUIET }).then_some(())
        });
    }
}

#[test]
fn baresip_and_linphone_meet_in_a_room() {
    let Some(_turn) = turn() else { return };
    if !linphone::is_there() {
        return tell("NOTICE: Linphone in a room is SKIPPED; apt-get install linphone-cli");
    }
    let mut engine = Engine::with(8, DIRECTORY);
    let mut moderator = baresip_in_room(&engine, "1001", "the-first-secret", TONES_HZ[0], "9876#");
    let mut member = baresip_in_room(&engine, "1002", "the-second-secret", TONES_HZ[1], "1234#");
    let mut guest = linphone_in_room(&engine);
    let room = engine.wait_for("/api/v1/conferences", "three in the room", |page| {
        let room = &page["items"][0];
        (room["members"].as_array()?.len() == 3).then(|| room["room"].as_str().map(str::to_owned))?
    });
    let path = format!("/api/v1/conferences/{room}");

    moderator.hears(&[member.hz, guest.hz]);
    member.hears(&[moderator.hz, guest.hz]);
    guest.hears(&[moderator.hz, member.hz]);

    baresip::press(&mut member.phone, "*1");
    engine.wait_for(&path, "muted by its own key", |room| {
        member_of(room, "1002")["muted"].as_bool()?.then_some(())
    });
    moderator.hears(&[guest.hz]);
    member.hears(&[moderator.hz, guest.hz]);
    baresip::press(&mut member.phone, "*2");
    moderator.hears(&[member.hz, guest.hz]);
    linphone::press(&mut guest.phone, "*1");
    moderator.hears(&[member.hz]);
    linphone::press(&mut guest.phone, "*2");
    moderator.hears(&[member.hz, guest.hz]);

    let guest_id = engine.wait_for(&path, "the guest", |room| member_of(room, "1003")["id"].as_u64());
    assert_eq!(engine.order(&format!("{path}/members/{guest_id}/mute")), 204);
    moderator.hears(&[member.hz]);
    guest.hears(&[moderator.hz, member.hz]);
    assert_eq!(engine.order(&format!("{path}/members/{guest_id}/unmute")), 204);
    moderator.hears(&[member.hz, guest.hz]);
    assert_eq!(engine.order(&format!("{path}/members/{guest_id}/kick")), 204);
    guest.phone.wait_for("ended");
    moderator.hears(&[member.hz]);

    baresip::press(&mut moderator.phone, "*0");
    for peer in [&mut moderator, &mut member] {
        peer.phone.wait_for("session closed");
    }
    let records = engine.records(3);
    for record in &records {
        assert_eq!(record["destination_number"], "200", "{record:#}");
        assert_eq!(record["media_verdict"], "ok", "{record:#}");
    }
    let mut codecs: Vec<&str> = records.iter().filter_map(|record| record["codec_a"].as_str()).collect();
    codecs.sort_unstable();
    assert_eq!(codecs, ["PCMA", "PCMA", "opus"], "{records:#?}");
}

/// A whisper is only in the recording of the phone for which it is meant, and a phone that the room calls hears the
/// question, here a tone of the organisation's own, before it hears the room.
#[test]
fn baresip_hears_a_whisper_and_the_question_to_confirm() {
    let Some(_turn) = turn() else { return };
    let mut engine = Engine::with(8, DIRECTORY);
    let question = engine.dir().join("question.wav");
    sound::write_tone(&question, 10, QUESTION_HZ);
    let organisation = engine.get("/api/v1/conference-rooms")["items"][0]["organisation_id"].clone();
    let path = format!("/api/v1/organisations/{}/prompts/confirm-join", organisation.as_str().unwrap());
    assert_eq!(engine.upload(&path, &std::fs::read(&question).unwrap()), 200);
    let mut coach = baresip_at(&engine, "1001", "the-first-secret", TONES_HZ[0], ("300", ""));
    let mut agent = baresip_at(&engine, "1002", "the-second-secret", TONES_HZ[1], ("300", ""));
    coach.hears(&[agent.hz]);
    let live = engine.wait_for("/api/v1/conferences", "two in the room", |page| {
        let room = &page["items"][0];
        (room["members"].as_array()?.len() == 2).then(|| room.clone())
    });
    let path = format!("/api/v1/conferences/{}", live["room"].as_str().unwrap());

    let (number, hz) = ("1003", TONES_HZ[2]);
    sound::write_tone(&engine.dir().join("1003.wav"), 180, hz);
    let mut phone = baresip::answering_phone(&engine, number, "the-third-secret", "1003.wav");
    phone.wait_for("registered successfully");
    let dial = json!({"kind": "extension", "target": number, "role": "participant", "confirm": true});
    let dialled = format!("/api/v1/conference-rooms/{}/dial", live["room_id"].as_str().unwrap());
    assert_eq!(engine.post(&dialled, &dial).0, 202);
    phone.wait_for("Call established");
    let heard = phone.wait("what it hears", |_| baresip::heard(&engine, number));
    phone.wait("the question", |_| {
        let loud = sound::at_the_end(&heard, 8_000, &[QUESTION_HZ, TONES_HZ[0]])?;
        (loud[0] > LOUD && loud[1] < QUIET).then_some(())
    });
    assert_eq!(member_of(&engine.get(&path), number), &Value::Null, "it has not confirmed");
    baresip::press(&mut phone, "1");
    let mut customer = Peer { number, hz, phone, heard, rate_hz: 8_000 };
    customer.hears(&[coach.hz, agent.hz]);

    let room = engine.get(&path);
    let [coach_id, agent_id] =
        ["1001", "1002"].map(|number| member_of(&room, number)["id"].as_u64().unwrap());
    let whisper = format!("{path}/members/{coach_id}/whisper");
    assert_eq!(engine.post(&whisper, &json!({"to": agent_id})).0, 204);
    customer.hears(&[agent.hz]);
    agent.hears(&[coach.hz, customer.hz]);
    coach.hears(&[agent.hz, customer.hz]);
    assert_eq!(engine.order(&format!("{path}/members/{coach_id}/unwhisper")), 204);
    customer.hears(&[coach.hz, agent.hz]);
    assert_eq!(engine.order(&format!("{path}/end")), 204);
    for peer in [&mut coach, &mut agent, &mut customer] {
        peer.phone.wait_for("session closed");
    }
}

fn baresip_in_room(engine: &Engine, number: &'static str, password: &str, hz: f64, pin: &str) -> Peer {
    baresip_at(engine, number, password, hz, ("200", pin))
}

/// A phone that dials a room and presses these keys.
fn baresip_at(
    engine: &Engine,
    number: &'static str,
    password: &str,
    hz: f64,
    (room, keys): (&str, &str),
) -> Peer {
    let plays = format!("{number}.wav");
    sound::write_tone(&engine.dir().join(&plays), 180, hz);
    let mut phone = baresip::keeping_phone(engine, number, password, &plays);
    phone.wait_for("registered successfully");
    phone.type_line(&format!("/dial sip:{room}@acme.test"));
    phone.wait_for("Call established");
    baresip::press(&mut phone, keys);
    let heard = phone.wait("what it hears", |_| baresip::heard(engine, number));
    Peer { number, hz, phone, heard, rate_hz: 8_000 }
}

/// Linphone prefers Opus.
fn linphone_in_room(engine: &Engine) -> Peer {
    let (number, hz) = ("1003", TONES_HZ[2]);
    sound::write_tone(&engine.dir().join("1003.wav"), 180, hz);
    let mut phone = linphone::keeping_phone(engine, number, "the-third-secret");
    linphone::wait_until_registered(&mut phone);
    phone.type_line("call sip:200@acme.test");
    phone.wait_for("Media streams established");
    linphone::press(&mut phone, "1234#");
    linphone::play(engine, &mut phone, "1003.wav");
    Peer { number, hz, phone, heard: linphone::heard(engine, number), rate_hz: 48_000 }
}

/// The member with that number.
fn member_of<'a>(room: &'a Value, number: &str) -> &'a Value {
    let members = room["members"].as_array().map(Vec::as_slice).unwrap_or_default();
    members.iter().find(|member| member["number"] == number).unwrap_or(&Value::Null)
}

/// None is near a multiple of another.
const TONES_HZ: [f64; 3] = [440.0, 700.0, 1_150.0];
/// Of an amplitude of 6,000, after a codec and a playout buffer.
const LOUD: f64 = 1_500.0;
const QUIET: f64 = 300.0;
const QUESTION_HZ: f64 = 1_850.0;
const DIRECTORY: &str = r#"
  [[organisations.extensions]]
  number = "1003"
  name = "Guest"
  password = "the-third-secret"
  [[organisations.rooms]]
  name = "Stand-up"
  number = "200"
  participant_pin = "1234"
  moderator_pin = "9876"
  [[organisations.rooms]]
  name = "Open"
  number = "300"
"#;
