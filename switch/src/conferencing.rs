//! Connects conference rooms and calls: carries out the outputs of the rooms, and feeds them the events of
//! legs.
//!
//! Rooms identify legs by [`LegId`] and handle no SIP and no ports. A leg belongs to the rooms from
//! [`Output::Seat`] of its call to [`Output::Left`](face::Output::Left). Every end of a leg, for any reason,
//! reaches the rooms through `Left`.
//!
//! [`Output::Seat`]: face::Output::Seat

use std::collections::HashMap;
use std::time::Instant;

use sidetone_media::mix::MixId;
use sidetone_model::call::HangupCause;
use sidetone_model::ids::{CallId, ExtensionId, LegId};

use crate::face::{self, MediaCommand, Party, PortId, Ports};
use crate::keys::{Keys, Way};
use crate::live::LiveCall;
use crate::machine::{Now, Output, Switch};
use crate::mixing::{MixOrder, RecordingPlan, SeatHears};
use crate::rooms::{self, Arrival, DialId, Hears, RoomBook, Rooms, RoomsConfig};
use crate::routing::Directory;

/// The rooms, and the legs and calls that belong to them.
pub(super) struct Conferences {
    pub(super) rooms: Rooms,
    pub(super) seats: HashMap<LegId, Seat>,
    /// Calls placed by rooms, until they are answered or over.
    pub(super) dials: HashMap<DialId, CallId>,
}

/// A leg that belongs to the rooms.
pub(super) struct Seat {
    pub(super) call: CallId,
    pub(super) party: Party,
    keys: Keys,
}

impl Conferences {
    pub(super) fn new(config: RoomsConfig, seed: u64) -> Self {
        Conferences { rooms: Rooms::new(config, seed), seats: HashMap::new(), dials: HashMap::new() }
    }

    /// Returns when [`rooms::Input::Timeout`] is due.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.rooms.next_timeout()
    }
}

/// Indexes the rooms of a directory.
fn book(directory: &Directory) -> std::sync::Arc<RoomBook> {
    let line = |id| directory.extension(id).map(|line| (line.number.clone(), line.name.clone()));
    std::sync::Arc::new(RoomBook::new(directory.rooms(), line))
}

impl Switch {
    pub(super) fn tell_rooms(&mut self, now: Now, input: rooms::Input) {
        self.conferences.rooms.handle_input(now, input);
    }

    /// Passes the stored rooms of a new directory to the rooms.
    pub(super) fn replace_book(&mut self, now: Now, directory: &Directory) {
        self.tell_rooms(now, rooms::Input::Book(book(directory)));
    }

    /// Returns the media group whose worker has the mix of a live room: a leg that begins there need not
    /// move.
    pub(super) fn group_of(&self, goal: &rooms::Goal) -> Option<u64> {
        let rooms::Goal::Room(room) = goal else { return None };
        self.conferences.rooms.mix_of((*room).into()).map(|mix| mix.0)
    }

    /// Passes an answered party to the rooms.
    pub(super) fn seat(&mut self, now: Now, id: CallId, party: Party) {
        let Some(arrival) = self.calls.get(&id).and_then(|live| self.arrival(live, party)) else { return };
        self.conferences.seats.insert(arrival.leg, Seat { call: id, party, keys: Keys::default() });
        if let rooms::Goal::Dialled { dial } = &arrival.goal {
            self.conferences.dials.remove(dial);
        }
        self.tell_rooms(now, rooms::Input::Arrived(arrival));
    }

    /// Returns a party as the rooms identify it.
    fn arrival(&self, live: &LiveCall, party: Party) -> Option<Arrival> {
        let (facts, identity) = (live.call.facts(), live.identity_of(party)?);
        // The extension comes only from the leg's digest or from our own INVITE, never from its From header.
        let team = identity.extension.and_then(|id| self.directory.extension(id)?.team_id);
        Some(Arrival {
            leg: identity.id,
            call: facts.call,
            organisation: facts.organisation,
            number: identity.number.clone().unwrap_or_default(),
            name: identity.name.clone(),
            extension: identity.extension,
            team,
            trunk: facts.trunk.filter(|_| identity.extension.is_none()),
            goal: live.goal.clone()?,
        })
    }

    /// Reports that a seated party put us on hold, or resumed.
    pub(super) fn seat_held(&mut self, now: Now, id: CallId, party: Party, holds: bool) {
        if let Some(leg) = self.leg_id_of(id, party) {
            self.tell_rooms(now, rooms::Input::Held(leg, holds));
        }
    }

    /// Reports that a seated party is gone.
    pub(super) fn seat_left(&mut self, now: Now, id: CallId, party: Party) {
        if let Some(leg) = self.leg_id_of(id, party)
            && self.conferences.seats.remove(&leg).is_some()
        {
            self.tell_rooms(now, rooms::Input::Gone(leg));
        }
    }

    fn leg_id_of(&self, id: CallId, party: Party) -> Option<LegId> {
        self.calls.get(&id)?.identity_of(party).map(|identity| identity.id)
    }

