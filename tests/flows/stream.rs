//! SIP over TCP: phones that register, call and send notes over one connection, and abusive connections.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;
use sidetone_phone::{Answering, CallPlan, Carrier, Channel, Parcel, Phone, PhoneConfig};
use sidetone_sip::message::{Message, Method, Response, StatusCode, StreamEvent, StreamParser};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::common::site::{
    DOMAIN, PASSWORD, Site, answering, calls, established, open_end, post, talking, until, within,
};
use crate::common::wire::Wire;
use crate::flows::answered::is_uneven_at_most;
use crate::flows::notes::{extension, record, status_is};

fn tcp(site: &Site) -> SocketAddr {
    site.tcp()
}

/// A registered phone whose SIP goes over TCP.
async fn phone(site: &Site, number: &str, answering: Answering) -> Phone {
    let config = site.phone_config(number, answering);
    site.phone_of(PhoneConfig { switch: tcp(site), carrier: Carrier::Tcp, ..config }).await
}

/// A manual connection.
struct Line {
    stream: TcpStream,
    parser: StreamParser,
}

impl Line {
    async fn open(to: SocketAddr) -> Line {
        Line::from("127.0.0.1", to).await
    }

    async fn from(source: &str, to: SocketAddr) -> Line {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(source.parse().unwrap(), 0)).unwrap();
        let stream = within("a connection", socket.connect(to)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Line { stream, parser: StreamParser::new() }
    }

    fn options(&self, n: u32) -> String {
        let here = self.stream.local_addr().unwrap();
        format!(
            "OPTIONS sip:{DOMAIN} SIP/2.0\r\nVia: SIP/2.0/TCP {here};branch=z9hG4bK{}-{n}\r\nMax-Forwards: 70\r\n\
             From: <sip:1001@{DOMAIN}>;tag={n}\r\nTo: <sip:{DOMAIN}>\r\nCall-ID: {}-{n}\r\nCSeq: {n} OPTIONS\r\n\
             Content-Length: 0\r\n\r\n",
            here.port(),
            here.port(),
        )
    }

    async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    async fn response(&mut self) -> Option<Response> {
        match self.message().await? {
            Message::Response(response) => Some(response),
            Message::Request(request) => panic!("{request:?}"),
        }
    }

