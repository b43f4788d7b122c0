//! The stored form of a note: its recipients, what each phone answered, who acknowledged it.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::call::words;
use crate::ids::{CallId, ExtensionId, NoteId, RoomId};
use crate::note::NoteLevel;
use crate::time::Timestamp;

words! {
    /// How a note went out.
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
    /// How far a note is, as a whole or at one phone.
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

/// A note that was sent, as it is read back.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SentNote))]
pub struct NoteRecord {
    /// The note; it stands in the JSON on the phone, too.
    pub id: NoteId,
    /// How it went out.
    pub channel: NoteChannel,
    /// The call, of an `info`; absent when a room sent it into several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_uuid: Option<CallId>,
    /// The person, of a `message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension_id: Option<ExtensionId>,
    /// The conference room that sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_id: Option<RoomId>,
    /// The heading; empty when what the call-info URL answered had none.
    pub title: String,
    /// What stands under the heading; may be empty.
    pub body: String,
    /// How urgent it is.
    pub level: NoteLevel,
    /// Whether it shows an Acknowledge button.
    pub ack: bool,
    /// Where it came from.
    pub source: NoteSource,
    /// `pending` until a phone answers, `sent` when one took it, `acked` when a person tapped Acknowledge, `failed`
    /// when it reached nobody.
    pub status: NoteStatus,
    /// Why it reached nobody; present with `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// One receipt per phone.
    pub recipients: Vec<NoteReceipt>,
    /// How many phones it was sent to.
    pub recipient_count: u32,
    /// How many of them a person acknowledged it on.
    pub acked_count: u32,
    /// When it was sent.
    pub sent_at: Timestamp,
    /// The note as the phones received it; empty when there was nothing to send.
    pub payload: Map<String, Value>,
}

/// What is known of a note at one phone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NoteReceipt {
    /// The leg of the call, of an `info`; the extension, of a `message`: each of its devices has a receipt; the member's
    /// id, of a room's note.
    pub member: String,
    /// The person's name, or else their number.
    pub name: String,
    /// When it was sent.
    pub sent_at: Timestamp,
    /// When the person tapped Acknowledge; null until then.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub acked_at: Option<Timestamp>,
    /// How far it is at this phone.
    pub status: NoteStatus,
    /// The SIP status that the phone answered; absent while and when it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sip_status: Option<u16>,
    /// Why this phone does not show it; present with `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl NoteStatus {
    /// The status of a note as a whole, and why it failed, from its receipts in order.
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

    /// A phone that accepted it outranks one that has not answered, and an acknowledgement outranks both.
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
