//! The payload and its signature; pure.

use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use sha2::Sha256;
use sidetone_model::call::Direction;
use sidetone_model::directory::Secret;
use sidetone_model::ids::{AgentId, CallId, ExtensionId, OrganisationId, TeamId};
use sidetone_model::live_call::LiveCall;
use sidetone_model::time::Timestamp;

/// An answered call, as sent to its organisation. Fields that do not apply are omitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnsweredCall {
    /// The call; its record will have the same uuid.
    pub call_uuid: CallId,
    /// The direction.
    pub direction: Direction,
    /// The caller's number; absent when withheld.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// The called number, as routed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// The call's organisation.
    pub organisation_id: OrganisationId,
    /// The extension of the call, as in its record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension_id: Option<ExtensionId>,
    /// The agent of that extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The team of that extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team_id: Option<TeamId>,
    /// When it was answered.
    pub answered_at: Timestamp,
}

impl AnsweredCall {
    /// The data of a live call when it is answered.
    pub fn of(call: &LiveCall) -> Self {
        Self {
            call_uuid: call.uuid,
            direction: call.direction,
            caller: call.caller.clone(),
            destination: call.destination.clone(),
            organisation_id: call.organisation_id,
            extension_id: call.extension_id,
            agent_id: call.agent_id,
            team_id: call.team_id,
            answered_at: call.answered_at.unwrap_or(call.started_at),
        }
    }

    /// The body of the request.
    pub(super) fn payload(&self) -> Vec<u8> {
        // Texts, uuids and times can always be written.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// The value of `X-Service-Signature` for exactly these bytes: `sha256=` and the HMAC-SHA256 in lower-case
/// hex, keyed with the UTF-8 bytes of the secret.
pub fn signature(secret: &Secret, body: &[u8]) -> String {
    use std::fmt::Write as _;
    // A key may have any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.0.as_bytes()) else { return String::new() };
    mac.update(body);
    let mut text = String::from("sha256=");
    for byte in mac.finalize().into_bytes() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn call() -> AnsweredCall {
        AnsweredCall {
            call_uuid: CallId(Uuid::from_u128(1)),
            direction: Direction::Inbound,
            caller: Some("+442071230001".to_owned()),
            destination: Some("1001".to_owned()),
            organisation_id: OrganisationId(Uuid::from_u128(2)),
            extension_id: None,
            agent_id: None,
            team_id: None,
            answered_at: Timestamp::from_micros(1_767_225_600_123_456),
        }
    }

    #[test]
    fn what_does_not_apply_is_left_out() {
        let expected = r#"{"call_uuid":"00000000-0000-0000-0000-000000000001","direction":"inbound","caller":"+442071230001","destination":"1001","organisation_id":"00000000-0000-0000-0000-000000000002","answered_at":"2026-01-01T00:00:00.123Z"}"#;
        assert_eq!(String::from_utf8(call().payload()).unwrap(), expected);
        let whole = AnsweredCall {
            extension_id: Some(ExtensionId(Uuid::from_u128(3))),
            agent_id: Some(AgentId(Uuid::from_u128(4))),
            team_id: Some(TeamId(Uuid::from_u128(5))),
            ..call()
        };
        let text = String::from_utf8(whole.payload()).unwrap();
        for (name, digit) in [("extension_id", 3), ("agent_id", 4), ("team_id", 5)] {
            assert!(
                text.contains(&format!("\"{name}\":\"00000000-0000-0000-0000-00000000000{digit}\"")),
                "{text}"
            );
        }
    }

    #[test]
    fn signatures_are_those_of_others() {
        // RFC 4231 §4.3, and the result of Python's hmac.
        let cases = [
            (
                "Jefe",
                "what do ya want for nothing?",
                "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                "0123456789abcdef",
                "",
                "sha256=496dc93fa2d26eae500ec0bc37a122706b88f8963cebf0899d0245fae313e241",
            ),
            (
                "Schlüssel für alle",
                r#"{"title":"Grüße"}"#,
                "sha256=86060df8cdb44ab3fdd308a68447cbf7934fc3d9ab85d695dd9f05470d805155",
            ),
        ];
        for (secret, body, expected) in cases {
            assert_eq!(signature(&Secret(secret.to_owned()), body.as_bytes()), expected);
        }
    }
}
