//! W6: refusals when a URL is saved, and again when it is requested. Nothing is sent.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use sidetone::outbound_http::{Budget, Client, End, OutboundHttp, Policy, PostError, Refusal};
use sidetone::provision::Declaration;
use tokio::net::TcpListener;

use crate::common::elsewhere::Elsewhere;
use crate::common::receiver::{Receiver, Reply};
use crate::common::records::TempDir;
use crate::common::refused_urls::REFUSED_URLS;

const BUDGET: Budget = Budget { total: Duration::from_secs(15), answer_bytes: 64 * 1024 };

fn nowhere() -> Elsewhere {
    Elsewhere::new(&["crm.example", "8.8.8.8"], |_| Reply::status(204))
}

#[tokio::test]
async fn every_spelling_of_what_is_not_public_is_refused_at_save_and_at_connect() {
    let elsewhere = nowhere();
    let client = elsewhere.client(&OutboundHttp::default(), &[]);
    for (url, expected) in REFUSED_URLS {
        let refusal = client.policy().check_url(url).expect_err(url);
        assert!(refusal.to_string().starts_with(expected), "{url}: {refusal}");
        match client.post(url, &[], Bytes::from_static(b"{}"), BUDGET).await {
            Err(PostError::Refused(again)) => assert_eq!(again, refusal, "{url}"),
            other => panic!("{url}: {other:?}"),
        }
    }
    // A scheme may be written in capitals.
    assert!(client.policy().check_url("HTTPS://crm.example/").is_ok());
    assert_eq!(client.policy().check_url("HTTP://crm.example/"), Err(Refusal::Scheme));
    let long = format!("https://crm.example/{}", "x".repeat(2_048));
    assert_eq!(client.policy().check_url(&long), Err(Refusal::TooLong));
    assert_eq!(
        (elsewhere.lookups(), elsewhere.connects()),
        (vec![], vec![]),
        "nobody was asked for anything"
    );
}

/// The same over real sockets: with production settings a local listener gets no connection.
#[tokio::test]
async fn no_packet_reaches_a_listener_of_this_host() {
    let receiver = Receiver::start(|_| Reply::status(204)).await;
    let six = TcpListener::bind("[::1]:0").await.ok();
    let dir = TempDir::new();
    let mut ports = vec![receiver.address.port()];
    ports.extend(six.as_ref().map(|six| six.local_addr().unwrap().port()));
    // The authority is trusted and the port is allowed: only the address is refused.
    let settings =
        OutboundHttp { allow_addresses: vec![], ports: ports.clone(), ..receiver.settings(dir.path()) };
    let client = Client::new(&settings, Vec::new()).unwrap();
    for port in &ports {
        for host in [
            "127.0.0.1",
            "127.1",
            "0x7f.1",
            "2130706433",
            "0177.0.0.1",
            "0",
            "①②⑦.⓪.⓪.①",
            "127.0.0.1.",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "localhost",
            "localhost.",
        ] {
            let url = format!("https://{host}:{port}/");
            let refused = client.post(&url, &[], Bytes::new(), BUDGET).await;
            assert!(matches!(refused, Err(PostError::Refused(_))), "{url}: {refused:?}");
        }
    }
    assert_eq!(receiver.connections(), 0);
    if let Some(six) = six {
        let silence = tokio::time::timeout(Duration::ZERO, six.accept()).await;
        assert!(silence.is_err(), "somebody connected");
    }
    // The request succeeds where the address is allowed.
    let allowed = Client::new(&receiver.settings(dir.path()), Vec::new()).unwrap();
    let answer = allowed.post(&receiver.url("/"), &[], Bytes::new(), BUDGET).await.unwrap();
    assert_eq!((answer.status, receiver.connections()), (204, 1));
}

