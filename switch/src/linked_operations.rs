//! Hold, recording and prompts of two linked calls, as a transfer, a pick-up or a replaced dialog creates them: each
//! call has one of the two parties, and both calls get every step.

use sidetone_media::mix::MixId;
use sidetone_model::call_operation::{OperationRefused, RecordStep};
use sidetone_model::call_prompt::{LivePrompt, PlayResult, PlaySide};
use sidetone_model::ids::CallId;
use sidetone_model::language::Language;
use sidetone_model::time::Now;

use crate::call_control::CallControl;
use crate::io::{Input, LinkHold, LinkedPrompt, LinkedStep, Party};
use crate::leg::Leg;
use crate::live::LiveCall;
use crate::routing::Directory;
use crate::shared::Shared;
use crate::transfers::Place;

/// Puts the party that `holder` talks to on hold.
///
/// # Errors
/// Why it is not put on hold.
pub(super) fn hold(
    now: Now,
    holder: Place,
    held: Place,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<CallId, OperationRefused> {
    let by =
        control.calls.get(holder.0).and_then(|live| live.identity_of(holder.1)).map(|identity| identity.id);
    let by = by.ok_or(OperationRefused::Gone)?;
    for (call, party) in [holder, held] {
        let there = live(control, call)?;
        may_mix(there, party)?;
        if there.held_by().is_some_and(|present| present != by) {
            return Err(conflict("the other party holds the call: resume it first"));
        }
    }
    let mix = mix_of([holder, held], control, shared);
    for ((call, _), is_own) in [(holder, true), (held, false)] {
        let step = LinkedStep::Hold(Some(LinkHold { by, is_own }));
        control.feed(now, call, Input::Linked(mix, step), shared);
    }
    Ok(holder.0)
}

/// Ends the hold of two linked calls.
///
/// # Errors
/// When one of them has ended.
pub(super) fn unhold(
    now: Now,
    call: CallId,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<CallId, OperationRefused> {
    let places = places(control, call)?;
    let mix = mix_of(places, control, shared);
    for (call, _) in places {
        control.feed(now, call, Input::Linked(mix, LinkedStep::Hold(None)), shared);
    }
    Ok(call)
}

/// Carries out a step of the recording of both parties; returns the other call. A recording belongs to the call that
/// was named at its start.
///
/// # Errors
/// Why the step is refused.
pub(super) fn record(
    now: Now,
    call: CallId,
    step: RecordStep,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<CallId, OperationRefused> {
    let places = places(control, call)?;
    let parties = live(control, call)?.call.parties();
    let orders = parties.linked_mix().is_some_and(|mix| mix.orders);
    match (parties.recording(), step) {
        (Some(_), RecordStep::Start(_)) if orders => return Err(conflict("the call is recorded already")),
        (Some(_), RecordStep::Start(_)) => {
            let text = "the call is recorded already: the recording of the call that it is linked with has both parties";
            return Err(conflict(text));
        }
        (None, RecordStep::Start(_)) => {
            for (call, party) in places {
                may_mix(live(control, call)?, party)?;
            }
        }
        (None, RecordStep::Pause | RecordStep::Resume | RecordStep::Stop) => {
            return Err(conflict("the call is not recorded"));
        }
        (Some(_), RecordStep::Pause | RecordStep::Resume | RecordStep::Stop) => {}
    }
    let mix = mix_of(places, control, shared);
    let [named, other] = places;
    // The file begins when both parties have seats.
    for ((call, _), orders) in [(other, false), (named, true)] {
        control.feed(now, call, Input::Linked(mix, LinkedStep::Record(step, orders)), shared);
    }
    Ok(other.0)
}

/// Plays a prompt to the party of the call, to that of the other call, or to both; `None` stops the prompt that plays.
///
/// # Errors
/// Why it is not played.
pub(super) fn play(
    now: Now,
    call: CallId,
    prompt: Option<LivePrompt>,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<CallId, OperationRefused> {
    let places = places(control, call)?;
    let [named, other] = places;
    let Some(prompt) = prompt else {
        end_prompt(now, places, PlayResult::Stopped, control, shared);
        return Ok(call);
    };
    for (call, party) in places {
        may_mix(live(control, call)?, party)?;
    }
    let mix = mix_of(places, control, shared);
    let is_caller = |(_, party): Place| party == Party::Caller;
    let turned = LivePrompt { side: turned(prompt.side), ..prompt };
    // Both parties may have the same side, each in its own call.
    let shown = if is_caller(named) == is_caller(other) { turned } else { prompt };
    for ((call, party), prompt, reports) in [(other, shown, false), (named, prompt, true)] {
        let language = language_of(live(control, call)?, party, &shared.directory);
        let step = LinkedStep::Play(LinkedPrompt { prompt, language, reports });
        control.feed(now, call, Input::Linked(mix, step), shared);
    }
    Ok(call)
}

/// Ends a prompt that has ended for both parties.
pub(super) fn played(now: Now, call: CallId, control: &mut CallControl, shared: &mut Shared) {
    let Ok(places) = places(control, call) else { return };
    let has_ended = |(call, _): Place| {
        let mix = control.calls.get(call).and_then(|live| live.call.parties().linked_mix());
        mix.and_then(|mix| mix.playing).is_some_and(|playing| !playing.waits)
    };
    if places.into_iter().all(has_ended) {
        end_prompt(now, places, PlayResult::Finished, control, shared);
    }
}

/// Returns the language of the built-in prompts for a party: that of its extension, else that of the organisation.
pub(super) fn language_of(live: &LiveCall, party: Party, directory: &Directory) -> Language {
    let extension = live.identity_of(party).and_then(|identity| identity.extension);
    let own = extension.and_then(|extension| directory.extension(extension)?.language);
    let of_organisation = || Some(directory.organisation(live.call.facts().organisation)?.language);
    own.or_else(of_organisation).unwrap_or_default()
}

fn end_prompt(
    now: Now,
    places: [Place; 2],
    result: PlayResult,
    control: &mut CallControl,
    shared: &mut Shared,
) {
    let mix = mix_of(places, control, shared);
    for (call, _) in places {
        control.feed(now, call, Input::Linked(mix, LinkedStep::EndPrompt(result)), shared);
    }
}

/// Returns the linked party of a call, and that of the other one.
fn places(control: &CallControl, call: CallId) -> Result<[Place; 2], OperationRefused> {
    let live = live(control, call)?;
    let parties = live.call.parties();
    let own = parties.link.as_ref().filter(|link| link.peer.is_some()).map(|link| (call, link.party));
    own.zip(live.linked.only()).map(Into::into).ok_or_else(|| conflict(TALKS_TO_NONE))
}

/// Returns the mix of linked calls, which begins with its first use.
fn mix_of(places: [Place; 2], control: &CallControl, shared: &mut Shared) -> MixId {
    let calls = places.map(|(call, _)| control.calls.get(call));
    let present = calls.iter().flatten().find_map(|live| live.call.parties().linked_mix());
    match present {
        Some(mix) => mix.id,
        None => shared.ids.mix_of(calls.map(|live| live.map_or(0, |live| live.call.group()))),
    }
}

/// Checks that the linked party of a call may have a seat in a mix.
fn may_mix(live: &LiveCall, party: Party) -> Result<(), OperationRefused> {
    let parties = live.call.parties();
    if !parties.has_peer(party) {
        return Err(conflict(TALKS_TO_NONE));
    }
    if parties.twin.is_some() {
        return Err(conflict(IN_ROOM));
    }
    match parties.leg(party).is_some_and(Leg::is_mixable) {
        true => Ok(()),
        false => Err(conflict("the codec of a party cannot be decoded here")),
    }
}

fn turned(side: PlaySide) -> PlaySide {
    match side {
        PlaySide::Both => PlaySide::Both,
        PlaySide::Callee => PlaySide::Caller,
        PlaySide::Caller => PlaySide::Callee,
    }
}

fn live(control: &CallControl, call: CallId) -> Result<&LiveCall, OperationRefused> {
    control.calls.get(call).filter(|live| !live.call.has_ended()).ok_or(OperationRefused::Gone)
}

fn conflict(why: &str) -> OperationRefused {
    OperationRefused::Conflict(why.to_owned())
}

/// Why hold, recording and prompts are refused for parties that are in a room at another node.
pub(super) const IN_ROOM: &str =
    "the parties of the call are in a room at another node: control it by the operations of the room";
const TALKS_TO_NONE: &str = "the leg talks to no party now";
