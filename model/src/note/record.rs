//! The stored form of a note: its recipients, the answer of each phone, the acknowledgements.

use serde::Serialize;

use crate::call::words;
use crate::exact_json::ExactJson;
use crate::ids::{CallId, ExtensionId, NoteId, RoomId};
use crate::note::NoteLevel;
use crate::time::Timestamp;

words! {
    /// The channel of a note.
    NoteChannel {
        /// SIP INFO inside the dialogs of a call.
        Info = "info",
        /// SIP MESSAGE to the devices of an extension.
        Message = "message",
    }
}

words! {
    /// Where a note came from.
    NoteSource {
        /// An integrator's request.
        Api = "api",
        /// A conference room.
        Conference = "conference",
        /// The answer of the organisation's call-info URL.
        Url = "url",
    }
}

words! {
    /// The status of a note, as a whole or on one phone.
    NoteStatus {
        /// A person tapped Acknowledge.
        Acked = "acked",
        /// No phone accepted it; `error` contains the reason.
        Failed = "failed",
        /// No phone has answered yet.
        Pending = "pending",
        /// A phone took it.
        Sent = "sent",
    }
}

/// A sent note with its receipts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SentNote))]
pub struct NoteRecord {
    /// The note's id; also part of the JSON on the phone.
    pub id: NoteId,
    /// The channel of the note.
    pub channel: NoteChannel,
    /// The call, for an `info`; absent when a room sent it into several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_uuid: Option<CallId>,
    /// The extension, for a `message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension_id: Option<ExtensionId>,
    /// The conference room that sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_id: Option<RoomId>,
    /// The heading; empty when the answer of the call-info URL had none.
    pub title: String,
    /// The text under the heading; may be empty.
    pub body: String,
    /// The level.
    pub level: NoteLevel,
    /// Whether the phone shows an Acknowledge button.
    pub ack: bool,
    /// Where it came from.
    pub source: NoteSource,
    /// `pending` until a phone answers, `sent` when a phone accepted it, `acked` when a person tapped Acknowledge,
    /// `failed` when it reached no phone.
    pub status: NoteStatus,
    /// Why it reached no phone; present with `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// One receipt per phone.
    pub recipients: Vec<NoteReceipt>,
    /// Phones that it was sent to.
    pub recipient_count: u32,
    /// Phones on which a person acknowledged it.
    pub acked_count: u32,
    /// When it was sent.
    pub sent_at: Timestamp,
    /// The note as the phones received it; empty when there was nothing to send.
    #[cfg_attr(feature = "openapi", schema(value_type = Map<String, Value>))]
    pub payload: ExactJson,
}

/// The receipt of a note on one phone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NoteReceipt {
    /// For an `info` the leg of the call; for a `message` the extension, with one receipt per device; for a room's
    /// note the member id.
    pub member: String,
    /// The person's name, or the number without one.
    pub name: String,
    /// For a `message` the device: the contact URI that it registered, which tells the devices of one person apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "sip:1001@192.0.2.10:5060"))]
    pub device: Option<String>,
    /// When it was sent.
    pub sent_at: Timestamp,
    /// When the person tapped Acknowledge; null until then.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub acked_at: Option<Timestamp>,
    /// The status on this phone.
    pub status: NoteStatus,
    /// The SIP status of the phone's answer; absent without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sip_status: Option<u16>,
    /// Why this phone does not show the note; present with `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl NoteStatus {
    /// The status of a complete note, and why it failed, from its receipts in order.
    pub fn of<'a>(
        receipts: impl IntoIterator<Item = (NoteStatus, Option<&'a str>)>,
    ) -> (NoteStatus, Option<String>) {
        let mut whole = NoteStatus::Failed;
        let mut errors: Vec<&str> = Vec::new();
        for (status, error) in receipts {
            whole = if whole.rank() < status.rank() { status } else { whole };
            errors.extend(error.filter(|error| !errors.contains(error)));
        }
        match whole {
            NoteStatus::Failed if errors.is_empty() => {
                (whole, Some("there was no phone to send it to".to_owned()))
            }
            NoteStatus::Failed => (whole, Some(errors.join("; "))),
            whole => (whole, None),
        }
    }

    /// A phone that accepted the note outranks one that has not answered; an acknowledgement outranks both.
    fn rank(self) -> u8 {
        match self {
            NoteStatus::Failed => 0,
            NoteStatus::Pending => 1,
            NoteStatus::Sent => 2,
            NoteStatus::Acked => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_receipt_decides() {
        use NoteStatus::{Acked, Failed, Pending, Sent};
        type Receipts<'a> = &'a [(NoteStatus, Option<&'a str>)];
        let cases: &[(Receipts<'_>, NoteStatus, Option<&str>)] = &[
            (&[], Failed, Some("there was no phone to send it to")),
            (&[(Pending, None)], Pending, None),
            (&[(Pending, None), (Failed, Some("a"))], Pending, None),
            (&[(Failed, Some("a")), (Sent, None), (Pending, None)], Sent, None),
            (&[(Sent, None), (Acked, None), (Failed, Some("a"))], Acked, None),
            (&[(Failed, Some("a")), (Failed, Some("b")), (Failed, Some("a"))], Failed, Some("a; b")),
        ];
        for (receipts, status, error) in cases {
            let (found, why) = NoteStatus::of(receipts.iter().copied());
            assert_eq!((found, why.as_deref()), (*status, *error), "{receipts:?}");
        }
    }
}
