//! A switch, a phone and carriers in one thread, with a simulated network and clock.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_media::mix::MixId;
use sidetone_model::call_request::RequestChange;
use sidetone_model::cdr::Cdr;
use sidetone_model::directory::DirectorySnapshot;
use sidetone_model::extension::ExtensionChange;
use sidetone_model::guessing::Guessing;
use sidetone_model::ids::{CallId, ExtensionId, NodeId, NoteId};
use sidetone_model::live_call::{CallEvent, LiveCall};
use sidetone_model::note::{Dispatch, PhoneAnswer};
use sidetone_model::pin_guessing::PinGuessing;
use sidetone_model::room::RoomDialFailed;
use sidetone_model::room::event::RoomEvent;
use sidetone_model::room::{LiveRoom, RoomName};
use sidetone_model::switch_event::SwitchEvent;
use sidetone_model::time::Timestamp;
use sidetone_model::trunk_address::{TrunkAddress, TrunkTransport};
use sidetone_sip::admission::{AdmissionConfig, Dropped};
use sidetone_sip::auth::{Authenticator, Client, Realm};
use sidetone_sip::dialog::{MIN_SE_S, SessionTimerConfig};
use sidetone_sip::flow::{Flow, ListenerId, Protocol};
use sidetone_sip::message::{
    Datagram, Digest, Host, Message, Method, Name, Request, Response, StatusCode, parse_datagram,
};
use sidetone_sip::transaction::{LayerConfig, Local, ServerKey, TRANSACTIONS_MAX};
use sidetone_sip::ua::{
    self, Cause, Content, Draft, Event, Extra, Invite, LegKey, Receipt, Reply, Retried, Ua, UaConfig,
};
use uuid::Uuid;

use crate::carriers::AddressPolicy;
use crate::conference::{RoomNote, RoomsConfig};
use crate::incoming_message::IncomingMessage;
use crate::io::{Limits, MediaCommand, Port, PortId, Reach, Unreachable, VideoPort};
use crate::machine::{Input, Notice, Now, Output, Switch, SwitchConfig};
use crate::mixing::MixOrder;
use crate::node_entry::NodeEntries;
use crate::queries::{Answer as QueryAnswer, DevicesOf, FindCall, FindRoom, Question, ReplyToken, SendNotes};
use crate::routing::Directory;
pub(super) use crate::tests::carrier::{Carrier, Plan, SDP, challenge};
pub(crate) use crate::tests::directory::{acme, organisation, trunk};
pub(super) use crate::tests::directory::{extension, number};
use crate::tests::ladder::any_instant;
use crate::tests::lossy::Losses;
use crate::tests::room_texts::{names, room_news};
use crate::trunk_dns::Answer;
use crate::user_agent::ua_config;

/// The address of the switch.
pub(super) const SWITCH: &str = "198.51.100.1:5060";
/// The address of 1001's phone.
pub(super) const PHONE: &str = "192.0.2.1:5060";
pub(super) const PASSWORD: &str = "secret";

