//! Ladder tests of session timers (RFC 4028): each role, failed refreshes, and messages that cross.

use expect_test::expect;

use crate::ua::ladder::check;

#[test]
fn who_answered_refreshes_unless_the_caller_names_somebody() {
    check(
        "0 a timer 1800
         0 b timer 600
         0 a invite
         100 b respond 200
         310000 b reinvite
         310050 a respond 200
         400000 a hangup",
        expect![[r#"
            0ms       a timer 1800
            0ms       b timer 600
            0ms       a invite
            0ms         a>b INVITE 1 +sdp x=1800
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE) x=600;refresher=uas
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            300100ms    b: RefreshDue
            305100ms    b: RefreshDue
            310000ms  b reinvite
            310000ms    b>a INVITE 1 +sdp x=600;refresher=uac
            310010ms    a: Reinvited
            310050ms  a respond 200
            310050ms    a>b 200 (1 INVITE) x=600;refresher=uac require=timer
            310060ms    b: 200 response
            310060ms    b>a ACK 1
            310070ms    a: Acked
            400000ms  a hangup
            400000ms    a: Ended: HungUp
            400000ms    a>b BYE 2
            400010ms    b: Ended by BYE
            400010ms    b>a 200 (2 BYE)
        "#]],
    );
}

#[test]
fn a_peer_that_takes_updates_is_refreshed_without_the_user() {
    check(
        "0 a timer 90
         0 b timer 90
         0 a updates
         100 b respond 200
         100000 a hangup",
        expect![[r#"
            0ms       a timer 90
            0ms       b timer 90
            0ms       a updates
            0ms         a>b INVITE 1 +sdp x=90
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE) x=90;refresher=uas
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            45100ms     b>a UPDATE 1 x=90;refresher=uac
            45110ms     a>b 200 (1 UPDATE) x=90;refresher=uac require=timer
            90120ms     b>a UPDATE 2 x=90;refresher=uac
            90130ms     a>b 200 (2 UPDATE) x=90;refresher=uac require=timer
            100000ms  a hangup
            100000ms    a: Ended: HungUp
            100000ms    a>b BYE 2
            100010ms    b: Ended by BYE
            100010ms    b>a 200 (2 BYE)
        "#]],
    );
}

/// RFC 4028 §7.4.
#[test]
fn a_422_is_answered_with_a_longer_interval_by_the_same_leg() {
    check(
        "0 a timer 1800
         0 b timer 7200 3600
         0 a invite
         100 b respond 200
         1000 a hangup",
        expect![[r#"
            0ms       a timer 1800
            0ms       b timer 7200 3600
            0ms       a invite
            0ms         a>b INVITE 1 +sdp x=1800
            10ms        b>a 422 (1 INVITE) min-se=3600
            20ms        a>b ACK 1
            20ms        a>b INVITE 2 +sdp x=3600 min-se=3600
            30ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (2 INVITE) x=3600;refresher=uas
            110ms       a: Answered
            110ms       a>b ACK 2
            120ms       b: Acked
            1000ms    a hangup
            1000ms      a: Ended: HungUp
            1000ms      a>b BYE 3
            1010ms      b: Ended by BYE
            1010ms      b>a 200 (3 BYE)
        "#]],
    );
}

#[test]
fn a_422_that_asks_for_nothing_ends_the_call() {
    check(
        "0 a timer 1800
         0 a invite
         100 b respond 422",
        expect![[r#"
            0ms       a timer 1800
            0ms       a invite
            0ms         a>b INVITE 1 +sdp x=1800
            10ms        b: Invited
            100ms     b respond 422
            100ms       b: Ended: HungUp
            100ms       b>a 422 (1 INVITE)
            110ms       a>b ACK 1
            110ms       a: Ended: refused 422
        "#]],
    );
}

#[test]
fn a_session_that_is_not_refreshed_expires() {
    check(
        "0 a timer 90
         0 b timer 90
         0 a invite
         100 b respond 200
         1000 b restart
         62000 a hangup",
        expect![[r#"
            0ms       a timer 90
            0ms       b timer 90
            0ms       a invite
            0ms         a>b INVITE 1 +sdp x=90
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE) x=90;refresher=uas
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            1000ms    b restart
            60110ms     a: Ended: SessionExpired
            60110ms     a>b BYE 2 +Reason
            60120ms     b>a 481 (2 BYE)
            62000ms   a hangup
        "#]],
    );
}

#[test]
fn a_refresh_that_nobody_knows_ends_the_leg() {
    check(
        "0 a timer 90
         0 b timer 90
         0 a invite
         100 b respond 200
         1000 a restart
         46000 b reinvite",
        expect![[r#"
            0ms       a timer 90
            0ms       b timer 90
            0ms       a invite
            0ms         a>b INVITE 1 +sdp x=90
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE) x=90;refresher=uas
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            1000ms    a restart
            45100ms     b: RefreshDue
            46000ms   b reinvite
            46000ms     b>a INVITE 1 +sdp x=90;refresher=uac
            46010ms     a>b 481 (1 INVITE)
            46020ms     b>a ACK 1
            46020ms     b: Ended: Gone
        "#]],
    );
}

#[test]
fn a_refresh_without_an_answer_ends_the_leg() {
    check(
        "0 a timer 900
         0 b timer 900
         0 a updates
         100 b respond 200
         1000 cut it
         1100000 a hangup",
        expect![[r#"
            0ms       a timer 900
            0ms       b timer 900
            0ms       a updates
            0ms         a>b INVITE 1 +sdp x=900
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE) x=900;refresher=uas
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            450100ms    b>a UPDATE 1 x=900;refresher=uac   (lost)
            450600ms    b>a UPDATE 1 x=900;refresher=uac   (lost)
            451600ms    b>a UPDATE 1 x=900;refresher=uac   (lost)
            453600ms    b>a UPDATE 1 x=900;refresher=uac   (lost)
            457600ms    b>a UPDATE 1 x=900;refresher=uac   (lost)
            461600ms    b>a UPDATE 1 x=900;refresher=uac   (lost)
            465600ms    b>a UPDATE 1 x=900;refresher=uac   (lost)
            469600ms    b>a UPDATE 1 x=900;refresher=uac   (lost)
            473600ms    b>a UPDATE 1 x=900;refresher=uac   (lost)
            477600ms    b>a UPDATE 1 x=900;refresher=uac   (lost)
            481600ms    b>a UPDATE 1 x=900;refresher=uac   (lost)
            482100ms    b: Ended: Gone
            482100ms    b>a BYE 2   (lost)
            482600ms    b>a BYE 2   (lost)
            483600ms    b>a BYE 2   (lost)
            485600ms    b>a BYE 2   (lost)
            489600ms    b>a BYE 2   (lost)
            493600ms    b>a BYE 2   (lost)
            497600ms    b>a BYE 2   (lost)
            501600ms    b>a BYE 2   (lost)
            505600ms    b>a BYE 2   (lost)
            509600ms    b>a BYE 2   (lost)
            513600ms    b>a BYE 2   (lost)
            868110ms    a: Ended: SessionExpired
            868110ms    a>b BYE 2 +Reason   (lost)
            868610ms    a>b BYE 2 +Reason   (lost)
            869610ms    a>b BYE 2 +Reason   (lost)
            871610ms    a>b BYE 2 +Reason   (lost)
            875610ms    a>b BYE 2 +Reason   (lost)
            879610ms    a>b BYE 2 +Reason   (lost)
            883610ms    a>b BYE 2 +Reason   (lost)
            887610ms    a>b BYE 2 +Reason   (lost)
            891610ms    a>b BYE 2 +Reason   (lost)
            895610ms    a>b BYE 2 +Reason   (lost)
            899610ms    a>b BYE 2 +Reason   (lost)
            1100000ms a hangup
        "#]],
    );
}

#[test]
fn an_update_that_is_refused_makes_way_for_an_invite() {
    check(
        "0 a timer 90
         0 b timer 90
         0 a updates
         100 b respond 200
         1000 a timer off
         45200 a respond 405
         46000 b reinvite
         46050 a respond 200
         50000 b hangup",
        expect![[r#"
            0ms       a timer 90
            0ms       b timer 90
            0ms       a updates
            0ms         a>b INVITE 1 +sdp x=90
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE) x=90;refresher=uas
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            1000ms    a timer off
            45100ms     b>a UPDATE 1 x=90;refresher=uac
            45110ms     a: UPDATE request of the leg
            45200ms   a respond 405
            45200ms     a>b 405 (1 UPDATE)
            45210ms     b: RefreshDue
            46000ms   b reinvite
            46000ms     b>a INVITE 2 +sdp x=90;refresher=uac
            46010ms     a: Reinvited
            46050ms   a respond 200
            46050ms     a>b 200 (2 INVITE) x=90;refresher=uac require=timer
            46060ms     b: 200 response
            46060ms     b>a ACK 2
            46070ms     a: Acked
            50000ms   b hangup
            50000ms     b: Ended: HungUp
            50000ms     b>a BYE 3
            50010ms     a: Ended by BYE
            50010ms     a>b 200 (3 BYE)
        "#]],
    );
}

#[test]
fn peers_without_the_extension_have_no_timer() {
    check(
        "0 a timer 90
         0 a invite
         100 b respond 200
         200000 b reinvite
         200050 a respond 200
         300000 a hangup",
        expect![[r#"
            0ms       a timer 90
            0ms       a invite
            0ms         a>b INVITE 1 +sdp x=90
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            200000ms  b reinvite
            200000ms    b>a INVITE 1 +sdp
            200010ms    a: Reinvited
            200050ms  a respond 200
            200050ms    a>b 200 (1 INVITE)
            200060ms    b: 200 response
            200060ms    b>a ACK 1
            200070ms    a: Acked
            300000ms  a hangup
            300000ms    a: Ended: HungUp
            300000ms    a>b BYE 2
            300010ms    b: Ended by BYE
            300010ms    b>a 200 (2 BYE)
        "#]],
    );
}

#[test]
fn refreshes_that_clash_are_tried_again() {
    check(
        "0 a timer 90
         0 b timer 90
         0 a invite
         100 b respond 200
         46000 b reinvite
         46005 a reinvite
         51000 b reinvite
         51100 a respond 200
         60000 a hangup",
        expect![[r#"
            0ms       a timer 90
            0ms       b timer 90
            0ms       a invite
            0ms         a>b INVITE 1 +sdp x=90
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE) x=90;refresher=uas
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            45100ms     b: RefreshDue
            46000ms   b reinvite
            46000ms     b>a INVITE 1 +sdp x=90;refresher=uac
            46005ms   a reinvite
            46005ms     a>b INVITE 2 +sdp x=90;refresher=uas
            46010ms     a>b 491 (1 INVITE)
            46015ms     b>a 491 (2 INVITE)
            46020ms     b>a ACK 1
            46020ms     b: ReinviteClashed
            46025ms     a>b ACK 2
            46025ms     a: ReinviteClashed
            48000ms     b: ReinviteDue
            48495ms     a: ReinviteDue
            50100ms     b: RefreshDue
            51000ms   b reinvite
            51000ms     b>a INVITE 2 +sdp x=90;refresher=uac
            51010ms     a: Reinvited
            51100ms   a respond 200
            51100ms     a>b 200 (2 INVITE) x=90;refresher=uac require=timer
            51110ms     b: 200 response
            51110ms     b>a ACK 2
            51120ms     a: Acked
            60000ms   a hangup
            60000ms     a: Ended: HungUp
            60000ms     a>b BYE 3
            60010ms     b: Ended by BYE
            60010ms     b>a 200 (3 BYE)
        "#]],
    );
}

#[test]
fn an_invite_of_the_other_side_refreshes_as_well() {
    check(
        "0 a timer 90
         0 b timer 90
         0 a invite
         100 b respond 200
         40000 a reinvite
         40050 b respond 200
         86000 b reinvite
         86050 a respond 200
         90000 b hangup",
        expect![[r#"
            0ms       a timer 90
            0ms       b timer 90
            0ms       a invite
            0ms         a>b INVITE 1 +sdp x=90
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE) x=90;refresher=uas
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            40000ms   a reinvite
            40000ms     a>b INVITE 2 +sdp x=90;refresher=uas
            40010ms     b: Reinvited
            40050ms   b respond 200
            40050ms     b>a 200 (2 INVITE) x=90;refresher=uas
            40060ms     a: 200 response
            40060ms     a>b ACK 2
            40070ms     b: Acked
            85050ms     b: RefreshDue
            86000ms   b reinvite
            86000ms     b>a INVITE 1 +sdp x=90;refresher=uac
            86010ms     a: Reinvited
            86050ms   a respond 200
            86050ms     a>b 200 (1 INVITE) x=90;refresher=uac require=timer
            86060ms     b: 200 response
            86060ms     b>a ACK 1
            86070ms     a: Acked
            90000ms   b hangup
            90000ms     b: Ended: HungUp
            90000ms     b>a BYE 2
            90010ms     a: Ended by BYE
            90010ms     a>b 200 (2 BYE)
        "#]],
    );
}

/// The peer answers our INVITE with 100 only. A refresh without an offer may be sent nevertheless.
#[test]
fn an_open_invite_does_not_prevent_a_refresh_by_update() {
    check(
        "0 a timer 90
         0 b timer 90
         0 a updates
         100 b respond 200
         44000 b reinvite
         44050 a respond 100
         100000 a respond 200
         101000 a hangup",
        expect![[r#"
            0ms       a timer 90
            0ms       b timer 90
            0ms       a updates
            0ms         a>b INVITE 1 +sdp x=90
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE) x=90;refresher=uas
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            44000ms   b reinvite
            44000ms     b>a INVITE 1 +sdp x=90;refresher=uac
            44010ms     a: Reinvited
            44050ms   a respond 100
            44050ms     a>b 100 (1 INVITE)
            45100ms     b>a UPDATE 2 x=90;refresher=uac
            45110ms     a>b 200 (2 UPDATE) x=90;refresher=uac require=timer
            90120ms     b>a UPDATE 3 x=90;refresher=uac
            90130ms     a>b 200 (3 UPDATE) x=90;refresher=uac require=timer
            100000ms  a respond 200
            100000ms    a>b 200 (1 INVITE) x=90;refresher=uac require=timer
            100010ms    b: 200 response
            100010ms    b>a ACK 1
            100020ms    a: Acked
            101000ms  a hangup
            101000ms    a: Ended: HungUp
            101000ms    a>b BYE 2
            101010ms    b: Ended by BYE
            101010ms    b>a 200 (2 BYE)
        "#]],
    );
}
