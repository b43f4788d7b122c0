//! HEPv3 export, through a complete engine to a socket.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use sidetone::hep::{HepPassword, HepSettings};
use sidetone_media::srtp::{MasterKey, Outbound, Suite};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::common::site::{DOMAIN, PASSWORD, Site, answering, directory, talking, within};
use crate::flows::answered::is_uneven_at_most;
use crate::flows::by_hand::{HandCall, port_of};

/// The chunks of a packet by their types (HEP3 specification, revision 37).
fn chunks(packet: &[u8]) -> BTreeMap<u16, Vec<u8>> {
    let number = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
    assert_eq!(&packet[..4], b"HEP3");
    assert_eq!(usize::from(number(&packet[4..])), packet.len());
    let (mut rest, mut chunks) = (&packet[6..], BTreeMap::new());
    while !rest.is_empty() {
        let (kind, len) = (number(&rest[2..]), usize::from(number(&rest[4..])));
        assert_eq!((number(rest), chunks.insert(kind, rest[6..len].to_vec())), (0, None));
        rest = &rest[len..];
    }
    chunks
}

const SOURCE: (u16, u16) = (3, 7);
const DESTINATION: (u16, u16) = (4, 8);
const SECONDS: u16 = 9;
const MICROSECONDS: u16 = 10;
const PROTOCOL_TYPE: u16 = 11;
const CAPTURE_ID: u16 = 12;
const PASSWORD_CHUNK: u16 = 14;
const PAYLOAD: u16 = 15;
const CORRELATION: u16 = 17;

/// The IPv4 address and the port in these chunks.
fn address(packet: &BTreeMap<u16, Vec<u8>>, (ip, port): (u16, u16)) -> SocketAddr {
    let ip: [u8; 4] = packet[&ip].as_slice().try_into().unwrap();
    (Ipv4Addr::from(ip), u16::from_be_bytes(packet[&port].as_slice().try_into().unwrap())).into()
}

/// A Homer server, and an engine with this directory that exports to it.
async fn exporting(directory: &str) -> (UdpSocket, Site) {
    let homer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let server = homer.local_addr().unwrap().to_string();
    let site = Site::configured(directory, |config| {
        let password = HepPassword::default();
        config.hep = Some(HepSettings { is_udp: true, server, capture_id: 42, password });
    })
    .await;
    (homer, site)
}

/// A receiver report of this source without blocks, and its SDES: a compound packet (RFC 3550 §6.1).
fn report(ssrc: u32) -> Vec<u8> {
    let mut packet = vec![0x80, 201, 0, 1];
    packet.extend(ssrc.to_be_bytes());
    packet.extend([0x81, 202, 0, 3]);
    packet.extend(ssrc.to_be_bytes());
    packet.extend(*b"\x01\x04name\0\0");
    packet
}

/// A call by hand whose parties send RTCP, and what arrived at the Homer server.
struct Reporting {
    call: HandCall,
    homer: UdpSocket,
    /// The RTCP sockets of the caller and the callee.
    parties: [UdpSocket; 2],
    /// Our RTCP ports for both.
    ports: [SocketAddr; 2],
    packets: Vec<BTreeMap<u16, Vec<u8>>>,
}

impl Reporting {
    async fn up(site: &Site, homer: UdpSocket, offer: &str, answer: &str) -> Reporting {
        let call = HandCall::up(site, offer, answer).await;
        let port = |sdp: &str| SocketAddr::from((Ipv4Addr::LOCALHOST, port_of(sdp, "audio") + 1));
        let ports = [port(&call.answer), port(&call.offered)];
        let parties =
            [UdpSocket::bind("127.0.0.1:0").await.unwrap(), UdpSocket::bind("127.0.0.1:0").await.unwrap()];
        Reporting { call, homer, parties, ports, packets: Vec::new() }
    }

    /// Source, destination and payload of each received RTCP packet.
    fn rtcp(&self) -> Vec<(SocketAddr, SocketAddr, &[u8])> {
        let rtcp = self.packets.iter().filter(|packet| packet[&PROTOCOL_TYPE] == [5]);
        rtcp.map(|packet| (address(packet, SOURCE), address(packet, DESTINATION), &packet[&PAYLOAD][..]))
            .collect()
    }

