//! The demo's note: sent over HTTP into a live call, shown on its phones, and acknowledged on one.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::Phone;
use crate::demo::client::{ClientError, get, post};
use crate::demo::script::Scene;

/// The result of the note.
#[derive(Clone, Debug)]
pub struct NoteShowing {
    /// The note's record, from the API; null if it was not reached.
    pub json: Value,
    /// Why it was not acknowledged.
    pub missing: Option<String>,
}

impl NoteShowing {
    /// Whether phones showed it and the acknowledgement of one was received.
    pub fn is_as_expected(&self) -> bool {
        self.missing.is_none()
            && text(&self.json, "status") == Some("acked")
            && self.number("acked_count") == Some(1)
    }

    /// The result as a sentence.
    pub fn sentence(&self) -> String {
        match &self.missing {
            None => format!(
                "the note \"{}\" was shown on {} phones of the call {} to {}, and acknowledged on {}.",
                text(&self.json, "title").unwrap_or_default(),
                self.number("recipient_count").unwrap_or_default(),
                Scene::from(PLACE),
                Scene::to(PLACE),
                Scene::to(PLACE),
            ),
            Some(missing) => format!("the note into a call: {missing}"),
        }
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.json.get(name)?.as_u64()
    }
}

/// Sends the note into the call of the first scene as soon as it is up, and acknowledges it on the called
/// phone.
pub(super) async fn show(http: SocketAddr, key: &str, callee: &Phone) -> NoteShowing {
    match shown(http, key, callee).await {
        Ok(json) => NoteShowing { json, missing: None },
        Err(missing) => NoteShowing { json: Value::Null, missing: Some(missing) },
    }
}

async fn shown(http: SocketAddr, key: &str, callee: &Phone) -> Result<Value, String> {
    let deadline = Instant::now() + SHOWN_MAX;
    let call = until(deadline, "the call to be up", || live_call(http, key)).await?;
    let sent = post(http, &format!("/api/v1/calls/{call}/info"), key, &note()).await.map_err(error_text)?;
    let id = text(&sent, "id").ok_or("the API gave the note no id")?;
    let mut count = callee.notes_count();
    let came = tokio::time::timeout_at(deadline, count.wait_for(|count| *count > 0)).await;
    came.map_err(|_| "it did not reach the phone in time".to_owned())?.map_err(|error| error.to_string())?;
    match callee.acknowledge(id).await {
        Ok(200..=299) => {}
        Ok(status) => return Err(format!("the switch answered {status} to its acknowledgement")),
        Err(error) => return Err(format!("failed to {error}")),
    }
    let list = format!("/api/v1/calls/{call}/infos");
    until(deadline, "its acknowledgement to be on the record", || acknowledged(http, key, &list)).await
}

/// The call of the first scene, once it is answered.
async fn live_call(http: SocketAddr, key: &str) -> Result<Option<String>, ClientError> {
    let live = get(http, "/api/v1/calls?limit=100", key).await?;
    let from = Scene::from(PLACE);
    let call =
        items(&live).find(|call| text(call, "caller") == Some(&from) && text(call, "answered_at").is_some());
    Ok(call.and_then(|call| text(call, "uuid")).map(str::to_owned))
}

/// The record of the only note in `list`, once every phone has responded and one has acknowledged.
async fn acknowledged(http: SocketAddr, key: &str, list: &str) -> Result<Option<Value>, ClientError> {
    let notes = get(http, list, key).await?;
    Ok(items(&notes).find(|note| text(note, "status") == Some("acked")).cloned())
}

/// The items of a page.
pub(super) fn items(page: &Value) -> impl Iterator<Item = &Value> {
    page.get("items").and_then(Value::as_array).into_iter().flatten()
}

/// A text of an object.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

/// Checks repeatedly until there is a result.
pub(super) async fn until<T, F>(
    deadline: Instant,
    what: &str,
    mut look: impl FnMut() -> F,
) -> Result<T, String>
where
    F: Future<Output = Result<Option<T>, ClientError>>,
{
    loop {
        if let Some(found) = look().await.map_err(error_text)? {
            return Ok(found);
        }
        if Instant::now() > deadline {
            return Err(format!("waited in vain for {what}"));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The error, for a sentence.
pub(super) fn error_text(error: ClientError) -> String {
    format!("failed to {error}")
}

/// The note, as an integrator's program would send it.
fn note() -> Value {
    json!({
        "title": "Customer owes 900 euros",
        "body": "Two reminders were sent.",
        "level": "alert",
        "ack": true,
        "customer": "Jane Roe",
        "invoices": [{ "no": 17, "EUR": 400.5 }, { "no": 21, "EUR": 499.5 }],
    })
}

/// The scene whose call gets the note: the first, which has no impairments.
pub(super) const PLACE: usize = 0;
/// The longest total time: shorter than the call.
const SHOWN_MAX: Duration = Duration::from_secs(8);
const LOOK_EVERY: Duration = Duration::from_millis(100);
