//! Which messages belong to which call.

use sidetone_media::net::RtcpPacket;
use sidetone_model::media_quality::QualityState;
use sidetone_model::time::Timestamp;
use sidetone_sip::flow::ListenerId;
use tokio::net::UdpSocket;
use tokio::time::timeout;
use uuid::Uuid;

use super::*;
use crate::hep::{HepPassword, HepSettings};
use crate::supervise::Supervisor;

const RECEIVED: SipDirection = SipDirection::Received;
const SENT: SipDirection = SipDirection::Sent;

struct Bench {
    tap: SignallingTap,
    reports: mpsc::Receiver<Report>,
    begin: Instant,
}

impl Bench {
    #[expect(clippy::disallowed_methods, reason = "any instant begins the simulated time")]
    fn new(queue: usize) -> Self {
        let (sender, reports) = mpsc::channel(queue);
        Bench { tap: SignallingTap::new(sender, Arc::default(), false), reports, begin: Instant::now() }
    }

    fn now(&self, seconds: u64) -> Now {
        Now {
            instant: self.begin + Duration::from_secs(seconds),
            wall: Timestamp::from_micros(seconds as i64),
        }
    }

    fn note(&mut self, seconds: u64, direction: SipDirection, start: &str, tags: (&str, &str), cseq: &str) {
        let tag = |tag: &str| if tag.is_empty() { String::new() } else { format!(";tag={tag}") };
        let text = format!(
            "{start}\r\nCall-ID: c1\r\nFrom: <sip:a>{}\r\nTo: <sip:b>{}\r\nCSeq: 1 {cseq}\r\n\r\n",
            tag(tags.0),
            tag(tags.1)
        );
        let flow = Flow::udp(ListenerId(0), ([192, 0, 2, 1], 5060).into());
        let now = self.now(seconds);
        self.tap.note(now, flow, direction, Bytes::from(text));
    }

    /// The reports so far: `call first-word`, `call ended`.
    fn reports(&mut self) -> Vec<String> {
        let mut reports = Vec::new();
        while let Ok(report) = self.reports.try_recv() {
            reports.push(match report {
                Report::Ended(ended) => format!("{} ended", ended.of.call.0.as_u128()),
                Report::Heard(heard) => {
                    let text = String::from_utf8_lossy(&heard.bytes).into_owned();
                    let words = text.lines().next().unwrap().replace("SIP/2.0 ", "");
                    let call = heard.call.map(|of| of.call.0.as_u128()).unwrap();
                    format!("{call} {}", words.split(' ').next().unwrap())
                }
            });
        }
        reports
    }
}

fn call(number: u128) -> CallId {
    CallId(Uuid::from_u128(number))
}

fn owned(number: u128) -> OwnedCall {
    OwnedCall { call: call(number), organisation: OrganisationId(Uuid::nil()) }
}

#[test]
fn every_message_of_a_dialog_belongs_to_its_call_and_no_other() {
    let mut bench = Bench::new(64);
    bench.note(0, RECEIVED, "INVITE sip:b SIP/2.0", ("peer", ""), "INVITE");
    bench.note(0, SENT, "SIP/2.0 401 Unauthorized", ("peer", "x"), "INVITE");
    bench.note(0, RECEIVED, "ACK sip:b SIP/2.0", ("peer", "x"), "ACK");
    assert_eq!(bench.reports(), [""; 0], "there is no call yet");
    bench.tap.learn(owned(1), "c1", "ours", Some("peer"));
    assert_eq!(bench.reports(), ["1 INVITE", "1 401", "1 ACK"], "the challenge belongs to the call");
    bench.note(1, RECEIVED, "INVITE sip:b SIP/2.0", ("peer", ""), "INVITE");
    bench.note(1, SENT, "SIP/2.0 100 Trying", ("peer", ""), "INVITE");
    bench.note(1, SENT, "SIP/2.0 200 OK", ("peer", "ours"), "INVITE");
    bench.note(1, RECEIVED, "ACK sip:b SIP/2.0", ("peer", "ours"), "ACK");
    bench.note(2, SENT, "BYE sip:a SIP/2.0", ("ours", "peer"), "BYE");
    bench.note(2, RECEIVED, "SIP/2.0 200 OK", ("ours", "peer"), "BYE");
    assert_eq!(bench.reports(), ["1 INVITE", "1 100", "1 200", "1 ACK", "1 BYE", "1 200"]);
    // Another sender has discovered the Call-ID.
    bench.note(3, RECEIVED, "INVITE sip:b SIP/2.0", ("evil", ""), "INVITE");
    bench.note(3, RECEIVED, "BYE sip:b SIP/2.0", ("evil", "guessed"), "BYE");
    bench.note(3, RECEIVED, "SIP/2.0 200 OK", ("guessed", "evil"), "BYE");
    assert_eq!(bench.reports(), [""; 0]);
    bench.tap.learn(owned(2), "c1", "ours2", Some("evil"));
    bench.note(3, SENT, "SIP/2.0 200 OK", ("evil", "ours2"), "INVITE");
    bench.note(3, SENT, "SIP/2.0 200 OK", ("peer", "ours"), "INVITE");
    assert_eq!(bench.reports(), ["2 INVITE", "2 200", "1 200"]);
}

