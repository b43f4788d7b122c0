//! Ten simulated minutes in which fifty phones join, leave, hold and key at random while rooms are
//! controlled: no event or note is lost or duplicated, and the live rooms match the messages that the phones received.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use sidetone_media::mix::MixId;
use sidetone_model::call::HangupCause;
use sidetone_model::directory::{Destination, DirectorySnapshot, Network, Number};
use sidetone_model::ids::{CallId, ConferenceSessionId, RoomId};
use sidetone_model::room::event::{Person, RoomChange, RoomEvent};
use sidetone_model::room::{Control, DialKind, DialRequest, LiveRoom, Role, RoomConfig, RoomName, rules};
use sidetone_sip::message::{Method, StatusCode};
use sidetone_sip::ua::{Invite, LegKey, Reply};
use uuid::Uuid;

use crate::conference::RoomNote;
use crate::conference::tests::reader::Reader;
use crate::io::{MediaCommand, PortId};
use crate::machine::Input;
use crate::mixing::{MixOrder, Recording, SeatHears};
use crate::queries::{ControlRoom, DialIntoRoom, RoomOfCall};
use crate::tests::conference_adapter::room;
use crate::tests::network::{Net, OfRooms, Plan, SDP, acme, address, extension, number, trunk};
use crate::tests::rooms_soak::ears::Ears;

pub(super) const CARRIER: &str = "203.0.113.1:5060";
const PHONES: usize = 50;
/// How many of them are phones of the organisation, which receive notes.
const INSIDE: usize = 15;

/// Room 200 has no PIN and rings 1001; 300 has PINs and waits for its moderator; 400 ends with its moderator
/// and is recorded.
fn directory() -> DirectorySnapshot {
    let mut snapshot = acme(vec![trunk(1, CARRIER)]);
    let pin = |text: &str| rules::pin(text).unwrap();
    let guarded =
        |n, text| RoomConfig { participant_pin: pin("1234"), moderator_pin: pin("9876"), ..room(n, text) };
    snapshot.rooms = vec![
        RoomConfig { members: vec![extension(11, 1, "acme.test", "1001").id], ..room(51, "200") },
        RoomConfig { wait_for_moderator: true, max_members: 20, ..guarded(52, "300") },
        RoomConfig { end_when_moderator_leaves: true, record: true, ..guarded(53, "400") },
    ];
    for (n, text, room) in [(32, "+442071230001", Some(51)), (33, "+442071230002", None)] {
        let destination = Destination::Conference(room.map(|room| RoomId(Uuid::from_u128(room))));
        snapshot.numbers.push(Number { destination, ..number(n, 1, text, 11) });
    }
    snapshot.trunks[0].accept_from = vec![Network { address: address(CARRIER).ip(), prefix_len: 32 }];
    snapshot
}

/// A phone in a call.
pub(super) struct Phone {
    pub(super) port: u64,
    pub(super) end: End,
}

/// The phone's own end of its call.
pub(super) enum End {
    Inside(LegKey),
    Outside { number: String, call: String, tag: String, cseq: u32 },
}

/// The last media commands to a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    mix: MixId,
    muted: bool,
    hears: SeatHears,
}

pub(super) struct Soak {
    pub(super) net: Net,
    pub(super) rng: StdRng,
    pub(super) phones: Vec<Phone>,
    pub(super) reader: Reader,
    told: BTreeMap<PortId, Told>,
    /// The mixes, if the audio of the phones is compared.
    pub(super) ears: Option<Ears>,
    /// Running recordings, and those that were stopped and are not reported yet.
    pub(super) recording: BTreeMap<MixId, ConferenceSessionId>,
    pub(super) stopped: VecDeque<ConferenceSessionId>,
    pub(super) calls: usize,
    byes_read: usize,
    hung_up: BTreeSet<String>,
    pub(super) joined: usize,
    pub(super) left: usize,
    notes: usize,
    /// Notes that the events so far require, by session, event and member.
    pub(super) due: BTreeSet<(ConferenceSessionId, &'static str, u32)>,
    talks: usize,
    taps: usize,
}

impl Soak {
    pub(super) fn new(seed: u64) -> Soak {
        let mut net = Net::new(directory());
        net.carrier(CARRIER, [Plan::Accept]);
        net.register();
        net.taking = Some(StatusCode::OK);
        Soak {
            net,
            rng: StdRng::seed_from_u64(seed),
            phones: Vec::new(),
            reader: Reader::default(),
            told: BTreeMap::new(),
            ears: None,
            recording: BTreeMap::new(),
            stopped: VecDeque::new(),
            calls: 0,
            byes_read: 0,
            hung_up: BTreeSet::new(),
            joined: 0,
            left: 0,
            notes: 0,
            due: BTreeSet::new(),
            talks: 0,
            taps: 0,
        }
    }

