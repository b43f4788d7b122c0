//! Conference rooms while somebody is in them, and the way in: one machine for all live rooms of a node.
//!
//! [`Rooms`] knows legs, calls and prompts, but no SIP, no audio and no clock. What happens to legs comes in as
//! [`Input`]s; what shall be done with them, and what changed, goes out as [`Output`]s. A caller who is asked for a
//! PIN sits in a mix of his own until he is let in, so that prompts and digits take the same way everywhere. A room
//! lives from the first member who is seated until the last one leaves: one session, one mix, member ids that are
//! never given twice.
//!
//! # What the public document leaves open
//!
//! * A PIN ends with `#` or after 3 s without a digit; `*` begins it anew. After 60 s without a digit, and after 5
//!   minutes in all, the caller is hung up.
//! * A participant who was seated without being asked for a PIN becomes a moderator by keying the moderator PIN and
//!   `#` in the room: they leave as participant and join as moderator, under a new member id. Three tries a call.
//! * `*5` and `*7` toggle, as what they are shorthand for does. What a member may not do is not answered.
//! * Muted is muted, whoever did it: `*2` and a moderator's unmute both undo it. Who was muted before everybody was is
//!   not unmuted with them.
//! * While a room waits for its moderator, participants hear music and nobody hears them. It waits again when the last
//!   moderator leaves.
//! * A room that is ended, by a moderator or because the last one left, stops ringing whom it dials. A room that just
//!   ran empty stops ringing its default members alone: who was dialled in and answers later opens it again.
//! * What of a stored room changes while it is live counts for those who come later; `wait_for_moderator`,
//!   `end_when_moderator_leaves` and the name stay as they were when it opened.

mod book;
mod control;
mod desk;
mod entry;
mod face;
mod guard;
mod invites;
mod keypad;
mod live;
mod machine;
mod notes;
mod seating;

pub use book::RoomBook;
pub use face::{
    Arrival, Dial, DialEnd, DialId, Goal, Hears, Input, MixId, Output, RoomNote, RoomPhone, RoomsConfig,
};
pub use guard::Who;
pub use machine::Rooms;

#[cfg(test)]
pub(crate) mod tests;
