//! The section `webhooks`: every kind of event with its envelope and the schema of its `data`.

use serde_json::{Map, Value, json};
use sidetone_model::event::EventKind;

/// Adds the section, and the payloads that are derived from the schemas of calls and records.
pub(super) fn add(document: &mut Map<String, Value>) {
    if let Some(schemas) = document.get_mut("components").and_then(|components| components.get_mut("schemas"))
        && let Some(schemas) = schemas.as_object_mut()
    {
        of_calls(schemas);
    }
    let hooks: Map<String, Value> = EventKind::ALL.iter().map(|kind| hook(*kind)).collect();
    document.insert("webhooks".to_owned(), Value::Object(hooks));
}

/// The events of calls contain the call, or its record, under other names.
fn of_calls(schemas: &mut Map<String, Value>) {
    let number = |words: &str| json!({"type": "string", "description": words});
    let caller = number("The caller's number; absent when withheld.");
    let destination = number("The number as routed.");
    if let Some(call) = schemas.get("LiveCall") {
        let mut data = call.clone();
        let uuid = taken(&mut data, &["uuid", "organisation_id", "state", "reference", "variables"]);
        describe(&mut data, "A live call at the time of the event.");
        put(&mut data, "call_uuid", uuid, true);
        schemas.insert("CallEventData".to_owned(), data);
    }
    if let Some(record) = schemas.get("Cdr") {
        let mut data = record.clone();
        taken(&mut data, &WITH_MARGIN);
        describe(
            &mut data,
            "The record of the call without the fields that need `margin:read`, and three more.",
        );
        put(&mut data, "caller", Some(caller), false);
        put(&mut data, "destination", Some(destination), false);
        let words = "The extension of the call: the caller's, or the called one for an inbound call.";
        put(
            &mut data,
            "extension_id",
            Some(json!({"type": "string", "format": "uuid", "description": words})),
            false,
        );
        schemas.insert("CallEndedData".to_owned(), data);
    }
}

/// Removes fields of an object; returns the schema of the first.
fn taken(schema: &mut Value, names: &[&str]) -> Option<Value> {
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !names.iter().any(|gone| name == gone));
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut)?;
    let removed: Vec<Option<Value>> = names.iter().map(|name| properties.shift_remove(*name)).collect();
    removed.into_iter().next().flatten()
}

/// Sets the description of a schema.
fn describe(schema: &mut Value, words: &str) {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), words.into());
    }
}

/// Adds a field to an object.
fn put(schema: &mut Value, name: &str, field: Option<Value>, required: bool) {
    let Some(field) = field else { return };
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert(name.to_owned(), field);
    }
    if required && let Some(names) = schema.get_mut("required").and_then(Value::as_array_mut) {
        names.push(json!(name));
    }
}

fn hook(kind: EventKind) -> (String, Value) {
    let name = kind.as_str();
    let data = match payload(kind) {
        Some(schema) => json!({"$ref": format!("#/components/schemas/{schema}")}),
        None => json!({"type": "object", "description": "The payload of the kind."}),
    };
    let permission = kind.permission().as_str();
    let operation: String = name.split(['.', '_']).map(capitalised).collect();
    let envelope = json!({
        "type": "object",
        "required": ["id", "type", "timestamp", "organisation_id", "data"],
        "properties": {
            "id": {"type": "string", "format": "uuid", "description": "UUIDv7; the same in every delivery of the event."},
            "type": {"type": "string", "enum": [name], "description": "The kind of the event."},
            "timestamp": {"type": "string", "format": "date-time", "description": "When it happened."},
            "organisation_id": {"type": "string", "format": "uuid", "description": "The organisation it belongs to."},
            "data": data,
        },
    });
    let header = |name: &str, words: &str| json!({"name": name, "in": "header", "required": true, "description": words, "schema": {"type": "string"}});
    let post = json!({
        "operationId": format!("on{operation}"),
        "tags": ["Events"],
        "summary": summary(kind),
        "description": format!(
            "Delivered to webhooks whose `events` match, and on `GET /events` to callers with the permission \
             `{permission}`. At least once, and in any order: ignore an event whose `id` is known."
        ),
        "security": [],
        "parameters": [
            header("webhook-id", "The event's id."),
            header("webhook-timestamp", "When this attempt was made, in Unix seconds."),
            header("webhook-signature", "`v1,` and the base64 HMAC-SHA256 over `id.timestamp.body`; two of them after a rotation."),
            header("X-Service-Signature", "`sha256=` and the hexadecimal HMAC-SHA256 over the body."),
        ],
        "requestBody": {"required": true, "content": {"application/json": {"schema": envelope}}},
        "responses": {
            "2XX": {"description": "The event was taken."},
            "default": {"description": "Any other answer: the event is sent again."},
        },
    });
    (name.to_owned(), json!({"post": post}))
}

