//! Receives and sends batches of datagrams, with the kernel's information about each.
//!
//! One [`Wire`] per worker: `recvmmsg` fills its buffers, packets are read and rewritten in place, and
//! `sendmmsg` sends from the same buffers. Nothing is allocated after construction.

use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrIn, SockaddrIn6,
    SockaddrLike, recvmmsg, recvmsg, sendmmsg, sendto,
};
use nix::sys::time::TimeSpec;

use super::endpoint::Endpoint;

/// The most datagrams that one call receives or sends.
pub(super) const BATCH: usize = 32;

/// The longest datagram that is received whole; an Ethernet frame carries 1,472 bytes of UDP.
pub(super) const DATAGRAM_BYTES_MAX: usize = 2_048;

/// A worker's buffers and the kernel's headers around them.
pub(super) struct Wire {
    buffers: Box<[[u8; DATAGRAM_BYTES_MAX]]>,
    arrivals: Vec<Arrival>,
    /// Space for the control messages of one datagram, aligned like every heap block of this size.
    control: Vec<u8>,
    receive_v4: MultiHeaders<SockaddrIn>,
    receive_v6: MultiHeaders<SockaddrIn6>,
    send_v4: MultiHeaders<SockaddrIn>,
    send_v6: MultiHeaders<SockaddrIn6>,
}

/// The kernel's information about one received datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) source: SocketAddr,
    /// Bytes in the buffer at the same position.
    pub(super) len: usize,
    /// Whether the datagram was longer than [`DATAGRAM_BYTES_MAX`] and was cut.
    pub(super) truncated: bool,
    /// When the kernel received it, in microseconds since the Unix epoch (`SO_TIMESTAMPNS`).
    pub(super) stamp_us: Option<i64>,
    /// Total of packets that this socket had dropped for lack of space when this one arrived (`SO_RXQ_OVFL`).
    pub(super) drops: Option<u32>,
}

/// The result of sending datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) sent: u32,
    pub(super) sent_bytes: u32,
    pub(super) failed: u32,
}

impl Wire {
    /// Buffers for one worker.
    pub(super) fn new() -> Wire {
        Wire {
            buffers: vec![[0; DATAGRAM_BYTES_MAX]; BATCH].into_boxed_slice(),
            arrivals: Vec::with_capacity(BATCH),
            control: vec![0; CONTROL_BYTES],
            receive_v4: MultiHeaders::preallocate(BATCH, Some(cmsg_space!(TimeSpec, u32))),
            receive_v6: MultiHeaders::preallocate(BATCH, Some(cmsg_space!(TimeSpec, u32))),
            send_v4: MultiHeaders::preallocate(BATCH, None),
            send_v6: MultiHeaders::preallocate(BATCH, None),
        }
    }

    /// Receives the datagrams that wait in the socket, at most [`BATCH`], and returns their number.
    ///
    /// `nix` does not reset the space for control messages between two `recvmmsg` calls on the same headers:
    /// it stays as small as the last message. The drop counter, which the kernel adds only after the first
    /// overflow, would then not fit. A socket cannot overflow before it has held a whole batch; after that
    /// its datagrams are received one by one, each with the full space. An ordinary leg has one or two
    /// packets waiting and never reaches this case.
    pub(super) fn receive(&mut self, endpoint: &mut Endpoint) -> Result<usize, Errno> {
        self.arrivals.clear();
        let mut outcome = self.receive_into_buffers(endpoint);
        // A pending ICMP error is returned once, instead of the datagrams that wait.
        if matches!(outcome, Err(errno) if errno != Errno::EAGAIN) && self.arrivals.is_empty() {
            outcome = self.receive_into_buffers(endpoint);
        }
        // When datagrams came before the error, they are processed and the error is ignored.
        if let (Err(errno), true) = (outcome, self.arrivals.is_empty()) {
            return Err(errno);
        }
        let unread = self.arrivals.iter().any(|arrival| arrival.stamp_us.is_none());
        endpoint.crowded |= unread || self.arrivals.len() == BATCH;
        Ok(self.arrivals.len())
    }

    /// The datagram at `index` of the last batch and its information.
    pub(super) fn datagram(&mut self, index: usize) -> Option<(Arrival, &mut [u8])> {
        let arrival = *self.arrivals.get(index)?;
        let datagram = self.buffers.get_mut(index)?.get_mut(..arrival.len)?;
        Some((arrival, datagram))
    }

