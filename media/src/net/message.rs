//! Messages between the relay's threads and the rest of the program: configuration, commands, notices,
//! errors.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::rtcp_tap::RtcpSink;
use crate::dtmf::{KeyPress, KeySource, KeyTone};
use crate::mix::{MixCommand, MixId, Seat, SeatCommand, SeatKey};
use crate::session::{Description, Report, SessionConfig, Warning};
use crate::srtp::SrtpKeys;
use crate::trace::{TraceHead, TraceSink};
use crate::transcode::TranscodePlan;
use crate::webrtc::{CertificateError, Protection};

/// Configuration of a relay.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// The address that ports are usually bound to. Together with `ports` it defines the relay's own
    /// addresses.
    pub bind: IpAddr,
    /// The range of the port pairs. Nothing is ever sent to a port of this range on an own address.
    pub ports: RangeInclusive<u16>,
    /// Worker threads; 0 for one per core.
    pub workers: usize,
    /// The interface between workers and kernel.
    pub io: RelayIo,
    /// The settings of every leg's session; its `own_addresses` also count as own addresses here.
    pub session: SessionConfig,
    /// Seed for the order in which ports are used. Take it from the system's randomness.
    pub seed: u64,
}

/// The interface between the workers of a relay and the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RelayIo {
    /// io_uring where the kernel supports and allows it, otherwise `epoll`.
    #[default]
    Auto,
    /// `epoll`.
    Epoll,
    /// io_uring; where it is refused, `epoll` with a warning in the log.
    IoUring,
}

/// Identifies one opened pair of ports; never reused within the life of a relay.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(u64);

impl PortId {
    /// 39 bits of serial number, 8 bits of worker, 16 bits of the even port; the top bit stays free.
    pub(super) fn new(serial: u64, worker: u8, port: u16) -> PortId {
        PortId(((serial & SERIAL_MAX) << 24) | (u64::from(worker) << 16) | u64::from(port))
    }

    /// The worker that opened the pair. It stays the port's home when the leg moves.
    pub(super) fn worker(self) -> usize {
        usize::from((self.0 >> 16) as u8)
    }

    /// The even port of the pair.
    pub(super) fn port(self) -> u16 {
        self.0 as u16
    }

    /// The seat key of this port's leg in a mix.
    pub fn seat(self) -> SeatKey {
        SeatKey(self.0)
    }

    /// The port whose leg has this seat.
    pub(super) fn of_seat(seat: SeatKey) -> PortId {
        PortId(seat.0)
    }

    /// The epoll token of one of the two sockets, see [`PortId::from_token`].
    pub(super) fn token(self, rtcp: bool) -> u64 {
        (self.0 << 1) | u64::from(rtcp)
    }

    /// The pair, and whether the token belongs to its RTCP socket.
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
    /// Identifies the port in commands and notices.
    pub id: PortId,
    /// Local address for RTP, with an even port.
    pub rtp: SocketAddr,
    /// Local address for RTCP, with the odd port above it.
    pub rtcp: SocketAddr,
}

/// A command of the switch to a leg's port.
///
/// Packets received before a command are measured and relayed before the command runs.
#[derive(Clone, Debug)]
pub enum Command {
    /// The call was answered.
    Answered,
    /// Relays what this leg receives to the party of `peer` from now on.
    ///
    /// One direction only: the other direction needs the same command on the peer. A port may be its own peer
    /// (echo).
    Bridge {
        /// Another port.
        peer: PortId,
        /// For each payload type that this leg may receive, the number that the peer's party uses for it.
        /// With 128 and above the peer has no number and the packet is not relayed. Without a map numbers
        /// stay unchanged.
        payload_map: Option<Box<[u8; 128]>>,
    },
    /// Ends the leg: its ports close, and [`Notice::Closed`] carries its report.
    Close,
    /// Gives the leg a seat in a mix, and creates the mix with its first seat. A seat in another mix and a
    /// bridge end.
    ///
    /// The party's audio is mixed and no longer relayed; the party hears the mix.
    Join {
        /// Which mix.
        mix: MixId,
        /// The formats and settings of the seat.
        seat: Box<Seat>,
    },
    /// Removes the leg's seat: from now on received packets are measured, and nothing is sent to the party. After
    /// [`Command::Listen`] the leg's bridge continues.
    Leave,
    /// Gives the leg a seat in a mix, as [`Command::Join`] does, but its bridge continues: the party's packets are
    /// relayed and mixed, and the party does not hear the mix. A recording of a relayed call uses this.
    Listen {
        /// Which mix.
        mix: MixId,
        /// The formats and settings of the seat; it hears nothing.
        seat: Box<Seat>,
    },
    /// The negotiated protection, or `None` for plain RTP; send it before the [`Command::Describe`] of the same SDP. An
    /// unchanged key or handshake continues. From then on packets that cannot be authenticated are discarded; with ICE
    /// and DTLS nothing is sent until there is a path and a key.
    Secure(Option<Box<Protection>>),
    /// Plays the party a key as tones, written over G.711 that is sent to it in any case. At most 16 keys wait.
    PlayKey(KeyTone),
    /// Sends the party a key as a telephone event, written over audio that is sent to it in any case. At most 16 keys
    /// wait.
    Press(KeyPress),
    /// Passes a command to the leg's seat; ignored when it has none.
    Seat(SeatCommand),
    /// A new SDP result for this leg; replaces the earlier one.
    ///
    /// Packets that arrive before the first description wait in the socket and are measured with it.
    Describe(Box<Description>),
    /// The output of a DTLS handshake. Only the relay's own thread sends it.
    Shaken(Box<Shaken>),
    /// Requests a [`Notice::Snapshot`].
    Snapshot,
    /// Starts the leg's trace. Send it before all other commands, so that the trace is complete.
    Trace {
        /// Identifies the leg in the trace. The worker adds the session's settings and the time.
        head: Box<TraceHead>,
        /// Receives the trace; called from the worker's thread.
        sink: Arc<dyn TraceSink>,
    },
    /// Copies the leg's RTCP to this sink from now on.
    TapRtcp(Arc<dyn RtcpSink>),
    /// Plays the party a beep of 600 ms in the G.711 audio that is sent to it in any case, or in transcoded audio. With
    /// another relayed codec, or when no audio is sent, there is no beep. Figures, sequence numbers and timestamps of
    /// the packets do not change.
    Tone,
    /// Transcodes the packets that the leg's [`Command::Bridge`] does not map, or ends that. A transcoding with the
    /// same plan continues. The peer's party then receives a stream generated here, with RTCP reports about it.
    Transcode {
        /// The formats negotiated on both sides; `None` relays only.
        plan: Option<Box<TranscodePlan>>,
        /// Seed of the stream's SSRC, first sequence number and first timestamp.
        seed: u64,
    },
    /// Starts or stops reporting the party's keys from this source by [`Notice::Key`]. Keys found in audio are silenced
    /// there.
    WatchKeys(Option<KeySource>),
    /// Stops relaying what this leg receives; it is still measured.
    Unbridge,
}

