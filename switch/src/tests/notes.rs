//! Delivery of notes: the messages that phones receive, the result of each, and that no call is affected.

use std::time::Duration;

use sidetone_model::ids::{CallId, ExtensionId, LegId, NoteId};
use sidetone_model::note::{Destination, Dispatch, PhoneAnswer};
use sidetone_sip::message::{Method, StatusCode};
use uuid::Uuid;

use crate::call_queries::list;
use crate::queries::PhonesOnCall;
use crate::tests::network::{Net, Plan, acme, trunk};

const CARRIER: &str = "203.0.113.1:5060";
const NOTE: NoteId = NoteId(Uuid::from_u128(7));
const PAYLOAD: &str = r#"{"id":"7","title":"Owes 900 EUR"}"#;

/// 1001 talks to an outside party.
fn talking() -> (Net, CallId, LegId) {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.carrier(CARRIER, [Plan::Accept]);
    net.dial("+447700900123");
    net.heard.clear();
    let call =
        list(&net.switch.control.calls, sidetone_model::access::Scope::Everything, &Default::default()).items
            [0]
        .uuid;
    let phones = net.ask(PhonesOnCall(call)).unwrap();
    assert!(phones.is_answered);
    // The carrier's leg does not lead to a phone of ours.
    let [phone] = phones.phones.try_into().unwrap();
    (net, call, phone.leg)
}

fn to_legs(call: CallId, legs: Vec<LegId>) -> Dispatch {
    Dispatch { note: NOTE, to: Destination::Call(call, legs), payload: PAYLOAD.into() }
}

#[test]
fn a_note_goes_into_the_dialog_as_it_is() {
    let (mut net, call, leg) = talking();
    net.taking = Some(StatusCode::OK);
    net.send_note(to_legs(call, vec![leg]));
    let [info] = net.noted.clone().try_into().unwrap();
    assert_eq!(info.method(), &Method::Info);
    assert!(info.headers().is_content_type("application/json"));
    assert_eq!(info.body(), PAYLOAD.as_bytes());
    assert_eq!(net.answers, [(NOTE, 0, PhoneAnswer::Status(200))]);
}

/// Two INFOs in progress could overtake each other: the second waits for the response to the first.
#[test]
fn a_phone_is_sent_one_note_at_a_time() {
    let (mut net, call, leg) = talking();
    let second = NoteId(Uuid::from_u128(8));
    let third = NoteId(Uuid::from_u128(9));
    for note in [NOTE, second, third] {
        let to = Destination::Calls(vec![(call, leg)]);
        net.send_note(Dispatch { note, to, payload: PAYLOAD.into() });
    }
    assert_eq!(net.noted.len(), 1);
    net.wait(Duration::from_secs(33));
    // If the phone does not answer one note, the waiting notes are not sent.
    let silent = PhoneAnswer::Silence;
    assert_eq!(net.answers, [(NOTE, 0, silent), (second, 0, silent), (third, 0, silent)]);
    assert_eq!(net.noted.len(), 1);
    net.answers.clear();
    net.taking = Some(StatusCode::OK);
    for note in [NOTE, second, third] {
        net.send_note(Dispatch { note, to: Destination::Call(call, vec![leg]), payload: PAYLOAD.into() });
    }
    let taken = PhoneAnswer::Status(200);
    assert_eq!(net.answers, [(NOTE, 0, taken), (second, 0, taken), (third, 0, taken)]);
    assert_eq!((net.noted.len(), net.switch.live_calls()), (4, 1));
}

/// No answer to a note ends the call. Some of these statuses end a call by RFC 5057.
#[test]
fn no_answer_to_a_note_costs_the_call() {
    for status in [400, 403, 404, 405, 408, 410, 415, 480, 481, 488, 489, 500, 501, 503, 603] {
        let (mut net, call, leg) = talking();
        net.taking = StatusCode::new(status);
        net.send_note(to_legs(call, vec![leg]));
        assert_eq!(net.answers, [(NOTE, 0, PhoneAnswer::Status(status))]);
        net.wait(Duration::from_secs(40));
        assert_eq!((net.switch.live_calls(), net.heard.len()), (1, 0), "{status}: {:?}", net.heard);
        net.hang_up();
        assert_eq!(net.records.len(), 1, "{status}");
    }
}

