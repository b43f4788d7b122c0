//! Plays the script: phones for every scene, the calls, and their records.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use sidetone_media::simulate::{Scenario, ScenarioError};
use sidetone_sip::sdp::CodecPolicy;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::demo::client::{ClientError, get};
use crate::demo::conference::{Conference, ConferenceShowing};
use crate::demo::note::{self, NoteShowing};
use crate::demo::organisation::Access;
use crate::demo::result::{Record, Showing};
use crate::demo::script::{self, Callee, SCENES, Scene};
use crate::{Answering, CallPlan, Phone, PhoneConfig, PhoneError};

/// The phones of every scene, registered.
pub struct Stage {
    http: SocketAddr,
    access: Access,
    pairs: Vec<(Arc<Phone>, Phone)>,
    answering: Phone,
    conference: Conference,
}

/// The results of everything that was played.
pub struct Played {
    /// The scenes.
    pub showings: Vec<Showing>,
    /// The note into one of their calls.
    pub note: NoteShowing,
    /// The conference.
    pub conference: ConferenceShowing,
}

impl Played {
    /// Whether everything has the expected result.
    pub fn is_as_expected(&self) -> bool {
        self.showings.iter().all(Showing::is_as_expected)
            && self.note.is_as_expected()
            && self.conference.is_as_expected()
    }
}

