//! The driver of calls, registrations and streams: their sockets, the clock, and the turns of the loop.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{Ipv4Addr, SocketAddrV4};

use crate::program::carrier::{CallNews, Carrier, CarrierPlan, round_robin};
use crate::program::clock::{Clock, MILLISECOND, Nanos, SECOND};
use crate::program::error::LoadError;
use crate::program::options::Target;
use crate::program::outbox::Outbox;
use crate::program::pace::Pace;
use crate::program::phones::{Phones, PhonesPlan};
use crate::program::registrations::{Registrations, RegistrationsPlan};
use crate::program::sip_text::{Message, Start};
use crate::program::site::{carrier_address, phone_address};
use crate::program::sockets::Sockets;
use crate::program::streams::Streams;

/// The machines to open, and the number of sockets of each.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// SIP sockets of the carrier, each on an address of its own.
    pub(crate) carriers: usize,
    /// SIP sockets of the phones, each on an address of its own.
    pub(crate) phones: usize,
    /// Pairs of sockets for RTP and RTCP of each side.
    pub(crate) media: usize,
    /// The number of phones.
    pub(crate) extensions: u32,
    /// How long a call is up; `None`: until it is ended explicitly.
    pub(crate) hold: Option<Nanos>,
    /// How long a phone rings.
    pub(crate) ring: Nanos,
    /// Whether phones send `100 Trying`.
    pub(crate) trying: bool,
    /// Whether a nonce is used again.
    pub(crate) reuse_nonce: bool,
    /// How often a leg sends a packet.
    pub(crate) interval: Nanos,
    /// Whether each call has its own caller number, and the numbers of answered calls are kept.
    pub(crate) numbers_callers: bool,
    /// How long each leg sends packets after the answer; `None`: it does not send by itself.
    pub(crate) talk: Option<Nanos>,
}

/// One side of a call that is up: the socket of its audio, and the destination.
pub(crate) type AudioPath = (usize, SocketAddrV4);

/// The machines of a run with their sockets.
pub(crate) struct Switchboard {
    /// The clock of the run.
    pub(crate) clock: Clock,
    /// The calling side.
    pub(crate) carrier: Carrier,
    /// The called side.
    pub(crate) phones: Phones,
    /// The phones' registrations.
    pub(crate) registrations: Registrations,
    /// The audio of both sides.
    pub(crate) streams: Streams,
    sockets: Sockets,
    outbox: Outbox,
    roles: Vec<Role>,
    carrier_media: Vec<usize>,
    phone_media: Vec<usize>,
    talk: Option<Nanos>,
    answered: Vec<AudioPath>,
    extensions: u32,
}

/// The purpose of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Carrier,
    Phone,
    /// RTCP: read and ignored.
    Rtcp,
    Rtp,
}

impl Layout {
    /// Sockets for audio alone.
    pub(crate) fn media_only(media: usize, interval: Nanos) -> Self {
        Layout {
            carriers: 0,
            phones: 0,
            media,
            extensions: 0,
            hold: None,
            ring: 0,
            trying: true,
            reuse_nonce: false,
            interval,
            numbers_callers: false,
            talk: None,
        }
    }
}