/// The component with the payload of a kind.
fn payload(kind: EventKind) -> Option<&'static str> {
    Some(match kind.as_str() {
        "call.answered" | "call.ringing" => "CallEventData",
        "call.conferenced" => "CallConferencedData",
        "call.ended" => "CallEndedData",
        "call.info.acked" => "CallInfoAckedData",
        "call.info.sent" => "CallInfoSentData",
        "call.media_warning" => "CallMediaWarningData",
        "call.missed" => "CallMissedData",
        "conference.dial_failed" => "ConferenceDialFailedData",
        "call.prompt_ended" => "CallPromptEndedData",
        "conference.minutes" => "ConferenceMinutesData",
        "conference.updated" => "ConferenceUpdatedData",
        "conversation.completed" => "ConversationCompletedData",
        "recording.failed" => "RecordingFailedData",
        "recording.ready" => "RecordingReadyData",
        "security.guessing" => "SecurityGuessingData",
        "security.pin_guessing" => "SecurityPinGuessingData",
        _ => return None,
    })
}

fn summary(kind: EventKind) -> &'static str {
    match kind.as_str() {
        "call.answered" => "A call was answered",
        "call.conferenced" => "Two calls were merged",
        "call.ended" => "A call ended",
        "call.info.acked" => "A note was acknowledged",
        "call.info.sent" => "A note was sent",
        "call.media_warning" => "Media quality changed",
        "call.missed" => "A call was missed",
        "call.prompt_ended" => "A prompt in a call ended",
        "call.ringing" => "A call rings",
        "conference.dial_failed" => "A dialled party did not join",
        "conference.minutes" => "Minutes were written",
        "conference.updated" => "A live room changed",
        "conversation.completed" => "A conversation was completed",
        "recording.failed" => "A recording failed",
        "recording.ready" => "A recording is ready",
        "security.guessing" => "Passwords are guessed",
        "security.pin_guessing" => "PINs of rooms are guessed",
        other => other,
    }
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + chars.as_str())
}

/// The fields of a record that its event does not contain.
const WITH_MARGIN: [&str; 6] =
    ["cost_amount", "cost_amount_original", "cost_currency", "cost_unconverted", "fx_rate", "margin"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_payload_in_the_document() {
        let document = crate::openapi::committed();
        for kind in EventKind::ALL {
            let name = kind.as_str();
            let post = &document["webhooks"][name]["post"];
            let envelope = &post["requestBody"]["content"]["application/json"]["schema"];
            let target = envelope["properties"]["data"]["$ref"].as_str();
            let target = target.unwrap_or_else(|| panic!("{name}: name its payload in payload()"));
            let schema =
                document.pointer(&target[1..]).unwrap_or_else(|| panic!("{name}: {target} is nowhere"));
            assert!(schema["properties"].as_object().is_some_and(|fields| !fields.is_empty()), "{name}");
            assert_ne!(post["summary"], name, "{name}: name its summary in summary()");
        }
    }
}
