//! Members who are announced by their recorded spoken names, through a complete engine.

use std::sync::Arc;

use serde_json::Value;
use sidetone_media::audio::wav::Wav;
use sidetone_phone::{Answering, CallPlan, Heard, Phone, PhoneConfig, Voice};
use tokio::task::JoinHandle;

use crate::common::room::directory;
use crate::common::site::{Site, calls, found, send, within};
use crate::common::tones::{holds_somewhere, level};
use crate::flows::recorded::get_bytes;

const ROOM: &str = r#"
[[organisations.rooms]]
name = "Named"
number = "200"
announce_names = true
"#;

/// The tone that the speaker sends instead of a name.
const NAME: u32 = 617;

struct Member {
    phone: Arc<Phone>,
    heard: Heard,
    call: JoinHandle<()>,
}

impl Member {
    async fn dials(site: &Site, number: &str, voice: Voice) -> Member {
        let heard = Heard::new();
        let config = PhoneConfig {
            voice: Some(voice),
            heard: Some(heard.clone()),
            ..site.phone_config(number, Answering::Ring)
        };
        let phone = Arc::new(site.phone_of(config).await);
        let (caller, plan) = (Arc::clone(&phone), CallPlan { talk_time: None, ..CallPlan::to("200") });
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

    /// Waits until the tone of the name is heard.
    async fn hears_the_name(&self) {
        found("the name", async || {
            let (pcm, rate_hz) = self.heard.lately(400)?;
            (level(&pcm, rate_hz, NAME).abs() < 3.0).then_some(())
        })
        .await;
    }

    /// Waits until the tone of the name is over; a later occurrence is another announcement.
    async fn hears_the_end_of_the_name(&self) {
        found("the end of the name", async || {
            let (pcm, rate_hz) = self.heard.lately(400)?;
            (level(&pcm, rate_hz, NAME) < -30.0).then_some(())
        })
        .await;
    }
}

/// Waits until the room has this many members; meanwhile the phone presses the hash key, where one is given.
async fn members(site: &Site, room: &str, count: usize, asked: Option<&Phone>) {
    found("the members", async || {
        if let Some(phone) = asked {
            phone.dial("#").await.unwrap();
        }
        let (_, room) = site.get(room).await;
        (room["members"].as_array().map_or(0, Vec::len) == count).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spoken_name_is_heard_by_the_others_kept_and_deleted() {
    let may =
        directory(1006).replacen("\"recordings:listen\"", "\"recordings:listen\", \"directory:write\"", 1);
    let site = Site::with(&format!("{may}{ROOM}")).await;
    let stored = site.engine().store.directory().await.unwrap();
    let room = format!("/conferences/svc-room-{}", stored.rooms[0].id);
    let bob = stored.extensions.iter().find(|one| one.number == "1002").unwrap().id;
    let name = format!("/extensions/{bob}/spoken-name");

    // A member that skips the recording has no name.
    let ada = Member::dials(&site, "1001", Voice::Silence).await;
    members(&site, &room, 1, Some(&ada.phone)).await;

    // The second member speaks for five seconds; the name is still played after the phone has left.
    assert_eq!(get_bytes(site.http, &name, "").await.0, 404);
    let speaker = Member::dials(&site, "1002", Voice::Note(NAME)).await;
    members(&site, &room, 2, None).await;
    let (status, _, file) = get_bytes(site.http, &name, "").await;
    let wav = Wav::parse(&file).unwrap();
    assert_eq!(status, 200);
    assert!(wav.frames() <= 5 * 16_000, "{} samples", wav.frames());
    assert!(holds_somewhere(&wav.mono(), 16_000, &[440, NAME], &[NAME]));
    speaker.leaves().await;
    members(&site, &room, 1, None).await;
    ada.heard.clear();
    ada.hears_the_name().await;
    ada.hears_the_end_of_the_name().await;

    // A silent phone of the same extension is announced by the name, and is not prompted for one.
    let silent = Member::dials(&site, "1002", Voice::Silence).await;
    ada.heard.clear();
    ada.hears_the_name().await;
    members(&site, &room, 2, None).await;
    silent.leaves().await;

    assert_eq!(send(site.http, "DELETE", &name, &Value::Null).await.0, 204);
    assert_eq!(send(site.http, "DELETE", &name, &Value::Null).await.0, 404);
    assert_eq!(get_bytes(site.http, &name, "").await.0, 404);
    ada.leaves().await;
    site.idle().await;
}
