//! Two phones connected directly, and a phone with a socket that acts as the switch.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use sidetone_media::time::Micros;
use sidetone_model::exact_json::ExactJson;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

use super::*;

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("in time")
}

fn config(switch: SocketAddr, number: &str) -> PhoneConfig {
    PhoneConfig { voice: Some(Voice::Tone), ..PhoneConfig::new(switch, "acme.test", number, "secret") }
}

/// A caller and a callee with a call between them.
async fn call() -> (Phone, Phone) {
    let nobody: SocketAddr = ([127, 0, 0, 1], 9).into();
    let answering = Answering::Answer { after: Duration::ZERO, talk: None };
    let callee = PhoneConfig { answering, ..config(nobody, "1002") };
    let callee = Phone::start(callee).await.unwrap();
    let caller = Phone::start(config(callee.local(), "1001")).await.unwrap();
    let plan = CallPlan { talk_time: None, ..CallPlan::to("1002") };
    // The call is placed before its answer is awaited.
    let (mut up, mut taken) = (caller.calls(), callee.calls());
    let placed = caller.call(plan);
    tokio::select! {
        outcome = placed => panic!("the call ended: {outcome:?}"),
        both = within(async { (up.wait_for(|c| c.up == 1).await.is_ok(), taken.wait_for(|c| c.up == 1).await.is_ok()) }) => {
            assert_eq!(both, (true, true));
        }
    }
    (caller, callee)
}

fn note(id: &str) -> Parcel {
    let note = json!({"title": "Debt", "owes": {"EUR": 900}, "ack": true, "level": "alert", "id": id});
    Parcel::new(Channel::Info, note.to_string())
}

