//! Outbound calls, from the carriers' view: the trunks that get credentials, the order of attempts, and addresses that
//! are never called.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_model::call::{Direction, HangupCause};
use sidetone_model::device::Device;
use sidetone_model::directory::{Network, Secret, Trunk};
use sidetone_model::rating::{Increments, Price, RateSnapshot, SellRate, Validity};
use sidetone_sip::message::{Digest, Method, Request, StatusCode};
use sidetone_sip::ua::{Invite, Reply};
use uuid::Uuid;

use crate::machine::{Input, Notice};
use crate::rating::Tariffs;
use crate::tests::network::{Carrier, Net, PHONE, Plan, SWITCH, acme, address, challenge, extension, trunk};
use crate::trunk_dns::{Answer, Server};

const FIRST: &str = "203.0.113.1:5060";
const SECOND: &str = "203.0.113.2:5060";
const WORLD: &str = "+447700900123";

fn with_login(trunk: Trunk, realm: &str) -> Trunk {
    Trunk { username: "acme".into(), password: Secret("hush".into()), realm: realm.into(), ..trunk }
}

fn credentials(carrier: &Carrier) -> usize {
    // The ACK of a 2xx repeats the credentials of its INVITE (RFC 3261 §22.1).
    let has = |request: &&Request| {
        *request.method() != Method::Ack && {
            request.header("Authorization").is_some() || request.header("Proxy-Authorization").is_some()
        }
    };
    carrier.requests.iter().filter(has).count()
}

fn network(of: &str) -> Network {
    Network { address: address(of).ip(), prefix_len: 32 }
}

/// An INVITE that claims to come from `from`.
fn invite(number: &str, from: &str, more: &str) -> String {
    format!(
        "INVITE sip:{number}@acme.test SIP/2.0\r\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{number}\r\n\
         Max-Forwards: 70\r\nFrom: <sip:+441632960000@acme.test>;tag=1\r\nTo: <sip:{number}@acme.test>\r\n\
         Call-ID: {number}{from}\r\nCSeq: 1 INVITE\r\nContact: <sip:1001@{from}>\r\n{more}\
         Content-Length: 0\r\n\r\n"
    )
}

fn refuse(status: u16) -> Plan {
    Plan::Refuse(status, Vec::new())
}

#[test]
fn the_carrier_sees_the_number_of_the_line_and_nothing_that_the_phone_claims() {
    let mut net = Net::new(acme(vec![trunk(1, FIRST)]));
    net.carrier(FIRST, [Plan::Accept]);
    let invite = Invite::new(
        "sip:07700-900123@acme.test",
        "\"Mallory\" <sip:+4999999@acme.test>",
        "<sip:07700-900123@acme.test>",
    );
    let invite = invite.header("User-Agent", "Example\t  Phone 7");
    net.dial_by(invite.header("P-Asserted-Identity", "<sip:+4999999@acme.test>").header("X-Secret", "1"));
    assert_eq!(net.heard, ["200"]);
    let invite = net.carriers[&address(FIRST)].of(&Method::Invite)[0].clone();
    assert_eq!(invite.uri(), format!("sip:{WORLD}@203.0.113.1:5060"));
    assert_eq!(invite.from().unwrap().uri.user_decoded().unwrap(), "+442071230000");
    assert_eq!(invite.to().unwrap().uri.user_decoded().unwrap(), WORLD);
    let asserted: Vec<&str> = invite.header_all("P-Asserted-Identity").collect();
    assert_eq!(asserted, ["<sip:+442071230000@203.0.113.1:5060>"]);
    assert_eq!((invite.header("X-Secret"), invite.header("Privacy")), (None, None));
    assert_eq!(invite.max_forwards(), Some(69));
    assert!(!String::from_utf8_lossy(&invite.to_bytes()).contains("4999999"));

    net.hang_up();
    let record = &net.records[0];
    assert_eq!((record.direction, record.trunk_id), (Direction::Outbound, Some(trunk(1, FIRST).id)));
    assert_eq!(record.extension_id, Some(extension(11, 1, "", "").id));
    assert_eq!(record.caller_number.as_deref(), Some("+442071230000"));
    assert_eq!(record.destination_number.as_deref(), Some(WORLD));
    assert_eq!(record.dialled_number.as_deref(), Some("07700-900123"));
    // The devices of both parties; no media arrived, so that their networks are those of their SIP.
    let device = |user_agent: &str, network: &str| Device {
        user_agent: Some(user_agent.to_owned()),
        network: Some(network.to_owned()),
    };
    assert_eq!(record.device_a, device("Example Phone 7", "192.0.2.0/24"));
    assert_eq!(record.device_b, device("Example Gateway 2.0", "203.0.113.0/24"));
}

