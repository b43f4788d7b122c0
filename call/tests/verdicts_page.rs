//! `docs/verdicts.md` contains the sentence of every verdict, direction and reason exactly as the code generates it.
//!
//! `SIDETONE_BLESS=1` writes the page; without it the test compares the page with the generated text.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use sidetone_call::quality::{self, WallClock};
use sidetone_media::rtcp::{FarEnd, SenderCount};
use sidetone_media::session::{Description, Hundredths, Report, Session, SessionConfig, Withheld};
use sidetone_media::simulate::{Scenario, play};
use sidetone_media::verdict::{Outcome, Party, Thresholds, explain};
use sidetone_model::call::HangupCause;
use sidetone_model::failure::{Failure, FailureKind, Reason, Request, known, of_cause, phrase};
use sidetone_model::media_quality::{LegSide, QualityValue, RuleMeasure};
use support::leg::{Leg, default_leg};
use support::{addr, ip};

#[path = "../../media/tests/support/mod.rs"]
mod support;

/// The name of the block on the page, the condition that causes it, and a leg that meets the condition.
type Case = (&'static str, &'static str, fn() -> Report);

const CASES: &[Case] = &[
    ("unanswered", "The leg was never answered", || played("unanswered")),
    ("address", "`rejected_source`", || played("wrong-address")),
    ("address", "`advertised_unreachable`", || {
        silent(|sdp| (sdp.remote, sdp.signalling) = (Some(addr("10.1.1.9:4000")), Some(ip("203.0.113.7"))), 0)
    }),
    ("address", "`own_unreachable`", || {
        silent(
            |sdp| {
                sdp.remote = Some(addr("198.51.100.7:4000"));
                (sdp.own_advertised, sdp.signalling) = (Some(ip("10.0.0.5")), Some(ip("198.51.100.7")));
            },
            0,
        )
    }),
    ("address", "`icmp_unreachable`", || silent(|_| {}, 4)),
    ("no_inbound", "Nothing says that the party sent", || played("no-inbound")),
    ("no_inbound", "An ICMP error came back", || silent(|_| {}, 1)),
    ("no_inbound", "The party's sender reports (RTCP) say that it did send", || {
        let count = SenderCount { reports: 2, packets: 500, ..SenderCount::default() };
        with(played("no-inbound"), |it| it.rtcp.sent_by_party = Some(count))
    }),
    ("no_inbound", "Packets came that could not be authenticated (SRTP)", || {
        let mut leg = default_leg();
        leg.connect();
        leg.session.unauthenticated(1_200);
        leg.at_ms += 10_000;
        leg.session.close(leg.now())
    }),
    ("no_outbound", "A leg of this switch", || played("no-outbound")),
    ("no_outbound", "A call of a capture", || {
        let config = SessionConfig { observed: true, ..SessionConfig::default() };
        play(&"no-outbound".parse().unwrap(), &mut Session::new(config))
    }),
    ("heard_nothing", "`blackhole`", blackhole),
    ("heard_nothing", "`relocated`", relocated),
    ("lossy", "In a row", || played("hole-2s")),
    ("lossy", "Here and there", || played("lossy")),
    ("lossy", "This host dropped as many", || {
        with(played("lossy"), |it| it.figures.local_drop = it.figures.lost + 20)
    }),
    ("unpaced", "`clumps`", || played("unpaced")),
    ("unpaced", "`pace`, too slow", || played("slow")),
    ("unpaced", "`pace`, too fast", || played("blast")),
    ("jittery", "`jitter`", || played("overtaken")),
    ("jittery", "`late`", || played("stalls-300")),
    ("jittery", "`late`, and phones with buffers would have played all of it", || played("jitter-120")),
    ("ptime", "`ptime`", || played("wrong-ptime")),
    ("ptime", "`maxptime`", || {
        let mut leg = default_leg();
        leg.describe(|sdp| {
            (sdp.ptime_ms, sdp.own_ptime_ms, sdp.own_maxptime_ms) = (Some(40), Some(20), Some(20));
        });
        leg.answer();
        (leg.step, leg.interval_ms, leg.packet.payload_len) = (320, 40, 320);
        leg.reply(500);
        leg.talk(200);
        leg.close()
    }),
    ("ptime", "`timestamps`", || played("ptime-payload")),
    ("degraded", "`quality`, late packets", || played("sleeps-wide")),
    ("degraded", "`quality`, lost and late packets", || {
        played("clean loss=1 stall=3s..5s stall=9s..11s duration=20s seed=3")
    }),
    ("degraded", "`quality`, time stamps that jump", || {
        let mut leg = connected();
        for _ in 0..100 {
            leg.talk(5);
            leg.packet.timestamp = leg.packet.timestamp.wrapping_add(1 << 20);
        }
        leg.close()
    }),
    ("degraded", "`dead_tail`", || played("degraded")),
    ("degraded", "`dead_tail`, and the party's sender reports (RTCP) say that it went on", || {
        let count = SenderCount { reports: 9, packets: 3_000, tail_missing: 2_000, ..SenderCount::default() };
        with(played("degraded"), |it| it.rtcp.sent_by_party = Some(count))
    }),
    ("ok", "Nothing was wrong", || played("clean")),
    ("ok", "Some loss", || played("loss-1")),
    ("ok", "One stall", || played("clean stall=30s..30500ms")),
    ("ok", "The sender reports (RTCP) count more packets than came", || {
        let count = SenderCount {
            reports: 3,
            packets: 495,
            missing: 190,
            head_missing: Some(40),
            tail_missing: 150,
            ..SenderCount::default()
        };
        with(played(HEAD_AND_TAIL), |it| it.rtcp.sent_by_party = Some(count))
    }),
    ("ok", "More packets were due than came, and there are no sender reports", || played(HEAD_AND_TAIL)),
    ("ok", "`too_little_audio`, a few packets", || played("clean duration=400ms")),
    ("ok", "`too_little_audio`, a short call", || played("clean packets=0 duration=200ms")),
    ("ok", "`too_little_audio`, on hold or receiving only", || silent(|sdp| sdp.receive = false, 0)),
    ("none", "SDP settled no audio", || {
        Session::new(SessionConfig::default()).close(sidetone_media::time::Micros(1_000_000))
    }),
    ("none", "A capture of signalling alone", || withheld("no-inbound", Withheld::NothingCaptured)),
    ("none", "A capture that is not in the order of time, and is no plain file", || {
        withheld("clean", Withheld::OutOfOrder)
    }),
    ("none", "A capture without times", || withheld("clean", Withheld::Untimed)),
    ("flags", "`comfort_noise_only`", || {
        let mut leg = connected();
        (leg.packet.payload_type, leg.packet.payload_len, leg.interval_ms) = (13, 1, 200);
        leg.talk(50);
        leg.close()
    }),
    ("flags", "`far_end_deaf`", || {
        let deaf = FarEnd { reports: 9, unheard: 2_900, ..FarEnd::default() };
        with(played("clean"), |it| it.rtcp.far_end = Some(deaf))
    }),
    ("flags", "`far_end_loss`", || {
        let loss_pct = Some(Hundredths(730));
        let loses = FarEnd { reports: 9, highest_sequence_moves: true, loss_pct, ..FarEnd::default() };
        with(played("clean"), |it| it.rtcp.far_end = Some(loses))
    }),
    ("flags", "`local_drop`", || with(played("clean"), |it| it.figures.local_drop = 3)),
];

