//! The star codes that are being carried out: INVITEs that wait for the driver, and calls that confirm a change.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sidetone_media::mix::MixId;
use sidetone_model::ids::{CallId, ExtensionId};
use sidetone_model::language::Language;
use sidetone_model::prompt::Prompt;

use crate::incoming::Invitation;
use crate::io::{MediaCommand, Party};
use crate::live::LiveCall;
use crate::mixing::SeatHears;
use crate::switch_io::{Output, Outputs};

/// The star codes that are being carried out.
#[derive(Debug, Default)]
pub(super) struct StarCodes {
    /// The INVITEs that wait until their change is stored: one for each extension.
    pub(super) waiting: HashMap<ExtensionId, Waiting>,
    /// The calls that confirm a change.
    pub(super) confirming: HashSet<CallId>,
}

/// An INVITE that waits until its change is stored.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) invitation: Invitation,
    pub(super) dialled: String,
}

impl StarCodes {
    /// Adds the chime to the audio of a call that confirms a change, once it is answered.
    pub(super) fn confirm(&self, live: &LiveCall, party: Party, outputs: &mut Outputs) {
        let facts = live.call.facts();
        let leg = live.call.parties().leg(party).filter(|_| self.confirming.contains(&facts.call));
        let Some((leg, formats)) = leg.and_then(|leg| Some((leg, leg.formats()?))) else { return };
        let join = MediaCommand::Join {
            mix: MixId(live.call.group()),
            organisation: facts.organisation,
            // A chime does not depend on the language.
            language: Language::default(),
            formats: Box::new(formats),
            muted: true,
            hears: SeatHears::Room,
        };
        let prompts = vec![Prompt::Joined];
        let play = MediaCommand::Play { prompts, token: 0, lead: Duration::ZERO, language: None };
        outputs.extend([join, play].map(|command| Output::Media(leg.port(), command)));
    }

    /// Whether a call confirms a change.
    pub(super) fn confirms(&self, call: CallId) -> bool {
        self.confirming.contains(&call)
    }

    /// Forgets a call that is over.
    pub(super) fn over(&mut self, call: CallId) {
        self.confirming.remove(&call);
    }
}
