//! Bridges without a common codec, on real sockets: a tone passes, and the figures are those of the received
//! packets.
//!
//! No test sleeps: a phone sends its next packet when the other has received one, which is every 20 ms.

use sidetone_media::codec::{Codec, Decoder, Encoder};
use sidetone_media::mix::MixId;
use sidetone_media::rtp::RtpPacket;
use sidetone_media::transcode::{EventPlan, TranscodePlan};

use super::moves::pcmu_seat;
use super::*;

/// One party: the audio it sends and receives, in its codec.
struct Side {
    phone: Phone,
    port: Port,
    codec: (u8, Codec),
    encoder: Encoder,
    decoder: Decoder,
    at: u32,
    heard: Vec<i16>,
    ssrcs: Vec<u32>,
}

impl Side {
    fn new(relay: &Relay, ssrc: u32, codec: (u8, Codec)) -> Side {
        let phone = Phone::new(ssrc);
        let port = relay.open(1, V4).unwrap();
        let mut settled = description(&phone);
        settled.payloads = vec![
            Payload { clock: codec.1.rtp_clock(), ..payload(codec.0, PayloadKind::Audio, codec.1.name()) },
            Payload { clock: codec.1.rtp_clock(), ..payload(101, PayloadKind::Event, "telephone-event") },
        ];
        describe(relay, port, settled);
        relay.command(port.id, Command::Answered).unwrap();
        let (encoder, decoder) = (Encoder::new(codec.1).unwrap(), Decoder::new(codec.1).unwrap());
        Side { phone, port, codec, encoder, decoder, at: 0, heard: Vec::new(), ssrcs: Vec::new() }
    }

    /// Bridges this side's packets to `other`.
    fn towards(&self, relay: &Relay, other: &Side) {
        let mut map = Box::new([0xff; 128]);
        map[99] = 99;
        let clock = |side: &Side| (101, side.codec.1.rtp_clock().hz());
        let events = Some(EventPlan { from: clock(self), to: clock(other) });
        let plan = TranscodePlan {
            audio: vec![self.codec],
            noise: Vec::new(),
            events,
            send: other.codec,
            ptime_ms: 20,
        };
        let bridge = Command::Bridge { peer: other.port.id, payload_map: Some(map) };
        relay.command(self.port.id, bridge).unwrap();
        let transcode =
            Command::Transcode { plan: Some(Box::new(plan)), seed: u64::from(self.phone.ssrc) << 32 };
        relay.command(self.port.id, transcode).unwrap();
    }

    /// Sends 20 ms of 400 Hz.
    fn say(&mut self) {
        let rate = self.codec.1.sample_rate_hz();
        let sample = |n: u32| {
            (8_000.0 * (std::f64::consts::TAU * 400.0 * f64::from(n) / f64::from(rate)).sin()) as i16
        };
        let pcm: Vec<i16> = (self.at..self.at + rate / 50).map(sample).collect();
        self.at += rate / 50;
        let mut packet = self.phone.packet(false, self.codec.0);
        let timestamp = u32::from(self.phone.seq) * self.codec.1.rtp_clock().hz() / 50;
        packet[4..8].copy_from_slice(&timestamp.to_be_bytes());
        packet.resize(12 + 1_400, 0);
        let size = self.encoder.encode(&pcm, &mut packet[12..]).unwrap();
        self.phone.rtp.send_to(&packet[..12 + size], self.port.rtp).unwrap();
    }

    fn hear(&mut self) -> Vec<u8> {
        let (datagram, source) = self.phone.receive();
        self.take(&datagram, source);
        datagram
    }

    /// The next packet, if one arrives within a second: they are due every 20 ms.
    fn hear_soon(&mut self) -> Option<()> {
        self.phone.rtp.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let (datagram, source) = try_receive(&self.phone.rtp).ok()?;
        self.take(&datagram, source);
        Some(())
    }

    fn take(&mut self, datagram: &[u8], source: SocketAddr) {
        assert_eq!(source, self.port.rtp);
        let packet = RtpPacket::parse(datagram).unwrap();
        if !self.ssrcs.contains(&packet.header.ssrc) {
            self.ssrcs.push(packet.header.ssrc);
        }
        if packet.header.payload_type == self.codec.0 {
            let mut pcm = [0; 5_760];
            let count = self.decoder.decode(packet.payload, &mut pcm).unwrap();
            self.heard.extend_from_slice(&pcm[..count]);
        }
    }

    fn hz(&self) -> f64 {
        let voice = &self.heard[self.heard.len() / 2..];
        let crossings = voice.windows(2).filter(|pair| pair[0] < 0 && pair[1] >= 0).count();
        crossings as f64 * f64::from(self.codec.1.sample_rate_hz()) / voice.len() as f64
    }
}

