//! Calls extracted from wrapped captures: whatever carries them, `--split` finds the frames of each call, and `--wav`
//! decodes the audio that the analysis measures.

#[path = "../../capture/tests/corpus/wraps/carriers.rs"]
mod carriers;
#[expect(dead_code, reason = "shared with the tests of captures in every wrapping")]
#[path = "../../capture/tests/corpus/wraps/files.rs"]
mod files;
#[expect(dead_code, reason = "shared with the tests of captures in every wrapping")]
#[path = "../../capture/tests/corpus/wraps/layers.rs"]
mod layers;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sidetone_capture as capture;
use sidetone_media::pcap::{Content, Records, dissect};

use self::carriers::{CARRIERS, Carrier, Cut, Payload};
use self::files::FILES;
use self::layers::{LINKS, Mix, Packet, Tunnel};

/// Three concurrent calls, whose signalling has the same two addresses.
fn calls() -> Vec<Payload> {
    let mut file = Vec::new();
    let scenario = "lossy duration=3s digits=1 jitter=0..30 order=any seed=5".parse().unwrap();
    capture::compose_calls(&scenario, 3, &mut file).unwrap();
    Records::new(&file)
        .map(|record| {
            let record = record.unwrap();
            let Content::Udp(datagram) = dissect(record.link, record.frame) else { panic!("not UDP") };
            let mut bytes = datagram.payload.to_vec();
            if bytes[0].is_ascii_uppercase() {
                // Long enough for several fragments and segments, with the Call-ID at their end.
                let text = String::from_utf8(bytes).unwrap();
                let (head, body) = text.split_once("\r\n\r\n").unwrap();
                let (named, rest): (Vec<&str>, Vec<&str>) =
                    head.split("\r\n").partition(|line| line.starts_with("Call-ID"));
                let long = format!("X-Long: {}", "x".repeat(900));
                let lines = [&rest[..1], &[&long[..]], &rest[1..], &named].concat();
                bytes = format!("{}\r\n\r\n{body}", lines.join("\r\n")).into_bytes();
            }
            let (source, destination) = (datagram.source, datagram.destination);
            Payload { at: record.at, source, destination, bytes }
        })
        .collect()
}

/// Acknowledges TCP segments of SIP: an acknowledgement number in each, and a separate ACK segment 30 ms later.
fn acknowledged(packets: Vec<Packet>) -> Vec<Packet> {
    const PAYLOAD: usize = 52;
    let mut next: HashMap<Vec<u8>, u32> = HashMap::new();
    let mut out: Vec<Packet> = Vec::new();
    for mut packet in packets {
        if packet.bytes[9] != 6 {
            out.push(packet);
            continue;
        }
        // Addresses and ports of either direction.
        let parts: Vec<Vec<u8>> =
            [12..16, 20..22, 16..20, 22..24].map(|range| packet.bytes[range].to_vec()).to_vec();
        let (own, other) = (parts.concat(), [&parts[2..], &parts[..2]].concat().concat());
        let sequence = u32::from_be_bytes(packet.bytes[24..28].try_into().unwrap());
        let end = sequence.wrapping_add((packet.bytes.len() - PAYLOAD) as u32);
        let end = if packet.bytes[33] & 2 != 0 { end.wrapping_add(1) } else { end };
        let known = next.entry(own).or_insert(end);
        if end.wrapping_sub(*known).cast_signed() > 0 {
            *known = end;
        }
        let acknowledged = *known;
        let answer = next.get(&other).copied().unwrap_or(0);
        packet.bytes[28..32].copy_from_slice(&answer.to_be_bytes());
        let mut ack = packet.bytes[..PAYLOAD].to_vec();
        ack[2..4].copy_from_slice(&(PAYLOAD as u16).to_be_bytes());
        for (from, to) in [(12..16, 16), (16..20, 12), (20..22, 22), (22..24, 20)] {
            let len = from.len();
            ack[to..to + len].copy_from_slice(&packet.bytes[from]);
        }
        ack[24..28].copy_from_slice(&answer.to_be_bytes());
        ack[28..32].copy_from_slice(&acknowledged.to_be_bytes());
        ack[33] = 0x10;
        out.push(Packet { at: packet.at + 30_000, bytes: ack });
        out.push(packet);
    }
    out.sort_by_key(|packet| packet.at);
    out
}

/// Reorders the frames of neighbouring packets, as two network paths do; their times stay in order.
fn mixed(packets: Vec<Packet>) -> Vec<Packet> {
    let mut out: Vec<Packet> = Vec::new();
    for chunk in packets.chunks(7) {
        let times: Vec<_> = chunk.iter().map(|packet| packet.at).collect();
        let order = [3, 0, 5, 1, 6, 2, 4];
        let turned = order.iter().filter_map(|place| chunk.get(*place)).cloned();
        out.extend(times.into_iter().zip(turned).map(|(at, packet)| Packet { at, bytes: packet.bytes }));
    }
    out
}

