//! Limits of calls that their parties do not end: lost phones, long calls, and phones that are only silent.

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use sidetone_model::call::HangupCause;
use sidetone_model::money::Amount;
use sidetone_model::rating::{Account, Increments, Price, RateSnapshot, SellRate, Validity};
use sidetone_model::time::Timestamp;
use sidetone_sip::auth::Algorithm;
use sidetone_sip::message::{Method, StatusCode};
use sidetone_sip::ua::Invite;
use uuid::Uuid;

use crate::io::Limits;
use crate::machine::{Input, Settings};
use crate::rating::Tariffs;
use crate::tests::conference_adapter::{CARRIER, WORLD, with_rooms};
use crate::tests::ladder::check;
use crate::tests::network::{Net, Plan, SDP, acme, address, trunk};

/// The ports of the caller and of the carrier.
const CALLER: u64 = 1;
const CALLEE: u64 = 2;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// 1001 talks to an outside party over a trunk that does not answer a BYE.
fn talking() -> Net {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    talk(&mut net);
    net
}

fn talk(net: &mut Net) {
    net.carrier(CARRIER, [Plan::Accept]).byes = [Plan::Silence].into();
    net.dial(WORLD);
    assert_eq!(net.heard.last().unwrap(), "200");
}

/// Returns the hangup causes of the records so far.
fn causes(net: &Net) -> Vec<HangupCause> {
    net.records.iter().map(|record| record.hangup_cause.unwrap()).collect()
}

fn byes(net: &Net) -> usize {
    net.carriers[&address(CARRIER)].of(&Method::Bye).len()
}

#[test]
fn a_call_whose_parties_vanish_ends_a_minute_later() {
    let mut net = talking();
    net.wait(seconds(5));
    net.is_phone_gone = true;
    // The relay reports the silence about a second later.
    net.wait(seconds(1));
    net.silent(CALLER, seconds(1));
    net.silent(CALLEE, Duration::from_millis(1_500));
    net.wait(Duration::from_millis(58_900));
    assert_eq!((net.records.len(), net.switch.live_calls()), (0, 1));
    net.wait(Duration::from_millis(200));
    assert_eq!(causes(&net), [HangupCause::MediaTimeout]);
    let record = &net.records[0];
    assert_eq!(record.answered_at, Some(Timestamp::from_micros(0)));
    assert_eq!((record.ended_at, record.billsec), (Some(Timestamp::from_micros(65_000_000)), 65));
    assert_eq!((net.switch.live_calls(), byes(&net)), (0, 1), "a carrier that lives is told");
    // The unanswered BYEs time out.
    net.wait(seconds(33));
    assert_eq!(net.switch.legs(), 0);
}

#[test]
fn a_dead_call_is_paid_for_and_its_credit_is_free_again() {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    let amount = |text: &str| text.parse::<Amount>().unwrap();
    let organisation_id = Uuid::from_u128(1).into();
    let rate = SellRate {
        id: Uuid::nil().into(),
        organisation_id,
        prefix: "+44".parse().unwrap(),
        price: Price {
            per_minute: amount("0.60"),
            currency: "EUR".parse().unwrap(),
            increments: Increments::new(1, 1).unwrap(),
        },
        validity: Validity::default(),
    };
    net.feed(Input::Accounts(vec![Account {
        organisation_id,
        currency: "EUR".parse().unwrap(),
        credit: Some(amount("100")),
        used: Amount::ZERO,
        used_before: Amount::ZERO,
    }]));
    let rates = RateSnapshot { revision: 1, sell: vec![rate], cost: Vec::new(), fx: Vec::new() };
    net.feed(Input::Tariffs(Arc::new(Tariffs::new(rates))));
    talk(&mut net);
    for port in [CALLER, CALLEE] {
        net.silent(port, Duration::ZERO);
    }
    net.wait(seconds(61));
    let record = &net.records[0];
    assert_eq!((record.hangup_cause, record.billsec), (Some(HangupCause::MediaTimeout), 60));
    assert_eq!(record.sell_amount, amount("0.6"));
    assert_eq!(record.billing.credit.map(|draw| draw.amount), Some(amount("0.6")));
    // The call does not end a second time, and no more is charged.
    net.wait(seconds(3_600));
    assert_eq!(net.records.len(), 1);
}

