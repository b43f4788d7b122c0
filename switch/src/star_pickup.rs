//! Star codes by which a phone picks up a waiting party: `*69` and a slot for a parked party, `*8` and an extension for
//! the caller of a call that rings there, `*8` alone for the call that has rung longest.
//!
//! The phone's INVITE is answered with the terms of the waiting party, then both are linked as after a pick-up over
//! HTTP. The same rules apply: a phone picks up only parties of its own organisation, and a phone of an extension with
//! a team only parties of that team. A phone may always pick up a party that its extension parked.

use sidetone_model::call_parking::SLOTS;
use sidetone_model::directory::Extension;
use sidetone_model::ids::{CallId, ExtensionId, TeamId};
use sidetone_model::time::Now;
use sidetone_sip::message::StatusCode;

use crate::call_control::CallControl;
use crate::call_limits::limits_of;
use crate::incoming::{Invitation, PartyHeaders};
use crate::io::{CallerSide, Setup, Sides};
use crate::live::{Caller, LiveCall, NewCall};
use crate::parking::{self, Waiting};
use crate::referring::TRANSFERS_MAX;
use crate::routing::Directory;
use crate::shared::Shared;

/// The party that a phone requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The caller of the call that has rung longest.
    Any,
    /// The caller of a call that rings at the extension of this number.
    At(String),
    /// The parked party in this slot.
    Slot(u16),
}

/// Parses a dialled number; `None` if it is not a star code for pick-up.
pub(super) fn read(dialled: &str) -> Option<Wanted> {
    let number = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    if let Some(slot) = dialled.strip_prefix("*69") {
        return slot_of(slot).map(Wanted::Slot);
    }
    match dialled.strip_prefix("*8")?.trim_start_matches('*').trim_end_matches('#') {
        "" => Some(Wanted::Any),
        digits if number(digits) => Some(Wanted::At(digits.to_owned())),
        _ => None,
    }
}

/// Reads a slot: one or two digits, as they are dialled.
pub(super) fn slot_of(digits: &str) -> Option<u16> {
    let digits = digits.trim_start_matches('*').trim_end_matches('#');
    let is_short = (1..=2).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|slot| is_short && SLOTS.contains(slot))
}