impl Switchboard {
    /// Opens the sockets.
    ///
    /// # Errors
    /// An address is taken, or no descriptor is left.
    pub(crate) fn open(target: &Target, layout: &Layout) -> Result<Self, LoadError> {
        let mut opening = Opening { sockets: Sockets::new()?, roles: Vec::new() };
        let carriers = opening.each(layout.carriers, Role::Carrier, carrier_address)?;
        let phones = opening.each(layout.phones, Role::Phone, phone_address)?;
        let carrier_media = opening.each(layout.media, Role::Rtp, carrier_address)?;
        let phone_media = opening.each(layout.media, Role::Rtp, phone_address)?;
        let Opening { sockets, roles } = opening;
        let located = |indices: &[usize]| -> Vec<(usize, SocketAddrV4)> {
            indices.iter().map(|index| (*index, sockets.address(*index))).collect()
        };
        let addresses =
            |indices: &[usize]| located(indices).into_iter().map(|(_, address)| address).collect();
        // A registrar remembers the `CSeq` of a `Call-ID`, so a run must not repeat the Call-IDs of another.
        let run = u32::try_from(RandomState::new().build_hasher().finish() >> 32).unwrap_or_default();
        let carrier = CarrierPlan {
            engine: target.engine,
            domain: target.domain.clone(),
            number_prefix: target.number_prefix.clone(),
            first_extension: target.first_extension,
            extensions: layout.extensions,
            sockets: located(&carriers),
            media: addresses(&carrier_media),
            hold: layout.hold,
            numbers_callers: layout.numbers_callers,
            run,
        };
        let registrations = RegistrationsPlan {
            engine: target.registrar.unwrap_or(target.engine),
            domain: target.domain.clone(),
            password: target.password.clone(),
            first_extension: target.first_extension,
            extensions: layout.extensions,
            sockets: located(&phones),
            expires: 3_600,
            reuse_nonce: layout.reuse_nonce,
            run,
        };
        let phones = PhonesPlan {
            trying: layout.trying,
            ring: layout.ring,
            locals: located(&phones).into_iter().collect::<HashMap<_, _>>(),
            media: addresses(&phone_media),
        };
        Ok(Switchboard {
            clock: Clock::start(),
            carrier: Carrier::new(carrier),
            phones: Phones::new(phones),
            registrations: Registrations::new(registrations),
            streams: Streams::new(layout.interval),
            sockets,
            outbox: Outbox::default(),
            roles,
            carrier_media,
            phone_media,
            talk: layout.talk,
            answered: Vec::new(),
            extensions: layout.extensions,
        })
    }

    /// Registers every phone once, `rate` a second.
    ///
    /// # Errors
    /// One of them is refused, or gets no answer in time.
    pub(crate) fn register_all(&mut self, rate: f64) -> Result<(), LoadError> {
        let count = u64::from(self.extensions);
        let began = self.clock.now();
        let mut pace = Pace::counted(began, rate, count);
        let deadline = pace.end() + SET_UP_MAX;
        while self.registrations.done() + self.registrations.failures() < count {
            let now = self.clock.now();
            if now > deadline {
                break;
            }
            while let Some(number) = pace.release(now) {
                self.registrations.begin(now, number, &mut self.outbox);
            }
            self.turn(pace.next_due().unwrap_or(deadline))?;
        }
        let done = self.registrations.done();
        if done < count {
            return Err(LoadError::SetUp(format!("{done} of {count} phones are registered")));
        }
        Ok(())
    }

    /// Places call `number` now.
    pub(crate) fn place(&mut self, number: u64) {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        self.carrier.place(self.clock.now(), number, &mut self.outbox);
    }

    /// Begins registration `number` now.
    pub(crate) fn register(&mut self, number: u64) {
        self.registrations.begin(self.clock.now(), number, &mut self.outbox);
    }

    /// Ends every call that is up.
    pub(crate) fn hang_up_all(&mut self) {
        self.carrier.hang_up_all(self.clock.now(), &mut self.outbox);
    }

    /// Runs what is due, sends, and reads what arrives, at most until `until`.
    ///
    /// # Errors
    /// The sockets cannot be watched.
    pub(crate) fn turn(&mut self, until: Nanos) -> Result<(), LoadError> {
        let now = self.clock.now();
        self.carrier.handle_timeouts(now, &mut self.outbox);
        self.phones.handle_timeouts(now, &mut self.outbox);
        self.registrations.handle_timeouts(now, &mut self.outbox);
        self.follow_news(now);
        self.streams.send_due(now, &mut self.outbox);
        self.sockets.send(&mut self.outbox);
        let due = [
            self.carrier.next_timeout(),
            self.phones.next_timeout(),
            self.registrations.next_timeout(),
            self.streams.next_due(),
        ];
        let until = due.into_iter().flatten().min().map_or(until, |due| due.min(until));
        self.receive(until)?;
        self.sockets.send(&mut self.outbox);
        Ok(())
    }

