//! Live calls that an extension forwards: new targets replace its phones.

use sidetone_model::ids::CallId;
use sidetone_sip::sdp::{CodecPolicy, SrtpRule};

use crate::call_table::CallTable;
use crate::diverting;
use crate::ids::Ids;
use crate::io::{self, CalleeSide, Callees, Diverted, Forwards, Input};
use crate::live::{Callee, LegIdentity, LiveCall};
use crate::placement::{Onward, Placement};

/// Returns the party that new targets see: the caller, the party for which a transfer placed the call, or the room
/// that placed it.
pub(super) fn shown(live: &LiveCall, transferred: Option<LegIdentity>, ids: &mut Ids) -> LegIdentity {
    let caller = live.caller.as_ref().map(|caller| caller.identity.clone());
    caller.or(transferred).unwrap_or_else(|| LegIdentity {
        id: ids.leg(),
        extension: None,
        number: live.call.facts().caller_number.clone(),
        name: String::new(),
    })
}

/// Gives a live call its new targets; returns the input that rings them. `None` if the target is a room and the call
/// has no caller to enter it.
pub(super) fn redirect(calls: &mut CallTable, id: CallId, placed: Placement) -> Option<Input> {
    let Placement { facts, callee_policy: policy, srtp: (_, srtp), onward, diverted, forwards, .. } = placed;
    let live = calls.get_mut(id)?;
    let facts = diverting::facts(live.call.facts().clone(), facts, &diverted);
    live.diverted = diverted;
    let callees = match onward {
        Onward::Bindings(callees) => {
            let at_once = callees.iter().map(|callee| callee.at).collect();
            live.callees.extend(callees);
            Callees::AtOnce(at_once)
        }
        Onward::Room(goal) => {
            live.caller.as_ref()?;
            live.goal = Some(goal);
            return Some(Input::EnterRoom(Box::new(facts)));
        }
        Onward::World(hunt) => {
            calls.begin_hunt(id, *hunt);
            Callees::InTurn
        }
    };
    let callee = CalleeSide { policy, srtp, callees, forwards };
    Some(Input::Divert(Box::new(Diverted { facts, callee })))
}

/// Rings one more party for the caller of a live call, who has answered.
pub(super) fn ring(live: &mut LiveCall, callee: Callee) -> Input {
    let callees = Callees::AtOnce(vec![callee.at]);
    live.callees.push(callee);
    Input::Onward(io::Onward::Callee(CalleeSide {
        policy: CodecPolicy::ANY,
        srtp: SrtpRule::Off,
        callees,
        forwards: Forwards::default(),
    }))
}

/// Rings the target of a requested call whose calling party has answered.
pub(super) fn ring_target(calls: &mut CallTable, id: CallId, placed: Placement) -> Option<Input> {
    let is_forwarded = !placed.diverted.is_empty();
    match redirect(calls, id, placed)? {
        // Without forwarding, the facts of the request stay.
        Input::Divert(diverted) if !is_forwarded && diverted.callee.callees != Callees::InTurn => {
            Some(Input::Onward(io::Onward::Callee(diverted.callee)))
        }
        input => Some(input),
    }
}
