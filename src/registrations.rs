//! Keeps the registrations of phones across a restart.
//!
//! A file in the data directory has a line of JSON for each extension whose bindings changed; the last line of an
//! extension counts. It is written once a second, so that a killed process loses the registrations of its last
//! second, and once more when the switch has ended. Only bindings over UDP are kept: a connection ends with the process, and its phone registers again.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sidetone_model::registration::KeptExtension;
use sidetone_model::time::Timestamp;
use sidetone_switch::queries::{RestoreBindings, TakeChangedBindings};
use tokio::sync::watch;

use crate::driver::{AskError, Handle};

/// The file of registrations, and the sockets that its bindings refer to.
#[derive(Debug, Clone)]
pub struct KeptRegistrations {
    path: PathBuf,
    /// The configured addresses of the UDP listeners, in order. A socket is identified by its address.
    listeners: Vec<SocketAddr>,
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    extension: KeptExtension,
    /// The configured address of the socket of each binding.
    sockets: Vec<SocketAddr>,
}

impl KeptRegistrations {
    /// The file in `data_dir`, with bindings at these UDP listeners.
    pub fn new(data_dir: &Path, listeners: Vec<SocketAddr>) -> Self {
        Self { path: data_dir.join("registrations.jsonl"), listeners }
    }

    /// Restores the registrations, then writes their changes until it is stopped.
    pub async fn run(&self, switch: &Handle, clock: fn() -> Timestamp, mut stop: watch::Receiver<bool>) {
        let now = clock();
        let kept = match self.blocking(move |file| file.load(now)).await {
            Ok(kept) => kept,
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "registrations of before cannot be read");
                Vec::new()
            }
        };
        // After a panic of this task too: existing registrations are not changed.
        if !kept.is_empty() {
            match switch.ask(RestoreBindings(kept)).await {
                Ok(registrations) => {
                    tracing::info!(registrations, "registrations of before the restart are kept")
                }
                Err(error) => tracing::warn!(%error, "registrations of before are not restored"),
            }
        }
        let mut is_failing = false;
        loop {
            let is_last = tokio::select! {
                // An error means that the sender was dropped, which stops this task too.
                _ = stop.wait_for(|stop| *stop) => true,
                () = tokio::time::sleep(WRITE_EVERY) => false,
            };
            match self.write_changes(switch, clock).await {
                Ok(()) => is_failing = false,
                Err(error) if !is_failing => {
                    is_failing = true;
                    tracing::warn!(path = %self.path.display(), %error, "registrations cannot be written now");
                }
                Err(_) => {}
            }
            if is_last {
                return;
            }
        }
    }

    async fn write_changes(&self, switch: &Handle, clock: fn() -> Timestamp) -> io::Result<()> {
        loop {
            // Each query is a short piece of work for the task that handles SIP.
            let changed = match switch.ask(TakeChangedBindings(TAKEN_AT_ONCE)).await {
                Ok(changed) => changed,
                Err(AskError::Stopped) => switch.last_bindings(),
                Err(error) => return Err(io::Error::other(error)),
            };
            let is_all = changed.len() < TAKEN_AT_ONCE;
            if !changed.is_empty() {
                let now = clock();
                self.blocking(move |file| match file.append(changed)? {
                    ..=LONG_BYTES => Ok(()),
                    _ => file.load(now).map(drop),
                })
                .await?;
            }
            if is_all {
                return Ok(());
            }
        }
    }

    /// Runs file operations on a thread for blocking work.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let file = self.clone();
        tokio::task::spawn_blocking(move || work(&file)).await.map_err(io::Error::other)?
    }

    /// Adds lines; returns the length of the file.
    fn append(&self, changed: Vec<KeptExtension>) -> io::Result<u64> {
        let mut text = Vec::new();
        for extension in changed {
            self.put(&mut text, extension)?;
        }
        let mut file = OpenOptions::new().append(true).create(true).mode(OWNER_ONLY).open(&self.path)?;
        file.write_all(&text)?;
        Ok(file.metadata()?.len())
    }

    fn put(&self, text: &mut Vec<u8>, mut extension: KeptExtension) -> io::Result<()> {
        let mut sockets = Vec::with_capacity(extension.bindings.len());
        extension.bindings.retain(|binding| {
            let socket = self.listeners.get(binding.listener as usize);
            sockets.extend(socket);
            socket.is_some()
        });
        serde_json::to_writer(&mut *text, &Line { extension, sockets })?;
        text.push(b'\n');
        Ok(())
    }

    /// Reads the bindings that have not expired, and rewrites the file with only these.
    fn load(&self, now: Timestamp) -> io::Result<Vec<KeptExtension>> {
        let mut extensions = HashMap::new();
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        for line in BufReader::new(file).split(b'\n') {
            // A line that a crash truncated is ignored; the one before it counts.
            let Ok(Line { mut extension, sockets }) = serde_json::from_slice(&line?) else { continue };
            let mut sockets = sockets.into_iter();
            extension.bindings.retain_mut(|binding| {
                let socket = sockets.next();
                let listener = self.listeners.iter().position(|address| Some(*address) == socket);
                let Some(listener) = listener.and_then(|at| u32::try_from(at).ok()) else { return false };
                binding.listener = listener;
                binding.expires_at > now
            });
            extensions.insert(extension.extension_id, extension);
        }
        extensions.retain(|_, extension| !extension.bindings.is_empty());
        let kept: Vec<KeptExtension> = extensions.into_values().collect();
        self.replace(&kept)?;
        Ok(kept)
    }

    fn replace(&self, kept: &[KeptExtension]) -> io::Result<()> {
        let mut text = Vec::new();
        for extension in kept {
            self.put(&mut text, extension.clone())?;
        }
        let new = self.path.with_extension("new");
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(OWNER_ONLY).open(&new)?;
        file.write_all(&text)?;
        fs::rename(&new, &self.path)
    }
}