#[test]
fn a_withheld_number_is_asserted_to_the_carrier_and_shown_to_nobody() {
    for (from, privacy) in [("<sip:1001@acme.test>", Some("id")), ("<sip:anonymous@anonymous.invalid>", None)]
    {
        let mut net = Net::new(acme(vec![trunk(1, FIRST)]));
        net.carrier(FIRST, [Plan::Accept]);
        let mut invite =
            Invite::new(format!("sip:{WORLD}@acme.test"), from, format!("<sip:{WORLD}@acme.test>"));
        if let Some(privacy) = privacy {
            invite = invite.header("Privacy", privacy);
        }
        net.dial_by(invite);
        assert_eq!(net.heard, ["200"]);
        let invite = net.carriers[&address(FIRST)].of(&Method::Invite)[0];
        assert_eq!(invite.from().unwrap().uri.to_string(), "sip:anonymous@anonymous.invalid");
        assert_eq!(invite.header("Privacy"), Some("id"));
        assert_eq!(invite.header("P-Asserted-Identity"), Some("<sip:+442071230000@203.0.113.1:5060>"));
        assert!(!invite.header("Contact").unwrap().contains("4420"));
    }
}

#[test]
fn a_challenge_is_answered_and_its_nonce_used_again() {
    for (status, header) in [(401, "Authorization"), (407, "Proxy-Authorization")] {
        for algorithm in ["", ", algorithm=MD5", ", algorithm=SHA-256"] {
            let mut net = Net::new(acme(vec![with_login(trunk(1, FIRST), "")]));
            let asks = challenge(status, "carrier", "n1", &format!(", qop=\"auth\"{algorithm}"));
            net.carrier(FIRST, [asks, Plan::Accept]);
            net.dial(WORLD);
            assert_eq!(net.heard, ["200"]);
            net.hang_up();
            net.dial(WORLD);
            assert_eq!(net.heard, ["200", "200"]);
            let carrier = &net.carriers[&address(FIRST)];
            let counts: Vec<_> = carrier.of(&Method::Invite).iter().map(|i| i.header(header)).collect();
            assert_eq!((counts.len(), counts[0]), (3, None));
            for (count, answer) in ["00000001", "00000002"].iter().zip(&counts[1..]) {
                let answer = Digest::parse(answer.unwrap()).unwrap();
                assert_eq!((answer.inner("nc"), answer.inner("nonce")), (Some(*count), Some("n1")));
                assert_eq!(answer.inner("username"), Some("acme"));
            }
        }
    }
}

/// A stale nonce is replaced; a wrong password is tried once, and the operator is notified.
#[test]
fn each_nonce_is_answered_once() {
    let mut net = Net::new(acme(vec![with_login(trunk(1, FIRST), "")]));
    let stale = challenge(407, "carrier", "n2", ", qop=\"auth\", stale=true");
    net.carrier(FIRST, [challenge(407, "carrier", "n1", ", qop=\"auth\""), stale, Plan::Accept]);
    net.dial(WORLD);
    assert_eq!(net.heard, ["200"]);

    // The nonce of the first call is refused for the second, and the carrier does not send `stale`.
    net.hang_up();
    net.carrier(FIRST, [challenge(407, "carrier", "n3", ", qop=\"auth\""), Plan::Accept]);
    net.dial(WORLD);
    assert_eq!(net.heard, ["200", "200"]);

    let mut net = Net::new(acme(vec![with_login(trunk(1, FIRST), "")]));
    net.carrier(FIRST, [challenge(407, "carrier", "n1", ", qop=\"auth\"")]);
    net.dial(WORLD);
    assert_eq!(net.heard, ["480 Temporarily Unavailable"]);
    assert_eq!(credentials(&net.carriers[&address(FIRST)]), 1);
    assert_eq!(net.notices, [Notice::Credentials(trunk(1, FIRST).id)]);
    net.wait(Duration::from_secs(5));
    assert_eq!(net.records[0].sip_status, Some(407));
    assert_eq!(net.records[0].hangup_cause, Some(HangupCause::CallRejected));
}

