//! Packets per second of a whole analysis: calls found, every stream and call judged.
//!
//! On a generated G.711 call, and with `SIDETONE_BENCH_PCAP=FILE` on a capture of the reader's own.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]
#![allow(clippy::expect_used, reason = "a bench without its input has nothing to measure")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sidetone::capture;
use sidetone_media::pcap::{Content, LinkType, Records, Writer, dissect};

/// One call of five minutes, and the packets of many calls interleaved.
fn inputs() -> Vec<(String, Vec<u8>)> {
    let mut inputs = vec![("one call".to_owned(), call(300, 1)), ("64 calls".to_owned(), calls(64))];
    if let Some(path) = std::env::var_os("SIDETONE_BENCH_PCAP") {
        let bytes = std::fs::read(&path).expect("SIDETONE_BENCH_PCAP names a readable capture");
        inputs.push((path.to_string_lossy().into_owned(), bytes));
    }
    inputs
}

fn call(seconds: u32, seed: u64) -> Vec<u8> {
    let text = format!("clean loss=0.5 jitter=0..20 duration={seconds}s seed={seed}");
    let mut file = Vec::new();
    capture::compose(&text.parse().expect("a scenario"), &mut file).expect("memory takes what is written");
    file
}

/// Calls of different parties at once: the tables no longer fit the nearest cache.
fn calls(count: u8) -> Vec<u8> {
    let mut frames = Vec::new();
    for number in 0..count {
        let file = call(20, u64::from(number) + 1);
        for record in Records::new(&file).map_while(Result::ok) {
            let Content::Udp(datagram) = dissect(record.link, record.frame) else { continue };
            let renumber = |mut address: std::net::SocketAddr| {
                if let std::net::IpAddr::V4(ip) = address.ip() {
                    let [a, b, _, d] = ip.octets();
                    address.set_ip([a, b, number, d].into());
                }
                address
            };
            let text = String::from_utf8_lossy(datagram.payload);
            let payload = if text.contains("SIP/2.0") {
                // The parties' addresses stand in the messages too; the third number is one digit longer or
                // shorter, so the length is written anew.
                sip(&text, number)
            } else {
                datagram.payload.to_vec()
            };
            frames.push((record.at, renumber(datagram.source), renumber(datagram.destination), payload));
        }
    }
    frames.sort_by_key(|frame| frame.0);
    let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET).expect("memory takes what is written");
    for (at, source, destination, payload) in frames {
        writer.write_udp(at, source, destination, &payload).expect("memory takes what is written");
    }
    writer.finish().expect("memory takes what is written")
}

fn sip(text: &str, number: u8) -> Vec<u8> {
    let text = text.replace("192.0.2.", &format!("192.0.{number}."));
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return text.into_bytes() };
    let head: Vec<String> = head
        .split("\r\n")
        .map(|line| match line.strip_prefix("Content-Length:") {
            Some(_) => format!("Content-Length: {}", body.len()),
            None => line.to_owned(),
        })
        .collect();
    format!("{}\r\n\r\n{body}", head.join("\r\n")).into_bytes()
}

fn analysis(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pcap_analysis");
    for (name, file) in inputs() {
        let outcome = capture::read(&name, &mut &file[..], &mut |_| {});
        let analysis = &outcome.analysis;
        eprintln!(
            "{name}: {} packets, {} bytes, {} calls, {} streams, verdicts {:?}",
            analysis.packets,
            analysis.bytes,
            analysis.calls.len(),
            analysis.streams.len(),
            analysis.calls.first().map(|call| call.media_verdict)
        );
        let packets = analysis.packets.max(1);
        // Scaled to one packet, so that criterion states nanoseconds per packet beside packets per second.
        group.throughput(Throughput::Elements(1));
        group.bench_with_input(BenchmarkId::new("packet", &name), &file, |bencher, file| {
            bencher.iter_custom(|iterations| {
                #[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
                let start = std::time::Instant::now();
                for _ in 0..iterations {
                    black_box(capture::read("bench", &mut black_box(&file[..]), &mut |_| {}));
                }
                start.elapsed().div_f64(packets as f64)
            });
        });
        group.throughput(Throughput::Bytes(file.len() as u64));
        group.bench_with_input(BenchmarkId::new("file", &name), &file, |bencher, file| {
            bencher.iter(|| capture::read("bench", &mut black_box(&file[..]), &mut |_| {}));
        });
    }
    group.finish();
}

criterion_group!(benches, analysis);
criterion_main!(benches);
