//! The switch's reports about notes: the responses of phones, and messages from phones.

use sidetone_model::ids::NoteId;
use sidetone_model::note::rules::outcome;
use sidetone_model::note::{Acknowledgement, Change, PhoneAnswer, Tap, Tapper, Written};
use sidetone_model::time::Timestamp;
use sidetone_switch::incoming_message::{Device, IncomingMessage, Speaker};
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::driver::Handle;
use crate::notes::Orders;
use crate::supervise::{Supervisor, Task};

/// A report of the switch.
#[derive(Debug)]
pub enum PhoneReply {
    /// The result of sending a note to one phone.
    Answered {
        /// The note.
        note: NoteId,
        /// The phone's index among those it was sent to.
        place: usize,
        /// The result.
        answer: PhoneAnswer,
    },
    /// A phone sent a message that needs a response.
    IncomingMessage(IncomingMessage),
}

/// Stores the switch's reports until the switch stops, and responds to the phones according to the result.
pub async fn follow(
    replies: &mut mpsc::Receiver<PhoneReply>,
    orders: &Orders,
    switch: &Handle,
    clock: &Clock,
    supervisor: &Supervisor,
) {
    while let Some(reply) = replies.recv().await {
        match reply {
            PhoneReply::Answered { note, place, answer } => {
                orders.answered(Change::Answered { note, place, outcome: outcome(answer) }).await;
            }
            PhoneReply::IncomingMessage(said) => {
                let (orders, switch, now) = (orders.clone(), switch.clone(), clock());
                // One slow commit does not delay other messages. No more of them wait than the writer accepts.
                let watched = supervisor.clone();
                drop(supervisor.once(Task::PhoneReplies, async move {
                    let key = said.key;
                    let status = watched.attempt(Task::PhoneReplies, heard(said, &orders, now)).await;
                    switch.answer_message(key, status.unwrap_or(SERVICE_UNAVAILABLE)).await;
                }));
            }
        }
    }
}

/// Processes a phone's message; returns the status of the response. A 200 is sent only after the acknowledgement is
/// stored.
async fn heard(said: IncomingMessage, orders: &Orders, now: Timestamp) -> u16 {
    let Some(acknowledgement) = Acknowledgement::parse(&said.body) else { return BAD_REQUEST };
    let organisation = said.organisation;
    let by = match (said.by, said.device) {
        (Speaker::Device(extension), Some(Device { address, contact })) => {
            Tapper::Device { organisation, extension, address, device: contact }
        }
        (Speaker::Leg(_, leg), _) => Tapper::Leg { organisation, leg },
        (Speaker::Device(_), None) => return FORBIDDEN,
    };
    match orders.tap(Tap { by, acknowledgement, now }).await {
        Ok(Written::Done) => OK,
        // The same response for every refused acknowledgement, so that it does not reveal which notes exist.
        Ok(Written::Refused) => FORBIDDEN,
        Err(_) => SERVICE_UNAVAILABLE,
    }
}

const BAD_REQUEST: u16 = 400;
const FORBIDDEN: u16 = 403;
const OK: u16 = 200;
const SERVICE_UNAVAILABLE: u16 = 503;
