//! Changes of live rooms, and the events for them.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::access::Who;
use crate::call::{HangupCause, words};
use crate::event::{Event, EventKind};
use crate::ids::{
    ApiKeyId, CallId, ConferenceSessionId, ExtensionId, LegId, OrganisationId, RoomId, TeamId, UserId,
};
use crate::room::{Invite, MemberGain, PlayingSound, Role, RoomName};
use crate::time::Timestamp;

words! {
    /// The change that `conference.updated` reports.
    RoomAction {
        /// Everyone except the moderators was muted, or is no longer.
        AllMuted = "all_muted",
        /// A member hears nothing of the room.
        DeafMember = "deaf-member",
        /// The room has ended.
        Ended = "ended",
        /// The loudness of a member for the others changed.
        GainMember = "gain-member",
        /// A member was put on hold.
        HoldMember = "hold-member",
        /// A member joined.
        Joined = "joined",
        /// A member left.
        Left = "left",
        /// A muted member cannot end the mute with a key.
        LockMuteMember = "lock-mute-member",
        /// Only moderators can join.
        Locked = "locked",
        /// A member was muted.
        MuteMember = "mute-member",
        /// A sound that was played into the room has ended.
        Played = "played",
        /// A sound is played into the room.
        Playing = "playing",
        /// The recording started or stopped.
        Recording = "recording",
        /// A member started talking.
        StartTalking = "start-talking",
        /// A member stopped talking.
        StopTalking = "stop-talking",
        /// A member hears the room again.
        UndeafMember = "undeaf-member",
        /// A member is not on hold any more.
        UnholdMember = "unhold-member",
        /// A member can end its mute with a key again.
        UnlockMuteMember = "unlock-mute-member",
        /// All callers can join again.
        Unlocked = "unlocked",
        /// A member was unmuted.
        UnmuteMember = "unmute-member",
        /// All members hear a member again.
        UnwhisperMember = "unwhisper-member",
        /// A member is heard by one other only.
        WhisperMember = "whisper-member",
    }
}

/// A change of a live room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomEvent {
    /// The room's organisation.
    pub organisation_id: OrganisationId,
    /// The switch's name for it.
    pub room: RoomName,
    /// The stored room; `None` for two merged calls.
    pub room_id: Option<RoomId>,
    /// The session.
    pub session: ConferenceSessionId,
    /// When it changed.
    pub at: Timestamp,
    /// The `revision` of the live room after this change: it grows with every change of the readable state.
    pub revision: u64,
    /// What changed.
    pub what: RoomChange,
}

/// The changes of a live room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomChange {
    /// Everyone except the moderators was muted, or unmuted.
    AllMuted(bool),
    /// The room has ended; the last change of a session except [`RoomChange::Recorded`].
    Ended,
    /// The ringing of a default member began or ended; its new state.
    Invited(Invite),
    /// A member joined.
    Joined(Person),
    /// A member left.
    Left {
        /// Their member id.
        member: u32,
        /// The reason: `MEDIA_TIMEOUT` if the phone stopped sending.
        cause: HangupCause,
        /// How long the member talked, in milliseconds.
        talked_ms: u64,
    },
    /// The room was locked or unlocked.
    Locked(bool),
    /// A change of what a member hears, or of how it is heard.
    Member {
        /// Their member id.
        member: u32,
        /// What changed.
        change: MemberChange,
    },
    /// Two calls were merged into this room.
    Merged {
        /// The calls; the room is named after the first.
        calls: [CallId; 2],
        /// The requester.
        by: MergedBy,
    },
    /// A member was muted or unmuted.
    Muted {
        /// Their member id.
        member: u32,
        /// Whether the member is muted now.
        muted: bool,
    },
    /// The room was opened; the first change of a session, before any member joins.
    Opened {
        /// The room's display name.
        room_name: String,
    },
    /// A sound that was played into the room has ended.
    Played {
        /// The sound and its listeners.
        sound: PlayingSound,
        /// Whether it ended early: by an order, or because its listener left or the room ended.
        stopped: bool,
    },
    /// A sound is played into the room.
    Playing(PlayingSound),
    /// The session's recording is complete; may follow the end of the session.
    Recorded {
        /// Its file's length.
        bytes: u64,
        /// The reason for an early end.
        error: Option<String>,
    },
    /// The recording started or ended.
    Recording(bool),
    /// The number of channels of the session's recordings; precedes the first start.
    RecordingChannels(u16),
    /// A member started or stopped talking.
    Talking {
        /// Their member id.
        member: u32,
        /// Whether the member talks now.
        talking: bool,
    },
}

