//! SRTP of one call: sent packets are protected, received ones must be authentic.

use std::sync::Arc;

use parking_lot::Mutex;
use sidetone_media::srtp::{Inbound, MasterKey, Outbound, Suite};
use sidetone_sip::sdp::{Crypto, SrtpTerms};

/// The keys of a call and the state of both directions; clones share them.
#[derive(Clone, Default)]
pub(super) struct Protection(Arc<Mutex<Option<State>>>);

struct State {
    terms: SrtpTerms,
    sender: Outbound,
    receiver: Inbound,
}

impl Protection {
    /// Sets the keys from SDP; equal keys keep their state. `spoils` sends with another key than the one in SDP.
    pub(super) fn settle(&self, terms: Option<&SrtpTerms>, spoils: bool) {
        let mut state = self.0.lock();
        if state.as_ref().map(|state| &state.terms) == terms {
            return;
        }
        *state = terms.and_then(|terms| {
            let (send, receive) = (master_key(&terms.send)?, master_key(&terms.receive)?);
            let sender = Outbound::new(if spoils { &receive } else { &send });
            Some(State { terms: terms.clone(), sender, receiver: Inbound::new(&receive) })
        });
    }

    /// Returns the bytes to send for an RTP packet; `None` when it cannot be protected.
    pub(super) fn seal<'a>(&self, packet: &'a [u8], buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let mut state = self.0.lock();
        let Some(state) = state.as_mut() else { return Some(packet) };
        buffer.clear();
        buffer.extend_from_slice(packet);
        buffer.resize(packet.len() + TAG_BYTES_MAX, 0);
        let len = state.sender.protect(buffer, packet.len()).ok()?;
        buffer.get(..len)
    }

    /// Returns the length of the RTP packet in a datagram; `None` when it is not authentic.
    pub(super) fn open(&self, datagram: &mut [u8]) -> Option<usize> {
        let mut state = self.0.lock();
        match state.as_mut() {
            Some(state) => state.receiver.unprotect(datagram).ok(),
            None => Some(datagram.len()),
        }
    }
}

fn master_key(line: &Crypto) -> Option<MasterKey> {
    let key = MasterKey::new(Suite::from_name(line.suite.as_str())?, line.key.material())?;
    Some(key.with_mki_bytes(line.mki_bytes))
}

/// The longest authentication tag.
const TAG_BYTES_MAX: usize = 16;