    /// Returns the leg of a port, if it belongs to the rooms.
    pub(super) fn seat_at(&self, port: PortId) -> Option<LegId> {
        let id = *self.ports.get(&port)?;
        let party = self.calls.get(&id)?.call.party_at(port)?;
        self.leg_id_of(id, party).filter(|leg| self.conferences.seats.contains_key(leg))
    }

    /// Handles a key that a party pressed.
    pub(super) fn keyed(&mut self, now: Now, leg: LegId, digit: char, way: Way) {
        let Some(seat) = self.conferences.seats.get_mut(&leg) else { return };
        if seat.keys.counts(now.instant, digit, way) {
            self.tell_rooms(now, rooms::Input::Digit(leg, digit));
        }
    }

    /// Passes an event of a port to the rooms, if its leg belongs to them.
    pub(super) fn tell_of_seat(&mut self, now: Now, port: PortId, input: impl FnOnce(LegId) -> rooms::Input) {
        if let Some(leg) = self.seat_at(port) {
            self.tell_rooms(now, input(leg));
        }
    }

    /// Reports that the extensions of a call that is over may be reachable again.
    pub(super) fn free_extensions(&mut self, now: Now, live: &LiveCall) {
        // A call placed by a room was not answered: that shows nothing new about its extension.
        if live.caller.is_none() && live.call.answered_after().is_none() {
            return;
        }
        let callees = live.callees.iter().map(|callee| callee.identity.extension);
        let caller = live.caller.iter().map(|caller| caller.identity.extension);
        let mut extensions: Vec<ExtensionId> = caller.chain(callees).flatten().collect();
        extensions.sort_unstable();
        extensions.dedup();
        for extension in extensions {
            self.tell_rooms(now, rooms::Input::Free(extension));
        }
    }

    /// Carries out an output of the rooms.
    pub(super) fn obey_rooms(&mut self, now: Now, output: rooms::Output, ports: &mut dyn Ports) {
        use rooms::Output as Said;
        match output {
            Said::CancelDial(dial) => {
                if let Some(id) = self.conferences.dials.remove(&dial) {
                    self.tell_call(now, id, face::Input::End(HangupCause::OriginatorCancel));
                }
            }
            Said::Dial(dial) => self.dial(now, dial, ports),
            Said::HangUp(leg, cause) => {
                if let Some((id, party)) = self.place_of(leg) {
                    self.tell_call(now, id, face::Input::Dismiss(party, cause));
                }
            }
            Said::Hear(leg, hears) => self.tell_seat(leg, MediaCommand::Hear(seat_hears(hears))),
            Said::Join { leg, mix, organisation, muted, hears } => {
                let Some((id, party)) = self.place_of(leg) else { return };
                let formats = self.calls.get(&id).and_then(|live| live.call.leg(party)?.formats());
                let Some(formats) = formats else {
                    let cause = HangupCause::IncompatibleDestination;
                    return self.tell_call(now, id, face::Input::Dismiss(party, cause));
                };
                let (mix, hears, formats) = (MixId(mix.0), seat_hears(hears), Box::new(formats));
                self.tell_seat(leg, MediaCommand::Join { mix, organisation, formats, muted, hears });
            }
            Said::Mute(leg, muted) => self.tell_seat(leg, MediaCommand::Mute(muted)),
            Said::News(news) => self.push(Output::RoomNews(Box::new(news))),
            Said::Note(note) => self.push(Output::RoomNote(Box::new(note))),
            Said::Play(leg, prompts, token) => {
                // A prompt that still plays is out of date.
                self.tell_seat(leg, MediaCommand::StopPlaying);
                self.tell_seat(leg, MediaCommand::Play { prompts, token });
            }
            Said::PlayAll(mix, organisation, prompts) => {
                self.push(Output::Mix(MixId(mix.0), MixOrder::Play { organisation, prompts }));
            }
            Said::Record(mix, session, organisation) => {
                let plan = RecordingPlan { session, organisation };
                self.push(Output::Mix(MixId(mix.0), MixOrder::Record(plan)));
            }
            Said::StopPlaying(leg) => self.tell_seat(leg, MediaCommand::StopPlaying),
            Said::StopRecording(mix) => self.push(Output::Mix(MixId(mix.0), MixOrder::StopRecording)),
        }
    }

    /// Returns the call and the party of a leg that belongs to the rooms.
    pub(super) fn place_of(&self, leg: LegId) -> Option<(CallId, Party)> {
        self.conferences.seats.get(&leg).map(|seat| (seat.call, seat.party))
    }

    /// Sends a command to the media port of a leg; does nothing once the leg is gone.
    fn tell_seat(&mut self, leg: LegId, command: MediaCommand) {
        let port = self.place_of(leg).and_then(|(id, party)| {
            let leg = self.calls.get(&id)?.call.leg(party)?;
            leg.is_open().then(|| leg.port())
        });
        if let Some(port) = port {
            self.push(Output::Media(port, command));
        }
    }
}

fn seat_hears(hears: Hears) -> SeatHears {
    match hears {
        Hears::Music => SeatHears::Music,
        Hears::Room => SeatHears::Room,
    }
}