    pub(super) fn act(&mut self) {
        let some = (!self.phones.is_empty()).then(|| self.rng.random_range(0..self.phones.len()));
        match (self.rng.random_range(0..100), some) {
            (0..25, _) if self.phones.len() < PHONES => self.call(),
            (25..31, Some(phone)) => self.hang_up(phone),
            (31..60, Some(phone)) => self.key(phone),
            (60..78, Some(phone)) => {
                let talks = self.rng.random();
                self.net.feed(Input::Talking(PortId(self.phones[phone].port), talks));
                self.net.run();
            }
            (78..83, Some(phone)) => self.hold(phone),
            (83..95, _) => self.control(),
            (95..97, _) => self.dial(),
            (97..98, _) => {
                self.net.refusal =
                    self.rng.random::<bool>().then(|| Reply::new(StatusCode::new(486).unwrap()))
            }
            (98..100, _) if self.net.ringing.is_some() => self.pick_up(),
            _ => {}
        }
        if self.rng.random_range(0..4) == 0
            && let Some(session) = self.stopped.pop_front()
        {
            self.net.feed(Input::Recorded(session, Recording { bytes: 44, error: None }));
            self.net.run();
        }
    }

    pub(super) fn call(&mut self) {
        let port = self.net.ports.0.len() as u64 + 1;
        self.calls += 1;
        let inside = self.phones.iter().filter(|phone| matches!(phone.end, End::Inside(_))).count();
        if inside < INSIDE && self.rng.random() {
            let to = *["200", "300", "400"].choose(&mut self.rng).unwrap();
            let uri = format!("sip:{to}@acme.test");
            let invite = Invite::new(uri.clone(), "<sip:1001@acme.test>", format!("<{uri}>"));
            self.net.dial_by(invite);
            self.phones.push(Phone { port, end: End::Inside(self.net.leg.unwrap()) });
            return;
        }
        let number = format!("+3314{:07}", self.calls);
        let to = *["+442071230001", "+442071230002"].choose(&mut self.rng).unwrap();
        let call = format!("soak-{}", self.calls);
        let told = self.net.told.len();
        self.net.inject(CARRIER, request("INVITE", to, &number, &call, "", 1, SDP));
        let answer = self.net.told[told..].iter().find(|answer| answer.status() == StatusCode::OK);
        let tag = answer
            .expect("a room takes calls")
            .header("To")
            .unwrap()
            .split("tag=")
            .nth(1)
            .unwrap()
            .to_owned();
        self.net.inject(CARRIER, request("ACK", to, &number, &call, &tag, 1, ""));
        self.phones.push(Phone { port, end: End::Outside { number, call, tag, cseq: 1 } });
    }

    pub(super) fn hang_up(&mut self, phone: usize) {
        match self.phones.remove(phone).end {
            End::Inside(leg) => {
                self.net.phone.hang_up(self.net.now(), leg);
                self.net.run();
            }
            End::Outside { number, call, tag, cseq } => {
                self.net.inject(CARRIER, request("BYE", "x", &number, &call, &tag, cseq + 1, ""));
            }
        }
    }

    pub(super) fn key(&mut self, phone: usize) {
        let port = self.phones[phone].port;
        let seat = self.net.switch.control.calls.leg_at(PortId(port)).unwrap();
        let is_seated = self.net.switch.control.conferences.rooms.room_of(seat).is_some();
        let keys: &[&str] = match (is_seated, self.rng.random_range(0..100)) {
            (true, 0) => &["*0"],
            (true, 1..4) => &["1111#", "200#", "12", "*"],
            (true, _) => &["*1", "*2", "*5", "*7"],
            (false, 0..4) => &["1111#", "12", "*"],
            (false, _) => &["1234#", "1234#", "9876#", "200#", "300#", "400#"],
        };
        let keys = *keys.choose(&mut self.rng).unwrap();
        self.taps += keys.len();
        self.net.key(port, keys);
        if let (true, "*1" | "*2") = (is_seated, keys) {
            let found = self.net.ask(RoomOfCall(seat.0)).unwrap();
            let call = self.net.switch.control.calls.call_at(PortId(port)).unwrap();
            let member = found.members.iter().find(|member| member.call_uuid == call).unwrap();
            assert_eq!(member.muted, keys == "*1", "a key is lost");
        }
    }

