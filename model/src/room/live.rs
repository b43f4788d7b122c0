//! Live rooms as readers see them, the control actions on them, and the port that executes these.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::access::{Scope, Who};
use crate::call::words;
use crate::ids::{CallId, ConferenceSessionId, ExtensionId, OrganisationId, RoomId, TeamId};
use crate::page::{Page, Window};
use crate::port_future::PortFuture;
use crate::problem::{FieldProblem, Problem};
use crate::prompt::SoundName;
use crate::room::{DialKind, DialRequest, Role, RoomDialled, RoomName};
use crate::time::Timestamp;

/// A live room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = LiveConference))]
pub struct LiveRoom {
    /// The switch's name of the room, used in the paths of the controls.
    #[cfg_attr(
        feature = "openapi",
        schema(value_type = String, example = "svc-room-0f6c8a52-5d6e-4a39-9d8e-0c1a4c2c7a11")
    )]
    pub room: RoomName,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// The stored room; absent for merged calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_id: Option<RoomId>,
    /// The display name; may be empty for merged calls.
    pub room_name: String,
    /// The session.
    pub session_id: ConferenceSessionId,
    /// When the first member joined.
    pub started_at: Timestamp,
    /// Whether only moderators may join.
    pub locked: bool,
    /// Whether the mix is being recorded.
    pub recording: bool,
    /// Whether all members except moderators are muted.
    pub all_muted: bool,
    /// Whole seconds since `started_at`.
    pub run_seconds: u64,
    /// The sound that a program plays into the room; absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub playing: Option<PlayingSound>,
    /// Grows by at least one with every change of the room and is part of its events: the larger revision is newer.
    pub revision: u64,
    /// The members, in the order of their arrival.
    pub members: Vec<LiveMember>,
}

/// A sound that is played into a live room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ConferencePlaying))]
pub struct PlayingSound {
    /// The name of the sound.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "own-welcome"))]
    pub prompt: SoundName,
    /// The only member that hears it; absent when all do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<u32>,
}

/// A member of a live room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = LiveConferenceMember))]
pub struct LiveMember {
    /// The switch's id of the member, unique within a session; used by the member controls.
    pub id: u32,
    /// The member's call.
    pub call_uuid: CallId,
    /// Their number; empty when withheld.
    pub number: String,
    /// Their name; may be empty.
    pub name: String,
    /// The member's role.
    #[cfg_attr(feature = "openapi", schema(inline))]
    pub role: Role,
    /// Whether the member is muted.
    pub muted: bool,
    /// Whether the member cannot end the mute with `*2`.
    pub mute_locked: bool,
    /// Whether the member hears nothing of the room.
    pub deaf: bool,
    /// Whether the member was put on hold: it hears music and is not heard.
    pub on_hold: bool,
    /// Whether the member waits for a moderator: it hears music and is not heard.
    pub waiting: bool,
    /// The member's loudness for the others.
    #[serde(flatten)]
    pub gain: MemberGain,
    /// The only member that hears this one; absent when all do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whisper_to: Option<u32>,
    /// Whether the member is speaking.
    pub talking: bool,
    /// When they came in.
    pub joined_at: Timestamp,
    /// The member's extension; absent for an outside caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension_id: Option<ExtensionId>,
    /// The team of that extension, by which supervisors and agents see the room.
    #[serde(skip)]
    pub team_id: Option<TeamId>,
}

/// How loud a member is for the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemberGain {
    /// The fixed gain in decibels.
    #[cfg_attr(feature = "openapi", schema(minimum = -24, maximum = 24))]
    pub gain_db: i8,
    /// Whether the member's speech is brought to a common loudness, before the fixed gain.
    pub automatic_gain: bool,
}

impl MemberGain {
    /// The largest fixed gain in decibels, up and down.
    pub const DECIBELS_MAX: i8 = 24;
}

/// A change of a member's loudness; `None` keeps the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GainChange {
    /// The fixed gain in decibels, bounded by [`MemberGain::DECIBELS_MAX`].
    pub gain_db: Option<i8>,
    /// Whether the gain is automatic.
    pub automatic_gain: Option<bool>,
}

/// The viewer of live rooms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomViewer {
    /// The viewer's scope.
    pub scope: Scope,
    /// The viewer's own extensions: a room that contains one of them is visible, whatever the team.
    pub extensions: Vec<ExtensionId>,
}

impl RoomViewer {
    /// Whether the viewer may see the room. A user who sees one team sees the rooms that contain a member of
    /// the team or the user's own phone.
    pub fn sees(&self, room: &LiveRoom) -> bool {
        self.scope.covers(room.organisation_id, None)
            || self.scope.reaches(room.organisation_id)
                && room.members.iter().any(|member| {
                    member.team_id.is_some() && self.scope.covers(room.organisation_id, member.team_id)
                        || member.extension_id.is_some_and(|own| self.extensions.contains(&own))
                })
    }
}

