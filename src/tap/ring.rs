//! Frames of an interface, read without a copy: AF_PACKET with a memory-mapped ring (TPACKET_V3).
//!
//! The crate `netring` maps the ring and returns its blocks. To the compiler, its packets may outlive the block that
//! contains them. Nothing here allows that: a frame is lent to a closure, and its block is returned to the kernel
//! after that.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use netring::{BatchIter, BpfFilter, BpfInsn, Capture, Error, Packet, PacketBatch};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt};
use sidetone_media::pcap::{LinkType, Record};
use sidetone_media::time::Micros;

use super::interfaces::{Interface, InterfaceError};

/// How an interface is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingOptions {
    /// Whether frames for other hosts are read.
    pub promiscuous: bool,
    /// How many bytes of a frame are kept; for TCP at least [`TCP_SNAP_LEN_MIN`].
    pub snap_len: u32,
    /// The size of the ring in MiB.
    pub ring_mib: u32,
}

impl Default for RingOptions {
    fn default() -> Self {
        RingOptions { promiscuous: true, snap_len: 2_048, ring_mib: 64 }
    }
}

/// Why an interface cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// There is no such interface, or its kind is not supported.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The system refused it.
    #[error("interface \"{name}\" cannot be read: {reason}")]
    Refused {
        /// The interface.
        name: String,
        /// The system's error.
        reason: String,
    },
    /// The permission to read packets is missing.
    #[error(
        "reading packets needs the capability CAP_NET_RAW: run `sudo setcap cap_net_raw+ep {program}` once, or start it with sudo"
    )]
    NotPermitted {
        /// This program.
        program: String,
    },
}

/// The ring of one interface.
#[derive(Debug)]
pub struct Ring {
    interface: Interface,
    capture: Capture,
    /// Frames before this time may be of any interface, because the socket was not bound yet.
    opened_at: Micros,
}

/// Frames since the last query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RingCounts {
    /// Those that the ring accepted and those that it dropped.
    pub seen: u64,
    /// Those that it dropped.
    pub dropped: u64,
}

impl Ring {
    /// Maps a ring and binds it to an interface; `now` reads the wall clock.
    ///
    /// # Errors
    /// When there is no such interface, the permission is missing, or the system has no memory for the ring.
    pub fn open(name: &str, options: RingOptions, now: fn() -> Micros) -> Result<Self, RingError> {
        let interface = Interface::find(name)?;
        let blocks = (options.ring_mib as usize).clamp(RING_MIB_MIN, RING_MIB_MAX) * BLOCKS_PER_MIB;
        let refused = |error: Error| refused(name, &error);
        let capture = Capture::builder()
            .interface(name)
            .block_size(BLOCK_LEN)
            .block_count(blocks)
            .block_timeout_ms(BLOCK_TIMEOUT_MS)
            .fill_rxhash(false)
            .promiscuous(options.promiscuous && !interface.is_loopback)
            // A packet on the loopback is captured when sent and when received: one of the two is sufficient.
            .ignore_outgoing(interface.is_loopback)
            .bpf_filter(
                BpfFilter::new(snap_program(options.snap_len)).map_err(|error| refused(error.into()))?,
            )
            .build()
            .map_err(refused)?;
        // Packets dropped before the first read are not counted.
        let _ = capture.stats();
        Ok(Ring { interface, capture, opened_at: now() })
    }

    /// The interface that is read.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Returns the frames accepted and dropped since the last call; 0 if the socket does not report them.
    pub fn counts(&self) -> RingCounts {
        let Ok(stats) = self.capture.stats() else { return RingCounts::default() };
        RingCounts { seen: stats.packets.into(), dropped: stats.drops.into() }
    }

    /// Clears the error of the socket, which every poll would report until it is read: the interface went
    /// down, or was removed.
    fn take_error(&self) -> bool {
        getsockopt(&self.capture.as_fd(), sockopt::SocketError).is_ok_and(|error| error != 0)
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.capture.as_fd()
    }
}

/// Waits until a ring has frames, for `timeout` at most; returns whether an interface reported a fault.
pub fn wait(rings: &[Ring], timeout: Duration) -> bool {
    let mut waiting: Vec<PollFd<'_>> =
        rings.iter().map(|ring| PollFd::new(ring.as_fd(), PollFlags::POLLIN)).collect();
    // An interrupted wait counts as a wait: the caller checks and waits again.
    let _ = poll(&mut waiting, PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX));
    let failed = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| events.contains(PollFlags::POLLERR));
    let faults: Vec<bool> = waiting.iter().map(failed).collect();
    rings.iter().zip(faults).fold(false, |any, (ring, fault)| (fault && ring.take_error()) || any)
}