#[test]
fn a_forked_invite_that_fits_two_calls_belongs_to_neither() {
    let mut bench = Bench::new(64);
    bench.tap.learn(owned(1), "c1", "ours1", Some("peer"));
    bench.tap.learn(owned(2), "c1", "ours2", Some("peer"));
    bench.note(0, RECEIVED, "CANCEL sip:b SIP/2.0", ("peer", ""), "CANCEL");
    bench.note(0, SENT, "SIP/2.0 487 Request Terminated", ("peer", "ours2"), "INVITE");
    assert_eq!(bench.reports(), ["2 487"]);
}

#[test]
fn branches_of_our_invites_belong_to_the_call() {
    let mut bench = Bench::new(64);
    bench.tap.learn(owned(1), "c1", "ours", None);
    bench.note(0, SENT, "INVITE sip:b SIP/2.0", ("ours", ""), "INVITE");
    for (start, tag) in
        [("SIP/2.0 100 Trying", ""), ("SIP/2.0 180 Ringing", "b1"), ("SIP/2.0 486 Busy", "b2")]
    {
        bench.note(0, RECEIVED, start, ("ours", tag), "INVITE");
    }
    bench.note(1, RECEIVED, "BYE sip:a SIP/2.0", ("b1", "ours"), "BYE");
    assert_eq!(bench.reports(), ["1 INVITE", "1 100", "1 180", "1 486", "1 BYE"]);
}

#[test]
fn a_call_that_is_refused_at_once_has_its_messages() {
    let mut bench = Bench::new(64);
    bench.note(0, RECEIVED, "INVITE sip:b SIP/2.0", ("peer", ""), "INVITE");
    bench.tap.ended(bench.now(0), call(3), OrganisationId(Uuid::nil()), None);
    bench.note(0, SENT, "SIP/2.0 404 Not Found", ("peer", "x"), "INVITE");
    bench.note(0, RECEIVED, "ACK sip:b SIP/2.0", ("peer", "x"), "ACK");
    assert_eq!(bench.reports(), ["3 INVITE", "3 ended", "3 404", "3 ACK"]);
}

#[test]
fn an_ended_call_is_forgotten_after_its_last_messages() {
    let mut bench = Bench::new(64);
    bench.tap.learn(owned(1), "c1", "ours", None);
    bench.tap.ended(bench.now(0), call(1), OrganisationId(Uuid::nil()), None);
    bench.note(31, RECEIVED, "SIP/2.0 200 OK", ("ours", "b"), "BYE");
    bench.note(32, RECEIVED, "SIP/2.0 200 OK", ("ours", "b"), "BYE");
    assert_eq!(bench.reports(), ["1 ended", "1 200"]);
    assert!(bench.tap.dialogs.is_empty() && bench.tap.call_ids.is_empty() && bench.tap.ended.is_empty());
}

#[test]
fn a_full_queue_costs_messages_but_no_end() {
    let mut bench = Bench::new(2);
    bench.tap.learn(owned(1), "c1", "ours", None);
    for _ in 0..5 {
        bench.note(0, SENT, "INFO sip:b SIP/2.0", ("ours", "b"), "INFO");
    }
    bench.tap.ended(bench.now(0), call(1), OrganisationId(Uuid::nil()), None);
    assert_eq!(bench.tap.counters.dropped(), 3);
    assert_eq!(bench.reports(), ["1 INFO", "1 INFO"]);
    bench.note(1, RECEIVED, "SIP/2.0 200 OK", ("ours", "b"), "BYE");
    assert_eq!(bench.reports(), ["1 ended", "1 200"]);
}

#[test]
fn many_ends_wait_for_a_full_queue() {
    let mut bench = Bench::new(1);
    bench.tap.exports = true;
    let count = UNSENT_MAX as u128 + 100;
    for number in 1..=count {
        bench.tap.learn(owned(number), &format!("c{number}"), "ours", None);
        let figures =
            CallQuality::of_legs(call(number), QualityState::Final, Timestamp::from_micros(1), Vec::new());
        bench.tap.ended(bench.now(0), call(number), OrganisationId(Uuid::nil()), Some(&figures));
    }
    let (mut ended, mut with_figures) = (Vec::new(), 0);
    while let Ok(Report::Ended(one)) = bench.reports.try_recv() {
        ended.push(one.of.call);
        with_figures += usize::from(one.quality.is_some());
        bench.tap.send_ends();
    }
    assert_eq!(ended, (1..=count).map(call).collect::<Vec<_>>());
    assert_eq!(with_figures, UNSENT_MAX + 1, "one is in the queue");
}

