//! The machine with a model of everything its outputs act on; checks invariants after every input.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sidetone_model::ids::{CallId, ConferenceSessionId, ExtensionId, LegId, OrganisationId, RoomId};
use sidetone_model::pin_guessing::PinGuessing;
use sidetone_model::room::event::RoomChange;
use sidetone_model::room::{
    Control, ControlDone, ControlRefused, DialRequest, Exemption, MemberGain, Role, RoomConfig, RoomDialled,
    RoomName, rules,
};
use sidetone_model::time::{Now, Timestamp};
use uuid::Uuid;

use crate::conference::tests::reader::Reader;
use crate::conference::{Arrival, DialId, Goal, Hears, Input, Output, RoomDirectory, Rooms, RoomsConfig};

#[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
pub(in crate::conference) fn any_instant() -> Instant {
    Instant::now()
}

pub(super) const ACME: OrganisationId = OrganisationId(Uuid::from_u128(0xac));
pub(super) const ROOM: RoomId = RoomId(Uuid::from_u128(200));

/// The extensions of the organisation, by name and number.
pub(super) const STAFF: [(&str, &str); 4] = [("ada", "101"), ("bob", "102"), ("cy", "103"), ("dee", "104")];

pub(super) fn extension(name: &str) -> Option<ExtensionId> {
    let place = STAFF.iter().position(|(staff, _)| *staff == name)?;
    Some(ExtensionId(Uuid::from_u128(101 + place as u128)))
}

/// A room with the number 200 and no other settings.
pub(super) fn plain() -> RoomConfig {
    RoomConfig {
        id: ROOM,
        organisation_id: ACME,
        name: "Board".into(),
        number: "200".into(),
        participant_pin: pin(""),
        moderator_pin: pin(""),
        wait_for_moderator: false,
        end_when_moderator_leaves: false,
        record: false,
        record_channels: 1,
        announce_names: false,
        max_members: 0,
        exemptions: Vec::new(),
        members: Vec::new(),
    }
}

pub(super) fn pin(digits: &str) -> sidetone_model::room::Pin {
    rules::pin(digits).unwrap()
}

pub(super) fn exempt(name: &str, role: Role) -> Exemption {
    Exemption { extension_id: extension(name).unwrap(), role }
}

pub(super) fn directory(rooms: &[RoomConfig]) -> Arc<RoomDirectory> {
    let names: HashMap<_, _> =
        STAFF.iter().map(|(name, number)| (extension(name).unwrap(), (*number, *name))).collect();
    Arc::new(RoomDirectory::new(rooms, |id| {
        names.get(&id).map(|(number, name)| ((*number).into(), (*name).into()))
    }))
}

/// The state of a leg that the last outputs set.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub(super) mix: Option<u64>,
    pub(super) muted: bool,
    pub(super) music: bool,
    pub(super) deaf: bool,
    pub(super) gain: MemberGain,
    pub(super) whisper_to: Option<LegId>,
    pub(super) token: u64,
}

pub(super) struct World {
    pub(super) rooms: Rooms,
    start: Instant,
    pub(super) now: Now,
    /// Legs that arrived and were neither hung up nor reported as ended.
    pub(super) up: BTreeMap<LegId, Told>,
    /// Legs that were hung up and not yet reported as ended.
    pub(super) hung_up: BTreeSet<LegId>,
    /// The calls that are being placed.
    pub(super) dials: BTreeMap<DialId, String>,
    /// The calls that a client requested, and whether such a request is being handled now.
    by_hand: BTreeSet<DialId>,
    asks: bool,
    /// The state built from the events.
    pub(super) reader: Reader,
    rang: HashMap<String, Instant>,
    /// Recordings that were started and whose end is not reported yet.
    recording: Vec<ConferenceSessionId>,
    pub(super) outputs: Vec<Output>,
    /// The limits on wrong PINs that were reached.
    pub(super) guessed: Vec<PinGuessing>,
}

impl World {
    pub(super) fn new(rooms: &[RoomConfig], config: RoomsConfig, seed: u64) -> World {
        let start = any_instant();
        let mut world = World {
            rooms: Rooms::new(config, seed),
            start,
            now: Now { instant: start, wall: Timestamp::from_micros(0) },
            up: BTreeMap::new(),
            hung_up: BTreeSet::new(),
            dials: BTreeMap::new(),
            by_hand: BTreeSet::new(),
            asks: false,
            reader: Reader::default(),
            rang: HashMap::new(),
            recording: Vec::new(),
            outputs: Vec::new(),
            guessed: Vec::new(),
        };
        world.feed(Input::Directory(directory(rooms)));
        world
    }

