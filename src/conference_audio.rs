//! The audio of rooms for the switch: prompts, music, and recordings.

use std::sync::Arc;
use std::time::Duration;

use sidetone_media::audio::clip::Clip;
use sidetone_media::mix::FrameSink;
use sidetone_model::ids::{ExtensionId, LegId, OrganisationId};
use sidetone_model::language::Language;
use sidetone_model::prompt::{Prompt, SoundName};
use sidetone_switch::mixing::{Recording, RecordingPlan};
use tokio::sync::mpsc;

use crate::call_recordings::CallRecordingEnds;
use crate::driver::{ConferenceAudio, Handle, Request};
use crate::prompts::Library;
use crate::recorder::{Begins, Ended, RecordingKind};
use crate::spoken_names::SpokenNames;

/// The prompts and the recorder of a node.
pub struct NodeAudio {
    /// The prompts.
    pub library: Library,
    /// The recorded names of members.
    pub names: SpokenNames,
    /// Starts recordings.
    pub recordings: Begins,
    /// Takes the results of calls' recordings that could not be started.
    pub ended: mpsc::Sender<Ended>,
}

impl ConferenceAudio for NodeAudio {
    fn clip(&self, organisation: OrganisationId, language: Language, prompt: Prompt) -> Arc<Clip> {
        self.library.clip(organisation, language, prompt)
    }

    fn sound(&self, organisation: OrganisationId, language: Language, name: SoundName) -> Option<Arc<Clip>> {
        self.library.sound(organisation, language, name)
    }

    fn find_name(&self, leg: LegId, organisation: OrganisationId, extension: ExtensionId) {
        self.names.find(leg, organisation, extension);
    }

    fn forget_name(&self, leg: LegId) {
        self.names.forget(leg);
    }

    fn name(&self, leg: LegId, organisation: OrganisationId) -> Option<Arc<Clip>> {
        self.names.clip(leg, organisation)
    }

    fn record_name(
        &self,
        leg: LegId,
        organisation: OrganisationId,
        extension: Option<ExtensionId>,
    ) -> Option<Box<dyn FrameSink>> {
        Some(Box::new(self.names.record(leg, organisation, extension)?))
    }

    fn record(&self, plan: RecordingPlan) -> Result<Box<dyn FrameSink>, String> {
        let RecordingPlan { organisation, session, sides, channels } = plan;
        let kind = match (sides, channels) {
            (Some(_), _) => RecordingKind::Call,
            (None, 2) => RecordingKind::RoomChannels,
            (None, _) => RecordingKind::Room,
        };
        let sink = self.recordings.begin_kind(organisation, session, kind).map_err(|busy| {
            let error = busy.to_string();
            if kind == RecordingKind::Call {
                // A call's recording has a row already; if the queue is full, it is completed at the next start.
                let ended = Ended { organisation, session, kind, bytes: 0, error: Some(error.clone()) };
                let _ = self.ended.try_send(ended);
            }
            error
        })?;
        Ok(Box::new(sink))
    }
}

/// Reports the results of recordings to the switch, until the recorder ends; results that arrive after the
/// end of the switch are added to `untold`.
pub async fn pass_on_recordings(
    ended: &mut mpsc::Receiver<Ended>,
    untold: &mut Vec<Ended>,
    of_calls: &mut CallRecordingEnds,
    switch: &Handle,
) {
    loop {
        let told = tokio::select! {
            told = ended.recv() => told,
            () = tokio::time::sleep(RETRY_AFTER), if of_calls.is_waiting() => {
                of_calls.retry().await;
                continue;
            }
        };
        let Some(told) = told else { return of_calls.retry().await };
        if told.kind == RecordingKind::Call {
            let recording = Recording { bytes: told.bytes, error: told.error.clone() };
            // If the switch has ended, so has the call.
            switch.send(Request::Recorded(told.session, recording)).await;
            of_calls.store(&told).await;
            continue;
        }
        let recording = Recording { bytes: told.bytes, error: told.error.clone() };
        if !switch.send(Request::Recorded(told.session, recording)).await {
            untold.push(told);
        }
    }
}

/// The pause before the database is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// Results of recordings that wait to be reported.
pub const ENDED_LEN_MAX: usize = 1_024;
