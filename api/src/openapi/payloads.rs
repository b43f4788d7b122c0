//! The `data` of events, used only for the document: `tests/http/event_payloads.rs` compares real events with it. The
//! payloads of call events are derived from the schemas of calls and records, in `webhooks.rs`.

use sidetone_model::call::{Direction, HangupCause};
use sidetone_model::call_prompt::{PlayResult, PlaySide};
use sidetone_model::guessing::GuessLimit;
use sidetone_model::ids::{
    AgentId, CallId, CallRecordingId, ConferenceSessionId, ContactId, ConversationId, ExtensionId, LegId,
    NoteId, PlayId, RoomId, TeamId, TrunkId,
};
use sidetone_model::media_quality::{LegSide, MediaChange};
use sidetone_model::note::{NoteChannel, NoteLevel, NoteSource};
use sidetone_model::pin_guessing::PinLimit;
use sidetone_model::quality::MediaVerdict;
use sidetone_model::room::event::{MergedBy, RoomAction};
use sidetone_model::room::{DialFailure, DialKind, Role};
use sidetone_model::time::Timestamp;
use utoipa::ToSchema;

/// Two calls were merged into one room.
#[derive(ToSchema)]
struct CallConferencedData {
    /// The switch's name of the room, `svc-conf-<call uuid>`.
    room: String,
    /// The calls; the room is named after the first.
    call_uuids: Vec<CallId>,
    /// The session of the room.
    session_id: ConferenceSessionId,
    /// The requester.
    by: MergedBy,
}

/// A person acknowledged a note.
#[derive(ToSchema)]
struct CallInfoAckedData {
    /// The note.
    id: NoteId,
    /// Its heading.
    title: String,
    /// The leg of the call; for a `message` the SIP address of the extension.
    leg: String,
    /// For a `message` the contact of the device, as in the receipt.
    device: Option<String>,
    /// When the person tapped Acknowledge.
    acked_at: Timestamp,
    /// The call, for a note that went into one.
    call_uuid: Option<CallId>,
}

/// A note was stored and is being sent.
#[derive(ToSchema)]
struct CallInfoSentData {
    /// The note.
    id: NoteId,
    /// How it is sent.
    channel: NoteChannel,
    /// Its heading.
    title: String,
    /// Its level.
    level: NoteLevel,
    /// Whether the phone shows an Acknowledge button.
    ack: bool,
    /// Where it came from.
    source: NoteSource,
    /// The call that it goes into.
    call_uuid: Option<CallId>,
    /// The legs that it goes to.
    legs: Option<Vec<LegId>>,
    /// The extension that it goes to.
    extension_id: Option<ExtensionId>,
    /// The switch's name of the room that sends it.
    room: Option<String>,
    /// That room, if it is a stored one.
    room_id: Option<RoomId>,
    /// The session of the room.
    session_id: Option<ConferenceSessionId>,
}

/// The media quality of a leg has become worse, or is good again.
#[derive(ToSchema)]
struct CallMediaWarningData {
    /// The call.
    call_uuid: CallId,
    /// Its direction.
    direction: Direction,
    /// The caller's number; absent when withheld.
    caller: Option<String>,
    /// The number as routed.
    destination: Option<String>,
    /// Which side of the call it is.
    leg: LegSide,
    /// The number at its far end.
    party: Option<String>,
    /// What changed.
    state: MediaChange,
    /// The judgement now; null while it cannot be judged.
    #[schema(required)]
    media_verdict: Option<MediaVerdict>,
    /// The judgement that was reported before; `ok` at first.
    previous: MediaVerdict,
    /// The result as a sentence.
    sentence: String,
    /// Since when.
    since: Timestamp,
    /// When it was noticed.
    at: Timestamp,
}

