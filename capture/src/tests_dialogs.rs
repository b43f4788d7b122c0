//! Messages of several dialogs of one call, and messages of a dialog that are missing or take another way.

use super::ladder::{ACK, BYE, Hop, INVITE, Line, OK, Rtp, analyzed, answered, audio, both_ways, verdicts};

const A: &str = "192.0.2.10:4000";
const B: &str = "192.0.2.20:6000";
const SOUND: (Option<&str>, Option<&str>) = (Some("ok"), Some("ok"));

/// RFC 3261 §13.2.2.4: the caller releases a second dialog of a forked INVITE. A BYE for a dialog that the called
/// party does not know is answered with 481.
#[test]
fn a_bye_of_another_dialog_does_not_end_the_call() {
    let (offer, answer) = (audio("192.0.2.10", 4_000), audio("192.0.2.20", 6_000));
    let elsewhere = audio("192.0.2.30", 8_000);
    let hop = Hop::new("one", "192.0.2.10", "192.0.2.20");
    let fork = [
        (20, false, OK, (1, "INVITE"), elsewhere.as_str()),
        (21, true, ACK, (1, "ACK"), ""),
        (22, true, BYE, (2, "BYE"), ""),
    ];
    let stray = [
        (2_000, true, BYE, (77, "BYE"), ""),
        (2_001, false, "SIP/2.0 481 Call/Transaction Does Not Exist", (77, "BYE"), ""),
    ];
    for (name, lines) in [("a second dialog", &fork[..]), ("an unknown dialog", &stray)] {
        let other = hop.with_tag("other").frames(lines);
        let lossy = Rtp { lost: Some(20), ..Rtp::new(1) }.frames((A, B), (0, 5_000));
        let media = [lossy, Rtp::new(2).frames((B, A), (0, 5_000))];
        let analysis = analyzed(&[hop.frames(&answered(&offer, &answer, 5_000)), other, media.concat()]);
        assert_eq!(verdicts(&analysis), [(Some("lossy_inbound"), Some("ok"))], "{name}");
        assert_eq!(analysis.calls[0].billsec, 5, "{name}");
    }
}

/// RFC 3261 §17.1.1.3: the ACK of a refusal has the branch of its INVITE, the ACK of a 2xx another one.
#[test]
fn an_ack_shows_an_answer_that_was_not_captured() {
    let (offer, answer) = (audio("192.0.2.10", 4_000), audio("192.0.2.20", 6_000));
    let hop = Hop::new("one", "192.0.2.10", "192.0.2.20");
    let early = (-400, false, "SIP/2.0 183 Session Progress", (1, "INVITE"), answer.as_str());
    let [invite, _, ack, bye] = answered(&offer, &answer, 5_000);
    let media = both_ways((A, B), (0, 5_000));
    let refused_ack = || {
        let mut frame = hop.frames(&[ack]);
        let text = String::from_utf8(frame[0].3.clone()).unwrap();
        frame[0].3 = text.replace("z9hG4bK1ACK", "z9hG4bK1INVITE").into_bytes();
        frame
    };
    let cases: [(&str, Vec<_>, Option<&str>, bool); 3] = [
        ("early media", hop.frames(&[invite, early, ack, bye]), Some("ok"), true),
        ("no answer to the offer", hop.frames(&[invite, ack, bye]), None, true),
        ("the ACK of a refusal", [hop.frames(&[invite, early]), refused_ack()].concat(), None, false),
    ];
    for (name, messages, verdict, is_answered) in cases {
        let analysis = analyzed(&[messages, media.clone()]);
        let call = &analysis.calls[0];
        assert_eq!(
            (call.answered_at.is_some(), call.failure.is_none()),
            (is_answered, is_answered),
            "{name}"
        );
        assert_eq!(call.quality().sentence.contains("not answered"), !is_answered, "{name}");
        if is_answered {
            assert_eq!((call.billsec, call.media_verdict), (4, verdict), "{name}");
        }
    }
}

/// A proxy without Record-Route: the capture has the INVITE between it and the called party, and then the messages of
/// the parties themselves.
#[test]
fn messages_that_bypass_the_proxy_are_the_calls() {
    let (offer, answer) = (audio("192.0.2.10", 4_000), audio("192.0.2.20", 6_000));
    let (moved_a, moved_b) = (audio("192.0.2.10", 4_400), audio("192.0.2.20", 6_400));
    let (proxied, direct) =
        (Hop::new("one", "192.0.2.99", "192.0.2.20"), Hop::new("one", "192.0.2.10", "192.0.2.20"));
    let [invite, ok, ack, bye] = answered(&offer, &answer, 5_000);
    let bye_of_called = (5_000, false, "BYE sip:a@x SIP/2.0", (1, "BYE"), "");
    let moves: [Line<'_>; 2] =
        [(2_000, true, INVITE, (2, "INVITE"), &moved_a), (2_010, false, OK, (2, "INVITE"), &moved_b)];
    let moved = ("192.0.2.10:4400", "192.0.2.20:6400");
    let cases = [
        ("the caller ends it", vec![ack, bye], both_ways((A, B), (0, 5_000))),
        ("the called party ends it", vec![ack, bye_of_called], both_ways((A, B), (0, 5_000))),
        (
            "other ports",
            vec![ack, moves[0], moves[1], bye],
            [both_ways((A, B), (0, 2_000)), both_ways(moved, (2_020, 5_000))].concat(),
        ),
    ];
    for (name, lines, media) in cases {
        let analysis = analyzed(&[proxied.frames(&[invite, ok]), direct.frames(&lines), media]);
        assert_eq!(verdicts(&analysis), [SOUND], "{name}");
        assert!(analysis.calls[0].ended_at.is_some(), "{name}");
        assert_eq!(analysis.streams.len(), analysis.calls[0].streams.len(), "{name}");
    }
}
