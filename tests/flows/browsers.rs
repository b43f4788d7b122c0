//! Browsers through a complete engine: SIP over a WebSocket, ICE, DTLS-SRTP, and attacks on all of them.

use serde_json::{Value, json};
use sidetone::config::{Listener, Transport};
use sidetone_media::webrtc::{Certificate, Handshake, HandshakeOutput};
use sidetone_sip::flow::Protocol;
use tokio::net::UdpSocket;

use crate::common::browser::{Browser, Remote};
use crate::common::site::{PASSWORD, Site, answering, calls, directory, found, open_end, until, within};
use crate::common::tunnel::Tunnel;
use crate::common::wire::{Ask, Wire};
use crate::flows::answered::assert_whole;
use crate::flows::client_hello::null_client_hello;

/// An engine with a WebSocket listener and a room, whose extension 1003 is set up for browsers.
async fn site() -> Site {
    let line = "number = \"1003\"\n";
    let text = directory().replace(line, &format!("{line}srtp = \"webrtc\"\n"))
        + "[[organisations.rooms]]\nname = \"Open\"\nnumber = \"200\"\n";
    Site::configured(&text, |config| {
        config.sip.listen.push(Listener { transport: Transport::Ws, address: ([127, 0, 0, 1], 0).into() });
    })
    .await
}

/// The SIP of a browser.
async fn wire(site: &Site) -> (Tunnel, Wire) {
    let tunnel = Tunnel::ws(site.over(Protocol::Ws)).await;
    let wire = Wire::open(tunnel.udp).await;
    (tunnel, wire)
}

/// A call of a browser that was answered.
struct Call {
    wire: Wire,
    invite: Ask,
    /// The session description in the answer.
    sdp: String,
}

impl Call {
    /// Calls a number with this offer; returns the status when it is refused.
    async fn place(mut wire: Wire, number: &str, offer: &str) -> Result<Call, u16> {
        let ask = wire.invite("1001", number);
        let ask = Ask { headers: vec![ask.headers[0].clone()], ..ask }.body("application/sdp", offer);
        let invite = wire.authorize(&ask, "1001", PASSWORD).await;
        let response = wire.exchange(&invite).await;
        if response.status().as_u16() != 200 {
            return Err(response.status().as_u16());
        }
        let sdp = String::from_utf8(response.body().to_vec()).unwrap();
        let to = response.header("To").unwrap().to_owned();
        let contact = response.header("Contact").unwrap().trim_matches(['<', '>']).to_owned();
        let invite = Ask { to, uri: contact, ..invite };
        wire.send(&within_dialog(&invite, "ACK", 0)).await;
        Ok(Call { wire, invite, sdp })
    }

    /// Sends an offer inside the call; returns the description in the answer.
    async fn offer(&self, offer: &str) -> String {
        let mut ask = within_dialog(&self.invite, "INVITE", 1);
        ask.headers = vec![self.invite.headers[0].clone()];
        let ask = ask.body("application/sdp", offer);
        let response = self.wire.exchange(&ask).await;
        assert_eq!(response.status().as_u16(), 200);
        self.wire.send(&within_dialog(&self.invite, "ACK", 1)).await;
        String::from_utf8(response.body().to_vec()).unwrap()
    }

    async fn hang_up(&self) {
        let response = self.wire.exchange(&within_dialog(&self.invite, "BYE", 2)).await;
        assert_eq!(response.status().as_u16(), 200);
    }
}

fn within_dialog(invite: &Ask, method: &str, later: u32) -> Ask {
    Ask {
        method: method.into(),
        cseq: invite.cseq + later,
        branch: format!("{}{method}", invite.branch),
        headers: Vec::new(),
        body: String::new(),
        ..invite.clone()
    }
}

/// Waits until more packets arrive at both parties.
async fn hear_more(browser: &Browser, phone: &sidetone_phone::Phone) {
    let (here, there) = (browser.heard(), phone.heard());
    until("the browser hears", || browser.heard() >= here + 50).await;
    until("the phone hears", || phone.heard() >= there + 50).await;
}