#[test]
fn one_party_that_talks_keeps_the_call() {
    let mut net = talking();
    net.silent(CALLER, seconds(1));
    net.wait(seconds(7_200));
    assert_eq!(net.switch.live_calls(), 1, "an announcement");
    // The other party falls silent too, and sends again at the last moment: comfort noise, or an RTCP report.
    for _ in 0..100 {
        net.silent(CALLEE, seconds(1));
        net.wait(Duration::from_millis(58_900));
        net.heard(CALLEE);
        net.wait(seconds(1));
    }
    assert_eq!((net.records.len(), net.switch.live_calls()), (0, 1));
    net.silent(CALLEE, seconds(1));
    net.wait(seconds(60));
    assert_eq!(causes(&net), [HangupCause::MediaTimeout]);
}

#[test]
fn a_call_on_hold_may_be_silent_for_half_an_hour() {
    let mut net = talking();
    net.wait(seconds(10));
    net.offer_anew(&format!("{SDP}a=inactive\r\n"));
    net.silent(CALLER, seconds(1));
    net.silent(CALLEE, seconds(1));
    net.wait(seconds(1_700));
    // They talk again; earlier silence does not count.
    net.offer_anew(SDP);
    net.wait(seconds(59));
    assert_eq!((net.records.len(), net.switch.live_calls()), (0, 1));
    net.offer_anew(&format!("{SDP}a=sendonly\r\n"));
    net.wait(seconds(1_799));
    assert_eq!((net.records.len(), net.switch.live_calls()), (0, 1));
    net.wait(seconds(1));
    assert_eq!(causes(&net), [HangupCause::MediaTimeout]);
}

#[test]
fn without_a_limit_nobody_is_waited_for() {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.feed(Input::Settings(Settings {
        digest: vec![Algorithm::Md5],
        md5_only: Vec::new(),
        limits: Limits { silence: None, call: seconds(86_400), ..Limits::default() },
    }));
    talk(&mut net);
    net.silent(CALLER, seconds(1));
    net.silent(CALLEE, seconds(1));
    net.wait(seconds(86_399));
    assert_eq!(net.switch.live_calls(), 1);
    net.wait(seconds(1));
    assert_eq!(causes(&net), [HangupCause::MaxCallDuration]);
}

#[test]
fn a_call_lasts_for_as_long_as_its_organisation_and_trunk_allow() {
    for (name, organisation, trunk_limit, expected) in [
        ("the node's", None, None, 14_400),
        ("the organisation's, longer", Some(20_000), None, 20_000),
        ("the organisation's, shorter", Some(600), None, 600),
        ("the trunk's", None, Some(60), 60),
        ("the lower of both", Some(600), Some(300), 300),
        ("a trunk does not make it longer", Some(600), Some(86_400), 600),
    ] {
        let mut directory = acme(vec![trunk(1, CARRIER)]);
        directory.organisations[0].max_call_seconds = organisation;
        directory.trunks[0].max_call_seconds = trunk_limit;
        let mut net = Net::new(directory);
        net.carrier(CARRIER, [Plan::Accept]);
        net.dial(WORLD);
        net.wait(seconds(expected - 1));
        assert_eq!(net.switch.live_calls(), 1, "{name}");
        net.wait(seconds(1));
        assert_eq!(causes(&net), [HangupCause::MaxCallDuration], "{name}");
        assert_eq!(u64::from(net.records[0].billsec), expected, "{name}");
        assert_eq!((net.heard.last().unwrap().as_str(), byes(&net)), ("BYE", 1), "{name}");
        assert_eq!((net.switch.live_calls(), net.switch.legs()), (0, 0), "{name}");
    }
}

