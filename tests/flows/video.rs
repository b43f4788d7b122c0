//! Video on real sockets: it is relayed between two phones that may have it, ends when one of them drops it, and is
//! refused otherwise. The record judges only the audio.

use std::time::Duration;

use sidetone_sip::message::Method;
use tokio::net::UdpSocket;

use crate::common::site::{Site, directory, within};
use crate::flows::by_hand::{HandCall, port_of, rtp, text};

/// Extensions with these lines.
fn with(lines: [&str; 2]) -> String {
    let mut text = directory();
    for (number, lines) in ["1001", "1002"].into_iter().zip(lines) {
        let line = format!("number = \"{number}\"\n");
        text = text.replace(&line, &format!("{line}{lines}"));
    }
    text
}

async fn socket() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").await.unwrap()
}

/// Audio, and video at the port of a socket.
fn shown(socket: &UdpSocket) -> String {
    let port = socket.local_addr().unwrap().port();
    format!(
        "m=audio PORT RTP/AVP 0\nm=video {port} RTP/AVPF 102\nb=AS:512\na=rtpmap:102 VP8/90000\n\
         a=rtcp-fb:102 nack pli"
    )
}

/// Sends a picture to a port until the other party receives it. A copy of an earlier one, which was sent again, may arrive
/// before; nothing else may.
async fn passes(from: &UdpSocket, port: u16, to: &UdpSocket, picture: &[u8]) {
    let mut buffer = [0; 2_048];
    within("a packet of video", async {
        loop {
            from.send_to(picture, ("127.0.0.1", port)).await.unwrap();
            while let Ok(length) = tokio::time::timeout(AGAIN_AFTER, to.recv(&mut buffer)).await {
                let received = &buffer[..length.unwrap()];
                if received == picture {
                    return;
                }
                assert_eq!(
                    received[RTP_HEADER_BYTES..],
                    picture[RTP_HEADER_BYTES..],
                    "another sender's packet"
                );
            }
        }
    })
    .await;
}

/// Sends packets of video until three in turn are not received, although audio that was sent after each of them was.
async fn no_longer_passes(from: &UdpSocket, port: u16, to: &UdpSocket, call: &HandCall) {
    let audio_port = port_of(&call.answer, "audio");
    let mut buffer = [0; 2_048];
    within("the end of the video", async {
        let mut dropped = 0;
        // After the packets of `talk`.
        for (sequence, audio) in (20..).zip(62_u16..) {
            let late = rtp(102, sequence, 12_000, &[7; 1_200]);
            from.send_to(&late, ("127.0.0.1", port)).await.unwrap();
            let audio = rtp(0, audio, u32::from(audio) * 160, &[0x55; 160]);
            call.media[0].send_to(&audio, ("127.0.0.1", audio_port)).await.unwrap();
            while call.media[1].recv(&mut buffer).await.unwrap() != audio.len()
                || buffer[..audio.len()] != audio
            {}
            let mut passed = false;
            while let Ok(length) = to.try_recv(&mut buffer) {
                passed |= buffer[..length] == late;
            }
            dropped = if passed { 0 } else { dropped + 1 };
            if dropped == 3 {
                return;
            }
        }
    })
    .await;
}

