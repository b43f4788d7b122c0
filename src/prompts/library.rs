//! The clips of every organisation, in memory.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;
use sidetone_media::audio::clip::Clip;
use sidetone_model::ids::OrganisationId;
use sidetone_model::language::Language;
use sidetone_model::prompt::{Prompt, SoundName};

use crate::prompts::builtin;

/// Every prompt that can be played; clones share the library.
#[derive(Clone)]
pub struct Library {
    own: Arc<RwLock<Own>>,
}

/// The organisations' own prompts.
#[derive(Default)]
struct Own {
    clips: HashMap<(OrganisationId, SoundName), Arc<Clip>>,
    /// Bytes of their samples.
    bytes: usize,
}

impl Library {
    /// A library with only the built-in prompts.
    pub fn new() -> Library {
        // Decoded at the start: the first caller does not wait for it.
        LazyLock::force(&BUILTIN);
        Library { own: Arc::default() }
    }

    /// Returns the prompt that callers of the organisation hear: its own, or the built-in one in this language.
    pub fn clip(&self, organisation: OrganisationId, language: Language, prompt: Prompt) -> Arc<Clip> {
        self.own(organisation, prompt.into()).unwrap_or_else(|| self.builtin(language, prompt))
    }

    /// Returns the organisation's sound of this name; `None` when it has no such sound.
    pub fn sound(
        &self,
        organisation: OrganisationId,
        language: Language,
        name: SoundName,
    ) -> Option<Arc<Clip>> {
        match name {
            SoundName::Own(_) => self.own(organisation, name),
            SoundName::Prompt(prompt) => Some(self.clip(organisation, language, prompt)),
        }
    }

    /// Returns the organisation's own sound of this name.
    fn own(&self, organisation: OrganisationId, name: SoundName) -> Option<Arc<Clip>> {
        self.own.read().clips.get(&(organisation, name)).map(Arc::clone)
    }

    /// Returns the built-in prompt.
    pub(super) fn builtin(&self, language: Language, prompt: Prompt) -> Arc<Clip> {
        BUILTIN.get(&(language, prompt)).map_or_else(silence, Arc::clone)
    }

    /// Checks whether [`Library::put`] would accept the sound now.
    ///
    /// # Errors
    /// As [`Library::put`].
    pub(super) fn has_room(
        &self,
        organisation: OrganisationId,
        name: SoundName,
        clip: &Clip,
    ) -> Result<(), LibraryFull> {
        self.own.read().bytes_after(organisation, name, clip).map(drop)
    }

    /// Uses the organisation's own sound from now on.
    ///
    /// # Errors
    /// When all sounds would take more than [`OWN_BYTES_MAX`], or the organisation's own named sounds more than
    /// [`NAMED_BYTES_MAX`]; nothing is changed then.
    pub(super) fn put(
        &self,
        organisation: OrganisationId,
        name: SoundName,
        clip: Clip,
    ) -> Result<(), LibraryFull> {
        let mut own = self.own.write();
        own.bytes = own.bytes_after(organisation, name, &clip)?;
        own.clips.insert((organisation, name), Arc::new(clip));
        Ok(())
    }

    /// Uses the built-in prompt again, or no sound of this name.
    pub(super) fn remove(&self, organisation: OrganisationId, name: SoundName) {
        let mut own = self.own.write();
        if let Some(clip) = own.clips.remove(&(organisation, name)) {
            own.bytes -= bytes(&clip);
        }
    }
}

impl Own {
    /// Bytes of all samples if this sound were added for the organisation.
    ///
    /// # Errors
    /// When it would exceed a limit.
    fn bytes_after(
        &self,
        organisation: OrganisationId,
        name: SoundName,
        clip: &Clip,
    ) -> Result<usize, LibraryFull> {
        let is_named = |name: &SoundName| matches!(name, SoundName::Own(_));
        if is_named(&name) {
            let beside = |(owner, other): &(OrganisationId, SoundName)| {
                *owner == organisation && is_named(other) && *other != name
            };
            let named = self.clips.iter().filter(|(place, _)| beside(place));
            if named.map(|(_, clip)| bytes(clip)).sum::<usize>() + bytes(clip) > NAMED_BYTES_MAX {
                return Err(LibraryFull::Organisation);
            }
        }
        let before = self.clips.get(&(organisation, name)).map_or(0, |clip| bytes(clip));
        let after = self.bytes - before + bytes(clip);
        if after > OWN_BYTES_MAX { Err(LibraryFull::Node) } else { Ok(after) }
    }
}

impl Default for Library {
    fn default() -> Self {
        Self::new()
    }
}

/// The uploaded sounds have reached a limit of memory.
#[derive(Debug, thiserror::Error)]
pub(super) enum LibraryFull {
    /// The limit of all organisations.
    #[error("the sounds of all organisations would take more than {} MiB of memory", OWN_BYTES_MAX >> 20)]
    Node,
    /// The limit of one organisation's named sounds.
    #[error("the sounds own-… of the organisation would take more than {} MiB of memory", NAMED_BYTES_MAX >> 20)]
    Organisation,
}