/// A change of what a member hears, or of how it is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberChange {
    /// Whether it hears nothing of the room.
    Deaf(bool),
    /// Its loudness for the others.
    Gain(MemberGain),
    /// Whether it is on hold.
    Hold(bool),
    /// Whether it cannot end its mute with a key.
    MuteLock(bool),
    /// The only member that hears it.
    Whisper(Option<u32>),
}

impl MemberChange {
    fn action(self) -> RoomAction {
        match self {
            MemberChange::Deaf(true) => RoomAction::DeafMember,
            MemberChange::Deaf(false) => RoomAction::UndeafMember,
            MemberChange::Gain(_) => RoomAction::GainMember,
            MemberChange::Hold(true) => RoomAction::HoldMember,
            MemberChange::Hold(false) => RoomAction::UnholdMember,
            MemberChange::MuteLock(true) => RoomAction::LockMuteMember,
            MemberChange::MuteLock(false) => RoomAction::UnlockMuteMember,
            MemberChange::Whisper(Some(_)) => RoomAction::WhisperMember,
            MemberChange::Whisper(None) => RoomAction::UnwhisperMember,
        }
    }
}

/// The requester of a merge, as `call.conferenced` names it: a user or a key, and the user's extension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MergedBy {
    /// The user's extension: the one that is in one of the calls, or the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension_id: Option<ExtensionId>,
    /// The user who logged in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// The integration key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_id: Option<ApiKeyId>,
}

impl PlayingSound {
    fn details<T>(&self, mut put: impl FnMut(&str, Value) -> T) {
        put("prompt", self.prompt.to_string().into());
        if let Some(member) = self.member {
            put("member", member.into());
        }
    }
}

/// A person who joined a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The member id, unique within this session.
    pub member: u32,
    /// Their name; may be empty.
    pub name: String,
    /// Their number; empty when withheld.
    pub number: String,
    /// The member's role.
    pub role: Role,
    /// The extension, if it was authenticated by the directory or called by the switch.
    pub extension_id: Option<ExtensionId>,
    /// The team of that extension, whose supervisors and agents see the room.
    pub team_id: Option<TeamId>,
    /// The member's call.
    pub call_uuid: CallId,
    /// The member's leg of that call.
    pub leg: LegId,
    /// When they came in.
    pub joined_at: Timestamp,
}

impl MergedBy {
    /// The requester, with the extension that stands for the user.
    pub fn new(who: Option<Who>, extension_id: Option<ExtensionId>) -> Self {
        let (user_id, api_key_id) = match who {
            Some(Who::User(user)) => (Some(user), None),
            Some(Who::Key(key)) => (None, Some(key)),
            None => (None, None),
        };
        Self { extension_id, user_id, api_key_id }
    }
}

impl RoomEvent {
    /// Whether the change is about talking members: such changes are frequent, and each replaces the previous
    /// one.
    pub fn is_talk(&self) -> bool {
        matches!(self.what, RoomChange::Talking { .. })
    }

