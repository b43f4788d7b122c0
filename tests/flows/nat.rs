//! Phones behind a NAT: their Contact is a private address, their port or connection may change during a call, and the
//! address in their SDP may be wrong.

use std::net::{Ipv4Addr, SocketAddr};

use sidetone_phone::CallPlan;
use sidetone_sip::message::Method;

use crate::common::device::Device;
use crate::common::site::{Site, answering, calls, open_end, talking, within};

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

/// Nothing is sent to the group; the phone is sent audio where its own comes from.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_that_names_a_multicast_group_hears_at_its_own_address() {
    let site = Site::start().await;
    let (caller, _callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    let group = Some(Ipv4Addr::new(224, 2, 1, 1).into());
    let plan = CallPlan { advertised: group, ..talking("1002", 2_000) };
    let outcome = within("the call", caller.call(plan)).await.unwrap();
    assert_eq!(outcome.status, 200);
    assert!(outcome.received > 20, "{outcome:?}");
    let record = site.record().await;
    let (_, quality) = site.get(&format!("/cdrs/{}/quality", record["call_uuid"].as_str().unwrap())).await;
    let addresses = &quality["legs"][0]["addresses"];
    assert!(addresses["advertised"].as_str().unwrap().starts_with("224.2.1.1:"), "{addresses:#}");
    assert_eq!(addresses["sent_to"], addresses["source"], "{addresses:#}");
}