#[test]
fn both_parties_hear_each_other_in_their_own_codec() {
    for codecs in [((0, Codec::Pcmu), (9, Codec::G722)), ((8, Codec::Pcma), (111, Codec::Opus))] {
        // When the machine does not run this for a while, a tick finds no packet, and playout stops then, as
        // it should.
        assert!((0..ATTEMPTS).any(|_| hear_each_other(codecs)), "{codecs:?}: never without a break");
    }
}

/// A mix that listens to both takes nothing from them.
#[test]
fn a_transcoded_bridge_goes_on_while_a_mix_listens() {
    let relay = start();
    let (mut caller, mut callee) =
        (Side::new(&relay, 0x1111, (0, Codec::Pcmu)), Side::new(&relay, 0x2222, (9, Codec::G722)));
    caller.towards(&relay, &callee);
    callee.towards(&relay, &caller);
    for side in [&caller, &callee] {
        let mut seat = pcmu_seat(u64::from(side.phone.ssrc));
        (seat.formats.receive, seat.formats.send) = (vec![side.codec], side.codec);
        relay.command(side.port.id, Command::Listen { mix: MixId(1), seat }).unwrap();
    }
    snapshot(&relay, callee.port.id);
    let mut heard = 0;
    // The first ones fill the buffer of the transcoder; later ones are due every 20 ms.
    for _ in 0..60 {
        caller.say();
        callee.say();
        let both = callee.hear_soon().is_some() && caller.hear_soon().is_some();
        heard += u32::from(both);
        if heard == 20 {
            return;
        }
        assert!(both || heard == 0, "nothing arrives after {heard} packets");
    }
    panic!("{heard} packets arrived");
}

/// Lets both send and receive; `false` when one of them was too late.
fn hear_each_other((one, other): ((u8, Codec), (u8, Codec))) -> bool {
    let relay = start();
    let (mut caller, mut callee) = (Side::new(&relay, 0x1111, one), Side::new(&relay, 0x2222, other));
    caller.towards(&relay, &callee);
    callee.towards(&relay, &caller);
    snapshot(&relay, callee.port.id);
    // Some packets are always in transit, so that every tick finds one.
    for _ in 0..3 {
        caller.say();
        callee.say();
    }
    for _ in 0..60 {
        if callee.hear_soon().is_none() {
            return false;
        }
        caller.say();
        if caller.hear_soon().is_none() {
            return false;
        }
        callee.say();
    }
    // Concealment in between is not a tone.
    if [&caller, &callee].iter().any(|side| !(380.0..420.0).contains(&side.hz())) {
        return false;
    }
    assert!([&caller, &callee].iter().all(|side| side.ssrcs.len() == 1));
    // Our streams have our own numbers; RTCP of the party would refer to SSRCs that the other does not have.
    assert_eq!((caller.ssrcs[0], callee.ssrcs[0]), (0x2222, 0x1111), "from the seeds");
    caller.phone.rtcp.send_to(&receiver_report(1), caller.port.rtcp).unwrap();
    let report = close(&relay, caller.port.id);
    assert_eq!((report.figures.received, report.figures.lost), (63, 0));
    assert!(report.counters.sent >= 60, "{}", report.counters.sent);
    close(&relay, callee.port.id);
    let counters = relay.counters();
    assert_eq!((counters.relayed, counters.panics, counters.originate_errors), (0, 0, 0));
    assert!(counters.mixed >= 126, "{}", counters.mixed);
    true
}

#[test]
fn keys_pass_and_a_bridge_that_shares_a_codec_again_is_relayed() {
    let relay = start();
    let mut caller = Side::new(&relay, 0x1111, (0, Codec::Pcmu));
    let mut callee = Side::new(&relay, 0x2222, (111, Codec::Opus));
    caller.towards(&relay, &callee);
    snapshot(&relay, caller.port.id);
    let mut key = caller.phone.packet(true, 101);
    key.truncate(12);
    key.extend([7, 10, 0, 160]);
    caller.phone.rtp.send_to(&key, caller.port.rtp).unwrap();
    let heard = callee.hear();
    assert_eq!((heard[1], &heard[12..]), (0x80 | 101, &[7, 10, 0x03, 0xc0][..]), "960 units of 48 kHz");
    relay.command(caller.port.id, Command::Tone).unwrap();
    relay.command(caller.port.id, Command::Bridge { peer: callee.port.id, payload_map: None }).unwrap();
    relay.command(caller.port.id, Command::Transcode { plan: None, seed: 0 }).unwrap();
    snapshot(&relay, caller.port.id);
    let sent = caller.phone.send(caller.port.rtp);
    assert_eq!(callee.phone.receive().0, sent, "untouched");
}

/// How often a conversation is tried until there is no interruption.
const ATTEMPTS: u32 = 40;
