//! Faxes by T.38 on real sockets: two devices switch from audio to UDPTL and back.

use sidetone_sip::message::Method;

use crate::common::site::Site;
use crate::flows::by_hand::{HandCall, port_of, rtp, text};

const AUDIO: &str = "m=audio PORT RTP/AVP 0";
const FAX: &str = "m=image PORT udptl t38\na=T38FaxVersion:0\na=T38MaxBitRate:14400\n\
    a=T38FaxRateManagement:transferredTCF\na=T38FaxMaxDatagram:400\na=T38FaxUdpEC:t38UDPRedundancy";

fn udptl(sequence: u16) -> Vec<u8> {
    let [high, low] = sequence.to_be_bytes();
    vec![high, low, 3, 0xc0, 0x01, 0x80, 0, 0]
}

/// Sends 60 packets of audio both ways; the last are numbered from `first` on.
async fn talk(call: &HandCall, first: u16, [here, there]: [u16; 2]) {
    for sequence in first..first + 60 {
        let packet = rtp(0, sequence, u32::from(sequence) * 160, &[0x55; 160]);
        call.media[0].send_to(&packet, ("127.0.0.1", here)).await.unwrap();
        call.media[1].send_to(&packet, ("127.0.0.1", there)).await.unwrap();
    }
    for (from, port) in [(0, here), (1, there)] {
        let last = rtp(0, first + 60, u32::from(first + 60) * 160, &[0x55; 160]);
        // Datagrams of an earlier fax may arrive first.
        while call.passes(from, port, &last).await.len() != last.len() {}
    }
}

/// Sends datagrams until a UDPTL one arrives; earlier audio may arrive first.
async fn faxes(call: &HandCall, from: usize, port: u16, sequences: std::ops::Range<u16>) {
    for sequence in sequences {
        while call.passes(from, port, &udptl(sequence)).await != udptl(sequence) {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_called_device_changes_to_fax_and_the_record_says_so() {
    let site = Site::start().await;
    let mut call = HandCall::up(&site, AUDIO, AUDIO).await;
    let audio = [port_of(&call.answer, "audio"), port_of(&call.offered, "audio")];
    talk(&call, 1, audio).await;

    let fax = call.sdp(1, FAX);
    call.callee_sends("INVITE", 500, &fax).await;
    let offered = call.caller.request("the offer of the fax", "INVITE").await;
    for line in FAX.lines().skip(1) {
        assert!(offered.contains(&format!("{line}\r\n")), "{line}: {offered}");
    }
    let here = port_of(&offered, "image");
    assert_eq!(here, audio[0], "the port of the audio");
    let answer = call.sdp(0, &FAX.replace("14400", "9600"));
    call.caller_replies(&offered, 200, &answer).await;
    let accepted = call.callee.response(&Method::Invite).await;
    assert_eq!(accepted.status().as_u16(), 200);
    let answer = text(accepted.body());
    assert!(answer.contains("a=T38MaxBitRate:9600\r\n"), "{answer}");
    let there = port_of(&answer, "image");
    call.callee_sends("ACK", 500, "").await;
    faxes(&call, 0, here, 0..10).await;
    faxes(&call, 1, there, 0..10).await;

    // After its pages the device returns to audio.
    let sdp = call.sdp(1, AUDIO);
    call.callee_sends("INVITE", 501, &sdp).await;
    let mut offered = call.caller.request("the offer of audio", "INVITE").await;
    while !offered.contains("m=audio") {
        offered = call.caller.request("the offer of audio", "INVITE").await;
    }
    let answer = call.sdp(0, AUDIO);
    call.caller_replies(&offered, 200, &answer).await;
    let mut accepted = call.callee.response(&Method::Invite).await;
    while accepted.cseq().unwrap().number != 501 {
        accepted = call.callee.response(&Method::Invite).await;
    }
    assert_eq!(accepted.status().as_u16(), 200);
    call.callee_sends("ACK", 501, "").await;
    talk(&call, 1_000, audio).await;
    call.ends().await;

    let record = site.record().await;
    assert_eq!(record["fax"], true, "{record:#}");
    assert_eq!([&record["codec_a"], &record["codec_b"]], ["PCMU", "PCMU"]);
    let quality = format!("/cdrs/{}/quality", record["call_uuid"].as_str().unwrap());
    let (status, quality) = site.get(&quality).await;
    assert_eq!(status, 200, "{quality}");
    for leg in quality["legs"].as_array().unwrap() {
        assert!(leg["fax"]["received"].as_u64().unwrap() >= 10, "{leg:#}");
        assert_eq!(leg["fax"]["missing"], 0, "{leg:#}");
        assert!(leg["inbound"]["packets"].as_u64().unwrap() >= 120, "{leg:#}");
        assert!(leg["sentence"].as_str().unwrap().contains("A fax (T.38) came from"), "{leg:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_without_fax_refuses_it_and_the_audio_goes_on() {
    let site = Site::start().await;
    let mut call = HandCall::up(&site, AUDIO, AUDIO).await;
    let audio = [port_of(&call.answer, "audio"), port_of(&call.offered, "audio")];
    let sdp = call.sdp(0, FAX);
    let offer = call.in_dialog("INVITE", None).body("application/sdp", &sdp);
    call.caller.send(&offer).await;
    let offered = call.callee.request(&Method::Invite).await;
    assert!(text(offered.body()).contains("udptl t38"), "{}", text(offered.body()));
    call.callee.reply(&offered, 488, "").await;
    let refused = call.final_response(&offer).await;
    assert_eq!(refused.status().as_u16(), 488);
    call.caller.acknowledge(&offer, &refused).await;
    talk(&call, 1, audio).await;
    call.ends().await;
    assert!(site.record().await["fax"].is_null());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_a_fax_from_its_first_offer_is_not_judged() {
    let site = Site::start().await;
    let mut call = HandCall::up(&site, FAX, FAX).await;
    let (here, there) = (port_of(&call.answer, "image"), port_of(&call.offered, "image"));
    faxes(&call, 0, here, 0..10).await;
    faxes(&call, 1, there, 0..10).await;
    call.ends().await;
    let record = site.record().await;
    assert_eq!((&record["fax"], &record["codec_a"]), (&true.into(), &"T38".into()), "{record:#}");
    assert!(record["media_verdict"].is_null(), "{record:#}");
}
