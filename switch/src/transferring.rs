//! Carries out the effects of transfers: connects and answers parties, and sends the notifications (RFC 3515).

use sidetone_model::call::HangupCause;
use sidetone_model::ids::CallId;
use sidetone_model::time::Now;
use sidetone_sip::message::{Method, StatusCode};

use crate::call_control::CallControl;
use crate::io::{Awaited, Input};
use crate::link::peer_of;
use crate::live::LiveCall;
use crate::message_parts::status_code;
use crate::parking;
use crate::room_moves;
use crate::shared::Shared;
use crate::transfers::{self, Effect, Place, Transfer};

/// Carries out one step of a transfer; returns whether there was one.
pub(super) fn step(now: Now, control: &mut CallControl, shared: &mut Shared) -> bool {
    let Some(effect) = control.transfers.poll_effect() else { return false };
    match effect {
        Effect::Failed(transfer, status) => failed(now, transfer, status, control, shared),
        Effect::Feed(id, input) => control.feed(now, id, input, shared),
        Effect::Join(transfer, target) => join(now, transfer, target, control, shared),
        Effect::Return(call) => parking::give_back(now, call, control, shared),
        Effect::PickUp(transfer, place) => pick_up(now, transfer, place, control, shared),
        // The party may have hung up; then no notification is due.
        Effect::Notify(leg, extra) => {
            let _ = shared.ua.request_within(now.instant, leg, Method::Notify, &extra);
        }
    }
    true
}

/// Feeds the input of a leg to its call. If a party hangs up while it is transferred, the transferring party gets the
/// result before its BYE (RFC 3515 §2.4.4).
pub(super) fn feed(now: Now, id: CallId, input: Input, control: &mut CallControl, shared: &mut Shared) {
    if let Input::HungUp(party, _) = &input
        && let Some((leg, notify)) = control.transfers.transferee_left((id, *party))
    {
        // Fails when the transferring party has hung up too.
        let _ = shared.ua.request_within(now.instant, leg, Method::Notify, &notify);
    }
    control.feed(now, id, input, shared);
}

/// Relays a transferred party to its target, and hangs up the party that transferred it.
fn join(now: Now, transfer: Transfer, target: Place, control: &mut CallControl, shared: &mut Shared) {
    let Some(inputs) = transfers::link(&mut control.calls, &transfer, target) else {
        let gone = StatusCode::TEMPORARILY_UNAVAILABLE.as_u16();
        if transfer.consulted.is_none() {
            control.feed(now, target.0, Input::End(HangupCause::OriginatorCancel), shared);
        }
        return failed(now, transfer, gone, control, shared);
    };
    for (id, input) in inputs {
        control.feed(now, id, input, shared);
    }
    if transfer.to_room && !has_seat_here(transfer.transferee.0, control) {
        let live = control.calls.get_mut(transfer.transferee.0);
        live.into_iter().for_each(|live| live.goal = None);
    }
    // The result is sent before the BYE.
    control.transfers.notify(&transfer, StatusCode::OK);
    let dismissed = std::iter::once(transfer.by).chain(transfer.consulted);
    for (id, party) in dismissed.filter(|place| transfers::is_there(&control.calls, *place)) {
        control.transfers.dismiss(id, party);
    }
}

/// Whether a party of a call is in a room of this node.
fn has_seat_here(call: CallId, control: &CallControl) -> bool {
    control.conferences.seats.values().any(|seat| seat.call == call)
}

/// Answers a waiting caller for a party that has replaced a ringing phone.
fn pick_up(now: Now, transfer: Transfer, place: Place, control: &mut CallControl, shared: &mut Shared) {
    let waits = |live: &&LiveCall| live.call.is_ringing();
    let caller = control.calls.get(transfer.transferee.0).filter(waits).map(|live| live.call.facts().call);
    // A transfer to the call waits for the phones that ring.
    let caller = caller.filter(|call| !control.transfers.awaits(*call));
    let own = control.calls.get(place.0).and_then(|live| peer_of(live.call.parties(), place.1));
    let Some((call, own)) = caller.zip(own) else {
        // Another phone has answered, or the caller has given up.
        return control.feed(now, place.0, Input::End(HangupCause::LoseRace), shared);
    };
    let awaited = Awaited { settled: own.settled, policy: own.policy, from: place.0 };
    let transfer = Transfer { transferee: place, picks_up: false, ..transfer };
    control.transfers.begin(call, transfer);
    control.feed(now, call, Input::PickUp(Box::new(awaited)), shared);
}

/// Reports a failed transfer; the transferred party returns to the transferring party, if its leg is still open.
fn failed(now: Now, transfer: Transfer, status: u16, control: &mut CallControl, shared: &mut Shared) {
    if transfer.picks_up || transfer.unparks.is_some() {
        return parking::failed(now, &transfer, control, shared);
    }
    if transfer.to_room {
        return room_moves::failed(now, &transfer, status, control, shared);
    }
    control.transfers.notify(&transfer, status_code(status));
    let Transfer { by, transferee, .. } = transfer;
    control.feed(now, by.0, Input::Referring(None), shared);
    if !transfers::is_there(&control.calls, by) {
        let cause = transfers::cause_of(status);
        control.feed(now, transferee.0, Input::Dismiss(transferee.1, cause), shared);
    }
}