/// How the three calls are carried.
struct Way {
    name: &'static str,
    carrier: Carrier,
    cut: Cut,
    fragments: Option<(usize, Mix)>,
    is_mixed: bool,
    tunnel: Option<(Tunnel, usize)>,
}

impl Way {
    fn udp(name: &'static str) -> Self {
        Way { name, carrier: Carrier::Udp, cut: Cut::Whole, fragments: None, is_mixed: false, tunnel: None }
    }

    fn write(&self, folder: &Path) -> PathBuf {
        let mut packets = acknowledged(carriers::packets(&calls(), self.carrier, self.cut));
        if let Some((size, mix)) = self.fragments {
            packets = layers::fragments(packets, size, mix);
        }
        if let Some((tunnel, size)) = self.tunnel {
            packets = layers::fragments(layers::tunnel(packets, tunnel), size, Mix::InOrder);
        }
        if self.is_mixed {
            packets = mixed(packets);
        }
        let link = LINKS[0];
        let frames: Vec<_> =
            packets.iter().map(|packet| (packet.at, layers::link(link, &packet.bytes))).collect();
        let path = folder.join(format!("{}.pcap", self.name));
        fs::write(&path, files::write(FILES[0], link.number(), &frames)).unwrap();
        path
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("capture_wraps_{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn analyze(arguments: &[&str]) -> (String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_sidetone")).arg("analyze").args(arguments).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    (String::from_utf8(output.stdout).unwrap(), said)
}

/// The calls of a capture by their Call-ID, with their streams and without their positions.
fn told(path: &Path) -> Vec<(String, Value, Vec<Value>)> {
    let (text, _) = analyze(&["--format", "json", path.to_str().unwrap()]);
    let whole: Value = serde_json::from_str(&text).unwrap();
    let calls = whole["calls"].as_array().unwrap().iter().map(|call| {
        let streams = call["streams"].as_array().unwrap().iter();
        let streams =
            streams.map(|place| whole["streams"][place.as_u64().unwrap() as usize].clone()).collect();
        let mut call = call.clone();
        call.as_object_mut().unwrap().remove("streams");
        (call["call_id"].as_str().unwrap().to_owned(), call, streams)
    });
    calls.collect()
}

/// The properties of a call that do not depend on how late its messages were read.
fn outline((id, call, streams): &(String, Value, Vec<Value>)) -> Vec<Value> {
    let of_call = ["media_verdict", "started_at", "answered_at", "ended_at", "hangup_cause"];
    let of_streams = ["src", "dst", "packets", "lost", "codec", "verdict"];
    let streams = streams.iter().flat_map(|stream| of_streams.map(|key| stream[key].clone()));
    [id.as_str().into()].into_iter().chain(of_call.map(|key| call[key].clone())).chain(streams).collect()
}

