//! Ladder tests: REGISTERs and time as input; responses and outputs as result.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::flow::{Flow, ListenerId, Protocol};
use crate::message::{Datagram, Message, Name, NameAddr, Request, parse_datagram};

const AOR: &str = "1001@acme.test";

/// Runs lines of the form `SECONDS COMMAND …` and compares the log.
///
/// `reg SOURCE CALL-ID CSEQ [header | header …]` registers, `tick` advances to that time, `probe ID SOURCE RESULT` is
/// the result of a probe; also `forget`, `fail SOURCE`, `look`.
fn check(script: &str, expected: Expect) {
    check_with(
        RegistrarConfig {
            keep_alive: Duration::from_secs(10_000),
            qualify: None,
            ..RegistrarConfig::default()
        },
        script,
        expected,
    );
}

pub(super) fn check_with(config: RegistrarConfig, script: &str, expected: Expect) {
    #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
    let start = Instant::now();
    let mut registrar = Registrar::new(config);
    let mut log = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (seconds, command) = line.split_once(' ').unwrap();
        let now = start + Duration::from_secs(seconds.parse().unwrap());
        let (verb, rest) = command.split_once(' ').unwrap_or((command, ""));
        match verb {
            "reg" => {
                let (request, flow) = register(rest);
                let result = Registration::from_request(&request, flow);
                let result = result.and_then(|registration| registrar.register(now, AOR, registration));
                let response = reply(&request, result.as_deref(), now);
                write!(log, "{seconds:>5}s {}", response.status()).unwrap();
                for name in [Name::MinExpires, Name::Contact, Name::Path, Name::Require] {
                    for value in response.headers().header_all(name) {
                        write!(log, "\n         {name}: {value}").unwrap();
                    }
                }
                log.push('\n');
            }
            "tick" => registrar.handle_input(now, Input::Timeout),
            "forget" => registrar.handle_input(now, Input::Forget { aor: AOR }),
            "probe" => {
                let (id, rest) = rest.split_once(' ').unwrap();
                let (source, result) = rest.split_once(' ').unwrap();
                let result = match result {
                    "answered" => ProbeResult::Answered(Duration::from_millis(20)),
                    "refused" => ProbeResult::Refused,
                    _ => ProbeResult::Unanswered,
                };
                let (binding, flow) = (BindingId(id.parse().unwrap()), flow(source));
                registrar.handle_input(now, Input::Probed { aor: AOR, binding, flow: &flow, result });
            }
            "fail" => registrar.handle_input(now, Input::FlowFailed(&flow(rest))),
            "look" => {
                for binding in registrar.lookup(AOR, now) {
                    writeln!(log, "{seconds:>5}s {} by {}", binding.contact, binding.flow.remote).unwrap();
                }
            }
            other => panic!("no command {other}"),
        }
        while let Some(output) = registrar.poll_output() {
            let text = match output {
                Output::KeepAlive { contact, flow, .. } => format!("keep alive {contact} by {}", flow.remote),
                Output::Moved { binding, flow } => format!("moved {} to {}", binding.0, flow.remote),
                Output::Reachability { binding, state, .. } => format!("{} is {state:?}", binding.0),
                Output::Registered { binding, is_new, .. } => {
                    format!("{} {}", if is_new { "new" } else { "refreshed" }, binding.0)
                }
                Output::Removed { binding, reason, .. } => format!("removed {} {reason:?}", binding.id.0),
            };
            writeln!(log, "{seconds:>5}s   > {text}").unwrap();
        }
    }
    writeln!(log, "{} left", registrar.bindings()).unwrap();
    expected.assert_eq(&log);
}

fn flow(source: &str) -> Flow {
    Flow::udp(ListenerId(0), source.parse().unwrap())
}

