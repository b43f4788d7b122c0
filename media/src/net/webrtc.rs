//! ICE and DTLS of one leg on the wire: which datagrams are checks and handshakes, and where packets may be sent.
//!
//! The party's address is that of the path found by ICE; the address in SDP is ignored. Until the handshake is
//! complete, no media is sent or accepted.

use std::net::SocketAddr;

use crossbeam_channel::Sender;

use super::job::{Begin, Job};
use super::message::PortId;
use crate::session::{Description, Reason, StrictSource};
use crate::time::Micros;
use crate::webrtc::{Agent, Answer, WebrtcTerms};

/// State of a leg with ICE and DTLS.
pub(super) struct Web {
    port: PortId,
    agent: Agent,
    fingerprint: [u8; 32],
    is_client: bool,
    /// Counts the handshakes of the leg.
    round: u32,
    /// Whether the handshake of this round was begun.
    has_begun: bool,
    jobs: Sender<Job>,
    /// The address to which packets may be sent: the path of ICE, while the party consents.
    remote: Option<SocketAddr>,
    /// Whether the path changed since the last call of [`Web::has_moved`].
    has_moved: bool,
    /// Number of DTLS datagrams that may still be passed on, and the time until which it applies.
    allowance: (u32, Micros),
}

/// The result for a datagram on the port of such a leg.
pub(super) enum Heard {
    /// An ICE check, with its answer.
    Check(Box<Answer>),
    /// RTP or RTCP.
    Media,
    /// It is discarded.
    Refused(Reason),
    /// A datagram of the handshake, or one that keeps the path open.
    Taken,
}

impl Web {
    /// A leg that waits for its first check; `jobs` is the queue to the thread of the handshakes.
    pub(super) fn new(port: PortId, terms: WebrtcTerms, jobs: Sender<Job>) -> Web {
        Web {
            port,
            agent: Agent::new(terms.ice),
            fingerprint: terms.fingerprint,
            is_client: terms.is_client,
            round: 0,
            has_begun: false,
            jobs,
            remote: None,
            has_moved: false,
            allowance: (0, Micros::default()),
        }
    }

    /// Applies new terms; returns whether a new handshake is needed, because the certificate or the role changed.
    pub(super) fn change(&mut self, terms: WebrtcTerms) -> bool {
        if *self.agent.terms() != terms.ice {
            self.agent.restart(terms.ice);
        }
        let is_same = self.fingerprint == terms.fingerprint && self.is_client == terms.is_client;
        if !is_same {
            (self.fingerprint, self.is_client) = (terms.fingerprint, terms.is_client);
            (self.round, self.has_begun) = (self.round.wrapping_add(1), false);
            self.begin();
        }
        !is_same
    }

    /// Handles a datagram by its first byte (RFC 7983 §7).
    pub(super) fn hear(&mut self, at: Micros, source: SocketAddr, datagram: &[u8]) -> Heard {
        match datagram.first() {
            Some(0..=3) => match self.agent.receive(at, source, datagram) {
                Ok(answer) => {
                    self.has_moved |= answer.has_moved;
                    self.remote = self.agent.remote(at);
                    Heard::Check(Box::new(answer))
                }
                Err(_) => Heard::Refused(Reason::Foreign),
            },
            Some(20..=63) => self.hear_handshake(at, source, datagram),
            None | Some(4..=19 | 64..=127) => Heard::Refused(Reason::Foreign),
            Some(128..) => Heard::Media,
        }
    }

    /// Passes a DTLS datagram on, if its source has proven itself by a check. The copy is the only allocation here, and
    /// the number per second is bounded.
    fn hear_handshake(&mut self, at: Micros, source: SocketAddr, datagram: &[u8]) -> Heard {
        let (left, until) = &mut self.allowance;
        if at >= *until {
            (*left, *until) = (DATAGRAMS_PER_SECOND, at + SECOND_US);
        }
        if self.agent.checked() != Some(source) || *left == 0 {
            return Heard::Refused(Reason::Foreign);
        }
        *left -= 1;
        self.begin();
        // A full queue loses it, as the network may; DTLS repeats it.
        let _ = self.jobs.try_send(Job::Datagram(self.port, datagram.into()));
        Heard::Taken
    }

