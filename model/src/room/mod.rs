//! Conference rooms: the stored room, its current members, and the people that it rings.
//!
//! A *room* is stored and has a number and PINs. A *live room* has at least one member; it lasts for one
//! *session*. A *member* is in a live room, an *invite* is a default member who has not joined yet. Two
//! merged calls are in a live room without a stored one.

mod config;
mod dial;
pub mod event;
mod live;
pub mod meeting;
mod name;
mod pin;
pub mod rows;
pub mod rules;
pub mod session;
mod stored;

pub use config::{Exemption, Role, RoomConfig};
pub use dial::{DialFailure, DialKind, DialRequest, RoomDialFailed, RoomDialled};
pub use live::{
    Control, ControlDone, ControlRefused, GainChange, Invite, InviteReason, InviteState, LiveMember,
    LiveRoom, LiveRooms, MemberGain, MergeRefused, PlayingSound, Requester, RoomViewer,
};
pub use name::{RoomName, RoomNameError};
pub use pin::{Pin, RoomPin};
pub use stored::{ExpectedRoom, NewRoom, Room, RoomChange, RoomMember, RoomNumber, RoomView, Rooms};
