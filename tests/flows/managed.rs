//! Changes made over HTTP take effect in the running engine.

use std::net::SocketAddr;

use serde_json::{Value, json};
use sidetone_phone::{CallPlan, Carrier, Phone, PhoneConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::site::{PASSWORD, Site, answering, directory, found, phone_config, until, within};
use crate::flows::metrics::scrape;

const ADMIN: &str = "tel_acmeadmin001_0123456789abcdefghijklmnopqrstuvwxyz";

fn with_admin() -> String {
    let key = format!(
        "[[organisations.api_keys]]\nname = \"admin\"\nkey = \"{ADMIN}\"\npreset = \"full\"\n\
         allow = [\"127.0.0.1\"]\n"
    );
    format!("{}{key}", directory())
}

async fn send(http: SocketAddr, method: &str, path: &str, body: Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!(
        "{method} /api/v1{path} HTTP/1.1\r\nHost: sidetone.test\r\nAuthorization: Bearer {ADMIN}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut text = String::new();
    within(path, async {
        let mut stream = TcpStream::connect(http).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.read_to_string(&mut text).await.unwrap();
    })
    .await;
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() };
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body)
}

/// Waits until the engine has read the directory after the changes so far: by then it has unregistered a removed
/// phone.
async fn followed(site: &Site, bindings: usize) {
    let _witness = site.phone("1003", answering()).await;
    until("the witness is registered", || site.engine().bindings() == bindings + 1).await;
    let (_, page) = send(site.http, "GET", "/extensions?q=1003", Value::Null).await;
    let path = format!("/extensions/{}", page["items"][0]["id"].as_str().unwrap());
    assert_eq!(send(site.http, "DELETE", &path, Value::Null).await, (204, Value::Null));
    until("the engine follows", || site.engine().bindings() == bindings).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_that_was_just_made_registers_and_is_called() {
    let site = Site::with(&with_admin()).await;
    let (status, made) = send(site.http, "POST", "/extensions", json!({"number": "1010"})).await;
    assert_eq!(status, 201, "{made}");
    followed(&site, 0).await;
    let password = made["password"].as_str().unwrap().to_owned();
    let config = PhoneConfig { password, ..phone_config(site.sip, "1010", answering()) };
    let _callee = site.phone_of(config).await;
    let caller = site.phone("1001", answering()).await;
    caller.call(CallPlan::to("1010")).await.unwrap();
    let record = site.record().await;
    assert_eq!(
        (&record["destination_number"], &record["hangup_cause"]),
        (&json!("1010"), &json!("NORMAL_CLEARING"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_password_is_the_one_that_counts() {
    let site = Site::with(&with_admin()).await;
    let _phone = site.phone("1002", answering()).await;
    until("it is registered", || site.engine().bindings() == 1).await;
    let (_, page) = send(site.http, "GET", "/extensions?q=1002", Value::Null).await;
    let path = format!("/extensions/{}", page["items"][0]["id"].as_str().unwrap());
    let (status, changed) = send(site.http, "PATCH", &path, json!({"password": "another one"})).await;
    assert_eq!(status, 200, "{changed}");
    // The registration made with the old password has ended.
    followed(&site, 0).await;
    let old = Phone::start(phone_config(site.sip, "1002", answering())).await.unwrap();
    assert!(old.register("1002").await.is_err());
    let password = "another one".to_owned();
    let _new = site.phone_of(PhoneConfig { password, ..phone_config(site.sip, "1002", answering()) }).await;
}

/// A new password ends what the old one authenticated: the bindings of a phone, and its connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_password_closes_the_connection_of_the_old_one() {
    let site = Site::with(&with_admin()).await;
    let tcp = site.tcp();
    let config = |password: &str| PhoneConfig {
        switch: tcp,
        carrier: Carrier::Tcp,
        password: password.to_owned(),
        ..phone_config(site.sip, "1002", answering())
    };
    let phone = site.phone_of(config(PASSWORD)).await;
    until("it is registered", || site.engine().bindings() == 1).await;
    let (_, page) = send(site.http, "GET", "/extensions?q=1002", Value::Null).await;
    let path = format!("/extensions/{}", page["items"][0]["id"].as_str().unwrap());
    let (status, changed) = send(site.http, "PATCH", &path, json!({"password": "another one"})).await;
    assert_eq!(status, 200, "{changed}");
    until("its binding ends", || site.engine().bindings() == 0).await;
    let is_closed = async || (scrape(&site).await.1["sidetone_sip_tcp_connections"] == 0.0).then_some(());
    found("the end of its connection", is_closed).await;
    assert!(within("a registration", phone.register("1002")).await.is_err(), "its password is the old one");
    // A phone with the new password registers immediately, and can be called.
    let _new = site.phone_of(config("another one")).await;
    let caller = site.phone("1001", answering()).await;
    let outcome = within("the call", caller.call(CallPlan::to("1002"))).await.unwrap();
    assert_eq!(outcome.status, 200);
}
