//! Buffers that the kernel chooses from when a datagram arrives (io_uring's ring of provided buffers).
//!
//! A buffer belongs to the kernel from [`Provided::give`] until a completion names it, and to this program from then
//! on. Nothing reads or writes a buffer of the kernel.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;
use nix::libc;

use crate::address::NAME_BYTES;
use crate::control::CONTROL_BYTES;
use crate::limits::DATAGRAM_BYTES_MAX;

/// The buffers of one ring, all of one length.
pub(crate) struct Provided {
    /// [`BUFFERS`] times [`STRIDE`] bytes.
    memory: NonNull<[u8]>,
    /// The entries that the kernel reads; the first one contains the tail.
    entries: NonNull<[Page]>,
    tail: u16,
    /// How many uses of each buffer by this program remain; those of the kernel have none.
    uses: Box<[u8]>,
}

/// Memory on a page of its own, as the kernel requires.
#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u8; 4096]);

impl Provided {
    /// Registers buffers with `ring`, all of them the kernel's.
    ///
    /// # Errors
    /// The kernel has no such buffers (before 5.19), or no memory.
    pub(crate) fn register(ring: &IoUring) -> io::Result<Provided> {
        let memory = vec![0; usize::from(BUFFERS) * STRIDE].into_boxed_slice();
        let pages = (usize::from(BUFFERS) * size_of::<BufRingEntry>()).div_ceil(size_of::<Page>());
        let entries = vec![Page([0; 4096]); pages].into_boxed_slice();
        let mut provided = Provided {
            memory: NonNull::from(Box::leak(memory)),
            entries: NonNull::from(Box::leak(entries)),
            tail: 0,
            uses: vec![0; usize::from(BUFFERS)].into_boxed_slice(),
        };
        let address = provided.entries.as_ptr().cast::<u8>() as u64;
        // SAFETY: the entries lie on pages of their own, there are `BUFFERS` of them, a power of two, and they are
        // freed when `provided` is dropped, which its owner does after the ring.
        unsafe { ring.submitter().register_buf_ring_with_flags(address, BUFFERS, GROUP, 0)? };
        (0..BUFFERS).for_each(|buffer| provided.add(buffer));
        provided.publish();
        Ok(provided)
    }

    /// Takes a buffer that a completion names; this program has one use of it.
    pub(crate) fn take(&mut self, buffer: u16) {
        self.hold(buffer);
    }

    /// Adds a use of a buffer that this program has.
    pub(crate) fn hold(&mut self, buffer: u16) {
        if let Some(uses) = self.uses.get_mut(usize::from(buffer)) {
            *uses = uses.saturating_add(1);
        }
    }

    /// Ends a use; after the last one the kernel has the buffer from [`Provided::publish`] on.
    pub(crate) fn give(&mut self, buffer: u16) {
        let Some(uses) = self.uses.get_mut(usize::from(buffer)).filter(|uses| **uses > 0) else { return };
        *uses -= 1;
        if *uses == 0 {
            self.add(buffer);
        }
    }

