//! Notifications that the switch sends at once, in addition to its records: events, and changes of call requests.

use crate::call_prompt::PromptEnded;
use crate::call_request::RequestChange;
use crate::event::Event;
use crate::guessing::Guessing;
use crate::live_call::CallEvent;
use crate::pin_guessing::PinGuessing;

/// A notification of the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchEvent {
    /// A change of a live call.
    Call(CallEvent),
    /// Passwords are guessed.
    Guessing(Guessing),
    /// PINs of rooms are guessed.
    PinGuessing(PinGuessing),
    /// A prompt that a program played into a call is over.
    Prompt(PromptEnded),
    /// A change of a requested call, which is stored with the request.
    Request(RequestChange),
}

impl SwitchEvent {
    /// Returns a new event with these data; `None` for a change that is no event.
    pub fn event(&self) -> Option<Event> {
        match self {
            SwitchEvent::Call(event) => Some(event.event()),
            SwitchEvent::Guessing(guessing) => Some(guessing.event()),
            SwitchEvent::PinGuessing(guessing) => Some(guessing.event()),
            SwitchEvent::Prompt(ended) => Some(ended.event()),
            SwitchEvent::Request(_) => None,
        }
    }

    /// Returns the change of a call request, if it is one.
    pub fn request(&self) -> Option<&RequestChange> {
        match self {
            SwitchEvent::Request(change) => Some(change),
            SwitchEvent::Call(_)
            | SwitchEvent::Guessing(_)
            | SwitchEvent::PinGuessing(_)
            | SwitchEvent::Prompt(_) => None,
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