    /// The next message; `None` when the connection is closed.
    async fn message(&mut self) -> Option<Message> {
        let mut chunk = [0; 4_096];
        within("a message or an end", async {
            loop {
                if let Some(event) = self.parser.poll() {
                    let StreamEvent::Message(message) = event else { panic!("{event:?}") };
                    return Some(message);
                }
                match self.stream.read(&mut chunk).await {
                    Ok(0) | Err(_) => return None,
                    Ok(length) => self.parser.push(&chunk[..length]),
                }
            }
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_on_tcp_calls_and_is_called() {
    let site = Site::start().await;
    let (stream, datagram) = (phone(&site, "1001", answering()).await, site.phone("1002", answering()).await);
    for (caller, number) in [(&stream, "1002"), (&datagram, "1001")] {
        let outcome = within("the call", caller.call(talking(number, 600))).await.unwrap();
        assert_eq!(outcome.status, 200, "to {number}");
    }
    for record in site.records(2).await {
        assert_eq!(
            (&record["hangup_cause"], &record["sip_status"]),
            (&"NORMAL_CLEARING".into(), &200.into())
        );
        assert!(is_uneven_at_most(&record["media_verdict"]), "{record:#}");
    }
}

/// Both phones on TCP, held and hung up by the callee: every request inside the dialog uses its connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_phones_on_tcp_hang_up_and_are_cancelled() {
    let site = Site::start().await;
    let (caller, callee) = (phone(&site, "1001", answering()).await, phone(&site, "1002", answering()).await);
    let (outcome, ()) = tokio::join!(within("the call", caller.call(open_end("1002"))), async {
        established(&caller, &callee).await;
        callee.hang_up().await.unwrap();
    });
    assert_eq!(outcome.unwrap().status, 200);
    let silent = phone(&site, "1002", Answering::Ring).await;
    drop(callee);
    until("the first device is gone", || site.engine().bindings() == 2).await;
    let plan = CallPlan { patience: Some(Duration::from_millis(300)), ..CallPlan::to("1002") };
    assert_eq!(within("the call", caller.call(plan)).await.unwrap().status, 487);
    calls(&silent, 0, 0).await;
    site.records(2).await;
}

/// Notes of maximum size into a call and to a person, and their acknowledgements: all over connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notes_to_phones_on_tcp_are_shown_and_acknowledged() {
    let site = Site::start().await;
    let (caller, callee) = (phone(&site, "1001", answering()).await, phone(&site, "1002", answering()).await);
    let body = json!({"title": "Owes 900 EUR", "ack": true, "body": "x".repeat(3_900)}).to_string();
    let (outcome, ()) = tokio::join!(within("the call", caller.call(open_end("1002"))), async {
        established(&caller, &callee).await;
        let (_, live) = site.get("/calls").await;
        let call = live["items"][0]["uuid"].as_str().unwrap().to_owned();
        let person = extension(&site, "1002").await;
        for (to, list) in [
            (format!("/calls/{call}/info"), format!("/calls/{call}/infos")),
            (format!("/extensions/{person}/message"), format!("/extensions/{person}/messages")),
        ] {
            let (status, sent) = post(site.http, &to, "", &body).await;
            assert_eq!(status, 202, "{sent}");
            let id = sent["id"].as_str().unwrap();
            until("the note is shown", || callee.notes().iter().any(|note| note.id == id)).await;
            assert_eq!(within("an answer", callee.acknowledge(id)).await.unwrap(), 200, "{to}");
            record(&site, &list, id, status_is("acked")).await;
        }
        callee.hang_up().await.unwrap();
    });
    assert_eq!(outcome.unwrap().status, 200);
    assert_eq!(site.record().await["hangup_cause"], "NORMAL_CLEARING");
}

/// The switch opens a connection to a phone that registers over UDP with a TCP Contact.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contact_that_asks_for_tcp_is_connected_to() {
    let site = Site::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let mut wire = Wire::open(site.sip).await;
    let ask = wire.register("1002", Some(&format!("<sip:1002@{at};transport=tcp>")));
    assert_eq!(wire.authorized(&ask, "1002", PASSWORD).await.status().as_u16(), 200);
    let person = extension(&site, "1002").await;
    let (status, sent) =
        post(site.http, &format!("/extensions/{person}/message"), "", r#"{"title":"Lunch"}"#).await;
    assert_eq!(status, 202, "{sent}");
    let (stream, _) = within("a connection", listener.accept()).await.unwrap();
    let mut line = Line { stream, parser: StreamParser::new() };
    let Some(Message::Request(request)) = line.message().await else { panic!("no request") };
    let contact = format!("sip:1002@{at};transport=tcp");
    assert_eq!((request.method(), request.uri()), (&Method::Message, contact.as_str()));
    let mut response = Response::reply_to(&request, StatusCode::OK);
    response.set_to_tag("phone").unwrap();
    line.stream.write_all(&response.to_bytes()).await.unwrap();
    let list = format!("/extensions/{person}/messages");
    record(&site, &list, sent["id"].as_str().unwrap(), status_is("sent")).await;
}

/// A message of a phone to the switch over its connection, without a matching note; the call continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notes_of_a_phone_on_tcp_are_heard() {
    let site = Site::start().await;
    let (caller, callee) = (phone(&site, "1001", answering()).await, phone(&site, "1002", answering()).await);
    let tap = r#"{"ack":true,"id":"01936b3e-0000-7000-8000-000000000000"}"#;
    let (outcome, ()) = tokio::join!(within("the call", caller.call(open_end("1002"))), async {
        established(&caller, &callee).await;
        for channel in [Channel::Info, Channel::Message] {
            let status = within("an answer", callee.send(Parcel::new(channel, tap))).await.unwrap();
            assert!((400..500).contains(&status), "{channel:?}: {status}");
        }
        callee.hang_up().await.unwrap();
    });
    assert_eq!(outcome.unwrap().status, 200);
}

/// A connection that ends removes its binding: the phone is not rung in vain.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_whose_connection_is_gone_is_not_registered() {
    let site = Site::start().await;
    let (caller, callee) = (site.phone("1001", answering()).await, phone(&site, "1002", answering()).await);
    drop(callee);
    until("the binding is gone", || site.engine().bindings() == 1).await;
    assert_eq!(within("the call", caller.call(CallPlan::to("1002"))).await.unwrap().status, 480);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_found_in_any_segments() {
    let site = Site::start().await;
    let mut line = Line::open(tcp(&site)).await;
    for byte in line.options(1).as_bytes() {
        line.stream.write_all(&[*byte]).await.unwrap();
    }
    let both = format!("{}{}", line.options(2), line.options(3));
    line.send(&both).await;
    for n in 1..=3 {
        let answer = line.response().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.cseq().unwrap().number), (200, n));
    }
}

/// T5 with a complete engine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t5_a_length_that_cannot_be_ends_the_connection_and_nothing_else() {
    let site = Site::start().await;
    for (length, status) in [("4294967296", 413), ("-1", 400), ("+5", 400), ("99999", 413)] {
        let mut line = Line::open(tcp(&site)).await;
        let text = line.options(1).replace("Content-Length: 0", &format!("Content-Length: {length}"));
        line.send(&text).await;
        assert_eq!(line.response().await.unwrap().status().as_u16(), status, "{length}");
        assert!(line.response().await.is_none(), "{length}: closed");
    }
    let mut line = Line::open(tcp(&site)).await;
    let text = line.options(1);
    line.send(&text).await;
    assert_eq!(line.response().await.unwrap().status().as_u16(), 200);
}

/// A small T4: one address takes its 64 places and sends one byte each; another client is served immediately.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t4_one_address_cannot_take_every_place() {
    let site = Site::start().await;
    let mut held = Vec::new();
    for _ in 0..200 {
        let mut line = Line::open(tcp(&site)).await;
        // A connection without a place may be closed already.
        let _ = line.stream.write_all(b"O").await;
        held.push(line);
    }
    let all = held.len();
    within("136 of 200 connections are closed", async {
        while held.len() > 64 {
            let mut line = held.remove(0);
            let ended = tokio::time::timeout(Duration::from_millis(20), line.stream.read(&mut [0])).await;
            if !matches!(ended, Ok(Ok(0) | Err(_))) {
                held.push(line);
            }
        }
    })
    .await;
    #[expect(clippy::disallowed_methods, reason = "a test measures")]
    let asked = Instant::now();
    let mut good = Line::from("127.0.0.2", tcp(&site)).await;
    let text = good.options(1);
    good.send(&text).await;
    assert_eq!(good.response().await.unwrap().status().as_u16(), 200);
    let took = asked.elapsed();
    eprintln!("{all} connections of one address, 64 served; another address was answered in {took:?}");
    assert!(took < Duration::from_secs(20), "{took:?}");
}
