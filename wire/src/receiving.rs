//! Receives datagrams: one with `recvmsg`, several with `recvmmsg`.

use nix::errno::Errno;
use nix::libc;

use crate::address;
use crate::arrival::{Arrival, IcmpError};
use crate::control::{facts, is_unreachable};
use crate::endpoint::Endpoint;
use crate::limits::{BATCH, DATAGRAM_BYTES_MAX};
use crate::system::{self, Note};

/// Buffers of one batch, and the space in which the kernel describes it.
#[derive(Debug)]
pub(crate) struct Receiver {
    buffers: Box<[[u8; DATAGRAM_BYTES_MAX]]>,
    notes: Box<[Note]>,
    pub(crate) calls: u64,
}

impl Receiver {
    /// Empty buffers.
    pub(crate) fn new() -> Receiver {
        Receiver {
            buffers: vec![[0; DATAGRAM_BYTES_MAX]; BATCH].into_boxed_slice(),
            notes: vec![Note::EMPTY; BATCH].into_boxed_slice(),
            calls: 0,
        }
    }

    /// Receives waiting datagrams, `most` at most, and adds them to `arrivals`; returns their number.
    #[inline]
    pub(crate) fn receive(&mut self, endpoint: &Endpoint, most: usize, arrivals: &mut Vec<Arrival>) -> usize {
        let mut received = self.receive_into_buffers(endpoint, most);
        // A pending ICMP error is returned once, instead of the datagrams that wait.
        if matches!(received, Err(errno) if errno != Errno::EAGAIN) {
            received = self.receive_into_buffers(endpoint, most);
        }
        let before = arrivals.len();
        arrivals.extend(self.notes.iter().take(received.unwrap_or(0)).map_while(arrival));
        arrivals.len() - before
    }

    /// A buffer of the last batch.
    #[inline]
    pub(crate) fn buffer(&self, index: usize) -> Option<&[u8]> {
        self.buffers.get(index).map(<[u8; DATAGRAM_BYTES_MAX]>::as_slice)
    }

    /// A buffer of the last batch, to be changed.
    #[inline]
    pub(crate) fn buffer_mut(&mut self, index: usize) -> Option<&mut [u8]> {
        self.buffers.get_mut(index).map(<[u8; DATAGRAM_BYTES_MAX]>::as_mut_slice)
    }

    /// Takes one entry from the socket's error queue.
    pub(crate) fn unreachable(&mut self, endpoint: &Endpoint) -> Option<IcmpError> {
        self.calls += 1;
        let mut note = Note::EMPTY;
        // The rest of the datagram is not read, only its address.
        system::receive_one(endpoint.fd(), &mut [], &mut note, libc::MSG_ERRQUEUE).ok()?;
        Some(IcmpError { to: address::read(&note.name), unreachable: is_unreachable(note.control()) })
    }

    #[inline]
    fn receive_into_buffers(&mut self, endpoint: &Endpoint, most: usize) -> Result<usize, Errno> {
        self.calls += 1;
        match (&mut *self.buffers, &mut *self.notes) {
            ([buffer, ..], [note, ..]) if most == 1 => {
                system::receive_one(endpoint.fd(), buffer, note, 0).map(|()| 1)
            }
            (buffers, notes) => {
                let buffers = buffers.get_mut(..most).unwrap_or_default();
                system::receive_many(endpoint.fd(), buffers, notes)
            }
        }
    }
}

/// The information in a note; `None` without an address of a known family.
#[inline]
fn arrival(note: &Note) -> Option<Arrival> {
    let facts = facts(note.control());
    Some(Arrival {
        source: address::read(&note.name)?,
        len: note.len.min(DATAGRAM_BYTES_MAX),
        truncated: note.flags & libc::MSG_TRUNC != 0,
        stamp_us: facts.stamp_us,
        drops: facts.drops,
    })
}
