//! Operations of programs on live calls: a transfer on behalf of an extension's phone, the move into a room,
//! hold, prompts and recording.
//!
//! A transfer works like the phone's own REFER, without notifications: the target's call is placed within the dial
//! plan of the extension and at its cost, and the phone stays until the target has answered.

use sidetone_model::call_fields::GivenFields;
use sidetone_model::call_operation::{
    CallOperation, HoldOrder, MoveOrder, OperationRefused, RecordStep, TransferOrder, TransferTarget,
};
use sidetone_model::call_prompt::LivePrompt;
use sidetone_model::ids::{CallId, ConferenceSessionId, LegId, OrganisationId, RoomId};
use sidetone_model::problem::FieldProblem;
use sidetone_model::room::{DialRequest, Role};
use sidetone_model::time::Now;
use sidetone_sip::message::StatusCode;

use crate::authentication::Sender;
use crate::call_control::CallControl;
use crate::conference::{self, Goal};
use crate::dialling::Dialler;
use crate::io::{Input, Party};
use crate::linked_operations::{self, language_of};
use crate::live::{Asked, LiveCall, MAX_FORWARDS};
use crate::mixing::Recording;
use crate::parking;
use crate::placement::{Dialled, Refused};
use crate::referring::{self, NotTransferred, Refusal};
use crate::requested::Requester;
use crate::room_moves::{self, move_seated, move_there};
use crate::room_places::Joined;
use crate::shared::Shared;
use crate::transfers::{Place, Transfer};