/// Lends every frame of the next block of each ring to `take`, the earliest first; returns the number of
/// frames.
///
/// A block is retired when it is full or [`BLOCK_TIMEOUT_MS`] old, so frames of different interfaces are in
/// order except for that time.
pub fn read(rings: &mut [Ring], mut take: impl FnMut(&Record<'_>)) -> usize {
    let blocks: Vec<(LinkType, Micros, PacketBatch<'_>)> = rings
        .iter_mut()
        .filter_map(|ring| {
            let (link, opened_at) = (ring.interface.link, ring.opened_at);
            ring.capture.next_batch().map(|block| (link, opened_at, block))
        })
        .collect();
    let mut heads: Vec<Head<'_>> = blocks
        .iter()
        .filter_map(|(link, opened_at, block)| Head::new(*link, *opened_at, block.iter()))
        .collect();
    let mut frames = 0;
    while let Some(earliest) = earliest(&heads)
        && let Some(head) = heads.get_mut(earliest)
    {
        if head.at >= head.opened_at {
            let wire_len = u32::try_from(head.packet.original_len()).unwrap_or(u32::MAX);
            take(&Record { at: head.at, link: head.link, frame: head.packet.data(), wire_len });
            frames += 1;
        }
        if !head.advance() {
            heads.swap_remove(earliest);
        }
    }
    // Only now are the blocks returned to the kernel.
    drop(heads);
    drop(blocks);
    frames
}

/// The next frame of a block.
struct Head<'a> {
    at: Micros,
    link: LinkType,
    opened_at: Micros,
    packet: Packet<'a>,
    rest: BatchIter<'a>,
}

impl<'a> Head<'a> {
    fn new(link: LinkType, opened_at: Micros, mut rest: BatchIter<'a>) -> Option<Self> {
        let packet = rest.next()?;
        Some(Head { at: stamp(&packet), link, opened_at, packet, rest })
    }

    #[inline]
    fn advance(&mut self) -> bool {
        let Some(packet) = self.rest.next() else { return false };
        self.at = stamp(&packet);
        self.packet = packet;
        true
    }
}

#[inline]
fn earliest(heads: &[Head<'_>]) -> Option<usize> {
    match heads {
        [] => None,
        [_] => Some(0),
        several => several.iter().enumerate().min_by_key(|(_, head)| head.at).map(|(place, _)| place),
    }
}

/// The kernel's timestamp of a frame.
#[inline]
fn stamp(packet: &Packet<'_>) -> Micros {
    let stamp = packet.timestamp();
    Micros(i64::from(stamp.sec) * 1_000_000 + i64::from(stamp.nsec / 1_000))
}

fn refused(name: &str, error: &Error) -> RingError {
    use std::error::Error as _;
    let os_error = |error: &Error| {
        error.source().and_then(|source| source.downcast_ref::<std::io::Error>().map(|io| io.to_string()))
    };
    match error {
        Error::PermissionDenied => {
            let program = std::env::current_exe()
                .map_or_else(|_| "sidetone".to_owned(), |path| path.display().to_string());
            RingError::NotPermitted { program }
        }
        Error::InterfaceNotFound(_) => {
            let known = super::interfaces::names();
            RingError::Interface(InterfaceError::Unknown { name: name.to_owned(), known })
        }
        error => {
            let reason =
                os_error(error).map_or_else(|| error.to_string(), |cause| format!("{error} ({cause})"));
            RingError::Refused { name: name.to_owned(), reason }
        }
    }
}

/// A classic BPF program that accepts every frame and returns how much of it is kept.
///
/// A network card merges TCP segments before they are captured (GRO), so that one frame may contain many SIP
/// messages; it is kept whole where a datagram is truncated.
fn snap_program(snap_len: u32) -> Vec<BpfInsn> {
    let tcp_len = snap_len.max(TCP_SNAP_LEN_MIN);
    let step = |code, jt, jf, k| BpfInsn { code, jt, jf, k };
    vec![
        step(LOAD_WORD, 0, 0, SKF_AD_PROTOCOL),
        step(JUMP_EQUAL, 3, 0, ETHERTYPE_IPV6),
        step(JUMP_EQUAL, 0, 4, ETHERTYPE_IPV4),
        step(LOAD_BYTE, 0, 0, SKF_NET_OFF + 9),
        step(JUMP, 0, 0, 1),
        step(LOAD_BYTE, 0, 0, SKF_NET_OFF + 6),
        step(JUMP_EQUAL, 1, 0, IPPROTO_TCP),
        step(RETURN, 0, 0, snap_len),
        step(RETURN, 0, 0, tcp_len),
    ]
}

// Classic BPF, `linux/filter.h`.
const LOAD_WORD: u16 = 0x20;
const LOAD_BYTE: u16 = 0x30;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
/// The protocol of the frame, whatever its link layer and its VLAN.
const SKF_AD_PROTOCOL: u32 = 0xffff_f000;
/// The start of the network layer.
const SKF_NET_OFF: u32 = 0xfff0_0000;
const ETHERTYPE_IPV4: u32 = 0x0800;
const ETHERTYPE_IPV6: u32 = 0x86dd;
const IPPROTO_TCP: u32 = 6;

/// Bytes that are kept of a frame with TCP, at least.
pub const TCP_SNAP_LEN_MIN: u32 = 16_384;
/// The size of a block: the amount that the kernel passes on at a time.
const BLOCK_LEN: usize = 256 << 10;
/// Blocks in a MiB of a ring.
pub const BLOCKS_PER_MIB: usize = 4;
/// How long a frame waits at most until its block is passed on.
pub const BLOCK_TIMEOUT_MS: u32 = 20;
/// The smallest and the largest ring.
pub const RING_MIB_MIN: usize = 1;
/// See [`RING_MIB_MIN`].
pub const RING_MIB_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::{SystemTime, UNIX_EPOCH};

    use sidetone_media::pcap::{Content, dissect};

    use super::*;

    /// Runs the program as a kernel would, and checks how much of a frame is kept.
    #[test]
    fn of_tcp_more_is_kept_than_of_a_datagram() {
        let kept =
            |protocol: u32, next_header: u32, snap_len| run(&snap_program(snap_len), protocol, next_header);
        assert_eq!(kept(ETHERTYPE_IPV4, 17, 2_048), 2_048);
        assert_eq!(kept(ETHERTYPE_IPV4, IPPROTO_TCP, 2_048), TCP_SNAP_LEN_MIN);
        assert_eq!(kept(ETHERTYPE_IPV6, 17, 2_048), 2_048);
        assert_eq!(kept(ETHERTYPE_IPV6, IPPROTO_TCP, 65_535), 65_535);
        assert_eq!(kept(0x0806, IPPROTO_TCP, 2_048), 2_048, "no IP");
    }

    /// The kernel's interpreter, limited to the instructions of this program.
    fn run(program: &[BpfInsn], protocol: u32, next_header: u32) -> u32 {
        let (mut at, mut value) = (0, 0);
        for _ in 0..program.len() {
            let step = program[at];
            at += 1;
            match step.code {
                LOAD_WORD => value = protocol,
                LOAD_BYTE => {
                    let place = if protocol == ETHERTYPE_IPV4 { 9 } else { 6 };
                    assert_eq!(step.k, SKF_NET_OFF + place);
                    value = next_header;
                }
                JUMP => at += step.k as usize,
                JUMP_EQUAL => at += usize::from(if value == step.k { step.jt } else { step.jf }),
                RETURN => return step.k,
                code => panic!("{code:#x}"),
            }
        }
        panic!("no end");
    }

    #[expect(clippy::disallowed_methods, reason = "the kernel stamps frames by this clock")]
    fn now() -> Micros {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Micros(i64::try_from(since_epoch.as_micros()).unwrap())
    }

    /// `None` without the permission to read packets; this is printed, because a skipped test proves nothing.
    fn ring(options: RingOptions) -> Option<Ring> {
        match Ring::open("lo", options, now) {
            Ok(ring) => Some(ring),
            Err(RingError::NotPermitted { .. }) => {
                eprintln!("SKIPPED: packets may not be read here (CAP_NET_RAW)");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Each datagram over loopback is captured once, truncated to the snap length, with its length and the
    /// kernel's time.
    #[test]
    fn datagrams_over_loopback_are_seen_once_and_in_order() {
        let Some(ring) = ring(RingOptions { snap_len: 128, ring_mib: 1, ..RingOptions::default() }) else {
            return;
        };
        let (sender, receiver) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let (source, destination) = (sender.local_addr().unwrap(), receiver.local_addr().unwrap());
        let begin = now();
        for number in 0..50_u8 {
            sender.send_to(&[number; 300], destination).unwrap();
        }
        let (mut seen, mut rings) = (Vec::new(), [ring]);
        for _ in 0..100 {
            let fault = wait(&rings, Duration::from_millis(100));
            assert!(!fault);
            read(&mut rings, |record| {
                if let Content::Udp(datagram) = dissect(record.link, record.frame)
                    && (datagram.source, datagram.destination) == (source, destination)
                {
                    assert_eq!((record.frame.len(), record.wire_len), (128, 14 + 20 + 8 + 300));
                    assert_eq!(datagram.payload_len, 300);
                    seen.push((record.at, datagram.payload[0]));
                }
            });
            if seen.len() >= 50 {
                break;
            }
        }
        let numbers: Vec<u8> = seen.iter().map(|(_, number)| *number).collect();
        assert_eq!(numbers, Vec::from_iter(0..50));
        assert!(seen.is_sorted());
        assert!(seen[0].0 >= begin && seen[49].0 <= now());
        assert_eq!(rings[0].counts().dropped, 0);
    }

    /// The ring is not read: frames that do not fit are dropped and counted.
    #[test]
    fn what_the_ring_cannot_take_is_counted() {
        let Some(ring) = ring(RingOptions { snap_len: 65_535, ring_mib: 1, ..RingOptions::default() }) else {
            return;
        };
        let (sender, receiver) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let destination = receiver.local_addr().unwrap();
        // Three times the capacity.
        for _ in 0..100 {
            sender.send_to(&[0; 32_000], destination).unwrap();
        }
        let counts = ring.counts();
        assert!(counts.seen >= 100 && counts.dropped >= 60, "{counts:?}");
        assert_eq!(ring.counts().dropped, 0, "once");
    }
}