    /// Takes turns until `until`.
    ///
    /// # Errors
    /// The sockets cannot be watched.
    pub(crate) fn idle_until(&mut self, until: Nanos) -> Result<(), LoadError> {
        while self.clock.now() < until {
            self.turn(until)?;
        }
        Ok(())
    }

    /// Returns the sides of calls that were answered, in order; both sides of a call.
    pub(crate) fn answered(&self) -> &[AudioPath] {
        &self.answered
    }

    /// Returns the sockets for RTP of the calling and the called side, for call `number`.
    pub(crate) fn media_sockets(&self, number: u32) -> [usize; 2] {
        [&self.carrier_media, &self.phone_media]
            .map(|sockets| round_robin(sockets, number).copied().unwrap_or_default())
    }

    /// Returns the address of a socket.
    pub(crate) fn address(&self, socket: usize) -> SocketAddrV4 {
        self.sockets.address(socket)
    }

    /// Sends a datagram at the next turn.
    pub(crate) fn send(&mut self, (socket, to): AudioPath, bytes: &[u8]) {
        self.outbox.push(socket, to, |buffer| buffer.extend_from_slice(bytes));
    }

    /// Returns the number of datagrams that the system refused to send.
    pub(crate) fn refused(&self) -> u64 {
        self.sockets.refused()
    }

    fn receive(&mut self, until: Nanos) -> Result<(), LoadError> {
        let Switchboard { clock, sockets, roles, outbox, carrier, phones, registrations, streams, .. } = self;
        let patience = until.saturating_sub(clock.now()).min(PATIENCE_MAX);
        sockets.receive(patience, |socket, from, bytes| {
            let now = clock.now();
            match roles.get(socket) {
                Some(Role::Rtp) => streams.receive(now, bytes),
                Some(role @ (Role::Carrier | Role::Phone)) => {
                    let Some(message) = Message::read(bytes) else { return };
                    match (role, message.start) {
                        (Role::Carrier, _) => carrier.handle(now, socket, &message, outbox),
                        (_, Start::Response(_)) => registrations.handle(now, &message, outbox),
                        (_, Start::Request(_)) => phones.handle(now, socket, from, &message, outbox),
                    }
                }
                Some(Role::Rtcp) | None => {}
            }
        })
    }

    /// Starts and ends the audio of calls. Each side's legs have their own numbers.
    fn follow_news(&mut self, now: Nanos) {
        let news = self.carrier.take_news().map(|news| (0, news));
        for (side, news) in news.chain(self.phones.take_news().map(|news| (1, news))) {
            match news {
                CallNews::Up(number, Some(to)) => {
                    let [carrier, phone] = self.media_sockets(number);
                    let path = (if side == 0 { carrier } else { phone }, to);
                    self.answered.push(path);
                    if let Some(talk) = self.talk {
                        self.streams.begin(number * 2 + side, path, now, now + talk);
                    }
                }
                CallNews::Up(_, None) => {}
                CallNews::Over(number) => self.streams.end(number * 2 + side),
            }
        }
    }
}

/// Sockets that are being opened, with their roles by index.
struct Opening {
    sockets: Sockets,
    roles: Vec<Role>,
}

impl Opening {
    fn each(
        &mut self,
        count: usize,
        role: Role,
        address: impl Fn(usize) -> Ipv4Addr,
    ) -> Result<Vec<usize>, LoadError> {
        (0..count)
            .map(|index| {
                self.roles.push(role);
                if role == Role::Rtp {
                    self.roles.push(Role::Rtcp);
                    return self.sockets.bind_pair(address(index));
                }
                self.sockets.bind(address(index), 0)
            })
            .collect()
    }
}

/// The longest set-up beyond its planned time.
pub(crate) const SET_UP_MAX: Nanos = 40 * SECOND;
/// The longest time of one turn of the loop.
const PATIENCE_MAX: Nanos = 100 * MILLISECOND;
