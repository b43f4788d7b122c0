//! Legs with SRTP on real sockets: with and without SRTP at the peer, forged packets, new keys, mixes.

use std::sync::Mutex;

use sidetone_media::mix::MixId;
use sidetone_media::session::{Reason, Verdict};
use sidetone_media::srtp::{Inbound, MasterKey, Outbound, SrtpError, SrtpKeys, Suite};
use sidetone_media::trace::{Replay, TraceHead, TraceSink};
use sidetone_media::webrtc::Protection;

use super::moves::pcmu_seat;
use super::*;

/// A phone with SRTP, as the relay's peer: its own key and the relay's.
struct Secure {
    phone: Phone,
    keys: SrtpKeys,
    sender: Outbound,
    receiver: Inbound,
}

impl Secure {
    fn new(ssrc: u32, suite: Suite) -> Secure {
        let (phone, keys) = (Phone::new(ssrc), keys(suite, ssrc as u8));
        let (sender, receiver) = (Outbound::new(&keys.receive), Inbound::new(&keys.send));
        Secure { phone, keys, sender, receiver }
    }

    /// Protects the next packet; returns it without and with protection.
    fn next(&mut self) -> (Vec<u8>, Vec<u8>) {
        let packet = self.phone.packet(false, 0);
        let sealed = seal(&mut self.sender, &packet, false);
        (packet, sealed)
    }

    fn send(&mut self, to: SocketAddr) -> Vec<u8> {
        let (packet, sealed) = self.next();
        self.phone.rtp.send_to(&sealed, to).unwrap();
        packet
    }

    fn receive(&mut self) -> (Vec<u8>, SocketAddr) {
        let (mut datagram, source) = self.phone.receive();
        let len = self.receiver.unprotect(&mut datagram).unwrap();
        datagram.truncate(len);
        (datagram, source)
    }

    fn receive_rtcp(&mut self) -> Vec<u8> {
        let (mut datagram, _) = receive(&self.phone.rtcp);
        let len = self.receiver.unprotect_rtcp(&mut datagram).unwrap();
        datagram.truncate(len);
        datagram
    }

    fn secure(&self, relay: &Relay, port: Port) {
        relay.command(port.id, Command::Secure(Some(Box::new(Protection::Sdes(self.keys.clone()))))).unwrap();
        snapshot(relay, port.id);
    }
}

fn master(suite: Suite, seed: u8) -> MasterKey {
    MasterKey::new(suite, &vec![seed; suite.key_bytes() + suite.salt_bytes()]).unwrap()
}

fn keys(suite: Suite, seed: u8) -> SrtpKeys {
    SrtpKeys { receive: master(suite, seed), send: master(suite, seed ^ 0x80) }
}

fn seal(sender: &mut Outbound, packet: &[u8], is_rtcp: bool) -> Vec<u8> {
    let mut buffer = [packet, &[0; 32]].concat();
    let sealed = if is_rtcp {
        sender.protect_rtcp(&mut buffer, packet.len())
    } else {
        sender.protect(&mut buffer, packet.len())
    };
    buffer.truncate(sealed.unwrap());
    buffer
}

/// A trace in memory.
#[derive(Debug, Default)]
struct Memory(Mutex<Vec<u8>>);

impl TraceSink for Memory {
    fn append(&self, bytes: Vec<u8>) -> Option<Vec<u8>> {
        self.0.lock().unwrap().extend(bytes);
        Some(Vec::new())
    }

    fn name(&self) -> &str {
        "memory"
    }
}

