//! Inputs, outputs and configuration of the switch.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sidetone_media::mix::MixId;
use sidetone_media::session::{Report, Warning};
use sidetone_model::call::HangupCause;
use sidetone_model::cdr::Cdr;
use sidetone_model::extension::ExtensionChange;
use sidetone_model::guessing::GuessLimit;
use sidetone_model::ids::{
    CallId, ConferenceSessionId, ExtensionId, LegId, NodeId, NoteId, OrganisationId, RoomId, TrunkId,
};
use sidetone_model::language::Language;
use sidetone_model::note::PhoneAnswer;
use sidetone_model::pin_guessing::PinLimit;
use sidetone_model::rating::{Account, Drawn};
use sidetone_model::room::event::RoomEvent;
use sidetone_model::switch_event::SwitchEvent;
use sidetone_model::trunk_address::TrunkAddress;
use sidetone_sip::admission::{AdmissionConfig, Dropped};
use sidetone_sip::auth::Algorithm;
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Message, Rejection};
use sidetone_sip::transaction::{ClientKey, ServerKey};

use crate::carriers::{AddressPolicy, CarrierFault};
use crate::conference::{NameOrder, RoomNote, RoomsConfig};
use crate::denied::Denied;
use crate::incoming_message::IncomingMessage;
use crate::io::{LegName, Limits, MediaCommand, Port, PortId, Reach};
use crate::mixing::{MixOrder, Recording};
use crate::node_entry::NodeEntries;
use crate::queries::{Answer, Query, ReplyToken};
use crate::rating::Tariffs;
use crate::routing::Directory;
use crate::trunk_dns;

/// The outputs that the parts of the switch produce, in order.
pub(super) type Outputs = VecDeque<Output>;

/// An event for the switch.
#[derive(Debug)]
pub enum Input {
    /// New credit accounts of the organisations.
    Accounts(Vec<Account>),
    /// The database includes these charges of calls.
    Drawn(Vec<Drawn>),
    /// New prices.
    Tariffs(Arc<Tariffs>),
    /// Whether to accept new calls; initially true.
    Accept(bool),
    /// Answer a phone's message, after [`Output::IncomingMessage`], with this final status.
    Answer(ServerKey, u16),
    /// Start registrations with trunks and the rooms of the directory. Fed once, at the start.
    Begin,
    /// The party of a port pressed a key.
    Digit(PortId, char),
    /// A datagram arrived, and [`Switch::admit`](crate::machine::Switch::admit) admitted it.
    Datagram {
        /// Its source and listener.
        flow: Flow,
        /// Its bytes.
        bytes: Bytes,
    },
    /// A connection is closed.
    Closed(Flow),
    /// A connection could not be opened.
    Unopened(Flow),
    /// The stored directory changed.
    Directory(Arc<Directory>),
    /// End every call.
    EndCalls(HangupCause),
    /// The change after [`Output::ChangeExtension`] is stored, or was refused with this SIP status.
    ExtensionChanged(ExtensionId, Result<(), u16>),
    /// The peer of a connection proved these host names by its certificate.
    Identified(Flow, Vec<String>),
    /// The journal has the answered call on disk.
    Journalled(CallId),
    /// The party of a port pressed a key for this number of milliseconds, after [`MediaCommand::WatchKeys`].
    Key(PortId, char, u32),
    /// Remove our registrations with trunks: the engine is about to stop.
    LeaveTrunks,
    /// A message arrived on a stream connection.
    Message {
        /// The connection.
        flow: Flow,
        /// The message.
        message: Message,
    },
    /// A prompt to the party of a port ended; carries its token.
    Played(PortId, u64),
    /// The media port after [`Output::OpenPort`]; `None` when no port is free.
    PortOpened(LegName, Option<Port>),
    /// A query; [`Output::Reply`] with the token answers it.
    Query(ReplyToken, Query),
    /// The recording of a session is closed.
    Recorded(ConferenceSessionId, Recording),
    /// The host of this destination refused a datagram of ours, with these first bytes.
    Refused(Flow, Bytes),
    /// The spoken name of a caller was looked up or recorded; whether there is one now.
    Name(LegId, bool),
    /// A media port was closed; its report.
    Report(PortId, Box<Report>),
    /// The result of the DNS query, after [`Output::Resolve`].
    Resolved(TrunkAddress, trunk_dns::Answer),
    /// How long the party of a port has sent nothing; `None` when packets arrive again.
    Silent(PortId, Option<Duration>),
    /// The settings changed.
    Settings(Settings),
    /// The requested report of a port.
    Snapshot(PortId, Box<Report>),
    /// The party of a port began or stopped to talk.
    Talking(PortId, bool),
    /// The time of [`Switch::next_timeout`](crate::machine::Switch::next_timeout) has come.
    Timeout,
    /// A message could not be sent.
    TransportError(ClientKey),
    /// A media problem of a port's party began or ended.
    Warning(PortId, Box<Warning>),
}

