//! Conference rooms: the stored room, who is in it now, and what becomes of the people it rings.
//!
//! A *room* is the stored thing with a number and PINs. A *live room* is one that somebody is in; it lasts for one
//! *session*. A *member* is who is in it, an *invite* a default member on the way there. Two calls that were merged are
//! in a live room without a stored one.

mod config;
mod live;
pub mod meeting;
mod name;
pub mod news;
mod pin;
pub mod rows;
pub mod rules;
pub mod session;
mod stored;

pub use config::{Exemption, Role, RoomConfig};
pub use live::{
    Control, ControlDone, ControlRefused, DialKind, DialRequest, Invite, InviteReason, InviteState,
    LiveMember, LiveRoom, LiveRooms, MergeRefused, RoomViewer,
};
pub use name::{RoomName, RoomNameError};
pub use pin::{Pin, RoomPin};
pub use stored::{NewRoom, Room, RoomChange, RoomMember, RoomNumber, RoomView, Rooms};