    /// Shows the kernel the buffers that were given.
    pub(crate) fn publish(&self) {
        let base = self.entries.as_ptr().cast::<BufRingEntry>();
        // SAFETY: `base` is the first entry of the registered ring, which contains the tail, aligned. Only this thread
        // writes the tail, and the kernel reads it atomically.
        unsafe {
            let tail = BufRingEntry::tail(base).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }

    /// A buffer of this program, beginning with the head that the kernel wrote; `None` for a buffer of the kernel.
    #[inline]
    pub(crate) fn buffer(&self, buffer: u16) -> Option<&[u8]> {
        let start = self.start(buffer)?;
        // SAFETY: `start` begins `STRIDE` bytes of `memory`. The buffer is this program's, so the kernel does not write
        // to it, and `&self` keeps it from being given back or changed.
        Some(unsafe { std::slice::from_raw_parts(start, STRIDE) })
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn buffer_mut(&mut self, buffer: u16) -> Option<&mut [u8]> {
        let start = self.start(buffer)?;
        // SAFETY: as in `buffer`; `&mut self` is the only access to it.
        Some(unsafe { std::slice::from_raw_parts_mut(start, STRIDE) })
    }

    #[inline]
    fn start(&self, buffer: u16) -> Option<*mut u8> {
        self.uses.get(usize::from(buffer)).filter(|uses| **uses > 0)?;
        // SAFETY: there is a counter for each of the `BUFFERS` buffers of `STRIDE` bytes in `memory`.
        Some(unsafe { self.memory.as_ptr().cast::<u8>().add(usize::from(buffer) * STRIDE) })
    }

    fn add(&mut self, buffer: u16) {
        let index = usize::from(self.tail % BUFFERS);
        // SAFETY: `index` is below `BUFFERS`, the number of entries, and `buffer` was checked by `uses` or comes from
        // the range of all buffers. The kernel reads the entry after the tail was published.
        unsafe {
            let entry = self.entries.as_ptr().cast::<BufRingEntry>().add(index);
            let address = self.memory.as_ptr().cast::<u8>().add(usize::from(buffer) * STRIDE);
            (*entry).set_addr(address as u64);
            (*entry).set_len(STRIDE as u32);
            (*entry).set_bid(buffer);
        }
        self.tail = self.tail.wrapping_add(1);
    }
}

impl Drop for Provided {
    fn drop(&mut self) {
        // SAFETY: both came from `Box::leak`. The ring is closed, so the kernel does not use them any more.
        unsafe {
            drop(Box::from_raw(self.memory.as_ptr()));
            drop(Box::from_raw(self.entries.as_ptr()));
        }
    }
}

// SAFETY: the memory belongs to this value alone, whichever thread has it.
unsafe impl Send for Provided {}

/// The head of a datagram in its buffer, as `io_uring_recvmsg_out` describes it (io_uring_prep_recvmsg_multishot(3)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) control_len: usize,
    pub(crate) len: usize,
    pub(crate) flags: i32,
}

impl Head {
    /// Reads the head of a buffer.
    #[inline]
    pub(crate) fn read(buffer: &[u8]) -> Option<Head> {
        let [_, _, _, _, c0, c1, c2, c3, l0, l1, l2, l3, f0, f1, f2, f3] =
            *buffer.first_chunk::<HEAD_BYTES>()?;
        let number = |bytes| usize::try_from(u32::from_ne_bytes(bytes)).unwrap_or(usize::MAX);
        Some(Head {
            control_len: number([c0, c1, c2, c3]).min(CONTROL_BYTES),
            len: number([l0, l1, l2, l3]).min(DATAGRAM_BYTES_MAX),
            flags: i32::from_ne_bytes([f0, f1, f2, f3]),
        })
    }

    /// The source address in a buffer.
    #[inline]
    pub(crate) fn name(buffer: &[u8]) -> Option<&[u8; NAME_BYTES]> {
        buffer.get(HEAD_BYTES..)?.first_chunk()
    }

    /// The control messages in a buffer.
    #[inline]
    pub(crate) fn control(self, buffer: &[u8]) -> &[u8] {
        buffer
            .get(HEAD_BYTES + NAME_BYTES..)
            .and_then(|rest| rest.get(..self.control_len))
            .unwrap_or_default()
    }
}

/// The layout of the space in front of a datagram, for a receive; it points to nothing.
pub(crate) fn template() -> libc::msghdr {
    libc::msghdr {
        msg_name: std::ptr::null_mut(),
        msg_namelen: NAME_BYTES as libc::socklen_t,
        msg_iov: std::ptr::null_mut(),
        msg_iovlen: 0,
        msg_control: std::ptr::null_mut(),
        msg_controllen: CONTROL_BYTES,
        msg_flags: 0,
    }
}

/// The buffer group that receives specify.
pub(crate) const GROUP: u16 = 1;
/// The offset of a datagram in its buffer.
pub(crate) const PAYLOAD: usize = HEAD_BYTES + NAME_BYTES + CONTROL_BYTES;
/// Maximum number of datagrams that wait for this program, a power of two; further ones wait in their sockets.
pub(crate) const BUFFERS: u16 = 1_024;
const HEAD_BYTES: usize = 16;
const STRIDE: usize = PAYLOAD + DATAGRAM_BYTES_MAX;
const _: () = assert!(STRIDE.is_multiple_of(8) && BUFFERS.is_power_of_two());
