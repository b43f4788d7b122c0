//! Packets that are relayed, rewritten and measured, and the beep.

use sidetone_media::net::Command;

use super::{
    Phone, V4, bridge, call, close, describe, description, receive, receiver_report, snapshot, start,
    start_with,
};

#[test]
fn both_directions_and_both_protocols_are_relayed_and_counted() {
    let relay = start();
    let (mut caller, mut callee) = (Phone::new(0xaaaa), Phone::new(0xbbbb));
    let (one, other) = call(&relay, 7, &caller, &callee);
    assert_eq!((one.rtp.port() % 2, one.rtcp.port()), (0, one.rtp.port() + 1));
    for _ in 0..200 {
        let packet = caller.send(one.rtp);
        assert_eq!(callee.receive(), (packet, other.rtp));
        let packet = callee.send(other.rtp);
        assert_eq!(caller.receive(), (packet, one.rtp));
    }
    for _ in 0..3 {
        let report = receiver_report(0xaaaa);
        caller.rtcp.send_to(&report, one.rtcp).unwrap();
        assert_eq!(receive(&callee.rtcp), (report, other.rtcp));
        let report = receiver_report(0xbbbb);
        callee.rtcp.send_to(&report, other.rtcp).unwrap();
        assert_eq!(receive(&caller.rtcp), (report, one.rtcp));
    }
    for port in [one, other] {
        let report = close(&relay, port.id);
        assert_eq!(report.figures.received, 200);
        assert_eq!((report.figures.expected, report.figures.lost), (200, 0));
        assert_eq!((report.counters.sent, report.counters.rtcp), (200, 3));
    }
    let counters = relay.counters();
    assert_eq!((counters.received, counters.relayed), (406, 406));
    assert_eq!(counters.received_bytes, counters.relayed_bytes);
    assert!(counters.received_bytes > 400 * 12, "{}", counters.received_bytes);
    assert_eq!(
        (counters.unstamped, counters.send_errors, counters.local_drops, counters.panics),
        (0, 0, 0, 0)
    );
    assert_eq!(counters.discarded_total(), 0);
}

/// A packet that arrives alone costs one wait, one read and one send; at a high rate also a pause before the wait, in
/// which others may arrive. The waits of the sweeps, ten a second, are additional.
#[test]
fn a_packet_that_comes_alone_costs_four_system_calls_at_most() {
    let relay = start_with(1);
    let (mut caller, mut callee) = (Phone::new(1), Phone::new(2));
    let (one, other) = call(&relay, 0, &caller, &callee);
    snapshot(&relay, other.id);
    #[expect(clippy::disallowed_methods, reason = "a test measures")]
    let begun = std::time::Instant::now();
    let before = relay.counters();
    for _ in 0..500 {
        caller.send(one.rtp);
        callee.receive();
        callee.send(other.rtp);
        caller.receive();
    }
    // Its command costs a wait, and a read of each socket.
    snapshot(&relay, other.id);
    let after = relay.counters();
    assert_eq!(after.relayed - before.relayed, 1_000);
    let sweeps = begun.elapsed().as_millis() / 100 + 1;
    let calls = u128::from(after.system_calls - before.system_calls);
    assert!(calls <= 4 * 1_000 + 2 * sweeps + 4, "{calls} system calls, {sweeps} sweeps");
    assert!(calls > 2 * 1_000, "{calls} system calls: something is not counted");
}