/// The simulated network.
pub(super) struct Net {
    start: Instant,
    now: Instant,
    pub(super) switch: Switch,
    pub(super) ports: Endless,
    pub(super) phone: Ua,
    /// The address that the phone sends from.
    pub(super) phone_at: SocketAddr,
    pub(super) login: Client,
    /// The phone's present leg.
    pub(super) leg: Option<LegKey>,
    /// The phone's response when it is called, and the requests of that call.
    pub(super) refusal: Option<Reply>,
    pub(super) called: Vec<Request>,
    /// The times of offers to the phone inside its call, in seconds.
    pub(super) reinvited: Vec<u64>,
    /// The last INVITE that the phone has not answered.
    pub(super) ringing: Option<(LegKey, ServerKey)>,
    pub(super) carriers: BTreeMap<SocketAddr, Carrier>,
    wire: VecDeque<(SocketAddr, SocketAddr, Bytes)>,
    /// The messages that the phone received: statuses and `BYE`.
    pub(super) heard: Vec<String>,
    /// The Reason headers of the refusals that the phone received.
    pub(super) reasons: Vec<String>,
    pub(super) records: Vec<Cdr>,
    pub(super) news: Vec<CallEvent>,
    pub(super) guessed: Vec<Guessing>,
    pub(super) pins_guessed: Vec<PinGuessing>,
    pub(super) dials_failed: Vec<RoomDialFailed>,
    /// The results of requested calls, as text.
    pub(super) requests: Vec<String>,
    /// The outputs of rooms and the commands to their media, as text, and the notes of rooms.
    pub(super) rooms: Vec<String>,
    pub(super) room_notes: Vec<RoomNote>,
    /// Whether prompts play until the test ends them.
    pub(super) is_player_slow: bool,
    /// The silence before each prompt.
    pub(super) leads: Vec<Duration>,
    /// The outputs of rooms and the media commands, in their order.
    pub(super) of_rooms: Vec<OfRooms>,
    pub(super) notices: Vec<Notice>,
    pub(super) questions: Vec<TrunkAddress>,
    pub(super) said: Vec<IncomingMessage>,
    /// The answers to queries, by their tokens.
    pub(super) replies: BTreeMap<ReplyToken, QueryAnswer>,
    last_token: u64,
    /// The phone's response to notes; `None` sends none.
    pub(super) taking: Option<StatusCode>,
    /// The notes that the phone received.
    pub(super) noted: Vec<Request>,
    pub(super) answers: Vec<(NoteId, usize, PhoneAnswer)>,
    /// Whether the phone is lost: it neither receives nor sends.
    pub(super) is_phone_gone: bool,
    pub(super) losses: Losses,
    /// An address to which no datagram can be sent.
    pub(super) fails_at: Option<SocketAddr>,
    /// Whether journal writes are delayed; `unwritten` are the answered calls that wait.
    pub(super) is_disk_slow: bool,
    /// Whether the relay leaves requests for reports unanswered.
    pub(super) is_relay_slow: bool,
    pub(super) unwritten: Vec<CallId>,
    /// Connections that calls use, or no longer use.
    pub(super) holds: Vec<(Flow, bool)>,
    /// Connections that the switch closed.
    pub(super) closed: Vec<Flow>,
    /// The responses to requests of carriers.
    pub(super) told: Vec<Response>,
    /// The changes that the phone dialled, and their result; `None` is pending.
    pub(super) changes: Vec<ExtensionChange>,
    pub(super) changed: Option<Result<(), u16>>,
    /// Why datagrams were dropped.
    pub(super) dropped: Vec<Dropped>,
    /// Datagrams that the switch sent to other addresses than the phone's and the carriers'.
    pub(super) elsewhere: Vec<(SocketAddr, Bytes)>,
}

/// Outputs about rooms and media.
pub(super) enum OfRooms {
    Media(PortId, MediaCommand),
    Mix(MixId, MixOrder),
    News(RoomEvent),
    Note(RoomNote),
}

/// Opens ports without a limit, and lists them in order.
pub(super) struct Endless(pub(super) Vec<PortId>);

impl Endless {
    fn open(&mut self, video: bool) -> Option<Port> {
        let (id, advertised) = self.pair();
        let video = video.then(|| self.pair()).map(|(id, advertised)| VideoPort { id, advertised });
        Some(Port { id, advertised, video })
    }

    fn pair(&mut self) -> (PortId, SocketAddr) {
        let serial = self.0.len() as u64 + 1;
        self.0.push(PortId(serial));
        let number = 20_000 + u16::try_from(serial * 2).unwrap();
        (PortId(serial), SocketAddr::new("198.51.100.1".parse().unwrap(), number))
    }
}

pub(super) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

impl Net {
    pub(super) fn new(directory: DirectorySnapshot) -> Net {
        Net::with_room(directory, TRANSACTIONS_MAX, None)
    }

