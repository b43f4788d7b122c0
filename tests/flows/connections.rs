//! Carriers over TCP whose connections close during calls.

use std::net::SocketAddr;

use sidetone_phone::{Answering, Phone};
use sidetone_sip::message::Method;
use tokio::net::TcpListener;

use crate::common::device::{Device, SDP};
use crate::common::site::{Site, answering, calls, directory, open_end, phone_config, talking, within};

/// Acme with numbers for 1002 and 1001, and these trunks, which may also call from this host.
fn declared(addresses: &[String]) -> String {
    let mut text =
        directory().replacen("currency = \"EUR\"\n", "currency = \"EUR\"\ncountry_code = \"44\"\n", 1);
    for (number, extension) in [("+442071230000", "1002"), ("+442071230001", "1001")] {
        text += &format!(
            "[[organisations.numbers]]\nnumber = \"{number}\"\ndestination = {{ extension = \"{extension}\" }}\n"
        );
    }
    for (place, address) in addresses.iter().enumerate() {
        text += &format!(
            "[[trunks]]\nname = \"carrier-{place}\"\naddress = \"{address}\"\naccept_from = [\"127.0.0.1\"]\n\
             priority = {place}\n"
        );
    }
    text
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let local = listener.local_addr().unwrap();
    (listener, local)
}

/// The carrier's end of the next connection that the engine opens.
async fn accepted(listener: &TcpListener, local: SocketAddr) -> Device {
    let (stream, switch) = within("a connection", listener.accept()).await.unwrap();
    Device::on(stream, switch, &format!("<sip:carrier@{local};transport=tcp>"))
}

async fn is_hung_up(listener: &TcpListener, local: SocketAddr) {
    let mut again = accepted(listener, local).await;
    let bye = again.request(&Method::Bye).await;
    again.reply(&bye, 200, "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bye_to_a_carrier_opens_a_new_connection() {
    let (listener, local) = listener().await;
    let site = Site::with(&declared(&[format!("sip:{local};transport=tcp")])).await;
    let caller = site.phone("1001", answering()).await;
    let (outcome, ()) = tokio::join!(within("the call", caller.call(open_end("+447700900123"))), async {
        let mut carrier = accepted(&listener, local).await;
        let invite = carrier.request(&Method::Invite).await;
        carrier.answer(&invite).await;
        calls(&caller, 0, 1).await;
        drop(carrier);
        caller.hang_up().await.unwrap();
        is_hung_up(&listener, local).await;
    });
    assert_eq!(outcome.unwrap().status, 200);
    assert_eq!(site.record().await["hangup_cause"], "NORMAL_CLEARING");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_carrier_that_called_and_closed_its_connection_is_hung_up_at_its_contact() {
    let (listener, local) = listener().await;
    let site = Site::with(&declared(&[format!("sip:{local};transport=tcp")])).await;
    let callee = site.phone("1002", answering()).await;
    let mut carrier = Device::tcp(site.tcp(), &format!("<sip:carrier@{local};transport=tcp>")).await;
    let uri = "sip:+442071230000@carrier.example";
    let invite = carrier.ask("INVITE", "+447700900123", uri, "", SDP);
    carrier.send(&invite).await;
    let answer = carrier.response(&Method::Invite).await;
    assert_eq!(answer.status().as_u16(), 200);
    let to = answer.header("To").unwrap();
    let ack = carrier
        .ask("ACK", "+447700900123", uri, "", "")
        .replace(&format!("To: <{uri}>"), &format!("To: {to}"));
    carrier.send(&ack.replace("Call-ID: ACK-", "Call-ID: INVITE-").replace("CSeq: 2 ", "CSeq: 1 ")).await;
    calls(&callee, 0, 1).await;
    drop(carrier);
    callee.hang_up().await.unwrap();
    is_hung_up(&listener, local).await;
    assert_eq!(site.record().await["hangup_cause"], "NORMAL_CLEARING");
}

/// The first carrier refuses the connection, and the second one is called.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_carrier_that_refuses_the_connection_makes_room_for_the_next() {
    let (listener, local) = listener().await;
    drop(listener);
    let nobody: SocketAddr = ([127, 0, 0, 1], 9).into();
    let mut config = phone_config(nobody, "carrier", answering());
    config.domain = "carrier.example".into();
    let second = Phone::start(config).await.unwrap();
    let trunks = [format!("sip:{local};transport=tcp"), format!("sip:{}", second.local())];
    let site = Site::with(&declared(&trunks)).await;
    let caller = site.phone("1001", Answering::Ring).await;
    let outcome = within("the call", caller.call(talking("+447700900123", 300))).await.unwrap();
    assert_eq!(outcome.status, 200);
    assert_eq!(site.record().await["sip_status"], 200);
}