/// Actions that the driver carries out.
#[derive(Debug)]
pub enum Output {
    /// Write to the journal that the call is answered, then feed [`Input::Journalled`].
    Answered(CallId, Box<Cdr>),
    /// Store a change that the phone of an extension dialled, then feed [`Input::ExtensionChanged`].
    ChangeExtension(ExtensionId, OrganisationId, Box<ExtensionChange>),
    /// The call is over: write its record to the journal and store it.
    Ended(Box<Cdr>),
    /// Send a command to a media port.
    Media(PortId, MediaCommand),
    /// Send an order to a mix.
    Mix(MixId, MixOrder),
    /// Look up, record, play or forget the spoken name of a member, with words in this language.
    Name(NameOrder, Language),
    /// Something changed in a live room.
    RoomEvent(Box<RoomEvent>),
    /// Send a note to phones in a room.
    RoomNote(Box<RoomNote>),
    /// An event to store beside the records.
    News(Box<SwitchEvent>),
    /// The result of sending a note to the phone at this index; once for each phone.
    NoteAnswered(NoteId, usize, PhoneAnswer),
    /// A notice for the operator's log.
    Notice(Notice),
    /// The peer of this connection has authenticated.
    Proven(Flow),
    /// Calls use this connection from now on, or no longer. While they do, it must not be closed for inactivity.
    Hold(Flow, bool),
    /// Close this connection: the credential of its account changed, or the account was deleted.
    Close(Flow),
    /// A phone sent a message. Feed [`Input::Answer`] within half a second; otherwise the phone retransmits.
    IncomingMessage(IncomingMessage),
    /// Open a media port for a leg whose SIP comes from `towards`. Feed [`Input::PortOpened`] before any other
    /// input.
    OpenPort {
        /// The leg.
        leg: LegName,
        /// One media group per call.
        group: u64,
        /// The address that the party's SIP comes from.
        towards: IpAddr,
        /// Whether it needs a port for video too.
        video: bool,
    },
    /// The answer to the query with this token.
    Reply(ReplyToken, Answer),
    /// Look up this address in DNS (RFC 3263), then feed [`Input::Resolved`] with any result.
    Resolve(TrunkAddress),
    /// Send these bytes.
    Transmit {
        /// The destination.
        flow: Flow,
        /// One complete message.
        bytes: Bytes,
        /// The transaction to name in [`Input::TransportError`].
        key: Option<ClientKey>,
    },
}

/// Events for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A trunk may not use one of its addresses.
    Carrier(TrunkId, IpAddr, CarrierFault),
    /// The trunk rejects our credentials, or asks for credentials that we must not send.
    Credentials(TrunkId),
    /// A request was refused because of its sender.
    Denied(Denied),
    /// A message from this address was dropped unread.
    Dropped(IpAddr, Dropped),
    /// Wrong passwords reached this limit; the last one came from this address.
    Guessing(IpAddr, GuessLimit),
    /// A table is full; a message from this address was answered with 503.
    Overload(IpAddr),
    /// Wrong PINs at a room reached a limit.
    PinGuessing(RoomId, PinLimit),
    /// The SRTP keys of a party at this address were in SDP over an unencrypted transport.
    ReadableKeys(IpAddr),
    /// A datagram from this address was not a SIP message.
    Rejected(IpAddr, Rejection),
    /// We are registered with the trunk.
    Registered(TrunkId),
    /// The trunk refused our registration; with its status, if it sent one.
    Unregistered(TrunkId, Option<u16>),
    /// A request from an unknown sender got no response, because even the shortest one would be more than one
    /// and a half times as long.
    Withheld(IpAddr),
}

/// Settings that may change while calls are up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The digest algorithms that phones are offered, in this order.
    pub digest: Vec<Algorithm>,
    /// See [`SwitchConfig::md5_only`].
    pub md5_only: Vec<String>,
    /// See [`SwitchConfig::limits`]; for calls that begin from now on.
    pub limits: Limits,
}

/// Configuration of the switch.
pub struct SwitchConfig {
    /// This node, for records.
    pub node: NodeId,
    /// The time limits of calls.
    pub limits: Limits,
    /// Most calls at the same time; further calls are refused with 503.
    pub calls_max: usize,
    /// User-Agent prefixes of phones that fail when a challenge offers other algorithms than MD5.
    pub md5_only: Vec<String>,
    /// Finds the flow to a trunk's address.
    pub reach: Reach,
    /// The interval at which registered phones are probed; `None` sends only keep-alives.
    pub qualify: Option<Duration>,
    /// The addresses that trunks may have.
    pub trunk_addresses: AddressPolicy,
    /// How long before the end of its credit a call gets the warning.
    pub credit_warning: Duration,
    /// The limits of rooms.
    pub rooms: RoomsConfig,
    /// The port pairs of the relay, of which every organisation may hold a share.
    pub media_ports: usize,
    /// The worker threads of the relay: media group modulo this number is the worker of a port or mix.
    pub media_workers: usize,
    /// The limits of reading messages from unknown senders.
    pub admission: AdmissionConfig,
    /// The key and listener for calls of other nodes; `None` for a single node.
    pub nodes: Option<NodeEntries>,
    /// Whether the nodes of a cluster decide together how many outbound calls an organisation may have, and which node
    /// registers with a trunk.
    pub shares_limits: bool,
    /// Any instant not after the first input.
    pub epoch: Instant,
}
