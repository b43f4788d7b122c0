//! The recorded names of room members: found, recorded, kept while their legs are up, and stored for extensions.
//!
//! The driver requests a name and plays it from memory. A separate task queries the database and reports the result
//! to the switch. The name of a party that is not an extension is only in memory, and is dropped with the leg.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sidetone_media::audio::clip::Clip;
use sidetone_media::audio::wav;
use sidetone_media::mix::FrameSink;
use sidetone_media::time::Micros;
use sidetone_model::ids::{ExtensionId, LegId, OrganisationId};
use sidetone_model::time::Timestamp;
use sidetone_store::Store;
use tokio::sync::mpsc;

use crate::driver::{Handle, Request};

/// The names of legs; clones share them.
#[derive(Clone, Debug)]
pub struct SpokenNames {
    names: Names,
    jobs: mpsc::Sender<Job>,
}

/// The names by leg; `None` while the name is looked up or recorded.
type Names = Arc<Mutex<HashMap<LegId, (OrganisationId, Option<Arc<Clip>>)>>>;

/// Work for the task that queries the database.
#[derive(Debug)]
struct Job {
    leg: LegId,
    organisation: OrganisationId,
    extension: Option<ExtensionId>,
    /// The recording; `None` looks up the stored name.
    samples: Option<Vec<i16>>,
}

/// The state of the task.
pub struct NameKeeper {
    names: Names,
    jobs: mpsc::Receiver<Job>,
    store: Store,
    switch: Handle,
    clock: fn() -> Timestamp,
}

impl SpokenNames {
    /// No names, and the state of the task that [`keep_names`] runs.
    pub fn new(store: Store, switch: Handle, clock: fn() -> Timestamp) -> (SpokenNames, NameKeeper) {
        let (to_jobs, jobs) = mpsc::channel(JOBS_MAX);
        let names = Names::default();
        let keeper = NameKeeper { names: Arc::clone(&names), jobs, store, switch, clock };
        (SpokenNames { names, jobs: to_jobs }, keeper)
    }

    /// Looks up the name of an extension; the switch gets the result. Without space the switch stops waiting.
    pub fn find(&self, leg: LegId, organisation: OrganisationId, extension: ExtensionId) {
        if self.reserve(leg, organisation) {
            // The queue is full if the database is too slow; the caller then joins without a name.
            let _ = self.jobs.try_send(Job { leg, organisation, extension: Some(extension), samples: None });
        }
    }

    /// Returns the sink of a recording that becomes the name of a leg; `None` when there is no space for it.
    pub fn record(
        &self,
        leg: LegId,
        organisation: OrganisationId,
        extension: Option<ExtensionId>,
    ) -> Option<NameSink> {
        let job = Job { leg, organisation, extension, samples: Some(Vec::with_capacity(SAMPLES_MAX)) };
        self.reserve(leg, organisation).then(|| NameSink { job: Some(job), jobs: self.jobs.clone() })
    }

    /// Returns the name of a leg, if the room is of the same organisation.
    pub fn clip(&self, leg: LegId, organisation: OrganisationId) -> Option<Arc<Clip>> {
        let names = self.names.lock();
        let (owner, clip) = names.get(&leg)?;
        clip.clone().filter(|_| *owner == organisation)
    }

    /// Forgets the name of a leg.
    pub fn forget(&self, leg: LegId) {
        self.names.lock().remove(&leg);
    }

    /// Makes space for the name of a leg; returns whether there is space.
    fn reserve(&self, leg: LegId, organisation: OrganisationId) -> bool {
        let mut names = self.names.lock();
        if names.contains_key(&leg) {
            return true;
        }
        let of_organisation = names.values().filter(|(owner, _)| *owner == organisation).count();
        let is_full = names.len() >= NAMES_MAX || of_organisation >= ORGANISATION_NAMES_MAX;
        if !is_full {
            names.insert(leg, (organisation, None));
        }
        !is_full
    }
}

/// Takes the frames of a recording; when it is dropped, they are passed on.
#[derive(Debug)]
pub struct NameSink {
    job: Option<Job>,
    jobs: mpsc::Sender<Job>,
}

impl FrameSink for NameSink {
    fn frame(&mut self, _at: Micros, pcm_16k: &[i16]) -> bool {
        let Some(samples) = self.job.as_mut().and_then(|job| job.samples.as_mut()) else { return false };
        let fits = samples.len() + pcm_16k.len() <= SAMPLES_MAX;
        if fits {
            samples.extend_from_slice(pcm_16k);
        }
        fits
    }
}

impl Drop for NameSink {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            // If the queue is full, the switch stops waiting, and the caller joins without a name.
            let _ = self.jobs.try_send(job);
        }
    }
}

