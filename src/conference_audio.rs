//! The audio of rooms for the switch: prompts, music, and recordings.

use std::sync::Arc;

use sidetone_media::audio::clip::Clip;
use sidetone_media::mix::FrameSink;
use sidetone_model::ids::OrganisationId;
use sidetone_model::prompt::Prompt;
use sidetone_switch::mixing::{Recording, RecordingPlan};
use tokio::sync::mpsc;

use crate::driver::{ConferenceAudio, Handle, Request};
use crate::prompts::Library;
use crate::recorder::{Begins, Ended};

/// The prompts and the recorder of a node.
pub struct NodeAudio {
    /// The prompts.
    pub library: Library,
    /// Starts recordings.
    pub recordings: Begins,
}

impl ConferenceAudio for NodeAudio {
    fn clip(&self, organisation: OrganisationId, prompt: Prompt) -> Arc<Clip> {
        self.library.clip(organisation, prompt)
    }

    fn record(&self, plan: RecordingPlan) -> Result<Box<dyn FrameSink>, String> {
        let sink = self.recordings.begin(plan.organisation, plan.session);
        sink.map(|sink| Box::new(sink) as Box<dyn FrameSink>).map_err(|busy| busy.to_string())
    }
}

/// Reports the results of recordings to the switch, until the recorder ends; results that arrive after the
/// end of the switch are added to `untold`.
pub async fn pass_on_recordings(ended: &mut mpsc::Receiver<Ended>, untold: &mut Vec<Ended>, switch: &Handle) {
    while let Some(told) = ended.recv().await {
        let recording = Recording { bytes: told.bytes, error: told.error.clone() };
        if !switch.send(Request::Recorded(told.session, recording)).await {
            untold.push(told);
        }
    }
}

/// Results of recordings that wait to be reported.
pub const ENDED_LEN_MAX: usize = 1_024;
