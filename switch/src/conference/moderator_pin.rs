//! A participant who was seated without a PIN keys the moderator PIN in the room. The limits are the same as on entry.

use sidetone_model::ids::{LegId, RoomId};
use sidetone_model::prompt::Prompt;
use sidetone_model::room::Role;
use sidetone_model::time::Now;

use crate::conference::RoomDirectory;
use crate::conference::entry::Checks;
use crate::conference::live::Member;
use crate::conference::live_rooms::LiveRooms;
use crate::conference::outputs::Alarm;
use crate::conference::pin_attempts::Attempt;
use crate::conference::pins::{TRIES_MAX, is_pin};

/// Handles a PIN that a member keyed.
pub(super) fn claim(now: Now, rooms: &mut LiveRooms, leg: LegId, digits: &str, checks: Checks<'_>) {
    let Some((room_id, member)) = claimant(rooms, leg, checks.directory) else { return };
    let Some(attempt) = attempt(room_id, member, checks.directory) else { return };
    let tries_max = if checks.pin_attempts.is_slow(now.instant, &attempt) { 1 } else { TRIES_MAX };
    if member.claim.is_some() || member.tries >= tries_max {
        return;
    }
    if checks.pin_attempts.refuses(now.instant, room_id, &attempt.who) {
        return;
    }
    match checks.pin_attempts.verdict_at(now.instant, &attempt) {
        None => judge(now, rooms, leg, digits, checks),
        Some(Some(due)) => {
            member.claim = Some(digits.to_owned());
            checks.outputs.set(Alarm::Claim(leg), due);
        }
        // Too many results are due before this one: the PIN is not checked.
        Some(None) => {}
    }
}

/// Checks a PIN keyed in a slow room, now that its result is due.
pub(super) fn claim_due(now: Now, rooms: &mut LiveRooms, leg: LegId, checks: Checks<'_>) {
    let digits = claimant(rooms, leg, checks.directory).and_then(|(_, member)| member.claim.take());
    if let Some(digits) = digits {
        judge(now, rooms, leg, &digits, checks);
    }
}

/// The room and the participant who may key the moderator PIN there.
fn claimant<'r>(
    rooms: &'r mut LiveRooms,
    leg: LegId,
    directory: &RoomDirectory,
) -> Option<(RoomId, &'r mut Member)> {
    let (room_id, member) = rooms.member_at(leg)?;
    directory.room(room_id).filter(|config| !config.moderator_pin.is_empty())?;
    (member.unasked && member.role == Role::Participant).then_some((room_id, member))
}

/// The attempt for the limits on wrong PINs.
fn attempt(room: RoomId, member: &Member, directory: &RoomDirectory) -> Option<Attempt> {
    let organisation = directory.room(room)?.organisation_id;
    Some(Attempt { organisation, room, who: member.counted(), trunk: member.trunk })
}

/// Checks the PIN: makes the member a moderator, or counts the wrong PIN.
fn judge(now: Now, rooms: &mut LiveRooms, leg: LegId, digits: &str, checks: Checks<'_>) {
    let Checks { directory, pin_attempts, outputs, .. } = checks;
    let Some((room_id, member)) = claimant(rooms, leg, directory) else { return };
    let Some(attempt) = attempt(room_id, member, directory) else { return };
    let is_right = directory.room(room_id).is_some_and(|config| is_pin(&config.moderator_pin, digits).into());
    if is_right {
        pin_attempts.succeeded(room_id, &attempt.who);
        rooms.promote(now, leg, outputs);
    } else {
        member.tries += 1;
        let reached = pin_attempts.failed(now.instant, &attempt);
        outputs.report_guessing(now, &attempt, &member.number, reached);
        outputs.play(leg, vec![Prompt::WrongPin]);
    }
}
