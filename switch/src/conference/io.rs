//! The inputs and outputs of the rooms, and their types.

use std::sync::Arc;

use serde_json::{Map, Value};
use sidetone_model::call::HangupCause;
use sidetone_model::ids::{
    CallId, ConferenceSessionId, ExtensionId, LegId, OrganisationId, RoomId, TeamId, TrunkId,
};
use sidetone_model::pin_guessing::PinGuessing;
use sidetone_model::prompt::{Prompt, SoundName};
use sidetone_model::recording::RecordingFailed;
use sidetone_model::room::event::{MergedBy, RoomEvent};
use sidetone_model::room::{DialKind, MemberGain, Role, RoomDialFailed, RoomName};

use crate::conference::RoomDirectory;

/// A mix in the media engine: that of a room, or that of one caller on the way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MixId(pub u64);

/// Identifies one call that we place for a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DialId(pub u64);

/// Identifies a registered phone for as long as it stays registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceId(pub u64);

/// The audio that the member at a leg hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hears {
    /// The organisation's hold music.
    Music,
    /// Silence, and the prompts for it alone.
    Nothing,
    /// All other legs in the mix.
    Room,
}

/// A leg that is up and wants to enter a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The leg.
    pub leg: LegId,
    /// Its call.
    pub call: CallId,
    /// The organisation whose rooms it may enter.
    pub organisation: OrganisationId,
    /// The party's number; empty when withheld.
    pub number: String,
    /// The party's name; may be empty.
    pub name: String,
    /// The extension, known only when the directory authenticated the leg or we called the extension.
    pub extension: Option<ExtensionId>,
    /// The extension's team.
    pub team: Option<TeamId>,
    /// The trunk that the call came by; wrong PINs are also counted per trunk.
    pub trunk: Option<TrunkId>,
    /// The registered phone: one that calls again, after a restart for example, has the same binding.
    pub device: Option<DeviceId>,
    /// Whether the party sends neither RTP nor RTCP at present.
    pub is_silent: bool,
    /// Whether the call was forwarded: a party other than the called one may have answered.
    pub is_forwarded: bool,
    /// The goal of the party.
    pub goal: Goal,
    /// The party's seat in a room that another node has handed over to this one.
    pub returns: Option<String>,
}

/// The location of the room whose number a caller keyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    /// At another node, to which the caller is being connected.
    Elsewhere,
    /// At this node.
    Here,
    /// At no node, or at a node that does not accept the caller.
    Nowhere,
}

/// The goal of a leg.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// To be asked for a room's number first.
    Ask,
    /// To be seated after answering a call of the room.
    Dialled {
        /// The call.
        dial: DialId,
    },
    /// To be seated with the other parties of two calls that are merged.
    Merged {
        /// The room that the calls become.
        room: RoomName,
        /// The merged calls; the room is named after the first.
        calls: [CallId; 2],
        /// The requester.
        by: MergedBy,
    },
    /// To be seated in this room: a program moved the party there.
    Moved {
        /// The room.
        room: RoomId,
    },
    /// To enter this room: the party dialled its number, or a phone number that leads to it.
    Room(RoomId),
}

/// An event to handle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "handled at once, never stored")]
pub enum Input {
    /// A leg is up and wants to enter a room. Other inputs about this leg follow until [`Input::Gone`].
    Arrived(Arrival),
    /// The stored rooms changed.
    Directory(Arc<RoomDirectory>),
    /// A call of ours was not answered.
    DialFailed {
        /// The call.
        dial: DialId,
        /// Why.
        end: DialEnd,
    },
    /// A party keyed a digit: `0` to `9`, `*` or `#`; others are ignored.
    Digit(LegId, char),
    /// An extension may be reachable now: one of its calls ended, or one of its phones registered.
    Free(ExtensionId),
    /// A leg is over, for this cause.
    Gone(LegId, HangupCause),
    /// The party put us on hold, or resumed.
    Held(LegId, bool),
    /// The spoken name of a leg was looked up or recorded; whether there is one now.
    Name(LegId, bool),
    /// A prompt was played to a leg to its end; carries the prompt's token.
    Played(LegId, u64),
    /// The recording of a session ended: on request, or by itself, for example because the disk is full.
    Recorded {
        /// The session.
        session: ConferenceSessionId,
        /// The length of its file now.
        bytes: u64,
        /// Why it ended by itself.
        error: Option<String>,
    },
    /// A phone rings for a call of ours; until then it may still be busy.
    Ringing(DialId),
    /// A party sends neither RTP nor RTCP, or sends again.
    Silent(LegId, bool),
    /// The search for the node of the room that a caller keyed has ended.
    Sought(LegId, Sought),
    /// A party began or stopped to talk.
    Talking(LegId, bool),
    /// The time of [`Rooms::next_timeout`](crate::conference::Rooms::next_timeout) has come.
    Timeout,
}

/// Why a call of ours was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialEnd {
    /// The party is in another call.
    Busy,
    /// The party declined.
    Declined,
    /// It rang for too long.
    NoAnswer,
    /// The organisation's credit is used up; nothing was sent.
    NoCredit,
    /// No trunk takes the number, or no rate covers it.
    NoRoute,
    /// Another final status.
    Status(u16),
    /// No phone of the extension is registered; nothing was sent.
    Unregistered,
}