/// S3: only the configured peer gets credentials, and only for its realm.
#[test]
fn s3_credentials_go_to_the_configured_realm_and_peer_alone() {
    let qop = ", qop=\"auth\"";
    // The challenge has another realm than the configured one.
    let mut net = Net::new(acme(vec![with_login(trunk(1, FIRST), "carrier.example")]));
    net.carrier(FIRST, [challenge(401, "other", "n1", qop)]);
    net.dial(WORLD);
    assert_eq!(credentials(&net.carriers[&address(FIRST)]), 0);

    // The trunk that challenges has no credentials; another trunk has.
    let mut net = Net::new(acme(vec![trunk(1, FIRST), with_login(trunk(2, SECOND), "")]));
    net.carrier(FIRST, [challenge(407, "carrier", "n1", qop)]);
    net.carrier(SECOND, [Plan::Accept]);
    net.dial(WORLD);
    assert_eq!(credentials(&net.carriers[&address(FIRST)]), 0);

    // The challenge to our BYE has another realm, or the call was never challenged before.
    for (realm, invites) in
        [("other", vec![challenge(407, "carrier", "n1", qop), Plan::Accept]), ("carrier", vec![Plan::Accept])]
    {
        for status in [401, 407] {
            let mut net = Net::new(acme(vec![with_login(trunk(1, FIRST), "")]));
            let before = invites.len() - 1;
            net.carrier(FIRST, invites.clone()).byes = [challenge(status, realm, "n2", qop)].into();
            net.dial(WORLD);
            net.hang_up();
            let carrier = &net.carriers[&address(FIRST)];
            assert_eq!(
                (carrier.of(&Method::Bye).len(), credentials(carrier)),
                (1, before),
                "{realm} {status}"
            );
        }
    }

    // Another address sends a forged challenge with all the right headers.
    let mut net = Net::new(acme(vec![with_login(trunk(1, FIRST), "")]));
    net.carrier(FIRST, [Plan::Silence]);
    net.dial(WORLD);
    let invite = net.carriers[&address(FIRST)].of(&Method::Invite)[0].clone();
    let forged = format!(
        "SIP/2.0 407 Who?\r\nVia: {}\r\nFrom: {}\r\nTo: {};tag=x\r\nCall-ID: {}\r\nCSeq: 1 INVITE\r\n\
         Proxy-Authenticate: Digest realm=\"carrier\", nonce=\"n1\"{qop}\r\nContent-Length: 0\r\n\r\n",
        invite.header("Via").unwrap(),
        invite.header("From").unwrap(),
        invite.header("To").unwrap(),
        invite.call_id(),
    );
    net.inject("203.0.113.66:5060", forged);
    assert_eq!(credentials(&net.carriers[&address(FIRST)]), 0);
    assert_eq!(net.heard, ["480 Temporarily Unavailable"]);
}

/// S3, the other half: a phone that challenges never gets a trunk's credentials.
#[test]
fn s3_a_called_phone_gets_no_credentials() {
    for status in [401, 407] {
        let mut from_carrier = with_login(trunk(1, PHONE), "");
        from_carrier.accept_from = vec![network(FIRST)];
        let mut net = Net::new(acme(vec![from_carrier]));
        net.register();
        // The trunk has the same address as the phone: only the kind of the call distinguishes them.
        let Plan::Refuse(_, headers) = challenge(status, "carrier", "n1", ", qop=\"auth\"") else { panic!() };
        let reply = Reply::new(StatusCode::new(status).unwrap());
        net.refusal = Some(reply.header(headers[0].0, headers[0].1.clone()));
        net.inject(FIRST, invite("+442071230000", FIRST, ""));
        assert_eq!(net.called.len(), 1, "challenged, and not called again");
        assert!(net.called[0].header("Authorization").is_none());
        assert_eq!(net.records[0].sip_status, Some(status));
    }
}

/// A carrier that challenges the BYE continues to bill the call until it gets the credentials.
#[test]
fn a_challenged_bye_is_said_again_to_the_realm_of_the_call() {
    let mut net = Net::new(acme(vec![with_login(trunk(1, FIRST), "")]));
    let qop = ", qop=\"auth\"";
    net.carrier(FIRST, [challenge(407, "carrier", "n1", qop), Plan::Accept]).byes =
        [challenge(407, "carrier", "n2", qop), Plan::Accept].into();
    net.dial(WORLD);
    net.hang_up();
    let carrier = &net.carriers[&address(FIRST)];
    let byes = carrier.of(&Method::Bye);
    assert_eq!(byes.len(), 2);
    let answer = Digest::parse(byes[1].header("Proxy-Authorization").unwrap()).unwrap();
    assert_eq!((answer.inner("nonce"), answer.inner("nc")), (Some("n2"), Some("00000001")));
    assert!(byes[1].cseq().unwrap().number > byes[0].cseq().unwrap().number);
}

