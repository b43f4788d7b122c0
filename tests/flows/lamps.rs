//! Busy lamp fields: a phone subscribes to another extension and is notified of its calls, over UDP and TCP.

use serde_json::json;
use sidetone_phone::CallPlan;
use sidetone_sip::message::{Message, Method};

use crate::common::device::{Device, authorization};
use crate::common::site::{DOMAIN, Site, answering, directory, send, until, within};

/// Subscribes the device, with extension `own`, to the event package `package` of 1002.
async fn subscribe(device: &mut Device, own: &str, package: &str) {
    let uri = format!("sip:1002@{DOMAIN}");
    let event = &format!("Event: {package}\r\nExpires: 600\r\n");
    let ask = device.ask("SUBSCRIBE", own, &uri, event, "");
    device.send(&ask).await;
    let challenge = device.response(&Method::Subscribe).await;
    let more = format!("{event}{}", authorization(&challenge, own, "SUBSCRIBE", &uri));
    let ask = device.ask("SUBSCRIBE", own, &uri, &more, "");
    device.send(&ask).await;
    let granted = within("the response", async {
        loop {
            match device.next().await.expect("an open connection") {
                Message::Response(response) => return response,
                // The first NOTIFY may overtake the response.
                Message::Request(request) => device.reply(&request, 200, "").await,
            }
        }
    })
    .await;
    assert_eq!((granted.status().as_u16(), granted.headers().header("Expires")), (200, Some("600")));
}

/// The document of the next NOTIFY for which `is_about` is true.
async fn shown(device: &mut Device, what: &str, is_about: impl Fn(&str) -> bool) -> String {
    within(&format!("a NOTIFY with {what}"), async {
        loop {
            let request = device.request(&Method::Notify).await;
            assert!(request.header("Subscription-State").unwrap().starts_with("active;expires="));
            device.reply(&request, 200, "").await;
            let document = std::str::from_utf8(request.body()).unwrap();
            if is_about(document) {
                return document.to_owned();
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lamp_shows_the_calls_of_another_extension() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let callee = site.phone("1002", answering()).await;
    let mut by_udp = Device::udp(site.sip, "").await;
    let mut by_tcp = Device::tcp(site.tcp(), "").await;
    for (device, own) in [(&mut by_udp, "1001"), (&mut by_tcp, "1002")] {
        device.contact = format!("<sip:{own}@{}>", device.local);
        subscribe(device, own, "dialog").await;
    }
    let plan = CallPlan { talk_time: None, ..CallPlan::to("1002") };
    let calls = caller.calls();
    let call = tokio::spawn(async move { within("the call", caller.call(plan)).await.unwrap() });
    for device in [&mut by_udp, &mut by_tcp] {
        let document = shown(device, "the call", |text| text.contains("<state>confirmed</state>")).await;
        assert!(document.contains("direction=\"recipient\""), "{document}");
        assert!(document.contains(&format!("<identity>sip:1001@{DOMAIN}</identity>")), "{document}");
    }
    // The lamps turn on at the callee's answer. The caller gets its 200 only after the answer is in the journal; a
    // callee that hangs up before that leaves the caller with a 480.
    until("the caller's call is up", || calls.borrow().up == 1).await;
    callee.hang_up().await.unwrap();
    assert_eq!(call.await.unwrap().status, 200);
    for device in [&mut by_udp, &mut by_tcp] {
        shown(device, "no call", |text| !text.contains("<dialog ")).await;
    }
    site.records(1).await;
}

/// The organisation's voicemail sets the counts over HTTP, and the subscribed phone receives them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lamp_shows_the_messages_that_a_program_sets() {
    let readable = directory().replace("\"margin:read\"", "\"margin:read\", \"directory:read\"");
    let site = Site::with(&readable).await;
    let mut phone = Device::udp(site.sip, "").await;
    phone.contact = format!("<sip:1002@{}>", phone.local);
    subscribe(&mut phone, "1002", "message-summary").await;
    let (_, page) = site.get("/extensions?q=1002").await;
    let path = format!("/extensions/{}/message-waiting", page["items"][0]["id"].as_str().unwrap());
    for (new, lamp) in [(2, "Messages-Waiting: yes\r\n"), (0, "Messages-Waiting: no\r\n")] {
        let (status, set) = send(site.http, "PUT", &path, &json!({"new": new, "old": 8})).await;
        assert_eq!((status, &set["new"]), (200, &json!(new)), "{set}");
        let voice = format!("Voice-Message: {new}/8 (0/0)\r\n");
        let summary = shown(&mut phone, &voice, |text| text.contains(&voice)).await;
        assert!(summary.starts_with(lamp), "{summary}");
        assert!(summary.contains(&format!("Message-Account: sip:1002@{DOMAIN}\r\n")), "{summary}");
    }
}