words! {
    /// How far a default member is on the way into the room.
    InviteState {
        /// The room ended before.
        Cancelled = "cancelled",
        /// The member declined.
        Declined = "declined",
        /// They cannot be rung.
        Failed = "failed",
        /// They came.
        Joined = "joined",
        /// They did not answer.
        NoAnswer = "no_answer",
        /// They have not been rung yet.
        Pending = "pending",
        /// Their phone rings.
        Ringing = "ringing",
        /// They are busy or not registered, and will be rung again.
        Waiting = "waiting",
    }
}

/// Why a default member did not join at the last ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InviteReason {
    /// They are in another call.
    Busy,
    /// The member declined.
    Declined,
    /// They did not answer.
    NoAnswer,
    /// Not known yet, or the member joined.
    #[default]
    None,
    /// The room ended.
    RoomEnded,
    /// Their phone's final answer.
    Sip(u16),
    /// No phone of theirs is registered.
    Unregistered,
}

impl fmt::Display for InviteReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InviteReason::Busy => "busy",
            InviteReason::Declined => "declined",
            InviteReason::NoAnswer => "no_answer",
            InviteReason::None => "",
            InviteReason::RoomEnded => "room_ended",
            InviteReason::Sip(code) => return write!(f, "sip_{code}"),
            InviteReason::Unregistered => "unregistered",
        })
    }
}

/// The text is not a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a reason such as busy or sip_480")]
pub struct InviteReasonError;

impl FromStr for InviteReason {
    type Err = InviteReasonError;

    fn from_str(text: &str) -> Result<Self, InviteReasonError> {
        Ok(match text {
            "busy" => InviteReason::Busy,
            "declined" => InviteReason::Declined,
            "no_answer" => InviteReason::NoAnswer,
            "" => InviteReason::None,
            "room_ended" => InviteReason::RoomEnded,
            "unregistered" => InviteReason::Unregistered,
            _ => {
                let code = text.strip_prefix("sip_").and_then(|code| code.parse().ok());
                InviteReason::Sip(code.ok_or(InviteReasonError)?)
            }
        })
    }
}

impl Serialize for InviteReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A default member of a live room, with the state of its invitation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RoomInvite))]
pub struct Invite {
    /// The extension that is rung.
    pub extension_id: ExtensionId,
    /// Its number.
    pub number: String,
    /// Its name; may be empty.
    pub name: String,
    /// The state of the invitation.
    #[cfg_attr(feature = "openapi", schema(inline))]
    pub state: InviteState,
    /// Why the last ring failed: `busy`, `declined`, `no_answer`, `room_ended`, `unregistered` or `sip_<code>`; empty
    /// when there is no reason.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub last_reason: InviteReason,
}

/// A control action on a live room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Lets the member hear nothing of the room, or hear it again.
    Deaf(u32, bool),
    /// Hangs up all members and closes the room.
    End,
    /// Changes how loud the member is for the others.
    Gain(u32, GainChange),
    /// Puts the member on hold with music, or ends that.
    Hold(u32, bool),
    /// Hangs a member up.
    Kick(u32),
    /// Lets only moderators join.
    Lock,
    /// Mutes the member.
    Mute(u32),
    /// Mutes everyone except moderators, or ends that.
    MuteAll,
    /// Mutes the member, who cannot end that with a key.
    MuteLocked(u32),
    /// Plays a sound into the room.
    Play {
        /// The sound and its listeners.
        sound: PlayingSound,
        /// Its duration.
        duration_ms: u64,
    },
    /// Starts or stops the recording.
    Record(bool),
    /// Chooses the channels of the recording: 1 with the whole mix, 2 with the moderators on the left.
    RecordChannels(u16),
    /// Ends the sound that is played into the room.
    StopSound,
    /// Lets everyone join.
    Unlock,
    /// Unmutes the member.
    Unmute(u32),
    /// Lets only one other member hear the member; `None` lets all hear it.
    Whisper(u32, Option<u32>),
}

/// The result of a control action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlDone {
    /// Whether everyone except moderators is now muted.
    AllMuted(bool),
    /// The requested state; it may have existed already.
    Done,
}