#[test]
fn a_silent_trunk_makes_room_after_six_seconds_and_is_tried_last_for_a_while() {
    let mut net = Net::new(acme(vec![trunk(1, FIRST), trunk(2, SECOND)]));
    net.carrier(FIRST, [Plan::Silence]);
    net.carrier(SECOND, [Plan::Accept]);
    net.dial(WORLD);
    net.wait(Duration::from_millis(5_900));
    assert!(net.heard.is_empty());
    net.wait(Duration::from_millis(200));
    assert_eq!(net.heard, ["200"]);
    net.hang_up();
    assert_eq!((net.records[0].trunk_id, net.records[0].sip_status), (Some(trunk(2, SECOND).id), Some(200)));
    net.dial(WORLD);
    assert_eq!(net.heard, ["200", "200"], "the silent one is not waited for again");
    net.hang_up();
    net.wait(Duration::from_secs(31));
    net.carrier(FIRST, [Plan::Accept]);
    net.dial(WORLD);
    net.hang_up();
    assert_eq!(net.records[2].trunk_id, Some(trunk(1, FIRST).id));
}

#[test]
fn when_all_trunks_are_silent_nothing_was_received() {
    let mut net = Net::new(acme(vec![trunk(1, FIRST), trunk(2, SECOND)]));
    net.carrier(FIRST, [Plan::Silence]);
    net.carrier(SECOND, [Plan::Silence]);
    net.dial(WORLD);
    net.wait(Duration::from_secs(15));
    assert_eq!(net.heard, ["408 Request Timeout"]);
    let record = &net.records[0];
    assert_eq!((record.sip_status, record.bridge_cause), (None, None));
    assert_eq!(record.hangup_cause, Some(HangupCause::RecoveryOnTimerExpire));
    assert_eq!(record.trunk_id, Some(trunk(2, SECOND).id));
    net.wait(Duration::from_secs(120));
    assert_eq!((net.switch.live_calls(), net.switch.legs()), (0, 0));
}

#[test]
fn failures_of_a_trunk_go_on_to_the_next_and_those_of_the_number_do_not() {
    for status in [408, 500, 502, 503, 504] {
        let mut net = Net::new(acme(vec![trunk(1, FIRST), trunk(2, SECOND)]));
        net.carrier(FIRST, [refuse(status)]);
        net.carrier(SECOND, [Plan::Accept]);
        net.dial(WORLD);
        assert_eq!(net.heard, ["200"], "{status}");
    }
    for status in [404, 480, 484, 486, 600, 603, 604] {
        let mut net = Net::new(acme(vec![trunk(1, FIRST), trunk(2, SECOND)]));
        net.carrier(FIRST, [refuse(status)]);
        net.carrier(SECOND, [Plan::Accept]);
        net.dial(WORLD);
        assert!(net.carriers[&address(SECOND)].requests.is_empty(), "{status}");
        assert_eq!(net.records[0].sip_status, Some(status));
    }
}

#[test]
fn a_trunk_that_asks_for_rest_gets_it() {
    let mut net = Net::new(acme(vec![trunk(1, FIRST)]));
    net.carrier(FIRST, [Plan::Refuse(503, vec![("Retry-After", "20 (overload)".into())]), Plan::Accept]);
    net.dial(WORLD);
    assert_eq!(net.heard, ["500 Server Internal Error"]);
    net.dial(WORLD);
    assert_eq!(net.heard[1], "503 Service Unavailable");
    assert_eq!(net.carriers[&address(FIRST)].of(&Method::Invite).len(), 1);
    let record = &net.records[1];
    assert_eq!((record.hangup_cause, record.sip_status), (Some(HangupCause::NetworkOutOfOrder), None));
    net.wait(Duration::from_secs(21));
    net.dial(WORLD);
    assert_eq!(net.heard[2], "200");
}