#[test]
fn srtp_and_plain_rtp_are_relayed_to_each_other() {
    for suite in Suite::ALL {
        let relay = start();
        let (mut caller, mut callee) = (Secure::new(1, suite), Phone::new(2));
        let (one, other) = call(&relay, 7, &caller.phone, &callee);
        caller.secure(&relay, one);
        for _ in 0..100 {
            let packet = caller.send(one.rtp);
            assert_eq!(callee.receive(), (packet, other.rtp), "{suite:?}");
            let packet = callee.send(other.rtp);
            assert_eq!(caller.receive(), (packet, one.rtp), "{suite:?}");
        }
        let report = receiver_report(1);
        let sealed = seal(&mut caller.sender, &report, true);
        caller.phone.rtcp.send_to(&sealed, one.rtcp).unwrap();
        assert_eq!(receive(&callee.rtcp).0, report);
        let report = receiver_report(2);
        callee.rtcp.send_to(&report, other.rtcp).unwrap();
        assert_eq!(caller.receive_rtcp(), report);
        for port in [one, other] {
            let report = close(&relay, port.id);
            assert_eq!((report.figures.received, report.figures.lost, report.counters.rtcp), (100, 0, 1));
            assert_eq!((report.counters.sent, report.counters.srtp_failed), (100, 0));
        }
        assert_eq!(relay.counters().discarded_total(), 0);
    }
}

#[test]
fn srtp_is_relayed_to_srtp_of_another_suite() {
    let relay = start();
    let mut caller = Secure::new(1, Suite::AeadAes256Gcm);
    let mut callee = Secure::new(2, Suite::AesCm128HmacSha1Tag32);
    let (one, other) = call(&relay, 7, &caller.phone, &callee.phone);
    caller.secure(&relay, one);
    callee.secure(&relay, other);
    // The sequence numbers wrap during the loop.
    caller.phone.seq = 65_400;
    for _ in 0..300 {
        let packet = caller.send(one.rtp);
        assert_eq!(callee.receive(), (packet, other.rtp));
        let packet = callee.send(other.rtp);
        assert_eq!(caller.receive(), (packet, one.rtp));
    }
    // A copy is refused, and so is the packet of the other key.
    let (_, sealed) = caller.next();
    for _ in 0..2 {
        caller.phone.rtp.send_to(&sealed, one.rtp).unwrap();
    }
    callee.receive();
    let (_, wrong) = callee.next();
    caller.phone.rtp.send_to(&wrong, one.rtp).unwrap();
    let packet = caller.send(one.rtp);
    assert_eq!(callee.receive().0, packet);
    // The counters are published after the packet is sent; a snapshot comes after them.
    snapshot(&relay, one.id);
    let counters = relay.counters();
    assert_eq!(counters.discarded_for(Reason::Replayed), 1);
    assert_eq!(counters.discarded_for(Reason::Unauthenticated), 1);
    assert_eq!(close(&relay, one.id).counters.srtp_failed, 1);
}

/// Forged packets arrive from the address of SDP and from others, with the next numbers and the right SSRC, before and
/// after the first packet of the party; and the trace contains them too.
#[test]
fn forged_packets_are_counted_and_change_nothing() {
    let relay = start();
    let (mut caller, mut callee) = (Secure::new(1, Suite::AesCm128HmacSha1Tag80), Phone::new(2));
    let memory = Arc::new(Memory::default());
    let one = relay.open(7, V4).unwrap();
    let head = Box::new(TraceHead::default());
    relay.command(one.id, Command::Trace { head, sink: memory.clone() }).unwrap();
    caller.secure(&relay, one);
    // The party announced an address that it does not send from, as behind NAT.
    let nowhere = socket(V4).local_addr().unwrap();
    describe(&relay, one, Description { remote: Some(nowhere), ..description(&caller.phone) });
    relay.command(one.id, Command::Answered).unwrap();
    let other = relay.open(7, V4).unwrap();
    describe(&relay, other, description(&callee));
    bridge(&relay, one, other);
    snapshot(&relay, other.id);
    let stranger = Phone::new(1);
    let mut forger = Outbound::new(&master(Suite::AesCm128HmacSha1Tag80, 77));
    let mut forge = |from: &Phone, count: u16, seq: u16| {
        for number in 0..count {
            let forged = seal(&mut forger, &rtp(false, 0, seq + number, 1), false);
            from.rtp.send_to(&forged, one.rtp).unwrap();
            // Plain RTP is forged too.
            from.rtp.send_to(&rtp(false, 0, seq + number, 1), one.rtp).unwrap();
        }
    };
    forge(&stranger, 40, 100);
    while snapshot(&relay, one.id).counters.srtp_failed < 80 {}
    let report = snapshot(&relay, one.id);
    assert_eq!((report.source, report.latched, report.figures.received), (None, false, 0));
    assert_eq!((report.rejected_source, report.counters.rejected_source), (None, 0));
    // The party itself is accepted after four packets.
    for _ in 0..4 {
        caller.send(one.rtp);
    }
    let first = callee.receive().0;
    assert_eq!(first[12..], [0xd5; 160]);
    forge(&stranger, 40, 200);
    forge(&caller.phone, 40, 300);
    for _ in 0..50 {
        let packet = callee.send(other.rtp);
        assert_eq!(caller.receive(), (packet, one.rtp));
        let packet = caller.send(one.rtp);
        assert_eq!(callee.receive(), (packet, other.rtp), "nothing forged comes between");
    }
    let report = close(&relay, one.id);
    assert_eq!((report.source, report.latched), (Some(caller.phone.addr()), true));
    assert_eq!((report.figures.received, report.figures.lost), (54, 0));
    assert_eq!((report.counters.srtp_failed, report.counters.rejected_source), (240, 0));
    assert_eq!(relay.counters().discarded_for(Reason::Unauthenticated), 240);
    let bytes = memory.0.lock().unwrap().clone();
    let mut replay = Replay::new();
    replay.feed(&bytes).unwrap();
    let replayed = replay.finish(0).unwrap().report;
    assert_eq!(replayed.counters, report.counters);
    assert_eq!(replayed.evidence, report.evidence);
    assert!(report.evidence.measures.iter().any(|measure| measure.name == "srtp_failed"));
}

