//! Calls between phones that share no codec, on real sockets: the audio that each receives, and the record.

use std::time::Duration;

use serde_json::json;
use sidetone_phone::{Answering, CallPlan, Heard, Phone, PhoneConfig, Voice};
use sidetone_sip::sdp::{CodecPolicy, Direction};

use crate::common::site::{Site, established, open_end, until, within};
use crate::common::tones::hears;
use crate::flows::answered::assert_whole;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn phones_without_a_common_codec_hear_each_other() {
    for (caller, callee) in [("PCMU", "PCMA"), ("PCMU", "G722"), ("opus", "PCMA"), ("L16", "opus")] {
        hear_each_other(caller, callee).await;
    }
}

/// A phone with one codec that sends a tone and keeps the audio that it receives.
async fn phone(site: &Site, number: &str, codec: &str, hz: u32) -> (Phone, Heard) {
    let heard = Heard::new();
    // Scenarios always send PCMU; a voice uses the negotiated codec.
    let answers = Answering::Answer { after: Duration::ZERO, talk: None };
    let config = PhoneConfig {
        codecs: CodecPolicy::new([codec]),
        heard: Some(heard.clone()),
        voice: Some(Voice::Note(hz)),
        ..site.phone_config(number, answers)
    };
    (site.phone_of(config).await, heard)
}

async fn hear_each_other(caller_codec: &str, callee_codec: &str) {
    let site = Site::start().await;
    let (caller, caller_hears) = phone(&site, "1001", caller_codec, NOTES[0]).await;
    let (callee, callee_hears) = phone(&site, "1002", callee_codec, NOTES[1]).await;
    let (outcome, ()) = within("the call", async {
        tokio::join!(caller.call(CallPlan { talk: None, ..open_end("1002") }), async {
            established(&caller, &callee).await;
            hears(&caller_hears, &NOTES, &NOTES[1..]).await;
            hears(&callee_hears, &NOTES, &NOTES[..1]).await;
            // Hold and resume change nothing.
            caller.offer(Direction::SendOnly).await.unwrap();
            caller.offer(Direction::SendRecv).await.unwrap();
            caller_hears.clear();
            callee_hears.clear();
            hears(&caller_hears, &NOTES, &NOTES[1..]).await;
            hears(&callee_hears, &NOTES, &NOTES[..1]).await;
            // Enough for figures.
            until("two seconds of audio", || callee_hears.lately(2_000).is_some()).await;
            caller.hang_up().await.unwrap();
        })
    })
    .await;
    assert_eq!(outcome.unwrap().status, 200);
    let record = site.record().await;
    assert_whole(&record);
    assert_eq!([&record["codec_a"], &record["codec_b"]], [&json!(caller_codec), &json!(callee_codec)]);
    assert_eq!(record["transcoded"], json!(true));
    let (_, page) = site.get("/cdrs?transcoded=true").await;
    assert_eq!(page["total"], 1, "{page:#}");
}

/// The tones of the caller and of the callee.
const NOTES: [u32; 2] = [440, 700];