/// The output of a DTLS handshake for its leg.
#[derive(Clone, Debug)]
pub struct Shaken {
    /// The number of this handshake of the leg.
    pub(super) round: u32,
    /// The keys of SRTP; they are set before the datagrams are sent.
    pub(super) keys: Option<Box<SrtpKeys>>,
    /// Datagrams for the party.
    pub(super) datagrams: Vec<Vec<u8>>,
}

/// A report from a worker to the switch.
#[derive(Clone, Debug)]
pub enum Notice {
    /// The ports are closed; this is the leg's final report. Never lost.
    Closed {
        /// Which port.
        id: PortId,
        /// The final figures.
        report: Box<Report>,
    },
    /// The party pressed a key. Lost only while 65,536 notices of a worker wait.
    Digit {
        /// Which port.
        id: PortId,
        /// `0` to `9`, `*`, `#`, `A` to `D`.
        digit: char,
    },
    /// The party pressed a key, reported because of [`Command::WatchKeys`]. Kept like a digit.
    Key {
        /// Which port.
        id: PortId,
        /// `0` to `9`, `*`, `#`, `A` to `D`.
        digit: char,
        /// For how long.
        duration_ms: u32,
    },
    /// Packets are now sent to `remote`, the source of the party's own packets (symmetric RTP).
    Latched {
        /// Which port.
        id: PortId,
        /// The party's address as seen here.
        remote: SocketAddr,
    },
    /// All clips of one [`SeatCommand::Play`] for this party have ended. Kept like a digit.
    Played {
        /// Which port.
        id: PortId,
        /// The token of the command.
        token: u64,
    },
    /// A recording's sink ended without a command. Kept like a digit.
    RecordingEnded {
        /// Which mix.
        mix: MixId,
    },
    /// The figures so far. Dropped and counted when the switch does not take notices.
    Snapshot {
        /// Which port.
        id: PortId,
        /// The figures so far.
        report: Box<Report>,
    },
    /// No packet of the party was accepted for about a second, or packets arrive again. Kept like a digit.
    Silent {
        /// Which port.
        id: PortId,
        /// For how long neither RTP nor RTCP arrived from the party; `None` when packets arrive again.
        since_us: Option<i64>,
    },
    /// A media fault in the party's stream began or ended. Only while warnings are switched on, see
    /// [`Relay::warn`](super::Relay::warn). Kept like a digit.
    Warning {
        /// Which port.
        id: PortId,
        /// The fault and the figures.
        warning: Box<Warning>,
    },
    /// The party began or stopped talking. While the switch does not take notices, changes are merged; the
    /// last state is always delivered.
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
    /// The certificate for DTLS could not be made.
    #[error("the certificate for DTLS was not made")]
    Certificate(#[source] CertificateError),
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
        /// The requested address.
        ip: IpAddr,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The worker is overloaded: its queue is full, or too many of its reports wait for the switch.
    #[error("the worker is behind with its work")]
    Busy,
    /// Every pair of the range is in use, rests after its last call, or is used by another program.
    #[error("all {pairs} port pairs are in use or resting")]
    Exhausted {
        /// How many pairs the configured range has.
        pairs: usize,
    },
    /// The relay was shut down.
    #[error("the relay is shut down")]
    Stopped,
}

/// Why a command was refused; completes "failed to command a port: ".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The worker's queue is full; the command can be tried again.
    #[error("the worker's queue is full")]
    Busy,
    /// The relay was shut down.
    #[error("the relay is shut down")]
    Stopped,
}

/// A command that was refused, returned so that it need not be copied to be tried again.
#[derive(Debug, thiserror::Error)]
#[error("the command to a port was not taken")]
pub struct CommandRefused {
    /// Why.
    #[source]
    pub error: CommandError,
    /// The command.
    pub command: Box<Command>,
}

/// A mix command that was refused, returned because it may hold data that exists only once.
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
