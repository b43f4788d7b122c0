//! MESSAGE from phone to phone on real sockets.

use sidetone_sip::message::Method;

use crate::common::device::Device;
use crate::common::site::{DOMAIN, PASSWORD, Site};
use crate::common::wire::Wire;
use crate::flows::by_hand::text;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_reaches_the_other_phone_and_its_answer_comes_back() {
    let site = Site::start().await;
    let mut wire = Wire::open(site.sip).await;
    let uri = format!("sip:1002@{DOMAIN}");
    let ask = wire.ask("MESSAGE", "1001", &uri).body("text/plain;charset=utf-8", "Mittag um eins?");
    // The phone is not registered.
    let answer = wire.authorized(&ask, "1001", PASSWORD).await;
    assert_eq!(answer.status().as_u16(), 480);

    let mut device = Device::udp(site.sip, "").await;
    device.contact = format!("<sip:1002@{}>", device.local);
    device.register("1002").await;
    for (n, status) in [200, 486].into_iter().enumerate() {
        let ask = wire.ask("MESSAGE", "1001", &uri).body("text/plain", &format!("text {n}"));
        let (answer, ()) = tokio::join!(wire.authorized(&ask, "1001", PASSWORD), async {
            let message = device.request(&Method::Message).await;
            assert_eq!(text(message.body()), format!("text {n}"));
            assert!(message.header("From").unwrap().contains(&format!("sip:1001@{DOMAIN}")));
            device.reply(&message, status, "").await;
        });
        assert_eq!(answer.status().as_u16(), status);
    }
    // A sender that does not authenticate reaches no phone.
    let forged = wire.ask("MESSAGE", "1003", &uri).body("text/plain", "forged");
    assert_eq!(wire.exchange(&forged).await.status().as_u16(), 401);
    let last = wire.ask("MESSAGE", "1001", &uri).body("text/plain", "last");
    let (answer, ()) = tokio::join!(wire.authorized(&last, "1001", PASSWORD), async {
        let message = device.request(&Method::Message).await;
        assert_eq!(text(message.body()), "last");
        device.reply(&message, 200, "").await;
    });
    assert_eq!(answer.status().as_u16(), 200);
}