    /// Limits each transaction table to `room` entries, besides those reserved for dialogs.
    pub(super) fn with_room(directory: DirectorySnapshot, room: usize, nodes: Option<NodeEntries>) -> Net {
        let start = any_instant();
        let mut rng = StdRng::seed_from_u64(1);
        let local = |text: &str| {
            let at = address(text);
            let IpAddr::V4(ip) = at.ip() else { panic!("{text}") };
            LayerConfig::new(Local::fixed(Host::V4(ip), Some(at.port())))
        };
        let reach = Reach::new(|server, to| match (server.transport, to == address(SWITCH)) {
            (_, true) => Err(Unreachable::Ourselves),
            (TrunkTransport::Preferred | TrunkTransport::Udp, false) => Ok(Flow::udp(ListenerId(0), to)),
            (TrunkTransport::Tcp, false) => Ok(Flow::tcp_to(to)),
            (TrunkTransport::Tls, false) => {
                Ok(Flow { listener: ListenerId::to_server(0), remote: to, protocol: Protocol::Tls })
            }
        });
        let config = SwitchConfig {
            node: NodeId(Uuid::nil()),
            limits: Limits::default(),
            calls_max: 100,
            media_ports: 1_000,
            md5_only: Vec::new(),
            reach,
            qualify: Some(Duration::from_secs(60)),
            trunk_addresses: AddressPolicy::default(),
            credit_warning: Duration::from_secs(10),
            rooms: RoomsConfig::default(),
            media_workers: 4,
            admission: AdmissionConfig::default(),
            nodes,
            shares_limits: false,
            epoch: start,
        };
        let layer = LayerConfig {
            server_len_max: room,
            server_len_per_source: room,
            client_len_max: room.max(8),
            ..local(SWITCH)
        };
        let session_timer = Some(SessionTimerConfig { expires_s: 1_800, min_se_s: MIN_SE_S });
        let ua = Ua::new(ua_config(layer, session_timer), StdRng::from_rng(&mut rng));
        let authenticator = Authenticator::new([7; 32], start);
        let directory = Arc::new(Directory::new(directory));
        let switch = Switch::new(config, ua, authenticator, directory, StdRng::from_rng(&mut rng));
        let realm = Realm::Exactly("acme.test".into());
        let mut net = Net {
            start,
            now: start,
            switch,
            ports: Endless(Vec::new()),
            phone_at: address(PHONE),
            phone: Ua::new(UaConfig::new(local(PHONE)), StdRng::from_rng(&mut rng)),
            login: Client::new("1001", PASSWORD, realm, StdRng::from_rng(&mut rng)),
            leg: None,
            refusal: None,
            called: Vec::new(),
            reinvited: Vec::new(),
            ringing: None,
            carriers: BTreeMap::new(),
            wire: VecDeque::new(),
            heard: Vec::new(),
            reasons: Vec::new(),
            records: Vec::new(),
            news: Vec::new(),
            guessed: Vec::new(),
            pins_guessed: Vec::new(),
            dials_failed: Vec::new(),
            requests: Vec::new(),
            rooms: Vec::new(),
            room_notes: Vec::new(),
            is_player_slow: false,
            leads: Vec::new(),
            of_rooms: Vec::new(),
            notices: Vec::new(),
            questions: Vec::new(),
            said: Vec::new(),
            replies: BTreeMap::new(),
            last_token: 0,
            taking: None,
            noted: Vec::new(),
            answers: Vec::new(),
            is_phone_gone: false,
            losses: Losses::default(),
            fails_at: None,
            is_disk_slow: false,
            is_relay_slow: false,
            unwritten: Vec::new(),
            holds: Vec::new(),
            closed: Vec::new(),
            told: Vec::new(),
            changes: Vec::new(),
            changed: Some(Ok(())),
            dropped: Vec::new(),
            elsewhere: Vec::new(),
        };
        net.feed(Input::Begin);
        net.run();
        net
    }

    /// Sets the plans of a carrier at that address for INVITEs.
    pub(super) fn carrier(&mut self, at: &str, invites: impl IntoIterator<Item = Plan>) -> &mut Carrier {
        let carrier = self.carriers.entry(address(at)).or_default();
        carrier.invites = invites.into_iter().collect();
        carrier
    }

    /// 1001 dials.
    pub(super) fn dial(&mut self, number: &str) {
        let invite = Invite::new(
            format!("sip:{number}@acme.test"),
            "<sip:1001@acme.test>",
            format!("<sip:{number}@acme.test>"),
        );
        self.dial_by(invite);
    }

    pub(super) fn dial_by(&mut self, invite: Invite) {
        let flow = Flow::udp(ListenerId(0), address(SWITCH));
        let invite = invite.content("application/sdp", SDP);
        self.leg = Some(self.phone.invite(self.now, flow, invite).unwrap());
        self.run();
    }

