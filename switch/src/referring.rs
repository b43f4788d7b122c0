//! REFER inside a dialog: an extension's phone transfers the party that it talks to (RFC 3515, RFC 5589).
//!
//! *Blind*: a call is placed to the number in Refer-To, within the dial plan of the transferring extension and at its
//! cost. *Attended*: Refer-To contains the Replaces of the phone's other dialog with us, and the far ends of both are
//! connected. A trunk with `transfers` may refer its peer, an extension, to a number that this extension may dial,
//! at the extension's cost. A phone whose call is in a room may not transfer.

use sidetone_model::ids::{CallId, ExtensionId};
use sidetone_model::time::Now;
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Host, NameAddr, Replaces, Request, Scheme, StatusCode, Uri};
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::{LegKey, Reply};

use crate::call_control::CallControl;
use crate::call_limits::limits_of;
use crate::call_table::CallTable;
use crate::conference::Goal;
use crate::diverting;
use crate::io::{Awaited, CalleeSide, Callees, Input, Party, Setup, Sides};
use crate::link::peer_of;
use crate::live::{Asked, NewCall};
use crate::message_parts::dialled;
use crate::placement::{Dialled, Onward, Placement, Refused};
use crate::routing::Directory;
use crate::shared::Shared;
use crate::transfers::{Place, Subscription, Transfer, far_of};

/// The target of a Refer-To.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A call to this number.
    Number(String),
    /// The replacement of the sender in this dialog.
    Dialog(Replaces),
}

