//! Transfers in progress: the transferring party, the transferred party, the target's call, and the notifications
//! (RFC 3515).
//!
//! A transfer is in progress from the REFER until the target answers or fails. Until then the transferring party keeps
//! its leg, or leaves; the transferred party waits. Every wait ends with the ringing time of the target's call.

use std::collections::{HashMap, VecDeque};

use sidetone_model::call::HangupCause;
use sidetone_model::ids::CallId;
use sidetone_sip::message::StatusCode;
use sidetone_sip::ua::{Extra, LegKey};

use crate::call_table::CallTable;
use crate::conference::Goal;
use crate::io::{Input, Linking, Party, Peer};
use crate::link::peer_of;
use crate::live::LiveCall;
use crate::message_parts::status_code;

/// A party of a call.
pub(super) type Place = (CallId, Party);

/// Transfers in progress, and their pending effects.
#[derive(Default)]
pub(super) struct Transfers {
    /// By the call whose answer is awaited.
    pending: HashMap<CallId, Transfer>,
    effects: VecDeque<Effect>,
}

/// One transfer.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    /// The party that transfers.
    pub(super) by: Place,
    /// The party that is transferred.
    pub(super) transferee: Place,
    /// The leg of the transferring party in the target's call, if it placed that call itself.
    pub(super) consulted: Option<Place>,
    /// The subscription of the transferring party; `None` if it requested none (RFC 4488).
    pub(super) subscription: Option<Subscription>,
    /// Whether the transferred party still waits for an answer, which the target gives it (call pickup).
    pub(super) picks_up: bool,
    /// Why a parked party is transferred.
    pub(super) unparks: Option<Unparks>,
    /// Whether the party is moved to the node of its room.
    pub(super) to_room: bool,
}

/// Why a parked party leaves its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unparks {
    /// An extension picks it up; if its phones do not answer, the party continues to wait.
    PickUp,
    /// Its parking time has expired; if the extension that parked it does not answer, the call ends.
    Return,
}

/// A subscription to the result of a REFER.
#[derive(Clone, Debug)]
pub(super) struct Subscription {
    /// The leg that sent the REFER.
    pub(super) leg: LegKey,
    /// The value of Event.
    pub(super) event: String,
    /// Whether the ringing was reported.
    pub(super) rings: bool,
}

/// A pending effect of a transfer.
pub(super) enum Effect {
    /// The transfer has failed with this status.
    Failed(Transfer, u16),
    /// Feed an input to a call.
    Feed(CallId, Input),
    /// The target has answered: connect the transferred party with this one.
    Join(Transfer, Place),
    /// Answer the waiting party for this one, then connect them.
    PickUp(Transfer, Place),
    /// Send this NOTIFY.
    Notify(LegKey, Extra),
    /// Return the parked party of this call to the extension that parked it.
    Return(CallId),
}

impl Subscription {
    /// Returns the NOTIFY about a response of the target; a final one ends the subscription.
    fn notify(&self, status: StatusCode) -> Effect {
        let state = match status.is_final() {
            true => ENDED.to_owned(),
            false => format!("active;expires={EXPIRES_S}"),
        };
        let fragment = format!("SIP/2.0 {} {}\r\n", status.as_u16(), status.default_reason());
        self.notify_of(&state, fragment)
    }

    fn notify_of(&self, state: &str, fragment: String) -> Effect {
        let extra = Extra::new()
            .header("Event", &self.event)
            .header("Subscription-State", state)
            .content("message/sipfrag;version=2.0", fragment);
        Effect::Notify(self.leg, extra)
    }
}

impl Transfer {
    /// Whether the target's call was placed for the transferred party, not by another party.
    fn is_for_placed_call(&self) -> bool {
        self.consulted.is_none() && !self.picks_up
    }
}

impl Transfers {
    /// Begins a transfer to a call that is being placed or that still rings.
    pub(super) fn begin(&mut self, target: CallId, transfer: Transfer) {
        self.notify(&transfer, StatusCode::TRYING);
        self.pending.insert(target, transfer);
    }