/// Ringing time does not count: the limit runs from the answer.
#[test]
fn the_time_that_it_rings_is_not_counted() {
    check(
        "call 4000 PCMU sendrecv -> trunks
         0 attempt 1
         50000 answered 0 5000 PCMU sendrecv
         50001 journalled
         14449999 timeout
         14450001 timeout
         14450002 report 0
         14450002 report 1",
        expect![[r#"
            0 attempt 1
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            50000 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            50001 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            14449999 timeout
            14450001 timeout
                      BYE fork 0 MAX_CALL_DURATION
                      BYE caller MAX_CALL_DURATION
                      media 1 close
                      media 0 close
            14450002 report 0
            14450002 report 1
                      record MAX_CALL_DURATION answered 1970-01-01T00:00:50.001Z billsec 14400 bridge MAX_CALL_DURATION status 200 codecs PCMU/PCMU verdict - trunk 1
        "#]],
    );
}

#[test]
fn a_phone_in_a_room_that_is_silent_is_asked_whether_it_is_there() {
    let mut net = Net::new(with_rooms());
    net.dial("200");
    // A muted phone that sends nothing but answers the probe; any status will do except 408 and 481.
    net.taking = Some(StatusCode::METHOD_NOT_ALLOWED);
    net.silent(CALLER, seconds(0));
    net.wait(seconds(600));
    let asked: Vec<&str> = net.noted.iter().map(|request| request.method().as_str()).collect();
    assert_eq!(asked, ["OPTIONS"; 40]);
    assert_eq!(net.switch.live_calls(), 1);
    // While it sends, it is not probed.
    net.heard(CALLER);
    net.wait(seconds(600));
    assert_eq!(net.noted.len(), 40);
    net.silent(CALLER, seconds(1));
    net.is_phone_gone = true;
    net.wait(Duration::from_millis(23_900));
    assert_eq!((net.records.len(), net.switch.live_calls()), (0, 1));
    net.wait(Duration::from_millis(200));
    assert_eq!(causes(&net), [HangupCause::MediaTimeout]);
    assert!(net.heard_of_rooms().contains("news Left { member: 1, cause: MediaTimeout }"));
    assert_eq!(net.switch.live_calls(), 0);
}

#[test]
fn a_phone_that_knows_its_call_no_more_leaves_the_room() {
    let mut net = Net::new(with_rooms());
    net.dial("200");
    net.taking = Some(StatusCode::NO_TRANSACTION);
    net.silent(CALLER, seconds(1));
    net.wait(seconds(15));
    assert_eq!(causes(&net), [HangupCause::MediaTimeout]);
    assert!(net.heard_of_rooms().contains("Left"));
}

/// The phone of a member on hold may vanish too.
#[test]
fn a_phone_that_vanishes_on_hold_leaves_its_room() {
    let mut net = Net::new(with_rooms());
    net.taking = Some(StatusCode::OK);
    net.dial("200");
    net.silent(CALLER, seconds(1));
    net.offer_anew(&format!("{SDP}a=inactive\r\n"));
    net.wait(seconds(600));
    assert_eq!(net.switch.live_calls(), 1);
    net.is_phone_gone = true;
    net.wait(seconds(30));
    assert_eq!(causes(&net), [HangupCause::MediaTimeout]);
}

/// The first probe's transaction times out while the second one waits for its answer.
#[test]
fn the_timeout_of_an_old_probe_ends_no_call() {
    let mut net = Net::new(with_rooms());
    net.taking = Some(StatusCode::OK);
    net.dial("200");
    net.silent(CALLER, seconds(0));
    net.is_phone_gone = true;
    net.wait(Duration::from_millis(24_900));
    net.heard(CALLER);
    net.silent(CALLER, seconds(0));
    net.wait(Duration::from_millis(22_300));
    net.is_phone_gone = false;
    net.wait(seconds(60));
    assert_eq!((net.records.len(), net.switch.live_calls()), (0, 1));
}

/// Each party leaves separately.
#[test]
fn of_two_calls_in_one_room_the_dead_party_alone_leaves() {
    check(
        "call 4000 PCMU sendrecv -> 1
         2000 answered 0 5000 PCMU sendrecv
         2001 journalled
         3000 silent 1 1000
         4000 merge
         63999 timeout
         64000 timeout
         80000 probed 0 no
         80001 report 1
         90000 silent 0 1000
         149000 timeout
         149001 probed caller yes
         209000 timeout
         209001 timeout
         210000 bye caller",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            2000 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            2001 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            3000 silent 1 1000
            4000 merge
                      seat caller
                      seat fork 0
            63999 timeout
                      are you there, fork 0
            64000 timeout
            80000 probed 0 no
                      BYE fork 0 MEDIA_TIMEOUT
                      fork 0 left its seat
                      media 1 close
            80001 report 1
            90000 silent 0 1000
            149000 timeout
                      are you there, caller
            149001 probed caller yes
            209000 timeout
                      are you there, caller
            209001 timeout
            210000 bye caller
                      caller left its seat
                      media 0 close
        "#]],
    );
}

/// The phone supports session timers and leaves the refreshes to us.
fn talking_by_timer() -> Net {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.carrier(CARRIER, [Plan::Accept]);
    let invite = Invite::new(
        format!("sip:{WORLD}@acme.test"),
        "<sip:1001@acme.test>",
        format!("<sip:{WORLD}@acme.test>"),
    );
    net.dial_by(invite.header("Supported", "timer"));
    assert_eq!(net.heard, ["200"]);
    net
}

#[test]
fn a_session_is_refreshed_by_what_holds_and_goes_on() {
    let mut net = talking_by_timer();
    net.wait(seconds(14_000));
    assert_eq!(net.reinvited, [900], "the 2xx of this phone has no Session-Expires: it wants no more");
    assert_eq!((net.records.len(), net.switch.live_calls()), (0, 1));
    net.hang_up();
    assert_eq!(causes(&net), [HangupCause::NormalClearing]);
}

/// The relay sends no report here: the session timer detects a dead dialog independently of its media.
#[test]
fn a_dialog_whose_refresh_stays_without_an_answer_ends_the_call() {
    let mut net = talking_by_timer();
    net.is_phone_gone = true;
    net.wait(seconds(931));
    assert_eq!((net.records.len(), net.switch.live_calls()), (0, 1));
    net.wait(seconds(2));
    assert_eq!(causes(&net), [HangupCause::RecoveryOnTimerExpire]);
    assert_eq!((net.switch.live_calls(), byes(&net)), (0, 1));
}

#[test]
fn carriers_are_offered_a_session_timer() {
    let net = talking_by_timer();
    let invite = net.carriers[&address(CARRIER)].of(&Method::Invite)[0];
    let offered = ["Supported", "Session-Expires"].map(|name| invite.header(name));
    assert_eq!(offered, [Some("timer"), Some("1800")]);
}

/// A phone that is the refresher: after 60 s without a refresh, the session of 90 s counts as expired (RFC 4028 §10).
#[test]
fn a_session_that_the_phone_does_not_refresh_expires() {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.carrier(CARRIER, [Plan::Accept]);
    let (uri, to) = (format!("sip:{WORLD}@acme.test"), format!("<sip:{WORLD}@acme.test>"));
    let invite = Invite::new(uri, "<sip:1001@acme.test>", to).header("Supported", "timer");
    net.dial_by(invite.header("Session-Expires", "90;refresher=uac"));
    assert_eq!(net.heard, ["200"]);
    net.wait(seconds(59));
    assert_eq!((net.records.len(), net.switch.live_calls()), (0, 1));
    net.wait(seconds(2));
    assert_eq!(causes(&net), [HangupCause::RecoveryOnTimerExpire]);
    assert_eq!((net.switch.live_calls(), byes(&net)), (0, 1));
    assert!(net.reinvited.is_empty(), "the refreshes are the phone's");
}