    /// The event for the change, with its `seq` in the session; `None` if there is no event for such a
    /// change.
    pub fn event(&self, seq: u64) -> Option<Event> {
        if let RoomChange::Merged { calls, by } = &self.what {
            return Some(self.merged(*calls, *by));
        }
        let action = self.what.action()?;
        let mut data = self.head(action, seq);
        self.what.details(&mut data);
        Some(Event::new(EventKind::ConferenceUpdated, self.organisation_id, None, self.at, data))
    }

    /// The event for a member who started or stopped talking, with all members who talk at this revision.
    pub fn talk_event(&self, seq: u64, member: u32, talking: bool, now: &[u32]) -> Event {
        let change = RoomChange::Talking { member, talking };
        let mut data =
            self.head(if talking { RoomAction::StartTalking } else { RoomAction::StopTalking }, seq);
        change.details(&mut data);
        data.insert("talking".to_owned(), now.into());
        Event::new(EventKind::ConferenceUpdated, self.organisation_id, None, self.at, data)
    }

    /// The common fields of every `conference.updated`.
    fn head(&self, action: RoomAction, seq: u64) -> Map<String, Value> {
        let mut data = Map::new();
        let mut put = |name: &str, value: Value| data.insert(name.to_owned(), value);
        put("room", self.room.to_string().into());
        if let Some(room) = self.room_id {
            put("room_id", room.to_string().into());
        }
        put("session_id", self.session.to_string().into());
        put("action", action.as_str().into());
        put("revision", self.revision.into());
        put("seq", seq.into());
        data
    }

    fn merged(&self, calls: [CallId; 2], by: MergedBy) -> Event {
        #[derive(Serialize)]
        struct Conferenced {
            room: String,
            call_uuids: [CallId; 2],
            session_id: ConferenceSessionId,
            by: MergedBy,
        }
        let data =
            Conferenced { room: self.room.to_string(), call_uuids: calls, session_id: self.session, by };
        Event::of(EventKind::CallConferenced, self.organisation_id, None, self.at, &data)
    }
}

impl RoomChange {
    /// The action of `conference.updated`; `None` for changes without that event.
    pub fn action(&self) -> Option<RoomAction> {
        Some(match self {
            RoomChange::AllMuted(_) => RoomAction::AllMuted,
            RoomChange::Ended => RoomAction::Ended,
            RoomChange::Joined(_) => RoomAction::Joined,
            RoomChange::Left { .. } => RoomAction::Left,
            RoomChange::Locked(true) => RoomAction::Locked,
            RoomChange::Locked(false) => RoomAction::Unlocked,
            RoomChange::Member { change, .. } => change.action(),
            RoomChange::Muted { muted: true, .. } => RoomAction::MuteMember,
            RoomChange::Muted { muted: false, .. } => RoomAction::UnmuteMember,
            RoomChange::Played { .. } => RoomAction::Played,
            RoomChange::Playing(_) => RoomAction::Playing,
            RoomChange::Recording(_) => RoomAction::Recording,
            RoomChange::Talking { talking: true, .. } => RoomAction::StartTalking,
            RoomChange::Talking { talking: false, .. } => RoomAction::StopTalking,
            // These do not change the readable state of the live room; a merge has a separate event, and a
            // join follows the opening of a room.
            RoomChange::Invited(_)
            | RoomChange::Merged { .. }
            | RoomChange::Opened { .. }
            | RoomChange::Recorded { .. }
            | RoomChange::RecordingChannels(_) => return None,
        })
    }

    /// Whether there is an event for the change.
    pub fn is_event(&self) -> bool {
        self.action().is_some() || matches!(self, RoomChange::Merged { .. })
    }

