//! The sentences about calls without audio: captures of signalling only, unanswered calls, registrations; and
//! audio whose beginning and end are missing.

use std::fmt::Write as _;

use super::capture_builder::{CaptureBuilder, Plane};
use super::entry::{Golden, absent, number, text};
use super::rtp::Voice;
use super::sip::{Dialog, Sdp, body};
use super::verdicts::PCMU;

/// Every capture whose sentences are compared.
pub(super) const SENTENCES: [Golden; 15] = [
    Golden {
        name: "signalling_alone",
        shows: "An answered call of ten seconds, captured with a filter that lets SIP pass and no RTP.",
        misread: "The caller could not be heard: the filter is taken for a fault of the call.",
        verdict: "",
        figures: &[
            absent("/calls/0/evidence"),
            absent("/calls/0/blame"),
            number("/calls/0/billsec", 10.0),
            text("/calls/0/sentence", "There is no audio in this capture, so none is judged."),
        ],
        record: |capture| Dialog::plain("signalling_alone", PCMU, 10_000_000).play(capture),
    },
    Golden {
        name: "head_and_tail_missing_without_rtcp",
        shows: "The caller's first 40 packets and its last 150 never come, and there is no RTCP to count them.",
        misread: "Of 305 packets none was lost.",
        verdict: "ok",
        figures: &[number("/streams/1/lost", 0.0), text("/calls/0/sentence", HEAD_AND_TAIL)],
        record: head_and_tail_missing,
    },
    Golden {
        name: "refused_busy",
        shows: "The called phone rings and is busy: 486, with the reason of the network behind it.",
        misread: REFUSED,
        verdict: "unanswered",
        figures: &[
            text("/calls/0/failure/refused_by", "192.0.2.20:5060"),
            number("/calls/0/failure/reasons/0/cause", 17.0),
            text("/calls/0/sentence", BUSY),
        ],
        record: |capture| {
            let reason = "Reason: Q.850;cause=17;text=\"User busy\"\r\nServer: Example PBX 4.2\r\n";
            refused(capture, "refused_busy", "486 Busy Here", reason, true);
        },
    },
    Golden {
        name: "refused_unavailable",
        shows: "A proxy passes the call on; the phone behind it answers 480, and the proxy passes that back.",
        misread: REFUSED,
        verdict: "",
        figures: &[
            text("/calls/0/failure/refused_by", "192.0.2.30:5060"),
            text("/calls/0/sentence", UNAVAILABLE),
        ],
        record: refused_behind_a_proxy,
    },
    Golden {
        name: "refused_not_found",
        shows: "The switch does not know the number: 404.",
        misread: REFUSED,
        verdict: "",
        figures: &[number("/calls/0/failure/status", 404.0), text("/calls/0/sentence", NOT_FOUND)],
        record: |capture| refused(capture, "refused_not_found", "404 Not Found", "", false),
    },
    Golden {
        name: "refused_forbidden",
        shows: "The switch does not let the caller call: 403, and a warning says why.",
        misread: REFUSED,
        verdict: "",
        figures: &[number("/calls/0/failure/status", 403.0), text("/calls/0/sentence", FORBIDDEN)],
        record: |capture| {
            let warning = "Warning: 399 192.0.2.20 \"no calls abroad\"\r\n";
            refused(capture, "refused_forbidden", "403 Forbidden", warning, false);
        },
    },
    Golden {
        name: "refused_codecs",
        shows: "The called side takes none of the codecs that the caller offers: 488.",
        misread: REFUSED,
        verdict: "",
        figures: &[number("/calls/0/failure/status", 488.0), text("/calls/0/sentence", CODECS)],
        record: |capture| {
            let warning = "Warning: 305 192.0.2.20 \"Incompatible media format\"\r\n";
            refused(capture, "refused_codecs", "488 Not Acceptable Here", warning, false);
        },
    },
    Golden {
        name: "refused_overload",
        shows: "The trunk has no free line: 503, to be tried again in 30 seconds.",
        misread: REFUSED,
        verdict: "",
        figures: &[number("/calls/0/failure/status", 503.0), text("/calls/0/sentence", OVERLOAD)],
        record: |capture| {
            refused(capture, "refused_overload", "503 Service Unavailable", "Retry-After: 30\r\n", false)
        },
    },
    Golden {
        name: "refused_timeout",
        shows: "The switch gets no answer from the called phone: 408.",
        misread: REFUSED,
        verdict: "",
        figures: &[number("/calls/0/failure/status", 408.0), text("/calls/0/sentence", TIMEOUT)],
        record: |capture| refused(capture, "refused_timeout", "408 Request Timeout", "", false),
    },
    Golden {
        name: "refused_password",
        shows: "The caller answers each question for its password with a wrong one.",
        misread: "Four calls that failed, or one without a cause.",
        verdict: "",
        figures: &[
            number("/calls/0/failure/challenges", 4.0),
            number("/calls/0/failure/credentials", 3.0),
            text("/calls/0/sentence", PASSWORD),
        ],
        record: |capture| {
            repeated(
                capture,
                "refused_password",
                "407 Proxy Authentication Required",
                CHALLENGE,
                CREDENTIALS,
            );
        },
    },
    Golden {
        name: "refused_session_timer",
        shows: "The caller's session timer is too short, and it never asks for a longer one: 422, four times.",
        misread: "Four calls that failed, or one without a cause.",
        verdict: "",
        figures: &[number("/calls/0/failure/tries", 4.0), text("/calls/0/sentence", SESSION_TIMER)],
        record: |capture| {
            let (refusal, asks) = ("Min-SE: 1800\r\n", "Session-Expires: 90\r\n");
            repeated(capture, "refused_session_timer", "422 Session Interval Too Small", refusal, asks);
        },
    },
    Golden {
        name: "nothing_answers",
        shows: "The INVITE is sent seven times, and nothing comes back.",
        misread: "A call that is still up, or none.",
        verdict: "",
        figures: &[
            absent("/calls/0/sip_status"),
            number("/calls/0/failure/sent", 7.0),
            text("/calls/0/failure/kind", "no_response"),
            text("/calls/0/sentence", NO_RESPONSE),
        ],
        record: |capture| {
            for at_ms in [0, 500, 1_500, 3_500, 7_500, 15_500, 31_500] {
                say(capture, at_ms, true, &request("nothing_answers", "INVITE", 1, ""));
            }
        },
    },
    Golden {
        name: "cancelled_while_it_rings",
        shows: "It rings, and the caller's switch cancels the call after eight seconds: another phone has answered.",
        misread: "A refusal by the called party: 487.",
        verdict: "unanswered",
        figures: &[text("/calls/0/failure/kind", "cancelled"), text("/calls/0/sentence", CANCELLED)],
        record: cancelled,
    },
    Golden {
        name: "registration_refused",
        shows: "A phone registers with a wrong password until the registrar refuses it: no call, no audio.",
        misread: "No calls: an empty report.",
        verdict: "",
        figures: &[
            absent("/calls/0"),
            text("/registrations/0/aor", "1000@example.invalid"),
            text("/registrations/0/result", "refused"),
            number("/registrations/0/sip_status", 403.0),
            number("/registrations/0/tries", 3.0),
            text("/registrations/0/sentence", REGISTRATION_REFUSED),
        ],
        record: |capture| registration(capture, "registration_refused", "403 Forbidden", ""),
    },
    Golden {
        name: "registration_accepted",
        shows: "A phone registers: it is asked for its password once, and accepted for 300 of the 3,600 seconds it asked for.",
        misread: "No calls: an empty report.",
        verdict: "",
        figures: &[
            absent("/calls/0"),
            text("/registrations/0/result", "registered"),
            number("/registrations/0/expires_s", 300.0),
            number("/registrations/0/tries", 3.0),
            text("/registrations/0/sentence", REGISTRATION_ACCEPTED),
        ],
        record: |capture| {
            let contact = "Contact: <sip:1000@192.0.2.10>;expires=300\r\n";
            registration(capture, "registration_accepted", "200 OK", contact);
        },
    },
];

