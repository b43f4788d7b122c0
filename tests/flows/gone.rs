//! Registered phones that are gone: an address that refuses datagrams, and one that ignores them.

use std::time::Duration;

use sidetone_phone::{Answering, CallPlan};

use crate::common::device::Device;
use crate::common::site::{Site, answering, within};

/// The host of the phone is up, but the phone is not: the host responds with ICMP, and the caller is notified
/// immediately. The binding is not called again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_port_ends_the_call_and_is_not_called_again() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let mut device = Device::udp(site.sip, "").await;
    device.contact = format!("<sip:1002@{}>", device.local);
    device.register("1002").await;
    drop(device);
    for number in 0..2 {
        let outcome = within("the call", caller.call(CallPlan::to("1002"))).await.unwrap();
        assert_eq!(outcome.status, 480, "call {number}");
    }
    assert_eq!(site.engine().bindings(), 2, "it stays registered");
}

/// The caller gets the 486 of the busy phone long before timer B (32 seconds) of the other one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_that_does_not_answer_does_not_delay_the_busy_one() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let _busy = site.phone("1002", Answering::Refuse(486)).await;
    let mut silent = Device::udp(site.sip, "").await;
    silent.contact = format!("<sip:1002@{}>", silent.local);
    silent.register("1002").await;
    let plan = CallPlan { patience: Some(Duration::from_secs(25)), ..CallPlan::to("1002") };
    let outcome = within("the call", caller.call(plan)).await.unwrap();
    assert_eq!(outcome.status, 486, "487 means that the caller gave up");
}