    pub(super) fn hold(&mut self, phone: usize) {
        let direction = *["sendonly", "inactive", "sendrecv"].choose(&mut self.rng).unwrap();
        let sdp = format!("{SDP}a={direction}\r\n");
        match &mut self.phones[phone].end {
            End::Inside(leg) => {
                self.net.leg = Some(*leg);
                self.net.offer_anew(&sdp);
            }
            End::Outside { number, call, tag, cseq } => {
                *cseq += 1;
                let text = |method, body: &str| request(method, "x", number, call, tag, *cseq, body);
                let (invite, ack) = (text("INVITE", &sdp), text("ACK", ""));
                self.net.inject(CARRIER, invite);
                self.net.inject(CARRIER, ack);
            }
        }
    }

    pub(super) fn control(&mut self) {
        let rooms: Vec<LiveRoom> = self.reader.live().cloned().collect();
        let Some(room) = rooms.choose(&mut self.rng) else { return };
        let member = room.members.choose(&mut self.rng).unwrap().id;
        let control = match self.rng.random_range(0..40) {
            0 => Control::End,
            1..4 => Control::Kick(member),
            4..8 => Control::Lock,
            8..16 => Control::Mute(member),
            16..20 => Control::MuteAll,
            20..24 => Control::Record(self.rng.random()),
            24..32 => Control::Unmute(member),
            _ => Control::Unlock,
        };
        let name = room.room;
        self.net.ask(ControlRoom(name, control)).unwrap();
        let after = self.net.live_room(name);
        let muted = |id| after.as_ref().unwrap().members.iter().find(|other| other.id == id).unwrap().muted;
        match control {
            Control::End => assert!(after.is_none_or(|after| after.session_id != room.session_id)),
            Control::Kick(id) => {
                assert!(after.is_none_or(|after| after.members.iter().all(|other| other.id != id)));
            }
            Control::Lock | Control::Unlock => {
                assert_eq!(after.unwrap().locked, control == Control::Lock);
            }
            Control::Mute(id) => assert!(muted(id)),
            Control::MuteAll => assert_eq!(after.unwrap().all_muted, !room.all_muted),
            Control::Record(on) => assert_eq!(after.unwrap().recording, on),
            Control::Unmute(id) => assert!(!muted(id)),
            _ => {}
        }
    }

    fn dial(&mut self) {
        let room = RoomId(Uuid::from_u128(self.rng.random_range(51..54)));
        let (kind, target) = match self.rng.random() {
            true => (DialKind::Extension, "1001".to_owned()),
            false => (DialKind::External, format!("+4477009{:05}", self.calls)),
        };
        let role = if self.rng.random() { Role::Moderator } else { Role::Participant };
        let request = DialRequest { kind, target, role, confirm: false };
        drop(self.net.ask(DialIntoRoom(room, request)));
    }

    fn pick_up(&mut self) {
        // If the call no longer rings, the answer fails.
        let (leg, key) = self.net.ringing.take().unwrap();
        let reply = Reply::new(StatusCode::OK).content("application/sdp", SDP);
        let now = self.net.now();
        if self.net.phone.respond(now, &key, reply).is_ok() {
            self.net.run();
            self.net.leg = Some(leg);
        }
    }

    /// Reads the outputs since the last call, in their order.
    pub(super) fn read(&mut self) {
        for said in std::mem::take(&mut self.net.of_rooms) {
            match said {
                OfRooms::Media(port, command) => self.media(port, &command),
                OfRooms::Mix(mix, MixOrder::Record(plan)) => drop(self.recording.insert(mix, plan.session)),
                OfRooms::Mix(mix, MixOrder::StopRecording) => {
                    self.stopped.push_back(self.recording.remove(&mix).expect("it was being recorded"));
                }
                OfRooms::Mix(_, MixOrder::Play { .. } | MixOrder::PlaySound { .. } | MixOrder::StopSound) => {
                }
                OfRooms::News(news) => self.news(&news),
                OfRooms::Note(note) => self.note(&note),
            }
        }
        let requests = &self.net.carriers[&address(CARRIER)].requests;
        for request in &requests[self.byes_read..] {
            if *request.method() == Method::Bye {
                assert!(self.hung_up.insert(request.call_id().to_string()), "hung up twice");
            }
        }
        self.byes_read = requests.len();
        let (phone, hung_up) = (&self.net.phone, &self.hung_up);
        self.phones.retain(|one| match &one.end {
            End::Inside(leg) => phone.peer(*leg).is_some(),
            End::Outside { call, .. } => !hung_up.contains(call),
        });
    }