fn head_and_tail_missing(capture: &mut CaptureBuilder) {
    Dialog::plain("head_and_tail_missing_without_rtcp", PCMU, 10_000_000).play(capture);
    Voice::of_caller(495).speak(capture, |n| !(40..345).contains(&n));
    Voice::of_called(495).speak(capture, |_| false);
}

/// A call that gets a 100, may ring, and is refused with that status and those headers.
fn refused(capture: &mut CaptureBuilder, name: &str, status: &str, headers: &str, rings: bool) {
    say(capture, 0, true, &request(name, "INVITE", 1, ""));
    say(capture, 1, false, &response(name, "100 Trying", "INVITE", 1, ""));
    if rings {
        say(capture, 100, false, &response(name, "180 Ringing", "INVITE", 1, ""));
    }
    say(capture, 2_000, false, &response(name, status, "INVITE", 1, headers));
    say(capture, 2_010, true, &request(name, "ACK", 1, ""));
}

/// The same response to each of four attempts, all but the first of which have additional headers.
fn repeated(capture: &mut CaptureBuilder, name: &str, status: &str, refusal: &str, asks: &str) {
    for n in 1..=4 {
        let at_ms = i64::from(n) * 1_000;
        let headers = if n == 1 && asks == CREDENTIALS { "" } else { asks };
        say(capture, at_ms, true, &request(name, "INVITE", n, headers));
        say(capture, at_ms + 20, false, &response(name, status, "INVITE", n, refusal));
        say(capture, at_ms + 40, true, &request(name, "ACK", n, ""));
    }
}

