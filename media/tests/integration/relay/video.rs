//! Video on ports of its own: relayed unchanged by the rules for sources of RTP, and counted apart from any audio.

use sidetone_media::net::{Command, Port, Relay};
use sidetone_media::rtp::PayloadKind;
use sidetone_media::session::{Description, StrictSource, VideoCounters};

use super::{Phone, bridge, close, describe, description, payload, receive, snapshot, start};

/// The pictures' payload type, and that of their repairs (RFC 4588).
const PICTURES: u8 = 102;
const REPAIRS: u8 = 103;

fn video(phone: &Phone) -> Description {
    let formats = [(PICTURES, "VP8"), (REPAIRS, "rtx")];
    let payloads = formats.map(|(number, name)| payload(number, PayloadKind::Audio, name)).to_vec();
    Description { video: true, payloads, ..description(phone) }
}

/// A packet of a picture of `bytes` octets; of one picture all have the same timestamp.
fn packet(payload_type: u8, sequence: u16, ssrc: u32, bytes: usize) -> Vec<u8> {
    let mut packet = vec![0x80, payload_type];
    packet.extend(sequence.to_be_bytes());
    packet.extend((u32::from(sequence) / 10 * 3_000).to_be_bytes());
    packet.extend(ssrc.to_be_bytes());
    packet.extend((0..bytes).map(|octet| octet as u8));
    packet
}

/// A request for a complete picture (RFC 4585 §6.3.1), without a report before it (RFC 5506).
fn picture_loss(ssrc: u32) -> Vec<u8> {
    let mut packet = vec![0x81, 206, 0, 2];
    packet.extend(ssrc.to_be_bytes());
    packet.extend(7_u32.to_be_bytes());
    packet
}

/// Two described, bridged and answered ports.
fn shown(relay: &Relay, one: Description, other: Description) -> (Port, Port) {
    let ports = [one, other].map(|description| {
        let port = relay.open(7, description.remote.unwrap().ip()).unwrap();
        describe(relay, port, description);
        relay.command(port.id, Command::Answered).unwrap();
        port
    });
    bridge(relay, ports[0], ports[1]);
    snapshot(relay, ports[1].id);
    (ports[0], ports[1])
}

#[test]
fn video_is_relayed_unchanged_and_is_not_judged() {
    let relay = start();
    let (caller, callee) = (Phone::new(1), Phone::new(2));
    let (one, other) = shown(&relay, video(&caller), video(&callee));
    // Packets 30 and 31 are missing, and the repair packets have numbers of their own.
    for sequence in (0..60).filter(|sequence| !(30..32).contains(sequence)) {
        let sent = packet(PICTURES, sequence, 0xaaaa, 1_200);
        caller.rtp.send_to(&sent, one.rtp).unwrap();
        assert_eq!(callee.receive(), (sent, other.rtp));
        let sent = packet(REPAIRS, 9_000 + sequence, 0xaaab, 40);
        if sequence % 3 == 0 {
            caller.rtp.send_to(&sent, one.rtp).unwrap();
            assert_eq!(callee.receive(), (sent, other.rtp));
        }
    }
    // Neither audio nor another number is part of the session.
    caller.rtp.send_to(&packet(0, 1, 0xaaaa, 160), one.rtp).unwrap();
    let back = packet(PICTURES, 5, 0xbbbb, 300);
    callee.rtp.send_to(&back, other.rtp).unwrap();
    assert_eq!(caller.receive(), (back, one.rtp));
    callee.rtcp.send_to(&picture_loss(2), other.rtcp).unwrap();
    assert_eq!(receive(&caller.rtcp), (picture_loss(2), one.rtcp));
    let report = close(&relay, one.id);
    let repairs = (0..60).filter(|sequence| sequence % 3 == 0 && !(30..32).contains(sequence)).count() as u64;
    let counted = VideoCounters {
        received: 58 + repairs,
        received_bytes: 58 * 1_200 + repairs * 40,
        sent: 1,
        // Of the repairs, whose numbers jump by three, and the two pictures.
        missing: 2 + 57 - (repairs - 1),
    };
    assert_eq!(report.video, Some(counted));
    assert_eq!((report.verdict, report.figures.received, report.counters.payload_type), (None, 0, 1));
    let report = close(&relay, other.id);
    assert_eq!(report.video.map(|video| (video.received, video.sent)), Some((1, 58 + repairs)));
}

