//! The system calls that no safe wrapper covers.
//!
//! `nix` has `recvmmsg` and `sendmmsg`, over headers that cannot be sent to another thread. It also leaves the space
//! for control messages as small as the last messages were, so that a drop counter, which the kernel adds only after
//! the first overflow, does not fit.

use std::io::{self, IoSlice};
use std::os::fd::RawFd;
use std::time::Duration;

use io_uring::{IoUring, squeue};
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::SockaddrLike;

use crate::address::NAME_BYTES;
use crate::control::CONTROL_BYTES;
use crate::limits::{BATCH, DATAGRAM_BYTES_MAX};

/// Space in which the kernel describes one datagram.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(crate) struct Note {
    pub(crate) name: [u8; NAME_BYTES],
    pub(crate) control: [u8; CONTROL_BYTES],
    /// Bytes of `control` that were written.
    pub(crate) control_len: usize,
    /// Bytes of the datagram in its buffer.
    pub(crate) len: usize,
    /// Flags of the message (`MSG_TRUNC`, …).
    pub(crate) flags: i32,
}

impl Note {
    /// Space in which nothing is written yet.
    pub(crate) const EMPTY: Note =
        Note { name: [0; NAME_BYTES], control: [0; CONTROL_BYTES], control_len: 0, len: 0, flags: 0 };

    /// The control messages that were written.
    #[inline]
    pub(crate) fn control(&self) -> &[u8] {
        self.control.get(..self.control_len).unwrap_or_default()
    }
}

/// Receives one datagram, or one entry of the error queue when `flags` requests it. Does not block.
#[inline]
pub(crate) fn receive_one(fd: RawFd, buffer: &mut [u8], note: &mut Note, flags: i32) -> Result<(), Errno> {
    let mut slice = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut header = header(&mut slice, note);
    // SAFETY: `header` points to `slice`, which describes `buffer`, and to the name and control space of `note`,
    // each with its length. All of them outlive the call, and nothing else refers to them meanwhile.
    let len = unsafe { libc::recvmsg(fd, &raw mut header, flags | libc::MSG_DONTWAIT) };
    let len = usize::try_from(len).map_err(|_| Errno::last())?;
    (note.len, note.control_len, note.flags) = (len, header.msg_controllen, header.msg_flags);
    Ok(())
}

/// Receives the datagrams that wait, one for each buffer at most, and returns their number. Does not block.
pub(crate) fn receive_many(
    fd: RawFd,
    buffers: &mut [[u8; DATAGRAM_BYTES_MAX]],
    notes: &mut [Note],
) -> Result<usize, Errno> {
    let count = buffers.len().min(notes.len()).min(BATCH);
    let mut slices = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
    let mut headers = [libc::mmsghdr { msg_hdr: EMPTY_HEADER, msg_len: 0 }; BATCH];
    let spaces = buffers.iter_mut().zip(notes.iter_mut());
    for ((buffer, note), (slice, message)) in spaces.zip(slices.iter_mut().zip(&mut headers)) {
        *slice = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        message.msg_hdr = header(slice, note);
    }
    let vlen = libc::c_uint::try_from(count).unwrap_or(0);
    // SAFETY: the first `count` headers were filled above. Each points to its slice, which describes one buffer, and
    // to the name and control space of one note. All of them outlive the call, and nothing else refers to them
    // meanwhile. The kernel writes no more than `vlen` headers.
    let received =
        unsafe { libc::recvmmsg(fd, headers.as_mut_ptr(), vlen, libc::MSG_DONTWAIT, std::ptr::null_mut()) };
    let received = usize::try_from(received).map_err(|_| Errno::last())?;
    for (note, message) in notes.iter_mut().zip(&headers).take(received) {
        note.len = usize::try_from(message.msg_len).unwrap_or(usize::MAX);
        (note.control_len, note.flags) = (message.msg_hdr.msg_controllen, message.msg_hdr.msg_flags);
    }
    Ok(received)
}

