//! The protection of one leg's packets: SRTP by keys in SDP or of a DTLS handshake, and ICE.

use std::net::SocketAddr;

use crossbeam_channel::Sender;

use super::job::Job;
use super::message::PortId;
use super::secured::Secured;
use super::webrtc::{Heard, Web};
use crate::session::Reason;
use crate::srtp::SrtpKeys;
use crate::time::Micros;
use crate::webrtc::{Answer, Protection};

/// SRTP, once there are keys, and ICE with DTLS for a browser.
pub(super) struct Protected {
    secured: Option<Secured>,
    pub(super) web: Option<Box<Web>>,
}

/// What became of a received datagram.
pub(super) enum Opened {
    /// A check, with the answer for its source.
    Check(Box<Answer>),
    /// RTP or RTCP of this length.
    Packet(usize),
    /// It is discarded.
    Refused(Reason),
    /// It was passed on to the handshake.
    Taken,
}

impl Protected {
    /// The protection of a leg that had none.
    pub(super) fn new(port: PortId, protection: Protection, jobs: &Sender<Job>) -> Protected {
        match protection {
            Protection::Sdes(keys) => Protected { secured: Some(Secured::new(keys)), web: None },
            Protection::Webrtc(terms) => {
                Protected { secured: None, web: Some(Box::new(Web::new(port, terms, jobs.clone()))) }
            }
        }
    }

    /// Applies a new SDP result; a key or a handshake that stays the same continues.
    pub(super) fn change(&mut self, now: Micros, port: PortId, protection: Protection, jobs: &Sender<Job>) {
        match (protection, &mut self.web) {
            (Protection::Sdes(keys), None) => self.set_keys(now, keys),
            (Protection::Webrtc(terms), Some(web)) => {
                if web.change(terms) {
                    self.secured = None;
                }
            }
            (protection, _) => *self = Protected::new(port, protection, jobs),
        }
    }

    /// Sets or changes the keys of SRTP.
    pub(super) fn set_keys(&mut self, now: Micros, keys: SrtpKeys) {
        match &mut self.secured {
            Some(secured) => secured.change(now, keys),
            secured => *secured = Some(Secured::new(keys)),
        }
    }

    /// Whether packets may be sent to the party at all.
    pub(super) fn may_send(&self) -> bool {
        self.secured.is_some() && self.web.as_ref().is_none_or(|web| web.may_send())
    }

    /// Authenticates and decrypts a datagram in place, or handles it as ICE or DTLS.
    pub(super) fn open(
        &mut self,
        at: Micros,
        source: SocketAddr,
        on_rtcp: bool,
        datagram: &mut [u8],
    ) -> Opened {
        if let Some(web) = &mut self.web {
            // ICE has one component: RTCP comes to the RTP port.
            if on_rtcp {
                return Opened::Refused(Reason::Rtcp);
            }
            match web.hear(at, source, datagram) {
                Heard::Check(answer) => return Opened::Check(answer),
                Heard::Handshake => return Opened::Taken,
                Heard::Media => {}
                Heard::Refused(reason) => return Opened::Refused(reason),
            }
        }
        // Without keys yet, the packet may be the party's.
        let Some(secured) = &mut self.secured else { return Opened::Refused(Reason::Probation) };
        match secured.open(at, on_rtcp, datagram) {
            Ok(len) => Opened::Packet(len),
            Err(reason) => Opened::Refused(reason),
        }
    }

    /// Protects RTP of `len` bytes in place; returns its new length, or `None` when it cannot be sent.
    pub(super) fn seal(&mut self, buffer: &mut [u8], len: usize) -> Option<usize> {
        self.secured.as_mut()?.seal(buffer, len)
    }

    /// Like [`Protected::seal`], for RTCP.
    pub(super) fn seal_rtcp(&mut self, buffer: &mut [u8], len: usize) -> Option<usize> {
        self.secured.as_mut()?.seal_rtcp(buffer, len)
    }
}