    /// 1001 registers.
    pub(super) fn register(&mut self) {
        let aor = "<sip:1001@acme.test>";
        let draft = Draft::new(Method::Register, "sip:acme.test", aor, aor).header("Expires", "600");
        self.phone.request(self.now, Flow::udp(ListenerId(0), address(SWITCH)), draft).unwrap();
        self.run();
        assert_eq!(self.switch.bindings(), 1, "{:?}", self.heard);
    }

    /// 1001 sends an INFO inside its call.
    pub(super) fn inform(&mut self, content_type: &str, body: &str) {
        let content = Content::new(content_type, body.to_owned());
        self.phone.info(self.now, self.leg.unwrap(), content).unwrap();
        self.run();
    }

    /// 1001 sends a MESSAGE.
    pub(super) fn message(&mut self, to: &str, content_type: &str, body: &str) {
        let content = Content::new(content_type, body.to_owned());
        let draft = Draft::message(to, "<sip:1001@acme.test>", format!("<{to}>"), content);
        self.phone.request(self.now, Flow::udp(ListenerId(0), address(SWITCH)), draft).unwrap();
        self.run();
    }

    /// Returns the contacts of an extension.
    pub(super) fn devices_of(&mut self, extension: ExtensionId) -> Vec<String> {
        self.ask(DevicesOf(extension))
    }

    /// Returns a live call.
    pub(super) fn find_call(&mut self, call: CallId) -> Option<LiveCall> {
        self.ask(FindCall(call)).map(|call| *call)
    }

    /// Returns the live rooms.
    pub(super) fn live_rooms(&self) -> Vec<LiveRoom> {
        let micros = i64::try_from((self.now - self.start).as_micros()).unwrap();
        self.switch.control.conferences.rooms.live(Timestamp::from_micros(micros)).collect()
    }

    /// Returns a live room.
    pub(super) fn live_room(&mut self, room: RoomName) -> Option<LiveRoom> {
        self.ask(FindRoom(room))
    }

