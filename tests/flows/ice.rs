//! Phones with ICE and without DTLS, on real sockets: their address comes from ICE checks, whatever SDP says.

use sidetone_media::webrtc::write_request;
use tokio::net::UdpSocket;

use crate::common::site::{Site, within};
use crate::flows::by_hand::{HandCall, port_of, rtp};

/// The offer of a phone with ICE whose address in SDP is useless: nothing listens there.
const OFFER: &str = "c=IN IP4 192.0.2.77\na=rtpmap:0 PCMU/8000\n\
    a=candidate:1 1 UDP 2113929471 192.0.2.77 9 typ host\na=ice-ufrag:kQ3f\na=ice-pwd:yRbX7mPJO0YT7ZvWc4kBvR9c";
const AUDIO: &str = "m=audio PORT RTP/AVP 0";
/// The audio of a foreign source.
const FOREIGN: [u8; 160] = [0x66; 160];

/// The switch's side of ICE, as in the answer.
struct Agent {
    ufrag: String,
    password: String,
    serial: u32,
}

impl Agent {
    fn read(sdp: &str) -> Agent {
        assert!(sdp.contains("a=ice-lite\r\n") && !sdp.contains("fingerprint"), "{sdp}");
        let value = |name: &str| {
            let found = sdp.lines().find_map(|line| line.strip_prefix(name));
            found.unwrap_or_else(|| panic!("{name} in {sdp}")).to_owned()
        };
        Agent { ufrag: value("a=ice-ufrag:"), password: value("a=ice-pwd:"), serial: 0 }
    }

    /// A connectivity check that nominates.
    fn check(&mut self, password: &str) -> Vec<u8> {
        self.serial += 1;
        let mut transaction = [7; 12];
        transaction[8..].copy_from_slice(&self.serial.to_be_bytes());
        let name = format!("{}:kQ3f", self.ufrag);
        let attributes: [(u16, &[u8]); 4] =
            [(6, name.as_bytes()), (0x24, &[110, 0, 1, 255]), (0x802a, &[3; 8]), (0x25, &[])];
        write_request(transaction, &attributes, password)
    }

    /// Sends checks from `socket` until the port responds with a success.
    async fn proves(&mut self, socket: &UdpSocket, port: u16) {
        let password = self.password.clone();
        let mut buffer = [0; 2_048];
        within("the answer to a check", async {
            loop {
                socket.send_to(&self.check(&password), ("127.0.0.1", port)).await.unwrap();
                let next = socket.recv(&mut buffer);
                let next = tokio::time::timeout(std::time::Duration::from_millis(200), next).await;
                if next.is_ok_and(|length| length.unwrap() > 20) && buffer[..2] == [1, 1] {
                    return;
                }
            }
        })
        .await;
    }
}

fn packet(sequence: u16) -> Vec<u8> {
    rtp(0, sequence, u32::from(sequence) * 160, &[0x55; 160])
}

/// Sends packets from the callee until the phone receives one on `socket`.
async fn hears(call: &HandCall, socket: &UdpSocket, there: u16, first: u16) {
    let mut buffer = [0; 2_048];
    within("audio on the path of ICE", async {
        for sequence in first.. {
            call.media[1].send_to(&packet(sequence), ("127.0.0.1", there)).await.unwrap();
            let next = socket.recv(&mut buffer);
            let next = tokio::time::timeout(std::time::Duration::from_millis(20), next).await;
            // Responses to checks arrive too.
            if next.is_ok_and(|length| length.unwrap() == 172) {
                return;
            }
        }
    })
    .await;
}