/// Begins an operation; returns the call to a transfer's target, the linked call that is also recorded, or otherwise
/// the same call.
///
/// # Errors
/// Why it is refused; nothing was done.
pub(super) fn operate(
    now: Now,
    operation: CallOperation,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<CallId, OperationRefused> {
    let given = given_fields(&operation);
    let begun = match operation {
        CallOperation::Hold(order) => hold(now, order, control, shared),
        CallOperation::MoveToRoom(order) => move_to_room(now, order, control, shared),
        CallOperation::Park(order) => {
            let parker = (order.call, party(live(control, order.call)?, order.leg)?);
            parking::park(now, order, parker, control, shared).inspect(|_| {
                control.transfers.dismiss(parker.0, parker.1);
            })
        }
        CallOperation::PickUp(order) => parking::pick_up(now, order, control, shared),
        CallOperation::Play(call, prompt) => play(now, call, prompt, control, shared),
        CallOperation::Record(call, step) => record(now, call, step, control, shared),
        CallOperation::Transfer(order) => transfer(now, order, control, shared),
        CallOperation::Unhold(call) => unhold(now, call, control, shared),
    };
    begun.map_err(|refused| match (refused, given) {
        // An operation stops at the first wrong field; the response lists all.
        (OperationRefused::Wrong(first), Some(given)) => {
            let mut wrong = judge(now, given, control, shared);
            wrong.retain(|found| first.iter().all(|problem| problem.field != found.field));
            OperationRefused::Wrong(first.into_iter().chain(wrong).collect())
        }
        (refused, _) => refused,
    })
}

/// Checks these fields without any effect; returns the problems. The fields for an ended call have no problems.
pub(super) fn judge(
    now: Now,
    given: GivenFields,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Vec<FieldProblem> {
    let (call, leg, to, with, room) = match given {
        GivenFields::Dial { organisation, kind, target } => {
            let request = DialRequest { kind, target, role: Role::Participant, confirm: false };
            let found = Dialler(control.placing(shared)).may_dial(now, organisation, &request);
            return found.err().and_then(|refused| refused.wrong_target()).into_iter().collect();
        }
        GivenFields::Operation { call, leg, to, with, room } => (call, leg, to, with, room),
        GivenFields::Placement { organisation, to, caller_id, .. } => {
            let mut requester = Requester(control.placing(shared));
            return requester.wrong_fields(now, organisation, to.as_deref(), caller_id.as_deref());
        }
    };
    let mut refusals = Vec::new();
    let Ok(live) = live(control, call) else { return Vec::new() };
    let organisation = live.call.facts().organisation;
    let by = leg.map(|leg| party(live, Some(leg)));
    let transfers = by.clone().unwrap_or_else(|| party(live, None)).ok();
    refusals.extend(by.and_then(Result::err));
    if let (Some(with), Some(by)) = (with, transfers) {
        refusals.extend(consulted(control, (call, by), with).err());
    }
    let room = room.filter(|room| !is_room_of(shared, *room, organisation));
    refusals.extend(room.map(|_| no_room()));
    let mut wrong = Vec::new();
    for refusal in refusals {
        if let OperationRefused::Wrong(fields) = refusal {
            wrong.extend(fields);
        }
    }
    let to = to.as_deref();
    wrong.extend(Requester(control.placing(shared)).wrong_fields(now, organisation, to, None));
    wrong
}

/// The fields of an operation for [`judge`]; `None` when the operation has at most one field.
fn given_fields(operation: &CallOperation) -> Option<GivenFields> {
    match operation {
        CallOperation::MoveToRoom(MoveOrder { call, leg, room }) => {
            Some(GivenFields::Operation { call: *call, leg: *leg, to: None, with: None, room: Some(*room) })
        }
        CallOperation::Transfer(TransferOrder { call, leg, to }) => {
            let (to, with) = match to {
                TransferTarget::Number(number) => (Some(number.clone()), None),
                TransferTarget::Call(with) => (None, Some(*with)),
            };
            Some(GivenFields::Operation { call: *call, leg: *leg, to, with, room: None })
        }
        CallOperation::Hold(_)
        | CallOperation::Park(_)
        | CallOperation::PickUp(_)
        | CallOperation::Play(..)
        | CallOperation::Record(..)
        | CallOperation::Unhold(_) => None,
    }
}

fn is_room_of(shared: &Shared, room: RoomId, organisation: OrganisationId) -> bool {
    shared.directory.room(room).is_some_and(|room| room.organisation_id == organisation)
}

fn no_room() -> OperationRefused {
    OperationRefused::wrong("room_id", "there is no such conference room")
}

fn transfer(
    now: Now,
    order: TransferOrder,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<CallId, OperationRefused> {
    let TransferOrder { call, leg, to } = order;
    let by = (call, party(live(control, call)?, leg)?);
    let transfer = referring::transfer_by(by, control).map_err(conflict)?;
    let silently = |_: &Transfer, _: &mut CallControl, _: &mut Shared| {};
    match to {
        TransferTarget::Number(number) => {
            let asked = Asked { max_forwards: MAX_FORWARDS, secure: false, anonymous: false };
            let begun =
                referring::blind_to(now, (Dialled::new(&number), asked), transfer, control, shared, silently);
            begun.map_err(|refused| match refused {
                NotTransferred::Refused(refusal) => conflict(refusal),
                NotTransferred::Unplaced(refused) => unplaced(&refused),
            })
        }
        TransferTarget::Call(with) => {
            let consulted = consulted(control, by, with)?;
            referring::join_far_ends(now, consulted, transfer, control, shared, silently)
                .map(|()| with)
                .map_err(conflict)
        }
    }
}

fn move_to_room(
    now: Now,
    order: MoveOrder,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<CallId, OperationRefused> {
    let MoveOrder { call, leg, room } = order;
    let live = live(control, call)?;
    let moved = leg.map(|leg| party(live, Some(leg))).transpose()?;
    let organisation = live.call.facts().organisation;
    if !is_room_of(shared, room, organisation) {
        return Err(no_room());
    }
    if live.goal.is_some() {
        return Err(OperationRefused::Conflict("the call is in a room already".to_owned()));
    }
    if !live.linked.is_empty() {
        return Err(OperationRefused::Conflict(format!(
            "the call is linked with another one by a transfer or a pick-up, so that its parties cannot be moved: \
             call them into the room with POST /conference-rooms/{room}/dial"
        )));
    }
    if !live.call.can_merge() {
        return Err(OperationRefused::Conflict(
            "both parties must have answered, and talk to each other in this call: try again".to_owned(),
        ));
    }
    let without = moved.and_then(|moved| live.call.parties().other(moved));
    if shared.rooms.there(room).is_some() {
        return match moved.zip(without) {
            Some((moved, without)) => {
                move_elsewhere(now, room, (call, moved), (call, without), control, shared)
            }
            None => move_both_elsewhere(now, room, call, control, shared),
        };
    }
    let comes_back =
        live.returns.as_deref().is_some_and(|seat| control.conferences.rooms.expects(room, seat));
    if !comes_back && !control.conferences.accepts(room) {
        return Err(OperationRefused::Conflict("the room is locked or full".to_owned()));
    }
    if let Some(live) = control.calls.get_mut(call) {
        live.goal = Some(Goal::Moved { room });
    }
    control.feed(now, call, Input::Merge(without), shared);
    Ok(call)
}

/// Moves one party into a room that another node owns; the other one is hung up.
fn move_elsewhere(
    now: Now,
    room: RoomId,
    moved: Place,
    by: Place,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<CallId, OperationRefused> {
    let joined = joined(moved, room, control, shared)?;
    move_there(now, by, joined, control, shared).map(|_| moved.0).ok_or_else(not_moved)
}

/// Moves both parties into a room that another node owns. They are connected with each other until that node has
/// answered for the first of them, and stay connected if it does not.
fn move_both_elsewhere(
    now: Now,
    room: RoomId,
    call: CallId,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<CallId, OperationRefused> {
    let places: Vec<Place> = parties(live(control, call)?).map(|party| (call, party)).collect();
    let mut joining = Vec::new();
    for place in places {
        joining.push((place, joined(place, room, control, shared)?));
    }
    for (place, joined) in joining {
        if move_seated(now, place, joined, control, shared).is_none() {
            room_moves::give_up(call, control);
            return Err(not_moved());
        }
    }
    Ok(call)
}

/// The request that connects a party of a call to a room at another node.
fn joined(
    place: Place,
    room: RoomId,
    control: &CallControl,
    shared: &Shared,
) -> Result<Joined, OperationRefused> {
    let live = live(control, place.0)?;
    let extension = live.identity_of(place.1).and_then(|identity| identity.extension);
    // A party without an extension is moved on behalf of the extension to which the call belongs.
    let extension = extension.or(live.call.facts().extension);
    let number = shared.directory.room(room).map(|room| room.number.clone());
    let joined = extension.zip(number);
    joined
        .map(|(extension, dialled)| Joined::new(room, Sender::Extension(extension), dialled))
        .ok_or_else(|| OperationRefused::Conflict("the party belongs to no extension".to_owned()))
}

fn not_moved() -> OperationRefused {
    OperationRefused::Conflict("the call cannot be moved to the room's node now: try again".to_owned())
}

/// The party of another call to which the remaining party of a call is linked.
fn linked(live: &LiveCall) -> Result<Option<Place>, OperationRefused> {
    match live.linked.has_both() {
        true => Err(OperationRefused::Conflict(linked_operations::IN_ROOM.to_owned())),
        false => Ok(live.linked.only()),
    }
}

fn hold(
    now: Now,
    HoldOrder { call, leg }: HoldOrder,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<CallId, OperationRefused> {
    let live = live(control, call)?;
    if let Some(other) = linked(live)? {
        let holder = (call, party(live, leg)?);
        return linked_operations::hold(now, holder, other, control, shared);
    }
    may_mix(live)?;
    let holder = party(live, leg)?;
    if live.call.parties().holder().is_some_and(|present| present != holder) {
        return Err(OperationRefused::Conflict("the other party holds the call: resume it first".to_owned()));
    }
    control.feed(now, call, Input::Hold(Some(holder)), shared);
    Ok(call)
}

fn unhold(
    now: Now,
    call: CallId,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<CallId, OperationRefused> {
    let live = live(control, call)?;
    if live.held_by().is_none() {
        return Err(OperationRefused::Conflict("no program has put the call on hold".to_owned()));
    }
    if linked(live)?.is_some() {
        return linked_operations::unhold(now, call, control, shared);
    }
    control.feed(now, call, Input::Hold(None), shared);
    Ok(call)
}

fn play(
    now: Now,
    call: CallId,
    prompt: Option<LivePrompt>,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<CallId, OperationRefused> {
    let live = live(control, call)?;
    if linked(live)?.is_some() {
        return linked_operations::play(now, call, prompt, control, shared);
    }
    if prompt.is_some() {
        may_mix(live)?;
    }
    let callee = live.call.parties().callee().map_or(Party::Caller, Party::Callee);
    let languages = [Party::Caller, callee].map(|party| language_of(live, party, &shared.directory));
    control.feed(now, call, Input::Play(prompt, languages), shared);
    Ok(call)
}

fn record(
    now: Now,
    call: CallId,
    step: RecordStep,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<CallId, OperationRefused> {
    let live = live(control, call)?;
    if linked(live)?.is_some() {
        return linked_operations::record(now, call, step, control, shared);
    }
    match (live.call.parties().recording(), step) {
        (Some(_), RecordStep::Start(_)) => {
            return Err(OperationRefused::Conflict("the call is recorded already".to_owned()));
        }
        (None, RecordStep::Start(_)) => may_mix(live)?,
        (None, RecordStep::Pause | RecordStep::Resume | RecordStep::Stop) => {
            return Err(OperationRefused::Conflict("the call is not recorded".to_owned()));
        }
        (Some(_), RecordStep::Pause | RecordStep::Resume | RecordStep::Stop) => {}
    }
    control.feed(now, call, Input::Record(step), shared);
    Ok(call)
}

/// Handles the end of a recording of a room or a call. After a recording ended by itself, for example on a full disk,
/// the call is no longer recorded.
pub(super) fn recorded(
    now: Now,
    session: ConferenceSessionId,
    Recording { bytes, error }: Recording,
    control: &mut CallControl,
    shared: &mut Shared,
) {
    control.conferences.handle_input(now, conference::Input::Recorded { session, bytes, error });
    let is_of =
        |live: &&LiveCall| live.call.parties().recording().is_some_and(|present| present.id.0 == session.0);
    let call = control.calls.iter().find(is_of).map(|live| live.call.facts().call);
    if let Some(call) = call {
        // Fails when the call ends at this moment; then it is not recorded either.
        let _ = record(now, call, RecordStep::Stop, control, shared);
    }
}

/// Checks that the parties of a call may have seats in the call's own mix.
fn may_mix(live: &LiveCall) -> Result<(), OperationRefused> {
    let parties = live.call.parties();
    let why = if live.goal.is_some() {
        "the call is in a room: control it by the operations of the room"
    } else if !live.call.can_merge() {
        "both parties must have answered, and talk to each other in this call: try again"
    } else if !parties.can_mix() {
        "the codec of a party cannot be decoded here"
    } else {
        return Ok(());
    };
    Err(OperationRefused::Conflict(why.to_owned()))
}

fn live(control: &CallControl, call: CallId) -> Result<&LiveCall, OperationRefused> {
    control.calls.get(call).filter(|live| !live.call.has_ended()).ok_or(OperationRefused::Gone)
}

/// Returns the party of a leg; without one, the phone of the extension that the call belongs to.
fn party(live: &LiveCall, leg: Option<LegId>) -> Result<Party, OperationRefused> {
    let own = live.call.facts().extension;
    let mut parties = parties(live);
    match leg {
        Some(leg) => parties
            .find(|party| live.identity_of(*party).is_some_and(|identity| identity.id == leg))
            .ok_or_else(|| OperationRefused::wrong("leg", "is no leg of the call")),
        None => parties
            .find(|party| live.identity_of(*party).is_some_and(|identity| identity.extension == own))
            .filter(|_| own.is_some())
            .ok_or_else(|| OperationRefused::wrong("leg", "is required: the call belongs to no extension")),
    }
}

/// Returns the parties that have answered, or that called.
fn parties(live: &LiveCall) -> impl Iterator<Item = Party> {
    let callee = live.call.parties().callee().map(Party::Callee);
    std::iter::once(Party::Caller).chain(callee)
}

/// Returns the leg of the transferring extension in its other call.
fn consulted(control: &CallControl, by: Place, with: CallId) -> Result<Place, OperationRefused> {
    let extension_of = |(call, party): Place| control.calls.get(call)?.identity_of(party)?.extension;
    let other = live(control, with).ok().filter(|_| with != by.0);
    let mut places = other.into_iter().flat_map(parties).map(|party| (with, party));
    let extension = extension_of(by);
    places.find(|place| extension_of(*place) == extension).ok_or_else(|| {
        OperationRefused::wrong("with", "is no other live call of the extension that transfers")
    })
}

fn conflict((status, why): Refusal) -> OperationRefused {
    if status == StatusCode::SERVICE_UNAVAILABLE {
        return OperationRefused::Busy;
    }
    OperationRefused::Conflict(format!("the call cannot be transferred now: {}", why.to_lowercase()))
}

/// Returns why no call to the target was placed.
fn unplaced(refused: &Refused) -> OperationRefused {
    match refused.status {
        StatusCode::SERVICE_UNAVAILABLE => OperationRefused::Busy,
        StatusCode::TEMPORARILY_UNAVAILABLE => {
            OperationRefused::Conflict("to: the extension has no registered phone".to_owned())
        }
        _ => {
            let why = refused.why.map(str::to_lowercase);
            let why = why.unwrap_or_else(|| "is no number that the extension can dial".to_owned());
            OperationRefused::wrong("to", why)
        }
    }
}