    /// Sends the datagrams at `indices` of the last batch to one address, in order.
    pub(super) fn send(&mut self, endpoint: &Endpoint, to: SocketAddr, indices: &[u8]) -> Sent {
        let fd = endpoint.socket.as_raw_fd();
        let mut slices = [[IoSlice::new(&[])]; BATCH];
        let mut count = 0;
        for (slot, index) in slices.iter_mut().zip(indices) {
            let index = usize::from(*index);
            let len = self.arrivals.get(index).map_or(0, |arrival| arrival.len);
            if let Some(datagram) = self.buffers.get(index).and_then(|buffer| buffer.get(..len)) {
                *slot = [IoSlice::new(datagram)];
                count += 1;
            }
        }
        let slices = slices.get(..count).unwrap_or_default();
        match (to, endpoint.local) {
            (SocketAddr::V4(to), SocketAddr::V4(_)) => {
                send_all(fd, &mut self.send_v4, slices, SockaddrIn::from(to))
            }
            (SocketAddr::V6(to), SocketAddr::V6(_)) => {
                send_all(fd, &mut self.send_v6, slices, SockaddrIn6::from(to))
            }
            _ => Sent { failed: u32::try_from(count).unwrap_or(u32::MAX), ..Sent::default() },
        }
    }

    /// Sends one datagram that is not of the last batch; returns whether the system accepted it.
    pub(super) fn send_own(&self, endpoint: &Endpoint, to: SocketAddr, datagram: &[u8]) -> bool {
        let fd = endpoint.socket.as_raw_fd();
        let flags = MsgFlags::MSG_DONTWAIT;
        let send = || match (to, endpoint.local) {
            (SocketAddr::V4(to), SocketAddr::V4(_)) => sendto(fd, datagram, &SockaddrIn::from(to), flags),
            (SocketAddr::V6(to), SocketAddr::V6(_)) => sendto(fd, datagram, &SockaddrIn6::from(to), flags),
            _ => Err(Errno::EAFNOSUPPORT),
        };
        match send() {
            // As in `send_all`: the error belongs to an earlier datagram.
            Err(Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EINTR) => {
                send().is_ok()
            }
            sent => sent.is_ok(),
        }
    }

    /// Takes one entry from the socket's error queue; `None` when it is empty.
    pub(super) fn unreachable(&mut self, endpoint: &Endpoint) -> Option<IcmpError> {
        let fd = endpoint.socket.as_raw_fd();
        match endpoint.local {
            SocketAddr::V4(_) => error_queue::<SockaddrIn>(fd, &mut self.control),
            SocketAddr::V6(_) => error_queue::<SockaddrIn6>(fd, &mut self.control),
        }
    }

    fn receive_into_buffers(&mut self, endpoint: &Endpoint) -> Result<(), Errno> {
        let fd = endpoint.socket.as_raw_fd();
        if endpoint.crowded {
            self.receive_singly(fd, endpoint.local)
        } else {
            self.receive_batch(fd, endpoint.local)
        }
    }

    fn receive_batch(&mut self, fd: RawFd, local: SocketAddr) -> Result<(), Errno> {
        let Wire { buffers, arrivals, receive_v4, receive_v6, .. } = self;
        match local {
            SocketAddr::V4(_) => receive_many(fd, buffers, receive_v4, arrivals),
            SocketAddr::V6(_) => receive_many(fd, buffers, receive_v6, arrivals),
        }
    }

    fn receive_singly(&mut self, fd: RawFd, local: SocketAddr) -> Result<(), Errno> {
        let Wire { buffers, arrivals, control, .. } = self;
        for buffer in buffers.iter_mut() {
            let arrival = match local {
                SocketAddr::V4(_) => receive_one::<SockaddrIn>(fd, buffer, control)?,
                SocketAddr::V6(_) => receive_one::<SockaddrIn6>(fd, buffer, control)?,
            };
            arrivals.push(arrival);
        }
        Ok(())
    }
}

/// An ICMP error about a datagram that this socket sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IcmpError {
    /// The destination of the datagram.
    pub(super) to: Option<SocketAddr>,
    /// Whether it is "destination unreachable" (RFC 792, RFC 4443 §3.1), not for example "fragmentation
    /// needed".
    pub(super) unreachable: bool,
}

fn receive_many<S>(
    fd: RawFd,
    buffers: &mut [[u8; DATAGRAM_BYTES_MAX]],
    headers: &mut MultiHeaders<S>,
    arrivals: &mut Vec<Arrival>,
) -> Result<(), Errno>
where
    S: SockaddrLike + Copy + Into<SocketAddr>,
{
    let mut rest = buffers.iter_mut();
    let mut slices: [[IoSliceMut<'_>; 1]; BATCH] = std::array::from_fn(|_| {
        [IoSliceMut::new(rest.next().map_or(&mut [], |buffer| buffer.as_mut_slice()))]
    });
    let messages = recvmmsg(fd, headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None)?;
    arrivals.extend(messages.filter_map(|message| arrival(&message)));
    Ok(())
}