/// RFC 3326: the cause of a refusal is recorded and passed on; a callee's own 487 is not a cancellation.
#[test]
fn the_reason_of_a_refusal_is_the_cause_of_the_call() {
    let q850 = |cause: &str| vec![("Reason", format!("Q.850;cause={cause}"))];
    for (status, headers, cause, sent) in [
        (
            480,
            q850("19;text=\"no answer\""),
            HangupCause::NoAnswer,
            Some("Q.850;cause=19;text=\"NO_ANSWER\""),
        ),
        (480, vec![], HangupCause::NoUserResponse, Some("Q.850;cause=18;text=\"NO_USER_RESPONSE\"")),
        (
            404,
            q850("28"),
            HangupCause::InvalidNumberFormat,
            Some("Q.850;cause=28;text=\"INVALID_NUMBER_FORMAT\""),
        ),
        (487, vec![], HangupCause::NormalUnspecified, Some("Q.850;cause=31;text=\"NORMAL_UNSPECIFIED\"")),
        (
            302,
            vec![],
            HangupCause::RedirectionToNewDestination,
            Some("Q.850;cause=23;text=\"REDIRECTION_TO_NEW_DESTINATION\""),
        ),
    ] {
        let mut net = Net::new(acme(vec![trunk(1, FIRST)]));
        net.carrier(FIRST, [Plan::Refuse(status, headers)]);
        net.dial(WORLD);
        let record = &net.records[0];
        assert_eq!((record.hangup_cause, record.bridge_cause), (Some(cause), Some(cause)), "{status}");
        assert_eq!(net.reasons.last().map(String::as_str), sent, "{status}");
    }
}

/// Returns the Reason headers of the requests of one method that a carrier received.
fn reasons(net: &Net, method: &Method) -> Vec<String> {
    let requests = net.carriers[&address(FIRST)].of(method);
    let reasons = requests.iter().filter_map(|request| request.headers().header("Reason"));
    reasons.map(str::to_owned).collect()
}

#[test]
fn a_party_that_hangs_up_gives_its_reason_to_the_other() {
    let mut net = Net::new(acme(vec![trunk(1, FIRST)]));
    net.carrier(FIRST, [Plan::Accept]);
    net.dial(WORLD);
    net.hang_up();
    assert_eq!(reasons(&net, &Method::Bye), ["Q.850;cause=16;text=\"NORMAL_CLEARING\""]);
    let mut net = Net::new(acme(vec![trunk(1, FIRST)]));
    net.carrier(FIRST, [Plan::Accept]);
    net.dial(WORLD);
    net.phone.hang_up_because(net.now(), net.leg.unwrap(), Some("Q.850;cause=38".to_owned()));
    net.run();
    assert_eq!(net.records[0].hangup_cause, Some(HangupCause::NetworkOutOfOrder));
    assert_eq!(reasons(&net, &Method::Bye), ["Q.850;cause=38;text=\"NETWORK_OUT_OF_ORDER\""]);
}

#[test]
fn a_cancel_says_that_the_call_was_taken_elsewhere() {
    const ELSEWHERE: &str = "SIP;cause=200;text=\"Call completed elsewhere\"";
    let mut net = Net::new(acme(vec![trunk(1, FIRST)]));
    net.carrier(FIRST, [Plan::Ring]);
    net.dial(WORLD);
    net.phone.hang_up_because(net.now(), net.leg.unwrap(), Some(ELSEWHERE.to_owned()));
    net.run();
    assert_eq!(net.records[0].hangup_cause, Some(HangupCause::LoseRace));
    assert_eq!(reasons(&net, &Method::Cancel), [ELSEWHERE]);
}

#[test]
fn giving_up_reaches_the_trunk() {
    let mut net = Net::new(acme(vec![trunk(1, FIRST), trunk(2, SECOND)]));
    net.carrier(FIRST, [Plan::Ring]);
    net.carrier(SECOND, [Plan::Accept]);
    net.dial(WORLD);
    assert_eq!(net.heard, ["180"]);
    net.hang_up();
    assert_eq!(net.carriers[&address(FIRST)].of(&Method::Cancel).len(), 1);
    assert!(net.carriers[&address(SECOND)].requests.is_empty());
    assert_eq!(net.records[0].hangup_cause, Some(HangupCause::OriginatorCancel));
}

