//! Billed calls: their prices at the start, their amounts, and their end without credit.

use std::sync::Arc;
use std::time::Duration;

use sidetone_model::call::{BillingMode, Direction, HangupCause};
use sidetone_model::cdr::Cdr;
use sidetone_model::directory::{Network, Trunk};
use sidetone_model::ids::RoomId;
use sidetone_model::money::Amount;
use sidetone_model::rating::{
    Account, CostRate, Drawn, FxRate, Increments, Price, RateSnapshot, SellRate, Validity,
};
use sidetone_model::room::{ControlRefused, DialKind, DialRequest, Role};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::machine::Input;
use crate::queries::{DialIntoRoom, StatusOfTrunk};
use crate::rating::Tariffs;
use crate::tests::conference_adapter::room;
use crate::tests::network::{Net, Plan, SDP, acme, address, extension, number, organisation, trunk};

const FIRST: &str = "203.0.113.1:5060";
const SECOND: &str = "203.0.113.2:5060";
const WORLD: &str = "+447700900123";

fn amount(text: &str) -> Amount {
    text.parse().unwrap()
}

fn price(per_minute: &str, currency: &str, increments: [u32; 2]) -> Price {
    let [first, next] = increments;
    Price {
        per_minute: amount(per_minute),
        currency: currency.parse().unwrap(),
        increments: Increments::new(first, next).unwrap(),
    }
}

fn sell(prefix: &str, price: Price) -> SellRate {
    SellRate {
        id: Uuid::nil().into(),
        organisation_id: Uuid::from_u128(1).into(),
        prefix: prefix.parse().unwrap(),
        price,
        validity: Validity::default(),
    }
}

fn cost(trunk: u128, price: Price) -> CostRate {
    CostRate {
        id: Uuid::nil().into(),
        trunk_id: Uuid::from_u128(trunk).into(),
        prefix: "+44".parse().unwrap(),
        price,
        validity: Validity::default(),
    }
}

fn fx(rate: &str, from_s: i64) -> FxRate {
    FxRate {
        id: Uuid::nil().into(),
        from: "USD".parse().unwrap(),
        to: "EUR".parse().unwrap(),
        rate: amount(rate),
        from_time: Timestamp::from_micros(from_s * 1_000_000),
    }
}

fn account(credit: Option<&str>, used: &str) -> Account {
    Account {
        organisation_id: Uuid::from_u128(1).into(),
        currency: "EUR".parse().unwrap(),
        credit: credit.map(amount),
        used: amount(used),
        used_before: Amount::ZERO,
    }
}

/// Calls to Britain cost 0.012 EUR a minute, charged by the minute first and then by the second; the trunk
/// charges 0.008 USD by the second.
fn rates() -> RateSnapshot {
    RateSnapshot {
        revision: 1,
        sell: vec![sell("+44", price("0.0120", "EUR", [60, 1]))],
        cost: vec![cost(1, price("0.0080", "USD", [1, 1])), cost(2, price("0.0100", "EUR", [60, 60]))],
        fx: vec![fx("0.9200", 0), fx("0.9500", 100)],
    }
}