#[tokio::test]
async fn our_own_addresses_are_not_somebody_elses() {
    let elsewhere = nowhere().name("crm.example", &[&["8.8.8.8", "2a00:1450::1", "::ffff:8.8.8.8"]]);
    let client = elsewhere.client(&OutboundHttp::default(), &["8.8.8.8", "2a00:1450::1"]);
    for (url, own) in [
        ("https://8.8.8.8/", "8.8.8.8"),
        ("https://0x08080808/", "8.8.8.8"),
        ("https://[::ffff:8.8.8.8]/", "8.8.8.8"),
        ("https://[2a00:1450:0::1]/", "2a00:1450::1"),
    ] {
        let own: IpAddr = own.parse().unwrap();
        assert_eq!(client.policy().check_url(url), Err(Refusal::Own(own)), "{url}");
    }
    let refused = client.post("https://crm.example/", &[], Bytes::new(), BUDGET).await.unwrap_err();
    assert_eq!(refused.to_string(), "crm.example has no public address");
    assert!(elsewhere.connects().is_empty());
}

#[tokio::test]
async fn what_may_be_asked_is_asked() {
    let elsewhere =
        nowhere().name("crm.example", &[&["8.8.8.8"]]).name("xn--grn-ioa.example", &[&["8.8.8.8"]]);
    let client = elsewhere.client(&OutboundHttp::default(), &["192.168.1.1"]);
    for url in [
        "https://crm.example",
        "https://crm.example/",
        "https://CRM.example./hook?x=1&y",
        "https://crm.example:8443/",
        "https://8.8.8.8/",
        "https://[2a00:1450::1]/",
        "https://grün.example/",
        "https://crm.example/a%20b/../c",
    ] {
        assert!(client.policy().check_url(url).is_ok(), "{url}");
    }
    let answer = client.post("https://CRM.example./a/../b?x=1", &[], Bytes::new(), BUDGET).await.unwrap();
    assert_eq!((answer.status, answer.end), (204, End::Whole));
    assert_eq!(elsewhere.seen().now()[0].line, "POST /b?x=1 HTTP/1.1");
    assert_eq!(elsewhere.connects(), ["8.8.8.8:443"]);
}

/// A setting allows exactly the networks that it names.
#[test]
fn what_is_opened_is_what_was_named() {
    let settings = OutboundHttp {
        allow_addresses: vec!["10.1.0.0/16".parse().unwrap(), "::1/128".parse().unwrap()],
        ports: vec![9443],
        ..OutboundHttp::default()
    };
    // A named network may include the engine's own address.
    let policy = Policy::new(&settings, vec!["10.1.2.3".parse().unwrap()]);
    for good in
        ["https://10.1.2.3:9443/", "https://[::1]:9443/", "https://crm:9443/", "https://8.8.8.8:9443/"]
    {
        assert!(policy.check_url(good).is_ok(), "{good}");
    }
    for bad in
        ["https://10.2.0.1:9443/", "https://127.0.0.1:9443/", "https://[::]:9443/", "https://10.1.2.3/"]
    {
        assert!(policy.check_url(bad).is_err(), "{bad}");
    }
}

/// The errors of `sidetone apply` on URLs in its files.
#[test]
fn an_apply_file_is_held_to_the_same() {
    for (url, expected) in REFUSED_URLS {
        let mut organisation = toml::Table::new();
        for (key, value) in [
            ("name", "Acme"),
            ("sip_domain", "acme.test"),
            ("call_info_url", url),
            ("call_info_secret", "sixteen letters!"),
        ] {
            organisation.insert(key.to_owned(), value.into());
        }
        let organisations = toml::Value::Array(vec![toml::Value::Table(organisation)]);
        let table = toml::Table::from_iter([("organisations".to_owned(), organisations)]);
        let declaration = Declaration::parse(table).unwrap();
        let problems = declaration.refused_urls(&Policy::new(&OutboundHttp::default(), Vec::new()));
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let expected = format!("organisation \"Acme\": call_info_url: {expected}");
        assert!(problems.len() == 1 && problems[0].starts_with(&expected), "{url}: {problems:?}");
    }
}
