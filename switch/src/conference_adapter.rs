//! Connects conference rooms and calls: carries out the outputs of the rooms, and feeds them the events of
//! legs.
//!
//! Rooms identify legs by [`LegId`] and handle no SIP and no ports. A leg belongs to the rooms from
//! [`Output::Seat`] of its call to [`Output::Left`]. Every end of a leg, for any reason, reaches the rooms
//! through `Left`.
//!
//! [`Output::Left`]: crate::io::Output::Left
//! [`Output::Seat`]: crate::io::Output::Seat

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use sidetone_media::mix::{Gain, MixId};
use sidetone_model::call::HangupCause;
use sidetone_model::ids::{CallId, ExtensionId, LegId, OrganisationId, RoomId};
use sidetone_model::language::Language;
use sidetone_model::prompt::SoundName;
use sidetone_model::room::MemberGain;
use sidetone_model::time::Now;

use crate::call_table::CallTable;
use crate::conference::{
    self, Arrival, DeviceId, Dial, DialEnd, DialId, Goal, Hears, NameOrder, PinCaller, RoomDirectory, Rooms,
    RoomsConfig,
};
use crate::dtmf::{DtmfSource, Keys};
use crate::io::{Input, MediaCommand, Party, PortId};
use crate::live::LiveCall;
use crate::mixing::{MixOrder, RecordingPlan, SeatHears};
use crate::routing::Directory;
use crate::switch_io::{Notice, Output, Outputs};

/// The rooms, and the legs and calls that belong to them.
pub(super) struct Conferences {
    pub(super) rooms: Rooms,
    pub(super) seats: HashMap<LegId, Seat>,
    /// Calls placed by rooms, until they are answered or over.
    pub(super) dials: HashMap<DialId, CallId>,
    /// The language of each organisation, unless it is the default.
    languages: HashMap<OrganisationId, Language>,
    /// Callers who keyed a room number; the search for the room's node has not started yet.
    pub(super) seekers: VecDeque<(LegId, RoomId)>,
}

/// A leg that belongs to the rooms.
pub(super) struct Seat {
    pub(super) call: CallId,
    pub(super) party: Party,
    /// When it was answered, or joined from another call.
    since: Instant,
    keys: Keys,
    /// Whether it negotiated no telephone events, so that its digits are detected in its audio.
    sends_tones: bool,
    /// Whether it sent a digit by INFO.
    sends_info: bool,
    /// The language of its prompts.
    language: Language,
}

/// The remaining action on a call after an output of the rooms.
pub(super) enum RoomEffect {
    /// Feed this input to the call.
    Call(CallId, Input),
    /// Place a call for a room.
    Dial(Dial),
}

impl Seat {
    /// Returns the media port of the leg; `None` once the leg has ended.
    fn port(&self, calls: &CallTable) -> Option<PortId> {
        let leg = calls.get(self.call)?.call.parties().leg(self.party)?;
        leg.is_open().then(|| leg.port())
    }
}

impl Conferences {
    pub(super) fn new(config: RoomsConfig, seed: u64) -> Self {
        Conferences {
            rooms: Rooms::new(config, seed),
            seats: HashMap::new(),
            dials: HashMap::new(),
            languages: HashMap::new(),
            seekers: VecDeque::new(),
        }
    }

