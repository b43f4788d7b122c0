//! The demo's conference: three phones join a room with its PIN, the last one receives the roster, and one is muted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sidetone_sip::sdp::CodecPolicy;
use tokio::time::Instant;

use crate::demo::client::{ClientError, command, get};
use crate::demo::note::{error_text, items, text, until};
use crate::demo::organisation::{Access, MEMBERS, PIN, ROOM};
use crate::{CallPlan, Phone, PhoneConfig, PhoneError, Voice};

/// The result of the conference.
#[derive(Clone, Debug)]
pub struct ConferenceShowing {
    /// The live room with all members, from the API; null if it was not reached.
    pub json: Value,
    /// The roster that the last phone received.
    pub roster: Value,
    /// Why it failed.
    pub missing: Option<String>,
}

impl ConferenceShowing {
    /// Whether all phones joined, the roster lists them, and one of them is muted.
    pub fn is_as_expected(&self) -> bool {
        let muted = members(&self.json).filter(|member| member.get("muted") == Some(&Value::Bool(true)));
        let named = self.roster.get("members").and_then(Value::as_array).map_or(0, Vec::len);
        self.missing.is_none()
            && members(&self.json).count() == MEMBERS.len()
            && muted.count() == 1
            && named == MEMBERS.len()
    }

    /// The result as a sentence.
    pub fn sentence(&self) -> String {
        if let Some(missing) = &self.missing {
            return format!("the conference: {missing}");
        }
        let names = |muted: Option<bool>| {
            let is =
                |member: &&Value| muted.is_none_or(|muted| member.get("muted") == Some(&Value::Bool(muted)));
            let names: Vec<&str> =
                members(&self.json).filter(is).filter_map(|member| text(member, "name")).collect();
            names.join(", ")
        };
        format!(
            "{} joined room {ROOM} by its PIN; the last was shown a roster of {}, and {} was muted.",
            names(None),
            self.roster.get("count").and_then(Value::as_u64).unwrap_or_default(),
            names(Some(true))
        )
    }
}

/// The phones of the conference.
pub(super) struct Conference {
    phones: Vec<Arc<Phone>>,
}

impl Conference {
    /// Starts the phones.
    pub(super) async fn set(sip: SocketAddr, access: &Access) -> Result<Conference, PhoneError> {
        let mut phones = Vec::with_capacity(MEMBERS.len());
        for (number, _) in MEMBERS {
            let config = PhoneConfig {
                codecs: CodecPolicy::new(["PCMU"]),
                voice: Some(Voice::Silence),
                ..PhoneConfig::new(sip, access.domain, number, access.phones_password.clone())
            };
            phones.push(Arc::new(Phone::start(config).await?));
        }
        Ok(Conference { phones })
    }

    /// Whether a call is one of this conference, by its caller.
    pub(super) fn is_by(caller: &str) -> bool {
        MEMBERS.iter().any(|(number, _)| *number == caller)
    }

    /// All phones join with the PIN; then the first is muted, and the conference ends.
    pub(super) async fn show(&self, http: SocketAddr, key: &str) -> ConferenceShowing {
        match self.shown(http, key).await {
            Ok((json, roster)) => ConferenceShowing { json, roster, missing: None },
            Err(missing) => {
                ConferenceShowing { json: Value::Null, roster: Value::Null, missing: Some(missing) }
            }
        }
    }

    async fn shown(&self, http: SocketAddr, key: &str) -> Result<(Value, Value), String> {
        let deadline = Instant::now() + SHOWN_MAX;
        for (place, phone) in self.phones.iter().enumerate() {
            let caller = Arc::clone(phone);
            // The call lasts until the room ends.
            let plan = CallPlan { talk_time: None, ..CallPlan::to(ROOM) };
            tokio::spawn(async move { caller.call(plan).await });
            let mut calls = phone.calls();
            let up = tokio::time::timeout_at(deadline, calls.wait_for(|calls| calls.up == 1)).await;
            up.map_err(|_| "its answer did not come in time".to_owned())?
                .map_err(|error| error.to_string())?;
            phone.dial(&format!("{PIN}#")).await.map_err(|error| format!("failed to {error}"))?;
            until(deadline, "a phone to join with its PIN", || live(http, key, place + 1)).await?;
        }
        let last = self.phones.last().ok_or("no phone was invited")?;
        let mut count = last.notes_count();
        let came = tokio::time::timeout_at(deadline, count.wait_for(|count| *count > 0)).await;
        came.map_err(|_| "the roster did not reach the last phone in time".to_owned())?
            .map_err(|error| error.to_string())?;
        let roster = last.notes().into_iter().find(|note| text(&note.json, "event") == Some("roster"));
        let roster = roster.ok_or("the last phone was shown no roster")?.json;

        let room = until(deadline, "the room to be live", || live(http, key, MEMBERS.len())).await?;
        let path = format!("/api/v1/conferences/{}", text(&room, "room").ok_or("the room has no name")?);
        let first = members(&room).next().and_then(|member| member.get("id")).and_then(Value::as_u64);
        let first = first.ok_or("the room has no members")?;
        command(http, &format!("{path}/members/{first}/mute"), key).await.map_err(error_text)?;
        let room = get(http, &path, key).await.map_err(error_text)?;
        command(http, &format!("{path}/end"), key).await.map_err(error_text)?;
        Ok((room, roster))
    }
}

/// The demo's room, once it has `count` members.
async fn live(http: SocketAddr, key: &str, count: usize) -> Result<Option<Value>, ClientError> {
    let rooms = get(http, "/api/v1/conferences", key).await?;
    Ok(items(&rooms).find(|room| members(room).count() >= count).cloned())
}

fn members(room: &Value) -> impl Iterator<Item = &Value> {
    room.get("members").and_then(Value::as_array).into_iter().flatten()
}

/// The longest total time. It usually takes a few seconds, and several times that on a machine that is busy with other
/// work.
const SHOWN_MAX: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_told_in_a_sentence() {
        let member = |name: &str, muted: bool| json!({"name": name, "muted": muted});
        let mut showing = ConferenceShowing {
            json: json!({"members": [member("Ada", true), member("Bob", false), member("Cleo", false)]}),
            roster: json!({"count": 3, "members": [{}, {}, {}]}),
            missing: None,
        };
        assert!(showing.is_as_expected());
        assert_eq!(
            showing.sentence(),
            "Ada, Bob, Cleo joined room 300 by its PIN; the last was shown a roster of 3, and Ada was muted."
        );
        showing.missing = Some("no phone joined with its PIN in time".to_owned());
        assert!(!showing.is_as_expected());
        assert_eq!(showing.sentence(), "the conference: no phone joined with its PIN in time");
    }
}