fn net(rates: RateSnapshot, account: Account) -> Net {
    let mut net = Net::new(acme(vec![trunk(1, FIRST), trunk(2, SECOND)]));
    net.carrier(FIRST, [Plan::Accept]);
    net.carrier(SECOND, [Plan::Accept]);
    net.feed(Input::Accounts(vec![account]));
    net.feed(Input::Tariffs(Arc::new(Tariffs::new(rates))));
    net
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn last(net: &Net) -> &Cdr {
    net.records.last().unwrap()
}

#[test]
fn a_call_is_rated_by_what_held_when_it_began_and_converted_when_it_ended() {
    let mut net = net(rates(), account(None, "0"));
    net.dial(WORLD);
    // Changes during the call apply to the next one; conversion rates are those of the end.
    let dearer = RateSnapshot {
        sell: vec![sell("+44", price("9", "EUR", [60, 60]))],
        cost: vec![cost(1, price("8", "USD", [60, 60]))],
        ..rates()
    };
    net.feed(Input::Tariffs(Arc::new(Tariffs::new(dearer))));
    net.wait(Duration::from_millis(90_500));
    net.wait(seconds(30));
    net.hang_up();
    let cdr = last(&net);
    assert_eq!((cdr.billing_mode, cdr.billsec), (BillingMode::Rated, 120));
    assert_eq!((cdr.sell_amount, cdr.currency), (amount("0.024"), "EUR".parse().ok()));
    let charged = cdr.billing.cost.unwrap();
    assert_eq!((charged.amount, charged.fx_rate), (amount("0.016"), Some(amount("0.95"))));
    assert_eq!(cdr.cost_amount, amount("0.0152"));
    assert_eq!(cdr.billing.tariff, None);
}

#[test]
fn the_carrier_that_took_the_call_is_the_one_that_charges() {
    let mut net = net(rates(), account(None, "0"));
    net.carrier(FIRST, [Plan::Refuse(503, Vec::new())]);
    net.dial(WORLD);
    net.wait(seconds(61));
    net.hang_up();
    let cdr = last(&net);
    assert_eq!(cdr.trunk_id, Some(trunk(2, SECOND).id));
    let charged = cdr.billing.cost.unwrap();
    assert_eq!((charged.amount, charged.fx_rate), (amount("0.02"), Some(Amount::ONE)));
    assert_eq!(cdr.sell_amount, amount("0.0122"));
}

/// It is a call of the trunk that it came from, and costs what the number costs that it is forwarded to.
#[test]
fn a_forwarded_inbound_call_is_charged_as_an_outbound_call() {
    let accept_from = vec![Network { address: address(FIRST).ip(), prefix_len: 32 }];
    let first = Trunk { address: None, accept_from, ..trunk(1, FIRST) };
    let mut directory = acme(vec![first, trunk(2, SECOND)]);
    directory.extensions[0].forwarding.always = Some(WORLD.to_owned());
    let mut net = Net::new(directory);
    net.carrier(SECOND, [Plan::Accept]);
    net.feed(Input::Accounts(vec![account(None, "0")]));
    net.feed(Input::Tariffs(Arc::new(Tariffs::new(rates()))));
    let invite = format!(
        "INVITE sip:+442071230000@acme.test SIP/2.0\r\nVia: SIP/2.0/UDP {FIRST};branch=z9hG4bKin\r\n\
         Max-Forwards: 70\r\nFrom: <sip:+447700900001@carrier.test>;tag=in\r\nTo: <sip:+442071230000@acme.test>\r\n\
         Call-ID: inbound\r\nCSeq: 1 INVITE\r\nContact: <sip:{FIRST}>\r\n\
         Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{SDP}",
        SDP.len()
    );
    net.inject(FIRST, invite);
    net.wait(seconds(20));
    let status = |net: &mut Net, trunk: &Trunk| net.ask(StatusOfTrunk(trunk.id)).unwrap();
    let second = status(&mut net, &trunk(2, SECOND));
    assert_eq!((second.calls, second.addresses[0].outbound_calls), (1, 1));
    assert_eq!(status(&mut net, &trunk(1, FIRST)).calls, 1);
    net.feed(Input::EndCalls(HangupCause::NormalClearing));
    net.run();
    let cdr = last(&net);
    assert_eq!((cdr.direction, cdr.trunk_id), (Direction::Inbound, Some(trunk(1, FIRST).id)));
    assert_eq!(cdr.forwarded_to.as_deref(), Some(WORLD));
    assert_eq!((cdr.billing_mode, cdr.billsec), (BillingMode::Rated, 20));
    assert_eq!((cdr.sell_amount, cdr.cost_amount), (amount("0.012"), amount("0.01")));
}

#[test]
fn a_charge_without_a_rate_into_the_currency_stands_unconverted() {
    let mut net = net(RateSnapshot { fx: Vec::new(), ..rates() }, account(None, "0"));
    net.dial(WORLD);
    net.wait(seconds(60));
    net.hang_up();
    let cdr = last(&net);
    assert_eq!((cdr.cost_amount, cdr.billing.cost.unwrap().fx_rate), (amount("0.008"), None));
}

#[test]
fn an_unanswered_call_is_rated_and_costs_nothing() {
    let mut net = net(rates(), account(Some("1"), "0"));
    for carrier in [FIRST, SECOND] {
        net.carrier(carrier, [Plan::Refuse(486, Vec::new())]);
    }
    net.dial(WORLD);
    let cdr = last(&net);
    assert_eq!((cdr.billing_mode, cdr.hangup_cause), (BillingMode::Rated, Some(HangupCause::UserBusy)));
    assert_eq!((cdr.sell_amount, cdr.cost_amount, cdr.billing.cost), (Amount::ZERO, Amount::ZERO, None));
}

#[test]
fn a_number_that_no_rate_covers_is_not_called_and_who_has_no_rates_is_not_billed() {
    let mut net = net(rates(), account(None, "0"));
    net.dial("+33123456789");
    assert_eq!(net.heard, ["403 No Rate For This Number"]);
    let cdr = last(&net);
    assert_eq!(cdr.hangup_cause, Some(HangupCause::OutgoingCallBarred));
    assert_eq!((cdr.billing_mode, cdr.sell_amount), (BillingMode::Free, Amount::ZERO));
    net.feed(Input::Tariffs(Arc::default()));
    net.dial("+33123456789");
    net.wait(seconds(5));
    net.hang_up();
    let cdr = last(&net);
    assert_eq!((cdr.billing_mode, cdr.billsec, cdr.sell_amount), (BillingMode::Free, 5, Amount::ZERO));
    // Calls inside the organisation are free.
    net.feed(Input::Tariffs(Arc::new(Tariffs::new(rates()))));
    net.dial("1001");
    assert_eq!(last(&net).billing_mode, BillingMode::Free);
}

#[test]
fn without_credit_for_the_first_increment_nobody_is_called() {
    for (credit, used) in [("0", "0"), ("0.0119", "0"), ("5", "4.9885"), ("5", "6")] {
        let mut net = net(rates(), account(Some(credit), used));
        net.dial(WORLD);
        assert_eq!(net.heard, ["402 Credit Used Up"], "{credit} {used}");
        let cdr = last(&net);
        assert_eq!((cdr.billing_mode, cdr.sell_amount), (BillingMode::Rated, Amount::ZERO));
        assert_eq!(cdr.hangup_cause, Some(HangupCause::CallRejected));
        assert!(net.carriers.values().all(|carrier| carrier.requests.is_empty()));
    }
    let mut net = net(rates(), account(Some("5"), "4.988"));
    net.dial(WORLD);
    assert_eq!(net.heard, ["200"]);
}

/// A sell rate in a currency that cannot be converted for the credit does not make calls free.
#[test]
fn a_price_that_does_not_reach_the_credit_is_refused() {
    let dollars = vec![sell("+44", price("0.01", "USD", [1, 1]))];
    let mut unreachable =
        net(RateSnapshot { sell: dollars.clone(), fx: Vec::new(), ..rates() }, account(Some("5"), "0"));
    unreachable.dial(WORLD);
    assert_eq!(unreachable.heard, ["402 Credit Used Up"]);
    let mut reachable = net(RateSnapshot { sell: dollars, ..rates() }, account(Some("5"), "0"));
    reachable.dial(WORLD);
    reachable.wait(seconds(30));
    reachable.hang_up();
    let draw = last(&reachable).billing.credit.unwrap();
    assert_eq!((draw.amount, draw.currency), (amount("0.0046"), "EUR".parse().unwrap()));
}

/// 0.0140 EUR lasts for a minute and ten seconds: a warning tone ten seconds before, then both sides are hung
/// up.
#[test]
fn a_call_ends_when_the_credit_is_used_up_with_a_tone_before() {
    let mut net = net(rates(), account(Some("0.0140"), "0"));
    net.dial(WORLD);
    net.wait(Duration::from_millis(59_900));
    assert_eq!(net.heard, ["200"]);
    net.wait(Duration::from_millis(200));
    assert_eq!(net.heard, ["200", "tone"]);
    net.wait(Duration::from_millis(9_800));
    assert_eq!(net.heard, ["200", "tone"]);
    net.wait(Duration::from_millis(200));
    assert_eq!(net.heard, ["200", "tone", "BYE"]);
    let cdr = last(&net);
    assert_eq!((cdr.hangup_cause, cdr.billsec), (Some(HangupCause::AllottedTimeout), 70));
    assert_eq!((cdr.sell_amount, cdr.billing.credit.unwrap().amount), (amount("0.014"), amount("0.014")));
    // No credit is left, whether or not the database includes the charge yet.
    let call = cdr.call_uuid;
    net.dial(WORLD);
    let drawn = Drawn { organisation: Uuid::from_u128(1).into(), used: amount("0.014"), calls: vec![call] };
    net.feed(Input::Drawn(vec![drawn]));
    net.dial(WORLD);
    assert_eq!(net.heard[3..], ["402 Credit Used Up", "402 Credit Used Up"]);
    // With more credit, calls are accepted again.
    net.feed(Input::Accounts(vec![account(Some("1"), "0.014")]));
    net.dial(WORLD);
    assert_eq!(net.heard.last().unwrap(), "200");
}

/// The credit of another tenant does not affect calls.
#[test]
fn other_tenants_credit_is_their_own() {
    let mut directory = acme(vec![trunk(1, FIRST)]);
    directory.organisations.push(organisation(2, "bolt.test"));
    directory.extensions.push(extension(21, 2, "bolt.test", "2001"));
    directory.numbers.push(number(41, 2, "+442079999999", 21));
    let mut net = Net::new(directory);
    net.carrier(FIRST, [Plan::Accept]);
    let theirs = Account { organisation_id: Uuid::from_u128(2).into(), ..account(Some("0"), "0") };
    net.feed(Input::Accounts(vec![theirs, account(Some("5"), "0")]));
    net.feed(Input::Tariffs(Arc::new(Tariffs::new(rates()))));
    net.dial(WORLD);
    assert_eq!(net.heard, ["200"]);
}

/// Dials an outside number for room 200; returns the target, or why it was refused.
fn dialled(net: &mut Net) -> Result<String, ControlRefused> {
    let request = DialRequest {
        kind: DialKind::External,
        target: WORLD.into(),
        role: Role::Participant,
        confirm: false,
    };
    net.ask(DialIntoRoom(RoomId(Uuid::from_u128(51)), request)).map(|dialled| dialled.target)
}

fn with_room(account: Account) -> Net {
    let mut directory = acme(vec![trunk(1, FIRST)]);
    directory.rooms = vec![room(51, "200")];
    let mut net = Net::new(directory);
    net.carrier(FIRST, [Plan::Accept]);
    net.feed(Input::Accounts(vec![account]));
    net.feed(Input::Tariffs(Arc::new(Tariffs::new(rates()))));
    net
}

#[test]
fn a_call_of_a_room_is_billed_as_any_other() {
    let mut net = with_room(account(None, "0"));
    dialled(&mut net).unwrap();
    net.wait(seconds(90));
    net.feed(Input::EndCalls(HangupCause::NormalClearing));
    net.run();
    let record = last(&net);
    assert_eq!((record.billing_mode, record.billsec), (BillingMode::Rated, 90));
    assert_eq!((record.sell_amount, record.cost_amount), (amount("0.018"), amount("0.01104")));
}

/// The organisation's credit ends during a room's call: only the party that the room dialled is hung up.
#[test]
fn credit_ends_for_whom_a_room_dialled_and_for_nobody_else() {
    let mut net = with_room(account(Some("0.018"), "0"));
    dialled(&mut net).unwrap();
    net.dial("200");
    net.heard.clear();
    net.heard_of_rooms();
    net.wait(seconds(85));
    assert_eq!(net.heard, ["tone"], "of what the carrier's leg hears");
    net.wait(seconds(10));
    assert!(net.heard_of_rooms().contains("news Left { member: 1"));
    let record = last(&net);
    assert_eq!(record.hangup_cause, Some(HangupCause::AllottedTimeout));
    assert_eq!(record.billsec, 90);
    assert_eq!((net.switch.live_calls(), net.heard.as_slice()), (1, ["tone".to_owned()].as_slice()));
}

#[test]
fn a_room_dials_nobody_without_credit_or_a_rate() {
    let mut net = with_room(account(Some("0.01"), "0"));
    assert_eq!(dialled(&mut net), Err(ControlRefused::NoCredit));
    let mut net = with_room(account(None, "0"));
    let rates = RateSnapshot { sell: vec![sell("+33", price("1", "EUR", [1, 1]))], ..rates() };
    net.feed(Input::Tariffs(Arc::new(Tariffs::new(rates))));
    assert!(matches!(dialled(&mut net), Err(ControlRefused::NoRoute(_))));
    assert_eq!((net.switch.live_calls(), net.records.len()), (0, 0));
    assert!(net.switch.control.conferences.dials.is_empty() && net.switch.control.calls.has_no_outbound());
}
