//! What crosses between the relay's threads and the rest: configuration, commands, notices, errors.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::mix::{MixCommand, MixId, Seat, SeatCommand, SeatKey};
use crate::session::{Description, Report, SessionConfig, Warning};
use crate::trace::{TraceHead, TraceSink};
use crate::transcode::TranscodePlan;

/// How a relay is set up.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// The address the ports are usually bound to; together with `ports` it names what is the relay's own.
    pub bind: IpAddr,
    /// Where port pairs are taken from. Nothing is ever sent to a port of this range on an own address.
    pub ports: RangeInclusive<u16>,
    /// Worker threads; 0 for one per core.
    pub workers: usize,
    /// The settings of every leg's session; its `own_addresses` are own addresses here, too.
    pub session: SessionConfig,
    /// Decides the order in which ports are given out. Take it from the system's randomness.
    pub seed: u64,
}

/// Names one opened pair of ports; never used twice within the life of a relay.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(u64);

impl PortId {
    /// 39 bits of serial number, 8 bits of worker, 16 bits of the even port; the top bit stays free.
    pub(super) fn new(serial: u64, worker: u8, port: u16) -> PortId {
        PortId(((serial & SERIAL_MAX) << 24) | (u64::from(worker) << 16) | u64::from(port))
    }

    /// The worker that the pair was opened by: its home, wherever its leg is now.
    pub(super) fn worker(self) -> usize {
        usize::from((self.0 >> 16) as u8)
    }

    /// The even port of the pair.
    pub(super) fn port(self) -> u16 {
        self.0 as u16
    }

    /// What a mix calls the seat of this port's leg.
    pub(super) fn seat(self) -> SeatKey {
        SeatKey(self.0)
    }

    /// The port whose leg has that seat.
    pub(super) fn of_seat(seat: SeatKey) -> PortId {
        PortId(seat.0)
    }

    /// The token that epoll carries for one of the two sockets, see [`PortId::from_token`].
    pub(super) fn token(self, rtcp: bool) -> u64 {
        (self.0 << 1) | u64::from(rtcp)
    }

    /// The pair and whether the token is of its RTCP socket.
    pub(super) fn from_token(token: u64) -> (PortId, bool) {
        (PortId(token >> 1), token & 1 == 1)
    }
}

impl fmt::Debug for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PortId({}, port {})", self.0 >> 24, self.port())
    }
}

/// A pair of ports that is bound and waits for the party's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// What commands and notices call it.
    pub id: PortId,
    /// Where it receives RTP: an even port.
    pub rtp: SocketAddr,
    /// Where it receives RTCP: the odd port above it.
    pub rtcp: SocketAddr,
}

/// What the switch tells a leg's port.
///
/// What the port had received before a command is measured, and relayed, before the command is obeyed.
#[derive(Clone, Debug)]
pub enum Command {
    /// The call was answered.
    Answered,
    /// From now on what this leg receives is sent to the party of `peer`.
    ///
    /// One direction: the peer needs the same command to be heard here. A port may be its own peer (echo).
    Bridge {
        /// A port of the same group.
        peer: PortId,
        /// For each payload type that this leg may receive, the number that the peer's party knows it by;
        /// 128 and above: it knows none, the packet is not relayed. Without a map numbers stay as they are.
        payload_map: Option<Box<[u8; 128]>>,
    },
    /// Ends the leg: its ports close, its report comes as [`Notice::Closed`].
    Close,
    /// Gives the leg a seat in a mix, which begins with its first seat; a seat in another mix and a bridge end.
    ///
    /// What the party sends is mixed and no longer relayed, what it hears comes from the mix.
    Join {
        /// Which mix.
        mix: MixId,
        /// What is known of the party.
        seat: Box<Seat>,
    },
    /// Takes the leg's seat away: from now on what it receives is measured, and nothing is sent to it.
    Leave,
    /// Tells the leg's seat; without one nothing happens.
    Seat(SeatCommand),
    /// What SDP settled for this leg; replaces what was there before.
    ///
    /// Packets that overtake the first description wait in the socket and are measured with it.
    Describe(Box<Description>),
    /// Asks for a [`Notice::Snapshot`].
    Snapshot,
    /// Begins the leg's trace; to be told before anything else, so that nothing is missing in it.
    Trace {
        /// Whose trace it is. What the session was set up with, and the time, are put in by the worker.
        head: Box<TraceHead>,
        /// Where it goes. It is called from the worker's thread.
        sink: Arc<dyn TraceSink>,
    },
    /// Lets the party hear a beep of 600 ms in the G.711 audio that is sent to it anyway, or in whatever is transcoded
    /// for it; in another codec that is relayed, and where nothing is sent, it hears none. Figures and numbers of the packets stay as they are.
    Tone,
    /// Makes of what the leg's [`Command::Bridge`] does not map something that the peer's party knows, or no longer;
    /// what runs by the same plan goes on. The peer's party then gets a stream of ours, and reports of ours about it.
    Transcode {
        /// What SDP settled on both sides; `None` relays alone.
        plan: Option<Box<TranscodePlan>>,
        /// Where the SSRC and the first numbers of that stream come from.
        seed: u64,
    },
    /// From now on what this leg receives is measured and not relayed.
    Unbridge,
}