/// Sends datagrams to one address with one call, and returns how many the system accepted. Does not block.
pub(crate) fn send_many(
    fd: RawFd,
    to: &impl SockaddrLike,
    datagrams: &[IoSlice<'_>],
) -> Result<usize, Errno> {
    let mut headers = [libc::mmsghdr { msg_hdr: EMPTY_HEADER, msg_len: 0 }; BATCH];
    for (message, datagram) in headers.iter_mut().zip(datagrams) {
        message.msg_hdr = libc::msghdr {
            msg_name: to.as_ptr().cast_mut().cast(),
            msg_namelen: to.len(),
            // `IoSlice` has the layout of `iovec`; the kernel reads it and does not write.
            msg_iov: std::ptr::from_ref(datagram).cast_mut().cast(),
            msg_iovlen: 1,
            ..EMPTY_HEADER
        };
    }
    let vlen = libc::c_uint::try_from(datagrams.len().min(BATCH)).unwrap_or(0);
    // SAFETY: the first `vlen` headers were filled above. Each points to `to` and to one slice, which describes a
    // borrowed datagram; the kernel only reads them, and all outlive the call. It writes the lengths in `headers`.
    let sent = unsafe { libc::sendmmsg(fd, headers.as_mut_ptr(), vlen, libc::MSG_DONTWAIT) };
    usize::try_from(sent).map_err(|_| Errno::last())
}

/// The condition that ends a call of io_uring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// Completions; with none the call returns immediately.
    pub(crate) want: u32,
    /// The longest time that it waits; `None` means without limit.
    pub(crate) patience: Option<Duration>,
}

/// Submits `count` entries, lets the kernel carry out due work, and waits; returns the number of entries that it took.
pub(crate) fn enter_ring(ring: &IoUring, count: u32, wait: Wait) -> io::Result<usize> {
    /// `io_uring_getevents_arg`.
    #[repr(C)]
    struct Argument {
        sigmask: u64,
        sigmask_len: u32,
        min_wait_us: u32,
        time: u64,
    }
    let time = wait.patience.map(|patience| libc::timespec {
        tv_sec: libc::time_t::try_from(patience.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: patience.subsec_nanos().into(),
    });
    let address = time.as_ref().map_or(0, |time| std::ptr::from_ref(time) as u64);
    let argument = Argument { sigmask: 0, sigmask_len: 0, min_wait_us: 0, time: address };
    // SAFETY: the argument has the layout that `EXT_ARG` specifies, without a mask of signals; it and the time that it
    // points to outlive the call. The time has 64-bit fields, as `__kernel_timespec` has.
    unsafe { ring.submitter().enter(count, wait.want, GETEVENTS | EXT_ARG, Some(&argument)) }
}

/// Queues an entry; returns `false` when the queue is full.
///
/// # Safety
/// All memory that the entry points to must be valid until the entry was submitted and carried out.
pub(crate) unsafe fn push_entry(ring: &mut IoUring, entry: &squeue::Entry) -> bool {
    // SAFETY: the caller's promise.
    unsafe { ring.submission().push(entry) }.is_ok()
}

#[inline]
fn header(slice: &mut libc::iovec, note: &mut Note) -> libc::msghdr {
    libc::msghdr {
        msg_name: note.name.as_mut_ptr().cast(),
        msg_namelen: NAME_BYTES as libc::socklen_t,
        msg_iov: slice,
        msg_iovlen: 1,
        msg_control: note.control.as_mut_ptr().cast(),
        msg_controllen: CONTROL_BYTES,
        ..EMPTY_HEADER
    }
}

/// `IORING_ENTER_GETEVENTS` and `IORING_ENTER_EXT_ARG`.
const GETEVENTS: u32 = 1;
const EXT_ARG: u32 = 8;
const _: () = assert!(size_of::<libc::timespec>() == 16);

pub(crate) const EMPTY_HEADER: libc::msghdr = libc::msghdr {
    msg_name: std::ptr::null_mut(),
    msg_namelen: 0,
    msg_iov: std::ptr::null_mut(),
    msg_iovlen: 0,
    msg_control: std::ptr::null_mut(),
    msg_controllen: 0,
    msg_flags: 0,
};