/// A call to an extension ended without an answer.
#[derive(ToSchema)]
struct CallMissedData {
    /// The call, and its record.
    call_uuid: CallId,
    /// Its direction.
    direction: Direction,
    /// The caller's number; absent when withheld.
    caller: Option<String>,
    /// The number as routed.
    destination: Option<String>,
    /// The extension that was called.
    extension_id: ExtensionId,
    /// Its team.
    team_id: Option<TeamId>,
    /// When the call was placed.
    started_at: Timestamp,
    /// When it ended.
    #[schema(required)]
    ended_at: Option<Timestamp>,
    /// Why the caller's leg ended.
    #[schema(required)]
    hangup_cause: Option<HangupCause>,
}

/// A prompt that a program played into a call is over.
#[derive(ToSchema)]
struct CallPromptEndedData {
    /// The call.
    call_uuid: CallId,
    /// The play, as the answer of the request named it.
    play_id: PlayId,
    /// The name of the prompt.
    prompt: String,
    /// Who heard it.
    side: PlaySide,
    /// How it ended.
    result: PlayResult,
    /// When it ended.
    at: Timestamp,
}

/// A person in the minutes.
#[derive(ToSchema)]
struct MinutesMember {
    /// Their name.
    name: String,
    /// Their role.
    #[schema(inline)]
    role: Role,
}

/// The minutes of a session were written; once for each session.
#[derive(ToSchema)]
struct ConferenceMinutesData {
    /// The session.
    session_id: ConferenceSessionId,
    /// The room.
    room_id: RoomId,
    /// The switch's name of the room.
    room: String,
    /// The people who were in it.
    members: Vec<MinutesMember>,
    /// The minutes.
    #[schema(required)]
    minutes: Option<String>,
    /// The addresses that the minutes were sent to.
    delivered_to: Vec<String>,
}

/// Something changed in a live room: a reason to read it again. Which of the optional fields are there depends on
/// `action`.
#[derive(ToSchema)]
struct ConferenceUpdatedData {
    /// The switch's name of the room.
    room: String,
    /// The stored room; absent for merged calls.
    room_id: Option<RoomId>,
    /// The session.
    session_id: ConferenceSessionId,
    /// What changed.
    action: RoomAction,
    /// The room's `revision` after the change.
    revision: u64,
    /// Counts the events of the session from 1, without gaps.
    seq: u64,
    /// The member whom it is about.
    member: Option<u32>,
    /// With `left`: why the member left.
    cause: Option<HangupCause>,
    /// With `joined`: their name.
    name: Option<String>,
    /// With `joined`: their role.
    #[schema(inline)]
    role: Option<Role>,
    /// With `joined`: the call that they are on.
    call_uuid: Option<CallId>,
    /// With `all_muted`: what it is now.
    all_muted: Option<bool>,
    /// With `gain-member`: whether the gain is automatic.
    automatic_gain: Option<bool>,
    /// With `gain-member`: the fixed gain in decibels.
    gain_db: Option<i8>,
    /// With `playing` and `played`: the sound.
    prompt: Option<String>,
    /// With `recording`: what it is now.
    recording: Option<bool>,
    /// With `played`: whether the sound ended early.
    stopped: Option<bool>,
    /// With `start-talking` and `stop-talking`: all members who are speaking.
    talking: Option<Vec<u32>>,
    /// With `whisper-member`: the only member that hears it.
    whisper_to: Option<u32>,
}

/// A finding of a review.
#[derive(ToSchema)]
struct CompletedFlag {
    /// The kind of the finding.
    kind: String,
    /// The turn that it is about.
    seq: u64,
    /// The finding in words.
    detail: String,
}

/// A conversation was over; its price is settled and it was reviewed.
#[derive(ToSchema)]
struct ConversationCompletedData {
    /// The conversation.
    id: ConversationId,
    /// Its call.
    call_uuid: CallId,
    /// The direction of the call.
    direction: Direction,
    /// When it began.
    started_at: Timestamp,
    /// When it ended.
    ended_at: Option<Timestamp>,
    /// The agent.
    #[schema(required)]
    agent_id: Option<AgentId>,
    /// Whether the agent is a person.
    agent_kind: String,
    /// The customer.
    contact_id: Option<ContactId>,
    /// Its number of turns.
    turn_count: u32,
    /// What the review found.
    flags: Vec<CompletedFlag>,
}