/// Why the script could not be played.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The API request failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A record is missing.
    #[error("find the record of the call \"{0}\" in time")]
    Missing(&'static str),
    /// A phone failed.
    #[error(transparent)]
    Phone(#[from] PhoneError),
    /// A record does not have the documented form.
    #[error("read a record: {0}")]
    Record(#[from] serde_json::Error),
    /// A scene's scenario is wrong.
    #[error("read a scene: {0}")]
    Scenario(#[from] ScenarioError),
}

impl Stage {
    /// Starts all phones and registers them with the engine whose SIP is at `sip` and HTTP at `http`.
    ///
    /// # Errors
    /// When a phone has no socket, or its registration is refused.
    pub async fn set(sip: SocketAddr, http: SocketAddr, access: Access) -> Result<Stage, StageError> {
        let phone = |number: String, answering: Answering| PhoneConfig {
            codecs: CodecPolicy::new(["PCMU"]),
            answering,
            ..PhoneConfig::new(sip, access.domain, number, access.phones_password.clone())
        };
        let mut registering = JoinSet::new();
        let mut pairs = Vec::with_capacity(SCENES.len());
        for (place, scene) in SCENES.iter().enumerate() {
            let caller = Phone::start(phone(Scene::from(place), Answering::Ring)).await?;
            let config = phone(Scene::to(place), answering(scene.callee)?);
            registering.spawn(registered(config));
            pairs.push((Arc::new(caller), None));
        }
        let tone = Some(Box::new("clean duration=60m".parse()?));
        let answers = Answering::Answer { after: script::RING_TIME, talk: tone };
        let answering = registered(phone(access.answering.to_owned(), answers)).await?.1;
        while let Some(done) = registering.join_next().await {
            let (number, phone) = done.map_err(|_| PhoneError::SwitchedOff)??;
            let place = (0..pairs.len()).find(|place| Scene::to(*place) == number);
            if let Some((_, callee)) = place.and_then(|place| pairs.get_mut(place)) {
                *callee = Some(phone);
            }
        }
        let pairs = pairs.into_iter().filter_map(|(caller, callee)| Some((caller, callee?))).collect();
        let conference = Conference::set(sip, &access).await?;
        Ok(Stage { http, access, pairs, answering, conference })
    }

    /// Plays every scene at the same time, with a note into the first call and a conference, and repeats
    /// those with an unexpected verdict once.
    ///
    /// A busy machine may delay a phone's audio for so long that another verdict is correct.
    ///
    /// # Errors
    /// When a phone has stopped, or a record is missing.
    pub async fn play(&self) -> Result<Played, StageError> {
        let mut attempts = [1; SCENES.len()];
        let all: Vec<usize> = (0..SCENES.len()).collect();
        let (_, callee) = self.pairs.get(note::PLACE).ok_or(PhoneError::SwitchedOff)?;
        let (called, note, conference) = tokio::join!(
            self.call(&all),
            note::show(self.http, &self.access.key, callee),
            self.conference.show(self.http, &self.access.key)
        );
        called?;
        let showings = self.records(&attempts).await?;
        let again: Vec<usize> = showings
            .iter()
            .filter(|showing| !showing.is_as_expected())
            .map(|showing| showing.place)
            .collect();
        if again.is_empty() {
            return Ok(Played { showings: self.explained(showings).await?, note, conference });
        }
        for place in &again {
            if let Some(attempts) = attempts.get_mut(*place) {
                *attempts += 1;
            }
        }
        self.call(&again).await?;
        let showings = self.records(&attempts).await?;
        Ok(Played { showings: self.explained(showings).await?, note, conference })
    }

    /// The duration of the calls when none is repeated.
    pub fn play_time() -> Duration {
        script::PLAY_TIME
    }

    /// Registers the called phones again; a binding lasts ten minutes.
    pub async fn stay_reachable(&self) {
        // A refused registration is tried again the next time.
        let _ = self.answering.register(self.access.answering).await;
        for (place, (_, callee)) in self.pairs.iter().enumerate() {
            let _ = callee.register(&Scene::to(place)).await;
        }
    }

    /// Whether a record belongs to a call of the conference's phones.
    pub fn is_of_the_conference(record: &Record) -> bool {
        record.caller_number.as_deref().is_some_and(Conference::is_by)
    }

    /// The latest records, newest first.
    ///
    /// # Errors
    /// When the API request fails, or the answer has no records.
    pub async fn latest(&self) -> Result<Vec<(Record, Value)>, StageError> {
        let path = format!("/api/v1/cdrs?limit={PAGE_LEN}");
        let mut page = get(self.http, &path, &self.access.key).await?;
        let items = page.get_mut("items").map(Value::take);
        let Some(Value::Array(items)) = items else {
            return Err(ClientError::Answer { path }.into());
        };
        items.into_iter().map(|json| Ok((Record::deserialize(&json)?, json))).collect()
    }

    /// Returns the explanation of the verdict of a record's call; null if it was not analysed.
    ///
    /// # Errors
    /// When the API request fails.
    pub async fn quality(&self, record: &Record) -> Result<Value, ClientError> {
        let path = format!("/api/v1/cdrs/{}/quality?timeline=false", record.call_uuid);
        match get(self.http, &path, &self.access.key).await {
            Err(ClientError::Refused { status: 404, .. }) => Ok(Value::Null),
            answer => answer,
        }
    }

    /// Adds the explanation to each result.
    async fn explained(&self, mut showings: Vec<Showing>) -> Result<Vec<Showing>, StageError> {
        for showing in &mut showings {
            showing.quality = self.quality(&showing.record).await?;
        }
        Ok(showings)
    }

    /// Places the calls of the scenes at `places` at the same time, and waits for their ends.
    async fn call(&self, places: &[usize]) -> Result<(), StageError> {
        let mut calls = JoinSet::new();
        for &place in places {
            let (Some(scene), Some((caller, _))) = (SCENES.get(place), self.pairs.get(place)) else {
                continue;
            };
            let (plan, caller) = (plan(scene, place)?, Arc::clone(caller));
            calls.spawn(async move { caller.call(plan).await });
        }
        while let Some(done) = calls.join_next().await {
            // The result of the call is in its record.
            let _ = done.map_err(|_| PhoneError::SwitchedOff)??;
        }
        Ok(())
    }

    /// Waits until the API has as many records of every scene as there were attempts.
    async fn records(&self, attempts: &[u32; SCENES.len()]) -> Result<Vec<Showing>, StageError> {
        let deadline = Instant::now() + RECORDS_MAX;
        loop {
            let latest = self.latest().await?;
            let showings: Vec<Option<Showing>> = SCENES
                .iter()
                .zip(attempts)
                .enumerate()
                .map(|(place, (scene, &attempts))| showing(&latest, place, *scene, attempts))
                .collect();
            let missing = SCENES.iter().zip(&showings).find(|(_, showing)| showing.is_none());
            match missing {
                None => return Ok(showings.into_iter().flatten().collect()),
                Some((scene, _)) if Instant::now() > deadline => return Err(StageError::Missing(scene.name)),
                Some(_) => tokio::time::sleep(RECORDS_EVERY).await,
            }
        }
    }
}

/// The scene's newest record, if there are as many as there were attempts.
fn showing(latest: &[(Record, Value)], place: usize, scene: Scene, attempts: u32) -> Option<Showing> {
    let from = Scene::from(place);
    let mut own = latest.iter().filter(|(record, _)| record.caller_number.as_deref() == Some(from.as_str()));
    let (record, json) = own.next()?.clone();
    let count = 1 + own.count();
    let showing = Showing { scene, place, attempts, json, record, quality: Value::Null };
    (u32::try_from(count).ok()? >= attempts).then_some(showing)
}

async fn registered(config: PhoneConfig) -> Result<(String, Phone), PhoneError> {
    let number = config.number.clone();
    let phone = Phone::start(config).await?;
    phone.register(&number).await?;
    Ok((number, phone))
}

fn answering(callee: Callee) -> Result<Answering, ScenarioError> {
    let after = script::RING_TIME;
    Ok(match callee {
        Callee::Listens => Answering::Answer { after, talk: None },
        Callee::Refuses(status) => Answering::Refuse(status),
        Callee::Rings => Answering::Ring,
        Callee::Talks => Answering::Answer { after, talk: Some(Box::new("clean".parse()?)) },
    })
}

fn plan(scene: &Scene, place: usize) -> Result<CallPlan, ScenarioError> {
    let talk = scene.caller.map(str::parse::<Scenario>).transpose()?;
    Ok(CallPlan {
        talk: talk.map(Box::new),
        talk_time: Some(script::TALK_TIME),
        patience: matches!(scene.callee, Callee::Rings).then_some(script::PATIENCE),
        hold: scene.holds.then_some(script::HOLD),
        advertised: scene.misplaced.then_some(NOWHERE),
        ..CallPlan::to(Scene::to(place))
    })
}

/// TEST-NET-1 (RFC 5737): an unused address.
const NOWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// Records per request; both attempts of every scene fit.
const PAGE_LEN: usize = 100;
/// How often the API is polled while records are missing.
const RECORDS_EVERY: Duration = Duration::from_millis(200);
/// How long the records may take after the last call.
const RECORDS_MAX: Duration = Duration::from_secs(15);