    pub(super) fn leg(name: &str) -> LegId {
        LegId(Uuid::from_u128(name.bytes().fold(0, |sum, byte| sum << 8 | u128::from(byte))))
    }

    /// Returns the name that a leg id was made from.
    pub(super) fn name(leg: LegId) -> String {
        String::from_utf8(leg.0.into_bytes().into_iter().filter(|byte| *byte != 0).collect()).unwrap()
    }

    /// Returns the arrival of a party by name: an extension of the organisation, else an outside party.
    pub(super) fn arrival(name: &str, goal: Goal) -> Arrival {
        let staff = STAFF.iter().find(|(staff, _)| *staff == name);
        Arrival {
            leg: World::leg(name),
            call: CallId(World::leg(name).0),
            organisation: ACME,
            number: staff
                .map_or(format!("+44{}", World::leg(name).0.as_u128() % 1_000_000), |(_, number)| {
                    (*number).into()
                }),
            name: staff.map_or(String::new(), |(name, _)| (*name).into()),
            extension: extension(name),
            team: None,
            trunk: None,
            device: None,
            is_silent: false,
            is_forwarded: false,
            returns: None,
            goal,
        }
    }

    pub(super) fn feed(&mut self, input: Input) {
        match &input {
            Input::Arrived(who) => {
                self.up.insert(who.leg, Told::default());
                if let Goal::Dialled { dial } = &who.goal {
                    self.dials.remove(dial);
                }
            }
            Input::Gone(leg, _) => {
                self.up.remove(leg);
                self.hung_up.remove(leg);
            }
            Input::DialFailed { dial, .. } => drop(self.dials.remove(dial)),
            Input::Ringing(dial) if !self.by_hand.contains(dial) => {
                let target = self.dials.get(dial).cloned().unwrap_or_default();
                self.rang.insert(target, self.now.instant);
            }
            _ => {}
        }
        self.rooms.handle_input(self.now, input);
        self.drain();
    }

    pub(super) fn control(
        &mut self,
        name: RoomName,
        control: Control,
    ) -> Result<ControlDone, ControlRefused> {
        let done = self.rooms.control(self.now, name, control);
        self.drain();
        done
    }

    pub(super) fn start(&self) -> Instant {
        self.start
    }

    /// Advances the time and feeds the timeouts on the way.
    pub(super) fn pass(&mut self, time: Duration) {
        let until = self.now.instant + time;
        let mut turns = 0;
        while let Some(due) = self.rooms.next_timeout().filter(|due| *due <= until) {
            turns += 1;
            assert!(turns < 1_000_000, "time stands still");
            self.set_clock(due.max(self.now.instant));
            self.feed(Input::Timeout);
        }
        self.set_clock(until);
    }

    fn set_clock(&mut self, instant: Instant) {
        let micros = i64::try_from((instant - self.start).as_micros()).unwrap();
        self.now = Now { instant, wall: Timestamp::from_micros(micros) };
    }

    pub(super) fn drain(&mut self) {
        while let Some(output) = self.rooms.poll_output() {
            self.carry_out(&output);
            self.outputs.push(output);
        }
        self.hold_laws();
    }

    /// Takes a session whose recording may be reported as ended.
    pub(super) fn next_recorded(&mut self) -> Option<ConferenceSessionId> {
        (!self.recording.is_empty()).then(|| self.recording.remove(0))
    }

    /// Dials a target as the HTTP API does.
    pub(super) fn dial(&mut self, request: DialRequest) -> Result<RoomDialled, ControlRefused> {
        self.asks = true;
        let done = self.rooms.dial(self.now, ROOM, request);
        self.drain();
        self.asks = false;
        if let Ok(dialled) = &done {
            // The call of a default member may be the client's from now on, and outlives the session.
            let rung = self.dials.iter().filter(|(_, target)| **target == dialled.target);
            self.by_hand.extend(rung.map(|(dial, _)| *dial));
        }
        done
    }

    fn told(&mut self, leg: LegId) -> &mut Told {
        self.up.get_mut(&leg).unwrap_or_else(|| panic!("{} is told something and is gone", World::name(leg)))
    }