fn receive_one<S>(fd: RawFd, buffer: &mut [u8], control: &mut [u8]) -> Result<Arrival, Errno>
where
    S: SockaddrLike + Copy + Into<SocketAddr>,
{
    let mut slices = [IoSliceMut::new(buffer)];
    let message = recvmsg::<S>(fd, &mut slices, Some(control), MsgFlags::MSG_DONTWAIT)?;
    arrival(&message).ok_or(Errno::EAGAIN)
}

fn arrival<S: Copy + Into<SocketAddr>>(message: &RecvMsg<'_, '_, S>) -> Option<Arrival> {
    let mut arrival = Arrival {
        source: message.address?.into(),
        len: message.bytes.min(DATAGRAM_BYTES_MAX),
        truncated: message.flags.contains(MsgFlags::MSG_TRUNC),
        stamp_us: None,
        drops: None,
    };
    // On an error a control message did not fit; the packet then gets the time of its batch.
    for control in message.cmsgs().into_iter().flatten() {
        match control {
            ControlMessageOwned::ScmTimestampns(stamp) => arrival.stamp_us = Some(micros(stamp)),
            ControlMessageOwned::RxqOvfl(drops) => arrival.drops = Some(drops),
            _ => {}
        }
    }
    Some(arrival)
}

fn micros(stamp: TimeSpec) -> i64 {
    stamp.tv_sec().saturating_mul(1_000_000).saturating_add(stamp.tv_nsec() / 1_000)
}

/// Sends every slice or counts it as failed; each slice is tried at most twice.
fn send_all<S>(fd: RawFd, headers: &mut MultiHeaders<S>, slices: &[[IoSlice<'_>; 1]], to: S) -> Sent
where
    S: SockaddrLike + Copy,
{
    let to = [Some(to); BATCH];
    let mut outcome = Sent::default();
    let mut done = 0;
    let mut tried = false;
    while let Some(rest) = slices.get(done..).filter(|rest| !rest.is_empty()) {
        let sent = sendmmsg(fd, headers, rest, &to[..], NO_CONTROL, MsgFlags::MSG_DONTWAIT)
            .map(|messages| messages.count());
        match sent {
            Ok(count) if count > 0 => {
                done += count;
                outcome.sent += u32::try_from(count).unwrap_or(u32::MAX);
                let bytes: usize = rest.iter().take(count).map(|[slice]| slice.len()).sum();
                outcome.sent_bytes += u32::try_from(bytes).unwrap_or_default();
                tried = false;
            }
            // An ICMP error about an earlier datagram is returned once instead of sending this one: try
            // again.
            Err(Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EINTR) if !tried => {
                tried = true
            }
            _ => {
                done += 1;
                outcome.failed += 1;
                tried = false;
            }
        }
    }
    outcome
}

fn error_queue<S>(fd: RawFd, control: &mut [u8]) -> Option<IcmpError>
where
    S: SockaddrLike + Copy + Into<SocketAddr>,
{
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    // The rest of the datagram is not read, only its address.
    let message = recvmsg::<S>(fd, &mut [], Some(control), flags).ok()?;
    let mut error = IcmpError { to: message.address.map(Into::into), unreachable: false };
    for control in message.cmsgs().into_iter().flatten() {
        error.unreachable |= match control {
            ControlMessageOwned::Ipv4RecvErr(icmp, _) => {
                icmp.ee_origin == libc::SO_EE_ORIGIN_ICMP
                    && icmp.ee_type == 3
                    && icmp.ee_code != FRAGMENTATION_NEEDED
            }
            ControlMessageOwned::Ipv6RecvErr(icmp, _) => {
                icmp.ee_origin == libc::SO_EE_ORIGIN_ICMP6 && icmp.ee_type == 1
            }
            _ => false,
        };
    }
    Some(error)
}

/// Space for a time, a drop counter and a queued ICMP error with the address of the host that sent it.
const CONTROL_BYTES: usize = 256;
/// ICMP type 3, code 4: the path works, the datagram is too long (RFC 792).
const FRAGMENTATION_NEEDED: u8 = 4;
const NO_CONTROL: [ControlMessage<'static>; 0] = [];

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