/// What a worker tells the switch.
#[derive(Clone, Debug)]
pub enum Notice {
    /// The ports are closed and these are the leg's final figures. Never lost.
    Closed {
        /// Which port.
        id: PortId,
        /// The final figures.
        report: Box<Report>,
    },
    /// The party pressed a key. Never lost while fewer than 65,536 notices of a worker wait.
    Digit {
        /// Which port.
        id: PortId,
        /// `0` to `9`, `*`, `#`, `A` to `D`.
        digit: char,
    },
    /// Packets now go to `remote`, from where the party's own packets come (symmetric RTP).
    Latched {
        /// Which port.
        id: PortId,
        /// The party's address as it is seen here.
        remote: SocketAddr,
    },
    /// What was played to the party alone is over. Never lost, as a digit is not.
    Played {
        /// Which port.
        id: PortId,
        /// The token of the command.
        token: u64,
    },
    /// A recording ended by itself. Never lost, as a digit is not.
    RecordingEnded {
        /// Of which mix.
        mix: MixId,
    },
    /// Figures so far. Dropped and counted when nobody takes the notices.
    Snapshot {
        /// Which port.
        id: PortId,
        /// The figures so far.
        report: Box<Report>,
    },
    /// Nothing was accepted from the party for about a second, or something is again. Never lost, as a digit is not.
    Silent {
        /// Which port.
        id: PortId,
        /// For how long neither RTP nor RTCP came from the party; `None` when it is heard again.
        since_us: Option<i64>,
    },
    /// Something goes wrong with what the party sends, or no longer; only while somebody wants to know, see
    /// [`Relay::warn`](super::Relay::warn). Never lost, as a digit is not.
    Warning {
        /// Which port.
        id: PortId,
        /// What.
        warning: Box<Warning>,
    },
    /// The party began or ceased to talk. While nobody takes the notices changes are left out, never the last one.
    Talking {
        /// Which port.
        id: PortId,
        /// Whether it talks now.
        talking: bool,
    },
}

/// Why a relay could not be started; completes "failed to start the relay: ".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// The configured range has no even port with its odd neighbour.
    #[error("the range {}-{} holds no pair of an even port and the odd one above it", .0.start(), .0.end())]
    NoPorts(RangeInclusive<u16>),
    /// The system refused a thread, an epoll or an event descriptor.
    #[error("the system refused a worker")]
    Worker(#[source] io::Error),
}

/// Why no port was opened; completes "failed to open a port: ".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system refused the socket, for instance because the address is not one of this machine.
    #[error("the system refused a socket on {ip}")]
    Bind {
        /// The address that was asked for.
        ip: IpAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The worker is behind: its queue is full or too many of its reports wait to be taken.
    #[error("the worker is behind with its work")]
    Busy,
    /// Every pair of the range is in use, rests after its last call, or belongs to another program.
    #[error("all {pairs} port pairs are in use or resting")]
    Exhausted {
        /// How many pairs the configured range has.
        pairs: usize,
    },
    /// The relay was shut down.
    #[error("the relay is shut down")]
    Stopped,
}

/// Why a command was not taken; completes "failed to command a port: ".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The worker's queue is full; the command can be tried again.
    #[error("the worker's queue is full")]
    Busy,
    /// The two ports of a bridge were opened in different groups.
    #[error("the two ports do not belong to the same group")]
    OtherGroup,
    /// The relay was shut down.
    #[error("the relay is shut down")]
    Stopped,
}

/// A command to a mix that was not taken, given back: what it carries may be there once only.
#[derive(Debug, thiserror::Error)]
#[error("the command to a mix was not taken")]
pub struct MixRefused {
    /// Why.
    #[source]
    pub error: CommandError,
    /// The command.
    pub command: MixCommand,
}

const SERIAL_MAX: u64 = (1 << 39) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_its_token() {
        for (serial, worker, port) in [(0, 0, 2), (1, 255, 65_534), (SERIAL_MAX, 7, 10_000)] {
            let id = PortId::new(serial, worker, port);
            assert_eq!((id.worker(), id.port()), (usize::from(worker), port));
            for rtcp in [false, true] {
                assert_eq!(PortId::from_token(id.token(rtcp)), (id, rtcp));
                assert_ne!(id.token(rtcp), u64::MAX, "the waker's token");
            }
        }
    }
}
