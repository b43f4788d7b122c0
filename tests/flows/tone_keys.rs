//! Keys between a device that has only in-band tones and one that has telephone events or INFO, on real sockets.

use std::time::Duration;

use sidetone_media::codec::g711::{PCMU_TO_PCM, pcm_to_pcmu};
use sidetone_media::dtmf_audio::DtmfDetector;
use sidetone_media::rtp::RtpPacket;
use tokio::net::UdpSocket;

use crate::common::site::{Site, within};
use crate::flows::by_hand::{HandCall, port_of, rtp};

/// Without INFO.
const ALLOW: &str = "INVITE, ACK, CANCEL, BYE";
const PLAIN: &str = "m=audio PORT RTP/AVP 0";
const EVENTS: &str = "m=audio PORT RTP/AVP 0 101\na=rtpmap:101 telephone-event/8000\na=fmtp:101 0-15";

/// Audio packet number `n`: noise, with the tones of these keys, 120 ms each and 200 ms apart, from packet 10 on.
fn audio(n: u16, keys: &[(f32, f32)]) -> Vec<u8> {
    let key = n.checked_sub(10).filter(|n| n % 16 < 6).and_then(|n| keys.get(usize::from(n / 16)));
    let sample = |place: u16| {
        let seconds = (f32::from(n) * 160.0 + f32::from(place)) / 8_000.0;
        let tone = |hz: f32| 6_000.0 * (std::f32::consts::TAU * hz * seconds).sin();
        let noise = f32::from(n.wrapping_mul(31).wrapping_add(place.wrapping_mul(17)) % 41) - 20.0;
        key.map_or(0.0, |(low, high)| tone(*low) + tone(*high)) + noise
    };
    let payload: Vec<u8> = (0..160).map(|place| pcm_to_pcmu(sample(place) as i16)).collect();
    rtp(0, n, u32::from(n) * 160, &payload)
}

/// The keys that a device receives: by events, and as tones in the audio.
#[derive(Default)]
struct Got {
    events: Vec<u8>,
    ends: usize,
    tones: String,
    detector: Option<DtmfDetector>,
}

impl Got {
    fn take(&mut self, datagram: &[u8]) {
        let packet = RtpPacket::parse(datagram).unwrap();
        match packet.header.payload_type {
            101 => {
                if packet.header.marker {
                    self.events.push(packet.payload[0]);
                }
                self.ends += usize::from(packet.payload[1] & 0x80 != 0);
            }
            0 => {
                let pcm: Vec<i16> =
                    packet.payload.iter().map(|byte| PCMU_TO_PCM[usize::from(*byte)]).collect();
                self.tones.extend(self.detector.get_or_insert_with(DtmfDetector::new).push(&pcm));
            }
            other => panic!("payload type {other}"),
        }
    }
}

/// Sends packets from one party to `port` until `wanted` is true for what the other received.
async fn send(
    [from, to]: [&UdpSocket; 2],
    port: u16,
    packet: impl Fn(u16) -> Vec<u8>,
    wanted: impl Fn(&Got) -> bool,
) -> Got {
    let mut got = Got::default();
    within("the keys", async {
        let mut buffer = [0; 2_048];
        for n in 1..u16::MAX {
            from.send_to(&packet(n), ("127.0.0.1", port)).await.unwrap();
            let next = to.recv(&mut buffer);
            if let Ok(Ok(length)) = tokio::time::timeout(Duration::from_millis(20), next).await {
                got.take(&buffer[..length]);
            }
            if wanted(&got) {
                return;
            }
        }
    })
    .await;
    got
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tones_arrive_as_events_and_events_as_tones() {
    let site = Site::start().await;
    let mut call = HandCall::up_allowing(&site, ALLOW, PLAIN, EVENTS).await;
    assert!(call.offered.contains("a=rtpmap:101 telephone-event/8000"), "{}", call.offered);
    assert!(!call.answer.contains("telephone-event"), "{}", call.answer);
    let (here, there) = (port_of(&call.answer, "audio"), port_of(&call.offered, "audio"));
    let [caller, callee] = &call.media;
    let keys = [(770.0, 1_336.0), (941.0, 1_477.0)];
    let got = send([caller, callee], here, |n| audio(n, &keys), |got| got.ends >= 6).await;
    assert_eq!(
        (got.events, got.tones.as_str()),
        (vec![5, 11], ""),
        "the tones do not come beside the events"
    );

    // The callee presses 7 for 100 ms.
    for (n, (flags, duration)) in
        [(0_u8, 160_u16), (0, 480), (0x80, 800), (0x80, 800)].into_iter().enumerate()
    {
        let [high, low] = duration.to_be_bytes();
        let event = rtp(101, n as u16 + 1, 4_000, &[7, flags | 10, high, low]);
        callee.send_to(&event, ("127.0.0.1", there)).await.unwrap();
    }
    let got = send([callee, caller], there, |n| audio(n + 100, &[]), |got| !got.tones.is_empty()).await;
    assert_eq!((got.events, got.tones.as_str()), (vec![], "7"));
    call.ends().await;
    assert_eq!(site.record().await["hangup_cause"], "NORMAL_CLEARING");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_called_device_with_tones_gets_the_keys_of_the_caller() {
    let site = Site::start().await;
    let mut call = HandCall::up_allowing(&site, ALLOW, EVENTS, PLAIN).await;
    assert!(call.answer.contains("a=rtpmap:101 telephone-event/8000"), "{}", call.answer);
    let (here, there) = (port_of(&call.answer, "audio"), port_of(&call.offered, "audio"));
    let [caller, callee] = &call.media;
    let got = send([callee, caller], there, |n| audio(n, &[(697.0, 1_209.0)]), |got| got.ends >= 3).await;
    assert_eq!((got.events, got.tones.as_str()), (vec![1], ""));
    let event = rtp(101, 1, 4_000, &[10, 0x80 | 10, 3, 32]);
    caller.send_to(&event, ("127.0.0.1", here)).await.unwrap();
    let got = send([caller, callee], here, |n| audio(n + 100, &[]), |got| !got.tones.is_empty()).await;
    assert_eq!(got.tones, "*");
    call.ends().await;
}

/// INFO of a device to one with tones only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_by_info_arrives_as_tones() {
    let site = Site::start().await;
    let mut call = HandCall::up_allowing(&site, ALLOW, PLAIN, PLAIN).await;
    let info = call.in_dialog("INFO", None).body("application/dtmf-relay", "Signal=9\r\nDuration=120\r\n");
    assert_eq!(call.caller.exchange(&info).await.status().as_u16(), 200);
    let here = port_of(&call.answer, "audio");
    let [caller, callee] = &call.media;
    let got = send([caller, callee], here, |n| audio(n, &[]), |got| !got.tones.is_empty()).await;
    assert_eq!(got.tones, "9");
    call.ends().await;
}

/// Two devices with tones only: the audio is relayed unchanged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tones_between_two_devices_without_another_form_stay_as_they_are() {
    let site = Site::start().await;
    let mut call = HandCall::up_allowing(&site, ALLOW, PLAIN, PLAIN).await;
    let here = port_of(&call.answer, "audio");
    let [caller, callee] = &call.media;
    let got =
        send([caller, callee], here, |n| audio(n, &[(770.0, 1_336.0)]), |got| !got.tones.is_empty()).await;
    assert_eq!((got.events, got.tones.as_str()), (vec![], "5"));
    call.ends().await;
}