#[test]
fn a_wrong_key_is_no_inbound_media() {
    let relay = start();
    let (mut caller, mut callee) = (Secure::new(1, Suite::AeadAes128Gcm), Phone::new(2));
    let (one, other) = call(&relay, 7, &caller.phone, &callee);
    caller.secure(&relay, one);
    caller.sender = Outbound::new(&master(Suite::AeadAes128Gcm, 99));
    loop {
        caller.send(one.rtp);
        let packet = callee.send(other.rtp);
        assert_eq!(caller.receive().0, packet, "the other direction has its own key");
        let report = snapshot(&relay, one.id);
        if report.receive_expected_ms >= 500 && report.counters.srtp_failed >= 5 {
            assert_eq!(report.verdict, Some(Verdict::NoInboundMedia));
            assert_eq!(report.counters.received_after_answer, 0);
            return;
        }
    }
}

#[test]
fn a_new_key_takes_over_and_the_same_key_goes_on() {
    let relay = start();
    let (mut caller, mut callee) = (Secure::new(1, Suite::AesCm128HmacSha1Tag80), Phone::new(2));
    let (one, other) = call(&relay, 7, &caller.phone, &callee);
    caller.secure(&relay, one);
    let (_, first) = caller.next();
    caller.phone.rtp.send_to(&first, one.rtp).unwrap();
    callee.receive();
    // A re-INVITE repeats the keys: the first packet is still recognised as a repetition.
    caller.secure(&relay, one);
    caller.phone.rtp.send_to(&first, one.rtp).unwrap();
    let packet = caller.send(one.rtp);
    assert_eq!(callee.receive().0, packet);
    snapshot(&relay, one.id);
    assert_eq!(relay.counters().discarded_for(Reason::Replayed), 1);
    // A re-INVITE brings new keys: packets of the old one may still be under way.
    let (old, late) = caller.next();
    let fresh = keys(Suite::AeadAes128Gcm, 5);
    relay.command(one.id, Command::Secure(Some(Box::new(Protection::Sdes(fresh.clone()))))).unwrap();
    snapshot(&relay, one.id);
    caller.phone.rtp.send_to(&late, one.rtp).unwrap();
    assert_eq!(callee.receive().0, old);
    (caller.sender, caller.receiver) = (Outbound::new(&fresh.receive), Inbound::new(&fresh.send));
    for _ in 0..10 {
        let packet = caller.send(one.rtp);
        assert_eq!(callee.receive().0, packet);
        let packet = callee.send(other.rtp);
        assert_eq!(caller.receive().0, packet);
    }
    // A re-INVITE ends SRTP.
    relay.command(one.id, Command::Secure(None)).unwrap();
    snapshot(&relay, one.id);
    let packet = caller.phone.send(one.rtp);
    assert_eq!(callee.receive().0, packet);
    let packet = callee.send(other.rtp);
    assert_eq!(caller.phone.receive().0, packet);
    assert_eq!(close(&relay, one.id).counters.srtp_failed, 0);
}

