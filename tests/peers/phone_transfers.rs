//! Transfers initiated by third-party phones: REFER with its NOTIFY, and with Replaces.
//!
//! baresip 1.0 has no attended transfer, so only Linphone makes those.

use crate::peers::programs::{assert_linked, call_of, hear_each_other, office_over, record, talk};
use crate::peers::turn;

#[test]
fn phones_transfer_their_calls_blindly() {
    transfer_blindly(false);
}

#[test]
fn phones_transfer_their_calls_blindly_over_tls_with_srtp() {
    transfer_blindly(true);
}

#[test]
fn linphone_connects_its_two_calls() {
    connect_two_calls(false);
}

#[test]
fn linphone_connects_its_two_calls_over_tls_with_srtp() {
    connect_two_calls(true);
}

/// baresip transfers Linphone to baresip, and Linphone transfers baresip to Linphone.
fn transfer_blindly(secure: bool) {
    let Some(_turn) = turn() else { return };
    let Some((mut engine, phones)) = office_over("the blind transfer by phones", secure) else { return };
    let [mut first, mut second, mut third, mut fourth] = phones;
    for (by, party, target) in [(0, 1, 2), (1, 0, 3)] {
        let mut phones = [&mut first, &mut second, &mut third, &mut fourth];
        let [by, party, target] = phones.get_disjoint_mut([by, party, target]).unwrap();
        let uuid = talk(&mut engine, by, party);
        by.transfer(target.number);
        target.answer();
        let onward = call_of(&mut engine, party.number, target.number);
        by.released();
        hear_each_other(party, target);
        target.hang_up();
        party.released();
        let count = if by.number == "1001" { 2 } else { 4 };
        let records = engine.records(count);
        let (first, onward) = (record(&records, &uuid), record(&records, &onward));
        assert_linked(&first, &onward);
        assert_eq!([&first["caller_number"], &first["destination_number"]], [by.number, party.number]);
        assert_eq!([&first["ended_by"], &onward["ended_by"]], ["caller", "callee"], "{first:#} {onward:#}");
    }
}

/// Linphone consults the target first, and ends both of its calls.
fn connect_two_calls(secure: bool) {
    let Some(_turn) = turn() else { return };
    let Some((mut engine, phones)) = office_over("the attended transfer by Linphone", secure) else { return };
    let [mut target, mut by, _, mut party] = phones;
    let uuid = talk(&mut engine, &mut by, &mut party);
    let first = by.last_call();
    by.hold();
    by.call(target.number);
    target.answer();
    let second = by.last_call();
    let with = call_of(&mut engine, by.number, target.number);
    target.hears_phone(&mut by);
    by.connect(first, second);
    party.hears_phone(&mut target);
    target.receives(true);
    by.released();
    by.released();
    party.hang_up();
    target.released();
    let records = engine.records(2);
    assert_linked(&record(&records, &uuid), &record(&records, &with));
}
