//! Early media of several phones that ring at the same time (RFC 3261 §16.7, RFC 3960).

use expect_test::expect;

use crate::tests::ladder::check;

/// The phone that gave early media refuses: the caller hears another one, which has answered meanwhile or later, or
/// knows at least that one rings.
#[test]
fn another_phone_is_heard_after_the_one_that_gave_early_media() {
    check(
        "call 4000 PCMU sendrecv -> 2
         100 ringing 0 183 5000 PCMU sendrecv
         200 ringing 1 180
         300 failed 0 486
         400 ringing 1 183 6000 PCMU sendrecv
         500 answered 1 6000 PCMU sendrecv
         510 journalled",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
                      INVITE fork 1 [20004 PCMU,opus,G722,PCMA sendrecv v1]
            100 ringing 0 183 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      183 caller [20000 PCMU sendrecv v1]
            200 ringing 1 180
            300 failed 0 486
                      media 1 close
                      180 caller
            400 ringing 1 183 6000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 2 party 6000 receive true send true
                      media 0 to 2
                      media 2 to 0
                      183 caller [20000 PCMU sendrecv v1]
            500 answered 1 6000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 2 party 6000 receive true send true
                      media 0 to 2
                      media 2 to 0
                      media 2 answered
                      journal
            510 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
        "#]],
    );
    check(
        "call 4000 PCMU sendrecv -> 2
         100 ringing 0 183 5000 PCMU sendrecv
         200 ringing 1 183 6000 PCMU sendrecv
         300 failed 0 486
         500 answered 1
         510 journalled",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
                      INVITE fork 1 [20004 PCMU,opus,G722,PCMA sendrecv v1]
            100 ringing 0 183 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      183 caller [20000 PCMU sendrecv v1]
            200 ringing 1 183 6000 PCMU sendrecv
            300 failed 0 486
                      media 1 close
                      media 0 party 4000 receive true send true
                      media 2 party 6000 receive true send true
                      media 0 to 2
                      media 2 to 0
                      183 caller [20000 PCMU sendrecv v1]
            500 answered 1
                      media 0 party 4000 receive true send true
                      media 2 party 6000 receive true send true
                      media 0 to 2
                      media 2 to 0
                      media 2 answered
                      journal
            510 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
        "#]],
    );
    check(
        "call 4000 PCMU sendrecv -> 2
         100 ringing 0 183 5000 PCMU sendrecv
         300 failed 0 486
         400 ringing 1 180",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
                      INVITE fork 1 [20004 PCMU,opus,G722,PCMA sendrecv v1]
            100 ringing 0 183 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      183 caller [20000 PCMU sendrecv v1]
            300 failed 0 486
                      media 1 close
            400 ringing 1 180
                      180 caller
        "#]],
    );
}

/// A 180 of the phone that the caller hears is passed on, one of another is not.
#[test]
fn ringing_after_early_media_is_passed_on() {
    check(
        "call 4000 PCMU sendrecv -> 2
         100 ringing 0 183 5000 PCMU sendrecv
         200 ringing 0 180
         300 ringing 1 180",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
                      INVITE fork 1 [20004 PCMU,opus,G722,PCMA sendrecv v1]
            100 ringing 0 183 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      183 caller [20000 PCMU sendrecv v1]
            200 ringing 0 180
                      180 caller
            300 ringing 1 180
        "#]],
    );
}
