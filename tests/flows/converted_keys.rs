//! Keys between a device that has only SIP INFO and one that has only telephone events, on real sockets.

use std::time::Duration;

use sidetone_media::rtp::RtpPacket;
use sidetone_sip::message::Method;

use crate::common::site::{Site, within};
use crate::flows::by_hand::{HandCall, port_of, rtp, text};

const ALLOW: &str = "INVITE, ACK, CANCEL, BYE, INFO";
const PLAIN: &str = "m=audio PORT RTP/AVP 0";
const EVENTS: &str = "m=audio PORT RTP/AVP 0 101\na=rtpmap:101 telephone-event/8000\na=fmtp:101 0-15";

/// The telephone events that one party receives while the other sends audio: code, end and duration, the last one of
/// each key.
async fn events(call: &HandCall, from: usize, port: u16, keys: usize) -> Vec<(u8, u16)> {
    let mut found: Vec<(u8, u16)> = Vec::new();
    let mut ends = 0;
    within("the events", async {
        let mut buffer = [0; 2_048];
        for sequence in 1..u16::MAX {
            let audio = rtp(0, sequence, u32::from(sequence) * 160, &[0x55; 160]);
            call.media[from].send_to(&audio, ("127.0.0.1", port)).await.unwrap();
            let next = call.media[1 - from].recv(&mut buffer);
            let Ok(Ok(length)) = tokio::time::timeout(Duration::from_millis(20), next).await else {
                continue;
            };
            let packet = RtpPacket::parse(&buffer[..length]).unwrap();
            assert_eq!(packet.header.ssrc, 0x5eed, "the stream goes on");
            if packet.header.payload_type != 101 {
                if found.len() == keys && ends >= 3 * keys {
                    return;
                }
                continue;
            }
            let [code, flags, high, low] = packet.payload.try_into().unwrap();
            let duration = u16::from_be_bytes([high, low]);
            if packet.header.marker {
                found.push((code, duration));
            }
            found.last_mut().unwrap().1 = duration;
            ends += usize::from(flags & 0x80 != 0);
        }
    })
    .await;
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_by_info_arrive_as_events_and_events_as_info() {
    let site = Site::start().await;
    let mut call = HandCall::up_allowing(&site, ALLOW, PLAIN, EVENTS).await;
    assert!(call.offered.contains("a=rtpmap:101 telephone-event/8000"), "{}", call.offered);
    assert!(!call.answer.contains("telephone-event"), "{}", call.answer);
    for digits in ["Signal=5\r\nDuration=100\r\n", "Signal=#\r\nDuration=160\r\n"] {
        let info = call.in_dialog("INFO", None).body("application/dtmf-relay", digits);
        assert_eq!(call.caller.exchange(&info).await.status().as_u16(), 200);
    }
    let here = port_of(&call.answer, "audio");
    assert_eq!(events(&call, 0, here, 2).await, [(5, 800), (11, 1_280)]);

    // The callee presses 7 for 60 ms; the end of the key is repeated.
    let there = port_of(&call.offered, "audio");
    for (n, (flags, duration)) in
        [(0_u8, 160_u16), (0, 320), (0x80, 480), (0x80, 480)].into_iter().enumerate()
    {
        let [high, low] = duration.to_be_bytes();
        let event = rtp(101, n as u16 + 1, 4_000, &[7, flags | 10, high, low]);
        call.media[1].send_to(&event, ("127.0.0.1", there)).await.unwrap();
    }
    let info = call.caller.request("the key", "INFO").await;
    assert!(
        info.contains("application/dtmf-relay") && info.contains("Signal=7\r\nDuration=60\r\n"),
        "{info}"
    );
    call.ends().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_with_events_reaches_a_callee_with_info() {
    let site = Site::start().await;
    let mut call = HandCall::up_allowing(&site, ALLOW, EVENTS, PLAIN).await;
    assert!(call.answer.contains("a=rtpmap:101 telephone-event/8000"), "{}", call.answer);
    let here = port_of(&call.answer, "audio");
    // The first packets with the end are lost.
    for (n, (flags, duration)) in [(0_u8, 160_u16), (0, 320), (0x80, 800)].into_iter().enumerate() {
        let [high, low] = duration.to_be_bytes();
        let event = rtp(101, n as u16 + 1, 4_000, &[10, flags | 10, high, low]);
        call.media[0].send_to(&event, ("127.0.0.1", here)).await.unwrap();
    }
    let info = call.callee.request(&Method::Info).await;
    assert_eq!(text(info.body()), "Signal=*\r\nDuration=100\r\n");
    call.callee.reply(&info, 200, "").await;
    call.ends().await;
}