    fn carry_out(&mut self, output: &Output) {
        match output {
            Output::CancelDial(dial) => assert!(self.dials.remove(dial).is_some(), "{dial:?} is not rung"),
            Output::Dial(dial) => {
                let before = self.dials.insert(dial.id, dial.target.clone());
                assert_eq!(before, None, "a dial's id is given twice");
                if self.asks {
                    self.by_hand.insert(dial.id);
                } else if let Some(rang) = self.rang.get(&dial.target) {
                    assert!(self.now.instant - *rang >= Duration::from_secs(30), "rung twice in 30 s");
                }
            }
            Output::HangUp(leg, _) => {
                self.told(*leg);
                self.up.remove(leg);
                self.hung_up.insert(*leg);
            }
            Output::Gain(leg, gain) => self.told(*leg).gain = *gain,
            Output::Hear(leg, hears) => {
                let told = self.told(*leg);
                (told.music, told.deaf) = (*hears == Hears::Music, *hears == Hears::Nothing);
            }
            Output::Whisper(leg, to) => self.told(*leg).whisper_to = *to,
            Output::Join { leg, mix, muted, hears, .. } => {
                let (muted, music) = (*muted, *hears == Hears::Music);
                let deaf = *hears == Hears::Nothing;
                *self.told(*leg) = Told { mix: Some(mix.0), muted, music, deaf, ..Told::default() };
            }
            Output::Mute(leg, muted) => self.told(*leg).muted = *muted,
            Output::Event(news) => {
                self.reader.read(news);
                if news.what == RoomChange::Ended {
                    // The next session may ring again immediately.
                    self.rang.clear();
                }
            }
            Output::Note(note) => {
                let payload = serde_json::to_string(&note.payload).unwrap();
                assert!(payload.len() + r#""id":"00000000-0000-0000-0000-000000000000","#.len() < 4096);
                assert!(!note.to.is_empty());
                for phone in &note.to {
                    self.told(phone.leg);
                }
            }
            Output::Play(leg, prompts, token) => {
                assert!(!prompts.is_empty());
                let told = self.told(*leg);
                assert!(told.mix.is_some(), "played to a leg in no mix");
                told.token = *token;
            }
            Output::Doubt(leg) => drop(self.told(*leg)),
            Output::Seek(leg, _) | Output::StopPlaying(leg) => drop(self.told(*leg)),
            Output::RecordChannels(_, session, _) | Output::Record(_, session, _) => {
                self.recording.push(*session)
            }
            Output::PinGuessing(guessing) => self.guessed.push(guessing.clone()),
            Output::DialFailed(failed) => assert_eq!(failed.organisation_id, ACME),
            Output::RecordingFailed(failed) => assert_eq!(failed.organisation_id, ACME),
            Output::Name(..)
            | Output::PlayAll(..)
            | Output::PlaySound { .. }
            | Output::Left(..)
            | Output::StopRecording(_)
            | Output::StopSound(..) => {}
        }
    }

    fn hold_laws(&self) {
        let live: Vec<_> = self.rooms.live(self.now.wall).collect();
        self.reader.agrees(live.clone());

        let mut mixes = HashMap::new();
        for room in &live {
            for member in &room.members {
                let leg = LegId(member.call_uuid.0);
                let told = self.up.get(&leg).expect("a member whose leg is gone");
                let mix = told.mix.expect("a member in no mix");
                assert_eq!(*mixes.entry(mix).or_insert(room.room), room.room, "rooms share a mix");
                assert!(told.muted || !member.muted, "{member:?} is muted and heard");
                assert_eq!(told.muted, member.muted || told.music);
                assert!(!(member.talking && told.muted), "{member:?} talks and is not heard");
                assert_eq!(told.music, member.on_hold || member.waiting);
                assert!(!member.waiting || member.role == Role::Participant);
                assert_eq!(told.deaf, member.deaf && !told.music);
                assert_eq!(told.gain, member.gain);
                let listener = member.whisper_to.map(|to| {
                    let listener = room.members.iter().find(|other| other.id == to);
                    LegId(listener.expect("a whisper to a member who is gone").call_uuid.0)
                });
                assert_eq!(told.whisper_to, listener);
                assert!(!member.mute_locked || member.muted && member.role == Role::Participant);
            }
            let of = |mix| {
                live.iter()
                    .flat_map(|room| &room.members)
                    .filter(move |m| self.up[&LegId(m.call_uuid.0)].mix == Some(mix))
                    .count()
            };
            let mixes: BTreeSet<_> =
                room.members.iter().filter_map(|m| self.up[&LegId(m.call_uuid.0)].mix).collect();
            assert_eq!(mixes.len(), 1, "a room in two mixes");
            assert_eq!(of(*mixes.first().unwrap()), room.members.len());
        }
        let seated: BTreeSet<_> =
            live.iter().flat_map(|room| room.members.iter().map(|m| LegId(m.call_uuid.0))).collect();
        for (leg, told) in &self.up {
            assert!(self.rooms.knows(*leg), "{} is forgotten", World::name(*leg));
            assert!(told.mix.is_some(), "{} hears nothing", World::name(*leg));
            if !seated.contains(leg) {
                assert!(self.rooms.next_timeout().is_some(), "somebody waits without end");
            }
        }
    }
}