    /// Queues a transfer to a party that is answered already.
    pub(super) fn join(&mut self, transfer: Transfer, target: Place) {
        self.effects.push_back(Effect::Join(transfer, target));
    }

    /// Whether a transfer by this party is in progress.
    pub(super) fn is_by(&self, by: Place) -> bool {
        self.pending.values().any(|transfer| transfer.by == by)
    }

    /// Whether a transfer of this party to a call that was placed for it is in progress.
    pub(super) fn is_of(&self, transferee: Place) -> bool {
        self.pending.values().any(|transfer| transfer.transferee == transferee)
    }

    /// Whether a transfer waits for the answer of this call.
    pub(super) fn awaits(&self, call: CallId) -> bool {
        self.pending.contains_key(&call)
    }

    /// Handles the timeout of the parked party of a call.
    pub(super) fn park_expired(&mut self, call: CallId) {
        self.effects.push_back(Effect::Return(call));
    }

    /// Returns the party for which a call was placed; `None` unless a transfer placed it.
    pub(super) fn transferee_of(&self, target: CallId) -> Option<Place> {
        let transfer = self.pending.get(&target).filter(|transfer| transfer.is_for_placed_call())?;
        Some(transfer.transferee)
    }

    /// Moves the transferred party into the room that a call placed for it was forwarded to; returns whether it may
    /// enter one now. The placed call then has to end.
    pub(super) fn enter_room_of(&mut self, target: CallId, goal: &Goal, calls: &mut CallTable) -> bool {
        let Some((call, _)) = self.transferee_of(target) else { return false };
        let by = self.pending.get(&target).map(|transfer| transfer.by);
        let may_enter = |live: &&mut LiveCall| live.call.can_merge() && by.is_some_and(|by| by.0 == call);
        let Some(live) = calls.get_mut(call).filter(may_enter) else { return false };
        live.goal = Some(goal.clone());
        if let Some(transfer) = self.pending.remove(&target) {
            // The result is sent before the BYE.
            self.notify(&transfer, StatusCode::OK);
            self.enter_room(call, transfer.by.1);
        }
        true
    }

    /// Queues the end of a party that has transferred the other.
    pub(super) fn dismiss(&mut self, call: CallId, party: Party) {
        let dismissal = Input::Dismiss(party, HangupCause::NormalClearing);
        self.effects.push_back(Effect::Feed(call, dismissal));
    }

    /// Queues the move of a call's other party into the room that the call has as its goal.
    pub(super) fn enter_room(&mut self, call: CallId, without: Party) {
        self.effects.push_back(Effect::Feed(call, Input::Merge(Some(without))));
    }

    /// Queues a NOTIFY with the final result as this status line.
    pub(super) fn notify_of(&mut self, transfer: &Transfer, fragment: &str) {
        let notified = transfer.subscription.as_ref();
        self.effects.extend(notified.map(|subscription| subscription.notify_of(ENDED, fragment.to_owned())));
    }

    /// Queues a NOTIFY to the transferring party.
    pub(super) fn notify(&mut self, transfer: &Transfer, status: StatusCode) {
        self.effects.extend(transfer.subscription.as_ref().map(|subscription| subscription.notify(status)));
    }

    /// Handles a provisional response of a target.
    pub(super) fn rings(&mut self, call: CallId, status: u16) {
        // A target that is forwarded does not ring yet.
        if status == FORWARDED {
            return;
        }
        let Some(transfer) = self.pending.get_mut(&call) else { return };
        if let Some(subscription) = transfer.subscription.as_mut().filter(|known| !known.rings) {
            subscription.rings = true;
            self.effects.push_back(subscription.notify(StatusCode::RINGING));
        }
    }