/// A party that was dialled into a room did not join it.
#[derive(ToSchema)]
struct ConferenceDialFailedData {
    /// The room.
    room_id: RoomId,
    /// The switch's name of the room.
    room: String,
    /// The call, as the request to dial was answered.
    call_uuid: CallId,
    /// The kind of the target.
    kind: DialKind,
    /// The target as it was requested.
    #[schema(example = "+441632960001")]
    target: String,
    /// The role that it would have had.
    #[schema(inline)]
    role: Role,
    /// Why it did not join.
    cause: DialFailure,
    /// The final SIP status; absent unless the cause is `failed`.
    sip_status: Option<u16>,
    /// When it failed.
    at: Timestamp,
}

/// A recording of a room could not begin, or ended early.
#[derive(ToSchema)]
struct RecordingFailedData {
    /// The session.
    session_id: ConferenceSessionId,
    /// The stored room; absent for merged calls.
    room_id: Option<RoomId>,
    /// The switch's name of the room.
    room: String,
    /// Why, such as a full disk.
    error: String,
    /// Bytes of the file with what was recorded before; 0 when there is none.
    bytes: u64,
    /// When it was noticed.
    at: Timestamp,
}

/// A recording can be played: of a session of a room that is over, or of a call.
#[derive(ToSchema)]
struct RecordingReadyData {
    /// The session; absent for a call.
    session_id: Option<ConferenceSessionId>,
    /// The stored room; absent for merged calls and for a call.
    room_id: Option<RoomId>,
    /// The switch's name of the room; absent for a call.
    room: Option<String>,
    /// The call's recording; absent for a room.
    recording_id: Option<CallRecordingId>,
    /// The call; absent for a room.
    call_uuid: Option<CallId>,
    /// The other call, when both parties were of linked calls.
    linked_call_uuid: Option<CallId>,
    /// Why the recording of a call ended early; absent when it did not.
    error: Option<String>,
    /// Bytes of the file.
    bytes: u64,
    /// The channels of a room's recording; absent for a call, which has two.
    channels: Option<u16>,
    /// Its duration in whole seconds.
    seconds: u64,
}

/// Wrong passwords of extensions reached a limit.
#[derive(ToSchema)]
struct SecurityGuessingData {
    /// The account that was tried last, as the request claims it.
    account: String,
    /// The extension of that account; absent when there is none.
    extension_id: Option<ExtensionId>,
    /// The source address of the last wrong password.
    #[schema(example = "192.0.2.7")]
    source: String,
    /// The limit that was reached.
    limit: GuessLimit,
    /// The wrong passwords that reach it.
    failures: u32,
    /// Within how many seconds they came.
    window_seconds: u64,
    /// Earlier limits of the organisation that were reached without an event.
    left_out: u64,
    /// When it was reached.
    at: Timestamp,
}

/// Wrong PINs of conference rooms reached a limit.
#[derive(ToSchema)]
struct SecurityPinGuessingData {
    /// The room of the last wrong PIN.
    room_id: RoomId,
    /// The limit that was reached.
    limit: PinLimit,
    /// The number of the last caller, as it was presented; absent when it was withheld.
    number: Option<String>,
    /// The extension of the last caller; absent when it was none.
    extension_id: Option<ExtensionId>,
    /// The trunk that the last call came by; absent when it came by none.
    trunk_id: Option<TrunkId>,
    /// The wrong PINs that reach it.
    failures: u32,
    /// Within how many seconds they came.
    window_seconds: u64,
    /// When it was reached.
    at: Timestamp,
}

/// The payloads as components.
#[derive(utoipa::OpenApi)]
#[openapi(components(schemas(
    CallConferencedData,
    CallInfoAckedData,
    CallInfoSentData,
    CallMediaWarningData,
    CallMissedData,
    ConferenceDialFailedData,
    CallPromptEndedData,
    ConferenceMinutesData,
    ConferenceUpdatedData,
    ConversationCompletedData,
    RecordingFailedData,
    RecordingReadyData,
    SecurityGuessingData,
    SecurityPinGuessingData
)))]
pub(super) struct Payloads;
