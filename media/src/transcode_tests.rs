use super::*;
use crate::codec::Decoder;
use crate::rtp::Packet;

const HZ: f64 = 400.0;

fn plan(from: (u8, Codec), to: (u8, Codec), ptime_ms: u32) -> TranscodePlan {
    let clock = |codec: Codec| codec.rtp_clock().hz();
    let events = EventPlan { from: (101, clock(from.1)), to: (96, clock(to.1)) };
    TranscodePlan { audio: vec![from], noise: vec![13], events: Some(events), send: to, ptime_ms }
}

/// Packets of 20 ms of a tone, as `(sent at in µs, header, payload)`.
fn tone(number: u8, codec: Codec, count: u32) -> Vec<(Micros, Packet, Vec<u8>)> {
    let mut encoder = Encoder::new(codec).unwrap();
    let (rate, size) = (codec.sample_rate_hz(), codec.sample_rate_hz() / 50);
    let sample =
        |n: u32| (8_000.0 * (std::f64::consts::TAU * HZ * f64::from(n) / f64::from(rate)).sin()) as i16;
    let packet = |n: u32| {
        let pcm: Vec<i16> = (n * size..(n + 1) * size).map(sample).collect();
        let mut payload = vec![0; 1_500];
        let bytes = encoder.encode(&pcm, &mut payload).unwrap();
        payload.truncate(bytes);
        let timestamp = n * codec.rtp_clock().hz() / 50;
        let header =
            Packet { ssrc: 1, sequence: n as u16, timestamp, payload_type: number, ..Packet::default() };
        (Micros(5_000_000 + i64::from(n) * 20_000), header, payload)
    };
    (0..count).map(packet).collect()
}

/// Feeds packets and runs ticks; returns every sent packet with its time.
fn run(transcoder: &mut Transcoder, packets: &[(Micros, Packet, Vec<u8>)]) -> Vec<(Micros, Vec<u8>)> {
    let mut out = Vec::new();
    let mut packets = packets.iter().peekable();
    loop {
        let arrival = packets.peek().map(|packet| packet.0);
        let now = match (arrival, transcoder.next_tick()) {
            (Some(arrival), Some(tick)) if arrival <= tick => arrival,
            (Some(arrival), None) => arrival,
            (_, Some(tick)) => tick,
            (None, None) => return out,
        };
        if arrival == Some(now) {
            let (_, header, payload) = packets.next().unwrap();
            transcoder.receive(now, &RtpPacket { header: *header, payload });
        } else {
            transcoder.tick(now);
        }
        while let Some(datagram) = transcoder.poll_packet() {
            out.push((now, datagram.to_vec()));
        }
    }
}

#[test]
fn a_tone_goes_from_every_codec_to_every_other_in_one_stream() {
    let codecs = [(0, Codec::Pcmu), (8, Codec::Pcma), (9, Codec::G722), (111, Codec::Opus)];
    for from in codecs {
        for to in codecs {
            for ptime_ms in [10, 20, 30, 60] {
                let name = format!("{from:?} to {to:?} by {ptime_ms}");
                let mut transcoder =
                    Transcoder::new(plan(from, to, ptime_ms), 0x1234_5678_9abc_def0).unwrap();
                let out = run(&mut transcoder, &tone(from.0, from.1, 60));
                let mut decoder = Decoder::new(to.1).unwrap();
                let mut pcm = Vec::new();
                let headers: Vec<Packet> =
                    out.iter().map(|(_, datagram)| Packet::parse(datagram).unwrap()).collect();
                for (_, datagram) in &out {
                    let mut frame = [0; 5_760];
                    let count =
                        decoder.decode(RtpPacket::parse(datagram).unwrap().payload, &mut frame).unwrap();
                    pcm.extend_from_slice(&frame[..count]);
                }
                let made_ms = if to.1 == Codec::Opus && ptime_ms == 30 { 20 } else { ptime_ms };
                let step = made_ms * to.1.rtp_clock().hz() / 1_000;
                for pair in headers.windows(2) {
                    assert_eq!(pair[1].sequence, pair[0].sequence.wrapping_add(1), "{name}");
                    assert_eq!(pair[1].timestamp, pair[0].timestamp.wrapping_add(step), "{name}");
                    assert_eq!((pair[1].ssrc, pair[1].payload_type), (0x1234_5678, to.0), "{name}");
                    assert!(!pair[1].marker, "{name}");
                }
                assert!(headers[0].marker, "{name}");
                let voice = &pcm[pcm.len() / 4..pcm.len() * 3 / 4];
                let crossings = voice.windows(2).filter(|pair| pair[0] < 0 && pair[1] >= 0).count();
                let hz = crossings as f64 * f64::from(to.1.sample_rate_hz()) / voice.len() as f64;
                assert!((HZ - 10.0..HZ + 10.0).contains(&hz), "{name}: {hz:.0} Hz");
                // Ten milliseconds of delay, plus the time until a longer packet is full.
                let first_us = out[0].0.since(Micros(5_000_000));
                assert!(first_us <= 10_000 + i64::from(ptime_ms) * 1_000, "{name}: {first_us}");
            }
        }
    }
}

