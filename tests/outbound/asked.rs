//! A permitted request and its response, over a real socket.

use std::time::Duration;

use bytes::Bytes;
use sidetone::outbound_http::{Budget, Client, End, OutboundHttp};

use crate::common::receiver::{Receiver, Reply};
use crate::common::records::TempDir;

const BUDGET: Budget = Budget { total: Duration::from_secs(30), answer_bytes: 64 * 1024 };

#[tokio::test]
async fn a_request_arrives_as_it_was_given_and_its_answer_comes_back() {
    let receiver = Receiver::start(|_| Reply::new(200, "application/json", "{\"title\":\"Grüße\"}")).await;
    let dir = TempDir::new();
    let client = Client::new(&receiver.settings(dir.path()), Vec::new()).unwrap();
    let headers = [("content-type", "application/json".to_owned()), ("x-service-delivery", "7".to_owned())];
    let answer = client
        .post(&receiver.url("/hook?x=%20y"), &headers, Bytes::from_static(b"{}"), BUDGET)
        .await
        .unwrap();
    assert_eq!((answer.status, answer.end), (200, End::Whole));
    assert_eq!(answer.content_type.as_deref(), Some("application/json"));
    assert_eq!(answer.body, "{\"title\":\"Grüße\"}");
    let received = receiver.seen.now().remove(0);
    assert_eq!(received.line, "POST /hook?x=%20y HTTP/1.1");
    assert_eq!(received.header("host"), receiver.address.to_string());
    assert_eq!(received.header("content-length"), "2");
    assert_eq!(received.header("x-service-delivery"), "7");
    assert_eq!(received.body, b"{}");
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn who_is_not_trusted_is_not_told_anything() {
    let receiver = Receiver::start(|_| Reply::status(204)).await;
    let dir = TempDir::new();
    let settings = OutboundHttp { extra_ca: None, ..receiver.settings(dir.path()) };
    let client = Client::new(&settings, Vec::new()).unwrap();
    let refused =
        client.post(&receiver.url("/"), &[], Bytes::from_static(b"secret"), BUDGET).await.unwrap_err();
    let expected =
        "no TLS connection: the certificate is of no authority that we trust (is the chain complete?)";
    assert_eq!(refused.to_string(), expected);
    assert!(receiver.seen.now().is_empty());
}

#[tokio::test]
async fn nothing_listens() {
    let receiver = Receiver::start(|_| Reply::status(204)).await;
    let dir = TempDir::new();
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let settings = OutboundHttp { ports: vec![address.port()], ..receiver.settings(dir.path()) };
    let client = Client::new(&settings, Vec::new()).unwrap();
    let refused = client.post(&format!("https://{address}/"), &[], Bytes::new(), BUDGET).await.unwrap_err();
    assert_eq!(refused.to_string(), format!("{address} accepts no connection: connection refused"));
}
