//! The audio that members of a room receive, through a complete engine: tones of real phones, told apart by frequency.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use sidetone_media::audio::wav::{Wav, header};
use sidetone_model::prompt::SoundName;
use sidetone_phone::{Answering, CallPlan, Heard, Phone, PhoneConfig, Voice};
use sidetone_sip::sdp::{CodecPolicy, Direction};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::common::records::at;
use crate::common::room::directory;
use crate::common::site::{Site, calls, found, post, within};
use crate::common::tones::{hears, holds_somewhere, level};

/// A room open to all callers, and one that waits for its moderator.
const ROOMS: &str = r#"
[[organisations.rooms]]
name = "Open"
number = "200"
[[organisations.rooms]]
name = "Led"
number = "300"
moderator_pin = "9876"
participant_pin = "1234"
wait_for_moderator = true
exemptions = [{ extension = "1001", role = "participant" }, { extension = "1002", role = "participant" }, { extension = "1003", role = "moderator" }]
"#;

/// None is a sum of others or of their harmonics, and none is in the hold tune for long.
const TONES: [u32; 5] = [430, 617, 941, 1_327, 1_873];

/// Five members with audio take half a core in a debug build: such tests run one at a time.
static TURN: Mutex<()> = Mutex::const_new(());

/// A member of a room that sends a tone.
struct Member {
    phone: Arc<Phone>,
    heard: Heard,
    call: JoinHandle<()>,
}

impl Member {
    /// Extension `number` dials the room, offers only `codec`, and sends a tone of `hz`.
    async fn joins(site: &Site, number: &str, room: &str, codec: &str, hz: u32) -> Member {
        let heard = Heard::new();
        let config = PhoneConfig {
            codecs: CodecPolicy::new([codec]),
            voice: Some(Voice::Note(hz)),
            heard: Some(heard.clone()),
            ..site.phone_config(number, Answering::Ring)
        };
        let phone = Arc::new(site.phone_of(config).await);
        let (caller, plan) = (Arc::clone(&phone), CallPlan { talk_time: None, ..CallPlan::to(room) });
        let call = tokio::spawn(async move {
            assert_eq!(caller.call(plan).await.unwrap().status, 200);
        });
        calls(&phone, 0, 1).await;
        Member { phone, heard, call }
    }

    async fn leaves(self) {
        self.phone.hang_up().await.unwrap();
        within("the end of the call", self.call).await.unwrap();
    }
}

async fn site() -> Site {
    Site::with(&format!("{}{ROOMS}", directory(1006))).await
}

/// The path of a live room.
async fn path(site: &Site, number: &str) -> String {
    let rooms = site.engine().store.directory().await.unwrap().rooms;
    let room = rooms.iter().find(|room| room.number == number).unwrap();
    format!("/conferences/svc-room-{}", room.id)
}

