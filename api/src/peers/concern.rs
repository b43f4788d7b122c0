//! Which nodes a request concerns, by its method and path.

use axum::http::Method;
use sidetone_model::cluster::LiveThing;
use sidetone_model::ids::{CallRequestId, RoomId};
use sidetone_model::room::RoomName;
use uuid::Uuid;

use crate::page;

/// Which nodes answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concern {
    /// Any node: the request is about stored data.
    Any,
    /// All nodes: the list contains the live items of each.
    List(ListKind),
    /// All nodes: a list of stored rooms; each node counts the members of its own live rooms.
    StoredRooms,
    /// All nodes: the state of a trunk, which one node registers and all nodes use.
    TrunkStatus,
    /// The node that owns a live call or room, if any does.
    Owner(LiveThing),
    /// Any node, or the one that still has the data in memory and has not stored it yet.
    SoonStored,
    /// The node that has the call of a call request, if it is live.
    CallOf(CallRequestId),
}

/// A list of live items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListKind {
    /// `GET /calls`.
    Calls,
    /// `GET /registrations`.
    Registrations,
    /// `GET /conferences`.
    Rooms,
}

impl Concern {
    /// The concern of a request; `path` is below `/api/v1`.
    pub(super) fn of(method: &Method, path: &str) -> Self {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let is_read = method == Method::GET;
        match *parts.as_slice() {
            ["calls"] if is_read => Concern::List(ListKind::Calls),
            ["conferences"] if is_read => Concern::List(ListKind::Rooms),
            ["registrations"] if is_read => Concern::List(ListKind::Registrations),
            ["calls", call, ..] => owned(uuid(call).map(|call| LiveThing::Call(call.into()))),
            // A node stores the messages of a call 30 seconds after its end.
            ["cdrs", _, "signalling"] if is_read => Concern::SoonStored,
            ["call-requests", request] if method == Method::DELETE => {
                uuid(request).map_or(Concern::Any, |request| Concern::CallOf(request.into()))
            }
            ["trunks", _, "status"] if is_read => Concern::TrunkStatus,
            ["conferences", "by-call", call] => owned(uuid(call).map(LiveThing::RoomOfCall)),
            // Sessions are stored.
            ["conferences", _, "sessions", ..] => Concern::Any,
            ["conferences", room, ..] => owned(room.parse().ok().map(LiveThing::Room)),
            ["conference-rooms"] if is_read => Concern::StoredRooms,
            // The owner counts the members, and a live room cannot be deleted.
            ["conference-rooms", room] | ["conference-rooms", room, "dial"] => {
                owned(uuid(room).map(|room| LiveThing::Room(RoomName::from(RoomId(room)))))
            }
            _ => Concern::Any,
        }
    }
}

/// An invalid name is refused by the node that received the request.
fn owned(thing: Option<LiveThing>) -> Concern {
    thing.map_or(Concern::Any, Concern::Owner)
}

fn uuid(text: &str) -> Option<Uuid> {
    page::uuid(text).ok()
}

#[cfg(test)]
mod tests {
    use sidetone_model::ids::CallId;

    use super::*;

    #[test]
    fn requests_go_to_those_who_have_the_answer() {
        let id = Uuid::from_u128(7);
        let call = Concern::Owner(LiveThing::Call(CallId(id)));
        let room = Concern::Owner(LiveThing::Room(RoomName::from(RoomId(id))));
        let (get, post, delete) = (Method::GET, Method::POST, Method::DELETE);
        let cases = [
            (&get, "/calls".to_owned(), Concern::List(ListKind::Calls)),
            (&post, "/calls".to_owned(), Concern::Any),
            (&get, "/registrations".to_owned(), Concern::List(ListKind::Registrations)),
            (&get, "/conferences".to_owned(), Concern::List(ListKind::Rooms)),
            (&get, format!("/calls/{id}"), call),
            (&delete, format!("/calls/{id}"), call),
            (&post, format!("/calls/{id}/hold"), call),
            (&post, "/calls/not-a-uuid/hold".to_owned(), Concern::Any),
            (&delete, format!("/call-requests/{id}"), Concern::CallOf(id.into())),
            (&get, format!("/call-requests/{id}"), Concern::Any),
            (&get, format!("/conferences/by-call/{id}"), Concern::Owner(LiveThing::RoomOfCall(id))),
            (&post, format!("/conferences/svc-room-{id}/members/3/mute"), room),
            (&get, format!("/conferences/svc-room-{id}/sessions/{id}/recording"), Concern::Any),
            (&post, format!("/conference-rooms/{id}/dial"), room),
            (&get, format!("/conference-rooms/{id}"), room),
            (&delete, format!("/conference-rooms/{id}"), room),
            (&get, format!("/conference-rooms/{id}/sessions"), Concern::Any),
            (&get, "/conference-rooms".to_owned(), Concern::StoredRooms),
            (&post, "/conference-rooms".to_owned(), Concern::Any),
            (&get, format!("/cdrs/{id}"), Concern::Any),
            (&get, format!("/cdrs/{id}/signalling"), Concern::SoonStored),
            (&get, format!("/trunks/{id}/status"), Concern::TrunkStatus),
            (&get, format!("/trunks/{id}"), Concern::Any),
            (&get, "/".to_owned(), Concern::Any),
        ];
        for (method, path, expected) in cases {
            assert_eq!(Concern::of(method, &path), expected, "{method} {path}");
        }
    }
}