#[test]
fn a_named_trunk_is_asked_for_once_and_its_servers_tried_in_order() {
    let mut net = Net::new(acme(vec![trunk(1, "carrier.example")]));
    net.carrier(FIRST, [refuse(503)]);
    net.carrier(SECOND, [Plan::Accept]);
    net.dial(WORLD);
    let name = net.questions.pop().unwrap();
    assert_eq!((name.to_string().as_str(), net.questions.len()), ("sip:carrier.example", 0));
    let server = |priority, at| Server { priority, weight: 0, addresses: vec![address(at)] };
    let answer = Answer {
        servers: vec![server(2, SECOND), server(1, FIRST)],
        ttl: Duration::from_secs(60),
        transport: None,
    };
    net.resolved(&name, answer);
    assert_eq!(net.heard, ["200"]);
    let invite = net.carriers[&address(SECOND)].of(&Method::Invite)[0];
    assert_eq!(invite.uri(), format!("sip:{WORLD}@carrier.example"));
    net.hang_up();

    // While it is valid the answer is used again; after that, if DNS does not answer, it stays in use.
    net.dial(WORLD);
    assert_eq!((net.heard.len(), net.questions.len()), (2, 0));
    net.hang_up();
    net.wait(Duration::from_secs(61));
    net.dial(WORLD);
    assert_eq!((net.heard.len(), net.questions.len()), (2, 1));
    net.wait(Duration::from_secs(5));
    assert_eq!(net.heard, ["200", "200", "200"]);
}

#[test]
fn a_name_that_nobody_knows_leads_nowhere() {
    let mut net = Net::new(acme(vec![trunk(1, "carrier.example")]));
    net.dial(WORLD);
    let name = net.questions.pop().unwrap();
    net.resolved(&name, Answer::default());
    assert_eq!(net.heard, ["503 Service Unavailable"]);
    assert_eq!(net.records[0].hangup_cause, Some(HangupCause::NetworkOutOfOrder));
}

/// S11: a trunk that leads back to us, and a call without hops left.
#[test]
fn s11_nothing_goes_round_in_circles() {
    let mut net = Net::new(acme(vec![trunk(1, SWITCH)]));
    net.dial(WORLD);
    assert_eq!(net.heard, ["482 Loop Detected"]);
    assert_eq!(net.records[0].hangup_cause, Some(HangupCause::ExchangeRoutingError));

    let mut net = Net::new(acme(vec![trunk(1, FIRST)]));
    net.carrier(FIRST, [Plan::Accept]);
    let invite = Invite::new(
        format!("sip:{WORLD}@acme.test"),
        "<sip:1001@acme.test>",
        format!("<sip:{WORLD}@acme.test>"),
    );
    net.dial_by(invite.header("Max-Forwards", "0"));
    assert_eq!(net.heard, ["483 Too Many Hops"]);
    assert!(net.carriers[&address(FIRST)].requests.is_empty());
}

/// S8: only authenticated callers can place outbound calls.
#[test]
fn s8_strangers_and_carriers_do_not_reach_the_world() {
    let mut from_carrier = trunk(2, SECOND);
    from_carrier.accept_from = vec![network(SECOND)];
    let mut net = Net::new(acme(vec![trunk(1, FIRST), from_carrier]));
    net.carrier(FIRST, [Plan::Accept]);
    // The unknown sender claims in every header to be 1001; the carrier is identified but may not call out.
    for source in ["198.51.100.66:5060", SECOND] {
        for number in [WORLD, "0044900900900", "+4490000001"] {
            net.inject(source, invite(number, "192.0.2.1", "P-Asserted-Identity: <sip:1001@acme.test>\r\n"));
        }
    }
    assert!(net.carriers[&address(FIRST)].requests.is_empty());
    assert_eq!(net.switch.live_calls(), 0);
    assert!(net.records.iter().all(|record| record.direction != Direction::Outbound));
}

#[test]
fn an_organisation_has_no_more_calls_to_the_world_than_it_may() {
    let mut directory = acme(vec![trunk(1, FIRST)]);
    directory.organisations[0].max_outbound_calls = Some(1);
    let mut net = Net::new(directory);
    net.carrier(FIRST, [Plan::Accept]);
    net.dial(WORLD);
    let first = net.leg;
    net.dial(WORLD);
    assert_eq!(net.heard, ["200", "503 Too Many Outbound Calls"]);
    assert_eq!(net.records[0].hangup_cause, Some(HangupCause::SwitchCongestion));
    net.leg = first;
    net.hang_up();
    net.dial(WORLD);
    assert_eq!(net.heard[2], "200");
}

