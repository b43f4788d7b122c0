//! Prompts that are played into a call over the API: which party hears them, on real sockets, with and without a common
//! codec.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sidetone_model::event::EventKind;
use sidetone_phone::{Answering, CallPlan, Heard, Phone, PhoneConfig, Voice};
use sidetone_sip::sdp::CodecPolicy;
use sidetone_store::Store;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::common::chosen::database_in;
use crate::common::room::events;
use crate::common::site::{KEY, Site, calls, directory, found, post, send, within};
use crate::common::tones::{WINDOW_MS, levels};

/// The tones of the caller, the callee and the prompt; none is a harmonic of another.
pub(crate) const TONES: [u32; 3] = [617, 430, 1_000];
pub(crate) const CALLER: usize = 0;
pub(crate) const CALLEE: usize = 1;
pub(crate) const PROMPT: usize = 2;

pub(crate) async fn saying(site: &Site, number: &str, codec: &str, hz: u32) -> (Arc<Phone>, Heard) {
    let heard = Heard::new();
    let answering = Answering::Answer { after: Duration::ZERO, talk: None };
    let config = PhoneConfig {
        codecs: CodecPolicy::new([codec]),
        voice: Some(Voice::Note(hz)),
        heard: Some(heard.clone()),
        ..site.phone_config(number, answering)
    };
    (Arc::new(site.phone_of(config).await), heard)
}

/// Whether the last received audio contains this tone and no other.
pub(crate) fn hears_only(heard: &Heard, tone: usize) -> Option<()> {
    let (pcm, rate_hz) = heard.lately(WINDOW_MS)?;
    let levels = levels(&pcm, rate_hz, &TONES);
    let fits = |(at, level): (usize, &f64)| if at == tone { *level > -6.0 } else { *level < -30.0 };
    levels.iter().enumerate().all(fits).then_some(())
}

/// Twenty seconds of the prompt's tone as a WAV file.
fn wav() -> Vec<u8> {
    let sample = |n: u32| {
        let angle = std::f64::consts::TAU * f64::from(TONES[PROMPT]) * f64::from(n) / 16_000.0;
        (5_000.0 * angle.sin()) as i16
    };
    let pcm: Vec<u8> = (0..20 * 16_000).flat_map(|n| sample(n).to_le_bytes()).collect();
    let len = u32::try_from(pcm.len()).unwrap();
    let mut wav = b"RIFF".to_vec();
    wav.extend((36 + len).to_le_bytes());
    wav.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    wav.extend(16_000_u32.to_le_bytes());
    wav.extend(32_000_u32.to_le_bytes());
    wav.extend(b"\x02\0\x10\0data");
    wav.extend(len.to_le_bytes());
    wav.extend(pcm);
    wav
}

