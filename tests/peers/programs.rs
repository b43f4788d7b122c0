//! API operations on the calls of third-party phones: click-to-call, hold, transfer, parking and pick-up
//! over HTTP. The received audio of each phone is read from its own recording.

use serde_json::{Value, json};

use crate::peers::engine::{Engine, Start};
use crate::peers::linphone;
use crate::peers::peer::{self, Kind, OURS_HZ, Peer};
use crate::peers::tell;
use crate::peers::turn;

/// An engine with four phones, alternating between both kinds; `None` where Linphone is not installed.
pub fn office(test: &str) -> Option<(Engine, [Peer; 4])> {
    office_over(test, false)
}

/// The same; with `secure` all phones use TLS and SRTP.
pub fn office_over(test: &str, secure: bool) -> Option<(Engine, [Peer; 4])> {
    if !linphone::is_there() {
        tell(&format!("NOTICE: {test} is SKIPPED; apt-get install linphone-cli"));
        return None;
    }
    let srtp = if secure { "required" } else { "" };
    let engine = Engine::run(&Start { calls: 8, directory: peer::DIRECTORY, srtp, ..Start::default() });
    peer::announce(&engine, "hold-music");
    let kinds = [
        (Kind::Baresip, "1001"),
        (Kind::Linphone, "1002"),
        (Kind::Baresip, "1003"),
        (Kind::Linphone, "1004"),
    ];
    let phones = kinds.map(|(kind, number)| Peer::register_over(&engine, kind, number, secure));
    Some((engine, phones))
}

/// One phone calls another, which answers on command; returns the call.
pub fn talk(engine: &mut Engine, from: &mut Peer, to: &mut Peer) -> String {
    from.call(to.number);
    to.answer();
    let uuid = call_of(engine, from.number, to.number);
    hear_each_other(from, to);
    uuid
}

/// The answered call between these two.
pub fn call_of(engine: &mut Engine, from: &str, to: &str) -> String {
    engine.wait_for("/api/v1/calls?state=answered", "an answered call", |page| {
        let call = page["items"]
            .as_array()?
            .iter()
            .find(|call| call["caller"] == from && call["destination"] == to)?;
        call["uuid"].as_str().map(str::to_owned)
    })
}

/// Requests an operation on a call.
fn operate(engine: &Engine, uuid: &str, operation: &str, body: Value, status: u16) -> Value {
    let (answered, answer) = engine.post(&format!("/api/v1/calls/{uuid}/{operation}"), &body);
    assert_eq!(answered, status, "{operation}: {answer}");
    answer
}

pub fn hear_each_other(one: &mut Peer, other: &mut Peer) {
    one.hears_phone(other);
    other.hears_phone(one);
}

/// The record of that call, once there are `count` records.
pub fn record(records: &[Value], uuid: &str) -> Value {
    records.iter().find(|record| record["call_uuid"] == uuid).unwrap().clone()
}

pub fn assert_good(record: &Value) {
    // Several phones that share a busy machine send their packets at uneven intervals, and that is measured.
    let verdict = record["media_verdict_worse"].as_str().unwrap_or_default();
    assert!(["ok", "jittery_inbound", "unpaced_sender"].contains(&verdict), "{record:#}");
    assert_eq!(record["loss_pct"].as_f64(), Some(0.0), "{record:#}");
    assert_eq!(record["hangup_cause"], "NORMAL_CLEARING", "{record:#}");
    assert!(record["answered_at"].is_string(), "{record:#}");
}

/// The call of a transferred party and that of the target refer to each other.
pub fn assert_linked(first: &Value, second: &Value) {
    assert_eq!(first["transferred_to"], second["call_uuid"], "{first:#} {second:#}");
    assert_eq!(second["transferred_from"], first["call_uuid"], "{first:#} {second:#}");
    assert_good(first);
    assert_good(second);
}