/// Answers the INVITE of an extension for a waiting party.
///
/// # Errors
/// The INVITE, and the status to refuse it with: 404 when no such party waits, or the extension may not pick it up.
pub(super) fn dial(
    now: Now,
    by: ExtensionId,
    wanted: &Wanted,
    invitation: Invitation,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<(), Box<(Invitation, StatusCode)>> {
    if invitation.offer.is_none() {
        return Err(Box::new((invitation, StatusCode::NOT_ACCEPTABLE_HERE)));
    }
    if !control.has_capacity() {
        return Err(Box::new((invitation, StatusCode::SERVICE_UNAVAILABLE)));
    }
    let found = find(by, wanted, control, &shared.directory);
    let waiting = found.and_then(|call| parking::waiting(control.calls.get(call)?));
    let Some(Waiting { transfer, awaited, shown, group, transfers }) = waiting else {
        return Err(Box::new((invitation, StatusCode::NOT_FOUND)));
    };
    let number = shown.number.unwrap_or_default();
    let placed = control.placing(shared).place_take_over(now, by, &number);
    let Some((facts, identity, policy, srtp)) = placed else {
        return Err(Box::new((invitation, StatusCode::FORBIDDEN)));
    };
    let Invitation { leg, key, source, offer, party, binding } = invitation;
    let PartyHeaders { key_form, user_agent, .. } = party;
    let caller = CallerSide { offer, policy, key_form, user_agent, srtp, at: source };
    let sides = Sides::TakeOver { caller, awaited: Box::new(awaited) };
    let limits = limits_of(control.limits, &shared.directory, &facts);
    let call = facts.call;
    let (session_id, keys) = (shared.ids.session(), shared.ids.keys());
    let new = NewCall {
        setup: Setup { facts, limits, sides, session_id, group, keys },
        caller: Some(Caller { invite: Some(key), key: leg, identity, binding }),
        callees: Vec::new(),
        hunt: None,
        goal: None,
        asked: None,
        diverted: Vec::new(),
        request: None,
    };
    control.transfers.begin(call, transfer);
    control.begin(now, new, shared);
    if let Some(live) = control.calls.get_mut(call) {
        live.transfers = transfers;
    }
    Ok(())
}

/// Returns the call of the requested party, if the extension may pick it up; among several, the longest waiting one.
pub(super) fn find(
    by: ExtensionId,
    wanted: &Wanted,
    control: &CallControl,
    directory: &Directory,
) -> Option<CallId> {
    let by = directory.extension(by)?;
    let at = match wanted {
        Wanted::At(number) => Some(directory.line(by.organisation_id, number)?.id),
        Wanted::Any | Wanted::Slot(_) => None,
    };
    let fits = |live: &&LiveCall| {
        let parked = live.call.parties().parked();
        let is_wanted = match (wanted, parked) {
            (Wanted::Slot(slot), Some(parked)) => {
                parked.place.slot == *slot
                    && (parked.place.by == by.id || may_take(by, live, directory, None))
            }
            (Wanted::Slot(_), None) | (_, Some(_)) => false,
            (_, None) => rung_by(live)
                .filter(|rung| at.is_none_or(|at| at == *rung))
                .any(|rung| may_take(by, live, directory, Some(rung))),
        };
        let own = live.caller.as_ref().and_then(|caller| caller.identity.extension) == Some(by.id);
        is_wanted
            && live.call.facts().organisation == by.organisation_id
            && (!own || parked.is_some())
            && live.transfers < TRANSFERS_MAX
            && !control.transfers.awaits(live.call.facts().call)
            && parking::waiting(live)
                .is_some_and(|waiting| !control.transfers.is_of(waiting.transfer.transferee))
    };
    let found = control.calls.iter().filter(fits).map(|live| live.call.facts());
    found.min_by_key(|facts| (facts.started_at, facts.call)).map(|facts| facts.call)
}

/// Returns the extensions whose phones a call rings now.
fn rung_by(live: &LiveCall) -> impl Iterator<Item = ExtensionId> + '_ {
    let rings = |(fork, _): &(usize, _)| live.call.parties().fork_state(*fork).is_some();
    let forks = live.callees.iter().enumerate().filter(rings);
    forks.filter_map(|(_, callee)| callee.identity.extension).filter(|_| live.call.is_ringing())
}

/// Whether an extension may pick up the party of a call of its organisation; with a team, only a party of that team.
fn may_take(by: &Extension, live: &LiveCall, directory: &Directory, rung: Option<ExtensionId>) -> bool {
    let facts = live.call.facts();
    let called = facts.called.as_ref().and_then(|called| called.team_id);
    let of_rung = rung.and_then(|rung| directory.extension(rung)?.team_id);
    let teams: [Option<TeamId>; 3] = [facts.team, called, of_rung];
    by.team_id.is_none() || teams.contains(&by.team_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_with_their_places() {
        for (dialled, expected) in [
            ("*8", Some(Wanted::Any)),
            ("*8#", Some(Wanted::Any)),
            ("*81002", Some(Wanted::At("1002".into()))),
            ("*8*1002#", Some(Wanted::At("1002".into()))),
            ("*8bob", None),
            ("*697", Some(Wanted::Slot(7))),
            ("*6907", Some(Wanted::Slot(7))),
            ("*69*12#", Some(Wanted::Slot(12))),
            ("*69", None),
            ("*690", None),
            ("*69100", None),
            ("*68", None),
            ("*7", None),
            ("1002", None),
        ] {
            assert_eq!(read(dialled), expected, "{dialled}");
        }
    }
}
