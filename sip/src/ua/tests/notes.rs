//! Ladder tests of INFO inside a call, MESSAGE outside one, and peers that support neither.

use expect_test::expect;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::flow::{Flow, ListenerId};
use crate::message::Host;
use crate::transaction::ladder::start;
use crate::transaction::{LayerConfig, Local};
use crate::ua::ladder::check;
use crate::ua::{Content, Draft, Output, Ua, UaConfig};

#[test]
fn an_info_in_the_call_and_its_acknowledgement() {
    check(
        "0 a invite
         100 b respond 200
         1000 a info
         1020 b respond 200
         5000 b info
         5020 a respond 200
         6000 a hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            1000ms    a info
            1000ms      a>b INFO 2 +note
            1010ms      b: INFO request of the leg
            1020ms    b respond 200
            1020ms      b>a 200 (2 INFO)
            1030ms      a: InfoAnswered 200
            5000ms    b info
            5000ms      b>a INFO 1 +note
            5010ms      a: INFO request of the leg
            5020ms    a respond 200
            5020ms      a>b 200 (1 INFO)
            5030ms      b: InfoAnswered 200
            6000ms    a hangup
            6000ms      a: Ended: HungUp
            6000ms      a>b BYE 3
            6010ms      b: Ended by BYE
            6010ms      b>a 200 (3 BYE)
        "#]],
    );
}

/// RFC 5057 would end the dialog, or its usage, for the first two; this is deliberately not done.
#[test]
fn an_info_that_is_refused_costs_no_call() {
    check(
        "0 a invite
         100 b respond 200
         1000 a info
         1020 b respond 481
         2000 a info
         2020 b respond 408
         3000 a info
         3020 b respond 405
         4000 a info
         4020 b respond 501
         5000 a hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            1000ms    a info
            1000ms      a>b INFO 2 +note
            1010ms      b: INFO request of the leg
            1020ms    b respond 481
            1020ms      b>a 481 (2 INFO)
            1030ms      a: InfoAnswered 481
            2000ms    a info
            2000ms      a>b INFO 3 +note
            2010ms      b: INFO request of the leg
            2020ms    b respond 408
            2020ms      b>a 408 (3 INFO)
            2030ms      a: InfoAnswered 408
            3000ms    a info
            3000ms      a>b INFO 4 +note
            3010ms      b: INFO request of the leg
            3020ms    b respond 405
            3020ms      b>a 405 (4 INFO)
            3030ms      a: InfoAnswered 405
            4000ms    a info
            4000ms      a>b INFO 5 +note
            4010ms      b: INFO request of the leg
            4020ms    b respond 501
            4020ms      b>a 501 (5 INFO)
            4030ms      a: InfoAnswered 501
            5000ms    a hangup
            5000ms      a: Ended: HungUp
            5000ms      a>b BYE 6
            5010ms      b: Ended by BYE
            5010ms      b>a 200 (6 BYE)
        "#]],
    );
}

#[test]
fn an_info_that_nobody_answers_costs_no_call() {
    check(
        "0 a invite
         100 b respond 200
         1000 a info
         40000 a hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            1000ms    a info
            1000ms      a>b INFO 2 +note
            1010ms      b: INFO request of the leg
            1500ms      a>b INFO 2 +note
            2500ms      a>b INFO 2 +note
            4500ms      a>b INFO 2 +note
            4510ms      b>a 100 (2 INFO)
            8500ms      a>b INFO 2 +note
            8510ms      b>a 100 (2 INFO)
            12500ms     a>b INFO 2 +note
            12510ms     b>a 100 (2 INFO)
            16500ms     a>b INFO 2 +note
            16510ms     b>a 100 (2 INFO)
            20500ms     a>b INFO 2 +note
            20510ms     b>a 100 (2 INFO)
            24500ms     a>b INFO 2 +note
            24510ms     b>a 100 (2 INFO)
            28500ms     a>b INFO 2 +note
            28510ms     b>a 100 (2 INFO)
            32500ms     a>b INFO 2 +note
            32510ms     b>a 100 (2 INFO)
            33000ms     a: InfoAnswered TimedOut
            40000ms   a hangup
            40000ms     a: Ended: HungUp
            40000ms     a>b BYE 3
            40010ms     b: Ended by BYE
            40010ms     b>a 200 (3 BYE)
        "#]],
    );
}

#[test]
fn an_info_is_told_of_after_the_end_of_its_leg() {
    check(
        "0 a invite
         100 b respond 200
         1000 a info
         1005 a hangup
         1100 b respond 200",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            1000ms    a info
            1000ms      a>b INFO 2 +note
            1005ms    a hangup
            1005ms      a: Ended: HungUp
            1005ms      a>b BYE 3
            1010ms      b: INFO request of the leg
            1015ms      b: Ended by BYE
            1015ms      b>a 200 (3 BYE)
            1100ms    b respond 200
            1100ms      b>a 200 (2 INFO)
            1110ms      a: InfoAnswered 200
        "#]],
    );
}

#[test]
fn an_info_that_is_lost_is_sent_again_and_heard_once() {
    check(
        "0 a invite
         100 b respond 200
         1000 lose INFO
         1000 lose 200 (2 INFO)
         1000 a info
         1600 b respond 200
         5000 a hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            1000ms    a info
            1000ms      a>b INFO 2 +note   (lost)
            1500ms      a>b INFO 2 +note
            1510ms      b: INFO request of the leg
            1600ms    b respond 200
            1600ms      b>a 200 (2 INFO)   (lost)
            2500ms      a>b INFO 2 +note
            2510ms      b>a 200 (2 INFO)
            2520ms      a: InfoAnswered 200
            5000ms    a hangup
            5000ms      a: Ended: HungUp
            5000ms      a>b BYE 3
            5010ms      b: Ended by BYE
            5010ms      b>a 200 (3 BYE)
        "#]],
    );
}