    fn media(&mut self, port: PortId, command: &MediaCommand) {
        if let Some(ears) = &mut self.ears {
            ears.command(port, command);
        }
        match command {
            MediaCommand::Join { mix, muted, hears, .. } => {
                self.told.insert(port, Told { mix: *mix, muted: *muted, hears: *hears });
            }
            MediaCommand::Mute(muted) => self.told.get_mut(&port).unwrap().muted = *muted,
            MediaCommand::Hear(hears) => self.told.get_mut(&port).unwrap().hears = *hears,
            _ => {}
        }
    }

    fn news(&mut self, news: &RoomEvent) {
        self.reader.read(news);
        let phones_but = |member: u32| {
            let room = self.reader.live().find(|room| room.session_id == news.session);
            let mut others =
                room.into_iter().flat_map(|room| &room.members).filter(move |other| other.id != member);
            others.any(|other| other.extension_id.is_some())
        };
        match &news.what {
            RoomChange::Joined(person) => {
                self.joined += 1;
                if phones_but(person.member) {
                    self.due.insert((news.session, "member-join", person.member));
                }
                if person.extension_id.is_some() {
                    self.due.insert((news.session, "roster", person.member));
                }
            }
            RoomChange::Left { member, .. } => {
                self.left += 1;
                if phones_but(*member) {
                    self.due.insert((news.session, "member-leave", *member));
                }
            }
            RoomChange::Talking { .. } => self.talks += 1,
            // A room that ends sends no notes about the members who leave.
            RoomChange::Ended => {
                self.due.retain(|(session, event, _)| *session != news.session || *event != "member-leave")
            }
            _ => {}
        }
    }

    /// A note goes to every phone of the organisation in the room, with the room's present state.
    fn note(&mut self, note: &RoomNote) {
        self.notes += 1;
        let room = self.reader.live().find(|room| room.room == note.room).expect("a note of a live room");
        assert_eq!(room.session_id, note.session);
        assert_eq!(note.payload["count"], room.members.len());
        let phones = room.members.iter().filter(|member| member.extension_id.is_some());
        let mut phones: Vec<u32> = phones.map(|member| member.id).collect();
        let to: Vec<u32> = note.to.iter().map(|phone| phone.member).collect();
        let event = note.payload["event"].as_str().unwrap();
        let member = note.payload.get("member").map_or(to[0], |member| member.as_u64().unwrap() as u32);
        let events = ["member-join", "member-leave", "roster"];
        let named = *events.iter().find(|name| **name == event).unwrap();
        assert!(self.due.remove(&(note.session, named, member)), "nothing calls for {:?}", note.payload);
        match event {
            "roster" => {
                let listed = note.payload["members"].as_array().unwrap();
                assert_eq!((to.len(), listed.len()), (1, room.members.len()));
            }
            "member-join" => {
                phones.retain(|other| *other != member);
                assert_eq!(to, phones);
            }
            "member-leave" => assert_eq!(to, phones),
            other => panic!("{other}"),
        }
    }