/// The first 40 of 495 packets and the last 150 never arrive.
const HEAD_AND_TAIL: &str = "clean start=800ms stop=6900ms duration=10s";

fn played(text: &str) -> Report {
    let scenario: Scenario = text.parse().unwrap();
    let symmetric = scenario.call.advertised_source;
    play(&scenario, &mut Session::new(SessionConfig { symmetric, ..SessionConfig::default() }))
}

fn with(mut report: Report, change: impl FnOnce(&mut Report)) -> Report {
    change(&mut report);
    report
}

fn withheld(text: &str, why: Withheld) -> Report {
    with(played(text), |report| report.leave_unjudged(why))
}

fn connected() -> Leg {
    let mut leg = default_leg();
    leg.connect();
    leg.reply(500);
    leg
}

/// Ten seconds without a packet from the party, and `errors` ICMP errors.
fn silent(change: impl FnOnce(&mut Description), errors: usize) -> Report {
    let mut leg = default_leg();
    leg.describe(change);
    leg.answer();
    leg.reply(500);
    (0..errors).for_each(|_| leg.session.unreachable());
    leg.wait(10_000);
    leg.close()
}

fn blackhole() -> Report {
    let mut leg = default_leg();
    leg.describe(|sdp| {
        (sdp.remote, sdp.signalling) = (Some(addr("192.168.1.20:4000")), Some(ip("203.0.113.7")));
    });
    leg.answer();
    leg.source = addr("203.0.113.7:4000");
    for _ in 0..100 {
        leg.talk(5);
        leg.session.sent(leg.now(), 5, addr("192.168.1.20:4000"));
    }
    leg.close()
}

