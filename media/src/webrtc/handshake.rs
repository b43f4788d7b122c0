//! The DTLS handshake of a leg (RFC 5763, RFC 5764): from the first datagram to the keys of SRTP.
//!
//! The keys are returned only when the handshake is complete and the party's certificate has the digest of SDP. The
//! machine remains for a while afterwards, to repeat its last flight when that was lost.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use dimpl::{Dtls, Output, SrtpProfile};

use super::certificate::{Certificate, fingerprint_of};
use crate::srtp::{MasterKey, SrtpKeys, Suite};

/// The handshake of one leg.
pub struct Handshake {
    dtls: Dtls,
    /// The digest of the party's certificate, from SDP.
    fingerprint: [u8; 32],
    is_client: bool,
    /// Whether the party presented the certificate of SDP.
    is_verified: bool,
    is_connected: bool,
    keys: Option<SrtpKeys>,
    state: State,
    deadline: Instant,
    /// When the library's next timer is due.
    timer: Option<Instant>,
    outputs: VecDeque<HandshakeOutput>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It failed, or is over.
    Ended,
    /// The keys were returned.
    Done,
    Running,
}

/// An input of a handshake.
#[derive(Clone, Copy, Debug)]
pub enum HandshakeInput<'a> {
    /// A DTLS datagram of the party.
    Datagram(&'a [u8]),
    /// The time of [`Handshake::next_timeout`] is reached.
    Timeout,
}

/// An output of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeOutput {
    /// A datagram for the party.
    Datagram(Vec<u8>),
    /// There will be no keys.
    Failed(Failure),
    /// The keys of SRTP.
    Keys(Box<SrtpKeys>),
}

/// Why a handshake has no keys; completes "failed to agree on keys by DTLS: ".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The party presented another certificate than that of SDP.
    #[error("the certificate does not have the fingerprint of SDP")]
    Certificate,
    /// It was not complete after [`Handshake::TIME_MAX`].
    #[error("the handshake took longer than 30 seconds")]
    Deadline,
    /// The party offers no SRTP profile that we support.
    #[error("there is no profile of SRTP in common")]
    Profile,
}

impl Handshake {
    /// How long a handshake may take.
    pub const TIME_MAX: Duration = Duration::from_secs(30);

    /// A handshake with the party whose certificate has this digest; as a client it begins immediately.
    pub fn new(now: Instant, certificate: &Certificate, fingerprint: [u8; 32], is_client: bool) -> Handshake {
        let mut dtls = Dtls::new_12(certificate.config.clone(), certificate.pair.clone(), now);
        dtls.set_active(is_client);
        let mut handshake = Handshake {
            dtls,
            fingerprint,
            is_client,
            is_verified: false,
            is_connected: false,
            keys: None,
            state: State::Running,
            deadline: now + Self::TIME_MAX,
            timer: None,
            outputs: VecDeque::new(),
        };
        // The library begins with its first timeout.
        handshake.handle_input(now, HandshakeInput::Timeout);
        handshake
    }

    /// Handles an input; drain [`Handshake::poll_output`] afterwards.
    pub fn handle_input(&mut self, now: Instant, input: HandshakeInput<'_>) {
        if self.state == State::Ended {
            return;
        }
        if now >= self.deadline {
            return self.end_late();
        }
        // A datagram that the library refuses changes nothing: anyone can send one. A handshake that does not recover
        // ends at the deadline.
        let refused = match input {
            HandshakeInput::Datagram(datagram) => {
                let _ = self.dtls.handle_timeout(now);
                self.dtls.handle_packet(datagram).is_err()
            }
            HandshakeInput::Timeout => self.dtls.handle_timeout(now).is_err(),
        };
        self.timer = refused.then(|| now + RETRY);
        self.drain(now);
        self.give_keys();
    }

    /// The next output; drain it after every input.
    pub fn poll_output(&mut self) -> Option<HandshakeOutput> {
        self.outputs.pop_front()
    }

