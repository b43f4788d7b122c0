//! Notifications that the switch sends immediately, in addition to its records: events, and changes of call
//! requests.

use crate::call_prompt::PromptEnded;
use crate::call_request::RequestChange;
use crate::event::Event;
use crate::guessing::Guessing;
use crate::live_call::CallEvent;
use crate::pin_guessing::PinGuessing;
use crate::recording::RecordingFailed;
use crate::room::RoomDialFailed;

/// A notification of the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly all are changes of calls, which need the space")]
pub enum SwitchEvent {
    /// A change of a live call.
    Call(CallEvent),
    /// A party that was dialled into a room did not join.
    DialFailed(RoomDialFailed),
    /// Passwords are guessed.
    Guessing(Guessing),
    /// PINs of rooms are guessed.
    PinGuessing(PinGuessing),
    /// A recording of a room failed.
    RecordingFailed(RecordingFailed),
    /// A prompt that a program played into a call is over.
    Prompt(PromptEnded),
    /// A change of a requested call, which is stored with the request.
    Request(RequestChange),
}

impl SwitchEvent {
    /// Returns a new event with these data; `None` for a change of a call request.
    pub fn event(&self) -> Option<Event> {
        match self {
            SwitchEvent::Call(event) => Some(event.event()),
            SwitchEvent::DialFailed(failed) => Some(failed.event()),
            SwitchEvent::Guessing(guessing) => Some(guessing.event()),
            SwitchEvent::PinGuessing(guessing) => Some(guessing.event()),
            SwitchEvent::RecordingFailed(failed) => Some(failed.event()),
            SwitchEvent::Prompt(ended) => Some(ended.event()),
            SwitchEvent::Request(_) => None,
        }
    }

    /// Returns the change of a call request, if it is one.
    pub fn request(&self) -> Option<&RequestChange> {
        match self {
            SwitchEvent::Request(change) => Some(change),
            SwitchEvent::Call(_)
            | SwitchEvent::DialFailed(_)
            | SwitchEvent::Guessing(_)
            | SwitchEvent::PinGuessing(_)
            | SwitchEvent::Prompt(_)
            | SwitchEvent::RecordingFailed(_) => None,
        }
    }
}

impl From<CallEvent> for SwitchEvent {
    fn from(event: CallEvent) -> Self {
        SwitchEvent::Call(event)
    }
}

impl From<Guessing> for SwitchEvent {
    fn from(guessing: Guessing) -> Self {
        SwitchEvent::Guessing(guessing)
    }
}

impl From<PinGuessing> for SwitchEvent {
    fn from(guessing: PinGuessing) -> Self {
        SwitchEvent::PinGuessing(guessing)
    }
}

impl From<RecordingFailed> for SwitchEvent {
    fn from(failed: RecordingFailed) -> Self {
        SwitchEvent::RecordingFailed(failed)
    }
}

impl From<RoomDialFailed> for SwitchEvent {
    fn from(failed: RoomDialFailed) -> Self {
        SwitchEvent::DialFailed(failed)
    }
}

impl From<PromptEnded> for SwitchEvent {
    fn from(ended: PromptEnded) -> Self {
        SwitchEvent::Prompt(ended)
    }
}

impl From<RequestChange> for SwitchEvent {
    fn from(change: RequestChange) -> Self {
        SwitchEvent::Request(change)
    }
}
