//! Follows the stored prompts: a running engine plays an uploaded prompt within two seconds, on every node.

use std::collections::HashMap;
use std::time::Duration;

use sidetone_media::audio::clip::Clip;
use sidetone_model::ids::OrganisationId;
use sidetone_model::prompt::SoundName;
use sidetone_store::{Changed, Store, StoreError, StoredPrompt};
use tokio::sync::watch;

use crate::prompts::Library;

/// The prompts that a library contains so far.
#[derive(Debug, Default)]
pub struct Followed {
    revision: Option<i64>,
    /// The revision of each prompt that was read, whether or not it can be played.
    read: HashMap<(OrganisationId, SoundName), i64>,
}

impl Followed {
    /// Adds new and changed prompts to `library`, and removes deleted ones.
    ///
    /// # Errors
    /// When the database fails; prompts read before that are played.
    pub async fn catch_up(&mut self, store: &Store, library: &Library) -> Result<(), StoreError> {
        // The revision is read first: everything stored with it is then visible below.
        let revision = store.prompt_revision().await?;
        if self.revision == Some(revision) {
            return Ok(());
        }
        let stored = store.stored_prompts().await?;
        self.read.retain(|(organisation, name), _| {
            let still = stored.iter().any(|s| s.organisation == *organisation && s.name == *name);
            if !still {
                library.remove(*organisation, *name);
            }
            still
        });
        for StoredPrompt { organisation, name, revision } in stored {
            if self.read.get(&(organisation, name)) == Some(&revision) {
                continue;
            }
            // A prompt that was removed in the meantime is handled in the next pass.
            let Some(wav) = store.own_prompt(organisation, name).await? else { continue };
            play(library, organisation, name, wav).await;
            self.read.insert((organisation, name), revision);
        }
        self.revision = Some(revision);
        Ok(())
    }
}

/// Follows until it is stopped.
pub async fn follow(
    store: &Store,
    library: &Library,
    followed: &mut Followed,
    mut stop: watch::Receiver<bool>,
) {
    let mut changes = store.changes();
    let mut notices = store.event_bell().follow(Changed::Directory);
    loop {
        let is_notified = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(LOOK_EVERY) => false,
            () = notices.news_after(PAUSE) => true,
        };
        if !changes.may_have_come() && !is_notified {
            continue;
        }
        if let Err(error) = followed.catch_up(store, library).await {
            changes.forget();
            tracing::warn!(%error, "the sounds of organisations cannot be read again");
        }
    }
}

async fn play(library: &Library, organisation: OrganisationId, name: SoundName, wav: Vec<u8>) {
    let clip = tokio::task::spawn_blocking(move || Clip::from_wav(&wav)).await;
    let put = match clip {
        Ok(Ok(clip)) => library.put(organisation, name, clip).map_err(|error| error.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = put {
        library.remove(organisation, name);
        tracing::error!(organisation.id = %organisation, prompt = %name, error,
            "a sound of an organisation cannot be played, a built-in one is used if there is one");
    }
}

/// How often the task looks for changes.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The shortest time between two reads after notifications.
const PAUSE: Duration = Duration::from_millis(100);
