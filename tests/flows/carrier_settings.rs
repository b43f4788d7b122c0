//! Trunk settings for carriers with special needs: servers, numbers, domain, codecs and headers.

use std::net::SocketAddr;

use sidetone_sip::message::Method;

use crate::common::device::{Device, SDP};
use crate::common::site::{Site, answering, calls, directory, open_end, within};
use crate::flows::name_server::{NameServer, Record};

fn declared(trunk: &str) -> String {
    let text = directory().replacen("currency = \"EUR\"\n", "currency = \"EUR\"\ncountry_code = \"44\"\n", 1);
    let number =
        "[[organisations.numbers]]\nnumber = \"+442071230000\"\ndestination = { extension = \"1001\" }\n";
    format!("{text}{number}[[trunks]]\nname = \"carrier\"\n{trunk}")
}

/// A manual carrier, created before the switch.
async fn device() -> Device {
    let nobody: SocketAddr = ([127, 0, 0, 1], 9).into();
    let mut device = Device::udp(nobody, "").await;
    device.contact = format!("<sip:carrier@{}>", device.local);
    device
}

/// The first server of a carrier refuses, and the second, given by a name, gets the call with the trunk's settings; a
/// call from the second server belongs to the trunk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_carrier_with_two_servers_and_national_numbers() {
    let (first, second) = (device().await, device().await);
    let port = second.local.port();
    let dns = NameServer::start(vec![
        ("_sip._udp.b.carrier.test", Record::Service { priority: 1, port, target: "b1.carrier.test" }),
        ("b1.carrier.test", Record::Address([127, 0, 0, 1])),
    ])
    .await;
    let trunk = format!(
        "address = \"sip:{}\"\nbackup_addresses = [\"sip:b.carrier.test\"]\nfrom_domain = \"acme.carrier.test\"\n\
         country_code = \"44\"\noutbound_numbers = \"national\"\ncodecs = [\"PCMU\"]\nheaders = [\"X-Account: 42\"]\n",
        first.local
    );
    let server = dns.local;
    let site = Site::configured(&declared(&trunk), |config| config.sip.dns = vec![server]).await;
    let (mut first, mut second) = (first.at(site.sip), second.at(site.sip));
    let phone = site.phone("1001", answering()).await;
    let (outcome, ()) = tokio::join!(within("the call", phone.call(open_end("+447700900123"))), async {
        let refused = first.request(&Method::Invite).await;
        first.reply(&refused, 503, "").await;
        let invite = second.request(&Method::Invite).await;
        assert_eq!(invite.uri(), "sip:07700900123@b.carrier.test");
        assert_eq!(invite.from().unwrap().uri.to_string(), "sip:02071230000@acme.carrier.test");
        assert_eq!(invite.header("X-Account"), Some("42"));
        let offer = String::from_utf8_lossy(invite.body()).into_owned();
        assert!(offer.contains("PCMU") && !offer.contains("PCMA"), "{offer}");
        second.answer(&invite).await;
        calls(&phone, 0, 1).await;
        phone.hang_up().await.unwrap();
        let bye = second.request(&Method::Bye).await;
        second.reply(&bye, 200, "").await;
    });
    assert_eq!(outcome.unwrap().status, 200);
    let record = site.record().await;
    assert_eq!(
        (&record["destination_number"], &record["caller_number"]),
        (&"+447700900123".into(), &"+442071230000".into())
    );

    let invite = second.ask("INVITE", "07700900123", "sip:02071230000@acme.carrier.test", "", SDP);
    second.send(&invite).await;
    assert_eq!(second.response(&Method::Invite).await.status().as_u16(), 200);
    phone.hang_up().await.unwrap();
    let bye = second.request(&Method::Bye).await;
    second.reply(&bye, 200, "").await;
    let record = site.records(2).await.remove(0);
    let numbers = [&record["direction"], &record["caller_number"], &record["destination_number"]];
    assert_eq!(numbers, ["inbound", "+447700900123", "+442071230000"]);
}

/// A registration moves to the next server: of a list after a 503, and of SRV records after a silent server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registration_goes_on_to_the_next_server() {
    let (full, free, silent, alive) = (device().await, device().await, device().await, device().await);
    let at = |priority, device: &Device| {
        let port = device.local.port();
        ("_sip._udp.r.carrier.test", Record::Service { priority, port, target: "r1.carrier.test" })
    };
    let dns = NameServer::start(vec![
        at(1, &silent),
        at(2, &alive),
        ("r1.carrier.test", Record::Address([127, 0, 0, 1])),
    ])
    .await;
    let account = "username = \"acme\"\npassword = \"hush\"\nregister = true\n";
    let trunks = format!(
        "address = \"sip:{}\"\nbackup_addresses = [\"sip:{}\"]\n{account}[[trunks]]\nname = \"named\"\n\
         address = \"sip:r.carrier.test\"\n{account}",
        full.local, free.local
    );
    let server = dns.local;
    let site = Site::configured(&declared(&trunks), |config| config.sip.dns = vec![server]).await;
    let (mut full, mut free) = (full.at(site.sip), free.at(site.sip));
    let (mut silent, mut alive) = (silent.at(site.sip), alive.at(site.sip));
    tokio::join!(
        async {
            let refused = full.request(&Method::Register).await;
            full.reply(&refused, 503, "").await;
            let register = free.request(&Method::Register).await;
            assert_eq!(register.to().unwrap().uri.to_string(), format!("sip:acme@{}", free.local));
            free.reply(&register, 200, "").await;
        },
        async {
            // Until the transaction times out: 64 times T1 (RFC 3261 §17.1.2.2).
            silent.request(&Method::Register).await;
            let register = alive.request(&Method::Register).await;
            assert_eq!(register.uri(), "sip:r.carrier.test");
            alive.reply(&register, 200, "").await;
        }
    );
}

/// Every request of the trunk goes to its proxy, with the carrier in the Request-URI.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outbound_proxy_gets_every_request() {
    let proxy = device().await;
    let trunk = format!(
        "address = \"sip:carrier.invalid\"\noutbound_proxy = \"sip:{}\"\nusername = \"acme\"\npassword = \"hush\"\n\
         register = true\n",
        proxy.local
    );
    let site = Site::with(&declared(&trunk)).await;
    let mut proxy = proxy.at(site.sip);
    let register = proxy.request(&Method::Register).await;
    assert_eq!(register.uri(), "sip:carrier.invalid");
    assert_eq!(register.header("Route"), Some(format!("<sip:{};lr>", proxy.local).as_str()));
    proxy.reply(&register, 200, "").await;
    let phone = site.phone("1001", answering()).await;
    let (outcome, ()) = tokio::join!(within("the call", phone.call(open_end("+447700900123"))), async {
        let invite = proxy.request(&Method::Invite).await;
        assert_eq!(invite.uri(), "sip:+447700900123@carrier.invalid");
        assert_eq!(invite.header("Route"), register.header("Route"));
        proxy.reply(&invite, 486, "").await;
    });
    assert_eq!(outcome.unwrap().status, 486);
    assert_eq!(site.record().await["hangup_cause"], "USER_BUSY");
}