/// Sixty packets of audio both ways, enough for a verdict.
async fn talk(call: &HandCall) {
    let ports = [port_of(&call.answer, "audio"), port_of(&call.offered, "audio")];
    for sequence in 1..=60 {
        let packet = rtp(0, sequence, u32::from(sequence) * 160, &[0x55; 160]);
        for (media, port) in call.media.iter().zip(ports) {
            media.send_to(&packet, ("127.0.0.1", port)).await.unwrap();
        }
    }
    for (from, port) in ports.into_iter().enumerate() {
        let last = rtp(0, 61, 61 * 160, &[0x55; 160]);
        call.passes(from, port, &last).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn video_passes_beside_the_audio_until_a_phone_drops_it() {
    let strict = "video = \"pass\"\nstrict_source = \"sdp\"\n";
    let site = Site::with(&with([strict, strict])).await;
    let (caller, callee, stranger) = (socket().await, socket().await, socket().await);
    let mut call = HandCall::up(&site, &shown(&caller), &shown(&callee)).await;
    for sdp in [&call.offered, &call.answer] {
        let lines = "RTP/AVPF 102\r\nb=AS:512\r\na=rtpmap:102 VP8/90000\r\na=rtcp-fb:102 nack pli\r\n";
        assert!(sdp.contains(lines), "{sdp}");
    }
    let [here, there] = [port_of(&call.answer, "video"), port_of(&call.offered, "video")];
    assert_eq!((here % 2, here != port_of(&call.answer, "audio")), (0, true));
    talk(&call).await;
    // Complete pictures: long packets, several with one timestamp.
    for sequence in 0..20_u16 {
        stranger.send_to(&rtp(102, 500 + sequence, 0, &[9; 900]), ("127.0.0.1", here)).await.unwrap();
        let picture = rtp(102, sequence, u32::from(sequence / 5) * 3_000, &[7; 1_200]);
        passes(&caller, here, &callee, &picture).await;
        passes(&callee, there, &caller, &picture).await;
    }

    // The callee's camera is switched off.
    let alone = call.sdp(1, "m=audio PORT RTP/AVP 0\nm=video 0 RTP/AVPF 102");
    call.callee_sends("INVITE", 500, &alone).await;
    let offered = call.caller.request("the offer without video", "INVITE").await;
    assert!(offered.contains("m=video 0 RTP/AVPF 102\r\n"), "{offered}");
    let answer = call.sdp(0, "m=audio PORT RTP/AVP 0\nm=video 0 RTP/AVPF 102");
    call.caller_replies(&offered, 200, &answer).await;
    let accepted = call.callee.response(&Method::Invite).await;
    assert_eq!(accepted.status().as_u16(), 200);
    assert!(text(accepted.body()).contains("m=video 0 RTP/AVPF 102\r\n"), "{}", text(accepted.body()));
    call.callee_sends("ACK", 500, "").await;
    no_longer_passes(&caller, here, &callee, &call).await;
    call.ends().await;

    let record = site.record().await;
    assert_eq!((&record["media_verdict"], &record["codec_a"]), (&"ok".into(), &"PCMU".into()), "{record:#}");
    let quality = format!("/cdrs/{}/quality", record["call_uuid"].as_str().unwrap());
    let (status, quality) = site.get(&quality).await;
    assert_eq!(status, 200, "{quality}");
    for leg in quality["legs"].as_array().unwrap() {
        let video = &leg["video"];
        assert!(video["received"].as_u64().unwrap() >= 20, "{leg:#}");
        assert!(video["received_bytes"].as_u64().unwrap() >= 24_000, "{leg:#}");
        assert!(video["sent"].as_u64().unwrap() >= 20, "{leg:#}");
        assert_eq!((&video["missing"], &leg["media_verdict"]), (&0.into(), &"ok".into()), "{leg:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn video_is_refused_unless_both_phones_may_have_it() {
    for lines in [["", "video = \"pass\"\n"], ["video = \"pass\"\n", "video = \"off\"\n"]] {
        let site = Site::with(&with(lines)).await;
        let (caller, callee) = (socket().await, socket().await);
        let mut call = HandCall::up(&site, &shown(&caller), "m=audio PORT RTP/AVP 0").await;
        assert!(!call.offered.contains("m=video"), "{}", call.offered);
        assert!(call.answer.contains("m=video 0 RTP/AVPF 102\r\n"), "{}", call.answer);
        talk(&call).await;
        let offer = call.sdp(1, &shown(&callee));
        call.callee_sends("INVITE", 500, &offer).await;
        let accepted = call.callee.response(&Method::Invite).await;
        assert_eq!(accepted.status().as_u16(), 200);
        assert!(text(accepted.body()).contains("m=video 0 "), "{}", text(accepted.body()));
        call.callee_sends("ACK", 500, "").await;
        call.ends().await;
        let record = site.record().await;
        assert_eq!(record["media_verdict"], "ok", "{record:#}");
    }
}

/// The time after which a picture is sent again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
const RTP_HEADER_BYTES: usize = 12;
