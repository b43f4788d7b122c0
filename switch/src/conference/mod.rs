//! Live conference rooms and the entry to them: one machine for all live rooms of a node.
//!
//! [`Rooms`] handles legs, calls and prompts, but no SIP, no audio and no clock. Events of legs are [`Input`]s;
//! actions on legs, and changes to publish, are [`Output`]s. A caller who is asked for a PIN has a mix of
//! its own until admitted, so that prompts and digits work as in a room. A room is live from the first
//! member who is seated until the last member leaves: one session, one mix, and member ids that are not
//! reused.
//!
//! # Behaviour that the public document leaves open
//!
//! * A PIN ends with `#` or after 3 s without a digit; `*` clears the digits. After 60 s without a digit, and
//!   after 5 minutes in all, the caller is hung up.
//! * A participant who was seated without a PIN prompt becomes a moderator by keying the moderator
//!   PIN and `#` in the room: they leave as participant and join as moderator, under a new member id. Three
//!   tries are allowed per call.
//! * `*5` and `*7` toggle, like the commands that they stand for. A command that the member may not use has no
//!   effect and no prompt.
//! * A mute has one state, whether the member or a moderator set it: `*2` and a moderator's unmute both end
//!   it, unless a program locked it: then a participant's `*2` does not. A member who was muted before "mute all" stays
//!   muted when it ends.
//! * When the listener of a whisper leaves, the whisperer is muted.
//! * While a room waits for its moderator, participants hear music and are not heard. It waits again when the
//!   last moderator leaves.
//! * A room that is ended, by a moderator or because the last moderator left, cancels all its calls. A room
//!   whose last member left cancels only the calls to default members: a target that was dialled in and
//!   answers later opens the room again.
//! * A registered phone that calls again while its member is silent takes that member's seat: the member keeps its
//!   id, its mute and the moderator's role, and the lost call is hung up. A locked or full room admits it.
//! * A room that another node has handed over opens with the first member who arrives here. It keeps its lock, mutes
//!   and controls. Its default members are not rung again.
//! * In a room with `announce_names`, a caller without a recorded name is asked for it, once for each extension. The
//!   rules for chimes apply to names, too: only small rooms announce, and many joins or leaves in a short time get one
//!   chime.
//! * A change of a stored room while it is live applies to members who join later; `wait_for_moderator`,
//!   `end_when_moderator_leaves` and the name stay as they were when it opened.

mod announcing;
mod channels;
mod dialling;
mod directory;
mod entry;
mod invitation;
mod invites;
mod io;
mod keypad;
mod live;
mod live_controls;
mod live_rooms;
mod machine;
mod member_controls;
mod moderator_pin;
mod moving;
mod naming;
mod notes;
mod outputs;
mod pin_attempts;
mod pins;
mod playing;
mod returning;

pub use directory::RoomDirectory;
pub use io::{
    Arrival, DeviceId, Dial, DialEnd, DialId, Goal, Hears, Input, MixId, NameOrder, Output, RoomNote,
    RoomPhone, RoomsConfig, Sought,
};
pub use machine::Rooms;
pub use pin_attempts::PinCaller;

#[cfg(test)]
pub(crate) mod tests;
