//! The meaning of a phone's answer for a note.

use crate::note::NoteStatus;

/// The result of sending a note to one phone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhoneAnswer {
    /// The leg or the binding did not exist any more when the note was to be sent.
    Gone,
    /// Too many notes were being sent.
    Overload,
    /// No answer within 32 seconds.
    Silence,
    /// The switch accepted no notes: it was stopping or overloaded.
    NotTaken,
    /// A final SIP status.
    Status(u16),
    /// It could not be sent.
    Unreachable,
}

/// The stored form of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The status of the note at this phone.
    pub status: NoteStatus,
    /// The SIP status, if one was received.
    pub sip_status: Option<u16>,
    /// Why the phone does not show it.
    pub error: Option<String>,
}

/// The meaning of `answer`.
pub fn outcome(answer: PhoneAnswer) -> Outcome {
    let failed =
        |sip_status, error: String| Outcome { status: NoteStatus::Failed, sip_status, error: Some(error) };
    match answer {
        PhoneAnswer::Status(status @ 200..=299) => {
            Outcome { status: NoteStatus::Sent, sip_status: Some(status), error: None }
        }
        PhoneAnswer::Status(status @ (415 | 489 | 501)) => {
            failed(Some(status), format!("phone does not support notes ({status})"))
        }
        PhoneAnswer::Status(status) => failed(Some(status), format!("phone refused the note ({status})")),
        PhoneAnswer::Gone => failed(None, "phone was gone before the note was sent".to_owned()),
        PhoneAnswer::Overload => failed(None, "too much was being sent at once, send it again".to_owned()),
        PhoneAnswer::NotTaken => {
            failed(None, "the engine was stopping or too busy to send it, send it again".to_owned())
        }
        PhoneAnswer::Silence => failed(None, "phone did not answer within 32 seconds".to_owned()),
        PhoneAnswer::Unreachable => failed(None, "phone could not be reached".to_owned()),
    }
}

/// Returns the receipt of a note to an extension to which an acknowledgement from one of its devices belongs;
/// `None` if there is none. `receipts` are the contact and whether it was acknowledged, in order; `device` is
/// the registered contact of the acknowledging device, if known.
///
/// A device that registered again with another contact still belongs to the extension: its acknowledgement
/// counts unless another device has acknowledged before.
pub fn tapped(receipts: &[(&str, bool)], device: Option<&str>) -> Option<usize> {
    let own = device.and_then(|device| receipts.iter().position(|(contact, _)| *contact == device));
    match own {
        Some(place) => Some(place).filter(|_| receipts.get(place).is_some_and(|(_, acked)| !acked)),
        None if receipts.iter().any(|(_, acked)| *acked) => None,
        None => (!receipts.is_empty()).then_some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_phones() {
        let cases = [
            (PhoneAnswer::Status(200), NoteStatus::Sent, Some(200), None),
            (PhoneAnswer::Status(202), NoteStatus::Sent, Some(202), None),
            (
                PhoneAnswer::Status(415),
                NoteStatus::Failed,
                Some(415),
                Some("phone does not support notes (415)"),
            ),
            (
                PhoneAnswer::Status(489),
                NoteStatus::Failed,
                Some(489),
                Some("phone does not support notes (489)"),
            ),
            (
                PhoneAnswer::Status(501),
                NoteStatus::Failed,
                Some(501),
                Some("phone does not support notes (501)"),
            ),
            (PhoneAnswer::Status(405), NoteStatus::Failed, Some(405), Some("phone refused the note (405)")),
            (PhoneAnswer::Status(481), NoteStatus::Failed, Some(481), Some("phone refused the note (481)")),
            (PhoneAnswer::Status(302), NoteStatus::Failed, Some(302), Some("phone refused the note (302)")),
            (PhoneAnswer::Silence, NoteStatus::Failed, None, Some("phone did not answer within 32 seconds")),
            (PhoneAnswer::Unreachable, NoteStatus::Failed, None, Some("phone could not be reached")),
            (PhoneAnswer::Gone, NoteStatus::Failed, None, Some("phone was gone before the note was sent")),
            (
                PhoneAnswer::Overload,
                NoteStatus::Failed,
                None,
                Some("too much was being sent at once, send it again"),
            ),
            (
                PhoneAnswer::NotTaken,
                NoteStatus::Failed,
                None,
                Some("the engine was stopping or too busy to send it, send it again"),
            ),
        ];
        for (answer, status, sip_status, error) in cases {
            let expected = Outcome { status, sip_status, error: error.map(str::to_owned) };
            assert_eq!(outcome(answer), expected, "{answer:?}");
        }
    }

    #[test]
    fn a_tap_is_for_the_device_it_came_from() {
        type Receipts<'a> = &'a [(&'a str, bool)];
        let cases: &[(Receipts<'_>, Option<&str>, Option<usize>)] = &[
            (&[], Some("a"), None),
            (&[("a", false)], Some("a"), Some(0)),
            (&[("a", true)], Some("a"), None),
            (&[("a", false), ("b", false)], Some("b"), Some(1)),
            (&[("a", true), ("b", false)], Some("b"), Some(1)),
            (&[("a", false), ("b", true)], Some("b"), None),
            (&[("a", false)], Some("moved"), Some(0)),
            (&[("a", false)], None, Some(0)),
            (&[("a", true), ("b", false)], Some("moved"), None),
            (&[("a", false), ("b", true)], None, None),
        ];
        for (receipts, device, place) in cases {
            assert_eq!(tapped(receipts, *device), *place, "{receipts:?} {device:?}");
        }
    }
}