/// Emergency calls always work: at the limit of calls, and with no rate for the number.
#[test]
fn short_numbers_go_out_as_dialled_by_the_trunks_that_name_them() {
    let mut directory = acme(vec![trunk(1, FIRST), trunk(2, SECOND)]);
    directory.trunks[1].short_numbers = vec!["112".into()];
    directory.organisations[0].max_outbound_calls = Some(0);
    let mut net = Net::new(directory);
    net.carrier(FIRST, [Plan::Accept]);
    net.carrier(SECOND, [Plan::Accept]);
    let sell = SellRate {
        id: Uuid::from_u128(1).into(),
        organisation_id: Uuid::from_u128(1).into(),
        prefix: "+44".parse().unwrap(),
        price: Price {
            per_minute: "0.01".parse().unwrap(),
            currency: "EUR".parse().unwrap(),
            increments: Increments::SECONDS,
        },
        validity: Validity::default(),
    };
    let rates = RateSnapshot { sell: vec![sell], ..RateSnapshot::default() };
    net.feed(Input::Tariffs(Arc::new(Tariffs::new(rates))));
    net.dial("112");
    assert_eq!(net.heard, ["200"]);
    let invite = net.carriers[&address(SECOND)].of(&Method::Invite)[0];
    assert_eq!(invite.uri(), "sip:112@203.0.113.2:5060");
    assert!(net.carriers[&address(FIRST)].requests.is_empty());
    net.hang_up();
    let record = &net.records[0];
    assert_eq!((record.destination_number.as_deref(), record.dialled_number.as_deref()), (Some("112"), None));
    net.dial("999");
    net.dial(WORLD);
    assert_eq!(net.heard[1..], ["404 Not Found", "503 Too Many Outbound Calls"]);
}

#[test]
fn what_leads_nowhere_says_why() {
    let mut directory = acme(Vec::new());
    directory.organisations[0].numbering.country_code = None;
    let mut net = Net::new(directory);
    for (dialled, told, cause) in [
        ("02071231111", "484 National Number Without A Country Code", HangupCause::InvalidNumberFormat),
        (WORLD, "404 No Outbound Trunk", HangupCause::NoRouteDestination),
        ("112", "404 Not Found", HangupCause::UnallocatedNumber),
    ] {
        net.dial(dialled);
        assert_eq!(net.heard.pop().unwrap(), told);
        assert_eq!(net.records.pop().unwrap().hangup_cause, Some(cause));
    }
}

/// For any responses of three carriers and any time of the caller's CANCEL: one record per call, and no state is left.
#[test]
fn every_call_to_the_world_ends_and_leaves_nothing_behind() {
    let mut rng = StdRng::seed_from_u64(11);
    let third = "203.0.113.3:5060";
    for case in 0..150 {
        let trunks = vec![with_login(trunk(1, FIRST), ""), trunk(2, SECOND), trunk(3, third)];
        let mut net = Net::new(acme(trunks));
        for at in [FIRST, SECOND, third] {
            let plans: Vec<Plan> = (0..rng.random_range(1..3)).map(|_| some_plan(&mut rng)).collect();
            net.carrier(at, plans).byes = [some_plan(&mut rng)].into();
        }
        let calls = rng.random_range(1..4);
        for _ in 0..calls {
            net.dial(WORLD);
            net.wait(Duration::from_millis(rng.random_range(0..9_000)));
            net.hang_up();
        }
        net.wait(Duration::from_secs(200));
        assert_eq!(net.records.len(), calls, "case {case}: {:?}", net.heard);
        assert_eq!((net.switch.live_calls(), net.switch.legs()), (0, 0), "case {case}");
        assert!(
            net.switch.control.calls.has_no_outbound() && net.switch.control.hunts.is_empty(),
            "case {case}"
        );
        assert!(net.switch.control.calls.is_empty(), "case {case}");
    }
}

fn some_plan(rng: &mut StdRng) -> Plan {
    match rng.random_range(0..8) {
        0 => Plan::Silence,
        1 => Plan::Ring,
        2 => challenge(407, "carrier", "n1", ", qop=\"auth\""),
        3 => Plan::Refuse(503, vec![("Retry-After", "5".into())]),
        4 | 5 => refuse([404, 408, 486, 500, 503, 603][rng.random_range(0..6)]),
        _ => Plan::Accept,
    }
}