    /// Returns when [`conference::Input::Timeout`] is due.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.rooms.next_timeout()
    }

    /// Feeds an input to the rooms; drain [`Conferences::poll_output`] afterwards.
    pub(super) fn handle_input(&mut self, now: Now, input: conference::Input) {
        self.rooms.handle_input(now, input);
    }

    /// Passes the stored rooms of a new directory to the rooms.
    pub(super) fn replace_directory(&mut self, now: Now, directory: &Directory) {
        let spoken = directory.organisations().iter().map(|one| (one.id, one.language));
        self.languages = spoken.filter(|(_, language)| *language != Language::default()).collect();
        self.handle_input(now, conference::Input::Directory(book(directory)));
    }

    /// Returns the media group whose worker has the mix of a live room: a leg that begins there need not
    /// move.
    pub(super) fn group_of(&self, goal: &conference::Goal) -> Option<u64> {
        let (conference::Goal::Moved { room } | conference::Goal::Room(room)) = goal else { return None };
        self.rooms.mix_of((*room).into()).map(|mix| mix.0)
    }

    /// Passes an answered party of a call to the rooms.
    pub(super) fn seat(&mut self, now: Now, live: &LiveCall, party: Party, directory: &Directory) {
        let Some(arrival) = arrival(live, party, directory) else { return };
        let call = live.call.facts().call;
        let formats = live.call.parties().leg(party).and_then(|leg| leg.formats());
        let seat = Seat {
            call,
            party,
            since: now.instant,
            keys: Keys::default(),
            sends_tones: formats.is_some_and(|formats| formats.event_receive.is_none()),
            sends_info: false,
            language: arrival
                .extension
                .and_then(|id| directory.extension(id)?.language)
                .unwrap_or_else(|| self.language_of(arrival.organisation)),
        };
        self.seats.insert(arrival.leg, seat);
        if let conference::Goal::Dialled { dial } = &arrival.goal {
            self.dials.remove(dial);
        }
        self.handle_input(now, conference::Input::Arrived(arrival));
    }

    /// Reports that a seated party has left.
    pub(super) fn left(&mut self, now: Now, leg: LegId, cause: HangupCause) {
        if self.seats.remove(&leg).is_some() {
            self.handle_input(now, conference::Input::Gone(leg, cause));
        }
    }

    /// The place of a leg that belongs to the rooms.
    pub(super) fn place_of(&self, leg: LegId) -> Option<(CallId, Party)> {
        self.seats.get(&leg).map(|seat| (seat.call, seat.party))
    }

    /// Whether a leg belongs to the rooms.
    pub(super) fn has(&self, leg: LegId) -> bool {
        self.seats.contains_key(&leg)
    }

    /// Records the call that was placed for a room.
    pub(super) fn placed(&mut self, dial: DialId, call: CallId) {
        self.dials.insert(dial, call);
    }

    /// Forgets a call that could not begin.
    pub(super) fn not_placed(&mut self, dial: DialId) {
        self.dials.remove(&dial);
    }

    /// Reports to the rooms that a phone rings for their call.
    pub(super) fn rings(&mut self, now: Now, live: &LiveCall) {
        if let Some(dial) = self.dial_of(live) {
            self.handle_input(now, conference::Input::Ringing(dial));
        }
    }

    /// Reports to the rooms that their call was not answered.
    pub(super) fn not_answered(
        &mut self,
        now: Now,
        live: &LiveCall,
        status: u16,
        cause: Option<HangupCause>,
    ) {
        let Some(dial) = self.dial_of(live) else { return };
        self.dials.remove(&dial);
        let end = match (cause, status) {
            (Some(HangupCause::NoAnswer), _) => DialEnd::NoAnswer,
            (Some(HangupCause::NoRouteDestination), _) => DialEnd::NoRoute,
            (_, 486 | 600) => DialEnd::Busy,
            (_, 603 | 607 | 608) => DialEnd::Declined,
            (_, status) => DialEnd::Status(status),
        };
        self.handle_input(now, conference::Input::DialFailed { dial, end });
    }

    fn dial_of(&self, live: &LiveCall) -> Option<DialId> {
        match live.goal {
            Some(Goal::Dialled { dial }) => Some(dial).filter(|dial| self.dials.contains_key(dial)),
            _ => None,
        }
    }

    /// Handles a key that a party pressed. Tones in the audio of a party that sends INFO are ignored: they repeat its
    /// INFOs, some too late or too often for `Keys` to recognise as duplicates.
    pub(super) fn keyed(&mut self, now: Now, leg: LegId, digit: char, way: DtmfSource) {
        let Some(seat) = self.seats.get_mut(&leg) else { return };
        seat.sends_info |= way == DtmfSource::Info;
        if seat.sends_tones && seat.sends_info && way == DtmfSource::Media {
            return;
        }
        if seat.keys.counts(now.instant, digit, way) {
            self.handle_input(now, conference::Input::Digit(leg, digit));
        }
    }

    /// Reports that the extensions of a call that is over may be reachable again.
    pub(super) fn call_over(&mut self, now: Now, live: &LiveCall) {
        // An unanswered call of a room gives no new information about its extension.
        if live.caller.is_none() && live.call.parties().answered_after().is_none() {
            return;
        }
        let callees = live.callees.iter().map(|callee| callee.identity.extension);
        let caller = live.caller.iter().map(|caller| caller.identity.extension);
        let mut extensions: Vec<ExtensionId> = caller.chain(callees).flatten().collect();
        extensions.sort_unstable();
        extensions.dedup();
        for extension in extensions {
            self.handle_input(now, conference::Input::Free(extension));
        }
    }

    /// Returns the next output of the rooms.
    pub(super) fn poll_output(&mut self) -> Option<conference::Output> {
        self.rooms.poll_output()
    }

    /// Carries out an output of the rooms on the legs of calls; returns the remaining action on a call.
    pub(super) fn carry_out(
        &mut self,
        now: Instant,
        output: conference::Output,
        calls: &CallTable,
        outputs: &mut Outputs,
    ) -> Option<RoomEffect> {
        use conference::Output as RoomOutput;
        let mut media = |leg: LegId, command: MediaCommand| {
            let port = self.seats.get(&leg).and_then(|seat| seat.port(calls));
            outputs.extend(port.map(|port| Output::Media(port, command)));
        };
        match output {
            RoomOutput::CancelDial(dial) => {
                let id = self.dials.remove(&dial)?;
                return Some(RoomEffect::Call(id, Input::End(HangupCause::OriginatorCancel)));
            }
            RoomOutput::Dial(dial) => return Some(RoomEffect::Dial(dial)),
            RoomOutput::DialFailed(failed) => outputs.push_back(Output::News(Box::new(failed.into()))),
            RoomOutput::Doubt(leg) => return self.doubt(leg),
            RoomOutput::Gain(leg, gain) => media(leg, MediaCommand::Gain(seat_gain(gain))),
            RoomOutput::HangUp(leg, cause) => return self.dismiss(leg, cause),
            RoomOutput::Hear(leg, hears) => media(leg, MediaCommand::Hear(seat_hears(hears))),
            RoomOutput::Join { leg, mix, organisation, muted, hears } => {
                let seat = self.seats.get(&leg)?;
                let Some(formats) =
                    calls.get(seat.call).and_then(|live| live.call.parties().leg(seat.party)?.formats())
                else {
                    return self.dismiss(leg, HangupCause::IncompatibleDestination);
                };
                let (mix, hears, formats) = (MixId(mix.0), seat_hears(hears), Box::new(formats));
                let language = seat.language;
                media(leg, MediaCommand::Join { mix, organisation, language, formats, muted, hears });
            }
            RoomOutput::Mute(leg, muted) => media(leg, MediaCommand::Mute(muted)),
            RoomOutput::Event(event) => outputs.push_back(Output::RoomEvent(Box::new(event))),
            RoomOutput::Name(order) => outputs.push_back(self.name_order(order)),
            RoomOutput::Note(note) => outputs.push_back(Output::RoomNote(Box::new(note))),
            RoomOutput::PinGuessing(guessing) => {
                outputs.push_back(Output::Notice(Notice::PinGuessing(guessing.room_id, guessing.limit)));
                outputs.push_back(Output::News(Box::new(guessing.into())));
            }
            RoomOutput::Play(leg, prompts, token) => {
                // A prompt that still plays is outdated.
                media(leg, MediaCommand::StopPlaying);
                let lead = self.seats.get(&leg).map_or(Duration::ZERO, |seat| {
                    PROMPT_LEAD.saturating_sub(now.saturating_duration_since(seat.since))
                });
                media(leg, MediaCommand::Play { prompts, token, lead, language: None });
            }
            RoomOutput::PlaySound { leg: Some(leg), organisation: of, sound, .. } => {
                media(leg, self.sound(of, sound))
            }
            RoomOutput::StopSound(_, Some(leg)) => media(leg, MediaCommand::StopSound),
            RoomOutput::Left(leg, left) => media(leg, MediaCommand::Left(left)),
            RoomOutput::RecordingFailed(failed) => outputs.push_back(Output::News(Box::new(failed.into()))),
            RoomOutput::Seek(leg, room) => self.seekers.push_back((leg, room)),
            RoomOutput::StopPlaying(leg) => media(leg, MediaCommand::StopPlaying),
            RoomOutput::PlayAll(..)
            | RoomOutput::PlaySound { leg: None, .. }
            | RoomOutput::Record(..)
            | RoomOutput::RecordChannels(..)
            | RoomOutput::StopRecording(_)
            | RoomOutput::StopSound(_, None) => outputs.extend(self.mix_order(output)),
            RoomOutput::Whisper(leg, to) => media(leg, self.whisper(to, calls)),
        }
        None
    }

    /// Returns the order to a mix for an output that is for all its legs.
    fn mix_order(&self, output: conference::Output) -> Option<Output> {
        use conference::Output as RoomOutput;
        let record = |session, organisation, channels| {
            MixOrder::Record(RecordingPlan { session, organisation, sides: None, channels })
        };
        let (mix, order) = match output {
            RoomOutput::PlayAll(mix, organisation, prompts) => {
                let language = self.language_of(organisation);
                (mix, MixOrder::Play { organisation, language, prompts })
            }
            RoomOutput::PlaySound { mix, organisation, sound, .. } => {
                let language = self.language_of(organisation);
                (mix, MixOrder::PlaySound { organisation, language, sound })
            }
            RoomOutput::Record(mix, session, organisation) => (mix, record(session, organisation, 1)),
            RoomOutput::RecordChannels(mix, session, organisation) => (mix, record(session, organisation, 2)),
            RoomOutput::StopRecording(mix) => (mix, MixOrder::StopRecording),
            RoomOutput::StopSound(mix, _) => (mix, MixOrder::StopSound),
            // The others are for legs and calls.
            _ => return None,
        };
        Some(Output::Mix(MixId(mix.0), order))
    }

    /// Returns the order about a name, with the language of its words.
    fn name_order(&self, order: NameOrder) -> Output {
        let language = match order {
            NameOrder::Play { organisation, .. } => self.language_of(organisation),
            _ => Language::default(),
        };
        Output::Name(order, language)
    }

    /// The language of the prompts for all members of a room.
    fn language_of(&self, organisation: OrganisationId) -> Language {
        self.languages.get(&organisation).copied().unwrap_or_default()
    }

    /// Returns the command that plays a sound to one member. It uses the language of the organisation, because the
    /// room's timer has the length of the sound in that language.
    fn sound(&self, organisation: OrganisationId, sound: SoundName) -> MediaCommand {
        MediaCommand::PlaySound { sound, language: self.language_of(organisation) }
    }

    /// Returns the command that directs a whisper. If the listener's leg has ended and the rooms are not notified yet,
    /// the whisperer is muted.
    fn whisper(&self, to: Option<LegId>, calls: &CallTable) -> MediaCommand {
        let Some(to) = to else { return MediaCommand::Whisper(None) };
        let port = self.seats.get(&to).and_then(|seat| seat.port(calls));
        port.map_or(MediaCommand::Mute(true), |port| MediaCommand::Whisper(Some(port)))
    }

    /// Returns the effect that probes one leg.
    fn doubt(&self, leg: LegId) -> Option<RoomEffect> {
        let seat = self.seats.get(&leg)?;
        Some(RoomEffect::Call(seat.call, Input::Doubted(seat.party)))
    }

    /// Returns the effect that hangs up one leg.
    fn dismiss(&self, leg: LegId, cause: HangupCause) -> Option<RoomEffect> {
        let seat = self.seats.get(&leg)?;
        Some(RoomEffect::Call(seat.call, Input::Dismiss(seat.party, cause)))
    }

    /// Returns the id of the seated leg of a call; any of them, if several are seated.
    pub(super) fn leg_of_call(&self, call: CallId) -> Option<LegId> {
        self.seats.iter().find(|(_, seat)| seat.call == call).map(|(leg, _)| *leg)
    }

    /// Returns the number of recordings of ended rooms that are not closed yet.
    pub(super) fn open_recordings(&self) -> usize {
        self.rooms.open_recordings()
    }

    /// Whether one more room may begin.
    pub(super) fn takes_another_room(&self) -> bool {
        self.rooms.takes_another_room()
    }

    /// Whether a room takes one more participant now.
    pub(super) fn accepts(&self, room: RoomId) -> bool {
        self.rooms.accepts(room)
    }

    /// Whether a caller may try to enter a room.
    ///
    /// # Errors
    /// The status to refuse the call with.
    pub(super) fn admits(&self, now: Instant, room: RoomId, who: &PinCaller) -> Result<(), u16> {
        self.rooms.admits(now, room, who)
    }
}