/// A call whose caller has ICE; its media port and that of the callee.
async fn call_with_ice(site: &Site) -> (HandCall, Agent, u16, u16) {
    let offer = format!("m=audio 9 RTP/AVP 0\n{OFFER}");
    let call = HandCall::up(site, &offer, AUDIO).await;
    assert!(!call.offered.contains("a=ice") && !call.offered.contains("candidate"), "{}", call.offered);
    let (here, there) = (port_of(&call.answer, "audio"), port_of(&call.offered, "audio"));
    let agent = Agent::read(&call.answer);
    for component in
        [format!("1 1 udp 2130706431 127.0.0.1 {here}"), format!("1 2 udp 2130706430 127.0.0.1 {}", here + 1)]
    {
        assert!(call.answer.contains(&format!("a=candidate:{component} typ host\r\n")), "{}", call.answer);
    }
    (call, agent, here, there)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_with_ice_is_heard_and_hears_on_the_path_that_it_proved() {
    let site = Site::start().await;
    let (mut call, mut agent, here, there) = call_with_ice(&site).await;
    let rtcp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    agent.proves(&call.media[0], here).await;
    agent.proves(&rtcp, here + 1).await;
    for sequence in 1..=60 {
        let next = call.passes(0, here, &packet(sequence)).await;
        assert_eq!(next.len(), 172);
    }
    hears(&call, &call.media[0], there, 1).await;
    // RTCP reports are sent on the path of the second component.
    let mut report = [0; 2_048];
    let length = within("a report on the path of RTCP", async {
        loop {
            let length = rtcp.recv(&mut report).await.unwrap();
            if (200..=207).contains(&report[1]) {
                return length;
            }
        }
    })
    .await;
    assert!(length >= 8);
    call.ends().await;
    assert_eq!(site.record().await["hangup_cause"], "NORMAL_CLEARING");
}

/// Wrong passwords, noise and RTP from a foreign source, before and after the phone's path is confirmed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_source_takes_no_audio_and_is_answered_nothing() {
    let site = Site::start().await;
    let (mut call, mut agent, here, there) = call_with_ice(&site).await;
    let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut forged = Agent { ufrag: agent.ufrag.clone(), password: String::new(), serial: 0 };
    let mut spray = async || {
        for number in 0..200_u8 {
            for port in [here, here + 1] {
                let check = forged.check("not the password of SDP");
                stranger.send_to(&check, ("127.0.0.1", port)).await.unwrap();
                stranger.send_to(&[number; 40], ("127.0.0.1", port)).await.unwrap();
            }
            tokio::task::yield_now().await;
        }
    };
    spray().await;
    agent.proves(&call.media[0], here).await;
    spray().await;
    for sequence in 1..=60 {
        let passed = loop {
            let passed = call.passes(0, here, &packet(sequence)).await;
            // Noise from before the confirmation may arrive first; it is shorter.
            if passed.len() == 172 {
                break passed;
            }
        };
        assert!(passed[12..] != FOREIGN, "audio of a stranger is passed on");
        let foreign = rtp(0, 9_000 + sequence, u32::from(9_000 + sequence) * 160, &FOREIGN);
        stranger.send_to(&foreign, ("127.0.0.1", here)).await.unwrap();
    }
    hears(&call, &call.media[0], there, 1).await;
    assert!(stranger.try_recv_from(&mut [0; 2_048]).is_err(), "nothing is sent to a stranger");
    call.ends().await;
    assert_eq!(site.record().await["hangup_cause"], "NORMAL_CLEARING");
}

/// The phone's network changes: an ICE restart in a re-INVITE, and checks from another address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_moves_the_audio_to_the_new_path() {
    let site = Site::start().await;
    let (mut call, mut agent, here, there) = call_with_ice(&site).await;
    agent.proves(&call.media[0], here).await;
    hears(&call, &call.media[0], there, 1).await;
    let offer = call.sdp(0, &format!("m=audio 9 RTP/AVP 0\n{}", OFFER.replace("yRbX7m", "N3wPas")));
    let invite = call.in_dialog("INVITE", None).body("application/sdp", &offer);
    let accepted = call.caller.exchange(&invite).await;
    assert_eq!(accepted.status().as_u16(), 200);
    let ack = call.in_dialog("ACK", Some(invite.cseq));
    call.caller.send(&ack).await;
    let mut anew = Agent::read(std::str::from_utf8(accepted.body()).unwrap());
    assert!(anew.ufrag != agent.ufrag && anew.password != agent.password);
    hears(&call, &call.media[0], there, 500).await;
    let moved = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    anew.proves(&moved, here).await;
    hears(&call, &moved, there, 1_000).await;
    call.ends().await;
    assert_eq!(site.record().await["hangup_cause"], "NORMAL_CLEARING");
}
