//! The protection of one leg's packets: SRTP with keys from SDP or from a DTLS handshake, and ICE.

use std::net::SocketAddr;

use crossbeam_channel::Sender;

use super::ice_path::IcePath;
use super::job::Job;
use super::message::PortId;
use super::secured::Secured;
use super::webrtc::{Heard, Web};
use crate::session::{Description, Reason};
use crate::srtp::SrtpKeys;
use crate::time::Micros;
use crate::webrtc::{Answer, Protection};

/// SRTP, once there are keys, and ICE, with DTLS for a browser.
pub(super) struct Protected {
    secured: Option<Secured>,
    /// ICE without DTLS.
    path: Option<Box<IcePath>>,
    pub(super) web: Option<Box<Web>>,
    /// The last SDP result of a leg with ICE.
    description: Option<Box<Description>>,
}

/// The result of opening a received datagram.
pub(super) enum Opened {
    /// An ICE check, with the answer for its source.
    Check(Box<Answer>),
    /// RTP or RTCP of this length.
    Packet(usize),
    /// It is discarded.
    Refused(Reason),
    /// It was passed on to the handshake, or kept the path open.
    Taken,
}

impl Protected {
    /// The protection of a leg that had none.
    pub(super) fn new(port: PortId, protection: Protection, jobs: &Sender<Job>) -> Protected {
        match protection {
            Protection::Ice(ice, keys) => Protected {
                secured: keys.map(Secured::new),
                path: Some(Box::new(IcePath::new(ice))),
                web: None,
                description: None,
            },
            Protection::Sdes(keys) => {
                Protected { secured: Some(Secured::new(keys)), path: None, web: None, description: None }
            }
            Protection::Webrtc(terms) => {
                let web = Box::new(Web::new(port, terms, jobs.clone()));
                Protected { secured: None, path: None, web: Some(web), description: None }
            }
        }
    }

    /// Applies a new SDP result; an unchanged key, path or handshake continues.
    pub(super) fn change(&mut self, now: Micros, port: PortId, protection: Protection, jobs: &Sender<Job>) {
        match (protection, &mut self.web) {
            (Protection::Sdes(keys), None) => {
                (self.path, self.description) = (None, None);
                self.set_keys(now, keys);
            }
            (Protection::Ice(ice, keys), None) => {
                match &mut self.path {
                    Some(path) => path.change(ice),
                    path => *path = Some(Box::new(IcePath::new(ice))),
                }
                match keys {
                    Some(keys) => self.set_keys(now, keys),
                    None => self.secured = None,
                }
            }
            (Protection::Webrtc(terms), Some(web)) => {
                if web.change(terms) {
                    self.secured = None;
                }
            }
            (protection, _) => *self = Protected::new(port, protection, jobs),
        }
    }

    /// Stores an SDP result, and returns it with the addresses found by ICE.
    pub(super) fn describe(&mut self, description: Description) -> Description {
        let Some(located) = self.located(&description) else { return description };
        self.description = Some(Box::new(description));
        located
    }

    /// Whether ICE found another path since the last call.
    #[inline]
    pub(super) fn has_moved(&mut self) -> bool {
        self.path.as_mut().is_some_and(|path| path.has_moved())
            || self.web.as_mut().is_some_and(|web| web.has_moved())
    }

    /// Begins the handshake on a newly found path, and returns the last SDP result with the address of the path.
    pub(super) fn relocate(&mut self) -> Option<Description> {
        if let Some(web) = &mut self.web {
            web.begin();
        }
        self.located(self.description.as_ref()?)
    }

    /// An SDP result with the addresses found by ICE; `None` for a leg without ICE.
    fn located(&self, description: &Description) -> Option<Description> {
        match (&self.path, &self.web) {
            (Some(path), _) => Some(path.located(description)),
            (None, Some(web)) => Some(web.located(description)),
            (None, None) => None,
        }
    }

    /// Checks ICE and the handshake, once a second; returns whether the party's consent began or ended.
    pub(super) fn look(&mut self, now: Micros) -> bool {
        match (&mut self.path, &mut self.web) {
            (Some(path), _) => path.look(now),
            (None, Some(web)) => web.look(now),
            (None, None) => false,
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
        match &self.path {
            Some(path) => path.may_send(),
            None => self.secured.is_some() && self.web.as_ref().is_none_or(|web| web.may_send()),
        }
    }

    /// Authenticates and decrypts a datagram in place, or handles it as ICE or DTLS.
    pub(super) fn open(
        &mut self,
        at: Micros,
        source: SocketAddr,
        on_rtcp: bool,
        datagram: &mut [u8],
    ) -> Opened {
        let heard = match (&mut self.path, &mut self.web) {
            (Some(path), _) => path.hear(at, source, on_rtcp, datagram),
            // ICE of a browser has one component: RTCP arrives on the RTP port.
            (None, Some(_)) if on_rtcp => Heard::Refused(Reason::Rtcp),
            (None, Some(web)) => web.hear(at, source, datagram),
            (None, None) => Heard::Media,
        };
        match heard {
            Heard::Check(answer) => return Opened::Check(answer),
            Heard::Media => {}
            Heard::Refused(reason) => return Opened::Refused(reason),
            Heard::Taken => return Opened::Taken,
        }
        let opened = match &mut self.secured {
            Some(secured) => secured.open(at, on_rtcp, datagram),
            None if self.path.is_some() => Ok(datagram.len()),
            // While there are no keys yet, the packet may be from the party.
            None => Err(Reason::Probation),
        };
        match opened {
            Ok(len) => {
                if let Some(path) = &mut self.path {
                    path.renew(at, source, on_rtcp);
                }
                Opened::Packet(len)
            }
            Err(reason) => Opened::Refused(reason),
        }
    }

    /// Protects RTP of `len` bytes in place; returns its new length, or `None` when it cannot be sent.
    pub(super) fn seal(&mut self, buffer: &mut [u8], len: usize) -> Option<usize> {
        match &mut self.secured {
            Some(secured) => secured.seal(buffer, len),
            None => self.path.is_some().then_some(len),
        }
    }

    /// Like [`Protected::seal`], for RTCP.
    pub(super) fn seal_rtcp(&mut self, buffer: &mut [u8], len: usize) -> Option<usize> {
        match &mut self.secured {
            Some(secured) => secured.seal_rtcp(buffer, len),
            None => self.path.is_some().then_some(len),
        }
    }
}