    /// Compares the live rooms with the events and with the audio of the phones.
    pub(super) fn compare(&mut self) {
        let live: Vec<LiveRoom> = self.net.live_rooms();
        self.reader.agrees(live.clone());
        assert!(self.due.is_empty(), "notes are lost: {:?}", self.due);
        let conferences = &self.net.switch.control.conferences;
        let mut mixes = BTreeMap::new();
        let mut seated = BTreeSet::new();
        for room in &live {
            for member in &room.members {
                let seats = conferences.seats.values().filter(|seat| seat.call == member.call_uuid);
                let seats: Vec<_> = seats.collect();
                let [seat] = seats.as_slice() else { panic!("{} seats of one call", seats.len()) };
                let leg = self
                    .net
                    .switch
                    .control
                    .calls
                    .get(seat.call)
                    .unwrap()
                    .call
                    .parties()
                    .leg(seat.party)
                    .unwrap();
                assert!(leg.is_open(), "a member whose port is closed");
                let told = self.told[&leg.port()];
                assert_eq!(*mixes.entry(told.mix).or_insert(room.room), room.room, "rooms share a mix");
                let waits = told.hears == SeatHears::Music;
                assert_eq!(told.muted, member.muted || waits, "{member:?}");
                assert!(!(member.talking && told.muted), "{member:?}");
                seated.insert(leg.port());
            }
        }
        assert_eq!(mixes.len(), live.len(), "a room in two mixes");
        for phone in &self.phones {
            let call = self.net.switch.control.calls.call_at(PortId(phone.port));
            let call: CallId = call.unwrap_or_else(|| panic!("port {} is of no call", phone.port));
            let known = conferences.seats.values().any(|seat| seat.call == call);
            assert!(known, "a phone is up and nobody knows it");
        }
        for seat in conferences.seats.keys() {
            assert!(conferences.rooms.knows(*seat), "a seat that the rooms forgot");
        }
    }
}

/// A request of the carrier.
pub(super) fn request(
    method: &str,
    to: &str,
    from: &str,
    call: &str,
    tag: &str,
    cseq: u32,
    body: &str,
) -> String {
    let kind = if body.is_empty() { "" } else { "Content-Type: application/sdp\r\n" };
    let tag = if tag.is_empty() { String::new() } else { format!(";tag={tag}") };
    // The ACK of a 2xx is a transaction of its own (RFC 3261 §17.1.1.3).
    format!(
        "{method} sip:{to}@198.51.100.1 SIP/2.0\r\nVia: SIP/2.0/UDP {CARRIER};branch=z9hG4bK{method}{call}{cseq}\r\n\
         Max-Forwards: 70\r\nFrom: <sip:{from}@203.0.113.1>;tag=1\r\nTo: <sip:{to}@198.51.100.1>{tag}\r\n\
         Call-ID: {call}\r\nCSeq: {cseq} {method}\r\nContact: <sip:{CARRIER}>\r\n{kind}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn fifty_phones_for_ten_minutes() {
    for seed in [1, 2] {
        let mut soak = Soak::new(seed);
        let end = soak.net.now() + Duration::from_secs(600);
        let mut most = 0;
        while soak.net.now() < end {
            soak.act();
            soak.read();
            soak.compare();
            most = most.max(soak.reader.live().map(|room| room.members.len()).sum());
            let pause = soak.rng.random_range(10..250);
            soak.net.wait(Duration::from_millis(pause));
            soak.read();
        }
        soak.net.feed(Input::EndCalls(HangupCause::NormalClearing));
        soak.net.run();
        soak.net.wait(Duration::from_secs(60));
        while let Some(session) = soak.stopped.pop_front() {
            soak.net.feed(Input::Recorded(session, Recording { bytes: 44, error: None }));
            soak.net.run();
        }
        soak.read();
        soak.compare();
        assert_eq!((soak.joined, soak.reader.live().count()), (soak.left, 0), "whoever joined left");
        let conferences = &soak.net.switch.control.conferences;
        assert!(conferences.seats.is_empty() && conferences.dials.is_empty() && soak.recording.is_empty());
        assert_eq!((soak.net.switch.live_calls(), soak.phones.len()), (0, 0));
        let records: BTreeSet<_> = soak.net.records.iter().map(|record| record.call_uuid).collect();
        assert_eq!(records.len(), soak.net.records.len(), "a call has one record");
        // The records include calls placed by rooms, and calls refused after wrong PINs.
        assert!(records.len() >= soak.calls, "{} records of {} calls", records.len(), soak.calls);
        println!(
            "seed {seed}: {} calls, {most} members at once, {} joined, {} sessions, {} notes, {} keys, {} times talking",
            soak.calls,
            soak.joined,
            soak.reader.sessions(),
            soak.notes,
            soak.taps,
            soak.talks
        );
        assert!(
            most >= 20
                && soak.joined > 200
                && soak.notes > 200
                && soak.talks > 50
                && soak.reader.sessions() > 5
        );
    }
}

/// The person in the event equals the member shown in the live room.
#[test]
fn a_person_is_shown_as_told() {
    let mut soak = Soak::new(3);
    while soak.joined == 0 {
        soak.call();
        let news = soak.net.of_rooms.iter().find_map(|said| match said {
            OfRooms::News(RoomEvent { what: RoomChange::Joined(person), .. }) => Some(person.clone()),
            _ => None,
        });
        soak.read();
        let Some(Person { call_uuid, leg, number, .. }) = news else { continue };
        let found = soak.net.ask(RoomOfCall(leg.0)).unwrap();
        assert_eq!(Some(found.room), found.room_id.map(RoomName::Stored));
        assert_eq!(
            found
                .members
                .iter()
                .filter(|member| member.call_uuid == call_uuid && member.number == number)
                .count(),
            1
        );
    }
}
