//! Parked calls: a party waits with music in a slot of its organisation until an extension picks it up. After a timeout
//! it is returned to the extension that parked it.
//!
//! The slot is a part of the party's call, so that it becomes free when the call ends. An extension picks up a parked
//! party, or the caller of a ringing call, by a call to its own phones; the first phone that answers is connected.

use std::time::Duration;

use sidetone_model::call::HangupCause;
use sidetone_model::call_operation::OperationRefused;
use sidetone_model::call_parking::{ParkOrder, ParkedIn, PickUpOrder, SLOTS};
use sidetone_model::ids::{CallId, ExtensionId, OrganisationId};
use sidetone_model::time::Now;

use crate::call_control::CallControl;
use crate::call_limits::limits_of;
use crate::io::{Awaited, CalleeSide, Callees, Forwards, Input, Party, Setup, Sides};
use crate::leg::Leg;
use crate::link::peer_of;
use crate::live::{LegIdentity, LiveCall, NewCall};
use crate::referring::{self, TRANSFERS_MAX};
use crate::shared::Shared;
use crate::transfers::{GONE, Place, Transfer, Unparks};

/// Parks the party that `parker` talks to; returns its call. The caller of this function then hangs up the parker.
///
/// # Errors
/// Why it is not parked.
pub(super) fn park(
    now: Now,
    order: ParkOrder,
    parker: Place,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<CallId, OperationRefused> {
    let ParkOrder { slot, seconds, .. } = order;
    let transfer = referring::transfer_by(parker, control).map_err(|(_, why)| {
        OperationRefused::Conflict(format!("the call cannot be parked now: {}", why.to_lowercase()))
    });
    let Transfer { transferee, .. } = transfer?;
    let identity = control.calls.get(parker.0).and_then(|live| live.identity_of(parker.1));
    let by = identity.and_then(|identity| identity.extension).ok_or(OperationRefused::Gone)?;
    let live = control.calls.get(transferee.0).ok_or(OperationRefused::Gone)?;
    if !live.call.parties().leg(transferee.1).is_some_and(Leg::is_mixable) {
        return Err(refusal("the codec of the party cannot be encoded here"));
    }
    let slot = free_slot(control, live.call.facts().organisation, slot)?;
    let wait = Duration::from_secs(seconds.into());
    let until = now.wall.plus_micros(i64::from(seconds).saturating_mul(1_000_000));
    let place = ParkedIn { slot, by, until };
    // A party of another call is no longer linked with this one.
    if transferee.0 != parker.0 {
        for (call, party) in [transferee, parker] {
            if let Some(live) = control.calls.get_mut(call) {
                live.linked.take(party);
            }
        }
    }
    control.feed(now, transferee.0, Input::Park(transferee.1, place, now.instant + wait), shared);
    Ok(transferee.0)
}

/// Calls the phones of an extension for a parked party, or for the caller of a call that rings; returns their call.
///
/// # Errors
/// Why they are not called.
pub(super) fn pick_up(
    now: Now,
    PickUpOrder { call, by }: PickUpOrder,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<CallId, OperationRefused> {
    let live = control.calls.get(call).filter(|live| !live.call.has_ended()).ok_or(OperationRefused::Gone)?;
    let organisation = live.call.facts().organisation;
    if shared.directory.extension(by).is_none_or(|by| by.organisation_id != organisation) {
        return Err(OperationRefused::wrong("from", "is no extension of the call's organisation"));
    }
    let waiting = waiting(live).ok_or_else(|| refusal("the call is neither parked nor ringing"))?;
    if control.transfers.is_of(waiting.transfer.transferee) || control.transfers.awaits(call) {
        return Err(refusal("the call is being picked up, or returned to the extension that parked it"));
    }
    if live.transfers >= TRANSFERS_MAX {
        return Err(refusal("the call was transferred too many times"));
    }
    call_for(now, by, waiting, control, shared)
}

/// Returns the parked party of a call to the extension that parked it.
pub(super) fn give_back(now: Now, call: CallId, control: &mut CallControl, shared: &mut Shared) {
    let Some(live) = control.calls.get(call) else { return };
    let Some((parked, mut waiting)) = live.call.parties().parked().zip(waiting(live)) else { return };
    let transferee = waiting.transfer.transferee;
    // A pick-up in progress takes precedence; if it fails, the party is returned afterwards.
    if control.transfers.is_of(transferee) {
        return;
    }
    waiting.transfer.unparks = Some(Unparks::Return);
    if call_for(now, parked.place.by, waiting, control, shared).is_err() {
        control.feed(now, call, Input::End(HangupCause::ParkTimeout), shared);
    }
}

/// Handles a call for a waiting party that no phone answered.
pub(super) fn failed(now: Now, transfer: &Transfer, control: &mut CallControl, shared: &mut Shared) {
    let (call, _) = transfer.transferee;
    match transfer.unparks {
        // The caller of a ringing call continues to wait.
        None => {}
        Some(Unparks::PickUp) => {
            let parked = control.calls.get(call).and_then(|live| live.call.parties().parked());
            if parked.is_some_and(|parked| parked.deadline.is_none()) {
                give_back(now, call, control, shared);
            }
        }
        Some(Unparks::Return) => {
            control.feed(now, call, Input::End(HangupCause::ParkTimeout), shared);
        }
    }
}

/// A party that waits to be picked up.
pub(super) struct Waiting {
    pub(super) transfer: Transfer,
    pub(super) awaited: Awaited,
    /// The identity of the party, as the extension sees it.
    pub(super) shown: LegIdentity,
    /// The media group of its port.
    pub(super) group: u64,
    /// The number of transfers that led to its call.
    pub(super) transfers: u8,
}

/// Returns the party of a call that waits: in a slot, or for an answer.
pub(super) fn waiting(live: &LiveCall) -> Option<Waiting> {
    let (parties, call) = (live.call.parties(), live.call.facts().call);
    let (party, settled, policy) = match &parties.link {
        Some(link) if link.parked.is_some() => {
            let peer = peer_of(parties, link.party)?;
            (link.party, peer.settled, peer.policy)
        }
        _ if live.call.is_ringing() && live.request.is_none() => {
            let (settled, policy) = parties.offer_of_caller()?;
            (Party::Caller, settled, policy)
        }
        _ => return None,
    };
    let picks_up = live.call.is_ringing();
    let transfer = Transfer {
        by: (call, GONE),
        transferee: (call, party),
        consulted: None,
        subscription: None,
        picks_up,
        unparks: (!picks_up).then_some(Unparks::PickUp),
        to_room: false,
    };
    Some(Waiting {
        transfer,
        awaited: Awaited { settled, policy, from: call },
        shown: live.identity_of(party)?.clone(),
        group: live.call.group(),
        transfers: live.transfers,
    })
}

/// Calls the phones of an extension for a waiting party.
fn call_for(
    now: Now,
    extension: ExtensionId,
    waiting: Waiting,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<CallId, OperationRefused> {
    if !control.has_capacity() {
        return Err(OperationRefused::Busy);
    }
    let Waiting { transfer, awaited, shown, group, transfers } = waiting;
    let placed = control.placing(shared).place_for_waiting(now, extension, &shown);
    let (facts, callees, policy, srtp) =
        placed.filter(|(_, callees, ..)| !callees.is_empty()).ok_or_else(|| {
            OperationRefused::Conflict("from: the extension has no registered phone".to_owned())
        })?;
    let rung = Callees::AtOnce(callees.iter().map(|callee| callee.at).collect());
    let callee = CalleeSide { policy, srtp, callees: rung, forwards: Forwards::default() };
    let sides = Sides::ForPeer { awaited: Box::new(awaited), callee };
    let mut limits = limits_of(control.limits, &shared.directory, &facts);
    limits.ring = limits.ring.min(RING);
    let call = facts.call;
    let (session_id, keys) = (shared.ids.session(), shared.ids.keys());
    let setup = Setup { facts, limits, sides, session_id, group, keys };
    control.transfers.begin(call, transfer);
    let new = NewCall {
        setup,
        caller: None,
        callees,
        hunt: None,
        goal: None,
        asked: None,
        diverted: Vec::new(),
        request: None,
    };
    control.begin(now, new, shared);
    if let Some(live) = control.calls.get_mut(call) {
        live.transfers = transfers;
    }
    Ok(call)
}

/// Returns the wanted slot, or the lowest free one.
fn free_slot(
    control: &CallControl,
    organisation: OrganisationId,
    wanted: Option<u16>,
) -> Result<u16, OperationRefused> {
    let of_organisation = |live: &&LiveCall| live.call.facts().organisation == organisation;
    let parked = control.calls.iter().filter(of_organisation).filter_map(|live| live.call.parties().parked());
    let mut taken: Vec<u16> = parked.map(|parked| parked.place.slot).collect();
    taken.sort_unstable();
    match wanted {
        Some(slot) if !SLOTS.contains(&slot) => {
            let text = format!("must be from {} to {}", SLOTS.start(), SLOTS.end());
            Err(OperationRefused::wrong("slot", text))
        }
        Some(slot) if taken.contains(&slot) => Err(refusal("another call is parked in this slot")),
        Some(slot) => Ok(slot),
        None => SLOTS
            .into_iter()
            .find(|slot| taken.binary_search(slot).is_err())
            .ok_or_else(|| refusal("every slot of the organisation is taken")),
    }
}

fn refusal(why: &str) -> OperationRefused {
    OperationRefused::Conflict(why.to_owned())
}

/// How long phones ring for a waiting party.
const RING: Duration = Duration::from_secs(30);
