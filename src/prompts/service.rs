//! The organisations' prompts as the API manages them.

use sidetone_media::audio::clip::Clip;
use sidetone_model::ids::OrganisationId;
use sidetone_model::language::Language;
use sidetone_model::organisation::Organisations;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::{FieldProblem, Problem};
use sidetone_model::prompt::{OwnSound, Prompt, PromptRecord, Prompts, SoundName};
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

    /// The language of the organisation's built-in prompts.
    async fn language_of(&self, organisation: OrganisationId) -> Result<Language, Problem> {
        let found = Organisations::find(&self.store, organisation).await?;
        Ok(found.map(|found| found.language).unwrap_or_default())
    }

    fn builtin(&self, language: Language, prompt: Prompt) -> PromptRecord {
        PromptRecord {
            name: prompt.into(),
            own_since: None,
            duration_ms: self.library.builtin(language, prompt).duration_ms(),
            bytes: builtin::wav(language, prompt).len() as u64,
        }
    }
}

impl Prompts for PromptService {
    fn list(&self, organisation: OrganisationId) -> PortFuture<'_, Vec<PromptRecord>> {
        Box::pin(async move {
            let own = self.store.own_prompts(organisation).await?;
            let language = self.language_of(organisation).await?;
            let played = |prompt: &Prompt| {
                let own = own.iter().find(|own| own.name == (*prompt).into()).copied();
                own.unwrap_or_else(|| self.builtin(language, *prompt))
            };
            let named = own.iter().filter(|own| matches!(own.name, SoundName::Own(_))).copied();
            let mut all: Vec<PromptRecord> = Prompt::ALL.iter().map(played).chain(named).collect();
            all.sort_by_cached_key(|one| one.name.to_string());
            Ok(all)
        })
    }

    fn wav(&self, organisation: OrganisationId, name: SoundName) -> PortFuture<'_, Vec<u8>> {
        Box::pin(async move {
            match (self.store.own_prompt(organisation, name).await?, name) {
                (Some(own), _) => Ok(own),
                (None, SoundName::Prompt(prompt)) => {
                    Ok(builtin::wav(self.language_of(organisation).await?, prompt).to_vec())
                }
                (None, SoundName::Own(_)) => {
                    Err(Problem::NotFound(format!("the organisation has no sound {name}")))
                }
            }
        })
    }

    fn ready(&self, organisation: OrganisationId, name: SoundName) -> PortFuture<'_, Option<u64>> {
        Box::pin(async move {
            let language = self.language_of(organisation).await?;
            if let Some(clip) = self.library.sound(organisation, language, name) {
                return Ok(Some(clip.duration_ms()));
            }
            // A prompt that was stored a moment ago; the library has it within two seconds.
            let Some(wav) = self.store.own_prompt(organisation, name).await? else { return Ok(None) };
            let clip = tokio::task::spawn_blocking(move || Clip::from_wav(&wav)).await;
            let clip = clip.map_err(|error| Problem::Internal(error.to_string()))?;
            let clip = clip.map_err(|error| Problem::Internal(error.to_string()))?;
            let duration_ms = clip.duration_ms();
            let put = self.library.put(organisation, name, clip);
            put.map_err(|error| Problem::Conflict(format!("{error}: remove one")))?;
            Ok(Some(duration_ms))
        })
    }

    fn put(
        &self,
        organisation: OrganisationId,
        name: SoundName,
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
            if let Err(full) = self.library.has_room(organisation, name, &clip) {
                return Err(Problem::Conflict(format!("{full}: remove one, or make this one shorter")));
            }
            let duration_ms = clip.duration_ms();
            if !self.store.put_prompt(organisation, name, &wav, duration_ms, now).await? {
                return Err(Problem::Conflict(format!(
                    "the organisation has {} sounds of its own: remove one",
                    OwnSound::COUNT_MAX
                )));
            }
            Ok(PromptRecord { name, own_since: Some(now), duration_ms, bytes: wav.len() as u64 })
        })
    }

    fn remove(&self, organisation: OrganisationId, name: SoundName) -> PortFuture<'_, ()> {
        Box::pin(async move {
            if self.store.remove_prompt(organisation, name).await? {
                // The follower has no entry for a prompt that `ready` loaded.
                self.library.remove(organisation, name);
                return Ok(());
            }
            Err(Problem::NotFound(match name {
                SoundName::Own(_) => format!("the organisation has no sound {name}"),
                SoundName::Prompt(_) => {
                    format!("the organisation has no sound of its own for {name}; the built-in one is played")
                }
            }))
        })
    }
}