/// The member id of an extension.
async fn member(site: &Site, room: &str, number: &str) -> Value {
    found("a member", async || {
        let (_, room) = site.get(room).await;
        let members = room["members"].as_array()?.clone();
        members.into_iter().find(|member| member["number"] == number).map(|member| member["id"].clone())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_five_hears_exactly_the_four_others() {
    let _turn = TURN.lock().await;
    let site = site().await;
    let mut members = Vec::new();
    let codecs = ["PCMU", "PCMA", "G722", "opus", "PCMU"];
    for ((number, codec), hz) in (1_001..).zip(codecs).zip(TONES) {
        members.push(Member::joins(&site, &number.to_string(), "200", codec, hz).await);
    }
    for (member, own) in members.iter().zip(TONES) {
        let others: Vec<u32> = TONES.into_iter().filter(|hz| *hz != own).collect();
        hears(&member.heard, &TONES, &others).await;
    }
    let room = path(&site, "200").await;
    // Muted over HTTP, a member is not heard, hears the others, and can be unmuted.
    let first = member(&site, &room, "1001").await;
    assert_eq!(post(site.http, &format!("{room}/members/{first}/mute"), "", "").await.0, 204);
    for (member, own) in members.iter().zip(TONES).skip(1) {
        let others: Vec<u32> = TONES.into_iter().filter(|hz| *hz != own && *hz != TONES[0]).collect();
        hears(&member.heard, &TONES, &others).await;
    }
    hears(&members[0].heard, &TONES, &TONES[1..]).await;
    assert_eq!(post(site.http, &format!("{room}/members/{first}/unmute"), "", "").await.0, 204);
    hears(&members[1].heard, &TONES, &[TONES[0], TONES[2], TONES[3], TONES[4]]).await;
    // A member on hold contributes nothing to the room, though its phone continues to send.
    members[1].phone.offer(Direction::SendOnly).await.unwrap();
    hears(&members[0].heard, &TONES, &TONES[2..]).await;
    members[1].phone.offer(Direction::SendRecv).await.unwrap();
    hears(&members[0].heard, &TONES, &TONES[1..]).await;
    // A member that left is no longer heard; the last one hears none.
    members.remove(4).leaves().await;
    hears(&members[0].heard, &TONES, &TONES[1..4]).await;
    while members.len() > 1 {
        members.remove(1).leaves().await;
    }
    hears(&members[0].heard, &TONES, &[]).await;
    members.remove(0).leaves().await;
    site.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn music_plays_until_the_moderator_comes() {
    let _turn = TURN.lock().await;
    let site = site().await;
    let ada = Member::joins(&site, "1001", "300", "PCMU", TONES[0]).await;
    let bob = Member::joins(&site, "1002", "300", "opus", TONES[1]).await;
    // Music follows the announcement: there is audio, but not of the other member.
    for (member, others) in [(&ada, TONES[1]), (&bob, TONES[0])] {
        found("music", async || {
            let (pcm, rate_hz) = member.heard.lately(1_000)?;
            let loud = pcm.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / pcm.len() as f64;
            (loud.sqrt() > 100.0 && level(&pcm, rate_hz, others) < -30.0).then_some(())
        })
        .await;
    }
    let eve = Member::joins(&site, "1003", "300", "G722", TONES[2]).await;
    let tones = &TONES[..3];
    hears(&ada.heard, tones, &[TONES[1], TONES[2]]).await;
    hears(&bob.heard, tones, &[TONES[0], TONES[2]]).await;
    hears(&eve.heard, tones, &[TONES[0], TONES[1]]).await;
    for member in [ada, bob, eve] {
        member.leaves().await;
    }
    site.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_recording_of_a_session_holds_everyone() {
    let _turn = TURN.lock().await;
    let site = site().await;
    let mut members = Vec::new();
    for ((number, codec), hz) in (1_001..).zip(["PCMU", "opus", "G722"]).zip(TONES) {
        members.push(Member::joins(&site, &number.to_string(), "200", codec, hz).await);
    }
    let room = path(&site, "200").await;
    let organisation = site.engine().store.directory().await.unwrap().organisations[0].id;
    let folder = site.dir.path().join("recordings").join(organisation.to_string());
    let holds =
        || recordings(&folder).iter().any(|(pcm, rate)| holds_somewhere(pcm, *rate, &TONES, &TONES[..3]));
    // On a busy machine a member may miss a moment in each of the first recordings.
    for _ in 0..ATTEMPTS {
        assert_eq!(post(site.http, &format!("{room}/record"), "", r#"{"on":true}"#).await.0, 204);
        // Two seconds of the room, measured by received audio.
        members[0].heard.clear();
        found("two seconds", async || members[0].heard.lately(2_000)).await;
        assert_eq!(post(site.http, &format!("{room}/record"), "", r#"{"on":false}"#).await.0, 204);
        if holds() {
            break;
        }
    }
    for member in members {
        member.leaves().await;
    }
    site.idle().await;
    found("a recording of all three", async || holds().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sound_is_played_to_all_or_to_one() {
    let _turn = TURN.lock().await;
    let site = site().await;
    let ada = Member::joins(&site, "1001", "200", "PCMU", TONES[0]).await;
    let bob = Member::joins(&site, "1002", "200", "G722", TONES[1]).await;
    let room = path(&site, "200").await;
    let (tones, note) = (&TONES[..3], TONES[2]);
    let store = site.engine().store.clone();
    let organisation = store.directory().await.unwrap().organisations[0].id;
    let name = SoundName::from_name("own-note").unwrap();
    store.put_prompt(organisation, name, &minute_of(note), 60_000, at(0)).await.unwrap();
    let order = async |what: &str, body: Value| {
        let (status, _) = post(site.http, &format!("{room}/{what}"), "", &body.to_string()).await;
        status
    };
    hears(&ada.heard, tones, &TONES[1..2]).await;
    assert_eq!(order("play", json!({"prompt": "own-nothing"})).await, 422);
    assert_eq!(order("play", json!({"prompt": "own-note", "member": 77})).await, 400);
    assert_eq!(order("record", json!({"on": true})).await, 204);
    assert_eq!(order("play", json!({"prompt": "own-note"})).await, 204);
    assert_eq!(order("play", json!({"prompt": "hold-music"})).await, 409, "one at a time");
    assert_eq!(site.get(&room).await.1["playing"], json!({"prompt": "own-note"}));
    let with_note = [[TONES[1], note], [TONES[0], note]];
    tokio::join!(hears(&ada.heard, tones, &with_note[0]), hears(&bob.heard, tones, &with_note[1]));
    assert_eq!(order("stop-playing", json!({})).await, 204);
    assert_eq!(order("stop-playing", json!({})).await, 204);
    assert_eq!(site.get(&room).await.1.get("playing"), None);
    hears(&ada.heard, tones, &TONES[1..2]).await;
    let second = member(&site, &room, "1002").await;
    assert_eq!(order("play", json!({"prompt": "own-note", "member": second})).await, 204);
    // The room is quieter for the member to whom alone the sound is played.
    found("the sound for one", async || {
        let (pcm, rate_hz) = bob.heard.lately(400)?;
        (level(&pcm, rate_hz, note).abs() < 1.0 && level(&pcm, rate_hz, TONES[0]) < -9.0).then_some(())
    })
    .await;
    hears(&ada.heard, tones, &TONES[1..2]).await;
    let folder = site.dir.path().join("recordings").join(organisation.to_string());
    for member in [bob, ada] {
        member.leaves().await;
    }
    site.idle().await;
    found("a recording of the sound", async || {
        let files = recordings(&folder);
        files.iter().any(|(pcm, rate)| holds_somewhere(pcm, *rate, tones, tones)).then_some(())
    })
    .await;
}

/// A minute of a tone, at the level of the phones' tones.
fn minute_of(hz: u32) -> Vec<u8> {
    let sample = |n: u32| 5_000.0 * (std::f64::consts::TAU * f64::from(hz * (n % 16_000)) / 16_000.0).sin();
    let data: Vec<u8> = (0..16_000 * 60).flat_map(|n| (sample(n) as i16).to_le_bytes()).collect();
    [header(16_000, data.len() as u64).as_slice(), &data].concat()
}

/// The samples and the rate of every playable recording in a folder.
fn recordings(folder: &Path) -> Vec<(Vec<i16>, u32)> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .filter_map(|entry| {
            let file = std::fs::read(entry.path()).ok()?;
            let wav = Wav::parse(&file).ok()?;
            Some((wav.mono(), wav.rate_hz()))
        })
        .collect()
}

/// The number of recordings that are tried until one contains all members.
const ATTEMPTS: usize = 20;