#[test]
fn a_message_without_a_call() {
    check(
        "0 a message
         100 b respond 200",
        expect![[r#"
            0ms       a message
            0ms         a>b MESSAGE 1 +note
            10ms        b: MESSAGE request +Route
            100ms     b respond 200
            100ms       b>a 200 (1 MESSAGE)
            110ms       a: MessageAnswered 200
        "#]],
    );
}

#[test]
fn a_message_that_is_challenged_and_sent_again() {
    check(
        "0 a message
         20 b refuse 401
         40 a retry
         100 b respond 200",
        expect![[r#"
            0ms       a message
            0ms         a>b MESSAGE 1 +note
            10ms        b: MESSAGE request +Route
            20ms      b refuse 401
            20ms        b>a 401 (1 MESSAGE)
            30ms        a: MessageAnswered 401
            40ms      a retry
            40ms        a>b MESSAGE 2 +note
            50ms        b: MESSAGE request +Route +Authorization
            100ms     b respond 200
            100ms       b>a 200 (2 MESSAGE)
            110ms       a: MessageAnswered 200
        "#]],
    );
}

#[test]
fn a_message_that_is_refused_or_not_heard() {
    check(
        "0 a message
         20 b respond 415
         1000 a message",
        expect![[r#"
            0ms       a message
            0ms         a>b MESSAGE 1 +note
            10ms        b: MESSAGE request +Route
            20ms      b respond 415
            20ms        b>a 415 (1 MESSAGE)
            30ms        a: MessageAnswered 415
            1000ms    a message
            1000ms      a>b MESSAGE 1 +note
            1010ms      b: MESSAGE request +Route
            1500ms      a>b MESSAGE 1 +note
            2500ms      a>b MESSAGE 1 +note
            4500ms      a>b MESSAGE 1 +note
            4510ms      b>a 100 (1 MESSAGE)
            8500ms      a>b MESSAGE 1 +note
            8510ms      b>a 100 (1 MESSAGE)
            12500ms     a>b MESSAGE 1 +note
            12510ms     b>a 100 (1 MESSAGE)
            16500ms     a>b MESSAGE 1 +note
            16510ms     b>a 100 (1 MESSAGE)
            20500ms     a>b MESSAGE 1 +note
            20510ms     b>a 100 (1 MESSAGE)
            24500ms     a>b MESSAGE 1 +note
            24510ms     b>a 100 (1 MESSAGE)
            28500ms     a>b MESSAGE 1 +note
            28510ms     b>a 100 (1 MESSAGE)
            32500ms     a>b MESSAGE 1 +note
            32510ms     b>a 100 (1 MESSAGE)
            33000ms     a: MessageAnswered TimedOut
        "#]],
    );
}

#[test]
fn an_info_and_a_message_that_cannot_be_sent() {
    check(
        "0 a invite
         100 b respond 200
         1000 lose INFO
         1000 a info
         1000 a unreachable
         2000 a hangup
         3000 lose MESSAGE
         3000 a message
         3000 a unreachable",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            1000ms    a info
            1000ms      a>b INFO 2 +note   (lost)
            1000ms    a unreachable
            1000ms      a: InfoAnswered Unreachable
            2000ms    a hangup
            2000ms      a: Ended: HungUp
            2000ms      a>b BYE 3
            2010ms      b: Ended by BYE
            2010ms      b>a 200 (3 BYE)
            3000ms    a message
            3000ms      a>b MESSAGE 1 +note   (lost)
            3000ms    a unreachable
            3000ms      a: MessageAnswered Unreachable
        "#]],
    );
}

#[test]
fn an_info_outside_of_a_dialog_is_none() {
    check(
        "0 a stranger INFO",
        expect![[r#"
            0ms       a stranger INFO
            10ms        b>a 481 (9 INFO)
        "#]],
    );
}

/// §18.1.1: the limit is 1,300 bytes, and applies only when there is a connection.
#[test]
fn what_is_too_long_for_a_datagram_goes_over_a_connection() {
    let now = start();
    let datagram = Flow::udp(ListenerId(0), "192.0.2.2:5060".parse().unwrap());
    let connection = Flow::tcp_to("192.0.2.2:5060".parse().unwrap());
    let sent = |wide: Option<Flow>, length: usize| {
        let local = Local::fixed(Host::V4([192, 0, 2, 1].into()), None);
        let mut ua = Ua::new(UaConfig::new(LayerConfig::new(local)), StdRng::seed_from_u64(1));
        let content = Content::new("application/json", "x".repeat(length));
        let draft = Draft::message("sip:b@192.0.2.2", "<sip:events@h>", "<sip:b@h>", content);
        ua.request(now, datagram, draft.wide(wide)).unwrap();
        match ua.poll_output() {
            Some(Output::Transmit { flow, bytes, .. }) => (flow, bytes.len()),
            other => panic!("{other:?}"),
        }
    };
    for length in 0..1_500 {
        let (flow, bytes_len) = sent(Some(connection), length);
        assert!(flow == connection || bytes_len <= 1_300, "{length}: {bytes_len}");
        assert!(flow == datagram || bytes_len > 1_150, "{length}: {bytes_len}");
    }
    assert_eq!(sent(None, 4_000).0, datagram, "most pieces arrive");
}
