//! Reason headers (RFC 3326): hangup causes read from them and written to them. Pure.

use sidetone_model::call::HangupCause;
use sidetone_sip::message::{Headers, StatusCode};

/// Returns the cause that the Reason headers of a message give: by Q.850 if it has one, else by SIP status.
pub(super) fn cause_of(headers: &Headers) -> Option<HangupCause> {
    let code = |protocol: &str| {
        let mut reasons = headers.reasons();
        reasons.find(|reason| reason.protocol.eq_ignore_ascii_case(protocol))?.cause
    };
    code("Q.850").and_then(HangupCause::from_q850).or_else(|| code("SIP").map(HangupCause::from_sip_status))
}

/// Returns the cause of a caller's CANCEL: the caller gave up, unless its Reason reports that the call was completed
/// elsewhere.
pub(super) fn cause_of_cancel(headers: &Headers) -> HangupCause {
    let elsewhere = |reason: &sidetone_sip::message::Reason| {
        reason.protocol.eq_ignore_ascii_case("SIP") && matches!(reason.cause, Some(200..=299))
    };
    match headers.reasons().any(|reason| elsewhere(&reason)) {
        true => HangupCause::LoseRace,
        false => HangupCause::OriginatorCancel,
    }
}

/// Returns the cause of a final response to our INVITE: its Reason, else its status. A 487 without a CANCEL gives no
/// specific cause.
pub(super) fn cause_of_failure(status: StatusCode, headers: &Headers) -> HangupCause {
    cause_of(headers).unwrap_or(match status.as_u16() {
        487 => HangupCause::NormalUnspecified,
        status => HangupCause::from_sip_status(status),
    })
}

/// Returns the Reason header that reports a cause; `None` if the cause has no code.
pub(super) fn header(cause: HangupCause) -> Option<String> {
    if cause == HangupCause::LoseRace {
        return Some(ELSEWHERE.to_owned());
    }
    Some(format!("Q.850;cause={};text=\"{}\"", cause.q850()?, cause.as_str()))
}

/// Phones do not list a call with this reason as missed (RFC 3326 §2).
const ELSEWHERE: &str = "SIP;cause=200;text=\"Call completed elsewhere\"";

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(reasons: &[&str]) -> Headers {
        let mut headers = Headers::new();
        reasons.iter().for_each(|reason| headers.push("Reason", reason).unwrap());
        headers
    }

    #[test]
    fn q850_is_read_before_sip() {
        let cases: &[(&[&str], Option<HangupCause>)] = &[
            (&[], None),
            (&["Q.850;cause=17;text=\"busy\""], Some(HangupCause::UserBusy)),
            (&["SIP;cause=404", "q.850;cause=19"], Some(HangupCause::NoAnswer)),
            (&["SIP;cause=603, Q.850;cause=99"], Some(HangupCause::CallRejected)),
            (&["SIP;cause=600"], Some(HangupCause::UserBusy)),
            (&["Preemption;cause=1"], None),
            (&["Q.850;cause=seventeen"], None),
        ];
        for (reasons, cause) in cases {
            assert_eq!(cause_of(&headers(reasons)), *cause, "{reasons:?}");
        }
    }

    #[test]
    fn a_cancel_says_whether_the_call_was_taken_elsewhere() {
        assert_eq!(cause_of_cancel(&headers(&[])), HangupCause::OriginatorCancel);
        assert_eq!(cause_of_cancel(&headers(&["Q.850;cause=16"])), HangupCause::OriginatorCancel);
        assert_eq!(cause_of_cancel(&headers(&[ELSEWHERE])), HangupCause::LoseRace);
    }

    #[test]
    fn a_callee_that_answers_487_did_not_cancel() {
        let cases: &[(u16, &[&str], HangupCause)] = &[
            (487, &[], HangupCause::NormalUnspecified),
            (480, &["Q.850;cause=19"], HangupCause::NoAnswer),
            (302, &[], HangupCause::RedirectionToNewDestination),
            (486, &[], HangupCause::UserBusy),
        ];
        for (status, reasons, cause) in cases {
            let status = StatusCode::new(*status).unwrap();
            assert_eq!(cause_of_failure(status, &headers(reasons)), *cause, "{status} {reasons:?}");
        }
    }

    #[test]
    fn causes_with_a_code_are_reported() {
        assert_eq!(header(HangupCause::LoseRace).as_deref(), Some(ELSEWHERE));
        assert_eq!(header(HangupCause::UserBusy).as_deref(), Some("Q.850;cause=17;text=\"USER_BUSY\""));
        assert_eq!(header(HangupCause::OriginatorCancel), None);
    }
}