#[test]
fn the_ports_may_carry_rtcp_beside_the_pictures() {
    let relay = start();
    let (caller, callee) = (Phone::new(1), Phone::new(2));
    let muxed = Description { rtcp_mux: true, remote_rtcp: None, ..video(&caller) };
    let (one, other) = shown(&relay, muxed, video(&callee));
    let sent = packet(PICTURES, 1, 1, 100);
    caller.rtp.send_to(&sent, one.rtp).unwrap();
    assert_eq!(callee.receive(), (sent, other.rtp));
    caller.rtp.send_to(&picture_loss(1), one.rtp).unwrap();
    assert_eq!(receive(&callee.rtcp), (picture_loss(1), other.rtcp));
    callee.rtcp.send_to(&picture_loss(2), other.rtcp).unwrap();
    assert_eq!(caller.receive(), (picture_loss(2), one.rtp));
}

/// Packets of a stranger are not relayed, and no video is sent to it; the source of a party behind a NAT is learned as
/// with audio.
#[test]
fn video_is_taken_from_its_party_alone() {
    let relay = start();
    let (caller, callee) = (Phone::new(1), Phone::new(2));
    let (moved, stranger) = (Phone::new(3), Phone::new(4));
    let strict = Description { strict_source: Some(StrictSource::Sdp), ..video(&caller) };
    let (one, other) = shown(&relay, strict, video(&callee));
    for sequence in 0..20 {
        stranger.rtp.send_to(&packet(PICTURES, sequence, 4, 100), one.rtp).unwrap();
    }
    let sent = packet(PICTURES, 900, 1, 100);
    caller.rtp.send_to(&sent, one.rtp).unwrap();
    assert_eq!(callee.receive().0, sent, "nothing of the stranger came before");
    for sequence in 0..4 {
        moved.rtp.send_to(&packet(PICTURES, sequence, 3, 100), other.rtp).unwrap();
    }
    assert_eq!(caller.receive().0, packet(PICTURES, 3, 3, 100));
    let sent = packet(PICTURES, 901, 1, 100);
    caller.rtp.send_to(&sent, one.rtp).unwrap();
    assert_eq!(moved.receive().0, sent, "symmetric, as audio");
    let report = close(&relay, one.id);
    assert_eq!(report.video.map(|video| video.received), Some(2));
    assert_eq!(report.counters.rejected_source, 20);
    assert!(close(&relay, other.id).latched);
}

/// A party that holds its video receives none.
#[test]
fn video_on_hold_stays_here() {
    let relay = start();
    let (caller, callee) = (Phone::new(1), Phone::new(2));
    let (one, other) = shown(&relay, video(&caller), video(&callee));
    describe(&relay, other, Description { send: false, ..video(&callee) });
    snapshot(&relay, other.id);
    for sequence in 0..5 {
        caller.rtp.send_to(&packet(PICTURES, sequence, 1, 100), one.rtp).unwrap();
    }
    describe(&relay, one, video(&caller));
    describe(&relay, other, video(&callee));
    snapshot(&relay, other.id);
    let sent = packet(PICTURES, 5, 1, 100);
    caller.rtp.send_to(&sent, one.rtp).unwrap();
    assert_eq!(callee.receive().0, sent, "those of before did not come");
    assert_eq!(close(&relay, one.id).video.map(|video| (video.received, video.missing)), Some((6, 0)));
}
