//! Many datagrams per system call: `recvmmsg` and `sendmmsg` on one socket.

use std::io::{IoSlice, IoSliceMut};
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrIn, recvmmsg, sendmmsg};

use crate::program::outbox::Datagram;

/// Datagrams per system call.
pub(crate) const BATCH: usize = 64;

/// The buffers of batches.
pub(crate) struct Wire {
    buffers: Vec<[u8; DATAGRAM_BYTES_MAX]>,
    arrivals: Vec<(usize, SocketAddrV4)>,
    receive: MultiHeaders<SockaddrIn>,
    send: MultiHeaders<SockaddrIn>,
}

impl Wire {
    /// Allocates the buffers.
    pub(crate) fn new() -> Self {
        Wire {
            buffers: vec![[0; DATAGRAM_BYTES_MAX]; BATCH],
            arrivals: Vec::with_capacity(BATCH),
            receive: MultiHeaders::preallocate(BATCH, None),
            send: MultiHeaders::preallocate(BATCH, None),
        }
    }

    /// Receives the waiting datagrams of the socket, at most [`BATCH`], and returns their number.
    ///
    /// An ICMP error of an earlier datagram counts as no datagram.
    pub(crate) fn receive(&mut self, socket: &UdpSocket) -> usize {
        self.arrivals.clear();
        let mut rest = self.buffers.iter_mut();
        let mut slices: [[IoSliceMut<'_>; 1]; BATCH] = std::array::from_fn(|_| {
            [IoSliceMut::new(rest.next().map_or(&mut [], |buffer| buffer.as_mut_slice()))]
        });
        let flags = MsgFlags::MSG_DONTWAIT;
        if let Ok(messages) = recvmmsg(socket.as_raw_fd(), &mut self.receive, slices.iter_mut(), flags, None)
        {
            self.arrivals.extend(
                messages.filter_map(|message| Some((message.bytes, SocketAddrV4::from(message.address?)))),
            );
        }
        self.arrivals.len()
    }

    /// Returns a datagram of the last batch and its source.
    pub(crate) fn arrival(&self, index: usize) -> Option<(SocketAddrV4, &[u8])> {
        let (len, from) = *self.arrivals.get(index)?;
        Some((from, self.buffers.get(index)?.get(..len)?))
    }

    /// Sends at most [`BATCH`] datagrams from one socket, and returns the number of those that the system refused.
    pub(crate) fn send(&mut self, socket: &UdpSocket, datagrams: &[Datagram<'_>]) -> u64 {
        let mut slices = [[IoSlice::new(&[])]; BATCH];
        let mut to = [None; BATCH];
        for ((slice, to), datagram) in slices.iter_mut().zip(&mut to).zip(datagrams) {
            *slice = [IoSlice::new(datagram.bytes)];
            *to = Some(SockaddrIn::from(datagram.to));
        }
        let count = datagrams.len().min(BATCH);
        let (mut done, mut refused, mut tried) = (0, 0, 0);
        while done < count {
            let (Some(slices), Some(to)) = (slices.get(done..count), to.get(done..count)) else { break };
            let flags = MsgFlags::MSG_DONTWAIT;
            let sent = sendmmsg(socket.as_raw_fd(), &mut self.send, slices, to, NO_CONTROL, flags)
                .map(Iterator::count);
            match sent {
                Ok(sent) if sent > 0 => (done, tried) = (done + sent, 0),
                // The error of an earlier datagram, or a full buffer that will drain soon.
                Err(Errno::ECONNREFUSED | Errno::EINTR | Errno::EAGAIN) if tried < TRIES_MAX => tried += 1,
                _ => (done, refused, tried) = (done + 1, refused + 1, 0),
            }
        }
        refused
    }
}

/// Large enough for a SIP message over UDP and for an RTP packet.
const DATAGRAM_BYTES_MAX: usize = 4_096;
const NO_CONTROL: [ControlMessage<'static>; 0] = [];
const TRIES_MAX: u32 = 100;