fn refused_behind_a_proxy(capture: &mut CaptureBuilder) {
    let name = "refused_unavailable";
    let (caller, proxy) = (capture.caller, capture.switch);
    let phone = super::capture_builder::Host::at([192, 0, 2, 30], 30_000);
    say(capture, 0, true, &request(name, "INVITE", 1, ""));
    say(capture, 1, false, &response(name, "100 Trying", "INVITE", 1, ""));
    (capture.caller, capture.switch) = (proxy, phone);
    say(capture, 5, true, &request(name, "INVITE", 1, ""));
    let agent = "User-Agent: Example Phone 7\r\n";
    say(capture, 60, false, &response(name, "480 Temporarily Unavailable", "INVITE", 1, agent));
    say(capture, 61, true, &request(name, "ACK", 1, ""));
    (capture.caller, capture.switch) = (caller, proxy);
    say(capture, 65, false, &response(name, "480 Temporarily Unavailable", "INVITE", 1, ""));
    say(capture, 70, true, &request(name, "ACK", 1, ""));
}

fn cancelled(capture: &mut CaptureBuilder) {
    let name = "cancelled_while_it_rings";
    say(capture, 0, true, &request(name, "INVITE", 1, ""));
    say(capture, 100, false, &response(name, "180 Ringing", "INVITE", 1, ""));
    let reason = "Reason: SIP;cause=200;text=\"Call completed elsewhere\"\r\n";
    say(capture, 8_000, true, &request(name, "CANCEL", 1, reason));
    say(capture, 8_010, false, &response(name, "200 OK", "CANCEL", 1, ""));
    say(capture, 8_020, false, &response(name, "487 Request Terminated", "INVITE", 1, ""));
    say(capture, 8_030, true, &request(name, "ACK", 1, ""));
}

/// A phone that registers three times: once without credentials, then twice with credentials.
fn registration(capture: &mut CaptureBuilder, name: &str, outcome: &str, headers: &str) {
    let challenge = CHALLENGE.replace("Proxy-", "WWW-");
    for (n, status) in [(1, "401 Unauthorized"), (2, "401 Unauthorized"), (3, outcome)] {
        let at_ms = i64::from(n) * 500;
        let credentials = if n == 1 { String::new() } else { CREDENTIALS.replace("Proxy-", "") };
        let asked = format!("Expires: 3600\r\n{credentials}");
        let answered = if status.starts_with("401") { challenge.as_str() } else { headers };
        say(capture, at_ms, true, &request(name, "REGISTER", n, &asked));
        say(capture, at_ms + 15, false, &response(name, status, "REGISTER", n, answered));
    }
}

fn say(capture: &mut CaptureBuilder, at_ms: i64, from_caller: bool, message: &str) {
    capture.push(at_ms * 1_000, Plane::Sip, from_caller, message.as_bytes().to_vec());
}

fn request(name: &str, method: &str, number: u32, headers: &str) -> String {
    let uri = if method == "REGISTER" { "sip:example.invalid" } else { "sip:2000@example.invalid" };
    let sdp = if method == "INVITE" {
        body(&Sdp::of(PCMU), ([192, 0, 2, 10], 4_000).into())
    } else {
        String::new()
    };
    let contact = "Contact: <sip:1000@192.0.2.10>\r\nMax-Forwards: 70\r\n";
    message(&format!("{method} {uri} SIP/2.0"), name, method, number, &format!("{contact}{headers}"), &sdp)
}

fn response(name: &str, status: &str, method: &str, number: u32, headers: &str) -> String {
    message(&format!("SIP/2.0 {status}"), name, method, number, headers, "")
}

fn message(start: &str, name: &str, method: &str, number: u32, headers: &str, sdp: &str) -> String {
    let called = if method == "REGISTER" { "1000" } else { "2000" };
    // A CANCEL and the ACK to a refusal have the branch of their INVITE (RFC 3261 §9.1, §17.1.1.3).
    let branch = if method == "REGISTER" { "register" } else { "invite" };
    let mut text = format!(
        "{start}\r\nVia: SIP/2.0/UDP 192.0.2.10:5060;branch=z9hG4bK{branch}{number}\r\n\
         From: <sip:1000@example.invalid>;tag=caller\r\nTo: <sip:{called}@example.invalid>\r\n\
         Call-ID: {name}@golden.invalid\r\nCSeq: {number} {method}\r\n{headers}"
    );
    if !sdp.is_empty() {
        text.push_str("Content-Type: application/sdp\r\n");
    }
    let _ = write!(text, "Content-Length: {}\r\n\r\n{sdp}", sdp.len());
    text
}