fn relocated() -> Report {
    let thresholds = Thresholds { strict_address: true, ..Thresholds::default() };
    let mut leg = Leg::with(SessionConfig { thresholds, ..SessionConfig::default() });
    leg.describe(|sdp| sdp.remote = Some(addr("10.0.0.2:4000")));
    leg.answer();
    for _ in 0..100 {
        leg.talk(5);
        leg.reply(5);
    }
    leg.close()
}

/// The sentences for both directions of a leg, the blame, and the figures that led to the verdict.
fn said(title: &str, report: &Report) -> String {
    let quality = |side| quality::leg(report, side, None, WallClock::unix());
    let (a, b) = (quality(LegSide::A), quality(LegSide::B));
    let verdict =
        a.media_verdict.map_or("no verdict".to_owned(), |verdict| format!("`{}`", verdict.as_str()));
    let blame = a.blame.map_or(String::new(), |blame| format!(", blame **{}**", blame.as_str()));
    let flags: String = a.flags.iter().map(|flag| format!(", flag `{flag}`")).collect();
    let mut text = format!("**{title}**: {verdict}{blame}{flags}\n\n");
    let _ = writeln!(text, "> {}\n>\n> {}\n", a.sentence, b.sentence);
    let fired =
        explain(report, Party::Caller).checks.iter().position(|check| check.outcome == Outcome::Fired);
    let measures: Vec<String> = match fired.and_then(|place| a.rules.get(place)) {
        Some(rule) => rule.measures.iter().filter_map(figure).collect(),
        None => ["loss_pct", "jitter_ms", "quality_pct"]
            .iter()
            .filter_map(|name| {
                a.rules
                    .iter()
                    .flat_map(|rule| &rule.measures)
                    .find(|measure| measure.name == *name)
                    .and_then(figure)
            })
            .collect(),
    };
    let mos = a.inbound.mos.map(|mos| format!("`mos` {}", mos.as_f64()));
    let figures: Vec<String> = measures.into_iter().chain(mos).collect();
    if !figures.is_empty() {
        let _ = writeln!(text, "{}\n", figures.join(", "));
    }
    let also: Vec<String> = a.rules.iter().filter_map(|rule| rule.remark()).collect();
    if !also.is_empty() {
        let _ = writeln!(text, "Below it: {}\n", also.join("; "));
    }
    text
}

/// A figure and its limit.
fn figure(measure: &RuleMeasure) -> Option<String> {
    let text = |value: &QualityValue| match value {
        QualityValue::Decimal(number) => number.as_f64().to_string(),
        other => other.to_string(),
    };
    let value = text(measure.value.as_ref()?);
    let limit = measure.threshold.as_ref().map_or(String::new(), |limit| format!(" (limit {})", text(limit)));
    Some(format!("`{}` {value}{limit}", measure.name))
}

/// The table of sentences for refused requests, by status.
fn refusals(request: Request) -> String {
    let mut text = "| Status | What is said |\n|---|---|\n".to_owned();
    for status in known(request) {
        let challenge = matches!(status, 401 | 407);
        let kind = match status {
            300..=399 => FailureKind::Redirected,
            _ if challenge => FailureKind::Challenged,
            _ => FailureKind::Refused,
        };
        let failure = Failure {
            status: Some(status),
            phrase: Some(phrase(status).to_owned()),
            refused_by: Some("192.0.2.20:5060".to_owned()),
            challenges: if challenge { 3 } else { 0 },
            credentials: if challenge { 2 } else { 0 },
            ..Failure::of(kind)
        };
        let _ = writeln!(text, "| {status} | {} |", failure.sentence(request));
    }
    text
}

/// The sentences for failures without a final response, and for those with more than a status.
fn other_failures() -> String {
    let by = |kind| Failure { refused_by: Some("192.0.2.20:5060".to_owned()), ..Failure::of(kind) };
    let busy =
        |kind| Failure { status: Some(486), phrase: Some("Busy Here".to_owned()), rang: true, ..by(kind) };
    let reason = |protocol: &str, cause, text: Option<&str>| {
        vec![Reason { protocol: protocol.to_owned(), cause: Some(cause), text: text.map(str::to_owned) }]
    };
    let completed = reason("SIP", 200, Some("Call completed elsewhere"));
    let cases = [
        ("No response at all", Failure { sent: 7, lasted_ms: 31_500, ..by(FailureKind::NoResponse) }),
        ("Taken, and nothing more", Failure { lasted_ms: 12_000, ..by(FailureKind::NoFinalResponse) }),
        (
            "It rang, and nothing more",
            Failure { rang: true, lasted_ms: 40_000, ..by(FailureKind::NoFinalResponse) },
        ),
        ("The caller hung up", Failure { rang: true, lasted_ms: 8_000, ..by(FailureKind::Cancelled) }),
        (
            "Another phone answered",
            Failure { rang: true, lasted_ms: 8_000, reasons: completed, ..by(FailureKind::Cancelled) },
        ),
        (
            "A password was asked for, and none was sent",
            Failure { status: Some(401), challenges: 1, ..by(FailureKind::Challenged) },
        ),
        (
            "With a Reason and a Warning",
            Failure {
                reasons: reason("Q.850", 17, None),
                warnings: vec!["399 192.0.2.20 \"all lines are busy\"".to_owned()],
                server: Some("Example PBX 4.2".to_owned()),
                ..busy(FailureKind::Refused)
            },
        ),
    ];
    let mut text = "| When | What is said |\n|---|---|\n".to_owned();
    for (when, failure) in cases {
        let _ = writeln!(text, "| {when} | {} |", failure.sentence(Request::Call));
    }
    text
}