    /// The fields of the event in addition to the action.
    fn details(&self, data: &mut Map<String, Value>) {
        let mut put = |name: &str, value: Value| data.insert(name.to_owned(), value);
        match self {
            RoomChange::AllMuted(on) => drop(put("all_muted", (*on).into())),
            RoomChange::Joined(person) => {
                put("member", person.member.into());
                put("name", person.name.as_str().into());
                put("role", person.role.as_str().into());
                put("call_uuid", person.call_uuid.to_string().into());
            }
            RoomChange::Left { member, cause, .. } => {
                put("member", (*member).into());
                put("cause", cause.as_str().into());
            }
            RoomChange::Muted { member, .. } | RoomChange::Talking { member, .. } => {
                drop(put("member", (*member).into()))
            }
            RoomChange::Member { member, change } => {
                put("member", (*member).into());
                match change {
                    MemberChange::Gain(gain) => {
                        put("gain_db", gain.gain_db.into());
                        put("automatic_gain", gain.automatic_gain.into());
                    }
                    MemberChange::Whisper(Some(to)) => drop(put("whisper_to", (*to).into())),
                    MemberChange::Deaf(_)
                    | MemberChange::Hold(_)
                    | MemberChange::MuteLock(_)
                    | MemberChange::Whisper(None) => {}
                }
            }
            RoomChange::Played { sound, stopped } => {
                put("stopped", (*stopped).into());
                sound.details(put);
            }
            RoomChange::Playing(sound) => sound.details(put),
            RoomChange::Recording(on) => drop(put("recording", (*on).into())),
            RoomChange::Ended
            | RoomChange::Invited(_)
            | RoomChange::Locked(_)
            | RoomChange::Merged { .. }
            | RoomChange::Opened { .. }
            | RoomChange::Recorded { .. }
            | RoomChange::RecordingChannels(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::prompt::{Prompt, SoundName};

    const ROOM: &str = "svc-room-00000000-0000-0000-0000-000000000009";

    fn event(what: RoomChange) -> RoomEvent {
        RoomEvent {
            organisation_id: OrganisationId(Uuid::from_u128(1)),
            room: ROOM.parse().unwrap(),
            room_id: Some(RoomId(Uuid::from_u128(9))),
            session: ConferenceSessionId(Uuid::from_u128(2)),
            at: Timestamp::from_micros(1_767_225_600_000_000),
            revision: 7,
            what,
        }
    }

    fn ada() -> Person {
        Person {
            member: 3,
            name: "Ada".to_owned(),
            number: "101".to_owned(),
            role: Role::Moderator,
            extension_id: None,
            team_id: None,
            call_uuid: CallId(Uuid::from_u128(4)),
            leg: LegId(Uuid::from_u128(5)),
            joined_at: Timestamp::from_micros(1_767_225_600_000_000),
        }
    }

    #[test]
    fn every_change_has_the_action_and_the_fields_of_the_document() {
        let of_three = |change| RoomChange::Member { member: 3, change };
        let cases = [
            (RoomChange::AllMuted(true), "all_muted", json!({"all_muted": true})),
            (RoomChange::Ended, "ended", json!({})),
            (
                RoomChange::Joined(ada()),
                "joined",
                json!({"member": 3, "name": "Ada", "role": "moderator",
                    "call_uuid": "00000000-0000-0000-0000-000000000004"}),
            ),
            (
                RoomChange::Left { member: 3, cause: HangupCause::MediaTimeout, talked_ms: 1_500 },
                "left",
                json!({"member": 3, "cause": "MEDIA_TIMEOUT"}),
            ),
            (RoomChange::Locked(true), "locked", json!({})),
            (RoomChange::Locked(false), "unlocked", json!({})),
            (RoomChange::Muted { member: 3, muted: true }, "mute-member", json!({"member": 3})),
            (RoomChange::Muted { member: 3, muted: false }, "unmute-member", json!({"member": 3})),
            (of_three(MemberChange::Deaf(true)), "deaf-member", json!({"member": 3})),
            (of_three(MemberChange::Deaf(false)), "undeaf-member", json!({"member": 3})),
            (of_three(MemberChange::Hold(true)), "hold-member", json!({"member": 3})),
            (of_three(MemberChange::Hold(false)), "unhold-member", json!({"member": 3})),
            (of_three(MemberChange::MuteLock(true)), "lock-mute-member", json!({"member": 3})),
            (of_three(MemberChange::MuteLock(false)), "unlock-mute-member", json!({"member": 3})),
            (
                of_three(MemberChange::Gain(MemberGain { gain_db: -6, automatic_gain: true })),
                "gain-member",
                json!({"member": 3, "gain_db": -6, "automatic_gain": true}),
            ),
            (
                of_three(MemberChange::Whisper(Some(2))),
                "whisper-member",
                json!({"member": 3, "whisper_to": 2}),
            ),
            (of_three(MemberChange::Whisper(None)), "unwhisper-member", json!({"member": 3})),
            (
                RoomChange::Playing(PlayingSound { prompt: Prompt::Ended.into(), member: Some(3) }),
                "playing",
                json!({"prompt": "ended", "member": 3}),
            ),
            (
                RoomChange::Played {
                    sound: PlayingSound { prompt: SoundName::from_name("own-news").unwrap(), member: None },
                    stopped: true,
                },
                "played",
                json!({"prompt": "own-news", "stopped": true}),
            ),
            (RoomChange::Recording(true), "recording", json!({"recording": true})),
            (RoomChange::Recording(false), "recording", json!({"recording": false})),
            (RoomChange::Talking { member: 3, talking: true }, "start-talking", json!({"member": 3})),
            (RoomChange::Talking { member: 3, talking: false }, "stop-talking", json!({"member": 3})),
        ];
        for (what, action, details) in cases {
            let event = event(what).event(12).unwrap();
            assert_eq!((event.kind, event.team_id), (EventKind::ConferenceUpdated, None));
            let mut expected = json!({"room": ROOM, "room_id": "00000000-0000-0000-0000-000000000009",
                "session_id": "00000000-0000-0000-0000-000000000002", "action": action, "revision": 7, "seq": 12});
            expected.as_object_mut().unwrap().extend(details.as_object().unwrap().clone());
            assert_eq!(Value::Object(event.data), expected);
        }
        for silent in [
            RoomChange::Opened { room_name: "Board".to_owned() },
            RoomChange::Recorded { bytes: 44, error: None },
        ] {
            assert_eq!(event(silent).event(1), None);
        }
    }

    #[test]
    fn a_talk_event_says_who_talks_now() {
        let event = event(RoomChange::Locked(true)).talk_event(4, 3, true, &[3, 5]);
        assert_eq!(event.data["action"], "start-talking");
        assert_eq!((&event.data["member"], &event.data["talking"]), (&json!(3), &json!([3, 5])));
    }

    #[test]
    fn a_merge_is_an_event_of_its_own() {
        let calls = [CallId(Uuid::from_u128(4)), CallId(Uuid::from_u128(6))];
        let extension = Some(ExtensionId(Uuid::from_u128(8)));
        let room = "svc-conf-00000000-0000-0000-0000-000000000004";
        let id = Uuid::from_u128(8).to_string();
        let cases = [
            (MergedBy::new(None, extension), json!({"extension_id": id})),
            (
                MergedBy::new(Some(Who::User(UserId(Uuid::from_u128(8)))), extension),
                json!({"extension_id": id, "user_id": id}),
            ),
            (MergedBy::new(Some(Who::Key(ApiKeyId(Uuid::from_u128(8)))), None), json!({"api_key_id": id})),
        ];
        for (by, expected_by) in cases {
            let merged = RoomEvent {
                room: room.parse().unwrap(),
                room_id: None,
                ..event(RoomChange::Merged { calls, by })
            };
            let event = merged.event(1).unwrap();
            assert_eq!(event.kind, EventKind::CallConferenced);
            let expected = json!({"room": room,
                "call_uuids": ["00000000-0000-0000-0000-000000000004", "00000000-0000-0000-0000-000000000006"],
                "session_id": "00000000-0000-0000-0000-000000000002", "by": expected_by});
            assert_eq!(Value::Object(event.data), expected);
        }
    }
}
