//! W7, W8, W9: names whose addresses change, redirects, and proxies from the environment.

use std::time::Duration;

use bytes::Bytes;
use sidetone::outbound_http::{Budget, OutboundHttp};

use crate::common::elsewhere::Elsewhere;
use crate::common::receiver::{Received, Reply};

const BUDGET: Budget = Budget { total: Duration::from_secs(15), answer_bytes: 64 * 1024 };
const URL: &str = "https://crm.example/hook";

fn crm(script: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Elsewhere {
    Elsewhere::new(&["crm.example", "8.8.8.8"], script)
}

#[tokio::test]
async fn the_connection_goes_to_the_address_that_was_checked() {
    let elsewhere = crm(|_| Reply::status(204))
        .name("crm.example", &[&["8.8.8.8"], &["127.0.0.1"], &["169.254.169.254"]]);
    let client = elsewhere.client(&OutboundHttp::default(), &[]);
    assert_eq!(client.post(URL, &[], Bytes::new(), BUDGET).await.unwrap().status, 204);
    for _ in 0..3 {
        let refused = client.post(URL, &[], Bytes::new(), BUDGET).await.unwrap_err();
        assert_eq!(refused.to_string(), "crm.example has no public address");
    }
    assert_eq!(elsewhere.lookups().len(), 4, "one question for each request, and nothing remembered");
    assert_eq!(elsewhere.connects(), ["8.8.8.8:443"]);
}

#[tokio::test]
async fn of_a_mixed_answer_the_public_addresses_alone_are_used() {
    let mixed: &[&str] =
        &["::1", "127.0.0.1", "fd00::1", "64:ff9b::7f00:1", "8.8.4.4", "8.8.8.8", "::ffff:10.0.0.1"];
    let elsewhere = crm(|_| Reply::status(204)).name("crm.example", &[mixed]).dead("8.8.4.4");
    let client = elsewhere.client(&OutboundHttp::default(), &[]);
    assert_eq!(client.post(URL, &[], Bytes::new(), BUDGET).await.unwrap().status, 204);
    assert_eq!(elsewhere.connects(), ["8.8.4.4:443", "8.8.8.8:443"], "the next one when the first is dead");
}

#[tokio::test]
async fn a_name_with_many_addresses_costs_a_few_connections() {
    let many: Vec<String> = (1..=60).map(|last| format!("8.8.8.{last}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let mut elsewhere = crm(|_| Reply::status(204)).name("crm.example", &[&many]);
    for address in &many {
        elsewhere = elsewhere.dead(address);
    }
    let client = elsewhere.client(&OutboundHttp::default(), &[]);
    let refused = client.post(URL, &[], Bytes::new(), BUDGET).await.unwrap_err();
    assert_eq!(refused.to_string(), "8.8.8.4:443 accepts no connection: connection refused");
    assert_eq!(elsewhere.connects().len(), 4);
}

#[tokio::test]
async fn a_name_that_is_none() {
    let elsewhere = crm(|_| Reply::status(204)).name("empty.example", &[&[]]);
    let client = elsewhere.client(&OutboundHttp::default(), &[]);
    let refused = client.post(URL, &[], Bytes::new(), BUDGET).await.unwrap_err();
    assert_eq!(refused.to_string(), "crm.example cannot be resolved: there is no such name");
    let refused = client.post("https://empty.example/", &[], Bytes::new(), BUDGET).await.unwrap_err();
    assert_eq!(refused.to_string(), "empty.example has no public address");
}

#[tokio::test]
async fn a_certificate_must_be_for_the_name() {
    let elsewhere = crm(|_| Reply::status(204)).name("erp.example", &[&["8.8.8.8"]]);
    let client = elsewhere.client(&OutboundHttp::default(), &[]);
    let refused = client.post("https://erp.example/", &[], Bytes::new(), BUDGET).await.unwrap_err();
    assert_eq!(refused.to_string(), "no TLS connection: the certificate is for another host");
    assert!(elsewhere.seen().now().is_empty());
    let own = client.post("https://8.8.8.8/", &[], Bytes::new(), BUDGET).await.unwrap();
    assert_eq!(own.status, 204);
}

#[tokio::test]
async fn no_redirect_is_followed() {
    for (status, to) in [
        (301, "https://127.0.0.1/"),
        (302, "https://crm.example/elsewhere"),
        (303, "/elsewhere"),
        (307, "http://169.254.169.254/latest/meta-data/"),
        (308, "https://8.8.8.8/"),
    ] {
        let elsewhere =
            crm(move |_| Reply::with(status, &[("Location", to)], "")).name("crm.example", &[&["8.8.8.8"]]);
        let client = elsewhere.client(&OutboundHttp::default(), &[]);
        let answer = client.post(URL, &[], Bytes::new(), BUDGET).await.unwrap();
        assert_eq!((answer.status, answer.is_success()), (status, false));
        assert_eq!(
            (elsewhere.seen().now().len(), elsewhere.connects().len(), elsewhere.lookups().len()),
            (1, 1, 1)
        );
    }
}

/// A test must not change its own environment, so it runs itself again with proxy variables.
#[test]
fn proxies_of_the_environment_are_not_asked() {
    const INSIDE: &str = "SIDETONE_TEST_PROXY";
    if let Ok(proxy) = std::env::var(INSIDE) {
        assert_eq!(std::env::var("HTTPS_PROXY").as_deref(), Ok(proxy.as_str()));
        return ask_beside_a_proxy();
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let names = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", INSIDE];
    let ran = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "outbound::names::proxies_of_the_environment_are_not_asked", "--nocapture"])
        .envs(names.map(|name| (name, proxy.as_str())))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let report = String::from_utf8_lossy(&ran.stdout);
    assert!(report.contains("1 passed"), "the name of this test is another: {report}");
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "the proxy was asked");
}

fn ask_beside_a_proxy() {
    use sidetone::outbound_http::Client;

    use crate::common::receiver::Receiver;
    use crate::common::records::TempDir;

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let receiver = Receiver::start(|_| Reply::status(204)).await;
        let dir = TempDir::new();
        let client = Client::new(&receiver.settings(dir.path()), Vec::new()).unwrap();
        let answer = client.post(&receiver.url("/"), &[], Bytes::new(), BUDGET).await.unwrap();
        assert_eq!((answer.status, receiver.connections()), (204, 1));
    });
}
