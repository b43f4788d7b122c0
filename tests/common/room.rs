//! A conference room in a site, and its state as tests read it.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;
use sidetone_model::access::Scope;
use sidetone_model::directory::DirectorySnapshot;
use sidetone_model::event::{EventKind, Position};
use sidetone_model::ids::RoomId;
use sidetone_model::room::{NewRoom, Pin, RoomPin, Rooms};
use sidetone_store::Store;

use super::chosen::database_in;
use super::records::at;
use super::site::{self, found, get};

/// The site's directory with extensions from 1001 to `last`, and a key with all permissions on rooms.
pub fn directory(last: u32) -> String {
    let permissions = "\"calls:read\", \"calls:control\", \"conferences:read\", \"conferences:write\", \
                       \"conferences:control\", \"conversations:write\", \"recordings:listen\"";
    let text = site::directory();
    let mut text = text.replacen("\"calls:read\", \"calls:control\"", permissions, 1);
    for number in 1007..=last {
        text += &format!(
            "[[organisations.extensions]]\nnumber = \"{number}\"\npassword = \"{}\"\n",
            site::PASSWORD
        );
    }
    text
}

/// A room that extensions dial at `number`, without a PIN; `change` modifies it.
pub async fn make(dir: &Path, number: &str, change: impl FnOnce(&mut NewRoom)) -> RoomId {
    let store = Store::open(&database_in(dir)).await.unwrap();
    let DirectorySnapshot { organisations, .. } = store.directory().await.unwrap();
    let mut new = NewRoom {
        organisation_id: organisations[0].id,
        name: "Board".to_owned(),
        number: number.to_owned(),
        participant_pin: RoomPin::Given(Pin::default()),
        moderator_pin: Pin::default(),
        wait_for_moderator: false,
        end_when_moderator_leaves: false,
        record: false,
        record_channels: 1,
        announce_names: false,
        max_members: 0,
        minutes_email: String::new(),
    };
    change(&mut new);
    let room = store.create(Scope::Everything, new, at(0)).await.unwrap().id;
    store.close().await;
    room
}

/// The newest session of a room, once `holds` is true for it.
pub async fn session(http: SocketAddr, room: RoomId, holds: impl Fn(&Value) -> bool) -> Value {
    let path = format!("/conference-rooms/{room}/sessions");
    found("a session", async || {
        let (status, page) = get(http, &path).await;
        assert_eq!(status, 200, "{page}");
        page["items"].get(0).filter(|session| holds(session)).cloned()
    })
    .await
}

/// The data of every event of that kind, in their order.
pub async fn events(store: &Store, kind: EventKind) -> Vec<Value> {
    let (mut events, mut after) = (Vec::new(), Position(0));
    loop {
        let batch = store.events_after(Scope::Everything, after, 500).await.unwrap();
        let of_kind = batch.events.into_iter().filter(|placed| placed.event.kind == kind);
        events.extend(of_kind.map(|placed| Value::Object(placed.event.data)));
        after = batch.next;
        if batch.is_last {
            return events;
        }
    }
}