    /// Handles a target that was not answered.
    pub(super) fn failed(&mut self, call: CallId, status: u16) {
        let transfer = self.pending.remove(&call);
        self.effects.extend(transfer.map(|transfer| Effect::Failed(transfer, status)));
    }

    /// Handles the answer of a party that was called for the transferred one.
    pub(super) fn reached(&mut self, call: CallId, party: Party) {
        self.effects.push_back(match self.pending.remove(&call) {
            Some(transfer) if transfer.picks_up => Effect::PickUp(transfer, (call, party)),
            Some(transfer) => Effect::Join(transfer, (call, party)),
            // The transferred party has left.
            None => Effect::Feed(call, Input::End(HangupCause::OriginatorCancel)),
        });
    }

    /// Handles the answer of a call that the transferring party placed itself.
    pub(super) fn answered(&mut self, call: CallId, calls: &CallTable) {
        // Phones that ring to pick up a call stop when another party has answered it.
        let late =
            self.pending.iter().filter(|(_, pending)| pending.picks_up && pending.transferee.0 == call);
        let late: Vec<CallId> = late.map(|(target, _)| *target).collect();
        for target in late {
            self.pending.remove(&target);
            self.effects.push_back(Effect::Feed(target, Input::End(HangupCause::LoseRace)));
        }
        let Some(consulted) = self.pending.get(&call).and_then(|transfer| transfer.consulted) else { return };
        let Some(transfer) = self.pending.remove(&call) else { return };
        self.effects.push_back(match far_of(calls, consulted) {
            Some(target) => Effect::Join(transfer, target),
            None => Effect::Failed(transfer, StatusCode::TEMPORARILY_UNAVAILABLE.as_u16()),
        });
    }

    /// Ends the subscription to the transfer of a party that hangs up; returns the leg to notify, and the NOTIFY.
    pub(super) fn transferee_left(&mut self, transferee: Place) -> Option<(LegKey, Extra)> {
        let of_party = |transfer: &&mut Transfer| transfer.transferee == transferee;
        let subscription = self.pending.values_mut().find(of_party)?.subscription.take()?;
        match subscription.notify(StatusCode::REQUEST_TERMINATED) {
            Effect::Notify(leg, extra) => Some((leg, extra)),
            _ => None,
        }
    }

    /// Handles the end of a call: a transfer to it has failed, and the target's call of its transferred party is ended.
    pub(super) fn over(&mut self, call: CallId) {
        if self.pending.is_empty() {
            return;
        }
        self.failed(call, StatusCode::REQUEST_TERMINATED.as_u16());
        let of_call = |transfer: &Transfer| transfer.transferee.0 == call;
        let targets = self.pending.iter().filter(|(_, transfer)| of_call(transfer));
        let targets: Vec<CallId> = targets.map(|(target, _)| *target).collect();
        for target in targets {
            let placed = self.pending.remove(&target).is_some_and(|transfer| transfer.consulted.is_none());
            if placed {
                self.effects.push_back(Effect::Feed(target, Input::End(HangupCause::OriginatorCancel)));
            }
        }
    }

    /// Notifies the linked call that the terms of a party have changed.
    pub(super) fn terms(&mut self, (call, party): Place, peer: Box<Peer>, calls: &CallTable) {
        let linked = calls.get(call).and_then(|live| live.linked.of(party));
        let changed = linked.map(|(other, far)| Effect::Feed(other, Input::PeerChanged(far, Some(peer))));
        self.effects.extend(changed);
    }

    /// Handles the end of a linked party: its far party is hung up too, unless it is being transferred.
    pub(super) fn unlinked(&mut self, (call, party): Place, cause: HangupCause, calls: &mut CallTable) {
        let Some(other) = calls.get_mut(call).and_then(|live| live.linked.take(party)) else { return };
        let awaits = |transfer: &Transfer| transfer.transferee == other && transfer.by.0 == call;
        let input = match self.pending.values().any(awaits) {
            true => Input::PeerChanged(other.1, None),
            false => Input::PeerLeft(other.1, cause),
        };
        self.effects.push_back(Effect::Feed(other.0, input));
    }