/// Indexes the rooms of a directory.
fn book(directory: &Directory) -> std::sync::Arc<RoomDirectory> {
    let line = |id| directory.extension(id).map(|line| (line.number.clone(), line.name.clone()));
    std::sync::Arc::new(RoomDirectory::new(directory.rooms(), line))
}

/// Returns a party of a call as the rooms identify it.
fn arrival(live: &LiveCall, party: Party, directory: &Directory) -> Option<Arrival> {
    let (facts, identity) = (live.call.facts(), live.identity_of(party)?);
    // The extension comes only from the leg's digest or from our own INVITE, never from its From header.
    let team = identity.extension.and_then(|id| directory.extension(id)?.team_id);
    Some(Arrival {
        leg: identity.id,
        call: facts.call,
        organisation: facts.organisation,
        number: identity.number.clone().unwrap_or_default(),
        name: identity.name.clone(),
        extension: identity.extension,
        team,
        trunk: live.trunk_of(party).filter(|_| identity.extension.is_none()),
        device: live.binding_of(party).map(|binding| DeviceId(binding.0)),
        is_silent: live.call.parties().leg(party).is_some_and(|leg| leg.silent_since.is_some()),
        is_forwarded: facts.forwarded.is_some(),
        goal: live.goal.clone()?,
        returns: live.returns.clone(),
    })
}

fn seat_gain(gain: MemberGain) -> Gain {
    Gain { decibels: gain.gain_db, automatic: gain.automatic_gain }
}

fn seat_hears(hears: Hears) -> SeatHears {
    match hears {
        Hears::Music => SeatHears::Music,
        Hears::Nothing => SeatHears::Silence,
        Hears::Room => SeatHears::Room,
    }
}

/// Delay of the first prompt after the 200: until then the phone and the NATs on the path may not pass any audio.
const PROMPT_LEAD: Duration = Duration::from_millis(600);
