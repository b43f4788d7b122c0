//! SRTP of one leg: the keys, and both directions of its packets.

use sidetone_wire::DATAGRAM_BYTES_MAX;

use crate::rtp::Datagram;
use crate::session::Reason;
use crate::srtp::{Inbound, Outbound, SrtpError, SrtpKeys};
use crate::time::Micros;

/// The negotiated keys, and the state of both directions.
pub(super) struct Secured {
    keys: SrtpKeys,
    inbound: Inbound,
    outbound: Outbound,
    /// The receiving side of the previous key, and until when its packets are still accepted: a party sends with its
    /// old key until our answer arrives.
    before: Option<(Micros, Inbound)>,
}

impl Secured {
    /// New keys for a leg without SRTP.
    pub(super) fn new(keys: SrtpKeys) -> Secured {
        Secured {
            inbound: Inbound::new(&keys.receive),
            outbound: Outbound::new(&keys.send),
            keys,
            before: None,
        }
    }

    /// Changes to new keys at `now`; an unchanged key keeps its streams.
    ///
    /// A new key begins with a rollover counter of zero. RFC 3711 §3.3.1 keeps the counter, but SDES phones (libsrtp in
    /// pjsip, linphone and Asterisk, and libre in baresip) restart it with every new key.
    pub(super) fn change(&mut self, now: Micros, keys: SrtpKeys) {
        if keys.receive != self.keys.receive {
            let old = std::mem::replace(&mut self.inbound, Inbound::new(&keys.receive));
            self.before = Some((now + OLD_KEY_US, old));
        }
        if keys.send != self.keys.send {
            self.outbound = Outbound::new(&keys.send);
        }
        self.keys = keys;
    }

    /// Authenticates and decrypts a datagram in place, and returns its new length. Other protocols on the RTP port
    /// stay as they are; the session discards them.
    ///
    /// # Errors
    /// Why the datagram is discarded.
    pub(super) fn open(&mut self, at: Micros, on_rtcp: bool, datagram: &mut [u8]) -> Result<usize, Reason> {
        let kind = if on_rtcp { Datagram::Rtcp } else { Datagram::classify(datagram) };
        if kind == Datagram::Foreign {
            return Ok(datagram.len());
        }
        let open = |inbound: &mut Inbound, datagram: &mut [u8]| match kind {
            Datagram::Rtcp => inbound.unprotect_rtcp(datagram),
            Datagram::Foreign | Datagram::Rtp => inbound.unprotect(datagram),
        };
        self.before.take_if(|(until, _)| *until <= at);
        let Some((_, before)) = &mut self.before else {
            return open(&mut self.inbound, datagram).map_err(reason);
        };
        // An attempt with the wrong key may destroy the datagram.
        let mut copy = [0; DATAGRAM_BYTES_MAX];
        let copy = copy.get_mut(..datagram.len()).ok_or(Reason::Malformed)?;
        copy.copy_from_slice(datagram);
        if let Ok(len) = open(before, copy) {
            datagram.copy_from_slice(copy);
            return Ok(len);
        }
        open(&mut self.inbound, datagram).map_err(reason)
    }

    /// Protects RTP of `len` bytes in place; returns its new length, or `None` when it cannot be sent.
    pub(super) fn seal(&mut self, buffer: &mut [u8], len: usize) -> Option<usize> {
        self.outbound.protect(buffer, len).ok()
    }

    /// Like [`Secured::seal`], for RTCP.
    pub(super) fn seal_rtcp(&mut self, buffer: &mut [u8], len: usize) -> Option<usize> {
        self.outbound.protect_rtcp(buffer, len).ok()
    }
}

fn reason(error: SrtpError) -> Reason {
    match error {
        SrtpError::Replayed => Reason::Replayed,
        SrtpError::Malformed | SrtpError::Room | SrtpError::Streams | SrtpError::Tag => {
            Reason::Unauthenticated
        }
    }
}

/// How long packets of an old key are accepted: longer than a retransmitted answer takes on most networks.
const OLD_KEY_US: i64 = 2_000_000;
