//! Phones behind a NAT: their Contact is a private address, and their port or connection may change during a call.

use std::net::SocketAddr;

use sidetone_sip::message::Method;

use crate::device::Device;
use crate::site::{Site, answering, calls, open_end, within};

/// A Contact inside a NAT, where nothing listens.
const INSIDE: &str = "<sip:1002@10.99.98.97:5060>";

/// A device is called, changes its address, and gets the BYE at the new one.
async fn is_hung_up_where_it_moved(site: &Site, mut device: Device) {
    device.register("1002").await;
    let caller = site.phone("1001", answering()).await;
    let call = async {
        let outcome = within("the call", caller.call(open_end("1002"))).await.unwrap();
        assert_eq!(outcome.status, 200);
    };
    let ((), ()) = tokio::join!(call, async {
        let invite = device.request(&Method::Invite).await;
        device.answer(&invite).await;
        calls(&caller, 0, 1).await;
        let mut device = device.moved().await;
        device.register("1002").await;
        caller.hang_up().await.unwrap();
        let bye = device.request(&Method::Bye).await;
        device.reply(&bye, 200, "").await;
    });
    assert_eq!(site.record().await["hangup_cause"], "NORMAL_CLEARING");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ack_goes_where_the_registration_came_from_and_bye_to_the_new_port() {
    let site = Site::start().await;
    let device = Device::udp(site.sip, INSIDE).await;
    is_hung_up_where_it_moved(&site, device).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_that_connects_again_gets_the_bye_on_its_new_connection() {
    let site = Site::start().await;
    let switch: SocketAddr = site.tcp();
    let device = Device::tcp(switch, "<sip:1002@10.99.98.97:5060;transport=tcp>").await;
    is_hung_up_where_it_moved(&site, device).await;
}