/// The built-in prompts, decoded once per process, however many engines it starts, as tests do.
static BUILTIN: LazyLock<HashMap<(Language, Prompt), Arc<Clip>>> = LazyLock::new(|| {
    let languages = Language::ALL.iter().map(|(language, _)| *language);
    let all = languages.flat_map(|language| Prompt::ALL.iter().map(move |prompt| (language, *prompt)));
    all.map(|(language, prompt)| ((language, prompt), Arc::new(read(language, prompt)))).collect()
});

#[expect(clippy::expect_used, reason = "a test reads every file that is built in")]
fn read(language: Language, prompt: Prompt) -> Clip {
    Clip::from_wav(builtin::wav(language, prompt)).expect("what is built in can be played")
}

fn silence() -> Arc<Clip> {
    Arc::new(Clip::new([]))
}

fn bytes(clip: &Clip) -> usize {
    size_of_val(clip.samples())
}

/// About two hours of audio.
pub(super) const OWN_BYTES_MAX: usize = 256 << 20;
/// About 17 minutes of audio, for the named sounds of one organisation.
pub(super) const NAMED_BYTES_MAX: usize = 32 << 20;

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const EN: Language = Language::English;

    #[test]
    fn an_organisation_hears_its_own_sounds_and_nobody_else_does() {
        let library = Library::new();
        let [acme, bolt] = [1, 2].map(|n| OrganisationId(Uuid::from_u128(n)));
        let builtin = library.clip(acme, EN, Prompt::Alone);
        assert!(builtin.duration_ms() > 0);
        let own = Clip::new([1, 2, 3]);
        library.put(acme, Prompt::Alone.into(), own.clone()).unwrap();
        assert_eq!(*library.clone().clip(acme, EN, Prompt::Alone), own);
        assert_eq!(library.clip(bolt, EN, Prompt::Alone), builtin);
        assert_ne!(library.clip(acme, EN, Prompt::Full), builtin);
        library.remove(acme, Prompt::Alone.into());
        assert_eq!(library.clip(acme, EN, Prompt::Alone), builtin);
    }

    #[test]
    fn memory_is_bounded_and_counted_right() {
        let library = Library::new();
        let organisation = |n| OrganisationId(Uuid::from_u128(n));
        let long = Clip::new(vec![0; OWN_BYTES_MAX / 8]);
        for n in 0..4 {
            library.put(organisation(n), Prompt::HoldMusic.into(), long.clone()).unwrap();
        }
        library.put(organisation(3), Prompt::HoldMusic.into(), long.clone()).unwrap();
        assert!(library.put(organisation(4), Prompt::HoldMusic.into(), Clip::new([0])).is_err());
        library.remove(organisation(0), Prompt::HoldMusic.into());
        library.remove(organisation(0), Prompt::HoldMusic.into());
        library.put(organisation(4), Prompt::HoldMusic.into(), long).unwrap();
    }

    #[test]
    fn one_organisation_cannot_fill_the_memory_with_named_sounds() {
        let library = Library::new();
        let [acme, bolt] = [1, 2].map(|n| OrganisationId(Uuid::from_u128(n)));
        let name = |name: &str| SoundName::from_name(name).unwrap();
        let half = Clip::new(vec![1; NAMED_BYTES_MAX / 4]);
        library.put(acme, name("own-a"), half.clone()).unwrap();
        library.put(acme, name("own-b"), half.clone()).unwrap();
        library.put(acme, name("own-b"), half.clone()).unwrap();
        let refused = library.put(acme, name("own-c"), Clip::new([0]));
        assert!(matches!(refused, Err(LibraryFull::Organisation)));
        library.put(bolt, name("own-a"), Clip::new([7])).unwrap();
        assert_eq!(library.sound(bolt, EN, name("own-a")).unwrap().samples(), [7]);
        assert_eq!(library.sound(bolt, EN, name("own-b")), None, "another organisation's");
        library.remove(acme, name("own-a"));
        library.put(acme, name("own-c"), Clip::new([0])).unwrap();
        assert_eq!(library.sound(bolt, EN, name("alone")), Some(library.clip(bolt, EN, Prompt::Alone)));
    }

    #[test]
    fn every_prompt_is_spoken_in_every_language_and_an_own_one_in_all() {
        let library = Library::new();
        let acme = OrganisationId(Uuid::from_u128(1));
        for prompt in Prompt::ALL {
            let [english, german] =
                [EN, Language::German].map(|language| library.clip(acme, language, *prompt));
            let is_tune = matches!(prompt, Prompt::HoldMusic | Prompt::Joined | Prompt::Left);
            assert!(german.duration_ms() > 0, "{prompt}");
            assert_eq!(english == german, is_tune, "{prompt}");
        }
        library.put(acme, Prompt::Alone.into(), Clip::new([1, 2])).unwrap();
        for (language, _) in Language::ALL {
            assert_eq!(library.clip(acme, *language, Prompt::Alone).samples(), [1, 2], "{language}");
        }
    }
}
