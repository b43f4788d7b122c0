//! Batches of datagrams on UDP sockets, with the kernel's information about each: receive time, drop counter,
//! ICMP errors.
//!
//! A thread has one [`Wire`]. It waits for the thread's sockets ([`Endpoint`]), receives into buffers of its own,
//! and sends from the same buffers. Nothing is allocated per datagram. The crate knows neither RTP nor sessions.
//!
//! There are two kernel interfaces ([`Io`]): `epoll.rs` and `ring.rs` (io_uring), chosen when a wire is opened.
//!
//! This is the only crate with `unsafe`: the system calls that no safe wrapper covers are in `system.rs`, the buffers
//! that the kernel chooses from in `provided.rs`.

mod address;
mod arrival;
mod control;
mod endpoint;
mod epoll;
mod limits;
mod outgoing;
mod provided;
mod receiving;
mod ring;
mod sending;
mod system;
mod waker;
mod wire;

pub use arrival::{Arrival, Calls, Event, IcmpError, Sent};
pub use endpoint::Endpoint;
pub use limits::{BATCH, DATAGRAM_BYTES_MAX};
pub use waker::Waker;
pub use wire::{Io, Wire};