/// Packets from a mix are protected, and so are our own RTCP reports; packets to the mix were authenticated.
#[test]
fn a_leg_in_a_mix_has_srtp_in_both_directions() {
    let relay = start();
    let mut secure = Secure::new(1, Suite::AesCm128HmacSha1Tag80);
    let plain = Phone::new(2);
    let ports = [&secure.phone, &plain].map(|phone| {
        let port = relay.open(1, V4).unwrap();
        if phone.ssrc == 1 {
            secure.secure(&relay, port);
        }
        describe(&relay, port, description(phone));
        relay.command(port.id, Command::Answered).unwrap();
        let seat = pcmu_seat(u64::from(phone.ssrc));
        relay.command(port.id, Command::Join { mix: MixId(3), seat }).unwrap();
        port
    });
    let mut forger = Outbound::new(&master(Suite::AesCm128HmacSha1Tag80, 9));
    let mut heard = 0;
    // The secure party talks loudly; a forger on its address, with its SSRC, is not heard.
    for turn in 0.. {
        assert!(turn < 1_500, "what the secure party says is not heard");
        let mut packet = secure.phone.packet(false, 0);
        packet[12..].fill(if turn % 2 == 0 { 0x80 } else { 0x00 });
        let sealed = seal(&mut secure.sender, &packet, false);
        secure.phone.rtp.send_to(&sealed, ports[0].rtp).unwrap();
        let forged = seal(&mut forger, &packet, false);
        secure.phone.rtp.send_to(&forged, ports[0].rtp).unwrap();
        let (packet, _) = secure.receive();
        assert_eq!(packet.len(), 172);
        let loud = plain.receive().0[12..].iter().filter(|byte| **byte & 0x7f < 0x20).count();
        heard += usize::from(loud > 100);
        if heard >= 10 {
            break;
        }
    }
    let (mut report, _) = receive(&secure.phone.rtcp);
    assert_eq!(report[1], 200, "a sender report");
    assert_ne!(secure.receiver.unprotect_rtcp(&mut report.clone()), Err(SrtpError::Tag));
    let len = Inbound::new(&secure.keys.send).unprotect_rtcp(&mut report).unwrap();
    assert_eq!(report[len - 20..len - 18], [1, 16], "the item of the canonical name");
    assert_eq!(close(&relay, ports[0].id).figures.lost, 0);
    assert!(relay.counters().discarded_total() >= 10, "forged packets with numbers that came");
}

/// A codec that the other party does not know: decoded packets were authenticated, generated packets are protected.
#[test]
fn transcoded_legs_have_srtp() {
    use sidetone_media::codec::Codec;
    use sidetone_media::transcode::TranscodePlan;

    let relay = start();
    let mut caller = Secure::new(1, Suite::AeadAes128Gcm);
    let mut callee = Secure::new(2, Suite::AesCm128HmacSha1Tag80);
    let (one, other) = call(&relay, 7, &caller.phone, &callee.phone);
    caller.secure(&relay, one);
    callee.secure(&relay, other);
    let mut map = Box::new(std::array::from_fn(|number| number as u8));
    map[0] = 0xff;
    relay.command(one.id, Command::Bridge { peer: other.id, payload_map: Some(map) }).unwrap();
    let plan = TranscodePlan {
        audio: vec![(0, Codec::Pcmu)],
        noise: Vec::new(),
        events: None,
        send: (8, Codec::Pcma),
        ptime_ms: 20,
    };
    relay.command(one.id, Command::Transcode { plan: Some(Box::new(plan)), seed: 9 }).unwrap();
    snapshot(&relay, one.id);
    caller.send(one.rtp);
    for _ in 0..10 {
        caller.send(one.rtp);
        let (packet, source) = callee.receive();
        assert_eq!((packet[1] & 0x7f, packet.len(), source), (8, 172, other.rtp));
    }
    assert_eq!(relay.counters().discarded_total(), 0);
}