/// The sentences of a record without a response of the far end, by the hangup cause of the caller's leg.
fn causes() -> String {
    let mut text = "| `hangup_cause` | What is said |\n|---|---|\n".to_owned();
    for cause in CAUSES {
        let _ = writeln!(text, "| `{cause}` | {} |", of_cause(cause).unwrap());
    }
    text
}

const CAUSES: [HangupCause; 23] = [
    HangupCause::AllottedTimeout,
    HangupCause::CallRejected,
    HangupCause::Crash,
    HangupCause::ExchangeRoutingError,
    HangupCause::IncompatibleDestination,
    HangupCause::Interworking,
    HangupCause::InvalidNumberFormat,
    HangupCause::LoseRace,
    HangupCause::NetworkOutOfOrder,
    HangupCause::NoAnswer,
    HangupCause::NoRouteDestination,
    HangupCause::NoUserResponse,
    HangupCause::NormalTemporaryFailure,
    HangupCause::NumberChanged,
    HangupCause::OriginatorCancel,
    HangupCause::OutgoingCallBarred,
    HangupCause::RecoveryOnTimerExpire,
    HangupCause::ServiceNotImplemented,
    HangupCause::ServiceUnavailable,
    HangupCause::SwitchCongestion,
    HangupCause::UnallocatedNumber,
    HangupCause::UserBusy,
    HangupCause::UserNotRegistered,
];

/// The page with each block as the code generates it. A block is enclosed by `<!-- said NAME -->` and `<!-- end -->`.
fn page(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("<!-- said ") {
        let (name, behind) = behind.split_once(" -->").unwrap();
        let (_, behind) = behind.split_once("<!-- end -->").expect("a block has an end");
        let block = match name {
            "calls" => refusals(Request::Call),
            "registrations" => refusals(Request::Registration),
            "failures" => other_failures(),
            "causes" => causes(),
            _ => CASES
                .iter()
                .filter(|case| case.0 == name)
                .map(|(_, title, play)| said(title, &play()))
                .collect(),
        };
        assert!(!block.is_empty(), "nothing is said of {name}");
        let _ = write!(out, "{before}<!-- said {name} -->\n{}\n<!-- end -->", block.trim_end());
        rest = behind;
    }
    out + rest
}

#[test]
fn the_page_says_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/verdicts.md");
    let text = fs::read_to_string(&path).unwrap();
    let written = page(&text);
    if std::env::var_os("SIDETONE_BLESS").is_some() {
        fs::write(&path, &written).unwrap();
        return;
    }
    for (line, other) in text.lines().zip(written.lines()) {
        assert_eq!(line, other, "docs/verdicts.md differs; SIDETONE_BLESS=1 writes it anew");
    }
    assert_eq!(text.lines().count(), written.lines().count(), "SIDETONE_BLESS=1 writes it anew");
}

#[test]
fn every_verdict_and_every_reason_stands_on_the_page() {
    let text = include_str!("../../docs/verdicts.md");
    for (name, ..) in CASES {
        assert!(text.contains(&format!("<!-- said {name} -->")), "there is no block {name}");
    }
    let reports: Vec<Report> = CASES.iter().map(|(.., play)| play()).collect();
    let shown: BTreeSet<(&str, &str)> = reports
        .iter()
        .filter_map(|report| Some((report.verdict?.as_str(), report.evidence.reason)))
        .collect();
    let asked = explain(&played("clean"), Party::Caller).checks;
    for check in asked {
        assert!(
            shown.contains(&(check.verdict.as_str(), check.reason)),
            "{} {}",
            check.verdict,
            check.reason
        );
    }
}
