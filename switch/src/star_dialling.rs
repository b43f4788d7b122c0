//! Star codes: numbers by which a phone changes the forwarding and the do not disturb of its own extension, or picks up
//! a waiting party (`star_pickup`). The code for parking (`star_parking`) is only a target of transfers: an INVITE to
//! it is refused.
//!
//! The driver stores the change. Then the phone is answered, hears a chime, and is hung up. If the change is refused or
//! cannot be stored, the INVITE is refused, so that the phone plays its own tone. In an organisation that has switched
//! star codes off, they are numbers of the dial plan.

use sidetone_model::call::HangupCause;
use sidetone_model::extension::ExtensionChange;
use sidetone_model::forwarding::{ForwardingChange, forward_target};
use sidetone_model::ids::ExtensionId;
use sidetone_model::time::Now;
use sidetone_sip::message::StatusCode;
use sidetone_sip::ua::Reply;

use crate::authentication::Sender;
use crate::call_control::CallControl;
use crate::call_limits::limits_of;
use crate::incoming::{Invitation, PartyHeaders};
use crate::io::{CallerSide, Setup, Sides};
use crate::live::{Caller, NewCall};
use crate::message_parts::status_code;
use crate::placement::Refused;
use crate::shared::Shared;
use crate::star_codes::Waiting;
use crate::star_parking;
use crate::star_pickup;
use crate::switch_io::Output;