/// Why a REFER is refused.
pub(super) type Refusal = (StatusCode, &'static str);

/// Why a blind transfer does not begin.
pub(super) enum NotTransferred {
    /// The call does not allow it now.
    Refused(Refusal),
    /// The call to its target is not placed.
    Unplaced(Box<Refused>),
}

impl From<Refusal> for NotTransferred {
    fn from(refusal: Refusal) -> Self {
        NotTransferred::Refused(refusal)
    }
}

/// Returns the extension whose phone has a leg; `None` for other parties.
pub(super) fn extension_of(calls: &CallTable, leg: LegKey) -> Option<ExtensionId> {
    let (call, party) = calls.party_of(leg)?;
    calls.get(call)?.identity_of(party)?.extension
}

/// Whether a request of a leg comes from the address that its other requests come from.
pub(super) fn comes_from_its_party(calls: &CallTable, leg: LegKey, flow: &Flow) -> bool {
    let Some((call, party)) = calls.party_of(leg) else { return false };
    let known = calls.get(call).and_then(|live| live.call.parties().leg(party)?.signalling);
    known == Some(flow.remote.ip())
}

/// Handles a REFER of an identified phone.
pub(super) fn refer(
    now: Now,
    (leg, key): (LegKey, &ServerKey),
    request: &Request,
    control: &mut CallControl,
    shared: &mut Shared,
) {
    let accepted = match checked(leg, request, control, &shared.directory) {
        Ok((target, transfer)) => match target {
            Target::Number(number) => blind(now, key, request, (&number, transfer), control, shared),
            Target::Dialog(replaces) => attended(now, key, request, (&replaces, transfer), control, shared),
        },
        Err(refusal) => Err(refusal),
    };
    if let Err((status, why)) = accepted {
        shared.respond(now, key, Reply::new(status).reason(why));
    }
}

/// Checks whether the sender may transfer now.
pub(super) fn checked(
    leg: LegKey,
    request: &Request,
    control: &CallControl,
    directory: &Directory,
) -> Result<(Target, Transfer), Refusal> {
    let by = control.calls.party_of(leg).ok_or((StatusCode::TEMPORARILY_UNAVAILABLE, "Call Is Over"))?;
    let target = target_of(request)?;
    let transfer = match control.calls.get(by.0).and_then(|live| live.identity_of(by.1)?.extension) {
        Some(_) => transfer_by(by, control)?,
        None => transfer_by_trunk(by, &target, control, directory)?,
    };
    let refers = control.calls.get(by.0).map_or(0, |live| live.refers);
    let subscription = wants_notifications(request).then(|| Subscription {
        leg,
        event: event_of(request, refers),
        rings: false,
    });
    Ok((target, Transfer { subscription, ..transfer }))
}

/// Returns a transfer by a party, without a subscription to its result.
///
/// # Errors
/// Why the party may not transfer now.
pub(super) fn transfer_by(by: Place, control: &CallControl) -> Result<Transfer, Refusal> {
    let identity = control.calls.get(by.0).and_then(|live| live.identity_of(by.1));
    if identity.and_then(|identity| identity.extension).is_none() {
        return Err((StatusCode::DECLINE, "Only Extensions May Transfer"));
    }
    transfer_now(by, control)
}

/// Returns the transfer of an extension by a trunk whose setting allows it; the extension belongs to the call's
/// organisation.
fn transfer_by_trunk(
    by: Place,
    target: &Target,
    control: &CallControl,
    directory: &Directory,
) -> Result<Transfer, Refusal> {
    let live = control.calls.get(by.0);
    let facts = live.map(|live| live.call.facts());
    let trunk = live.and_then(|live| directory.trunk(live.trunk_of(by.1)?));
    let (Some(facts), true) = (facts, trunk.is_some_and(|trunk| trunk.interop.transfers)) else {
        return Err((StatusCode::DECLINE, "Only Extensions May Transfer"));
    };
    if matches!(target, Target::Dialog(_)) {
        return Err((StatusCode::DECLINE, "Trunks Refer To Numbers"));
    }
    let transfer = transfer_now(by, control)?;
    let (call, party) = transfer.transferee;
    let referred = control.calls.get(call).and_then(|live| live.identity_of(party)?.extension);
    let referred = referred.and_then(|referred| directory.extension(referred));
    match referred.filter(|referred| referred.organisation_id == facts.organisation) {
        Some(_) => Ok(transfer),
        None => Err((StatusCode::FORBIDDEN, "Only Extensions Are Referred")),
    }
}

/// Returns a transfer by a party that may transfer, if its call allows one now.
///
/// # Errors
/// Why the call does not allow one.
pub(super) fn transfer_now(by: Place, control: &CallControl) -> Result<Transfer, Refusal> {
    if control.transfers.is_by(by) {
        return Err((StatusCode::REQUEST_PENDING, "Transfer Is Under Way"));
    }
    let live = control.calls.get(by.0).ok_or((StatusCode::TEMPORARILY_UNAVAILABLE, "Call Is Over"))?;
    if live.goal.is_some() {
        return Err((StatusCode::FORBIDDEN, "Call Is In A Conference"));
    }
    let transferee = far_of(&control.calls, by).filter(|_| live.call.parties().is_up());
    let transferee = transferee.ok_or((StatusCode::REQUEST_PENDING, "No Party To Transfer"))?;
    let there = control.calls.get(transferee.0).map(|live| live.call.parties());
    if there.is_none_or(|parties| !parties.is_up() || peer_of(parties, transferee.1).is_none()) {
        return Err((StatusCode::REQUEST_PENDING, "Call Is Changing"));
    }
    if live.transfers >= TRANSFERS_MAX {
        return Err((StatusCode::LOOP_DETECTED, "Too Many Transfers"));
    }
    Ok(Transfer {
        by,
        transferee,
        consulted: None,
        subscription: None,
        picks_up: false,
        unparks: None,
        to_room: false,
    })
}

/// Reads Refer-To.
pub(super) fn target_of(request: &Request) -> Result<Target, Refusal> {
    let bad = |why| (StatusCode::BAD_REQUEST, why);
    if request.header_all("Refer-To").count() != 1 {
        return Err(bad("One Refer-To Expected"));
    }
    let refer_to = request.refer_to().map_err(|_| bad("Bad Refer-To"))?.uri;
    if refer_to.param("method").is_some_and(|method| !method.eq_ignore_ascii_case("INVITE")) {
        return Err((StatusCode::DECLINE, "Only Calls Can Be Referred To"));
    }
    if let Some(replaces) = refer_to.header_decoded("Replaces") {
        return Replaces::parse(&replaces).map(Target::Dialog).map_err(|_| bad("Bad Replaces"));
    }
    match refer_to.scheme() {
        Scheme::Sip | Scheme::Sips | Scheme::Tel => {
            dialled(&refer_to).map(Target::Number).ok_or(bad("No Number In Refer-To"))
        }
        Scheme::Other(_) => Err((StatusCode::UNSUPPORTED_URI_SCHEME, "Unsupported Scheme In Refer-To")),
    }
}

/// RFC 4488: `Refer-Sub: false` asks for no subscription.
fn wants_notifications(request: &Request) -> bool {
    let refused =
        |value: &str| value.split(';').next().is_some_and(|word| word.trim().eq_ignore_ascii_case("false"));
    !request.header("Refer-Sub").is_some_and(refused)
}

/// Returns the Event of the notifications. From the second REFER of a call on, its `id` is the CSeq number (RFC 3515
/// §2.4.6).
fn event_of(request: &Request, earlier: u8) -> String {
    match request.cseq() {
        Ok(cseq) if earlier > 0 => format!("refer;id={}", cseq.number),
        _ => "refer".to_owned(),
    }
}

/// Accepts the REFER.
pub(super) fn accept(
    now: Now,
    key: &ServerKey,
    request: &Request,
    transfer: &Transfer,
    control: &mut CallControl,
    shared: &mut Shared,
) {
    let mut reply = Reply::new(StatusCode::ACCEPTED);
    if request.header("Refer-Sub").is_some() {
        reply = reply.header("Refer-Sub", if transfer.subscription.is_some() { "true" } else { "false" });
    }
    shared.respond(now, key, reply);
    if let Some(live) = control.calls.get_mut(transfer.by.0) {
        live.refers = live.refers.saturating_add(1);
    }
}

/// Handles a REFER to a number.
fn blind(
    now: Now,
    key: &ServerKey,
    request: &Request,
    (number, transfer): (&str, Transfer),
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<(), Refusal> {
    let accepted = |transfer: &Transfer, control: &mut CallControl, shared: &mut Shared| {
        accept(now, key, request, transfer, control, shared);
    };
    let (call, party) = transfer.by;
    let by = control.calls.get(call).and_then(|live| live.identity_of(party));
    let is_by_trunk = by.is_none_or(|by| by.extension.is_none());
    let organisation = control.calls.get(call).map(|live| live.call.facts().organisation);
    let is_elsewhere = |uri: Uri| {
        let host = uri.host().zip(organisation);
        host.is_some_and(|(host, organisation)| shared.directory.is_domain_of_another(host, organisation))
    };
    if request.refer_to().is_ok_and(|to| is_elsewhere(to.uri)) {
        return Err((StatusCode::NOT_FOUND, "Domain Of Another Organisation"));
    }
    let device = request.refer_to().ok().and_then(|to| shared.gruus.target_of(&to.uri, number));
    let target = match &device {
        Some((number, device)) if !is_by_trunk => Dialled { device: Some(*device), ..Dialled::new(number) },
        _ => Dialled::new(number),
    };
    match blind_to(now, (target, Asked::of(request)), transfer, control, shared, accepted) {
        Ok(_) => Ok(()),
        Err(NotTransferred::Refused(refusal)) => Err(refusal),
        // A carrier gets no further details, and its mistakes create no records.
        Err(NotTransferred::Unplaced(_)) if is_by_trunk => {
            Err((StatusCode::FORBIDDEN, "Number May Not Be Called"))
        }
        Err(NotTransferred::Unplaced(refused)) => {
            control.refuse(now, key, *refused, shared);
            Ok(())
        }
    }
}

/// Places the call to the target of a blind transfer, and returns it; `accepted` runs before anything is sent.
///
/// # Errors
/// Why the transfer does not begin.
pub(super) fn blind_to(
    now: Now,
    (target, asked): (Dialled<'_>, Asked),
    transfer: Transfer,
    control: &mut CallControl,
    shared: &mut Shared,
    accepted: impl FnOnce(&Transfer, &mut CallControl, &mut Shared),
) -> Result<CallId, NotTransferred> {
    if !control.has_capacity() {
        return Err((StatusCode::SERVICE_UNAVAILABLE, "Too Many Calls").into());
    }
    let identity = |(call, party): Place| control.calls.get(call)?.identity_of(party).cloned();
    let gone = (StatusCode::TEMPORARILY_UNAVAILABLE, "Call Is Over");
    let shown = identity(transfer.transferee).ok_or(gone)?;
    // A trunk refers the extension itself.
    let by = identity(transfer.by).and_then(|by| by.extension);
    let extension = by.or(shown.extension).ok_or(gone)?;
    let placed = control.placing(shared).place_transfer(now, extension, &shown, asked, target);
    let placement = placed.map_err(|refused| NotTransferred::Unplaced(Box::new(refused)))?;
    place_for(now, (placement, asked), transfer, control, shared, accepted)
}

/// Begins the call to the target of a transfer, and returns it; `accepted` runs before anything is sent.
///
/// # Errors
/// Why the transfer does not begin.
pub(super) fn place_for(
    now: Now,
    (placement, asked): (Placement, Asked),
    transfer: Transfer,
    control: &mut CallControl,
    shared: &mut Shared,
    accepted: impl FnOnce(&Transfer, &mut CallControl, &mut Shared),
) -> Result<CallId, NotTransferred> {
    let gone = (StatusCode::TEMPORARILY_UNAVAILABLE, "Call Is Over");
    let by = control.calls.get(transfer.by.0).and_then(|live| live.identity_of(transfer.by.1)?.extension);
    let Placement { facts, callee_policy, srtp: (_, srtp), onward, forwards, diverted, .. } = placement;
    let (callees, hunt) = match onward {
        Onward::Bindings(callees) => (callees, None),
        Onward::Room(goal) => {
            let call = transfer.transferee.0;
            enter_room_of((goal, transfer), control, shared, accepted)?;
            return Ok(call);
        }
        Onward::World(hunt) => (Vec::new(), Some(*hunt)),
    };
    let live = control.calls.get(transfer.transferee.0).ok_or(gone)?;
    let peer = peer_of(live.call.parties(), transfer.transferee.1).ok_or(gone)?;
    let group = live.call.group();
    let referrer = by.and_then(|by| Some(("Referred-By", referred_by(by, shared)?)));
    let callees = diverting::mark(callees, &Vec::from_iter(referrer));
    let rung = match &hunt {
        Some(_) => Callees::InTurn,
        None => Callees::AtOnce(callees.iter().map(|callee| callee.at).collect()),
    };
    let callee = CalleeSide { policy: callee_policy, srtp, callees: rung, forwards };
    let awaited = Awaited { settled: peer.settled, policy: peer.policy, from: transfer.transferee.0 };
    let sides = Sides::ForPeer { awaited: Box::new(awaited), callee };
    let limits = limits_of(control.limits, &shared.directory, &facts);
    let target = facts.call;
    let (session_id, keys) = (shared.ids.session(), shared.ids.keys());
    let setup = Setup { facts, limits, sides, session_id, group, keys };
    accepted(&transfer, control, shared);
    let (by, transfers) = (transfer.by, live_transfers(control, transfer.transferee));
    control.transfers.begin(target, transfer);
    control.feed(now, by.0, Input::Referring(Some(by.1)), shared);
    let new = NewCall {
        setup,
        caller: None,
        callees,
        hunt,
        goal: None,
        asked: Some(asked),
        diverted,
        request: None,
    };
    control.begin(now, new, shared);
    if let Some(live) = control.calls.get_mut(target) {
        live.transfers = transfers;
    }
    Ok(target)
}

fn live_transfers(control: &CallControl, (call, _): Place) -> u8 {
    control.calls.get(call).map_or(0, |live| live.transfers)
}

/// Returns the Referred-By of an extension (RFC 3892).
fn referred_by(extension: ExtensionId, shared: &Shared) -> Option<String> {
    let extension = shared.directory.extension(extension)?;
    let domain = &shared.directory.organisation(extension.organisation_id)?.sip_domain;
    let host = Host::parse(domain).ok()?;
    Some(NameAddr::new(Uri::sip(host, None).with_user(&extension.number)).to_string())
}

/// Moves the transferred party into a room.
fn enter_room_of(
    (goal, transfer): (Goal, Transfer),
    control: &mut CallControl,
    shared: &mut Shared,
    accepted: impl FnOnce(&Transfer, &mut CallControl, &mut Shared),
) -> Result<(), Refusal> {
    let Transfer { by, transferee, .. } = transfer;
    let live =
        control.calls.get_mut(transferee.0).filter(|live| live.call.can_merge() && by.0 == transferee.0);
    let Some(live) = live else {
        return Err((StatusCode::REQUEST_PENDING, "Call Cannot Enter A Conference Now"));
    };
    live.goal = Some(goal);
    accepted(&transfer, control, shared);
    // The result is sent before the BYE.
    control.transfers.notify(&transfer, StatusCode::OK);
    control.transfers.enter_room(transferee.0, by.1);
    Ok(())
}

/// Handles a REFER to another dialog of the sender.
fn attended(
    now: Now,
    key: &ServerKey,
    request: &Request,
    (replaces, transfer): (&Replaces, Transfer),
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<(), Refusal> {
    let unknown = (StatusCode::NOT_FOUND, "No Such Dialog");
    let other = shared.ua.leg_of_dialog(&replaces.call_id, &replaces.to_tag, &replaces.from_tag);
    let consulted = other.and_then(|leg| control.calls.party_of(leg)).ok_or(unknown)?;
    let accepted = |transfer: &Transfer, control: &mut CallControl, shared: &mut Shared| {
        accept(now, key, request, transfer, control, shared);
    };
    join_far_ends(now, consulted, transfer, control, shared, accepted)
}

/// Connects the transferred party with the far end of another leg of the transferring extension, immediately or when
/// that far end answers; `accepted` runs before anything is sent.
///
/// # Errors
/// Why they are not connected.
pub(super) fn join_far_ends(
    now: Now,
    consulted: Place,
    transfer: Transfer,
    control: &mut CallControl,
    shared: &mut Shared,
    accepted: impl FnOnce(&Transfer, &mut CallControl, &mut Shared),
) -> Result<(), Refusal> {
    let unknown = (StatusCode::NOT_FOUND, "No Such Dialog");
    let extension = |(call, party): Place| control.calls.get(call)?.identity_of(party)?.extension;
    // A dialog of another user may not be taken over in this way, nor is its existence disclosed.
    if extension(consulted) != extension(transfer.by) || consulted.0 == transfer.by.0 {
        return Err(unknown);
    }
    let transfer = Transfer { consulted: Some(consulted), ..transfer };
    let live = control.calls.get(consulted.0).ok_or(unknown)?;
    if let Some(goal) = live.goal.clone() {
        enter_room_of((goal, transfer), control, shared, accepted)?;
        control.transfers.dismiss(consulted.0, consulted.1);
        return Ok(());
    }
    let (is_up, rings) = (live.call.parties().is_up(), live.call.is_ringing());
    if rings && consulted.1 == Party::Caller {
        accepted(&transfer, control, shared);
        let by = transfer.by;
        control.transfers.begin(consulted.0, transfer);
        control.feed(now, by.0, Input::Referring(Some(by.1)), shared);
        return Ok(());
    }
    let target =
        far_of(&control.calls, consulted).filter(|target| is_up && target.0 != transfer.transferee.0);
    let target = target.ok_or((StatusCode::FORBIDDEN, "Dialog Has No Other Party"))?;
    accepted(&transfer, control, shared);
    control.transfers.join(transfer, target);
    Ok(())
}

/// Most transfers in a chain of calls; a longer chain is treated as a loop.
pub(super) const TRANSFERS_MAX: u8 = 5;