/// Stores the prompt `goodbye` of the organisation.
pub(crate) async fn store_prompt(site: &Site) {
    let (_, page) = site.get("/organisations").await;
    let organisation = page["items"][0]["id"].as_str().unwrap().to_owned();
    let wav = wav();
    let head = format!(
        "PUT /api/v1/organisations/{organisation}/prompts/goodbye HTTP/1.1\r\nHost: sidetone.test\r\n\
         Authorization: Bearer {KEY}\r\nContent-Type: audio/wav\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        wav.len()
    );
    let mut stream = TcpStream::connect(site.http).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&wav).await.unwrap();
    let mut answer = String::new();
    within("the answer", stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

struct Talk {
    site: Site,
    path: String,
    caller: Arc<Phone>,
    caller_heard: Heard,
    callee_heard: Heard,
}

impl Talk {
    /// Plays the prompt until one party hears it: a new sound reaches the node within two seconds.
    async fn play(&self, side: &str) {
        let heard = if side == "caller" { &self.caller_heard } else { &self.callee_heard };
        found("the prompt", async || {
            let (_, live) = self.site.get(&self.path).await;
            if live.get("playing").is_none_or(|playing| playing["side"] != side) {
                let body = json!({"prompt": "goodbye", "side": side}).to_string();
                let (status, begun) = post(self.site.http, &format!("{}/play", self.path), "", &body).await;
                assert_eq!((status, &begun["side"]), (202, &json!(side)), "{begun}");
            }
            hears_only(heard, PROMPT)
        })
        .await;
    }

    async fn stop(&self) {
        let path = format!("{}/play", self.path);
        assert_eq!(send(self.site.http, "DELETE", &path, &Value::Null).await.0, 204);
    }

    async fn talk_to_each_other(&self) {
        found("the caller hears the callee", async || hears_only(&self.caller_heard, CALLEE)).await;
        found("the callee hears the caller", async || hears_only(&self.callee_heard, CALLER)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_plays_a_prompt_to_either_side() {
    for (number, codec) in [("1002", "PCMU"), ("1722", "G722")] {
        play_to_either_side(number, codec).await;
    }
}

async fn play_to_either_side(number: &str, codec: &str) {
    let permitted = "\"margin:read\", \"conferences:read\", \"conferences:write\", \"directory:read\"";
    let site = Site::with(&directory().replace("\"margin:read\"", permitted)).await;
    store_prompt(&site).await;
    let (caller, caller_heard) = saying(&site, "1001", "PCMU", TONES[CALLER]).await;
    let (callee, callee_heard) = saying(&site, number, codec, TONES[CALLEE]).await;
    let (phone, plan) = (Arc::clone(&caller), CallPlan { talk_time: None, ..CallPlan::to(number) });
    let call = tokio::spawn(async move { phone.call(plan).await.unwrap() });
    calls(&callee, 0, 1).await;
    // The phone that answered is up before the switch has marked the call as answered.
    let path = found("the answered call", async || {
        let (_, live) = site.get("/calls?state=answered").await;
        Some(format!("/calls/{}", live["items"][0]["uuid"].as_str()?))
    })
    .await;
    let talk = Talk { site, path, caller, caller_heard, callee_heard };
    talk.talk_to_each_other().await;
    for (body, status, names) in [
        (json!({"prompt": "nothing"}), 422, "prompt: "),
        (json!({"prompt": "goodbye", "side": "a"}), 422, "side: "),
        (json!({"side": "both"}), 400, "prompt: "),
        (json!({"side": "a"}), 422, "prompt: "),
        (json!({"side": "a"}), 422, "side: "),
    ] {
        let (answered, error) =
            post(talk.site.http, &format!("{}/play", talk.path), "", &body.to_string()).await;
        assert_eq!(answered, status, "{body}: {error}");
        assert!(error["error"]["message"].as_str().unwrap().contains(names), "{body}: {error}");
    }
    talk.play("callee").await;
    // The callee's audio reaches the caller all the time.
    talk.caller_heard.clear();
    found("the caller hears the callee", async || hears_only(&talk.caller_heard, CALLEE)).await;
    assert_eq!(hears_only(&talk.callee_heard, PROMPT), Some(()), "the prompt goes on");
    talk.play("caller").await;
    found("the callee hears the caller", async || hears_only(&talk.callee_heard, CALLER)).await;
    talk.stop().await;
    talk.talk_to_each_other().await;
    talk.play("both").await;
    found("the caller hears the prompt", async || hears_only(&talk.caller_heard, PROMPT)).await;
    // A recording begins and ends in between; neither is audible.
    for action in ["start", "stop"] {
        let body = json!({"action": action}).to_string();
        assert_eq!(
            post(talk.site.http, &format!("{}/record", talk.path), "", &body).await.0,
            200,
            "{action}"
        );
    }
    talk.caller.hang_up().await.unwrap();
    within("the caller", call).await.unwrap();
    talk.site.record().await;
    let body = json!({"prompt": "goodbye"}).to_string();
    let (status, error) = post(talk.site.http, &format!("{}/play", talk.path), "", &body).await;
    assert_eq!((status, &error["error"]["code"]), (409, &json!("conflict")), "{error}");
    let dir = talk.site.stop(Duration::ZERO).await;
    let store = Store::open(&database_in(dir.path())).await.unwrap();
    let ended = events(&store, EventKind::CallPromptEnded).await;
    let of = |result: &str| ended.iter().filter(|data| data["result"] == result).count();
    assert_eq!((of("replaced"), of("stopped"), of("call_ended")), (1, 1, 1), "{ended:?}");
    store.close().await;
}
