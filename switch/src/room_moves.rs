//! Parties of live calls who are moved to a room at another node: a call to that node takes the place of their other party.

use sidetone_model::call::HangupCause;
use sidetone_model::ids::CallId;
use sidetone_model::time::Now;

use crate::authentication::Sender;
use crate::call_control::CallControl;
use crate::io::Input;
use crate::live::Asked;
use crate::placement::{Dialled, Onward};
use crate::referring;
use crate::room_places::Joined;
use crate::shared::Shared;
use crate::transfers::Place;

/// Places the call that takes the place of the party `by` of a call; the other one is transferred to it, and is hung up if
/// the call fails. `None` for a party that cannot be transferred, for callers from trunks, who have no dial plan, and when the
/// room is at no other node.
pub(super) fn move_there(
    now: Now,
    by: Place,
    joined: Joined,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Option<CallId> {
    let Sender::Extension(extension) = joined.sender else { return None };
    let there = shared.rooms.there(joined.room)?;
    let transfer = referring::transfer_now(by, control).ok()?;
    let (call, party) = transfer.transferee;
    let shown = control.calls.get(call)?.identity_of(party)?.clone();
    let to = Dialled::new(&joined.dialled);
    let placed = control.placing(shared).place_transfer(now, extension, &shown, Asked::NOTHING, to);
    let mut placement = placed.ok()?;
    let Shared { rooms, ids, directory, .. } = &mut *shared;
    let callee = rooms.callee(&joined, &shown, there, (ids, directory))?;
    placement.onward = Onward::Bindings(vec![callee]);
    let silently = |_: &_, _: &mut _, _: &mut _| {};
    let begun = referring::place_for(now, (placement, Asked::NOTHING), transfer, control, shared, silently);
    let new = begun.ok()?;
    // The other party waits for the room alone, as after a transfer whose sender has hung up.
    if let Some(leg) = control.calls.key_of(by.0, by.1) {
        control.calls.remove_leg(leg);
        shared.ua.hang_up(now.instant, leg);
    }
    control.feed(now, by.0, Input::HungUp(by.1, HangupCause::NormalClearing), shared);
    shared.rooms.join(new, joined);
    Some(new)
}
