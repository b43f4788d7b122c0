//! A capture of the datagrams that a phone sends and receives.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use sidetone_media::pcap::{LinkType, Writer};
use sidetone_media::time::Micros;

/// A capture in memory; clones share it.
#[derive(Clone, Default)]
pub struct Tap {
    datagrams: Arc<Mutex<Vec<Datagram>>>,
}

struct Datagram {
    at: Micros,
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

impl Tap {
    /// Records a datagram at the current time.
    pub(super) fn note(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.note_at(monotonic_wall(), from, to, bytes);
    }

    /// Records a datagram that was sent or received at `at`.
    pub(super) fn note_at(&self, at: Micros, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.datagrams.lock().push(Datagram { at, from, to, bytes: bytes.to_vec() });
    }

    /// Returns the capture so far, as a pcap file.
    ///
    /// # Errors
    /// When a datagram does not fit into a packet, which does not happen with UDP.
    pub fn to_pcap(&self) -> io::Result<Vec<u8>> {
        let mut datagrams = self.datagrams.lock();
        datagrams.sort_by_key(|datagram| datagram.at);
        let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET)?;
        for Datagram { at, from, to, bytes } in datagrams.iter() {
            writer.write_udp(*at, *from, *to, bytes)?;
        }
        writer.finish()
    }
}

/// The wall clock at the first call, advanced by the monotonic clock: a clock step does not affect a capture.
#[expect(clippy::disallowed_methods, reason = "a phone is a driver: it reads the clocks")]
pub(super) fn monotonic_wall() -> Micros {
    static EPOCH: OnceLock<(SystemTime, Instant)> = OnceLock::new();
    let (wall, instant) = EPOCH.get_or_init(|| (SystemTime::now(), Instant::now()));
    let since = wall.duration_since(UNIX_EPOCH).unwrap_or_default() + instant.elapsed();
    Micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