/// How tools misread a call that was not answered.
const REFUSED: &str = "A call without audio, or \"failed\" and a number.";
const CHALLENGE: &str = "Proxy-Authenticate: Digest realm=\"example.invalid\", nonce=\"f1a2\"\r\n";
const CREDENTIALS: &str = "Proxy-Authorization: Digest username=\"1000\", realm=\"example.invalid\", nonce=\"f1a2\", \
     uri=\"sip:example.invalid\", response=\"00000000000000000000000000000000\"\r\n";

const HEAD_AND_TAIL: &str = "The packets of the caller's audio that arrived were in order, but some are missing at the start or the end. Of \
    the 305 packets from the first to the last that arrived, none is missing, and the jitter was 0.06 ms at most (limit 30 ms). About 500 \
    packets were due in the 10 seconds for which audio was expected, and 305 arrived: the first 0.8 seconds after the \
    answer, the last 3.1 seconds before the end. Without sender reports (RTCP) it is not known whether more were \
    sent.";
const BUSY: &str = "The call was not answered: 192.0.2.20:5060 (Example PBX 4.2) refused it (486 Busy Here) after it had rung, \
    which means that the called party was busy. The Reason header says: Q.850 cause 17 (user busy). Nothing has to \
    be repaired: call again later.";
const UNAVAILABLE: &str = "The call was not answered: 192.0.2.30:5060 (Example Phone 7) refused it (480 Temporarily Unavailable), which \
    means that the called party cannot be reached at present. Check whether the called phone is registered, and \
    whether it is set to do not disturb.";
const NOT_FOUND: &str = "The call was not answered: 192.0.2.20:5060 refused it (404 Not Found), which means that the called number or \
    address is not known there. Check the number as it was sent, and the numbers and the dial plan of the machine \
    that refused it.";
const FORBIDDEN: &str = "The call was not answered: 192.0.2.20:5060 refused it (403 Forbidden), which means that it read the request \
    and will not carry it out. The Warning header says: 399 192.0.2.20 \"no calls abroad\". Check the caller's \
    account and password there, and what its account, its address and its number may call.";
const CODECS: &str = "The call was not answered: 192.0.2.20:5060 refused it (488 Not Acceptable Here), which means that it accepts \
    none of the media that was offered. The Warning header says: 305 192.0.2.20 \"Incompatible media format\". The \
    caller offered PCMU. Compare the codecs and the encryption (SRTP) of both sides.";
const OVERLOAD: &str = "The call was not answered: 192.0.2.20:5060 refused it (503 Service Unavailable), which means that it is \
    overloaded, has no free line or is being serviced. It asks to try again after 30 seconds (Retry-After). Check \
    the load of the machine that answered so; of a trunk, how many calls it may carry at once.";
const TIMEOUT: &str = "The call was not answered: 192.0.2.20:5060 refused it (408 Request Timeout), which means that it got no answer \
    itself in time. Check that the called device is up, and that the machine that refused the call reaches it.";
const PASSWORD: &str = "The call was not answered: 192.0.2.20:5060 asked for a password 4 times (407 Proxy Authentication Required), \
    and accepted none of the 3 that the caller sent. The password is that of the realm \"example.invalid\". Check \
    the user name, the password and the realm of the caller's account.";
const SESSION_TIMER: &str = "The call was not answered: 192.0.2.20:5060 refused it 4 times (422 Session Interval Too Small), which means \
    that the session timer of the caller is too short for it. It wants a session timer of 1800 seconds or more \
    (Min-SE). Raise the session timer (Session-Expires) of the caller's device.";
const NO_RESPONSE: &str = "The call was not answered: 7 requests went to 192.0.2.20:5060 within 31.5 seconds, and no response was seen. \
    Check that the address is right, that something listens there, and that no firewall blocks SIP in either \
    direction.";
const CANCELLED: &str = "The call was not answered: the caller gave up after 8 seconds, while it rang. The Reason header says: SIP \
    cause 200, \"Call completed elsewhere\". Nothing has to be repaired: the call was answered elsewhere.";
const REGISTRATION_REFUSED: &str = "The registration was not accepted: 192.0.2.20:5060 refused it (403 Forbidden), which means that it will not \
    register this account. Check whether the account is locked, whether its password is right, and from which \
    addresses it may register.";
const REGISTRATION_ACCEPTED: &str = "192.0.2.20:5060 accepted the registration for 300 seconds.";