    /// Ends the calls to the node of a room that were placed for the parties of this call.
    pub(super) fn give_up_rooms(&mut self, call: CallId) {
        let of_call = |transfer: &Transfer| transfer.to_room && transfer.transferee.0 == call;
        let mut targets: Vec<CallId> =
            self.pending.extract_if(|_, transfer| of_call(transfer)).map(|(target, _)| target).collect();
        targets.sort_unstable();
        let ended = |target| Effect::Feed(target, Input::End(HangupCause::OriginatorCancel));
        self.effects.extend(targets.into_iter().map(ended));
    }

    /// Returns the next effect; drain to `None` after every input.
    pub(super) fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.effects.is_empty()
    }
}

/// Returns the party that a party talks to, in its own call or in a linked one.
pub(super) fn far_of(calls: &CallTable, (call, party): Place) -> Option<Place> {
    let live = calls.get(call)?;
    let parties = live.call.parties();
    if parties.is_linked(party) {
        return live.linked.of(party);
    }
    parties.other(party).map(|other| (call, other))
}

/// Whether the leg of a party is still open.
pub(super) fn is_there(calls: &CallTable, (call, party): Place) -> bool {
    let leg = calls.get(call).and_then(|live| live.call.parties().leg(party));
    leg.is_some_and(|leg| leg.is_open())
}

/// Links a transferred party with its target; returns the inputs for their calls, or `None` if one of them has left.
pub(super) fn link(
    calls: &mut CallTable,
    transfer: &Transfer,
    target: Place,
) -> Option<[(CallId, Input); 2]> {
    let Transfer { by, transferee, to_room, .. } = *transfer;
    let ((from, party), (to, answered)) = (transferee, target);
    let ready = |call: CallId, party: Party| {
        let parties = calls.get(call)?.call.parties();
        peer_of(parties, party).filter(|_| parties.is_up())
    };
    let (peer, target_peer) = (ready(from, party).filter(|_| from != to)?, ready(to, answered)?);
    // The former links of both end, but not their legs.
    for place in [transferee, target] {
        let former = calls.get_mut(place.0).and_then(|live| live.linked.take(place.1));
        if let Some((former, party)) = former.and_then(|(call, party)| Some((calls.get_mut(call)?, party))) {
            former.linked.take(party);
        }
    }
    let chain = |call: CallId| calls.get(call).map_or(0, |live| live.transfers);
    // Moves of a room to another node are not counted: its members follow it any number of times.
    let transfers = chain(from).max(chain(to)).saturating_add(u8::from(!to_room));
    for ((call, party), linked) in [(transferee, target), (target, transferee)] {
        if let Some(live) = calls.get_mut(call) {
            live.linked.set(party, linked);
            live.transfers = transfers;
        }
    }
    // No party is hung up in return: the other party is moved, too, or is in the same room.
    let of_both = to_room && by == (from, GONE);
    let (onward, back) = (
        Linking { peer: target_peer, from: None, to: Some(to), of_both },
        Linking { peer, from: Some(from), to: None, of_both: false },
    );
    Some([(from, Input::Link(party, Box::new(onward))), (to, Input::Link(answered, Box::new(back)))])
}

/// Returns the hangup cause of a transferred party whose transfer failed with a status.
pub(super) fn cause_of(status: u16) -> HangupCause {
    HangupCause::from_sip_status(status_code(status).as_u16())
}

/// Stands for a transferring party that does not exist, or that has left and cannot be hung up or returned to.
pub(super) const GONE: Party = Party::Callee(usize::MAX);
/// The state of a subscription that ends (RFC 6665 §4.1.3).
const ENDED: &str = "terminated;reason=noresource";
/// 181 (Call Is Being Forwarded).
const FORWARDED: u16 = 181;
/// The lifetime of a subscription; longer than any ringing time.
const EXPIRES_S: u32 = 300;
