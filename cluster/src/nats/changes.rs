//! Notices of committed changes, for all other nodes, so that they read the change immediately. A message may be lost,
//! so every node polls as well.

use async_nats::Subscriber;
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use sidetone_model::ids::NodeId;

use super::connection::{Connection, REQUEST_MAX, chain};

/// The kind of a change. Kinds that only a later version has are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredChange {
    /// Keys, users and sessions.
    Credentials,
    /// All parts of the directory that a switch uses.
    Directory,
    /// A kind that this version does not know.
    #[serde(other)]
    Unknown,
}

/// The message: versioned JSON. Unknown fields are ignored.
#[derive(Debug, Serialize, Deserialize)]
struct Notice {
    v: u32,
    node: NodeId,
    changed: Vec<StoredChange>,
}

/// The changes of other nodes.
#[derive(Debug)]
pub struct ChangesOfOthers {
    node: NodeId,
    messages: Subscriber,
}

impl Connection {
    /// Notifies all other nodes of the changes that `node` has committed.
    ///
    /// # Errors
    /// The send queue of the connection is full.
    pub async fn send_changes(&self, node: NodeId, changed: Vec<StoredChange>) -> Result<(), String> {
        let notice =
            serde_json::to_vec(&Notice { v: FORMAT, node, changed }).map_err(|error| error.to_string())?;
        match tokio::time::timeout(REQUEST_MAX, self.client.publish(self.subject(), notice.into())).await {
            Ok(sent) => sent.map_err(|error| chain(&error)),
            Err(_) => Err("the connection takes nothing".to_owned()),
        }
    }

    /// Subscribes to the changes that nodes other than `node` commit. The client subscribes again after a lost
    /// connection.
    ///
    /// # Errors
    /// The send queue of the connection is full.
    pub async fn changes_of_others(&self, node: NodeId) -> Result<ChangesOfOthers, String> {
        match tokio::time::timeout(REQUEST_MAX, self.client.subscribe(self.subject())).await {
            Ok(Ok(messages)) => Ok(ChangesOfOthers { node, messages }),
            Ok(Err(error)) => Err(chain(&error)),
            Err(_) => Err("the connection takes nothing".to_owned()),
        }
    }

    fn subject(&self) -> String {
        format!("{}.changes", self.settings.name)
    }
}

impl ChangesOfOthers {
    /// Waits for the next message; `None` when the connection is closed.
    pub async fn next(&mut self) -> Option<Vec<StoredChange>> {
        loop {
            let message = self.messages.next().await?;
            // Another format is of a later version; its nodes poll as well.
            let Ok(notice) = serde_json::from_slice::<Notice>(&message.payload) else { continue };
            if notice.node != self.node {
                return Some(notice.changed);
            }
        }
    }
}

const FORMAT: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_later_version_knows_is_ignored() {
        let text = r#"{"v":1,"node":"00000000-0000-0000-0000-000000000007","changed":["directory","weather"],"at":5}"#;
        let notice: Notice = serde_json::from_str(text).unwrap();
        assert_eq!(notice.changed, [StoredChange::Directory, StoredChange::Unknown]);
        let text = serde_json::to_string(&notice.changed[0]).unwrap();
        assert_eq!(text, "\"directory\"");
    }
}
