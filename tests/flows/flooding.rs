//! T1, T2: a flood of unknown senders beside a live call, on real sockets. The long test is in `tests/long`.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::UdpSocket;

use crate::common::site::{Site, answering, talking, within};
use crate::flows::metrics::scrape;

/// A stranger's datagram: requests that are answered before authentication, one that is not SIP, and two that match no
/// call or transaction.
fn junk(serial: u32, from: SocketAddr) -> String {
    let method =
        ["OPTIONS", "REGISTER", "INVITE", "CANCEL", "BYE", "ACK", "", "SIP/2.0 200 OK"][serial as usize % 8];
    if method.is_empty() {
        return format!("\u{1}\u{2} junk {serial}");
    }
    let line = if method.starts_with("SIP") {
        method.to_owned()
    } else {
        format!("{method} sip:1001@acme.test SIP/2.0")
    };
    let method = if method.starts_with("SIP") { "INVITE" } else { method };
    format!(
        "{line}\r\nVia: SIP/2.0/UDP {from};rport;branch=z9hG4bKflood{serial}\r\nMax-Forwards: 70\r\n\
         From: <sip:1001@acme.test>;tag=f{serial}\r\nTo: <sip:1002@acme.test>;tag=x\r\nCall-ID: flood{serial}\r\n\
         CSeq: 1 {method}\r\nContact: <sip:1001@{from}>\r\nContent-Length: 0\r\n\r\n"
    )
}

async fn flood(site: &Site) {
    for source in 50..60_u8 {
        let socket = UdpSocket::bind(SocketAddr::from(([127, 0, 0, source], 0))).await.unwrap();
        let from = socket.local_addr().unwrap();
        for serial in 0..400 {
            // A full buffer of the system shows that the flood arrives.
            let _ = socket.send_to(junk(serial, from).as_bytes(), site.sip).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t1_a_flood_beside_a_live_call_hinders_nobody() {
    let site = Site::start().await;
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    let call = within("the call", caller.call(talking("1002", 2_000)));
    let late = async {
        flood(&site).await;
        // From an address that does not flood, during the flood of others.
        site.phone("1003", answering()).await
    };
    let (outcome, _late) = tokio::join!(call, late);
    assert_eq!(outcome.unwrap().status, 200);
    assert_eq!(site.record().await["hangup_cause"], "NORMAL_CLEARING");
    site.idle().await;
    assert!(callee.heard() > 0);
    let (text, samples) = scrape(&site).await;
    let dropped = |reason: &str| samples[&format!("sidetone_sip_dropped_total{{reason=\"{reason}\"}}")];
    assert!(dropped("stray") > 0.0 && dropped("not_sip") > 0.0, "{text}");
    assert_eq!((dropped("overload"), dropped("dialog")), (0.0, 0.0));
    assert_eq!(samples["sidetone_sip_bindings"], 3.0);
}
