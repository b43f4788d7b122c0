//! What the switch tells of notes: what phones answered, and what they say by themselves.

use sidetone_model::ids::NoteId;
use sidetone_model::note::rules::outcome;
use sidetone_model::note::{Acknowledgement, Change, PhoneAnswer, Tap, Tapper, Written};
use sidetone_model::time::Timestamp;
use tokio::sync::mpsc;

use crate::notes::{Clock, Orders};
use crate::supervise::{Supervisor, Task};
use crate::switch::driver::Handle;
use crate::switch::messaging::{Device, Said, Speaker};

/// Something that the switch tells.
#[derive(Debug)]
pub enum NoteNews {
    /// What came of sending a note to one phone.
    Answered {
        /// The note.
        note: NoteId,
        /// The phone's place among those it was sent to.
        place: usize,
        /// What came of it.
        answer: PhoneAnswer,
    },
    /// A phone said something that waits for an answer.
    Said(Said),
}

/// Stores what the switch tells until it stops, and has phones answered by what that did.
pub async fn follow(
    news: &mut mpsc::Receiver<NoteNews>,
    orders: &Orders,
    switch: &Handle,
    clock: &Clock,
    supervisor: &Supervisor,
) {
    while let Some(piece) = news.recv().await {
        match piece {
            NoteNews::Answered { note, place, answer } => {
                orders.answered(Change::Answered { note, place, outcome: outcome(answer) }).await;
            }
            NoteNews::Said(said) => {
                let (orders, switch, now) = (orders.clone(), switch.clone(), clock());
                // One slow commit does not hold up what others say. No more wait than the writer takes.
                let watched = supervisor.clone();
                drop(supervisor.once(Task::NoteNews, async move {
                    let key = said.key;
                    let status = watched.attempt(Task::NoteNews, heard(said, &orders, now)).await;
                    switch.answer_said(key, status.unwrap_or(SERVICE_UNAVAILABLE)).await;
                }));
            }
        }
    }
}

/// Takes what a phone said; the status that it is answered. A 200 is not given before the tap is stored.
async fn heard(said: Said, orders: &Orders, now: Timestamp) -> u16 {
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
        // One answer for all that does not count: it does not tell which notes there are.
        Ok(Written::Refused) => FORBIDDEN,
        Err(_) => SERVICE_UNAVAILABLE,
    }
}

const BAD_REQUEST: u16 = 400;
const FORBIDDEN: u16 = 403;
const OK: u16 = 200;
const SERVICE_UNAVAILABLE: u16 = 503;