/// Both phones ring on an API request and hear each other; the calling one holds, and resumes.
#[test]
fn a_program_connects_phones_and_holds_their_call() {
    let Some(_turn) = turn() else { return };
    let Some((mut engine, [baresip, linphone, ..])) = office("click-to-call") else { return };
    let mut records = 0;
    let (mut from, mut to) = (baresip, linphone);
    for reference in ["baresip-first", "linphone-first"] {
        let order = json!({"from": from.number, "to": to.number, "reference": reference});
        let (status, placed) = engine.post("/api/v1/calls", &order);
        assert_eq!(status, 202, "{placed}");
        let uuid = placed["call_uuid"].as_str().unwrap().to_owned();
        from.answer();
        to.answer();
        hear_each_other(&mut from, &mut to);
        // baresip holds, because its recording ends at a re-INVITE.
        let (holder, held) = if from.number == "1001" { (&mut from, &mut to) } else { (&mut to, &mut from) };
        let live = engine.get(&format!("/api/v1/calls/{uuid}"));
        let mut legs = live["legs"].as_array().unwrap().iter();
        let leg = legs.find(|leg| leg["number"] == holder.number).unwrap()["uuid"].clone();
        operate(&engine, &uuid, "hold", json!({"leg": leg}), 200);
        held.hears(&[OURS_HZ]);
        holder.receives(false);
        assert_eq!(engine.order(&format!("/api/v1/calls/{uuid}/unhold")), 200);
        held.hears_phone(holder);
        holder.receives(true);
        if records == 0 {
            assert_eq!(engine.delete(&format!("/api/v1/calls/{uuid}")), 204);
            to.released();
        } else {
            to.hang_up();
        }
        from.released();
        let ended_by = ["system", "callee"][records];
        records += 1;
        let record = record(&engine.records(records), &uuid);
        assert_eq!([&record["reference"], &record["ended_by"]], [reference, ended_by], "{record:#}");
        assert_eq!([&record["caller_number"], &record["destination_number"]], [from.number, to.number]);
        assert_good(&record);
        let request =
            engine.get(&format!("/api/v1/call-requests/{}", placed["call_request_id"].as_str().unwrap()));
        assert_eq!(request["state"], "completed", "{request:#}");
        std::mem::swap(&mut from, &mut to);
    }
}

#[test]
fn a_program_transfers_calls_of_phones_blindly() {
    let Some(_turn) = turn() else { return };
    let Some((mut engine, phones)) = office("the blind transfer") else { return };
    let [mut first, mut second, mut third, mut fourth] = phones;
    for (by, party, target) in [(0, 1, 2), (1, 0, 3)] {
        let mut phones = [&mut first, &mut second, &mut third, &mut fourth];
        let [by, party, target] = phones.get_disjoint_mut([by, party, target]).unwrap();
        let uuid = talk(&mut engine, by, party);
        let begun = operate(&engine, &uuid, "transfer", json!({"to": target.number}), 202);
        target.answer();
        by.released();
        hear_each_other(party, target);
        party.hang_up();
        target.released();
        let count = if by.number == "1001" { 2 } else { 4 };
        let records = engine.records(count);
        let onward = record(&records, begun["call_uuid"].as_str().unwrap());
        assert_linked(&record(&records, &uuid), &onward);
        assert_eq!([&onward["caller_number"], &onward["destination_number"]], [party.number, target.number]);
    }
}

/// An attended transfer: the transferring phone talks to the target first.
#[test]
fn a_program_transfers_calls_of_phones_after_a_question() {
    let Some(_turn) = turn() else { return };
    let Some((mut engine, phones)) = office("the attended transfer") else { return };
    let [mut first, mut second, mut third, mut fourth] = phones;
    for (by, party, target) in [(0, 1, 2), (1, 3, 0)] {
        let mut phones = [&mut first, &mut second, &mut third, &mut fourth];
        let [by, party, target] = phones.get_disjoint_mut([by, party, target]).unwrap();
        let uuid = talk(&mut engine, by, party);
        by.hold();
        by.call(target.number);
        target.answer();
        let with = call_of(&mut engine, by.number, target.number);
        target.hears_phone(by);
        operate(&engine, &uuid, "transfer", json!({"with": with}), 202);
        hear_each_other(party, target);
        by.released();
        by.released();
        target.hang_up();
        party.released();
        let count = if by.number == "1001" { 2 } else { 4 };
        let records = engine.records(count);
        assert_linked(&record(&records, &uuid), &record(&records, &with));
    }
}

#[test]
fn a_program_parks_phones_and_others_pick_them_up() {
    let Some(_turn) = turn() else { return };
    let Some((mut engine, phones)) = office("parking") else { return };
    let [mut first, mut second, mut third, mut fourth] = phones;
    for (by, party, third_party) in [(0, 1, 2), (1, 0, 3)] {
        let mut phones = [&mut first, &mut second, &mut third, &mut fourth];
        let [by, party, other] = phones.get_disjoint_mut([by, party, third_party]).unwrap();
        let uuid = talk(&mut engine, by, party);
        let parked = operate(&engine, &uuid, "park", json!({"slot": 7}), 200);
        assert_eq!(parked["slot"], 7, "{parked}");
        by.released();
        party.hears(&[OURS_HZ]);
        let begun = operate(&engine, &uuid, "pickup", json!({"from": other.number}), 202);
        other.answer();
        hear_each_other(party, other);
        other.hang_up();
        party.released();
        let count = if by.number == "1001" { 2 } else { 4 };
        let records = engine.records(count);
        assert_linked(&record(&records, &uuid), &record(&records, begun["call_uuid"].as_str().unwrap()));
    }
}
