//! The clips of every organisation, in memory.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use sidetone_media::audio::clip::Clip;
use sidetone_model::ids::OrganisationId;
use sidetone_model::prompt::Prompt;

use crate::prompts::builtin;

/// Every prompt that can be played; clones share the library.
#[derive(Clone)]
pub struct Library {
    builtin: Arc<HashMap<Prompt, Arc<Clip>>>,
    own: Arc<RwLock<Own>>,
}

/// The organisations' own prompts.
#[derive(Default)]
struct Own {
    clips: HashMap<(OrganisationId, Prompt), Arc<Clip>>,
    /// Bytes of their samples.
    bytes: usize,
}

impl Library {
    /// A library with only the built-in prompts.
    pub fn new() -> Library {
        let builtin = Prompt::ALL.iter().map(|prompt| (*prompt, Arc::new(read(*prompt)))).collect();
        Library { builtin: Arc::new(builtin), own: Arc::default() }
    }

    /// Returns what callers of the organisation hear: its own prompt or the built-in one.
    pub fn clip(&self, organisation: OrganisationId, prompt: Prompt) -> Arc<Clip> {
        let own = self.own.read().clips.get(&(organisation, prompt)).map(Arc::clone);
        own.unwrap_or_else(|| self.builtin(prompt))
    }

    /// Returns the built-in prompt.
    pub(super) fn builtin(&self, prompt: Prompt) -> Arc<Clip> {
        self.builtin.get(&prompt).map_or_else(silence, Arc::clone)
    }

    /// Returns whether [`Library::put`] would accept the prompt now.
    pub(super) fn has_room(&self, organisation: OrganisationId, prompt: Prompt, clip: &Clip) -> bool {
        self.own.read().bytes_with(organisation, prompt, clip) <= OWN_BYTES_MAX
    }

    /// Uses the organisation's own prompt from now on.
    ///
    /// # Errors
    /// When the prompts of all organisations would take more than [`OWN_BYTES_MAX`]: nothing changes then.
    pub(super) fn put(
        &self,
        organisation: OrganisationId,
        prompt: Prompt,
        clip: Clip,
    ) -> Result<(), LibraryFull> {
        let mut own = self.own.write();
        let after = own.bytes_with(organisation, prompt, &clip);
        if after > OWN_BYTES_MAX {
            return Err(LibraryFull);
        }
        own.bytes = after;
        own.clips.insert((organisation, prompt), Arc::new(clip));
        Ok(())
    }

    /// Uses the built-in prompt again.
    pub(super) fn remove(&self, organisation: OrganisationId, prompt: Prompt) {
        let mut own = self.own.write();
        if let Some(clip) = own.clips.remove(&(organisation, prompt)) {
            own.bytes -= bytes(&clip);
        }
    }
}

impl Own {
    /// Bytes of all samples if this were the organisation's prompt.
    fn bytes_with(&self, organisation: OrganisationId, prompt: Prompt, clip: &Clip) -> usize {
        let before = self.clips.get(&(organisation, prompt)).map_or(0, |clip| bytes(clip));
        self.bytes - before + bytes(clip)
    }
}

impl Default for Library {
    fn default() -> Self {
        Self::new()
    }
}

/// The uploaded prompts have reached their memory limit.
#[derive(Debug, thiserror::Error)]
#[error("the sounds of all organisations would take more than {} MiB of memory", OWN_BYTES_MAX >> 20)]
pub(super) struct LibraryFull;

#[expect(clippy::expect_used, reason = "a test reads every file that is built in")]
fn read(prompt: Prompt) -> Clip {
    Clip::from_wav(builtin::wav(prompt)).expect("what is built in can be played")
}

fn silence() -> Arc<Clip> {
    Arc::new(Clip::new([]))
}

fn bytes(clip: &Clip) -> usize {
    size_of_val(clip.samples())
}

/// About two hours of audio.
pub(super) const OWN_BYTES_MAX: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn an_organisation_hears_its_own_sounds_and_nobody_else_does() {
        let library = Library::new();
        let [acme, bolt] = [1, 2].map(|n| OrganisationId(Uuid::from_u128(n)));
        let builtin = library.clip(acme, Prompt::Alone);
        assert!(builtin.duration_ms() > 0);
        let own = Clip::new([1, 2, 3]);
        library.put(acme, Prompt::Alone, own.clone()).unwrap();
        assert_eq!(*library.clone().clip(acme, Prompt::Alone), own);
        assert_eq!(library.clip(bolt, Prompt::Alone), builtin);
        assert_ne!(library.clip(acme, Prompt::Full), builtin);
        library.remove(acme, Prompt::Alone);
        assert_eq!(library.clip(acme, Prompt::Alone), builtin);
    }

    #[test]
    fn memory_is_bounded_and_counted_right() {
        let library = Library::new();
        let organisation = |n| OrganisationId(Uuid::from_u128(n));
        let long = Clip::new(vec![0; OWN_BYTES_MAX / 8]);
        for n in 0..4 {
            library.put(organisation(n), Prompt::HoldMusic, long.clone()).unwrap();
        }
        library.put(organisation(3), Prompt::HoldMusic, long.clone()).unwrap();
        assert!(library.put(organisation(4), Prompt::HoldMusic, Clip::new([0])).is_err());
        library.remove(organisation(0), Prompt::HoldMusic);
        library.remove(organisation(0), Prompt::HoldMusic);
        library.put(organisation(4), Prompt::HoldMusic, long).unwrap();
    }
}