    /// Whether the path changed since the last call.
    pub(super) fn has_moved(&mut self) -> bool {
        std::mem::take(&mut self.has_moved)
    }

    /// Begins the handshake once a path is known. When the queue is full, it is tried again in the next second.
    pub(super) fn begin(&mut self) {
        let Some(path) = self.agent.checked().filter(|_| !self.has_begun) else { return };
        let Web { port, round, fingerprint, is_client, .. } = *self;
        let begin = Box::new(Begin { round, fingerprint, source: path.ip(), is_client });
        self.has_begun = self.jobs.try_send(Job::Begin(port, begin)).is_ok();
    }

    /// An SDP result with the address of the path.
    pub(super) fn located(&self, description: &Description) -> Description {
        Description {
            remote: self.remote,
            // Without a path the party is not on hold: its audio is expected, and missing.
            unresolved: self.remote.is_none(),
            remote_rtcp: self.remote,
            rtcp_mux: true,
            strict_source: Some(StrictSource::Sdp),
            ..description.clone()
        }
    }

    /// Checks the leg, once a second; returns whether the party's consent began or ended.
    pub(super) fn look(&mut self, now: Micros) -> bool {
        self.begin();
        let remote = self.agent.remote(now);
        std::mem::replace(&mut self.remote, remote) != remote
    }

    /// Whether packets may be sent to the party.
    pub(super) fn may_send(&self) -> bool {
        self.remote.is_some()
    }

    /// The destination of handshake datagrams.
    pub(super) fn handshake_target(&self) -> Option<SocketAddr> {
        self.agent.checked()
    }

    /// The number of the leg's current handshake.
    pub(super) fn round(&self) -> u32 {
        self.round
    }
}

/// DTLS datagrams of a leg that are passed on in a second. A handshake has about ten in each direction.
const DATAGRAMS_PER_SECOND: u32 = 64;
const SECOND_US: i64 = 1_000_000;

#[cfg(test)]
mod tests {
    use crossbeam_channel::{Receiver, bounded};

    use super::*;
    use crate::webrtc::{IceTerms, write_request};

    const PASSWORD: &str = "VOkJxbRl1RmTxUk/WvJxBt";
    const HANDSHAKE: [u8; 20] = [22; 20];

    fn terms(fingerprint: u8) -> WebrtcTerms {
        let ice = IceTerms::new("ours", PASSWORD, "them");
        WebrtcTerms { ice, fingerprint: [fingerprint; 32], is_client: false }
    }

    fn web() -> (Web, Receiver<Job>) {
        let (jobs, queue) = bounded(1_000);
        (Web::new(PortId::new(1, 0, 2), terms(1), jobs), queue)
    }

    fn at(port: u16) -> SocketAddr {
        SocketAddr::new("192.0.2.1".parse().unwrap(), port)
    }

    fn seconds(seconds: i64) -> Micros {
        Micros(seconds * SECOND_US)
    }

    /// A check that nominates; whether it was answered.
    fn check(web: &mut Web, now: Micros, port: u16, password: &str) -> bool {
        let datagram = write_request([9; 12], &[(6, b"ours:them"), (0x25, &[])], password);
        matches!(web.hear(now, at(port), &datagram), Heard::Check(_))
    }

    fn shakes(web: &mut Web, now: Micros, port: u16) -> bool {
        matches!(web.hear(now, at(port), &HANDSHAKE), Heard::Taken)
    }