const WRITE_EVERY: Duration = Duration::from_secs(1);
/// Extensions per query.
const TAKEN_AT_ONCE: usize = 500;
const OWNER_ONLY: u32 = 0o600;
/// A longer file is rewritten with only the current lines: 50,000 registrations take half of it.
const LONG_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use sidetone_model::ids::ExtensionId;
    use sidetone_model::registration::KeptBinding;
    use uuid::Uuid;

    use super::*;

    /// The file contains milliseconds.
    fn at(ms: i64) -> Timestamp {
        Timestamp::from_micros(1_000 * ms)
    }

    fn extension(number: u128, listeners: &[u32], expires_ms: i64) -> KeptExtension {
        let binding = |listener: &u32| KeptBinding {
            contact: format!("sip:{number}@192.0.2.9:{listener}"),
            listener: *listener,
            remote: ([192, 0, 2, 9], 5060).into(),
            path: vec!["<sip:edge.test;lr>".to_owned()],
            q_permille: 1_000,
            instance: Some("<urn:uuid:7>".to_owned()),
            reg_id: Some(1),
            has_ice: *listener == 1,
            user_agent: None,
            call_id: "a".to_owned(),
            cseq: 7,
            registered_at: at(1),
            expires_at: at(expires_ms),
        };
        KeptExtension {
            extension_id: ExtensionId(Uuid::from_u128(number)),
            aor: format!("{number}@acme.test"),
            credential: "c0".to_owned(),
            bindings: listeners.iter().map(binding).collect(),
        }
    }

    #[test]
    fn the_last_line_of_an_extension_counts() {
        let dir = std::env::temp_dir().join(format!("sidetone-registrations-{}", Uuid::new_v4()));
        fs::create_dir_all(&dir).unwrap();
        let [one, two]: [SocketAddr; 2] = [([127, 0, 0, 1], 5060).into(), ([127, 0, 0, 1], 5062).into()];
        let kept = KeptRegistrations::new(&dir, vec![one, two]);
        assert_eq!(kept.load(at(0)).unwrap(), [], "no file");
        kept.append(vec![extension(1, &[0], 100), extension(2, &[1], 100), extension(3, &[0], 100)]).unwrap();
        kept.append(vec![extension(3, &[], 0), extension(1, &[0, 1], 200), extension(4, &[0], 50)]).unwrap();
        // Truncated by a crash.
        let mut file = OpenOptions::new().append(true).open(&kept.path).unwrap();
        file.write_all(b"{\"extension_id\":\"0000").unwrap();
        let sorted = |kept: &KeptRegistrations, now| {
            let mut extensions = kept.load(at(now)).unwrap();
            extensions.sort_by_key(|extension| extension.extension_id);
            extensions
        };
        let expected = [extension(1, &[0, 1], 200), extension(2, &[1], 100)];
        assert_eq!(sorted(&kept, 50), expected, "one removed, one expired");
        assert_eq!(sorted(&kept, 50), expected, "the file was rewritten");
        // The first socket no longer exists, and the second one is now the first.
        let moved = KeptRegistrations::new(&dir, vec![two]);
        let mut other = extension(1, &[1], 200);
        other.bindings[0].listener = 0;
        assert_eq!(sorted(&moved, 100), [other]);
        fs::remove_dir_all(&dir).unwrap();
    }
}