/// Finds and stores names, until the driver has ended.
pub(crate) async fn keep_names(keeper: &mut NameKeeper) {
    while let Some(job) = keeper.jobs.recv().await {
        let leg = job.leg;
        let clip = match tokio::time::timeout(JOB_MAX, keeper.work(job)).await {
            Ok(clip) => clip,
            Err(_) => {
                tracing::warn!("a spoken name was not found or stored in time");
                None
            }
        };
        let is_known = keeper.keep(leg, clip);
        if !keeper.switch.send(Request::NameKnown(leg, is_known)).await {
            return;
        }
    }
}

impl NameKeeper {
    /// Keeps the name of a leg that still waits for it; returns `false` if the leg or the name is missing.
    fn keep(&self, leg: LegId, clip: Option<Arc<Clip>>) -> bool {
        let mut names = self.names.lock();
        match (names.get_mut(&leg), clip) {
            (Some((_, place)), Some(clip)) => {
                *place = Some(clip);
                true
            }
            _ => false,
        }
    }

    /// Executes one job; returns the name.
    async fn work(&self, job: Job) -> Option<Arc<Clip>> {
        match job.samples {
            None => self.stored(job.organisation, job.extension?).await,
            Some(samples) => {
                // An ended leg has no entry any more: its party hung up while speaking.
                self.names.lock().get(&job.leg)?;
                let spoken = spoken(&samples)?;
                if let Some(extension) = job.extension {
                    self.store(job.organisation, extension, spoken).await;
                }
                Some(Arc::new(Clip::new(spoken)))
            }
        }
    }

    async fn stored(&self, organisation: OrganisationId, extension: ExtensionId) -> Option<Arc<Clip>> {
        let found = match self.store.spoken_name(organisation, extension).await {
            Ok(found) => found?,
            Err(error) => {
                tracing::warn!(%error, extension.id = %extension, "a spoken name cannot be read");
                return None;
            }
        };
        let clip = tokio::task::spawn_blocking(move || Clip::from_wav(&found)).await;
        clip.ok()?.ok().map(Arc::new)
    }

    async fn store(&self, organisation: OrganisationId, extension: ExtensionId, samples: &[i16]) {
        let mut file = wav::header(Clip::RATE_HZ, samples.len() as u64 * 2).to_vec();
        file.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
        let stored = self.store.put_spoken_name(organisation, extension, &file, (self.clock)()).await;
        if let Err(error) = stored {
            tracing::warn!(%error, extension.id = %extension, "a spoken name is not kept: it will be asked for again");
        }
    }
}

/// Returns the part of a recording that contains speech; `None` if it is too short for a name.
fn spoken(samples: &[i16]) -> Option<&[i16]> {
    let is_loud = |frame: &[i16]| {
        let power: i64 = frame.iter().map(|sample| i64::from(*sample) * i64::from(*sample)).sum();
        power > LOUD_POWER * FRAME as i64
    };
    let loud: Vec<usize> = samples
        .chunks_exact(FRAME)
        .enumerate()
        .filter(|(_, frame)| is_loud(frame))
        .map(|(at, _)| at)
        .collect();
    let (first, last) = (*loud.first()?, *loud.last()?);
    if loud.len() < LOUD_FRAMES_MIN {
        return None;
    }
    let begin = first.saturating_sub(MARGIN) * FRAME;
    let end = ((last + 1 + MARGIN) * FRAME).min(samples.len());
    samples.get(begin..end)
}

/// 20 ms at 16 kHz.
const FRAME: usize = 320;
/// The mean square above which a frame is not background noise: -45 dBov.
const LOUD_POWER: i64 = 33_900;
/// Frames of speech in the shortest name: 0.2 s.
const LOUD_FRAMES_MIN: usize = 10;
/// Frames that are kept before and after the speech: 0.1 s.
const MARGIN: usize = 5;
/// The longest name: 5 s.
const SAMPLES_MAX: usize = 5 * 16_000;
/// Names in memory: 160 kB each at most.
const NAMES_MAX: usize = 4_000;
/// Names of one organisation in memory.
const ORGANISATION_NAMES_MAX: usize = 400;
/// Jobs that wait.
const JOBS_MAX: usize = 256;
/// How long a job may take; the switch waits for two seconds.
const JOB_MAX: Duration = Duration::from_millis(1_500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_speech_is_a_name() {
        let tone = |len: usize, level: i16| -> Vec<i16> {
            (0..len).map(|at| if at % 16 < 8 { level } else { -level }).collect()
        };
        let silence = vec![0; 16_000];
        assert_eq!(spoken(&[]), None);
        assert_eq!(spoken(&silence), None);
        assert_eq!(spoken(&tone(16_000, 100)), None, "a background of -50 dBov is no name");
        assert_eq!(spoken(&tone(9 * FRAME, 3_000)), None, "a click is no name");
        let padded = [silence.clone(), tone(16_000, 3_000), silence].concat();
        assert_eq!(spoken(&padded).map(<[i16]>::len), Some(16_000 + 2 * MARGIN * FRAME));
    }
}