    /// Whether this report was exported as received from one party and as sent to the other.
    fn has_both_of(&self, from: usize, report: &[u8]) -> bool {
        let received = (self.parties[from].local_addr().unwrap(), self.ports[from], report);
        let mut sent = self.rtcp().into_iter().map(|(source, _, payload)| (source, payload));
        self.rtcp().contains(&received) && sent.any(|sent| sent == (self.ports[1 - from], report))
    }

    /// Sends these packets of the caller and the callee, then receives for a while.
    async fn turn(&mut self, reports: [&[u8]; 2]) {
        for ((party, to), report) in self.parties.iter().zip(self.ports).zip(reports) {
            party.send_to(report, to).await.unwrap();
        }
        self.take().await;
    }

    async fn take(&mut self) {
        let mut buffer = vec![0; 65_536];
        while let Ok(len) = timeout(Duration::from_millis(200), self.homer.recv(&mut buffer)).await {
            self.packets.push(chunks(&buffer[..len.unwrap()]));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rtcp_of_both_parties_is_exported_with_the_call_id() {
    let begun = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let (homer, site) = exporting(&directory()).await;
    let plain = "m=audio PORT RTP/AVP 0";
    let mut call = Reporting::up(&site, homer, plain, plain).await;
    let reports = [report(0xa), report(0xb)];
    within("both reports, as received and as sent", async {
        while !(call.has_both_of(0, &reports[0]) && call.has_both_of(1, &reports[1])) {
            call.turn([&reports[0], &reports[1]]).await;
        }
    })
    .await;
    call.call.ends().await;
    call.take().await;
    let text = |packet: &BTreeMap<u16, Vec<u8>>, chunk| String::from_utf8_lossy(&packet[&chunk]).into_owned();
    let mut invites = call
        .packets
        .iter()
        .filter(|packet| packet[&PAYLOAD].starts_with(format!("INVITE sip:1002@{DOMAIN}").as_bytes()));
    let invite = invites.next_back().unwrap_or_else(|| panic!("{:?}", call.packets));
    let correlation = text(invite, CORRELATION);
    assert!(text(invite, PAYLOAD).contains(&correlation), "the Call-ID of the caller");
    let ended = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    for packet in call.packets.iter().filter(|packet| packet[&PROTOCOL_TYPE] == [5]) {
        assert_eq!(text(packet, CORRELATION), correlation);
        assert_eq!(packet[&CAPTURE_ID], 42_u32.to_be_bytes());
        let seconds = u64::from(u32::from_be_bytes(packet[&SECONDS].as_slice().try_into().unwrap()));
        assert!((begun..=ended).contains(&seconds), "{begun} <= {seconds} <= {ended}");
    }
    site.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn srtcp_is_exported_in_plain_and_only_if_it_is_authentic() {
    let line = "number = \"1001\"\n";
    let (homer, site) = exporting(&directory().replace(line, &format!("{line}srtp = \"optional\"\n"))).await;
    // The base64 of thirty octets "A".
    let key = "QUFB".repeat(10);
    let offer = format!("m=audio PORT RTP/SAVP 0\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:{key}");
    let mut call = Reporting::up(&site, homer, &offer, "m=audio PORT RTP/AVP 0").await;
    let suite = Suite::AesCm128HmacSha1Tag80;
    let key_of = |octet: u8| Outbound::new(&MasterKey::new(suite, &[octet; 30]).unwrap());
    let (mut right, mut wrong) = (key_of(b'A'), key_of(b'B'));
    let seal = |key: &mut Outbound, report: &[u8]| {
        let mut buffer = [0; 2_048];
        buffer[..report.len()].copy_from_slice(report);
        let len = key.protect_rtcp(&mut buffer, report.len()).unwrap();
        buffer[..len].to_vec()
    };
    let (forged, own, callees) = (report(0xbad), report(0xa), report(0xb));
    within("both reports, as received and as sent", async {
        while !(call.has_both_of(0, &own) && call.has_both_of(1, &callees)) {
            for sealed in [seal(&mut wrong, &forged), seal(&mut right, &own)] {
                call.turn([&sealed, &callees]).await;
            }
        }
    })
    .await;
    let others: Vec<_> =
        call.rtcp().into_iter().filter(|(_, _, payload)| *payload != own && *payload != callees).collect();
    assert!(others.is_empty(), "not decrypted, or not authentic: {others:?}");
    call.call.ends().await;
    site.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_and_figures_of_a_call_are_exported_without_credentials() {
    let homer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let server = homer.local_addr().unwrap().to_string();
    let password = HepPassword("homer's".to_owned());
    let site = Site::configured(&directory(), |config| {
        config.hep = Some(HepSettings { is_udp: true, server, capture_id: 42, password });
    })
    .await;
    let caller = site.phone("1001", answering()).await;
    let _callee = site.phone("1002", answering()).await;
    // Longer than the pause between two rounds of reports on live legs.
    let outcome = within("the call", caller.call(talking("1002", 12_000))).await.unwrap();
    assert_eq!(outcome.status, 200);
    let mut packets = Vec::new();
    let mut buffer = vec![0; 65_536];
    within("the last report", async {
        while packets.iter().filter(|one: &&BTreeMap<u16, Vec<u8>>| one[&PROTOCOL_TYPE] == [0x22]).count() < 2
        {
            let len = homer.recv(&mut buffer).await.unwrap();
            packets.push(chunks(&buffer[..len]));
        }
    })
    .await;
    for packet in &packets {
        assert_eq!(packet[&CAPTURE_ID], 42_u32.to_be_bytes());
        assert_eq!(packet[&PASSWORD_CHUNK], b"homer's");
    }
    let of_kind = |kind: u8| packets.iter().filter(move |packet| packet[&PROTOCOL_TYPE] == [kind]);
    let messages: Vec<String> =
        of_kind(1).map(|packet| String::from_utf8_lossy(&packet[&PAYLOAD]).into_owned()).collect();
    for begin in ["REGISTER ", "INVITE ", "SIP/2.0 401 ", "SIP/2.0 200 ", "ACK ", "BYE "] {
        assert!(messages.iter().any(|message| message.starts_with(begin)), "{begin}: {messages:#?}");
    }
    assert!(messages.iter().all(|message| !message.contains("response=") && !message.contains(PASSWORD)));
    let invites: BTreeSet<&String> =
        messages.iter().filter(|message| message.starts_with("INVITE ")).collect();
    assert_eq!(invites.len(), 3, "two of the caller, one to the callee");
    // A retransmission has a time of its own.
    let times = of_kind(1).map(|packet| (&packet[&SECONDS], &packet[&MICROSECONDS], &packet[&PAYLOAD]));
    assert_eq!(times.collect::<BTreeSet<_>>().len(), messages.len(), "none twice");

    let correlation =
        |packet: &BTreeMap<u16, Vec<u8>>| String::from_utf8(packet[&CORRELATION].clone()).unwrap();
    for kind in [0x22, 0x23] {
        let reports: Vec<(String, Value)> = of_kind(kind)
            .map(|packet| (correlation(packet), serde_json::from_slice(&packet[&PAYLOAD]).unwrap()))
            .collect();
        let of_leg = |leg: &str| reports.iter().any(|(_, report)| report["LEG"] == leg);
        assert!(of_leg("a") && of_leg("b"), "{kind}: {reports:#?}");
        for (call_id, report) in &reports {
            assert!(messages.iter().any(|message| message.contains(call_id.as_str())), "{call_id}");
            assert_eq!(report["CORRELATION_ID"], call_id.as_str());
            assert!(report["TOTAL_PK"].as_u64().unwrap() > 100, "{report:#}");
            assert!(is_uneven_at_most(&report["VERDICT"]), "{report:#}");
        }
    }
    site.stop(Duration::ZERO).await;
}
