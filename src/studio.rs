//! What rooms sound like, for the switch: its prompts and music, and where they are recorded to.

use std::sync::Arc;

use sidetone_media::audio::clip::Clip;
use sidetone_media::mix::FrameSink;
use sidetone_model::ids::OrganisationId;
use sidetone_model::prompt::Prompt;
use sidetone_switch::mixing::{Recording, RecordingPlan};
use tokio::sync::mpsc;

use crate::driver::{Handle, Request, Studio};
use crate::recorder::{Begins, Ended};
use crate::sound::Library;

/// The sounds and the recorder of a node.
pub struct NodeStudio {
    /// What is played.
    pub library: Library,
    /// What begins recordings.
    pub recordings: Begins,
}

impl Studio for NodeStudio {
    fn clip(&self, organisation: OrganisationId, prompt: Prompt) -> Arc<Clip> {
        self.library.clip(organisation, prompt)
    }

    fn record(&self, plan: RecordingPlan) -> Result<Box<dyn FrameSink>, String> {
        let sink = self.recordings.begin(plan.organisation, plan.session);
        sink.map(|sink| Box::new(sink) as Box<dyn FrameSink>).map_err(|busy| busy.to_string())
    }
}

/// Tells the switch what became of recordings, until the recorder ends; what ended after the switch is added to `untold`.
pub async fn pass_on_recordings(ended: &mut mpsc::Receiver<Ended>, untold: &mut Vec<Ended>, switch: &Handle) {
    while let Some(told) = ended.recv().await {
        let recording = Recording { bytes: told.bytes, error: told.error.clone() };
        if !switch.send(Request::Recorded(told.session, recording)).await {
            untold.push(told);
        }
    }
}

/// Recordings that ended and wait to be told of.
pub const ENDED_LEN_MAX: usize = 1_024;
