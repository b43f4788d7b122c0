//! The body of a note for the API document; the model reads it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::routes::note_query::LevelName;

/// A note that a phone shows. Four fields have a meaning; every other field is shown as a row of its name and value,
/// in the order sent. Objects and arrays are folded, so use short readable names. `id` and `event` are set by the
/// service and refused here. With the `id` that the service adds, the compact JSON stays under 4,096 bytes. The phone
/// stores the note and shows it in full: do not put secrets into it.
#[derive(Serialize, ToSchema)]
#[schema(as = Note, example = json!({
    "title": "Customer owes 900 EUR",
    "body": "The second reminder went out on Monday.",
    "level": "warning",
    "ack": true,
    "customer": "Jane Doe",
    "invoices": [{"number": "2026-17", "amount": "900.00"}],
}))]
pub(crate) struct NoteBody {
    /// The heading: one line; trimmed, and without control characters.
    #[schema(min_length = 1, max_length = 200, pattern = r"[^\s\u0000-\u001f\u007f-\u009f]")]
    title: String,
    /// One or two lines under the heading.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4000)]
    body: Option<String>,
    /// Sets the colour of the tag; `info` by default. `alert` keeps the banner up until it is dismissed. `warn` is
    /// `warning`, `critical` and `error` are `alert`.
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<LevelName>,
    /// Whether the phone shows an Acknowledge button; false by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    ack: Option<bool>,
    /// The other fields.
    #[serde(flatten)]
    rows: BTreeMap<String, Value>,
}
