//! INVITE with Replaces: an extension's phone replaces another phone in its call (RFC 3891).
//!
//! Only an extension may do so, and only in calls of its organisation. The caller is answered with the terms of the
//! replaced phone's peer, then both are linked as after a transfer, and the replaced phone is hung up.

use sidetone_model::ids::ExtensionId;
use sidetone_model::time::Now;
use sidetone_sip::message::{Name, Replaces, Request, StatusCode};
use sidetone_sip::sdp::{CodecPolicy, SessionDescription};
use sidetone_sip::ua::Reply;

use crate::authentication::Sender;
use crate::call_control::CallControl;
use crate::call_limits::limits_of;
use crate::incoming::Invitation;
use crate::io::{Awaited, CallerSide, Input, Party, Setup, Sides};
use crate::link::peer_of;
use crate::live::{Caller, NewCall};
use crate::referring::TRANSFERS_MAX;
use crate::shared::Shared;
use crate::transfers::{Place, Transfer, far_of};

/// Reads Replaces; `None` without one.
///
/// # Errors
/// The refusal of a malformed or repeated Replaces (RFC 3891 §3).
fn replaces_of(request: &Request) -> Result<Option<Replaces>, Reply> {
    match request.header_all(Name::Replaces.as_str()).count() {
        0 => Ok(None),
        1 => request
            .replaces()
            .map(Some)
            .map_err(|_| Reply::new(StatusCode::BAD_REQUEST).reason("Bad Replaces")),
        _ => Err(Reply::new(StatusCode::BAD_REQUEST).reason("One Replaces Expected")),
    }
}

/// Handles an INVITE with Replaces; returns any other INVITE.
pub(super) fn replace(
    now: Now,
    sender: &Sender,
    request: &Request,
    invitation: Invitation,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Option<Invitation> {
    let key = invitation.key;
    let taken_over = match (replaces_of(request), sender) {
        (Ok(None), _) => return Some(invitation),
        (Err(reply), _) => Err(reply),
        (Ok(Some(replaces)), Sender::Extension(by)) => {
            take_over(now, *by, &replaces, invitation, control, shared)
        }
        (Ok(Some(_)), _) => Err(Reply::new(StatusCode::FORBIDDEN)),
    };
    if let Err(reply) = taken_over {
        shared.respond(now, &key, reply);
    }
    None
}

/// Places an extension's call that takes over a dialog.
///
/// # Errors
/// The refusal of the INVITE.
fn take_over(
    now: Now,
    by: ExtensionId,
    replaces: &Replaces,
    invitation: Invitation,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<(), Reply> {
    let refusal = |status| Reply::new(status);
    let offer = invitation.offer.ok_or_else(|| refusal(StatusCode::NOT_ACCEPTABLE_HERE))?;
    let Replaced { place, far, picks_up, settled, policy } = replaced(by, replaces, control, shared)?;
    let there = control.calls.get(far.0).ok_or_else(|| refusal(StatusCode::NO_TRANSACTION))?;
    let (group, transfers) = (there.call.group(), there.transfers);
    let number = there.identity_of(far.1).and_then(|identity| identity.number.clone()).unwrap_or_default();
    let placed = control.placing(shared).place_take_over(now, by, &number);
    let (facts, identity, own_policy, srtp) = placed.ok_or_else(|| refusal(StatusCode::FORBIDDEN))?;
    let caller = CallerSide {
        offer: Some(offer),
        policy: own_policy,
        key_form: invitation.party.key_form,
        user_agent: invitation.party.user_agent,
        srtp,
        at: invitation.source,
    };
    let awaited = Awaited { settled, policy, from: far.0 };
    let sides = Sides::TakeOver { caller, awaited: Box::new(awaited) };
    let limits = limits_of(control.limits, &shared.directory, &facts);
    let call = facts.call;
    let (session_id, keys) = (shared.ids.session(), shared.ids.keys());
    let setup = Setup { facts, limits, sides, session_id, group, keys };
    let Invitation { leg: key, key: invite, binding, .. } = invitation;
    let caller = Caller { invite: Some(invite), key, identity, binding };
    let (by, transferee) = (place, far);
    let transfer = Transfer {
        by,
        transferee,
        consulted: None,
        subscription: None,
        picks_up,
        unparks: None,
        to_room: false,
    };
    control.transfers.begin(call, transfer);
    control.feed(now, place.0, Input::Referring(Some(place.1)), shared);
    let new = NewCall {
        setup,
        caller: Some(caller),
        callees: Vec::new(),
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
    Ok(())
}

/// The dialog that is taken over, and the party at its other end.
struct Replaced {
    place: Place,
    far: Place,
    /// Whether the replaced phone still rings, and the new one answers instead.
    picks_up: bool,
    /// The terms that the other party negotiated or offers, and the codecs that it may use.
    settled: SessionDescription,
    policy: CodecPolicy,
}

/// Finds the dialog that an extension may take over now.
///
/// # Errors
/// The refusal of the INVITE (RFC 3891 §3).
fn replaced(
    by: ExtensionId,
    replaces: &Replaces,
    control: &CallControl,
    shared: &Shared,
) -> Result<Replaced, Reply> {
    let unknown = || Reply::new(StatusCode::NO_TRANSACTION);
    let pending = || Reply::new(StatusCode::REQUEST_PENDING);
    let leg = shared.ua.leg_of_dialog(&replaces.call_id, &replaces.to_tag, &replaces.from_tag);
    let place = leg.and_then(|leg| control.calls.party_of(leg)).ok_or_else(unknown)?;
    let live = control.calls.get(place.0).ok_or_else(unknown)?;
    // Dialogs of other organisations are not disclosed.
    let own = shared.directory.extension(by).map(|extension| extension.organisation_id);
    if own != Some(live.call.facts().organisation) {
        return Err(unknown());
    }
    if live.call.is_ringing() {
        // An early dialog begun by the replaced phone cannot be replaced (RFC 3891 §3).
        let offer = live.call.parties().offer_of_caller().filter(|_| place.1 != Party::Caller);
        let (settled, policy) = offer.ok_or_else(unknown)?;
        return Ok(Replaced { place, far: (place.0, Party::Caller), picks_up: true, settled, policy });
    }
    if replaces.early_only {
        return Err(Reply::new(StatusCode::BUSY_HERE));
    }
    if live.goal.is_some() {
        return Err(Reply::new(StatusCode::FORBIDDEN).reason("Call Is In A Conference"));
    }
    if control.transfers.is_by(place) || live.transfers >= TRANSFERS_MAX {
        return Err(pending());
    }
    let far = far_of(&control.calls, place).ok_or_else(pending)?;
    let there = control.calls.get(far.0).map(|live| live.call.parties()).filter(|parties| parties.is_up());
    let peer = there.and_then(|parties| peer_of(parties, far.1)).ok_or_else(pending)?;
    Ok(Replaced { place, far, picks_up: false, settled: peer.settled, policy: peer.policy })
}
