//! What the rooms are told and what they say.

use std::sync::Arc;

use serde_json::{Map, Value};
use sidetone_model::call::HangupCause;
use sidetone_model::ids::{
    CallId, ConferenceSessionId, ExtensionId, LegId, OrganisationId, RoomId, TeamId, TrunkId,
};
use sidetone_model::prompt::Prompt;
use sidetone_model::room::news::RoomNews;
use sidetone_model::room::{DialKind, Role, RoomName};

use crate::rooms::RoomBook;

/// A sum of what people say, as the media engine knows it: a room's, or that of one caller on the way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MixId(pub u64);

/// Somebody who is being rung for a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DialId(pub u64);

/// What the member at a leg hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hears {
    /// The organisation's hold music.
    Music,
    /// Everybody else in the mix.
    Room,
}

/// A leg that is up and wants into a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The leg.
    pub leg: LegId,
    /// Its call.
    pub call: CallId,
    /// Whose rooms it may come into.
    pub organisation: OrganisationId,
    /// Their number; empty when withheld.
    pub number: String,
    /// Their name; may be empty.
    pub name: String,
    /// Whose phone it is: only when the directory authenticated the leg, or we called the extension.
    pub extension: Option<ExtensionId>,
    /// The extension's team.
    pub team: Option<TeamId>,
    /// The trunk that the call came by; wrong PINs are counted for it.
    pub trunk: Option<TrunkId>,
    /// What they want.
    pub goal: Goal,
}

/// What a leg wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// To be asked for a room's number first.
    Ask,
    /// To be seated, having answered a call of the room.
    Dialled {
        /// Which.
        dial: DialId,
    },
    /// To be seated with the other parties of two calls that are merged.
    Merged {
        /// The room that the calls become.
        room: RoomName,
        /// The calls, the one that the room is named after first.
        calls: [CallId; 2],
        /// The extension that asked for it, when one did.
        by: Option<ExtensionId>,
    },
    /// To come into this room: they dialled its number, or a phone number that leads to it.
    Room(RoomId),
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A leg is up and wants into a room; every later input about it comes until [`Input::Gone`].
    Arrived(Arrival),
    /// Rooms were changed.
    Book(Arc<RoomBook>),
    /// Nobody answered a call of ours.
    DialFailed {
        /// Which.
        dial: DialId,
        /// Why.
        end: DialEnd,
    },
    /// Somebody keyed a digit: `0` to `9`, `*` or `#`; others are ignored.
    Digit(LegId, char),
    /// An extension may be reached now: a call that it had taken or made is over, or a phone of it registered.
    Free(ExtensionId),
    /// A leg is over, however it ended.
    Gone(LegId),
    /// The party holds us, or no longer.
    Held(LegId, bool),
    /// What was played to a leg was heard to its end; the token it was played with.
    Played(LegId, u64),
    /// The recording of a session ended: as told, or by itself when the disk is full.
    Recorded {
        /// The session.
        session: ConferenceSessionId,
        /// The length of its file now.
        bytes: u64,
        /// Why it ended by itself.
        error: Option<String>,
    },
    /// A phone rings for a call of ours; until then it may as well be busy.
    Ringing(DialId),
    /// Somebody began or stopped to talk.
    Talking(LegId, bool),
    /// The time of [`Rooms::next_timeout`](crate::rooms::Rooms::next_timeout) has come.
    Timeout,
}

/// Why nobody answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialEnd {
    /// They are in another call.
    Busy,
    /// They said no.
    Declined,
    /// It rang for too long.
    NoAnswer,
    /// Another final status.
    Status(u16),
    /// No phone of theirs is registered; nothing was sent.
    Unregistered,
}

/// What shall be done, and what changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Ring no longer; an answer that crosses is hung up.
    CancelDial(DialId),
    /// Ring somebody, then feed [`Input::Arrived`] or [`Input::DialFailed`].
    Dial(Dial),
    /// End a leg. It is no longer known here, and nothing more is said about it.
    HangUp(LegId, HangupCause),
    /// Let the member hear something else.
    Hear(LegId, Hears),
    /// Put a leg into a mix, out of the one that it is in.
    Join {
        /// The leg.
        leg: LegId,
        /// The mix.
        mix: MixId,
        /// Whose prompts and music it hears.
        organisation: OrganisationId,
        /// Whether it is not heard.
        muted: bool,
        /// What it hears.
        hears: Hears,
    },
    /// Let a leg be heard or not.
    Mute(LegId, bool),
    /// Something changed in a live room.
    News(RoomNews),
    /// Tell phones of it.
    Note(RoomNote),
    /// Play prompts to one leg in place of what still plays there, then feed [`Input::Played`] with the token.
    Play(LegId, Vec<Prompt>, u64),
    /// Play prompts to everybody in a mix.
    PlayAll(MixId, OrganisationId, Vec<Prompt>),
    /// Record a mix into the file of the session, behind what the file has.
    Record(MixId, ConferenceSessionId, OrganisationId),
    /// Stop what plays to a leg.
    StopPlaying(LegId),
    /// Record a mix no longer, then feed [`Input::Recorded`].
    StopRecording(MixId),
}

/// Somebody to be rung.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dial {
    /// Names it from now on.
    pub id: DialId,
    /// Who rings.
    pub organisation: OrganisationId,
    /// The room they shall be seated in.
    pub room: RoomId,
    /// Where they are.
    pub kind: DialKind,
    /// An extension's number, or E.164.
    pub target: String,
    /// What they are seated as.
    pub role: Role,
    /// The room's name, for an extension's display.
    pub caller_name: String,
    /// The room's number.
    pub caller_number: String,
}

/// A note of a room to phones in it.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomNote {
    /// Whose room it is.
    pub organisation: OrganisationId,
    /// The room.
    pub room: RoomName,
    /// The occupancy.
    pub session: ConferenceSessionId,
    /// The phones.
    pub to: Vec<RoomPhone>,
    /// The note without its `id`; with one it is shorter than 4 KB.
    pub payload: Map<String, Value>,
}

/// The phone of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomPhone {
    /// The member's id.
    pub member: u32,
    /// The member's name, or number.
    pub name: String,
    /// The call.
    pub call: CallId,
    /// The leg of it.
    pub leg: LegId,
}

/// The bounds of what a node holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomsConfig {
    /// Live rooms at once.
    pub rooms_max: usize,
    /// Members of one room at once, where it has no lower cap of its own.
    pub members_max: usize,
    /// Callers on their way into rooms at once.
    pub callers_max: usize,
    /// People who are rung for rooms at once.
    pub dials_max: usize,
}

impl Default for RoomsConfig {
    fn default() -> Self {
        RoomsConfig { rooms_max: 1000, members_max: 1000, callers_max: 2000, dials_max: 2000 }
    }
}
