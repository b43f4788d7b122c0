//! Calls between phones that share no codec, on real sockets: what each hears, and what the record says.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use sidetone::phone::{Answering, CallPlan, PhoneConfig, Recorder, Voice};
use sidetone_media::audio::clip::Clip;
use sidetone_sip::sdp::{CodecPolicy, Direction};

use crate::answered::assert_whole;
use crate::records::TempDir;
use crate::site::{Site, calls, open_end, until, within};

/// The share of what a WAV file holds that is 440 Hz, from its second half.
fn share_of_tone(file: &Path) -> f64 {
    let clip = Clip::from_wav(&std::fs::read(file).unwrap()).unwrap();
    let samples = &clip.samples()[clip.samples().len() / 2..];
    let (mut sine, mut cosine, mut all) = (0.0, 0.0, 0.0);
    for (n, sample) in samples.iter().enumerate() {
        let (angle, sample) = (std::f64::consts::TAU * 440.0 * n as f64 / 16_000.0, f64::from(*sample));
        sine += sample * angle.sin();
        cosine += sample * angle.cos();
        all += sample * sample;
    }
    2.0 * (sine * sine + cosine * cosine) / samples.len() as f64 / all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn phones_without_a_common_codec_hear_each_other() {
    let site = Site::start().await;
    let folder = TempDir::new();
    let phone = async |number: &str, codec: &str| {
        let recorder = Recorder::create(&folder.path().join(format!("{number}.wav"))).unwrap();
        // Scenarios are PCMU whatever was settled; a voice is what was.
        let answers = Answering::Answer { after: Duration::ZERO, talk: None };
        let config = PhoneConfig {
            codecs: CodecPolicy::new([codec]),
            recorder: Some(recorder.clone()),
            voice: Some(Voice::Tone),
            ..site.phone_config(number, answers)
        };
        (site.phone_of(config).await, recorder)
    };
    let (caller, caller_hears) = phone("1001", "PCMU").await;
    let (callee, callee_hears) = phone("1002", "PCMA").await;
    let (outcome, ()) = within("the call", async {
        tokio::join!(caller.call(CallPlan { talk: None, ..open_end("1002") }), async {
            calls(&callee, 0, 1).await;
            calls(&caller, 0, 1).await;
            until("two seconds of audio", || caller_hears.seconds() > 2.0 && callee_hears.seconds() > 2.0)
                .await;
            // A hold and its end leave it as it was.
            caller.offer(Direction::SendOnly).await.unwrap();
            caller.offer(Direction::SendRecv).await.unwrap();
            until("two seconds more", || caller_hears.seconds() > 4.5 && callee_hears.seconds() > 4.5).await;
            caller.hang_up().await.unwrap();
        })
    })
    .await;
    assert_eq!(outcome.unwrap().status, 200);
    for (recorder, number) in [(&caller_hears, "1001"), (&callee_hears, "1002")] {
        recorder.flush().unwrap();
        let share = share_of_tone(&folder.path().join(format!("{number}.wav")));
        assert!(share > 0.8, "{number} heard {share:.2} of the tone");
    }
    let record = site.record().await;
    assert_whole(&record);
    assert_eq!([&record["codec_a"], &record["codec_b"]], [&json!("PCMU"), &json!("PCMA")]);
    assert_eq!(record["transcoded"], json!(true));
    let (_, page) = site.get("/cdrs?transcoded=true").await;
    assert_eq!(page["total"], 1, "{page:#}");
}