#[test]
fn a_call_has_its_frames_whatever_carries_them() {
    let folder = folder("split");
    let mut ways = vec![
        Way { fragments: Some((520, Mix::InOrder)), ..Way::udp("fragments") },
        Way { fragments: Some((520, Mix::InOrder)), is_mixed: true, ..Way::udp("mixed") },
        Way { fragments: Some((128, Mix::LastFirstTwice)), is_mixed: true, ..Way::udp("twice") },
        Way { fragments: Some((520, Mix::Backwards)), ..Way::udp("backwards") },
        Way { fragments: Some((520, Mix::InOrder)), tunnel: Some((Tunnel::Gre, 200)), ..Way::udp("nested") },
        Way {
            carrier: Carrier::SipTcp,
            fragments: Some((520, Mix::InOrder)),
            is_mixed: true,
            ..Way::udp("tcp_in_fragments")
        },
        Way { carrier: Carrier::TcpLengths, cut: Cut::Twice, ..Way::udp("tcp_twice") },
    ];
    let names = ["tcp", "tcp_lengths", "tcp_interleaved", "tcp_channels", "channels", "indications"];
    for (carrier, name) in CARRIERS.into_iter().skip(1).zip(names) {
        ways.push(Way { carrier, ..Way::udp(name) });
    }
    // Not backwards: the file of a later call starts within the connection, and its first segment counts as the
    // beginning.
    let cuts = Cut::ALL.into_iter().filter(|cut| *cut != Cut::Backwards);
    for (cut, name) in cuts.zip(["cut_0", "cut_1", "cut_2", "cut_3", "cut_4"]) {
        ways.push(Way { carrier: Carrier::SipTcp, cut, ..Way::udp(name) });
    }
    let mut wrong = Vec::new();
    for way in ways {
        let capture = way.write(&folder);
        let whole = told(&capture);
        assert_eq!(whole.len(), 3, "{}", way.name);
        let split = folder.join(way.name);
        analyze(&["--split", split.to_str().unwrap(), capture.to_str().unwrap()]);
        let whole_frames = Records::new(&fs::read(&capture).unwrap()).count();
        let mut frames = 0;
        for (number, expected) in whole.iter().enumerate() {
            let file = split.join(format!("call-{}.pcap", number + 1));
            frames += Records::new(&fs::read(&file).unwrap()).count();
            let alone = told(&file);
            // Between the messages of one call in TCP those of the others are missing, and the reader waits for them:
            // packets of that time are counted before the message.
            let is_same = |call: &(String, Value, Vec<Value>)| match way.carrier {
                Carrier::Udp | Carrier::Channels | Carrier::Indications => call == expected,
                _ => outline(call) == outline(expected),
            };
            if !alone.iter().any(is_same) {
                wrong.push(format!("{}: call {} is another one", way.name, number + 1));
            }
            if alone.len() != 1 {
                wrong.push(format!("{}: call {} has {} calls", way.name, number + 1, alone.len()));
            }
        }
        // A segment may hold the end of one message and the beginning of the next: then it is in two files.
        if frames > whole_frames {
            wrong.push(format!("{}: {frames} frames of {whole_frames}", way.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn audio_is_decoded_whatever_carries_it() {
    let folder = folder("wav");
    let heard = |way: &Way| {
        let capture = way.write(&folder);
        let wav = folder.join(way.name);
        analyze(&["--wav", wav.to_str().unwrap(), capture.to_str().unwrap()]);
        let mut files: Vec<_> = fs::read_dir(&wav)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.file_name().unwrap().to_owned(), fs::read(&path).unwrap()))
            .collect();
        files.sort();
        files
    };
    let plain = heard(&Way::udp("plain"));
    assert_eq!(plain.len(), 6);
    assert!(plain.iter().all(|(_, file)| file.len() > 40_000));
    let names = ["tcp", "tcp_lengths", "tcp_interleaved", "tcp_channels", "channels", "indications"];
    let mut ways = vec![
        Way { fragments: Some((56, Mix::Backwards)), ..Way::udp("fragments") },
        Way {
            carrier: Carrier::Channels,
            fragments: Some((56, Mix::InOrder)),
            ..Way::udp("relayed_fragments")
        },
    ];
    for (carrier, name) in CARRIERS.into_iter().skip(1).zip(names) {
        ways.push(Way { carrier, ..Way::udp(name) });
    }
    let wrong: Vec<&str> = ways.iter().filter(|way| heard(way) != plain).map(|way| way.name).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// A stream without a file, or with a silent one, is reported with the reason.
#[test]
fn what_is_not_decoded_is_named() {
    let folder = folder("notices");
    let mut cut = Vec::new();
    let link = LINKS[0];
    for packet in carriers::packets(&calls(), Carrier::Udp, Cut::Whole) {
        let frame = layers::link(link, &packet.bytes);
        cut.push((packet.at, frame));
    }
    let whole = files::write(FILES[0], link.number(), &cut);
    let path = folder.join("cut.pcap");
    fs::write(&path, snapped(&whole, 96)).unwrap();
    let wav = folder.join("wav");
    let (_, said) = analyze(&["--wav", wav.to_str().unwrap(), "--call", "1", path.to_str().unwrap()]);
    let expected = "has no WAV file: the capture holds no whole packet of its audio; capture whole packets (tcpdump -s 0)";
    assert_eq!(said.matches(expected).count(), 2, "{said}");
    assert!(said.contains("0 WAV files of "), "{said}");
    assert_eq!(fs::read_dir(&wav).unwrap().count(), 0);
    let silent = folder.join("silent.pcap");
    let made = Command::new(env!("CARGO_BIN_EXE_sidetone"))
        .args(["simulate", "no-inbound", "--duration", "2s", "returned=no", "-o", silent.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(made.status.success());
    let (_, said) = analyze(&["--wav", wav.to_str().unwrap(), silent.to_str().unwrap()]);
    assert!(said.contains("call 1 has no WAV file: no RTP of it is in the capture"), "{said}");
}

/// The same capture with a snap length for everything except SIP.
fn snapped(file: &[u8], len: usize) -> Vec<u8> {
    let mut out = file[..24].to_vec();
    for record in Records::new(file).map(Result::unwrap) {
        let is_sip = matches!(dissect(record.link, record.frame), Content::Udp(datagram) if datagram.payload[0] != 0x80);
        let kept = if is_sip { record.frame.len() } else { record.frame.len().min(len) };
        let header = sidetone_media::pcap::record_header(record.at, kept as u32, record.wire_len).unwrap();
        out.extend(header);
        out.extend(&record.frame[..kept]);
    }
    out
}
