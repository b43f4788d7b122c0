//! The relay between real sockets on loopback: packets from one party arrive at the other and are counted.
//!
//! No test sleeps: a test blocks on the packet or the notice that must arrive.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop where it fails"
)]

mod addresses;
mod fax;
mod limits;
mod mixed;
mod moves;
mod relayed;
mod reported;
mod secured;
mod traced;
mod transcoded;
mod video;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sidetone_media::net::{Command, Io, Notice, Port, PortId, Relay, RelayConfig, RelayIo};
use sidetone_media::session::{Description, Payload, PayloadKind, Report, SessionConfig};
use sidetone_media::time::ClockRate;

/// Much longer than any test needs: a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(90);
/// Outside the ports that systems usually give to the phones of this test.
const RANGE: RangeInclusive<u16> = 16_000..=31_999;
const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

fn start() -> Relay {
    start_in(RANGE)
}

fn start_in(ports: RangeInclusive<u16>) -> Relay {
    start_as(ports, 2)
}

fn start_with(workers: usize) -> Relay {
    start_as(RANGE, workers)
}

fn start_as(ports: RangeInclusive<u16>, workers: usize) -> Relay {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let seed = u64::from(std::process::id()) << 32 | STARTED.fetch_add(1, Ordering::Relaxed);
    let config = RelayConfig { bind: V4, ports, workers, io: io(), session: SessionConfig::default(), seed };
    let relay = Relay::start(config, Arc::new(|| {})).unwrap();
    if io() == RelayIo::IoUring && relay.io() != Io::IoUring {
        eprintln!("SKIPPED: this system does not offer io_uring; the test runs with epoll");
    }
    relay
}

/// The kernel interface that this module tests; its files are compiled once for each.
fn io() -> RelayIo {
    if module_path!().contains("io_uring") { RelayIo::IoUring } else { RelayIo::Epoll }
}

/// A party: two sockets and the headers of one stream.
struct Phone {
    rtp: UdpSocket,
    rtcp: UdpSocket,
    ssrc: u32,
    seq: u16,
}

impl Phone {
    fn new(ssrc: u32) -> Phone {
        Phone::on(V4, ssrc)
    }

    fn on(ip: IpAddr, ssrc: u32) -> Phone {
        Phone { rtp: socket(ip), rtcp: socket(ip), ssrc, seq: 100 }
    }

    fn addr(&self) -> SocketAddr {
        self.rtp.local_addr().unwrap()
    }

    /// The next packet of the stream.
    fn packet(&mut self, marker: bool, payload_type: u8) -> Vec<u8> {
        let packet = rtp(marker, payload_type, self.seq, self.ssrc);
        self.seq = self.seq.wrapping_add(1);
        packet
    }

    fn send(&mut self, to: SocketAddr) -> Vec<u8> {
        let packet = self.packet(false, 0);
        self.rtp.send_to(&packet, to).unwrap();
        packet
    }

    fn receive(&self) -> (Vec<u8>, SocketAddr) {
        receive(&self.rtp)
    }
}

fn socket(ip: IpAddr) -> UdpSocket {
    loop {
        let socket = UdpSocket::bind((ip, 0)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        if !RANGE.contains(&socket.local_addr().unwrap().port()) {
            return socket;
        }
    }
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    try_receive(socket).expect("a packet that must come")
}

/// The next packet. A signal to its thread, perhaps by the end of an io_uring, interrupts it.
fn try_receive(socket: &UdpSocket) -> io::Result<(Vec<u8>, SocketAddr)> {
    let mut buffer = vec![0; 4_000];
    loop {
        match socket.recv_from(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            received => {
                let (len, source) = received?;
                buffer.truncate(len);
                return Ok((buffer, source));
            }
        }
    }
}

fn rtp(marker: bool, payload_type: u8, seq: u16, ssrc: u32) -> Vec<u8> {
    let mut packet = vec![0x80, u8::from(marker) << 7 | payload_type];
    packet.extend(seq.to_be_bytes());
    packet.extend((u32::from(seq) * 160).to_be_bytes());
    packet.extend(ssrc.to_be_bytes());
    packet.extend([0xd5; 160]);
    packet
}

/// A receiver report without blocks (RFC 3550 §6.4.2).
fn receiver_report(ssrc: u32) -> Vec<u8> {
    let mut packet = vec![0x80, 201, 0, 1];
    packet.extend(ssrc.to_be_bytes());
    packet
}

fn payload(number: u8, kind: PayloadKind, name: &str) -> Payload {
    Payload {
        number,
        kind,
        clock: ClockRate::HZ_8000,
        bytes_per_ms: None,
        default_ptime_ms: None,
        name: name.to_owned(),
    }
}

fn description(phone: &Phone) -> Description {
    Description {
        remote: Some(phone.addr()),
        remote_rtcp: Some(phone.rtcp.local_addr().unwrap()),
        receive: true,
        send: true,
        payloads: vec![
            payload(0, PayloadKind::Audio, "PCMU"),
            payload(96, PayloadKind::Event, "telephone-event"),
            payload(101, PayloadKind::Event, "telephone-event"),
        ],
        signalling: Some(phone.addr().ip()),
        ..Description::default()
    }
}

fn describe(relay: &Relay, port: Port, description: Description) {
    relay.command(port.id, Command::Describe(Box::new(description))).unwrap();
}

fn bridge(relay: &Relay, one: Port, other: Port) {
    relay.command(one.id, Command::Bridge { peer: other.id, payload_map: None }).unwrap();
    relay.command(other.id, Command::Bridge { peer: one.id, payload_map: None }).unwrap();
}

/// A call: two described, bridged and answered ports in one group.
fn call(relay: &Relay, group: u64, caller: &Phone, callee: &Phone) -> (Port, Port) {
    let ports = [caller, callee].map(|phone| {
        let port = relay.open(group, phone.addr().ip()).unwrap();
        describe(relay, port, description(phone));
        relay.command(port.id, Command::Answered).unwrap();
        port
    });
    bridge(relay, ports[0], ports[1]);
    snapshot(relay, ports[1].id);
    (ports[0], ports[1])
}

fn notice(relay: &Relay) -> Notice {
    relay.notices().recv_timeout(PATIENCE).expect("a notice that must come")
}

/// The report so far; when it arrives, every earlier command has run.
fn snapshot(relay: &Relay, wanted: PortId) -> Box<Report> {
    relay.command(wanted, Command::Snapshot).unwrap();
    loop {
        match notice(relay) {
            Notice::Snapshot { id, report } if id == wanted => return report,
            Notice::Closed { id, .. } => panic!("{id:?} was closed"),
            _ => {}
        }
    }
}

fn close(relay: &Relay, wanted: PortId) -> Box<Report> {
    relay.command(wanted, Command::Close).unwrap();
    loop {
        match notice(relay) {
            Notice::Closed { id, report } if id == wanted => return report,
            _ => {}
        }
    }
}