/// An action to carry out, or a change to publish.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Cancel the call; if it is answered meanwhile, hang it up.
    CancelDial(DialId),
    /// Dial a target, then feed [`Input::Arrived`] or [`Input::DialFailed`].
    Dial(Dial),
    /// A party that a client had dialled did not join.
    DialFailed(RoomDialFailed),
    /// Probe a member that is silent: its phone may have called again because it lost this call.
    Doubt(LegId),
    /// End a leg. The rooms have forgotten it; no further output names it.
    HangUp(LegId, HangupCause),
    /// Change how loud a leg is for the others. A leg that joins a mix has no gain.
    Gain(LegId, MemberGain),
    /// Change what the member hears.
    Hear(LegId, Hears),
    /// Move a leg into a mix, out of its present one.
    Join {
        /// The leg.
        leg: LegId,
        /// The mix.
        mix: MixId,
        /// The organisation whose prompts and music it hears.
        organisation: OrganisationId,
        /// Whether the leg is muted.
        muted: bool,
        /// The audio that it hears.
        hears: Hears,
    },
    /// Put a leg on the left channel of a recording with two, or on the right. A leg that joins a mix is on the right.
    Left(LegId, bool),
    /// Mute or unmute a leg.
    Mute(LegId, bool),
    /// Something changed in a live room.
    Event(RoomEvent),
    /// Look up, record, play or forget a party's spoken name.
    Name(NameOrder),
    /// Send a note to phones.
    Note(RoomNote),
    /// Wrong PINs reached a limit.
    PinGuessing(PinGuessing),
    /// Play prompts to one leg instead of the present ones, then feed [`Input::Played`] with the token.
    Play(LegId, Vec<Prompt>, u64),
    /// Play prompts to every leg in a mix.
    PlayAll(MixId, OrganisationId, Vec<Prompt>),
    /// Play a sound to every leg in a mix, or to one, in place of an earlier one and beside the prompts.
    PlaySound {
        /// The mix.
        mix: MixId,
        /// The only leg that hears it.
        leg: Option<LegId>,
        /// The organisation of the sound.
        organisation: OrganisationId,
        /// The sound.
        sound: SoundName,
    },
    /// Record a mix; append to the session's file.
    Record(MixId, ConferenceSessionId, OrganisationId),
    /// The same with two channels: legs on the left and legs on the right.
    RecordChannels(MixId, ConferenceSessionId, OrganisationId),
    /// A recording of a room failed.
    RecordingFailed(RecordingFailed),
    /// Find the node of the room that a caller has keyed, then feed [`Input::Sought`].
    Seek(LegId, RoomId),
    /// Stop the prompts that play to a leg.
    StopPlaying(LegId),
    /// Stop recording a mix, then feed [`Input::Recorded`].
    StopRecording(MixId),
    /// End the sound that plays in a mix, or to one leg.
    StopSound(MixId, Option<LegId>),
    /// Make a leg audible to only one other leg of the mix; `None` makes it audible to all, as when it joins a mix.
    Whisper(LegId, Option<LegId>),
}

/// An order about a party's spoken name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameOrder {
    /// Look up the spoken name of an extension, and keep it for the leg; then feed [`Input::Name`].
    Find {
        /// The leg.
        leg: LegId,
        /// The organisation of the extension.
        organisation: OrganisationId,
        /// The extension.
        extension: ExtensionId,
    },
    /// Forget the name of a leg.
    Forget(LegId),
    /// Play the name of a leg and then the words to every leg in a mix.
    Play {
        /// The mix.
        mix: MixId,
        /// The leg.
        leg: LegId,
        /// The organisation of the room.
        organisation: OrganisationId,
        /// The words after the name.
        words: Prompt,
    },
    /// Record a mix, which has only this leg, until [`Output::StopRecording`], for five seconds at most. Keep the
    /// recording as the name of the leg and of its extension, then feed [`Input::Name`].
    Record {
        /// The mix.
        mix: MixId,
        /// The leg.
        leg: LegId,
        /// The organisation of the room.
        organisation: OrganisationId,
        /// The extension; without one the name is kept for this leg alone.
        extension: Option<ExtensionId>,
    },
}

/// A call to place for a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dial {
    /// Identifies the call in later inputs and outputs.
    pub id: DialId,
    /// The id of the call to place.
    pub call: CallId,
    /// The organisation that calls.
    pub organisation: OrganisationId,
    /// The room that the target will be seated in.
    pub room: RoomId,
    /// Extension or outside number.
    pub kind: DialKind,
    /// An extension's number, or E.164.
    pub target: String,
    /// The role that the target will have.
    pub role: Role,
    /// The room's name, for an extension's display.
    pub caller_name: String,
    /// The room's number.
    pub caller_number: String,
    /// Whether the call follows the forwarding of the extension.
    pub follows: bool,
}

/// A note of a room to phones in it.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomNote {
    /// The organisation of the room.
    pub organisation: OrganisationId,
    /// The room.
    pub room: RoomName,
    /// The session of the room.
    pub session: ConferenceSessionId,
    /// The phones to notify.
    pub to: Vec<RoomPhone>,
    /// The note without its `id`; with the `id` it is shorter than 4 KB.
    pub payload: Map<String, Value>,
}

/// The phone of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomPhone {
    /// The member's id.
    pub member: u32,
    /// The member's name, else the number.
    pub name: String,
    /// The call.
    pub call: CallId,
    /// The call's leg.
    pub leg: LegId,
}

/// Limits of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomsConfig {
    /// Most live rooms.
    pub rooms_max: usize,
    /// Most members of one room, unless the room has a lower limit.
    pub members_max: usize,
    /// Most callers on their way into rooms at the same time.
    pub callers_max: usize,
    /// Most calls that are being placed for rooms at the same time.
    pub dials_max: usize,
}

impl Default for RoomsConfig {
    fn default() -> Self {
        RoomsConfig { rooms_max: 1000, members_max: 1000, callers_max: 2000, dials_max: 2000 }
    }
}
