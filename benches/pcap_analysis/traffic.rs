//! Captures of many concurrent calls, written while they are generated.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use sidetone_capture as capture;
use sidetone_media::pcap::{Content, LinkType, Records, Writer, dissect};
use sidetone_media::time::Micros;

/// One datagram of a template call.
struct Piece {
    at: Micros,
    from: SocketAddr,
    to: SocketAddr,
    payload: Vec<u8>,
}

/// Writes a capture of `calls` concurrent G.711 calls that begin one after the other within a second. All of them
/// together have `packets` packets; each call has its SIP and both directions, and `network` is the scenario of the
/// network that they pass.
pub fn write(path: &Path, network: &str, calls: u32, packets: u32) {
    // Both directions of a call together send a hundred packets a second.
    let seconds = (packets / calls / 100).max(1);
    let templates: Vec<Vec<Piece>> = (1..=TEMPLATES).map(|seed| template(network, seconds, seed)).collect();
    let template = |call: u32| &templates[(call % TEMPLATES) as usize];
    let begin_us = |call: u32| i64::from(call) * 1_000_000 / i64::from(calls);
    let file =
        BufWriter::with_capacity(1 << 20, File::create(path).expect("the temporary folder is writable"));
    let mut writer = Writer::new(file, LinkType::ETHERNET).expect("a header can be written");
    let mut next: BinaryHeap<Reverse<(i64, u32, usize)>> =
        (0..calls).map(|call| Reverse((template(call)[0].at.0 + begin_us(call), call, 0))).collect();
    while let Some(Reverse((at_us, call, place))) = next.pop() {
        let pieces = template(call);
        let piece = &pieces[place];
        let move_to = |address: SocketAddr| SocketAddr::new(moved(address.ip(), call), address.port());
        let text = piece.payload.first().is_some_and(u8::is_ascii_uppercase);
        let rewritten = text.then(|| message(&piece.payload, call));
        let payload = rewritten.as_ref().unwrap_or(&piece.payload);
        let (from, to) = (move_to(piece.from), move_to(piece.to));
        writer.write_udp(Micros(at_us), from, to, payload).expect("the disk has room");
        if let Some(piece) = pieces.get(place + 1) {
            next.push(Reverse((piece.at.0 + begin_us(call), call, place + 1)));
        }
    }
    writer.finish().expect("the disk has room").flush().expect("the disk has room");
}

fn template(network: &str, seconds: u32, seed: u32) -> Vec<Piece> {
    let text = format!("{network} duration={seconds}s seed={seed}");
    let mut file = Vec::new();
    capture::compose(&text.parse().expect("a scenario"), &mut file).expect("memory takes what is written");
    let pieces = Records::new(&file).map_while(Result::ok).filter_map(|record| {
        let Content::Udp(datagram) = dissect(record.link, record.frame) else { return None };
        let payload = datagram.payload.to_vec();
        Some(Piece { at: record.at, from: datagram.source, to: datagram.destination, payload })
    });
    pieces.collect()
}

/// A party's address in another call.
fn moved(address: IpAddr, call: u32) -> IpAddr {
    let IpAddr::V4(ip) = address else { return address };
    let [.., third, second, first] = call.to_be_bytes();
    [10 + third, second, first, ip.octets()[3]].into()
}

/// The message in another call, with the addresses and the Call-ID of that call.
fn message(payload: &[u8], call: u32) -> Vec<u8> {
    let IpAddr::V4(net) = moved([0, 0, 0, 0].into(), call) else { return Vec::new() };
    let [first, second, third, _] = net.octets();
    let text = String::from_utf8_lossy(payload).replace("192.0.2.", &format!("{first}.{second}.{third}."));
    let text = text.replace("@simulated.invalid", &format!("-{call}@simulated.invalid"));
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return text.into_bytes() };
    let head: Vec<String> = head
        .split("\r\n")
        .map(|line| match line.strip_prefix("Content-Length:") {
            // The new addresses have another length than the old ones.
            Some(_) => format!("Content-Length: {}", body.len()),
            None => line.to_owned(),
        })
        .collect();
    format!("{}\r\n\r\n{body}", head.join("\r\n")).into_bytes()
}

/// Template calls; they differ in network effects.
const TEMPLATES: u32 = 8;