#[test]
fn a_pause_is_a_pause_and_the_clock_goes_on() {
    let mut transcoder = Transcoder::new(plan((0, Codec::Pcmu), (9, Codec::G722), 20), 7).unwrap();
    let mut packets = tone(0, Codec::Pcmu, 200);
    packets.drain(50..150);
    for (sequence, packet) in (0..).zip(&mut packets) {
        packet.1.sequence = sequence;
    }
    let out = run(&mut transcoder, &packets);
    let marked: Vec<_> =
        out.iter().filter(|(_, datagram)| datagram[1] & 0x80 != 0).map(|(now, _)| now.0 / 1_000).collect();
    assert_eq!(marked, [5_010, 8_010]);
    let timestamp = |at: usize| Packet::parse(&out[at].1).unwrap().timestamp;
    let late = out.iter().position(|(now, _)| now.0 >= 8_000_000).unwrap();
    assert_eq!(timestamp(late).wrapping_sub(timestamp(0)), 3 * 8_000);
    // 100 packets, plus concealment of missing packets at both ends.
    assert!(out.len() <= 110, "{}", out.len());
    assert_eq!(transcoder.next_tick(), None);
}

#[test]
fn keys_pass_at_once_with_the_other_sides_number_and_clock() {
    let mut transcoder = Transcoder::new(plan((0, Codec::Pcmu), (111, Codec::Opus), 20), 7).unwrap();
    let mut packets = tone(0, Codec::Pcmu, 40);
    for (n, packet) in packets.iter_mut().enumerate().skip(20).take(8) {
        let duration = ((n.min(25) - 19) * 160) as u16;
        let end = if n >= 25 { 0x80 } else { 0 };
        let [high, low] = duration.to_be_bytes();
        packet.1 = Packet { payload_type: 101, timestamp: 20 * 160, marker: n == 20, ..packet.1 };
        packet.2 = vec![5, end | 10, high, low];
    }
    let out = run(&mut transcoder, &packets);
    let keys: Vec<_> = out.iter().filter(|(_, datagram)| datagram[1] & 0x7f == 96).collect();
    assert_eq!(keys.len(), 8);
    let audio = Packet::parse(&out[0].1).unwrap();
    for (n, (now, datagram)) in keys.iter().enumerate() {
        let key = RtpPacket::parse(datagram).unwrap();
        assert_eq!(now.0, 5_000_000 + (20 + n as i64) * 20_000);
        assert_eq!((key.header.marker, key.payload[0], key.payload[1] & 0x80 != 0), (n == 0, 5, n >= 5));
        assert_eq!(u16::from_be_bytes([key.payload[2], key.payload[3]]), (n.min(5) as u16 + 1) * 960);
        // The key press began 390 ms after the first frame was played.
        assert_eq!(key.header.timestamp.wrapping_sub(audio.timestamp), 390 * 48);
    }
    assert_eq!(transcoder.figures().concealed_ms, 100, "at the end alone");
    let numbers: Vec<u16> =
        out.iter().map(|(_, datagram)| Packet::parse(datagram).unwrap().sequence).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)));
}

#[test]
fn the_beep_is_heard_in_any_codec() {
    for to in [(8, Codec::Pcma), (9, Codec::G722), (111, Codec::Opus)] {
        let mut transcoder = Transcoder::new(plan((0, Codec::Pcmu), to, 20), 7).unwrap();
        transcoder.beep();
        let mut decoder = Decoder::new(to.1).unwrap();
        let mut pcm = Vec::new();
        for (_, datagram) in run(&mut transcoder, &tone(0, Codec::Pcmu, 60)) {
            let mut frame = [0; 5_760];
            let count = decoder.decode(RtpPacket::parse(&datagram).unwrap().payload, &mut frame).unwrap();
            pcm.extend_from_slice(&frame[..count]);
        }
        let rate = to.1.sample_rate_hz() as usize;
        let hz = |from_ms: usize, to_ms: usize| {
            let part = &pcm[from_ms * rate / 1_000..to_ms * rate / 1_000];
            part.windows(2).filter(|pair| pair[0] < 0 && pair[1] >= 0).count() * 1_000 / (to_ms - from_ms)
        };
        assert!((1_380..1_420).contains(&hz(100, 500)), "{to:?}: {}", hz(100, 500));
        assert!((385..415).contains(&hz(700, 1_000)), "{to:?}: {}", hz(700, 1_000));
    }
}

#[test]
fn who_ticks_too_late_catches_up_once() {
    let mut transcoder = Transcoder::new(plan((0, Codec::Pcmu), (8, Codec::Pcma), 20), 7).unwrap();
    for (now, header, payload) in tone(0, Codec::Pcmu, 10) {
        transcoder.receive(now, &RtpPacket { header, payload: &payload });
    }
    let now = Micros(60_000_000);
    transcoder.tick(now);
    assert!(transcoder.next_tick().is_some_and(|due| due.since(now).abs() <= 20_000));
    assert!(std::iter::from_fn(|| transcoder.poll_packet().map(<[u8]>::len)).count() <= 1);
}
