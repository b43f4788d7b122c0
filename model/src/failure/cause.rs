//! Sentences about why the call of a record was not answered.

use crate::call::HangupCause;
use crate::cdr::Cdr;
use crate::failure::status::{Request, meaning, phrase};

/// Why the call of a record was not answered; `None` if it was answered.
///
/// The far end's own response takes precedence; without one the cause of the caller's leg is used.
pub fn of_record(cdr: &Cdr) -> Option<String> {
    if cdr.answered_at.is_some() {
        return None;
    }
    let gave_up = matches!(cdr.hangup_cause, Some(HangupCause::OriginatorCancel | HangupCause::LoseRace));
    if let Some(status) = cdr.sip_status.filter(|status| *status >= 300 && !gave_up) {
        let (means, advice) = meaning(status, Request::Call);
        let phrase = phrase(status);
        let code = if phrase.is_empty() { status.to_string() } else { format!("{status} {phrase}") };
        return Some(format!(
            "The call was not answered: the far end refused it ({code}), which means that {means}. {advice}"
        ));
    }
    let of_cause = cdr.hangup_cause.and_then(of_cause);
    Some(of_cause.unwrap_or_else(|| "The call was not answered.".to_owned()))
}

/// The explanation of an unanswered call by the cause of the caller's leg; `None` for a cause that such a
/// call does not have.
pub fn of_cause(cause: HangupCause) -> Option<String> {
    why(cause).map(|(why, advice)| format!("The call was not answered: {why}. {advice}"))
}

/// Why a call that a program requested did not get beyond its calling party, `from`, which rings first.
pub fn of_calling_party(cause: HangupCause) -> String {
    let (what, advice) = match cause {
        HangupCause::CallRejected => ("declined it", "Nothing has to be repaired."),
        HangupCause::IncompatibleDestination => (
            "has no codec, media address or encryption (SRTP) in common with the switch",
            "Compare the codecs and the SRTP setting of its extension with those of the phone.",
        ),
        HangupCause::LoseRace => ("was answered elsewhere", "Nothing has to be repaired."),
        HangupCause::NoAnswer => ("did not answer in time", "Nothing has to be repaired."),
        HangupCause::NormalClearing => {
            ("was still ringing when the call was ended", "Nothing has to be repaired.")
        }
        HangupCause::OriginatorCancel => {
            ("was still ringing when the request was cancelled", "Nothing has to be repaired.")
        }
        HangupCause::SwitchCongestion => (
            "could not be called, because there was no free port, leg or channel",
            "Check the limits and the port range of the engine.",
        ),
        HangupCause::UserBusy => ("was busy", "Nothing has to be repaired: place the call again later."),
        HangupCause::DestinationOutOfOrder
        | HangupCause::NetworkOutOfOrder
        | HangupCause::NoUserResponse
        | HangupCause::RecoveryOnTimerExpire
        | HangupCause::UserNotRegistered => {
            ("cannot be reached at present", "Check whether it is registered and answers.")
        }
        _ => ("did not take it", "Look at the SIP messages of the call."),
    };
    format!(
        "The call was not placed: the phone of `from`, which rings first, {what}. `to` was not called. {advice}"
    )
}

/// The meaning of a cause of this switch, and what to do; `None` for one that an unanswered call does not
/// have.
fn why(cause: HangupCause) -> Option<(&'static str, &'static str)> {
    Some(match cause {
        HangupCause::CallRejected => {
            ("it was rejected", "Check what the caller may call, and the caller's password.")
        }
        HangupCause::Crash => ("the engine stopped while it rang", "Look at the log of the engine."),
        HangupCause::ExchangeRoutingError => {
            ("it went in circles", "Check the routing: two machines send the call to each other.")
        }
        HangupCause::IncompatibleDestination => (
            "the two sides have no codec, media address or encryption (SRTP) in common",
            "Compare the codecs and the SRTP settings of both sides.",
        ),
        HangupCause::InvalidNumberFormat => {
            ("the number is malformed or incomplete", "Check the dialled number.")
        }
        HangupCause::LoseRace => ("it was answered elsewhere", "Nothing has to be repaired."),
        HangupCause::NoAnswer => ("it rang and nothing answered in time", "Nothing has to be repaired."),
        HangupCause::NoRouteDestination => {
            ("there is no way to this number", "Check the number, the extensions and the trunks.")
        }
        HangupCause::NoUserResponse => (
            "the called party cannot be reached at present",
            "Check whether the called phone is registered and answers.",
        ),
        HangupCause::OriginatorCancel => {
            ("the caller hung up before the answer", "Nothing has to be repaired.")
        }
        HangupCause::OutgoingCallBarred => (
            "no sell rate of the organisation covers the number, so it may not be called",
            "Add a sell rate for it.",
        ),
        HangupCause::AllottedTimeout => {
            ("the organisation has no credit left for it", "Raise the credit of the organisation.")
        }
        HangupCause::RecoveryOnTimerExpire => (
            "the far end did not respond in time",
            "Check that the called device or the trunk is up, and the way there.",
        ),
        HangupCause::SwitchCongestion => (
            "there was no free port, leg or channel",
            "Check the limits of the trunk and the port range of the engine.",
        ),
        HangupCause::UnallocatedNumber => ("there is no such number", "Check the dialled number."),
        HangupCause::UserBusy => {
            ("the called party was busy", "Nothing has to be repaired: call again later.")
        }
        HangupCause::UserNotRegistered => (
            "the called party is registered nowhere",
            "Check the called phone: its account, its password and its network.",
        ),
        HangupCause::NormalTemporaryFailure => {
            ("a machine on the way failed", "Look at the log of the far end.")
        }
        HangupCause::MaxCallDuration
        | HangupCause::MediaTimeout
        | HangupCause::NormalClearing
        | HangupCause::ParkTimeout => return None,
        HangupCause::DestinationOutOfOrder
        | HangupCause::Interworking
        | HangupCause::NetworkOutOfOrder
        | HangupCause::NormalCircuitCongestion
        | HangupCause::NormalUnspecified
        | HangupCause::NumberChanged
        | HangupCause::RedirectionToNewDestination
        | HangupCause::ServiceNotImplemented
        | HangupCause::ServiceUnavailable => return why_beyond(cause),
    })
}

/// The same for the causes of the far end and the way there.
fn why_beyond(cause: HangupCause) -> Option<(&'static str, &'static str)> {
    Some(match cause {
        HangupCause::DestinationOutOfOrder => {
            ("the called device cannot be reached", "Check the power and the network of the called device.")
        }
        HangupCause::NormalCircuitCongestion => {
            ("the network of the far end had no free circuit", "Call again later, or over another trunk.")
        }
        HangupCause::NormalUnspecified => {
            ("the far end ended it without a reason", "Look at the log of the far end.")
        }
        HangupCause::RedirectionToNewDestination => (
            "the far end redirected it to another address, which is not followed",
            "Call the new address, or remove the forwarding on the called device.",
        ),
        HangupCause::Interworking => {
            ("the protocols of the two sides do not fit", "Look at the log of the engine.")
        }
        HangupCause::NetworkOutOfOrder => (
            "the far end could not be reached",
            "Check the address of the trunk or the phone, and the way there.",
        ),
        HangupCause::NumberChanged => ("the called number is no longer in use", "Ask for the new number."),
        HangupCause::ServiceNotImplemented | HangupCause::ServiceUnavailable => {
            ("the far end does not offer the service", "Look at the log of the far end.")
        }
        _ => return None,
    })
}
