//! Parking by a phone: REFER to `*68`, or to `*68` and a slot, parks the party that the phone talks to.
//!
//! The phone is notified with the slot in the reason phrase and is then hung up, as after any transfer. Where star
//! codes are switched off, `*68` is a number of the dial plan.

use sidetone_model::call_operation::OperationRefused;
use sidetone_model::call_parking::{PARK_SECONDS, ParkOrder};
use sidetone_model::ids::OrganisationId;
use sidetone_model::time::Now;
use sidetone_sip::message::{Request, StatusCode};
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::{LegKey, Reply};

use crate::call_control::CallControl;
use crate::parking;
use crate::referring::{self, Target};
use crate::shared::Shared;
use crate::star_pickup::slot_of;

/// Handles a REFER of an identified party.
pub(super) fn refer(
    now: Now,
    (leg, key): (LegKey, &ServerKey),
    request: &Request,
    control: &mut CallControl,
    shared: &mut Shared,
) {
    let slot = match referring::target_of(request) {
        Ok(Target::Number(number)) => slot_in(&number).filter(|_| has_star_codes(leg, control, shared)),
        Ok(Target::Dialog(_)) | Err(_) => None,
    };
    let Some(slot) = slot else { return referring::refer(now, (leg, key), request, control, shared) };
    if let Err((status, why)) = park(now, (leg, key), request, slot, control, shared) {
        shared.respond(now, key, Reply::new(status).reason(why));
    }
}

/// Returns the refusal of an INVITE to the code for parking, which has no party to park; `None` for any other
/// number.
pub(super) fn refusal_of_call(dialled: &str) -> Option<(StatusCode, &'static str)> {
    slot_in(dialled).map(|slot| match slot {
        Slot::Any | Slot::At(_) => (StatusCode::FORBIDDEN, "Transfer A Call To This Number To Park It"),
        Slot::Wrong => (StatusCode::NOT_FOUND, "No Such Parking Slot"),
    })
}

/// Parks the party that the phone talks to.
///
/// # Errors
/// The refusal of the REFER.
fn park(
    now: Now,
    (leg, key): (LegKey, &ServerKey),
    request: &Request,
    slot: Slot,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Result<(), (StatusCode, String)> {
    let refused = |(status, why): referring::Refusal| (status, why.to_owned());
    let (_, transfer) = referring::checked(leg, request, control, &shared.directory).map_err(refused)?;
    let slot = match slot {
        Slot::Any => None,
        Slot::At(slot) => Some(slot),
        Slot::Wrong => return Err((StatusCode::NOT_FOUND, "No Such Parking Slot".to_owned())),
    };
    let parker = transfer.by;
    let order = ParkOrder { call: parker.0, leg: None, slot, seconds: PARK_SECONDS };
    let parked = parking::park(now, order, parker, control, shared).map_err(|refused| match refused {
        OperationRefused::Busy => (StatusCode::SERVICE_UNAVAILABLE, "Too Many Calls".to_owned()),
        OperationRefused::Conflict(why) => (StatusCode::BUSY_HERE, why),
        OperationRefused::Gone | OperationRefused::Wrong(_) => {
            (StatusCode::TEMPORARILY_UNAVAILABLE, "Call Is Over".to_owned())
        }
    })?;
    let parked = control.calls.get(parked).and_then(|live| live.call.parties().parked());
    let place = parked.map_or(0, |parked| parked.place.slot);
    referring::accept(now, key, request, &transfer, control, shared);
    // The result is sent before the BYE.
    control.transfers.notify_of(&transfer, &format!("SIP/2.0 200 Parked At *69{place:02}\r\n"));
    control.transfers.dismiss(parker.0, parker.1);
    Ok(())
}

/// Whether the phone of a leg may dial star codes.
fn has_star_codes(leg: LegKey, control: &CallControl, shared: &Shared) -> bool {
    let extension = referring::extension_of(&control.calls, leg);
    let owner = extension.and_then(|extension| shared.directory.extension(extension));
    let owner = owner.map(|extension| extension.organisation_id);
    let codes =
        |owner: OrganisationId| shared.directory.organisation(owner).map(|settings| settings.star_codes);
    owner.and_then(codes).unwrap_or(false)
}

/// The requested parking slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// The lowest free slot.
    Any,
    /// This slot.
    At(u16),
    /// A slot that does not exist.
    Wrong,
}

/// Returns the slot that a number requests; `None` if it is not the star code for parking.
fn slot_in(number: &str) -> Option<Slot> {
    match number.strip_prefix("*68")?.trim_end_matches('#') {
        "" => Some(Slot::Any),
        digits => Some(slot_of(digits).map_or(Slot::Wrong, Slot::At)),
    }
}
