//! The organisations' prompts as the API manages them.

use sidetone_media::audio::clip::Clip;
use sidetone_model::ids::OrganisationId;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::{FieldProblem, Problem};
use sidetone_model::prompt::{Prompt, PromptRecord, Prompts};
use sidetone_model::time::Timestamp;
use sidetone_store::Store;

use crate::prompts::Library;
use crate::prompts::builtin;

/// The port of prompts on the store.
pub struct PromptService {
    store: Store,
    library: Library,
}

impl PromptService {
    /// A port that returns the built-in prompts of `library`.
    pub fn new(store: Store, library: Library) -> PromptService {
        PromptService { store, library }
    }

    fn builtin(&self, prompt: Prompt) -> PromptRecord {
        PromptRecord {
            prompt,
            own_since: None,
            duration_ms: self.library.builtin(prompt).duration_ms(),
            bytes: builtin::wav(prompt).len() as u64,
        }
    }
}

impl Prompts for PromptService {
    fn list(&self, organisation: OrganisationId) -> PortFuture<'_, Vec<PromptRecord>> {
        Box::pin(async move {
            let own = self.store.own_prompts(organisation).await?;
            let played = |prompt: &Prompt| {
                let own = own.iter().find(|own| own.prompt == *prompt).copied();
                own.unwrap_or_else(|| self.builtin(*prompt))
            };
            Ok(Prompt::ALL.iter().map(played).collect())
        })
    }

    fn wav(&self, organisation: OrganisationId, prompt: Prompt) -> PortFuture<'_, Vec<u8>> {
        Box::pin(async move {
            let own = self.store.own_prompt(organisation, prompt).await?;
            Ok(own.unwrap_or_else(|| builtin::wav(prompt).to_vec()))
        })
    }

    fn put(
        &self,
        organisation: OrganisationId,
        prompt: Prompt,
        wav: Vec<u8>,
        now: Timestamp,
    ) -> PortFuture<'_, PromptRecord> {
        Box::pin(async move {
            // Resampling a long file takes time, so it runs on a blocking thread and does not delay other
            // requests.
            let read = tokio::task::spawn_blocking(move || (Clip::from_wav(&wav), wav)).await;
            let (clip, wav) = read.map_err(|error| Problem::Internal(error.to_string()))?;
            let clip = clip.map_err(|error| {
                Problem::InvalidRequest(vec![FieldProblem {
                    field: "body".to_owned(),
                    message: format!("cannot be played: {error}"),
                }])
            })?;
            if !self.library.has_room(organisation, prompt, &clip) {
                return Err(Problem::Conflict(
                    "the sounds of all organisations take the memory that there is for them: remove one, or \
                     make this one shorter"
                        .to_owned(),
                ));
            }
            let duration_ms = clip.duration_ms();
            self.store.put_prompt(organisation, prompt, &wav, duration_ms, now).await?;
            Ok(PromptRecord { prompt, own_since: Some(now), duration_ms, bytes: wav.len() as u64 })
        })
    }

    fn remove(&self, organisation: OrganisationId, prompt: Prompt) -> PortFuture<'_, ()> {
        Box::pin(async move {
            if self.store.remove_prompt(organisation, prompt).await? {
                return Ok(());
            }
            Err(Problem::NotFound(format!(
                "the organisation has no sound of its own for {prompt}; the built-in one is played"
            )))
        })
    }
}