#[test]
fn without_a_bridge_packets_are_measured_and_stay_here() {
    let relay = start();
    let (mut caller, callee) = (Phone::new(1), Phone::new(2));
    let one = relay.open(1, V4).unwrap();
    let other = relay.open(1, V4).unwrap();
    describe(&relay, one, description(&caller));
    describe(&relay, other, description(&callee));
    for _ in 0..30 {
        caller.send(one.rtp);
    }
    while snapshot(&relay, one.id).figures.received < 30 {}
    bridge(&relay, one, other);
    snapshot(&relay, other.id);
    let packet = caller.send(one.rtp);
    assert_eq!(
        callee.receive().0,
        packet,
        "the first packet after the bridge is the first that came through"
    );
    relay.command(one.id, Command::Unbridge).unwrap();
    snapshot(&relay, one.id);
    caller.send(one.rtp);
    while snapshot(&relay, one.id).figures.received < 32 {}
    bridge(&relay, one, other);
    snapshot(&relay, other.id);
    let packet = caller.send(one.rtp);
    assert_eq!(callee.receive().0, packet);
    assert_eq!(close(&relay, one.id).figures.received, 33);
    assert_eq!(close(&relay, other.id).counters.sent, 2);
    assert_eq!(relay.counters().held, 31);
}

#[test]
fn packets_that_overtake_the_description_are_measured_with_it() {
    let relay = start();
    let (mut caller, callee) = (Phone::new(1), Phone::new(2));
    let one = relay.open(1, V4).unwrap();
    let other = relay.open(1, V4).unwrap();
    bridge(&relay, one, other);
    describe(&relay, other, description(&callee));
    let mut packets: Vec<Vec<u8>> = (0..10).map(|_| caller.send(one.rtp)).collect();
    assert_eq!(
        snapshot(&relay, one.id).counters.datagrams,
        0,
        "nothing is read before it is known what it is"
    );
    describe(&relay, one, description(&caller));
    packets.push(caller.send(one.rtp));
    for packet in packets {
        let (received, source) = callee.receive();
        assert_eq!(source, other.rtp);
        assert_eq!(received, packet);
    }
    let report = close(&relay, one.id);
    assert_eq!((report.figures.received, report.figures.lost), (11, 0));
}

#[test]
fn payload_types_are_rewritten_to_what_the_other_side_negotiated() {
    let relay = start();
    let (mut caller, callee) = (Phone::new(1), Phone::new(2));
    let (one, other) = call(&relay, 3, &caller, &callee);
    let mut map = Box::new([0xff; 128]);
    map[0] = 0;
    map[101] = 96;
    relay.command(one.id, Command::Bridge { peer: other.id, payload_map: Some(map) }).unwrap();
    snapshot(&relay, one.id);
    for (payload_type, marker, expected) in
        [(0, true, 0x80), (101, false, 96), (101, true, 0x80 | 96), (0, false, 0)]
    {
        let mut packet = caller.packet(marker, payload_type);
        caller.rtp.send_to(&packet, one.rtp).unwrap();
        packet[1] = expected;
        assert_eq!(callee.receive().0, packet, "{payload_type}");
    }
    // The caller may send 96, but the callee has no number for it.
    let unknown = caller.packet(false, 96);
    caller.rtp.send_to(&unknown, one.rtp).unwrap();
    let packet = caller.send(one.rtp);
    assert_eq!(callee.receive().0, packet);
    assert_eq!(close(&relay, one.id).figures.received, 6);
    assert_eq!(relay.counters().unmapped, 1);
}

/// The caller hears a beep of 600 ms in the callee's packets, whose numbers and figures do not change.
#[test]
fn a_tone_is_heard_in_what_is_relayed_and_measured_by_nobody() {
    let relay = start();
    let (mut caller, mut callee) = (Phone::new(1), Phone::new(2));
    let (one, other) = call(&relay, 3, &caller, &callee);
    relay.command(one.id, Command::Tone).unwrap();
    snapshot(&relay, one.id);
    let mut beeps = 0;
    for _ in 0..40 {
        let sent = callee.send(other.rtp);
        let heard = caller.receive().0;
        assert_eq!(heard[..12], sent[..12]);
        beeps += u32::from(heard != sent);
        // The other direction causes no warning.
        let sent = caller.send(one.rtp);
        assert_eq!(callee.receive().0, sent);
    }
    assert_eq!(beeps, 30);
    let (one, other) = (close(&relay, one.id), close(&relay, other.id));
    assert_eq!((one.figures.received, other.figures.received), (40, 40));
}
