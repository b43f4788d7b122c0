//! Codecs that the engine does not decode: they are relayed between two devices that share one.

use serde_json::json;
use sidetone_sip::message::Method;

use crate::common::site::Site;
use crate::flows::by_hand::{HandCall, port_of, rtp, text};

/// A packet with 20 bytes of audio.
fn audio(payload_type: u8, sequence: u16) -> Vec<u8> {
    rtp(payload_type, sequence, u32::from(sequence) * 320, &[0x5a; 20])
}

const OFFER: &str = "m=audio PORT RTP/AVP 104 18 99\na=rtpmap:104 AMR-WB/16000\na=fmtp:104 octet-align=1; mode-set=0,2\n\
    a=fmtp:18 annexb=no\na=rtpmap:99 x-codec/24000/2";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn amr_passes_untouched_with_its_parameters() {
    let site = Site::start().await;
    let answer =
        "m=audio PORT RTP/AVP 110\na=rtpmap:110 AMR-WB/16000\na=fmtp:110 octet-align=1; mode-set=0,2;crc=0";
    let mut call = HandCall::up(&site, OFFER, answer).await;
    assert!(call.offered.contains("a=fmtp:104 octet-align=1; mode-set=0,2\r\n"), "{}", call.offered);
    assert!(call.offered.contains("a=fmtp:18 annexb=no\r\n"), "{}", call.offered);
    assert!(call.offered.contains("RTP/AVP 104 18 99\r\n"), "{}", call.offered);
    assert!(call.answer.contains("a=fmtp:104 octet-align=1; mode-set=0,2;crc=0\r\n"), "{}", call.answer);
    let (here, there) = (port_of(&call.answer, "audio"), port_of(&call.offered, "audio"));
    for sequence in 1..=60 {
        call.media[0].send_to(&audio(104, sequence), ("127.0.0.1", here)).await.unwrap();
    }
    let heard = call.passes(0, here, &audio(104, 61)).await;
    assert_eq!(heard[1] & 0x7f, 110, "the callee's number");
    assert_eq!(heard[12..], [0x5a; 20], "the payload is unchanged");
    let back = call.passes(1, there, &audio(110, 7)).await;
    assert_eq!((back[1] & 0x7f, &back[12..]), (104, &[0x5a; 20][..]));
    call.ends().await;
    let record = site.record().await;
    assert_eq!([&record["codec_a"], &record["codec_b"]], [&json!("AMR-WB"), &json!("AMR-WB")]);
    assert_eq!(record["transcoded"], json!(false));
    let (status, quality) =
        site.get(&format!("/cdrs/{}/quality", record["call_uuid"].as_str().unwrap())).await;
    assert_eq!(status, 200, "{quality}");
    let inbound = &quality["legs"][0]["inbound"];
    assert!(inbound["packets"].as_u64().unwrap() > 60, "{inbound:#}");
    assert!(inbound["mos_e_model"].is_null(), "the E-model has no values of AMR-WB: {inbound:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configurations_of_amr_that_differ_are_no_common_codec() {
    let site = Site::start().await;
    let mut call =
        HandCall::ringing(&site, "m=audio PORT RTP/AVP 104\na=rtpmap:104 AMR/8000\na=fmtp:104 octet-align=1")
            .await;
    let invite = call.callee.request(&Method::Invite).await;
    assert!(text(invite.body()).contains("RTP/AVP 104\r\n"), "nothing that the caller could not get");
    let answer = call.sdp(1, "m=audio PORT RTP/AVP 104\na=rtpmap:104 AMR/8000");
    call.callee.reply(&invite, 200, &answer).await;
    let outcome = call.outcome().await;
    assert_eq!(outcome.status().as_u16(), 488);
    assert_eq!(site.record().await["hangup_cause"], "INCOMPATIBLE_DESTINATION");
}