#[test]
fn a_phone_that_says_nothing_is_given_up_on_after_32_seconds() {
    let (mut net, call, leg) = talking();
    net.send_note(to_legs(call, vec![leg]));
    net.wait(Duration::from_millis(31_900));
    assert_eq!(net.answers, []);
    net.wait(Duration::from_millis(200));
    assert_eq!(net.answers, [(NOTE, 0, PhoneAnswer::Silence)]);
    assert_eq!(net.noted.len(), 1, "a repeated INFO is shown once");
    assert_eq!((net.switch.live_calls(), net.heard.len()), (1, 0));
}

#[test]
fn a_leg_that_is_gone_gets_nothing() {
    let (mut net, call, leg) = talking();
    net.taking = Some(StatusCode::OK);
    net.send_note(to_legs(call, vec![LegId(Uuid::nil()), leg]));
    assert_eq!(net.answers, [(NOTE, 0, PhoneAnswer::Gone), (NOTE, 1, PhoneAnswer::Status(200))]);
    net.answers.clear();
    net.hang_up();
    net.send_note(to_legs(call, vec![leg]));
    assert_eq!(net.answers, [(NOTE, 0, PhoneAnswer::Gone)]);
    assert_eq!(net.noted.len(), 1);
}

/// The call ends before the phone has answered the note: the result is still reported.
#[test]
fn a_note_outlives_its_call() {
    let (mut net, call, leg) = talking();
    net.send_note(to_legs(call, vec![leg]));
    net.hang_up();
    net.wait(Duration::from_secs(33));
    assert_eq!(net.answers, [(NOTE, 0, PhoneAnswer::Silence)]);
    assert_eq!((net.switch.live_calls(), net.records.len()), (0, 1));
}

#[test]
fn a_message_comes_from_the_events_identity_of_the_domain() {
    let mut net = Net::new(acme(Vec::new()));
    net.register();
    net.taking = Some(StatusCode::OK);
    let extension = ExtensionId(Uuid::from_u128(11));
    let mut devices = net.devices_of(extension);
    assert_eq!(devices.len(), 1);
    devices.push("sip:1001@192.0.2.99".to_owned());
    let to = Destination::Extension(extension, devices.clone());
    net.send_note(Dispatch { note: NOTE, to, payload: PAYLOAD.into() });
    let [message] = net.noted.clone().try_into().unwrap();
    assert_eq!(message.method(), &Method::Message);
    assert_eq!(message.uri(), devices[0]);
    assert_eq!(message.from().unwrap().uri.to_string(), "sip:events@acme.test");
    assert_eq!(message.to().unwrap().uri.to_string(), "sip:1001@acme.test");
    assert!(message.headers().is_content_type("application/json"));
    assert_eq!(message.body(), PAYLOAD.as_bytes());
    let mut answers = net.answers.clone();
    answers.sort_by_key(|(_, place, _)| *place);
    assert_eq!(answers, [(NOTE, 0, PhoneAnswer::Status(200)), (NOTE, 1, PhoneAnswer::Gone)]);
    assert_eq!(net.devices_of(ExtensionId(Uuid::nil())), Vec::<String>::new());
}

/// A device's message is matched to the contact registered from the same address.
#[test]
fn a_device_is_told_by_where_it_speaks_from() {
    let mut net = Net::new(acme(Vec::new()));
    net.message("sip:events@acme.test", "application/json", "{}");
    net.register();
    net.message("sip:events@acme.test", "application/json", "{}");
    let [unregistered, registered] = net.said.clone().try_into().unwrap();
    assert_eq!(unregistered.device.unwrap().contact, None);
    let device = registered.device.unwrap();
    assert_eq!(device.address, "sip:1001@acme.test");
    assert_eq!(device.contact, net.devices_of(ExtensionId(Uuid::from_u128(11))).pop());
}