#[test]
fn an_organisation_with_many_legs_leaves_room_to_the_others() {
    let mut bench = Bench::new(64);
    let mut of = owned(1);
    for number in 0..LEGS_IN_ALL_MAX as u128 {
        of.call = call(number);
        bench.tap.learn(of, &format!("c{number}"), "ours", None);
    }
    assert_eq!(bench.tap.dialogs.len(), LEGS_IN_ALL_MAX / 4 * 3);
    let other = OwnedCall { call: call(1 << 80), organisation: OrganisationId(Uuid::from_u128(2)) };
    bench.tap.learn(other, "other", "ours", None);
    assert!(bench.tap.dialogs.contains_key("other".as_bytes()));
    bench.tap.ended(bench.now(0), call(7), of.organisation, None);
    bench.note(32, RECEIVED, "OPTIONS sip:b SIP/2.0", ("peer", ""), "OPTIONS");
    bench.tap.learn(of, "new", "ours", None);
    assert!(bench.tap.dialogs.contains_key("new".as_bytes()), "an ended call makes room");
}

#[test]
fn messages_of_no_call_take_half_of_the_queue() {
    let mut bench = Bench::new(8);
    bench.tap.exports = true;
    bench.tap.learn(owned(1), "c1", "ours", None);
    for _ in 0..10 {
        bench.note(0, RECEIVED, "OPTIONS sip:b SIP/2.0", ("peer", ""), "OPTIONS");
    }
    for _ in 0..5 {
        bench.note(0, SENT, "INFO sip:b SIP/2.0", ("ours", "b"), "INFO");
    }
    let mut calls = Vec::new();
    while let Ok(Report::Heard(one)) = bench.reports.try_recv() {
        calls.push(one.call.is_some());
    }
    assert_eq!(calls, [false, false, false, false, true, true, true, true]);
    assert_eq!(bench.tap.counters.dropped(), 7);
}

#[test]
fn an_export_gets_what_belongs_to_no_call_and_a_challenge_only_once() {
    let mut bench = Bench::new(64);
    bench.tap.exports = true;
    bench.note(0, RECEIVED, "OPTIONS sip:b SIP/2.0", ("peer", ""), "OPTIONS");
    bench.note(0, RECEIVED, "INVITE sip:b SIP/2.0", ("peer", ""), "INVITE");
    bench.tap.learn(owned(1), "c1", "ours", Some("peer"));
    let mut heard = Vec::new();
    while let Ok(Report::Heard(one)) = bench.reports.try_recv() {
        heard.push((one.call, one.is_repeated));
    }
    assert_eq!(heard, [(None, false), (None, false), (Some(owned(1)), true)]);
}

#[tokio::test]
async fn rtcp_is_exported_under_the_call_id_of_the_first_leg_while_the_call_is_known() {
    let mut bench = Bench::new(64);
    bench.tap.learn(owned(1), "c1", "ours", Some("peer"));
    assert!(bench.tap.rtcp_of(call(1)).is_none(), "without an export nothing is copied");
    let homer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let server = homer.local_addr().unwrap().to_string();
    let password = HepPassword::default();
    let settings = HepSettings { is_udp: true, server, capture_id: 1, password };
    let (hep, _task) = HepSender::start(settings, &Supervisor::default());
    bench.tap.hep = Some(hep);
    let party = ([192, 0, 2, 1], 4_001).into();
    let packet = RtcpPacket { wall_us: 1, source: party, destination: party, bytes: b"report" };
    // The second call has its port before its INVITE; the third ends without a leg.
    let sinks = [1, 2, 3].map(|number| bench.tap.rtcp_of(call(number)).unwrap());
    bench.tap.learn(owned(2), "c2", "ours", None);
    bench.tap.learn(owned(2), "c3", "ours2", None);
    for (sink, call_id) in sinks.iter().zip(["c1", "c2"]) {
        sink.take(&packet);
        let mut buffer = [0; 2_048];
        let received = timeout(Duration::from_secs(30), homer.recv(&mut buffer)).await;
        let text = String::from_utf8_lossy(&buffer[..received.unwrap().unwrap()]).into_owned();
        assert!(text.contains("report") && text.contains(call_id), "{text:?}");
    }
    for number in [1, 2, 3] {
        bench.tap.ended(bench.now(0), call(number), OrganisationId(Uuid::nil()), None);
    }
    bench.note(32, RECEIVED, "SIP/2.0 200 OK", ("ours", "b"), "BYE");
    assert!(bench.tap.rtcp.is_empty(), "ended calls are forgotten");
}