/// The reasons to refuse a control action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlRefused {
    /// The node has reached its limit of calls.
    #[error("the node is overloaded")]
    Busy,
    /// The recordings of the session have this number of channels.
    #[error("the recordings of a session are in one file, and its file has {0} channels: leave channels out")]
    Channels(u16),
    /// The room has reached its limit of members.
    #[error("the room is full: it holds max_members already")]
    Full,
    /// A participant may not join it.
    #[error("the room is locked: unlock it, or dial a moderator")]
    Locked,
    /// The organisation's credit is used up.
    #[error("no credit")]
    NoCredit,
    /// The organisation has no such extension.
    #[error("the organisation has no extension {0}")]
    NoExtension(String),
    /// There is no such member.
    #[error("there is no such member in the room")]
    NoMember,
    /// The member to play a sound to does not exist.
    #[error("must be a member of the room")]
    NoHearer,
    /// The member to whisper to does not exist.
    #[error("must be another member of the room")]
    NoListener,
    /// The target is no telephone number.
    #[error("is no telephone number: write it in E.164, with its +, such as +442071230000")]
    NoNumber,
    /// No trunk serves the number, or no rate covers it.
    #[error("{0}")]
    NoRoute(String),
    /// The stored room was deleted.
    #[error("there is no such room")]
    NoRoom,
    /// The room has no members.
    #[error("the room is not live")]
    NotLive,
    /// Another sound is playing.
    #[error("{0} is being played: stop it first, or wait for its end")]
    Playing(SoundName),
    /// The extension is a member already.
    #[error("extension {0} is in the room already")]
    Seated(String),
    /// No phone of the extension is registered.
    #[error("no phone of extension {0} is registered")]
    Unregistered(String),
}

impl ControlRefused {
    /// Returns the problem of the dialled target; `None` for a refusal with another cause.
    pub fn wrong_target(&self) -> Option<FieldProblem> {
        use ControlRefused::{NoExtension, NoNumber, NoRoute};
        let is_of_target = matches!(self, NoExtension(_) | NoNumber | NoRoute(_));
        is_of_target.then(|| FieldProblem { field: "target".to_owned(), message: self.to_string() })
    }
}

impl From<ControlRefused> for Problem {
    fn from(refused: ControlRefused) -> Self {
        use ControlRefused::*;
        match refused {
            Channels(_) | Full | Locked | NoCredit | NoRoute(_) | Playing(_) | Seated(_)
            | Unregistered(_) => Problem::Conflict(refused.to_string()),
            Busy => Problem::Busy { retry_after_s: BUSY_RETRY_S },
            NoExtension(_) | NoNumber => invalid("target", &refused),
            NoHearer => invalid("member", &refused),
            NoListener => invalid("to", &refused),
            NoMember | NoRoom | NotLive => Problem::NotFound(refused.to_string()),
        }
    }
}

fn invalid(field: &str, refused: &ControlRefused) -> Problem {
    Problem::InvalidRequest(vec![FieldProblem { field: field.to_owned(), message: refused.to_string() }])
}

/// The requester of a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requester {
    /// The user or the key; `None` when a phone requests it.
    pub who: Option<Who>,
    /// The extensions of the user.
    pub extensions: Vec<ExtensionId>,
}

/// The reasons not to merge two calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeRefused {
    /// An offer to one of the call's parties is not answered yet.
    #[error("call {0} is being put on hold, resumed or changed: try again")]
    Changing(CallId),
    /// The calls belong to two organisations.
    #[error("the calls are of two organisations")]
    Foreign,
    /// The node has reached its limit of rooms or members.
    #[error("no capacity is left for a conference")]
    Full,
    /// The call is not live.
    #[error("call {0} is over, or there is no such call")]
    Gone(CallId),
    /// One or both parties of the call are in a room.
    #[error("call {0} is in a room already")]
    InRoom(CallId),
    /// The call was not answered.
    #[error("call {0} is not answered yet")]
    NotAnswered(CallId),
    /// Both ids are the same.
    #[error("a call cannot be merged with itself")]
    Same,
    /// Both parties of the call are in the other call too.
    #[error("the same two extensions are in both calls")]
    SamePeople,
}

impl From<MergeRefused> for Problem {
    fn from(refused: MergeRefused) -> Self {
        match refused {
            MergeRefused::Full => Problem::Busy { retry_after_s: BUSY_RETRY_S },
            MergeRefused::Gone(_) => Problem::NotFound(refused.to_string()),
            MergeRefused::Changing(_)
            | MergeRefused::Foreign
            | MergeRefused::InRoom(_)
            | MergeRefused::NotAnswered(_)
            | MergeRefused::Same
            | MergeRefused::SamePeople => Problem::Conflict(refused.to_string()),
        }
    }
}