async fn legs(site: &Site, record: &Value) -> Vec<Value> {
    let uuid = record["call_uuid"].as_str().unwrap();
    let (status, quality) = site.get(&format!("/cdrs/{uuid}/quality")).await;
    assert_eq!(status, 200, "{quality:#}");
    quality["legs"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_calls_a_phone_and_both_are_heard() {
    let site = site().await;
    let phone = site.phone("1002", answering()).await;
    for (records, setup) in [(1, "actpass"), (2, "passive")] {
        let (_tunnel, wire) = wire(&site).await;
        let mut browser = Browser::open().await;
        let call =
            Call::place(wire, "1002", &browser.sdp(setup)).await.unwrap_or_else(|status| panic!("{status}"));
        let remote = Remote::read(&call.sdp);
        let answered = if setup == "actpass" { "passive" } else { "active" };
        assert_eq!(remote.setup, answered);
        browser.connect(remote, answered == "passive");
        hear_more(&browser, &phone).await;
        hear_more(&browser, &phone).await;
        call.hang_up().await;
        calls(&phone, 0, 0).await;
        let record = &site.records(records).await[0];
        assert_eq!(record["hangup_cause"], json!("NORMAL_CLEARING"), "{record:#}");
        assert_whole(record);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_calls_a_browser_and_both_are_heard() {
    let site = site().await;
    let phone = site.phone("1002", answering()).await;
    let (_tunnel, mut wire) = wire(&site).await;
    let register = wire.register("1003", Some("<sip:1003@192.0.2.7>"));
    assert_eq!(wire.authorized(&register, "1003", PASSWORD).await.status().as_u16(), 200);
    let mut browser = Browser::open().await;
    let (outcome, ()) = within("the call", async {
        tokio::join!(phone.call(open_end("1003")), async {
            let invite = wire.request("the INVITE", "INVITE").await;
            let (head, offer) = invite.split_once("\r\n\r\n").unwrap();
            assert!(offer.contains("UDP/TLS/RTP/SAVPF"), "{offer}");
            let remote = Remote::read(offer);
            assert_eq!(remote.setup, "actpass");
            wire.send_bytes(answer_to(head, &browser.sdp("active")).as_bytes()).await;
            browser.connect(remote, true);
            wire.request("the ACK", "ACK").await;
            hear_more(&browser, &phone).await;
            hear_more(&browser, &phone).await;
            phone.hang_up().await.unwrap();
            let bye = wire.request("the BYE", "BYE").await;
            wire.send_bytes(answer_to(bye.split_once("\r\n\r\n").unwrap().0, "").as_bytes()).await;
        })
    })
    .await;
    assert_eq!(outcome.unwrap().status, 200);
    assert_whole(&site.record().await);
}

/// A 200 to the request with this head.
fn answer_to(head: &str, body: &str) -> String {
    let names = ["Via:", "From:", "Call-ID:", "CSeq:", "Record-Route:"];
    let mut text = "SIP/2.0 200 OK\r\n".to_owned();
    for line in head.split("\r\n") {
        if names.iter().any(|name| line.starts_with(name)) {
            text += &format!("{line}\r\n");
        } else if line.starts_with("To:") {
            let tag = if line.contains(";tag=") { "" } else { ";tag=browser" };
            text += &format!("{line}{tag}\r\n");
        }
    }
    let kind = if body.is_empty() { "" } else { "Content-Type: application/sdp\r\n" };
    text + &format!("Contact: <sip:1003@192.0.2.7>\r\n{kind}Content-Length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_checks_and_a_flood_of_dtls_cost_no_audio() {
    let site = site().await;
    let phone = site.phone("1002", answering()).await;
    let (_tunnel, wire) = wire(&site).await;
    let mut browser = Browser::open().await;
    let call =
        Call::place(wire, "1002", &browser.sdp("actpass")).await.unwrap_or_else(|status| panic!("{status}"));
    let remote = Remote::read(&call.sdp);
    let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let garbage = |number: u64| [&[22, 254, 253, 0, 0][..], &number.to_be_bytes(), &[7; 60]].concat();
    // Before the browser is known, and while it talks; from another address, and from the browser itself.
    for round in 0..2 {
        for number in 0..500 {
            let forged = remote.check(number, "yRbX7mPJO0YT7ZvWc4kBvR9c");
            stranger.send_to(&forged, remote.address).await.unwrap();
            stranger.send_to(&garbage(number), remote.address).await.unwrap();
            if round == 1 {
                browser.send(remote.address, &garbage(number)).await;
            }
        }
        if round == 0 {
            browser.connect(remote.clone(), true);
        }
        hear_more(&browser, &phone).await;
    }
    let mut buffer = [0; 2_048];
    assert!(stranger.try_recv_from(&mut buffer).is_err(), "nothing is sent to a stranger");
    call.hang_up().await;
    calls(&phone, 0, 0).await;
    assert_whole(&site.record().await);
}

/// Includes one that offers only NULL ciphers; before the browser's own, during its handshake and after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_hello_of_a_third_address_changes_no_call() {
    let site = site().await;
    let phone = site.phone("1002", answering()).await;
    let certificate = Certificate::self_signed().unwrap();
    let hello = Handshake::new(std::time::Instant::now(), &certificate, [1; 32], true).poll_output();
    let Some(HandshakeOutput::Datagram(hello)) = hello else { panic!("no ClientHello: {hello:?}") };
    let hellos = [hello, null_client_hello([7; 32])];
    for (records, setup) in [(1, "actpass"), (2, "passive")] {
        let (_tunnel, wire) = wire(&site).await;
        let mut browser = Browser::open().await;
        let call =
            Call::place(wire, "1002", &browser.sdp(setup)).await.unwrap_or_else(|status| panic!("{status}"));
        let remote = Remote::read(&call.sdp);
        let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let spray = || async {
            for _ in 0..100 {
                for hello in &hellos {
                    stranger.send_to(hello, remote.address).await.unwrap();
                }
                tokio::task::yield_now().await;
            }
        };
        spray().await;
        browser.connect(remote.clone(), setup == "actpass");
        tokio::join!(spray(), hear_more(&browser, &phone));
        spray().await;
        hear_more(&browser, &phone).await;
        assert!(stranger.try_recv_from(&mut [0; 2_048]).is_err(), "nothing is sent to a third address");
        call.hang_up().await;
        calls(&phone, 0, 0).await;
        let record = &site.records(records).await[0];
        assert_eq!(record["hangup_cause"], json!("NORMAL_CLEARING"), "{record:#}");
        assert_whole(record);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_fingerprint_is_heard_by_none() {
    let site = site().await;
    let phone = site.phone("1002", answering()).await;
    let (_tunnel, wire) = wire(&site).await;
    let mut browser = Browser::open().await;
    let offer = browser.sdp_with("actpass", [7; 32]);
    let call = Call::place(wire, "1002", &offer).await.unwrap_or_else(|status| panic!("{status}"));
    browser.connect(Remote::read(&call.sdp), true);
    // The switch no longer responds to this certificate.
    until("the browser repeats its flight", || browser.repeats() >= 2).await;
    assert_eq!((browser.heard(), phone.heard()), (0, 0));
    call.hang_up().await;
    calls(&phone, 0, 0).await;
    let record = site.record().await;
    assert_eq!(record["media_verdict"], json!("no_inbound_media"), "{record:#}");
    assert_eq!(legs(&site, &record).await.len(), 2);
}

/// Its firewall drops UDP. The address 0.0.0.0 in its description is no hold.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_whose_checks_never_arrive_is_silent() {
    let site = site().await;
    let phone = site.phone("1002", answering()).await;
    let (_tunnel, wire) = wire(&site).await;
    let browser = Browser::open().await;
    let call = Call::place(wire, "1002", &browser.sdp("actpass")).await;
    let call = call.unwrap_or_else(|status| panic!("{status}"));
    calls(&phone, 0, 1).await;
    let (_, page) = site.get("/calls").await;
    let quality = format!("/calls/{}/quality?timeline=false", page["items"][0]["uuid"].as_str().unwrap());
    found("the verdict on silence", async || {
        let (_, live) = site.get(&quality).await;
        (live["media_verdict"] == "no_inbound_media").then_some(())
    })
    .await;
    call.hang_up().await;
    calls(&phone, 0, 0).await;
    let record = site.record().await;
    assert_eq!(record["media_verdict"], json!("no_inbound_media"), "{record:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_talks_in_a_room_and_restarts_ice() {
    let site = site().await;
    let phone = site.phone("1002", answering()).await;
    let (_tunnel, wire) = wire(&site).await;
    let mut browser = Browser::open().await;
    let (outcome, ()) = within("the calls", async {
        tokio::join!(phone.call(open_end("200")), async {
            let call = Call::place(wire, "200", &browser.sdp("actpass")).await;
            let call = call.unwrap_or_else(|status| panic!("{status}"));
            let before = Remote::read(&call.sdp);
            browser.connect(before.clone(), true);
            hear_more(&browser, &phone).await;
            let after = Remote::read(&call.offer(&browser.restarted()).await);
            assert_ne!((&before.ufrag, &before.password), (&after.ufrag, &after.password));
            assert_eq!((before.address, &*after.setup), (after.address, "passive"), "the handshake stays");
            browser.use_restarted(after);
            hear_more(&browser, &phone).await;
            hear_more(&browser, &phone).await;
            call.hang_up().await;
            phone.hang_up().await.unwrap();
        })
    })
    .await;
    assert_eq!(outcome.unwrap().status, 200);
    for record in site.records(2).await {
        assert_whole(&record);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_without_ice_is_refused() {
    let site = site().await;
    let _phone = site.phone("1002", answering()).await;
    let (_tunnel, wire) = wire(&site).await;
    let offer = Browser::open().await.sdp("actpass").replace("a=ice-ufrag", "a=x-ufrag");
    assert_eq!(Call::place(wire, "1002", &offer).await.err(), Some(488));
}
