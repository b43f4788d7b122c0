//! The state of a live room that its node hands over to another one.

use serde::{Deserialize, Serialize};
use sidetone_model::ids::RoomId;

/// The state of a live room. Unknown fields are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomState {
    /// The room.
    pub room: RoomId,
    /// Whether only moderators may join.
    pub locked: bool,
    /// Whether everyone except moderators is muted.
    pub all_muted: bool,
    /// Whether it is recorded.
    pub recording: bool,
    /// The channels of its recordings: 1 or 2.
    pub channels: u16,
    /// Its members, in the order in which they joined.
    pub members: Vec<MemberState>,
}

/// A member of a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberState {
    /// The name of the seat in the INVITE that connects the member to the next node.
    pub seat: String,
    /// Whether it is a moderator.
    pub is_moderator: bool,
    /// Whether it was seated without a PIN prompt.
    pub unasked: bool,
    /// Wrong PINs that it keyed in the room.
    pub tries: u8,
    /// Whether it is muted.
    pub muted: bool,
    /// Whether it is muted by "mute all", and therefore unmuted with it.
    pub by_all: bool,
    /// Whether it cannot end its mute with a key.
    pub mute_locked: bool,
    /// Whether it hears nothing of the room.
    pub deaf: bool,
    /// Whether it hears music and is not heard.
    pub on_hold: bool,
    /// Its fixed gain in decibels.
    pub gain_db: i8,
    /// Whether its speech is adjusted to a common loudness.
    pub automatic_gain: bool,
    /// The seat of the only member that hears it.
    pub whisper_to: Option<String>,
}
