//! The 200 to a caller that had an answer in a provisional response: it repeats that answer (RFC 3261 §13.2.1).

use crate::tests::ladder::play;

/// Returns the outputs that begin with a word.
fn lines<'a>(log: &'a str, begin: &str) -> Vec<&'a str> {
    log.lines().map(str::trim).filter(|line| line.starts_with(begin)).collect()
}

#[test]
fn the_200_repeats_the_answer_of_the_183_and_another_codec_is_transcoded() {
    let log = play(
        "call 4000 PCMU,PCMA sendrecv -> 1
         100 ringing 0 183 5000 PCMU sendrecv
         1000 answered 0 5000 PCMA sendrecv
         1010 journalled
         1020 ack caller",
    );
    assert_eq!(lines(&log, "183 caller"), ["183 caller [20000 PCMU sendrecv v1]"]);
    assert_eq!(lines(&log, "200 caller"), ["200 caller [20000 PCMU sendrecv v1]"], "{log}");
    assert_eq!(lines(&log, "media 0 from"), ["media 0 from PCMU to PCMA"]);
    assert_eq!(lines(&log, "media 1 from"), ["media 1 from PCMA to PCMU"]);
    assert!(lines(&log, "re-INVITE").is_empty(), "everything is heard: {log}");
}

#[test]
fn another_fork_or_a_picked_up_call_does_not_change_the_answer() {
    let fork = play(
        "call 4000 PCMU,PCMA sendrecv -> 2
         100 ringing 0 183 5000 PCMU sendrecv
         1000 answered 1 6000 PCMA sendrecv
         1010 journalled
         1020 ack caller",
    );
    assert_eq!(lines(&fork, "200 caller"), ["200 caller [20000 PCMU sendrecv v1]"], "{fork}");
    assert_eq!(lines(&fork, "media 0 from"), ["media 0 from PCMU to PCMA"]);
    let next = play(
        "call 4000 PCMU,PCMA sendrecv -> trunks
         10 attempt 1
         100 ringing 0 183 5000 PCMU sendrecv
         200 ringing 0 183 5000 PCMA sendrecv
         1000 pickup 6000 PCMA sendrecv
         1010 journalled",
    );
    assert_eq!(lines(&next, "183 caller"), ["183 caller [20000 PCMU sendrecv v1]"; 2], "{next}");
    assert_eq!(lines(&next, "200 caller"), ["200 caller [20000 PCMU sendrecv v1]"], "{next}");
}

/// What the repeated answer does not show is offered once the caller may get an offer: after its ACK.
#[test]
fn terms_that_the_repeated_answer_lacks_are_offered_after_the_ack() {
    let cases = [
        // The early media went one way.
        ("PCMU", "sendonly", "PCMU", "20000 PCMU sendonly v1", "20000 PCMU sendrecv v2"),
        // G.729 cannot be transcoded.
        ("G729", "sendrecv", "PCMU", "20000 G729 sendrecv v1", "20000 PCMU,opus,G722,PCMA sendrecv v2"),
        ("PCMU", "sendrecv", "PCMU,G729", "20000 PCMU sendrecv v1", "20000 PCMU,G729 sendrecv v2"),
    ];
    for (early, direction, last, answer, offer) in cases {
        let script = |events: &str| {
            play(&format!(
                "call 4000 G729,PCMU sendrecv -> 1
                 100 ringing 0 183 5000 {early} {direction}
                 1000 answered 0 5000 {last} sendrecv
                 1010 journalled
                 {events}"
            ))
        };
        let log = script("1020 ack caller\n1030 offered caller 4000 PCMU sendrecv\n1040 ack caller");
        assert_eq!(lines(&log, "200 caller"), [format!("200 caller [{answer}]")], "{log}");
        assert_eq!(lines(&log, "re-INVITE"), [format!("re-INVITE caller [{offer}]")], "{log}");
        assert_eq!(lines(&log, "media 0 party").last(), Some(&"media 0 party 4000 receive true send true"));
        // The caller leaves before its ACK.
        assert!(lines(&script("1020 bye caller"), "re-INVITE").is_empty());
    }
}

/// The called extension forwards the call to a room while its phone rings, with early media or without.
#[test]
fn a_room_that_answers_later_repeats_the_answer_too() {
    let plain = play(
        "call 4000 PCMA,PCMU sendrecv -> 1
         100 ringing 0 180
         1000 enter
         1010 journalled",
    );
    assert_eq!(lines(&plain, "200 caller"), ["200 caller [20000 PCMA,PCMU sendrecv v1]"], "{plain}");
    assert_eq!(lines(&plain, "seat"), ["seat caller"]);
    let early = play(
        "call 4000 PCMA,PCMU sendrecv -> 1
         100 ringing 0 183 5000 PCMU sendrecv
         1000 enter
         1010 journalled
         1020 ack caller",
    );
    assert_eq!(lines(&early, "200 caller"), ["200 caller [20000 PCMU sendrecv v1]"], "{early}");
    assert_eq!((lines(&early, "seat").len(), lines(&early, "re-INVITE").len()), (1, 0), "{early}");
    // A room cannot decode G.729: it seats the caller with the codec of a new offer.
    let other = play(
        "call 4000 G729,PCMU sendrecv -> 1
         100 ringing 0 183 5000 G729 sendrecv
         1000 enter
         1010 journalled
         1020 ack caller
         1030 offered caller 4000 PCMU sendrecv",
    );
    assert_eq!(lines(&other, "200 caller"), ["200 caller [20000 G729 sendrecv v1]"], "{other}");
    assert_eq!(lines(&other, "re-INVITE caller").len(), 1, "{other}");
    let place = |what: &str| other.find(what).unwrap();
    assert!(place("seat caller") > place("1030 offered"), "{other}");
}