/// The live rooms.
pub trait LiveRooms: Send + Sync {
    /// A page of the live rooms that the viewer sees, the latest opened first; `organisation` selects one of
    /// those in scope.
    fn list(
        &self,
        viewer: RoomViewer,
        organisation: Option<OrganisationId>,
        window: Window,
    ) -> PortFuture<'_, Page<LiveRoom>>;

    /// Returns one live room, of any organisation; `None` when it has no members.
    fn find(&self, room: RoomName) -> PortFuture<'_, Option<LiveRoom>>;

    /// The live room that contains a call; `call` is the id of the call or of any of its legs.
    fn by_call(&self, call: Uuid) -> PortFuture<'_, Option<LiveRoom>>;

    /// Executes a control action.
    ///
    /// # Errors
    /// [`ControlRefused`] as a [`Problem`].
    fn control(&self, room: RoomName, control: Control) -> PortFuture<'_, ControlDone>;

    /// Rings a party, and adds it to the room when it answers; returns the target and its call.
    ///
    /// # Errors
    /// [`ControlRefused`] as a [`Problem`].
    fn dial(&self, room: RoomId, request: DialRequest) -> PortFuture<'_, RoomDialled>;

    /// Returns the problems of the target of a party to dial, for a request that is already refused; nothing rings.
    fn wrong_target(
        &self,
        organisation: OrganisationId,
        kind: DialKind,
        target: String,
    ) -> PortFuture<'_, Vec<FieldProblem>>;

    /// Puts the parties of two calls of one organisation into a room named after `call`.
    ///
    /// # Errors
    /// [`MergeRefused`] as a [`Problem`].
    fn merge(&self, call: CallId, with: CallId, by: Requester) -> PortFuture<'_, LiveRoom>;

    /// Returns the number of members of each of `rooms`, in order.
    fn live_members<'a>(&'a self, rooms: &'a [RoomId]) -> PortFuture<'a, Vec<u32>>;
}

/// A node at its limit has capacity again after calls end.
const BUSY_RETRY_S: u64 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_round_trip() {
        let reasons = [
            InviteReason::Busy,
            InviteReason::Declined,
            InviteReason::NoAnswer,
            InviteReason::None,
            InviteReason::RoomEnded,
            InviteReason::Sip(480),
            InviteReason::Unregistered,
        ];
        for reason in reasons {
            assert_eq!(reason.to_string().parse(), Ok(reason));
        }
        assert_eq!("sip_".parse::<InviteReason>(), Err(InviteReasonError));
    }

    #[test]
    fn a_team_sees_rooms_that_its_members_sit_in() {
        let (acme, bolt) = (OrganisationId(Uuid::from_u128(1)), OrganisationId(Uuid::from_u128(2)));
        let team = |number| Some(TeamId(Uuid::from_u128(number)));
        let own = ExtensionId(Uuid::from_u128(9));
        let member = |team_id, extension_id| LiveMember {
            id: 1,
            call_uuid: CallId(Uuid::nil()),
            number: String::new(),
            name: String::new(),
            role: Role::Participant,
            muted: false,
            mute_locked: false,
            deaf: false,
            on_hold: false,
            waiting: false,
            gain: MemberGain::default(),
            whisper_to: None,
            talking: false,
            joined_at: Timestamp::from_micros(0),
            extension_id,
            team_id,
        };
        let room = |members| LiveRoom {
            room: RoomName::Stored(RoomId(Uuid::nil())),
            organisation_id: acme,
            room_id: None,
            room_name: String::new(),
            session_id: ConferenceSessionId(Uuid::nil()),
            started_at: Timestamp::from_micros(0),
            locked: false,
            recording: false,
            all_muted: false,
            run_seconds: 0,
            playing: None,
            revision: 1,
            members,
        };
        let viewer = |scope| RoomViewer { scope, extensions: vec![own] };
        let of = |organisation, team| viewer(Scope::Team { organisation, team });
        let cases = [
            (viewer(Scope::Everything), room(vec![]), true),
            (viewer(Scope::Organisation(acme)), room(vec![]), true),
            (viewer(Scope::Organisation(bolt)), room(vec![member(team(1), Some(own))]), false),
            (of(acme, team(1)), room(vec![member(team(1), None)]), true),
            (of(acme, team(1)), room(vec![member(team(2), None)]), false),
            (of(acme, team(1)), room(vec![member(None, Some(own))]), true),
            (of(acme, None), room(vec![member(None, None)]), false),
            (of(acme, None), room(vec![member(None, Some(own))]), true),
            (of(bolt, team(1)), room(vec![member(team(1), Some(own))]), false),
        ];
        for (viewer, room, expected) in cases {
            assert_eq!(viewer.sees(&room), expected, "{viewer:?} {room:?}");
        }
    }
}