pub(super) fn register(text: &str) -> (Request, Flow) {
    let mut fields = text.splitn(4, ' ');
    let mut field = || fields.next().unwrap_or_default();
    let (source, call_id, cseq, headers) = (field(), field(), field(), field());
    let headers: String = headers
        .split('|')
        .map(str::trim)
        .filter(|h| !h.is_empty())
        .fold(String::new(), |all, h| all + h + "\r\n");
    let text = format!(
        "REGISTER sip:acme.test SIP/2.0\r\nVia: SIP/2.0/UDP {source};branch=z9hG4bK1;rport\r\nMax-Forwards: 70\r\n\
         From: <sip:{AOR}>;tag=1\r\nTo: <sip:{AOR}>\r\nCall-ID: {call_id}\r\nCSeq: {cseq} REGISTER\r\n{headers}\
         Content-Length: 0\r\n\r\n"
    );
    match parse_datagram(text.into_bytes().into()) {
        Ok(Datagram::Message(Message::Request(request))) => (request, flow(source)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_phone_comes_stays_and_goes() {
    check(
        "0 reg 192.0.2.1:5060 a 1 Contact: <sip:1001@192.0.2.1>
         0 reg 192.0.2.1:5060 a 2
         100 reg 192.0.2.1:5060 a 3 Contact: <sip:1001@192.0.2.1>;expires=120
         150 look
         150 reg 192.0.2.1:5060 a 4 Contact: <sip:1001@192.0.2.1> | Expires: 0
         150 look",
        expect![[r#"
                0s 200
                     Contact: <sip:1001@192.0.2.1>;expires=3600
                0s   > new 0
                0s 200
                     Contact: <sip:1001@192.0.2.1>;expires=3600
              100s 200
                     Contact: <sip:1001@192.0.2.1>;expires=120
              100s   > refreshed 0
              150s sip:1001@192.0.2.1 by 192.0.2.1:5060
              150s 200
              150s   > removed 0 Unregistered
            0 left
        "#]],
    );
}

#[test]
fn what_is_not_refreshed_ends() {
    check(
        "0 reg 192.0.2.1:5060 a 1 Contact: <sip:1001@192.0.2.1>;expires=60, <sip:1001@192.0.2.1:5070>;expires=61
         59 tick
         60 look
         60 tick
         61 look
         61 tick",
        expect![[r#"
                0s 200
                     Contact: <sip:1001@192.0.2.1:5070>;expires=61
                     Contact: <sip:1001@192.0.2.1>;expires=60
                0s   > new 0
                0s   > new 1
               60s sip:1001@192.0.2.1:5070 by 192.0.2.1:5060
               60s   > removed 0 Expired
               61s   > removed 1 Expired
            0 left
        "#]],
    );
}

#[test]
fn the_length_of_a_registration_is_ours_to_limit() {
    check(
        "0 reg 192.0.2.1:5060 a 1 Contact: <sip:1001@192.0.2.1>;expires=59
         0 reg 192.0.2.1:5060 a 2 Contact: <sip:1001@192.0.2.1> | Expires: 1
         0 reg 192.0.2.1:5060 a 3 Contact: <sip:1001@192.0.2.1> | Expires: 4294967295
         0 reg 192.0.2.1:5060 a 4 Contact: <sip:1001@192.0.2.1>;expires=rubbish",
        expect![[r#"
                0s 423
                     Min-Expires: 60
                0s 423
                     Min-Expires: 60
                0s 200
                     Contact: <sip:1001@192.0.2.1>;expires=7200
                0s   > new 0
                0s 200
                     Contact: <sip:1001@192.0.2.1>;expires=3600
                0s   > refreshed 0
            1 left
        "#]],
    );
}

#[test]
fn all_or_nothing() {
    check(
        "0 reg 192.0.2.1:5060 a 1 Contact: <sip:one@192.0.2.1>
         1 reg 192.0.2.1:5060 a 2 Contact: <sip:one@192.0.2.1>;expires=0, <sip:two@192.0.2.1>;expires=5
         1 reg 192.0.2.1:5060 a 3 Contact: <sip:one@192.0.2.1>;expires=0, <tel:+15551>
         1 look",
        expect![[r#"
                0s 200
                     Contact: <sip:one@192.0.2.1>;expires=3600
                0s   > new 0
                1s 423
                     Min-Expires: 60
                1s 400
                1s sip:one@192.0.2.1 by 192.0.2.1:5060
            1 left
        "#]],
    );
}

#[test]
fn order_counts_within_one_call_id() {
    check(
        "0 reg 192.0.2.1:5060 a 7 Contact: <sip:1001@192.0.2.1>
         1 reg 192.0.2.1:5060 a 7 Contact: <sip:1001@192.0.2.1>
         1 reg 192.0.2.1:5060 a 6 Contact: <sip:1001@192.0.2.1>;expires=0
         1 reg 192.0.2.1:5060 a 6 Contact: * | Expires: 0
         1 reg 192.0.2.1:5060 a 6 Contact: <sip:other@192.0.2.1>
         2 reg 192.0.2.1:5060 rebooted 1 Contact: <sip:1001@192.0.2.1>",
        expect![[r#"
                0s 200
                     Contact: <sip:1001@192.0.2.1>;expires=3600
                0s   > new 0
                1s 500
                1s 500
                1s 500
                1s 200
                     Contact: <sip:other@192.0.2.1>;expires=3600
                     Contact: <sip:1001@192.0.2.1>;expires=3599
                1s   > new 1
                2s 200
                     Contact: <sip:1001@192.0.2.1>;expires=3600
                     Contact: <sip:other@192.0.2.1>;expires=3599
                2s   > refreshed 0
            2 left
        "#]],
    );
}

#[test]
fn the_star_takes_everything_back() {
    check(
        "0 reg 192.0.2.1:5060 a 1 Contact: <sip:1001@192.0.2.1>
         0 reg 192.0.2.2:5060 b 1 Contact: <sip:1001@192.0.2.2>
         1 reg 192.0.2.1:5060 a 2 Contact: *
         1 reg 192.0.2.1:5060 a 3 Contact: * | Expires: 60
         1 reg 192.0.2.1:5060 a 4 Contact: * | Expires: 0",
        expect![[r#"
                0s 200
                     Contact: <sip:1001@192.0.2.1>;expires=3600
                0s   > new 0
                0s 200
                     Contact: <sip:1001@192.0.2.2>;expires=3600
                     Contact: <sip:1001@192.0.2.1>;expires=3600
                0s   > new 1
                1s 400
                1s 400
                1s 200
                1s   > removed 0 Unregistered
                1s   > removed 1 Unregistered
            0 left
        "#]],
    );
}

#[test]
fn several_phones_are_tried_best_first() {
    check(
        "0 reg 192.0.2.1:5060 a 1 Contact: <sip:1001@192.0.2.1>;q=0.5
         1 reg 192.0.2.2:5060 b 1 Contact: <sip:1001@192.0.2.2>;q=0.75
         2 reg 192.0.2.3:5060 c 1 Contact: <sip:1001@192.0.2.3>;q=0.5
         3 look",
        expect![[r#"
                0s 200
                     Contact: <sip:1001@192.0.2.1>;expires=3600;q=0.500
                0s   > new 0
                1s 200
                     Contact: <sip:1001@192.0.2.2>;expires=3600;q=0.750
                     Contact: <sip:1001@192.0.2.1>;expires=3599;q=0.500
                1s   > new 1
                2s 200
                     Contact: <sip:1001@192.0.2.2>;expires=3599;q=0.750
                     Contact: <sip:1001@192.0.2.3>;expires=3600;q=0.500
                     Contact: <sip:1001@192.0.2.1>;expires=3598;q=0.500
                2s   > new 2
                3s sip:1001@192.0.2.2 by 192.0.2.2:5060
                3s sip:1001@192.0.2.3 by 192.0.2.3:5060
                3s sip:1001@192.0.2.1 by 192.0.2.1:5060
            3 left
        "#]],
    );
}

#[test]
fn a_device_that_moves_leaves_no_ghost() {
    check(
        "0 reg 192.0.2.1:5060 a 1 Contact: <sip:1001@192.0.2.1>;+sip.instance=\"<urn:uuid:1>\";reg-id=1 | Supported: path, outbound
         1 reg 192.0.2.9:5060 b 1 Contact: <sip:1001@192.0.2.9>;+sip.instance=\"<urn:uuid:1>\";reg-id=1
         2 reg 192.0.2.9:5062 c 1 Contact: <sip:1001@192.0.2.9:5062>;+sip.instance=\"<urn:uuid:1>\";reg-id=2
         3 look",
        expect![[r#"
                0s 200
                     Contact: <sip:1001@192.0.2.1>;expires=3600;+sip.instance="<urn:uuid:1>";reg-id=1
                     Require: outbound
                0s   > new 0
                1s 200
                     Contact: <sip:1001@192.0.2.9>;expires=3600;+sip.instance="<urn:uuid:1>";reg-id=1
                1s   > moved 0 to 192.0.2.9:5060
                1s   > refreshed 0
                2s 200
                     Contact: <sip:1001@192.0.2.9:5062>;expires=3600;+sip.instance="<urn:uuid:1>";reg-id=2
                     Contact: <sip:1001@192.0.2.9>;expires=3599;+sip.instance="<urn:uuid:1>";reg-id=1
                2s   > new 1
                3s sip:1001@192.0.2.9:5062 by 192.0.2.9:5062
            2 left
        "#]],
    );
}

/// Beyond the limit, the oldest of the same device is removed first, then of the same User-Agent, then of any.
#[test]
fn one_phone_more_takes_the_place_of_the_nearest() {
    let of_device = "Contact: <sip:1001@192.0.2.4>;+sip.instance=\"<urn:uuid:d>\";reg-id=1 | User-Agent: C";
    let moved = "Contact: <sip:1001@192.0.2.5>;+sip.instance=\"<urn:uuid:d>\";reg-id=2 | User-Agent: D";
    let script = format!(
        "0 reg 192.0.2.1:5060 a 1 Contact: <sip:1001@192.0.2.1> | User-Agent: A
         1 reg 192.0.2.2:5060 b 1 Contact: <sip:1001@192.0.2.2> | User-Agent: B
         2 reg 192.0.2.4:5060 d 1 {of_device}
         3 reg 192.0.2.3:5060 c 1 Contact: <sip:1001@192.0.2.3> | User-Agent: B
         4 reg 192.0.2.5:5060 e 1 {moved}
         5 reg 192.0.2.6:5060 f 1 Contact: <sip:1001@192.0.2.6> | User-Agent: F
         5 look"
    );
    let config = RegistrarConfig { bindings_max: 3, qualify: None, ..RegistrarConfig::default() };
    check_with(
        config,
        &script,
        expect![[r#"
                0s 200
                     Contact: <sip:1001@192.0.2.1>;expires=3600
                0s   > new 0
                1s 200
                     Contact: <sip:1001@192.0.2.2>;expires=3600
                     Contact: <sip:1001@192.0.2.1>;expires=3599
                1s   > new 1
                2s 200
                     Contact: <sip:1001@192.0.2.4>;expires=3600;+sip.instance="<urn:uuid:d>";reg-id=1
                     Contact: <sip:1001@192.0.2.2>;expires=3599
                     Contact: <sip:1001@192.0.2.1>;expires=3598
                2s   > new 2
                3s 200
                     Contact: <sip:1001@192.0.2.3>;expires=3600
                     Contact: <sip:1001@192.0.2.4>;expires=3599;+sip.instance="<urn:uuid:d>";reg-id=1
                     Contact: <sip:1001@192.0.2.1>;expires=3597
                3s   > removed 1 Displaced
                3s   > new 3
                4s 200
                     Contact: <sip:1001@192.0.2.5>;expires=3600;+sip.instance="<urn:uuid:d>";reg-id=2
                     Contact: <sip:1001@192.0.2.3>;expires=3599
                     Contact: <sip:1001@192.0.2.1>;expires=3596
                4s   > removed 2 Displaced
                4s   > new 4
                5s 200
                     Contact: <sip:1001@192.0.2.6>;expires=3600
                     Contact: <sip:1001@192.0.2.5>;expires=3599;+sip.instance="<urn:uuid:d>";reg-id=2
                     Contact: <sip:1001@192.0.2.3>;expires=3598
                5s   > removed 0 Displaced
                5s   > new 5
                5s sip:1001@192.0.2.6 by 192.0.2.6:5060
                5s sip:1001@192.0.2.5 by 192.0.2.5:5060
                5s sip:1001@192.0.2.3 by 192.0.2.3:5060
            3 left
        "#]],
    );
}

/// The limit of the account applies, not that of the registrar; a lower one applies from the next REGISTER on.
#[test]
fn an_account_has_its_own_limit() {
    #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
    let now = Instant::now();
    let mut registrar = Registrar::new(RegistrarConfig { bindings_max: 2, ..RegistrarConfig::default() });
    let mut cseq = 0;
    let mut add = |registrar: &mut Registrar, bindings_max, count: usize| {
        cseq += 1;
        let contacts: Vec<String> = (0..count).map(|n| format!("<sip:{cseq}-{n}@192.0.2.1>")).collect();
        let (request, flow) = register(&format!("192.0.2.1:5060 a {cseq} Contact: {}", contacts.join(", ")));
        let registration =
            Registration { bindings_max, ..Registration::from_request(&request, flow).unwrap() };
        registrar.register(now, AOR, registration).map(<[Binding]>::len)
    };
    assert_eq!(add(&mut registrar, None, 3), Err(RegisterError::TooMany));
    assert_eq!(add(&mut registrar, Some(5), 4), Ok(4));
    assert_eq!(add(&mut registrar, Some(5), 4), Ok(5));
    assert_eq!(add(&mut registrar, Some(1), 2), Err(RegisterError::TooMany));
    assert_eq!(add(&mut registrar, Some(1), 1), Ok(1));
}

#[test]
fn too_many_phones() {
    let config = || RegistrarConfig { bindings_max: 2, ..RegistrarConfig::default() };
    check_with(
        config(),
        "0 reg 192.0.2.1:5060 a 1 Contact: <sip:1001@192.0.2.1>
         1 reg 192.0.2.2:5060 b 1 Contact: <sip:1001@192.0.2.2>
         2 reg 192.0.2.1:5060 a 2 Contact: <sip:1001@192.0.2.1>
         3 reg 192.0.2.3:5060 c 1 Contact: <sip:1001@192.0.2.3>
         4 reg 192.0.2.3:5060 c 2 Contact: <sip:a@192.0.2.3>, <sip:b@192.0.2.3>, <sip:c@192.0.2.3>",
        expect![[r#"
                0s 200
                     Contact: <sip:1001@192.0.2.1>;expires=3600
                0s   > new 0
                1s 200
                     Contact: <sip:1001@192.0.2.2>;expires=3600
                     Contact: <sip:1001@192.0.2.1>;expires=3599
                1s   > new 1
                2s 200
                     Contact: <sip:1001@192.0.2.1>;expires=3600
                     Contact: <sip:1001@192.0.2.2>;expires=3599
                2s   > refreshed 0
                3s 200
                     Contact: <sip:1001@192.0.2.3>;expires=3600
                     Contact: <sip:1001@192.0.2.1>;expires=3599
                3s   > removed 1 Displaced
                3s   > new 2
                4s 403
            2 left
        "#]],
    );
    check_with(
        RegistrarConfig { aors_max: 0, ..config() },
        "0 reg 192.0.2.1:5060 a 1 Contact: <sip:1001@192.0.2.1>
         0 reg 192.0.2.1:5060 a 2",
        expect![[r#"
                0s 503
                0s 200
            0 left
        "#]],
    );
}

#[test]
fn a_nat_is_kept_open_and_answered_through() {
    check_with(
        RegistrarConfig::default(),
        "0 reg 198.51.100.7:31000 a 1 Contact: <sip:1001@10.0.0.5:5060>;expires=60
         24 tick
         25 tick
         49 tick
         51 look
         55 tick
         60 tick",
        expect![[r#"
                0s 200
                     Contact: <sip:1001@10.0.0.5:5060>;expires=60
                0s   > new 0
               25s   > keep alive sip:1001@10.0.0.5:5060 by 198.51.100.7:31000
               51s sip:1001@10.0.0.5:5060 by 198.51.100.7:31000
               55s   > keep alive sip:1001@10.0.0.5:5060 by 198.51.100.7:31000
               60s   > removed 0 Expired
            0 left
        "#]],
    );
    check_with(
        RegistrarConfig::default(),
        "0 reg 10.0.0.7:5060 a 1 Contact: <sip:1001@10.0.0.7>;expires=60
         50 tick
         50 reg [2001:db8::1]:5070 b 1 Contact: <sip:1001@[2001:DB8::1]:5070>;expires=60
         60 tick
         109 tick
         110 tick",
        expect![[r#"
                0s 200
                     Contact: <sip:1001@10.0.0.7>;expires=60
                0s   > new 0
               50s 200
                     Contact: <sip:1001@[2001:db8::1]:5070>;expires=60
                     Contact: <sip:1001@10.0.0.7>;expires=10
               50s   > new 1
               60s   > removed 0 Expired
              109s   > keep alive sip:1001@[2001:db8::1]:5070 by [2001:db8::1]:5070
              110s   > removed 1 Expired
            0 left
        "#]],
    );
}

#[test]
fn a_path_is_kept_and_told() {
    check(
        "0 reg 192.0.2.50:5060 a 1 Path: <sip:edge.example;lr> | Contact: <sip:1001@10.0.0.5> | Supported: path",
        expect![[r#"
                0s 200
                     Contact: <sip:1001@10.0.0.5>;expires=3600
                     Path: <sip:edge.example;lr>
                0s   > new 0
            1 left
        "#]],
    );
}

#[test]
fn lost_flows_and_deleted_accounts() {
    check(
        "0 reg 192.0.2.1:5060 a 1 Contact: <sip:1001@192.0.2.1>
         0 reg 192.0.2.2:5060 b 1 Contact: <sip:1001@192.0.2.2>
         1 fail 192.0.2.1:5060
         1 fail 192.0.2.77:5060
         2 forget
         2 forget",
        expect![[r#"
                0s 200
                     Contact: <sip:1001@192.0.2.1>;expires=3600
                0s   > new 0
                0s 200
                     Contact: <sip:1001@192.0.2.2>;expires=3600
                     Contact: <sip:1001@192.0.2.1>;expires=3600
                0s   > new 1
                1s   > removed 0 FlowFailed
                2s   > removed 1 Forgotten
            0 left
        "#]],
    );
}

/// Registers a device whose contact is 10.0.0.5 behind 192.0.2.1, with this contact and protocol.
fn registered(
    registrar: &mut Registrar,
    now: Instant,
    remote: &str,
    protocol: Protocol,
    contact: &str,
) -> Flow {
    let (request, flow) = register(&format!("{remote} {remote}{contact} 1 Contact: {contact}"));
    let flow = Flow { protocol, ..flow };
    let registration = Registration::from_request(&request, flow).unwrap();
    registrar.register(now, AOR, registration).unwrap();
    flow
}

/// §18.1.1 and RFC 3263 §4.1: the cases in which a device is reached over a connection.
#[test]
fn connections_of_a_device_are_its_own() {
    #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
    let now = Instant::now();
    let contact = "<sip:1001@10.0.0.5:5060>";
    let other =
        |of: &str, remote: &str, contact: &str| (of.to_owned(), remote.to_owned(), contact.to_owned());
    for (name, remote, contact_of_tcp) in [
        other("the same address and port", "192.0.2.1:40001", "<sip:1001@10.0.0.5;transport=tcp>"),
        other(
            "another port: another phone there",
            "192.0.2.1:40001",
            "<sip:1001@10.0.0.5:5062;transport=tcp>",
        ),
        other("another phone behind the NAT", "192.0.2.1:40001", "<sip:1001@10.0.0.6;transport=tcp>"),
        other("another network", "192.0.2.2:40001", "<sip:1001@10.0.0.5;transport=tcp>"),
        other("a name", "192.0.2.1:40001", "<sip:1001@phone.invalid;transport=tcp>"),
    ] {
        let mut registrar = Registrar::new(RegistrarConfig::default());
        let udp = registered(&mut registrar, now, "192.0.2.1:30000", Protocol::Udp, contact);
        let tcp = registered(&mut registrar, now, &remote, Protocol::Tcp, &contact_of_tcp);
        let asked = NameAddr::parse(contact).unwrap().uri;
        let found = registrar.connection_of(AOR, now, &asked, &udp);
        assert_eq!(found, (name == "the same address and port").then_some(tcp), "{name}");
    }
    let mut registrar = Registrar::new(RegistrarConfig::default());
    let instance = "+sip.instance=\"<urn:uuid:1>\"";
    let one = format!("<sip:1001@10.0.0.5>;{instance};reg-id=1");
    let two = format!("<sip:1001@172.16.0.9;transport=tcp>;{instance};reg-id=2");
    let udp = registered(&mut registrar, now, "192.0.2.1:30000", Protocol::Udp, &one);
    let tcp = registered(&mut registrar, now, "198.51.100.7:40001", Protocol::Tcp, &two);
    let asked = NameAddr::parse(&one).unwrap().uri;
    assert_eq!(registrar.connection_of(AOR, now, &asked, &udp), Some(tcp), "the same instance");
}

/// A contact cannot make us connect to an address other than its source.
#[test]
fn a_contact_that_asks_for_tcp_is_connected_to_where_it_was_seen() {
    #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
    let now = Instant::now();
    for (contact, expected) in [
        ("<sip:1001@192.0.2.1>", None),
        ("<sip:1001@192.0.2.1;transport=tcp>", Some("192.0.2.1:5060")),
        ("<sip:1001@192.0.2.1:5070;transport=TCP>", Some("192.0.2.1:5070")),
        ("<sip:1001@10.0.0.5;transport=tcp>", None),
        ("<sip:1001@phone.invalid;transport=tcp>", None),
    ] {
        let mut registrar = Registrar::new(RegistrarConfig::default());
        let udp = registered(&mut registrar, now, "192.0.2.1:5060", Protocol::Udp, contact);
        let way = registrar.lookup(AOR, now)[0].way();
        assert_eq!(way, expected.map_or(udp, |to| Flow::tcp_to(to.parse().unwrap())), "{contact}");
    }
}

proptest! {
    /// For any events in any order: the bounds hold, nothing outlives its expiry, and every binding has a timeout.
    #[test]
    fn any_order_of_events_is_survived(events in prop::collection::vec((0_u32..120, 0_u32..8, 0_u32..4, 0_u32..3, 0_u32..200), 0..80)) {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
        let start = Instant::now();
        let config = RegistrarConfig { bindings_max: 3, aors_max: 2, ..RegistrarConfig::default() };
        let mut registrar = Registrar::new(config);
        let mut now = start;
        for (seconds, verb, phone, cseq, expires) in events {
            now += Duration::from_secs(seconds.into());
            let aor = format!("{}@acme.test", phone % 3);
            let text = format!("192.0.2.{phone}:5060 {phone} {cseq} Contact: <sip:a@192.0.2.{}>;expires={expires}", phone / 2);
            let (request, flow) = register(if verb == 7 { "192.0.2.1:5060 x 9 Contact: * | Expires: 0" } else { &text });
            match verb {
                0 => registrar.handle_input(now, Input::Timeout),
                1 => registrar.handle_input(now, Input::FlowFailed(&flow)),
                2 => registrar.handle_input(now, Input::Forget { aor: &aor }),
                _ => {
                    let registration = Registration::from_request(&request, flow).unwrap();
                    let _ = registrar.register(now, &aor, registration);
                }
            }
            while registrar.poll_output().is_some() {}
            prop_assert!(registrar.len() <= 2 && registrar.bindings() <= 6);
            let alive: usize = (0..3).map(|aor| registrar.lookup(&format!("{aor}@acme.test"), start).len()).sum();
            prop_assert_eq!(registrar.bindings(), alive, "one wake for each binding");
            if verb == 0 {
                prop_assert!(registrar.next_timeout().is_none_or(|at| at > now));
            }
        }
        registrar.handle_input(now + Duration::from_secs(7_201), Input::Timeout);
        prop_assert!(registrar.is_empty());
    }
}

/// A device that reconnects keeps its binding, so its calls are found. It is identified by its instance, its contact,
/// or the Call-ID of its registrations.
#[test]
fn a_device_that_comes_back_from_another_source_keeps_its_binding() {
    check(
        "0 reg 192.0.2.1:4001 a 1 Contact: <sip:1001@10.0.0.1:5060>
         9 reg 192.0.2.1:4002 a 2 Contact: <sip:1001@10.0.0.1:5060>
         10 fail 192.0.2.1:4002
         12 reg 192.0.2.1:4003 b 1 Contact: <sip:1001@10.0.0.1:5060>
         20 fail 192.0.2.1:4003
         22 reg 192.0.2.1:4004 b 2 Contact: <sip:1001@10.0.0.1:5999>
         30 fail 192.0.2.1:4004
         32 reg 192.0.2.1:4005 c 1 Contact: <sip:1001@10.0.0.1:6000>
         40 reg 192.0.2.1:4006 d 1 Contact: <sip:1001@10.0.0.2>;+sip.instance=\"<urn:x:1>\"
         41 fail 192.0.2.1:4006
         42 forget
         43 reg 192.0.2.1:4007 d 2 Contact: <sip:1001@10.0.0.2>;+sip.instance=\"<urn:x:1>\"",
        expect![[r#"
                0s 200
                     Contact: <sip:1001@10.0.0.1:5060>;expires=3600
                0s   > new 0
                9s 200
                     Contact: <sip:1001@10.0.0.1:5060>;expires=3600
                9s   > moved 0 to 192.0.2.1:4002
                9s   > refreshed 0
               10s   > removed 0 FlowFailed
               12s 200
                     Contact: <sip:1001@10.0.0.1:5060>;expires=3600
               12s   > moved 0 to 192.0.2.1:4003
               12s   > new 0
               20s   > removed 0 FlowFailed
               22s 200
                     Contact: <sip:1001@10.0.0.1:5999>;expires=3600
               22s   > moved 0 to 192.0.2.1:4004
               22s   > new 0
               30s   > removed 0 FlowFailed
               32s 200
                     Contact: <sip:1001@10.0.0.1:6000>;expires=3600
               32s   > new 1
               40s 200
                     Contact: <sip:1001@10.0.0.2>;expires=3600;+sip.instance="<urn:x:1>"
                     Contact: <sip:1001@10.0.0.1:6000>;expires=3592
               40s   > new 2
               41s   > removed 2 FlowFailed
               42s   > removed 1 Forgotten
               43s 200
                     Contact: <sip:1001@10.0.0.2>;expires=3600;+sip.instance="<urn:x:1>"
               43s   > new 3
            1 left
        "#]],
    );
}