    /// Passes a note to the switch.
    pub(super) fn send_note(&mut self, dispatch: Dispatch) {
        self.ask(SendNotes(vec![dispatch]));
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// Returns the flow of a datagram from that address.
    pub(super) fn flow_of(&self, from: &str) -> Flow {
        Flow::udp(ListenerId(0), address(from))
    }

    /// 1001 answers the ringing call.
    pub(super) fn pick_up(&mut self) {
        let (leg, key) = self.ringing.take().unwrap();
        let reply = Reply::new(StatusCode::OK).content("application/sdp", SDP);
        self.phone.respond(self.now, &key, reply).unwrap();
        self.leg = Some(leg);
        self.run();
    }

    /// 1001 sends an offer inside its call.
    pub(super) fn offer_anew(&mut self, sdp: &str) {
        let extra = Extra::new().content("application/sdp", sdp.to_owned());
        self.phone.reinvite(self.now, self.leg.unwrap(), &extra).unwrap();
        self.run();
    }

    /// Feeds keys from the media of a port.
    pub(super) fn key(&mut self, port: u64, digits: &str) {
        for digit in digits.chars() {
            self.feed(Input::Digit(PortId(port), digit));
            self.run();
        }
    }

    /// Feeds a query and carries out the outputs; returns the answer.
    pub(super) fn ask<Q: Question>(&mut self, question: Q) -> Q::Answer {
        let token = self.put(question);
        Q::answer(self.replies.remove(&token).unwrap()).unwrap()
    }

    /// Feeds a query and carries out the outputs; returns the token of its answer.
    pub(super) fn put(&mut self, question: impl Question) -> ReplyToken {
        self.last_token += 1;
        let token = ReplyToken(self.last_token);
        self.feed(Input::Query(token, question.query()));
        self.run();
        token
    }

    /// Takes the texts about rooms and media since the last call.
    pub(super) fn heard_of_rooms(&mut self) -> String {
        std::mem::take(&mut self.rooms).join("\n")
    }

    pub(super) fn hang_up(&mut self) {
        self.phone.hang_up(self.now, self.leg.unwrap());
        self.run();
    }

    pub(super) fn feed(&mut self, input: Input) {
        let micros = i64::try_from((self.now - self.start).as_micros()).unwrap();
        let now = Now { instant: self.now, wall: Timestamp::from_micros(micros) };
        self.switch.handle_input(now, input);
    }

    /// Feeds a datagram without the admission check.
    pub(super) fn inject(&mut self, from: &str, text: String) {
        let flow = Flow::udp(ListenerId(0), address(from));
        self.feed(Input::Datagram { flow, bytes: text.into() });
        self.run();
    }

    /// Completes the delayed journal writes.
    pub(super) fn write(&mut self) {
        std::mem::take(&mut self.unwritten).into_iter().for_each(|call| self.feed(Input::Journalled(call)));
        self.run();
    }

    /// The carrier at that address sends a request inside its first call; returns the response's status.
    pub(super) fn carrier_says(&mut self, at: &str, method: &str, cseq: u32, body: Option<&str>) -> u16 {
        let invite = self.carriers[&address(at)].of(&Method::Invite)[0].clone();
        let header = |name| invite.header(name).unwrap().to_owned();
        let target = header(Name::Contact);
        let target = target.split(['<', '>']).nth(1).unwrap();
        let (us, them, call) = (header(Name::To), header(Name::From), header(Name::CallId));
        let (kind, body) = body.map_or(("", ""), |body| ("Content-Type: application/sdp\r\n", body));
        let text = |method: &str| {
            format!(
                "{method} {target} SIP/2.0\r\nVia: SIP/2.0/UDP {at};branch=z9hG4bKsaid{cseq}\r\nMax-Forwards: 70\r\n\
                 From: {us};tag=carrier\r\nTo: {them}\r\nCall-ID: {call}\r\nCSeq: {cseq} {method}\r\n\
                 Contact: <sip:{at}>\r\n"
            )
        };
        let heard = self.told.len();
        self.inject(at, format!("{}{kind}Content-Length: {}\r\n\r\n{body}", text(method), body.len()));
        let status = self.told.get(heard).map_or(0, |response| response.status().as_u16());
        if method == "INVITE" {
            self.inject(at, format!("{}Content-Length: 0\r\n\r\n", text("ACK")));
        }
        status
    }

    pub(super) fn resolved(&mut self, name: &TrunkAddress, answer: Answer) {
        self.feed(Input::Resolved(name.clone(), answer));
        self.run();
    }

    /// Reports that the party of a port is silent.
    pub(super) fn silent(&mut self, port: u64, silent_for: Duration) {
        self.feed(Input::Silent(PortId(port), Some(silent_for)));
        self.run();
    }

    /// Reports that the party of a port sends again.
    pub(super) fn heard(&mut self, port: u64) {
        self.feed(Input::Silent(PortId(port), None));
        self.run();
    }

    /// Advances the time.
    pub(super) fn wait(&mut self, wait: Duration) {
        let until = self.now + wait;
        loop {
            let due = [self.switch.next_timeout(), self.phone.next_timeout()].into_iter().flatten().min();
            self.now = due.filter(|due| *due <= until).unwrap_or(until).max(self.now);
            self.feed(Input::Timeout);
            self.phone.handle_input(self.now, ua::Input::Timeout);
            self.run();
            let next = [self.switch.next_timeout(), self.phone.next_timeout()].into_iter().flatten().min();
            if self.now >= until && next.is_none_or(|next| next > until) {
                return;
            }
        }
    }

    /// Delivers all pending messages.
    pub(super) fn run(&mut self) {
        loop {
            while let Some(output) = self.switch.poll_output() {
                self.switch_says(output);
            }
            while let Some(output) = self.phone.poll_output() {
                self.phone_says(output);
            }
            let Some((from, to, bytes)) = self.wire.pop_front() else { return };
            let flow = Flow::udp(ListenerId(0), from);
            if self.is_lost([from, to]) {
                continue;
            }
            if to == address(SWITCH) {
                // A dropped datagram is retransmitted by its transaction, as on any network.
                if let Err(reason) = self.switch.admit(self.now, &flow, &bytes) {
                    self.dropped.push(reason);
                    continue;
                }
                self.feed(Input::Datagram { flow, bytes });
            } else if to == self.phone_at {
                self.phone.handle_input(self.now, ua::Input::Datagram { flow, bytes });
            } else if !self.carriers.contains_key(&to) {
                self.elsewhere.push((to, bytes));
            } else if let Some(carrier) = self.carriers.get_mut(&to)
                && let Ok(Datagram::Message(message)) = parse_datagram(bytes)
            {
                match message {
                    Message::Request(request) => {
                        let said = carrier.hear(request, to);
                        self.wire.extend(said.into_iter().map(|response| (to, from, response.to_bytes())));
                    }
                    Message::Response(response) => self.told.push(response),
                }
            }
        }
    }

    fn switch_says(&mut self, output: Output) {
        match output {
            Output::Answered(call, _) if self.is_disk_slow => self.unwritten.push(call),
            Output::Answered(call, _) => self.feed(Input::Journalled(call)),
            Output::ChangeExtension(by, _, change) => {
                self.changes.push(*change);
                self.changed.into_iter().for_each(|result| self.feed(Input::ExtensionChanged(by, result)));
            }
            Output::Ended(record) => self.records.push(*record),
            Output::Media(port, MediaCommand::Close) => {
                self.feed(Input::Report(port, Box::default()));
            }
            Output::Media(port, MediaCommand::Snapshot) if !self.is_relay_slow => {
                self.feed(Input::Snapshot(port, Box::default()));
            }
            Output::Media(_, MediaCommand::Tone) => self.heard.push("tone".into()),
            Output::Media(port, command) => self.media_hears(port, &command),
            Output::Mix(mix, order) => {
                self.rooms.push(match &order {
                    MixOrder::Play { prompts, .. } => format!("all hear {}", names(prompts)),
                    MixOrder::PlaySound { sound, .. } => format!("all hear sound {sound}"),
                    MixOrder::StopSound => "no sound".into(),
                    MixOrder::Record(_) => "record".into(),
                    MixOrder::StopRecording => "record no more".into(),
                });
                self.of_rooms.push(OfRooms::Mix(mix, order));
            }
            Output::RoomEvent(news) => {
                self.rooms.push(room_news(&news.what));
                self.of_rooms.push(OfRooms::News(*news));
            }
            Output::Name(order, _) => self.rooms.push(format!("{order:?}")),
            Output::RoomNote(note) => {
                self.of_rooms.push(OfRooms::Note((*note).clone()));
                self.room_notes.push(*note);
            }
            Output::News(news) => match *news {
                SwitchEvent::Call(news) => self.news.push(news),
                SwitchEvent::DialFailed(failed) => self.dials_failed.push(failed),
                SwitchEvent::Guessing(guessing) => self.guessed.push(guessing),
                SwitchEvent::PinGuessing(guessing) => self.pins_guessed.push(guessing),
                SwitchEvent::RecordingFailed(_) => {}
                SwitchEvent::Prompt(ended) => self.requests.push(format!("prompt {}", ended.result.as_str())),
                SwitchEvent::Request(RequestChange { state, reason, .. }) => {
                    let reason = reason.map_or(String::new(), |reason| format!(" {reason}"));
                    self.requests.push(format!("{}{reason}", state.as_str()));
                }
            },
            Output::Notice(notice) => self.notices.push(notice),
            Output::NoteAnswered(note, place, answer) => self.answers.push((note, place, answer)),
            Output::IncomingMessage(said) => self.said.push(said),
            Output::OpenPort { leg, video, .. } => {
                let port = self.ports.open(video);
                self.feed(Input::PortOpened(leg, port));
            }
            Output::Reply(token, answer) => drop(self.replies.insert(token, answer)),
            Output::Resolve(name) => self.questions.push(name),
            Output::Proven(_) => {}
            Output::Close(flow) => self.closed.push(flow),
            Output::Hold(flow, is_held) => self.holds.push((flow, is_held)),
            Output::Transmit { flow, key, .. } if self.fails_at == Some(flow.remote) => {
                key.into_iter().for_each(|key| self.feed(Input::TransportError(key)));
            }
            Output::Transmit { flow, bytes, .. } => {
                self.wire.push_back((address(SWITCH), flow.remote, bytes));
            }
        }
    }

    /// Simulates a media engine that finishes prompts immediately.
    fn media_hears(&mut self, port: PortId, command: &MediaCommand) {
        if let (MediaCommand::Play { token, .. }, false) = (command, self.is_player_slow) {
            self.feed(Input::Played(port, *token));
        }
        self.of_rooms.push(OfRooms::Media(port, command.clone()));
        let port = port.0;
        self.rooms.push(match command {
            MediaCommand::Format(formats) => {
                format!("{port} hears {} speaks {}", formats.hears, formats.speaks)
            }
            MediaCommand::Gain(gain) => {
                format!("{port} gain {} dB{}", gain.decibels, if gain.automatic { ", automatic" } else { "" })
            }
            MediaCommand::Hear(hears) => format!("{port} hears {hears:?}"),
            MediaCommand::Join { muted, hears, .. } => {
                format!("{port} joins, hears {hears:?}{}", if *muted { ", muted" } else { "" })
            }
            MediaCommand::Leave => format!("{port} leaves"),
            MediaCommand::Mute(muted) => format!("{port} muted {muted}"),
            MediaCommand::Play { prompts, lead, .. } => {
                self.leads.push(*lead);
                format!("{port} is told {}", names(prompts))
            }
            MediaCommand::PlaySound { sound, .. } => format!("{port} hears sound {sound}"),
            MediaCommand::StopSound => format!("{port} hears no sound"),
            MediaCommand::Whisper(to) => format!("{port} whispers to {:?}", to.map(|to| to.0)),
            _ => return,
        });
    }

    fn phone_says(&mut self, output: ua::Output) {
        match output {
            ua::Output::Transmit { flow, bytes, .. } => {
                self.wire.push_back((self.phone_at, flow.remote, bytes));
            }
            ua::Output::Event(Event::Progress { response, .. }) => {
                self.heard.push(response.status().as_u16().to_string());
            }
            ua::Output::Event(Event::Answered { .. }) => self.heard.push("200".into()),
            ua::Output::Event(Event::Ended { cause, .. }) => self.ended(cause),
            ua::Output::Event(Event::Response { response, request: Some(request), .. }) => {
                self.again(&response, request);
            }
            ua::Output::Event(
                Event::InfoAnswered { receipt, .. } | Event::MessageAnswered { receipt, .. },
            ) => {
                if let Receipt::Answered { response, request: Some(request), .. } = receipt {
                    self.again(&response, request);
                }
            }
            ua::Output::Event(Event::Request { leg: None, key, request, .. })
                if *request.method() == Method::Options =>
            {
                self.phone.respond(self.now, &key, Reply::new(StatusCode::OK)).unwrap();
            }
            ua::Output::Event(Event::Request { key, request, .. }) => {
                if let Some(status) = self.taking {
                    self.phone.respond(self.now, &key, Reply::new(status)).unwrap();
                }
                self.noted.push(request);
            }
            ua::Output::Event(Event::Updated { key, request, .. }) => {
                let reply = Reply::new(StatusCode::OK).content("application/sdp", SDP);
                self.phone.respond(self.now, &key, reply).unwrap();
                self.noted.push(request);
            }
            ua::Output::Event(Event::Reinvited { key, .. }) => {
                let reply = Reply::new(StatusCode::OK).content("application/sdp", SDP);
                self.phone.respond(self.now, &key, reply).unwrap();
                self.reinvited.push((self.now - self.start).as_secs());
            }
            ua::Output::Event(Event::Invited { leg, key, request, .. }) => {
                self.called.push(request);
                match self.refusal.clone() {
                    Some(reply) => drop(self.phone.respond(self.now, &key, reply)),
                    None => self.ringing = Some((leg, key)),
                }
            }
            _ => {}
        }
    }

    fn ended(&mut self, cause: Cause) {
        let (response, request) = match cause {
            Cause::Refused { response, request, .. } => (response, request),
            Cause::Bye(_) => return self.heard.push("BYE".into()),
            _ => return,
        };
        self.again(&response, request.unwrap());
    }

    /// Repeats a challenged request of the phone with credentials.
    fn again(&mut self, response: &Response, request: Request) {
        let challenges: Vec<Digest> = response.www_authenticate().filter_map(Result::ok).collect();
        let tried = request.authorization().next().is_some();
        let answer = self.login.answer(&challenges, tried, request.method().as_str(), request.uri());
        let Some(answer) = answer else {
            self.reasons.extend(response.headers().header("Reason").map(str::to_owned));
            return self.heard.push(format!("{} {}", response.status().as_u16(), response.reason()));
        };
        let flow = Flow::udp(ListenerId(0), address(SWITCH));
        let extra = Extra::new().header("Authorization", answer);
        if let Ok(Retried::Leg(leg)) = self.phone.retry(self.now, flow, request, &extra) {
            self.leg = Some(leg);
        }
    }
}