    #[test]
    fn the_first_byte_tells_the_protocols_apart() {
        let (mut web, _queue) = web();
        for first in 0..=255_u8 {
            let heard = web.hear(seconds(0), at(1), &[first; 40]);
            assert_eq!(matches!(heard, Heard::Media), first >= 128, "{first}");
            assert!(first >= 128 || matches!(heard, Heard::Refused(Reason::Foreign)), "{first}");
        }
        assert!(matches!(web.hear(seconds(0), at(1), &[]), Heard::Refused(Reason::Foreign)));
    }

    #[test]
    fn only_a_proven_source_shakes_hands_and_only_so_often() {
        let (mut web, queue) = web();
        assert!(!shakes(&mut web, seconds(0), 1));
        assert!(!check(&mut web, seconds(0), 1, "not the password of SDP"));
        assert!(!shakes(&mut web, seconds(0), 1) && queue.is_empty());
        assert!(check(&mut web, seconds(0), 1, PASSWORD) && web.has_moved() && !web.has_moved());
        web.begin();
        assert!(!shakes(&mut web, seconds(0), 2), "another source");
        let passed = (0..200).filter(|_| shakes(&mut web, seconds(0), 1)).count();
        assert_eq!(passed, 64);
        assert!(shakes(&mut web, seconds(1), 1), "the next second");
        assert!(matches!(queue.try_recv(), Ok(Job::Begin(..))));
        assert_eq!(queue.len(), 65);
    }

    #[test]
    fn a_handshake_begins_once_and_again_with_another_certificate() {
        let (mut web, queue) = web();
        web.begin();
        assert!(queue.is_empty(), "no path yet");
        check(&mut web, seconds(0), 1, PASSWORD);
        web.begin();
        web.begin();
        // A restart of ICE changes the credentials and keeps the handshake.
        let ice = IceTerms::new("anew", PASSWORD, "them");
        assert!(!web.change(WebrtcTerms { ice, ..terms(1) }));
        assert_eq!((queue.len(), web.round()), (1, 0));
        assert!(web.change(terms(2)));
        let begun: Vec<u32> = queue
            .try_iter()
            .filter_map(|job| if let Job::Begin(_, begin) = job { Some(begin.round) } else { None })
            .collect();
        assert_eq!((begun, web.round()), (vec![0, 1], 1));
    }

    #[test]
    fn a_full_queue_delays_the_handshake() {
        let (jobs, queue) = bounded(1);
        let mut web = Web::new(PortId::new(1, 0, 2), terms(1), jobs.clone());
        jobs.try_send(Job::Stop).unwrap();
        check(&mut web, seconds(0), 1, PASSWORD);
        web.begin();
        drop(queue.try_recv());
        web.look(seconds(1));
        assert!(matches!(queue.try_recv(), Ok(Job::Begin(..))));
    }

    #[test]
    fn packets_go_to_the_nominated_pair_while_the_party_consents() {
        let (mut web, _queue) = web();
        let described = Description { remote: Some(at(9)), strict_source: None, ..Description::default() };
        let addresses = |web: &Web| {
            let located = web.located(&described);
            (located.remote, located.unresolved)
        };
        assert_eq!(addresses(&web), (None, true), "the address of SDP is not used");
        assert!(!web.may_send());
        check(&mut web, seconds(0), 1, PASSWORD);
        let located = web.located(&described);
        assert_eq!((located.remote, located.remote_rtcp), (Some(at(1)), Some(at(1))));
        assert_eq!((located.strict_source, located.rtcp_mux), (Some(StrictSource::Sdp), true));
        assert!(web.may_send() && !web.look(seconds(29)));
        assert_eq!(addresses(&web), (Some(at(1)), false));
        assert!(web.look(seconds(30)) && !web.may_send(), "no check for 30 seconds");
        assert_eq!(addresses(&web), (None, true), "it is not on hold");
        check(&mut web, seconds(31), 1, PASSWORD);
        assert!(web.has_moved() && web.may_send());
    }
}
