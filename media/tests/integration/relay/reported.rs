//! The RTCP figures of a relayed call, live, and the same from a replay of its datagrams.

use std::net::SocketAddr;

use sidetone_media::rtcp::{Block, REPORT_BYTES_MAX, ReportWriter, RtcpView, SenderInfo};
use sidetone_media::session::{Input, Session, SessionConfig};
use sidetone_media::time::Micros;

use super::{Phone, call, close, description, receive, start};

const CNAME: [u8; 16] = *b"00112233445566ff";

fn report(sender: SenderInfo, block: Option<Block>) -> Vec<u8> {
    let mut buffer = [0; REPORT_BYTES_MAX];
    let writer = ReportWriter {
        ssrc: sender.ssrc,
        sender: Some(sender),
        block: block.as_ref(),
        extended: sidetone_media::rtcp::ExtendedContent::default(),
        cname: &CNAME,
        leaves: false,
    };
    writer.write(&mut buffer).to_vec()
}

/// The callee's report, and the caller's report that answers it.
fn reports(caller: &Phone, callee: &Phone) -> [Vec<u8>; 2] {
    let theirs =
        SenderInfo { ssrc: callee.ssrc, ntp: 0x0001_0203_0405_0000, packets: 50, ..SenderInfo::default() };
    let own = SenderInfo { ssrc: caller.ssrc, packets: 60, octets: 9_600, ..SenderInfo::default() };
    let block = Block {
        ssrc: callee.ssrc,
        fraction_lost: 25,
        cumulative_lost: 5,
        highest: 149,
        jitter_ticks: 16,
        last_report: 0x0203_0405,
        delay: 0,
    };
    [report(theirs, None), report(own, Some(block))]
}

/// The view without the round trip, which depends on the machine.
fn timeless(view: &RtcpView) -> RtcpView {
    RtcpView { round_trip: None, ..view.clone() }
}

/// The caller's leg replayed from its datagrams.
fn replayed(caller: &mut Phone, source: (SocketAddr, SocketAddr), reports: &[Vec<u8>; 2]) -> RtcpView {
    let mut session = Session::new(SessionConfig::default());
    session.describe(Micros(0), description(caller));
    session.answer(Micros(0));
    for n in 0..60 {
        let datagram = caller.packet(false, 0);
        session.receive(Micros(n * 1_000), source.0, &datagram);
    }
    session.handle_input(Micros(60_000), Input::Sends { ssrc: 0xbbbb });
    session.sent(Micros(60_000), 50, source.0);
    session.handle_input(Micros(60_000), Input::SentRtcp { datagram: &reports[0] });
    session.receive_rtcp(Micros(90_000), source.1, &reports[1]);
    session.close(Micros(100_000)).rtcp
}

#[test]
fn a_relayed_call_knows_what_its_parties_reported() {
    let relay = start();
    let (mut caller, mut callee) = (Phone::new(0xaaaa), Phone::new(0xbbbb));
    let (one, other) = call(&relay, 9, &caller, &callee);
    for _ in 0..60 {
        caller.send(one.rtp);
        callee.receive();
    }
    for _ in 0..50 {
        callee.send(other.rtp);
        caller.receive();
    }
    let reports = reports(&caller, &callee);
    callee.rtcp.send_to(&reports[0], other.rtcp).unwrap();
    assert_eq!(receive(&caller.rtcp).0, reports[0], "as it is");
    caller.rtcp.send_to(&reports[1], one.rtcp).unwrap();
    assert_eq!(receive(&callee.rtcp).0, reports[1], "as it is");

    let view = close(&relay, one.id).rtcp;
    let round_trip = view.round_trip.expect("the caller answered a report that went to it");
    assert_eq!(round_trip.samples, 1);
    assert!((0..3_000_000).contains(&round_trip.last_ms.0), "{round_trip:?}");
    let far_end = view.far_end.as_ref().unwrap();
    assert_eq!((far_end.lost, far_end.loss_pct.map(|pct| pct.0)), (Some(5), Some(1000)));
    assert_eq!((far_end.jitter_ms.map(|ms| ms.0), far_end.highest_sequence_moves), (Some(200), true));
    let sent = view.sent_by_party.unwrap();
    assert_eq!((sent.packets, sent.octets, sent.missing, sent.tail_missing), (60, 9_600, 0, 0));

    let addresses = (caller.addr(), caller.rtcp.local_addr().unwrap());
    caller.seq = 100;
    assert_eq!(timeless(&replayed(&mut caller, addresses, &reports)), timeless(&view));

    let view = close(&relay, other.id).rtcp;
    assert_eq!(
        (view.datagrams, view.far_end, view.round_trip),
        (1, None, None),
        "the callee heard no report"
    );
    assert_eq!(view.sent_by_party.map(|sent| (sent.packets, sent.missing)), Some((50, 0)));
}

