//! Orders of the workers for the thread of the DTLS handshakes.

use std::net::IpAddr;

use super::message::PortId;

/// An order of a worker.
pub(super) enum Job {
    /// Begin a handshake; an earlier one of the same leg is dropped.
    Begin(PortId, Box<Begin>),
    /// A datagram of the party.
    Datagram(PortId, Box<[u8]>),
    /// The relay stops.
    Stop,
}

/// The terms of a handshake.
pub(super) struct Begin {
    /// The number of this handshake of the leg.
    pub(super) round: u32,
    /// The digest of the party's certificate.
    pub(super) fingerprint: [u8; 32],
    /// The address of the party's path, by which handshakes are limited.
    pub(super) source: IpAddr,
    /// Whether we are the client.
    pub(super) is_client: bool,
}

/// Jobs that wait for the thread.
pub(super) const JOBS_MAX: usize = 4_096;