    /// When to feed [`HandshakeInput::Timeout`]; `None` when it is over.
    pub fn next_timeout(&self) -> Option<Instant> {
        if self.state == State::Ended {
            return None;
        }
        Some(self.timer.map_or(self.deadline, |timer| timer.min(self.deadline)))
    }

    /// Whether it failed, or its time after the keys is over; then it can be dropped.
    pub fn is_over(&self) -> bool {
        self.state == State::Ended
    }

    fn end_late(&mut self) {
        if self.state == State::Running {
            self.outputs.push_back(HandshakeOutput::Failed(Failure::Deadline));
        }
        self.state = State::Ended;
    }

    fn fail(&mut self, failure: Failure) {
        if self.state == State::Running {
            self.outputs.push_back(HandshakeOutput::Failed(failure));
        }
        self.keys = None;
        self.state = State::Ended;
    }

    /// Takes the outputs of the library; the last one is its next timer.
    fn drain(&mut self, now: Instant) {
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        for _ in 0..OUTPUTS_MAX {
            match self.dtls.poll_output(&mut buffer) {
                Output::Packet(packet) => self.outputs.push_back(HandshakeOutput::Datagram(packet.to_vec())),
                Output::Connected => self.is_connected = true,
                Output::PeerCert(certificate) => {
                    if fingerprint_of(certificate) != self.fingerprint {
                        return self.fail(Failure::Certificate);
                    }
                    self.is_verified = true;
                }
                Output::KeyingMaterial(material, profile) => {
                    let Some(keys) = keys_of(&material, profile, self.is_client) else {
                        return self.fail(Failure::Profile);
                    };
                    self.keys = Some(keys);
                }
                Output::Timeout(at) => {
                    self.timer = Some(at.max(now + TICK));
                    return;
                }
                // Only the keys of DTLS are used; SIP ends the call.
                _ => {}
            }
        }
    }

    fn give_keys(&mut self) {
        if self.state != State::Running || !self.is_verified || !self.is_connected {
            return;
        }
        match self.keys.take() {
            Some(keys) => {
                self.state = State::Done;
                // Before the last flight, so that no packet of the party arrives before its key is set.
                self.outputs.push_front(HandshakeOutput::Keys(Box::new(keys)));
            }
            None => self.fail(Failure::Profile),
        }
    }
}

/// The keys in the exported keying material: the client's and the server's key, then both salts (RFC 5764 §4.2).
fn keys_of(material: &[u8], profile: SrtpProfile, is_client: bool) -> Option<SrtpKeys> {
    let suite = match profile {
        SrtpProfile::AES128_CM_SHA1_80 => Suite::AesCm128HmacSha1Tag80,
        SrtpProfile::AEAD_AES_128_GCM => Suite::AeadAes128Gcm,
        SrtpProfile::AEAD_AES_256_GCM => Suite::AeadAes256Gcm,
        _ => return None,
    };
    let (keys, salts) = material.split_at_checked(2 * suite.key_bytes())?;
    let (client_key, server_key) = keys.split_at_checked(suite.key_bytes())?;
    let (client_salt, server_salt) = salts.split_at_checked(suite.salt_bytes())?;
    let client = MasterKey::new(suite, &[client_key, client_salt].concat())?;
    let server = MasterKey::new(suite, &[server_key, server_salt].concat())?;
    let (send, receive) = if is_client { (client, server) } else { (server, client) };
    Some(SrtpKeys { receive, send })
}

/// The most outputs of one input.
const OUTPUTS_MAX: usize = 64;
/// The longest datagram of the library.
const DATAGRAM_BYTES_MAX: usize = 2_048;
/// The shortest time between two timeouts.
const TICK: Duration = Duration::from_millis(10);
/// When the library is called again after it refused an input.
const RETRY: Duration = Duration::from_millis(200);

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