#[test]
fn abusive_rtcp_changes_nothing_but_counts() {
    let relay = start();
    let (mut caller, callee) = (Phone::new(0xaaaa), Phone::new(0xbbbb));
    let (one, other) = call(&relay, 10, &caller, &callee);
    for _ in 0..20 {
        caller.send(one.rtp);
        callee.receive();
    }
    let wild =
        SenderInfo { ssrc: 0xaaaa, ntp: u64::MAX, timestamp: u32::MAX, packets: u32::MAX, octets: u32::MAX };
    let absurd = Block {
        ssrc: 0xbbbb,
        fraction_lost: 255,
        cumulative_lost: 0x007f_ffff,
        highest: 958,
        jitter_ticks: u32::MAX,
        last_report: 7,
        delay: u32::MAX,
    };
    let goodbye = [0x81, 203, 0, 1, 0, 0, 0xbb, 0xbb];
    let mut bomb = vec![0x80, 207, 0, 201, 0, 0, 0xaa, 0xaa];
    bomb.extend([99, 0, 0, 0].repeat(200));
    let encrypted =
        [&[0x80, 200, 0, 6, 0, 0, 0xaa, 0xaa][..], &[0xee; 44], &[0x80, 0, 0, 1], &[7; 10]].concat();
    let datagrams = [
        report(wild, Some(absurd)),
        goodbye.to_vec(),
        bomb,
        encrypted,
        vec![0x80, 201, 0, 1, 0, 0, 0xaa, 0xaa, 9, 9, 9, 9, 9],
    ];
    let stranger = Phone::new(0xcccc);
    for datagram in &datagrams {
        caller.rtcp.send_to(datagram, one.rtcp).unwrap();
        receive(&callee.rtcp);
        // From the same host: only the address of a party behind NAT is known.
        stranger.rtp.send_to(datagram, one.rtp).unwrap();
    }
    let report = close(&relay, one.id);
    assert_eq!((report.figures.lost, report.figures.received), (0, 20));
    let view = report.rtcp;
    assert_eq!((view.datagrams, view.encrypted, view.unreadable), (3, 1, 1));
    assert!(!view.goodbye && view.far_end.is_none() && view.round_trip.is_none(), "{view:?}");
    close(&relay, other.id);
}

/// The SSRC and the packet types of a compound datagram.
fn packets(datagram: &[u8]) -> (u32, Vec<u8>) {
    let (mut types, mut at) = (Vec::new(), 0);
    while at + 8 <= datagram.len() {
        types.push(datagram[at + 1]);
        at += 4 * (usize::from(u16::from_be_bytes([datagram[at + 2], datagram[at + 3]])) + 1);
    }
    (u32::from_be_bytes(datagram[4..8].try_into().unwrap()), types)
}

/// The peer sends no RTCP: the party receives our receiver reports about its stream, and a BYE when the peer's reports
/// arrive.
#[test]
fn a_party_whose_peer_reports_nothing_gets_our_reports() {
    let relay = start();
    let (mut caller, mut callee) = (Phone::new(0xaaaa), Phone::new(0xbbbb));
    let (one, other) = call(&relay, 11, &caller, &callee);
    for _ in 0..50 {
        caller.send(one.rtp);
        callee.receive();
    }
    callee.send(other.rtp);
    caller.receive();
    let (report, from) = receive(&caller.rtcp);
    let (ours, types) = packets(&report);
    assert_eq!((from, types), (one.rtcp, vec![201, 202]));
    assert!(ours != callee.ssrc && ours != caller.ssrc, "{ours:x}");
    assert_eq!(u32::from_be_bytes(report[8..12].try_into().unwrap()), caller.ssrc, "about its stream");

    let [theirs, _] = reports(&caller, &callee);
    callee.rtcp.send_to(&theirs, other.rtcp).unwrap();
    let mut got = Vec::new();
    while got.len() < 2 {
        let (datagram, _) = receive(&caller.rtcp);
        // Another report of ours may have been under way.
        if packets(&datagram) != (ours, vec![201, 202]) {
            got.push(datagram);
        }
    }
    assert_eq!((&got[0], packets(&got[1])), (&theirs, (ours, vec![201, 202, 203])));
    assert_eq!(packets(&receive(&callee.rtcp).0).1, [201, 202]);
    let _ = close(&relay, one.id);
    // The callee also receives our reports, until its leg is closed.
    let _ = close(&relay, other.id);
    let mut last = Vec::new();
    while !last.contains(&203) {
        last = packets(&receive(&callee.rtcp).0).1;
    }
}