#[tokio::test]
async fn a_note_inside_a_call_is_shown_and_acknowledged_in_its_dialog() {
    let (sender, phone) = call().await;
    assert_eq!(within(sender.send(note("n1"))).await.unwrap(), 200);
    let shown = phone.notes();
    assert_eq!(shown.len(), 1);
    assert_eq!((shown[0].title.as_str(), shown[0].level, shown[0].ack), ("Debt", Level::Alert, true));
    assert_eq!((shown[0].channel, shown[0].from.as_str()), (Channel::Info, "sip:1001@acme.test"));
    assert_eq!(shown[0].rows, [("owes".to_owned(), ExactJson::object(br#"{"EUR": 900}"#).unwrap())]);
    assert!(shown[0].call_id.is_some());

    // The peer is a phone too, which shows anything with an id and a title.
    assert_eq!(within(phone.acknowledge("n1")).await.unwrap(), 200);
    let tap = sender.notes().remove(0);
    assert_eq!(
        (tap.id.as_str(), tap.title.as_str(), tap.ack, tap.rows[0].0.as_str()),
        ("n1", "Debt", true, "at")
    );
    assert_eq!(tap.call_id, shown[0].call_id);
    assert!(matches!(within(phone.acknowledge("n2")).await, Err(PhoneError::NoNote(_))));
    phone.hang_up().await.unwrap();
    within(phone.calls().wait_for(|calls| *calls == Calls::default())).await.unwrap();
    assert!(matches!(within(phone.acknowledge("n1")).await, Err(PhoneError::NoCall)));
}

#[tokio::test]
async fn a_phone_refuses_or_is_late_and_shows_what_it_should() {
    let (sender, phone) = call().await;
    for (noting, status, shown) in [
        (Noting::Refuse(501), 501, 0),
        (Noting::Refuse(481), 481, 0),
        (Noting::Late(Duration::from_millis(700)), 200, 1),
        (Noting::Show, 200, 2),
    ] {
        phone.treat_notes(noting).await.unwrap();
        assert_eq!(within(sender.send(note("n"))).await.unwrap(), status);
        assert_eq!(phone.notes().len(), shown, "{noting:?}");
    }
    for (content_type, body, status) in
        [("text/html", "<b>", 415), ("application/json", "[]", 400), ("application/json", "", 200)]
    {
        let mut parcel = Parcel::new(Channel::Info, body);
        parcel.content_type = content_type.to_owned();
        assert_eq!(within(sender.send(parcel)).await.unwrap(), status, "{content_type}");
    }
    assert_eq!((*phone.notes_count().borrow(), phone.calls().borrow().up), (2, 1));
}

#[tokio::test]
async fn a_tap_comes_by_itself_where_the_test_wants_it() {
    let (sender, phone) = call().await;
    phone.treat_notes(Noting::Tap).await.unwrap();
    assert_eq!(within(sender.send(note("n1"))).await.unwrap(), 200);
    within(sender.notes_count().wait_for(|count| *count == 1)).await.unwrap();
    assert_eq!((phone.notes().len(), sender.notes()[0].id.as_str()), (1, "n1"));
}

/// Returns a datagram, and its body as JSON.
async fn heard(switch: &UdpSocket) -> (String, Value) {
    let mut buffer = vec![0; 4_096];
    let (length, _) = within(switch.recv_from(&mut buffer)).await.unwrap();
    let text = String::from_utf8(buffer[..length].to_vec()).unwrap();
    let body = text.split_once("\r\n\r\n").map(|(_, body)| serde_json::from_str(body).unwrap_or_default());
    (text, body.unwrap_or_default())
}

fn reply(request: &str, status: &str, extra: &str) -> String {
    let kept = ["Via:", "From:", "To:", "Call-ID:", "CSeq:"];
    let lines = request.lines().filter(|line| kept.iter().any(|name| line.starts_with(name)));
    let lines: String = lines.map(|line| format!("{line}\r\n")).collect();
    format!("SIP/2.0 {status}\r\n{lines}{extra}Content-Length: 0\r\n\r\n")
}

#[tokio::test]
async fn a_note_by_message_is_acknowledged_by_message_with_the_digest() {
    let switch = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let phone = Phone::start(config(switch.local_addr().unwrap(), "1002")).await.unwrap();
    let body = r#"{"title":"Fire","ack":true,"id":"n7"}"#;
    let request = format!(
        "MESSAGE sip:1002@{0} SIP/2.0\r\nVia: SIP/2.0/UDP {1};branch=z9hG4bKn7\r\nMax-Forwards: 70\r\n\
         From: <sip:events@acme.test>;tag=e\r\nTo: <sip:1002@acme.test>\r\nCall-ID: n7\r\nCSeq: 1 MESSAGE\r\n\
         Content-Type: application/json\r\nContent-Length: {2}\r\n\r\n{body}",
        phone.local(),
        switch.local_addr().unwrap(),
        body.len()
    );
    switch.send_to(request.as_bytes(), phone.local()).await.unwrap();
    assert!(heard(&switch).await.0.starts_with("SIP/2.0 200 "));
    let shown = phone.notes();
    assert_eq!((shown[0].channel, shown[0].from.as_str()), (Channel::Message, "sip:events@acme.test"));

    let at = Micros(1_795_253_400_000_000);
    let tap = phone.acknowledge_at("n7", at);
    let switching = async {
        let (first, body) = heard(&switch).await;
        assert!(first.starts_with("MESSAGE sip:events@acme.test SIP/2.0\r\n"), "{first}");
        assert_eq!(body, json!({"ack": true, "id": "n7", "title": "Fire", "at": "2026-11-21T09:30:00Z"}));
        let challenge = "WWW-Authenticate: Digest realm=\"acme.test\",nonce=\"n\",qop=\"auth\"\r\n";
        let challenge = reply(&first, "401 Unauthorized", challenge);
        switch.send_to(challenge.as_bytes(), phone.local()).await.unwrap();
        let (again, same) = heard(&switch).await;
        assert!(again.contains("Authorization: Digest username=\"1002\""), "{again}");
        assert_eq!(same, body);
        switch.send_to(reply(&again, "202 Accepted", "").as_bytes(), phone.local()).await.unwrap();
    };
    let (status, ()) = within(async { tokio::join!(tap, switching) }).await;
    assert_eq!(status.unwrap(), 202);
}

#[tokio::test]
async fn a_call_is_taken_by_hand_dialled_in_and_ended() {
    let nobody: SocketAddr = ([127, 0, 0, 1], 9).into();
    let callee = Phone::start(PhoneConfig { calls_len_max: 1, ..config(nobody, "1002") }).await.unwrap();
    let caller = Phone::start(config(callee.local(), "1001")).await.unwrap();
    let (mut news, mut told) = (callee.news(), caller.news());
    assert!(matches!(callee.answer().await, Err(PhoneError::NoCall)));
    let person = async {
        assert_eq!(within(news.recv()).await.unwrap(), News::Ringing { peer: "1001".into(), name: None });
        // The limit is one call.
        let busy = caller.call(CallPlan::to("1002")).await.unwrap();
        assert_eq!(busy.status, 486);
        callee.answer().await.unwrap();
        let up = within(news.recv()).await.unwrap();
        assert!(matches!(&up, News::Up { peer, .. } if peer == "1001"), "{up:?}");
        let heard = callee.heard();
        within(async {
            while callee.heard() < heard + 10 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        callee.hang_up().await.unwrap();
    };
    let plan = CallPlan { talk_time: None, ..CallPlan::to("1002") };
    let (outcome, ()) = within(async { tokio::join!(caller.call(plan), person) }).await;
    let outcome = outcome.unwrap();
    assert_eq!((outcome.status, outcome.ended_by_peer), (200, true));
    assert_eq!(within(told.recv()).await.unwrap(), News::Progress { status: 180 });
}

/// A phone opens a TCP connection; the server's socket reads what it sends in pieces of any size.
#[tokio::test]
async fn a_phone_over_tcp_opens_a_connection_and_reads_pieces() {
    let switch = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = PhoneConfig { carrier: Carrier::Tcp, ..config(switch.local_addr().unwrap(), "1002") };
    let phone = Phone::start(config).await.unwrap();
    let switching = async {
        let (mut stream, from) = switch.accept().await.unwrap();
        let mut request = String::new();
        while !request.ends_with("\r\n\r\n") {
            request.push(char::from(stream.read_u8().await.unwrap()));
        }
        assert!(request.contains("Via: SIP/2.0/TCP "), "{request}");
        assert!(request.contains(&format!("Contact: <sip:1002@{from};transport=tcp>")), "{request}");
        let extra = format!("Contact: <sip:1002@{from};transport=tcp>;expires=120\r\n");
        for byte in reply(&request, "200 OK", &extra).into_bytes() {
            stream.write_u8(byte).await.unwrap();
        }
        stream
    };
    let (lasts, stream) = within(async { tokio::join!(phone.register("1002"), switching) }).await;
    assert_eq!(lasts.unwrap(), Duration::from_secs(120));
    let mut news = phone.news();
    drop(stream);
    assert_eq!(within(news.recv()).await.unwrap(), News::Lost);
}
