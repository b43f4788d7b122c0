//! Datagrams that are queued to be sent with one system call, and their results.

use nix::libc;
use nix::sys::socket::{SockaddrLike, SockaddrStorage};

use crate::arrival::Sent;

/// Datagrams that are sent together, in places that do not move.
pub(crate) struct Outgoing {
    places: Box<[Place]>,
    len: usize,
}

/// One datagram, with the structures that the kernel reads when it is submitted.
struct Place {
    name: SockaddrStorage,
    slice: libc::iovec,
    header: libc::msghdr,
    fd: i32,
    buffer: u16,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Queued,
    /// The error of an earlier datagram was returned instead of sending it; it is queued once more.
    Again,
    Failed,
}

impl Outgoing {
    /// No datagrams.
    pub(crate) fn new() -> Outgoing {
        let place = || Place {
            name: SockaddrStorage::from(std::net::SocketAddr::from(([0, 0, 0, 0], 0))),
            slice: libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 },
            header: crate::system::EMPTY_HEADER,
            fd: -1,
            buffer: 0,
            state: State::Queued,
        };
        Outgoing { places: std::iter::repeat_with(place).take(OUTGOING_MAX).collect(), len: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len == self.places.len()
    }

    /// Adds a datagram in `buffer`; returns its index and its header, which stays in its place until
    /// [`Outgoing::take`]. `None` when there is no place.
    pub(crate) fn add(
        &mut self,
        (fd, buffer): (i32, u16),
        to: SockaddrStorage,
        datagram: &[u8],
    ) -> Option<(usize, *const libc::msghdr)> {
        let index = self.len;
        let place = self.places.get_mut(index)?;
        self.len += 1;
        (place.fd, place.buffer, place.name, place.state) = (fd, buffer, to, State::Queued);
        // The kernel only reads it.
        place.slice = libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: datagram.len() };
        place.header = libc::msghdr {
            msg_name: place.name.as_ptr().cast_mut().cast(),
            msg_namelen: place.name.len(),
            msg_iov: &raw mut place.slice,
            msg_iovlen: 1,
            ..crate::system::EMPTY_HEADER
        };
        Some((index, &raw const place.header))
    }

    /// Notes that a datagram was not sent. Returns its descriptor and header when it is to be tried once more.
    pub(crate) fn refused(
        &mut self,
        index: usize,
        is_of_earlier: bool,
    ) -> Option<(i32, *const libc::msghdr)> {
        let place = self.places.get_mut(..self.len)?.get_mut(index)?;
        if is_of_earlier && place.state == State::Queued {
            place.state = State::Again;
            return Some((place.fd, &raw const place.header));
        }
        place.state = State::Failed;
        None
    }

    /// Removes all datagrams, after they were submitted: returns their results, and passes their buffers to `give`.
    pub(crate) fn take(&mut self, mut give: impl FnMut(u16)) -> Sent {
        let mut sent = Sent::default();
        for place in self.places.iter().take(self.len) {
            give(place.buffer);
            if place.state == State::Failed {
                sent.failed += 1;
            } else {
                sent.sent += 1;
                sent.sent_bytes += u32::try_from(place.slice.iov_len).unwrap_or_default();
            }
        }
        self.len = 0;
        sent
    }
}

/// Maximum number of datagrams of one system call.
const OUTGOING_MAX: usize = 64;

// SAFETY: the pointers lead into the places themselves, which are on the heap and do not move, and into buffers that
// are moved together with them.
unsafe impl Send for Outgoing {}