/// Handles the INVITE of an extension that dials a star code; returns any other INVITE.
pub(super) fn dial(
    now: Now,
    sender: &Sender,
    dialled: &str,
    invitation: Invitation,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Option<Invitation> {
    let Sender::Extension(by) = sender else { return Some(invitation) };
    let (wanted, code) = (star_pickup::read(dialled), read(dialled));
    let parking = star_parking::refusal_of_call(dialled);
    if wanted.is_none() && code.is_none() && parking.is_none() {
        return Some(invitation);
    }
    let organisation = shared.directory.extension(*by).map(|extension| extension.organisation_id);
    let settings = organisation.and_then(|known| shared.directory.organisation(known));
    if settings.is_some_and(|settings| !settings.star_codes) {
        return Some(invitation);
    }
    if let Some((status, why)) = parking {
        refuse(now, *by, (&invitation, dialled), (status, Some(why)), control, shared);
        return None;
    }
    if let Some(wanted) = wanted {
        let taken = star_pickup::dial(now, *by, &wanted, invitation, control, shared);
        if let Err(refused) = taken {
            let (invitation, status) = *refused;
            refuse(now, *by, (&invitation, dialled), (status, None), control, shared);
        }
        return None;
    }
    let code = code?;
    let codes = &mut control.star_codes;
    let is_waiting = codes.waiting.get(by).is_some_and(|waiting| is_there(&waiting.invitation, shared));
    match (code, organisation) {
        (Ok(_), _) if is_waiting => {
            let reply = Reply::new(StatusCode::SERVICE_UNAVAILABLE).header("Retry-After", "5");
            shared.respond(now, &invitation.key, reply);
        }
        (Ok(change), Some(organisation)) => {
            codes.waiting.insert(*by, Waiting { invitation, dialled: dialled.to_owned() });
            shared.outputs.push_back(Output::ChangeExtension(*by, organisation, Box::new(change)));
        }
        (Ok(_), None) => shared.respond(now, &invitation.key, Reply::new(StatusCode::FORBIDDEN)),
        (Err(()), _) => {
            refuse(now, *by, (&invitation, dialled), (StatusCode::ADDRESS_INCOMPLETE, None), control, shared)
        }
    }
    None
}

/// Handles the result of a change: answers the phone for the chime, or refuses its INVITE with the status.
pub(super) fn changed(
    now: Now,
    by: ExtensionId,
    result: Result<(), u16>,
    control: &mut CallControl,
    shared: &mut Shared,
) {
    let Some(Waiting { invitation, dialled }) = control.star_codes.waiting.remove(&by) else { return };
    if !is_there(&invitation, shared) {
        return; // The caller has hung up. The change stays in force.
    }
    if let Err(status) = result {
        return refuse(now, by, (&invitation, &dialled), (status_code(status), None), control, shared);
    }
    let Some((facts, identity, policy, srtp)) = control.placing(shared).place_take_over(now, by, &dialled)
    else {
        return shared.respond(now, &invitation.key, Reply::new(StatusCode::FORBIDDEN));
    };
    let Invitation { leg, key, source, offer, party, binding } = invitation;
    let PartyHeaders { key_form, user_agent, .. } = party;
    let limits = limits_of(control.limits, &shared.directory, &facts);
    let (session_id, keys) = (shared.ids.session(), shared.ids.keys());
    control.star_codes.confirming.insert(facts.call);
    let sides =
        Sides::IntoRoom { caller: CallerSide { offer, policy, key_form, user_agent, srtp, at: source } };
    let new = NewCall {
        setup: Setup { facts, limits, sides, session_id, group: session_id, keys },
        caller: Some(Caller { invite: Some(key), key: leg, identity, binding }),
        callees: Vec::new(),
        hunt: None,
        goal: None,
        asked: None,
        diverted: Vec::new(),
        request: None,
    };
    control.begin(now, new, shared);
}

/// Whether the caller still waits for a final response.
fn is_there(invitation: &Invitation, shared: &Shared) -> bool {
    shared.ua.call_id(invitation.leg).is_some()
}

/// Refuses the INVITE with a status, and a reason phrase where the standard one is not specific enough. The refusal
/// creates a record, like that of any dialled number.
fn refuse(
    now: Now,
    by: ExtensionId,
    (invitation, dialled): (&Invitation, &str),
    (status, why): (StatusCode, Option<&'static str>),
    control: &mut CallControl,
    shared: &mut Shared,
) {
    let facts = control.placing(shared).place_take_over(now, by, dialled).map(|(facts, ..)| Box::new(facts));
    let cause = match status.as_u16() {
        503 => HangupCause::SwitchCongestion,
        status => HangupCause::from_sip_status(status),
    };
    control.refuse(now, &invitation.key, Refused { status, cause, facts, why }, shared);
}

/// Parses a dialled number as a star code; `None` if it is not a star code.
///
/// # Errors
/// When its number is missing or malformed.
fn read(dialled: &str) -> Option<Result<ExtensionChange, ()>> {
    let rest = dialled.strip_prefix('*')?;
    let (code, number) = rest.split_at_checked(2)?;
    let mut forwarding = ForwardingChange::default();
    let field = match code {
        "72" | "73" => &mut forwarding.always,
        "90" | "91" => &mut forwarding.busy,
        "92" | "93" => &mut forwarding.no_answer,
        "78" | "79" if number.is_empty() => {
            let change = ExtensionChange { do_not_disturb: Some(code == "78"), ..ExtensionChange::default() };
            return Some(Ok(change));
        }
        _ => return None,
    };
    *field = match (code, number) {
        ("73" | "91" | "93", "") => Some(None),
        ("73" | "91" | "93", _) => return None,
        (_, number) => match forward_target(number.trim_start_matches('*').trim_end_matches('#')) {
            Ok(number) => Some(Some(number)),
            Err(_) => return Some(Err(())),
        },
    };
    Some(Ok(ExtensionChange { forwarding: Some(forwarding), ..ExtensionChange::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_with_their_numbers() {
        let always = |number: Option<&str>| ForwardingChange {
            always: Some(number.map(str::to_owned)),
            ..ForwardingChange::default()
        };
        let changed =
            |forwarding| Some(Ok(ExtensionChange { forwarding: Some(forwarding), ..Default::default() }));
        let disturb = |on| Some(Ok(ExtensionChange { do_not_disturb: Some(on), ..Default::default() }));
        for (dialled, expected) in [
            ("*721002", changed(always(Some("1002")))),
            ("*72*+442079460000#", changed(always(Some("+442079460000")))),
            ("*73", changed(always(None))),
            ("*901002", changed(ForwardingChange { busy: Some(Some("1002".into())), ..Default::default() })),
            ("*91", changed(ForwardingChange { busy: Some(None), ..Default::default() })),
            (
                "*921002",
                changed(ForwardingChange { no_answer: Some(Some("1002".into())), ..Default::default() }),
            ),
            ("*93", changed(ForwardingChange { no_answer: Some(None), ..Default::default() })),
            ("*78", disturb(true)),
            ("*79", disturb(false)),
            ("*72", Some(Err(()))),
            ("*72bob", Some(Err(()))),
            ("*731", None),
            ("*781", None),
            ("*99", None),
            ("*7", None),
            ("*é", None),
            ("1002", None),
            ("", None),
        ] {
            assert_eq!(read(dialled), expected, "{dialled}");
        }
    }
}
