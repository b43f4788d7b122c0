//! ICE of one leg without DTLS on the wire: the paths of RTP and, on its own port, of RTCP (RFC 8445).
//!
//! A phone with ICE also has an address in SDP. Until a check has proven a path to the phone, its leg works like one
//! without ICE, so that a phone whose checks never arrive is heard. From then on, packets are sent to the path, and
//! accepted from the path alone.
//!
//! Most phones have ICE of RFC 5245: after the nomination they send no checks, only indications, and no indications
//! while they send media (§10 there). So every datagram from a proven path renews the consent to send (RFC 7675):
//! checks, indications, RTP and RTCP; with SRTP, only authentic packets.

use std::net::SocketAddr;

use super::webrtc::Heard;
use crate::session::{Description, Reason, StrictSource};
use crate::time::Micros;
use crate::webrtc::{Agent, IceTerms, is_indication};

/// ICE of a leg without DTLS.
pub(super) struct IcePath {
    rtp: Agent,
    rtcp: Agent,
    /// Whether the path changed since the last call of [`IcePath::has_moved`].
    has_moved: bool,
    /// When the last datagram from a proven path arrived.
    heard_at: Micros,
    may_send: bool,
}

impl IcePath {
    /// A leg that waits for its first check.
    pub(super) fn new(terms: IceTerms) -> IcePath {
        IcePath {
            rtp: Agent::new(terms.clone()),
            rtcp: Agent::new(terms),
            has_moved: false,
            heard_at: Micros::default(),
            may_send: true,
        }
    }

    /// Applies new terms; other credentials restart ICE.
    pub(super) fn change(&mut self, terms: IceTerms) {
        if *self.rtp.terms() != terms {
            self.rtp.restart(terms.clone());
            self.rtcp.restart(terms);
        }
    }

    /// Handles a datagram by its first byte (RFC 7983 §7).
    pub(super) fn hear(&mut self, at: Micros, source: SocketAddr, on_rtcp: bool, datagram: &[u8]) -> Heard {
        match datagram.first() {
            Some(0..=3) => {
                let agent = if on_rtcp { &mut self.rtcp } else { &mut self.rtp };
                match agent.receive(at, source, datagram) {
                    Ok(answer) => {
                        self.has_moved |= answer.has_moved;
                        self.renew(at, source, on_rtcp);
                        Heard::Check(Box::new(answer))
                    }
                    Err(_) if is_indication(datagram) && agent.checked() == Some(source) => {
                        self.renew(at, source, on_rtcp);
                        Heard::Taken
                    }
                    Err(_) => Heard::Refused(Reason::Foreign),
                }
            }
            None | Some(4..=127) => Heard::Refused(Reason::Foreign),
            Some(128..) => Heard::Media,
        }
    }

    /// Renews the consent, if `source` is the address of the path.
    pub(super) fn renew(&mut self, at: Micros, source: SocketAddr, on_rtcp: bool) {
        let agent = if on_rtcp { &self.rtcp } else { &self.rtp };
        if agent.checked() == Some(source) {
            self.heard_at = at;
            self.has_moved |= !std::mem::replace(&mut self.may_send, true);
        }
    }

    /// Whether the path or the consent changed since the last call.
    pub(super) fn has_moved(&mut self) -> bool {
        std::mem::take(&mut self.has_moved)
    }

    /// An SDP result with the addresses of the paths.
    pub(super) fn located(&self, description: &Description) -> Description {
        let Some(remote) = self.rtp.checked() else { return description.clone() };
        let remote_rtcp = if description.rtcp_mux { Some(remote) } else { self.rtcp.checked() };
        Description {
            remote: Some(remote),
            unresolved: false,
            remote_rtcp,
            strict_source: Some(StrictSource::Sdp),
            ..description.clone()
        }
    }

    /// Checks the consent, once a second; returns whether it has just expired.
    pub(super) fn look(&mut self, now: Micros) -> bool {
        let has_ended = self.may_send && self.rtp.checked().is_some() && now >= self.heard_at + CONSENT_US;
        self.may_send &= !has_ended;
        has_ended
    }

    /// Whether packets may be sent to the party.
    pub(super) fn may_send(&self) -> bool {
        self.may_send
    }
}

/// The lifetime of a consent after the last datagram from the party (RFC 7675 §5.1).
const CONSENT_US: i64 = 30_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webrtc::write_request;

    const PASSWORD: &str = "VOkJxbRl1RmTxUk/WvJxBt";
    /// A Binding indication without attributes, as a phone of RFC 5245 sends it.
    const INDICATION: [u8; 20] =
        [0, 0x11, 0, 0, 0x21, 0x12, 0xa4, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];

    fn path() -> IcePath {
        IcePath::new(IceTerms::new("ours", PASSWORD, "them"))
    }

    fn at(port: u16) -> SocketAddr {
        SocketAddr::new("192.0.2.1".parse().unwrap(), port)
    }

    fn seconds(seconds: i64) -> Micros {
        Micros(seconds * 1_000_000)
    }

    fn described() -> Description {
        let (remote, remote_rtcp) = (Some(at(9)), Some(at(10)));
        Description { remote, remote_rtcp, strict_source: None, ..Description::default() }
    }

    /// A check that nominates; whether it was answered.
    fn check(path: &mut IcePath, now: Micros, port: u16, on_rtcp: bool, password: &str) -> bool {
        let datagram = write_request([9; 12], &[(6, b"ours:them"), (0x25, &[])], password);
        matches!(path.hear(now, at(port), on_rtcp, &datagram), Heard::Check(_))
    }

    fn remotes(path: &IcePath) -> (Option<SocketAddr>, Option<SocketAddr>) {
        let located = path.located(&described());
        (located.remote, located.remote_rtcp)
    }

    #[test]
    fn the_address_of_sdp_is_used_until_a_path_is_proven() {
        let mut path = path();
        assert_eq!(path.located(&described()), described());
        assert!(path.may_send() && !path.look(seconds(100)), "no check was needed so far");
        assert!(check(&mut path, seconds(100), 1, false, PASSWORD) && path.has_moved());
        assert_eq!(remotes(&path), (Some(at(1)), None), "RTCP has a path of its own");
        assert!(check(&mut path, seconds(100), 2, true, PASSWORD) && path.has_moved());
        assert_eq!(remotes(&path), (Some(at(1)), Some(at(2))));
        assert_eq!(path.located(&described()).strict_source, Some(StrictSource::Sdp));
        // With one port for both, the path of RTP is that of RTCP.
        let shared = path.located(&Description { rtcp_mux: true, ..described() });
        assert_eq!((shared.remote, shared.remote_rtcp), (Some(at(1)), Some(at(1))));
    }

    #[test]
    fn whatever_comes_from_the_path_is_consent_and_nothing_else_is() {
        let mut path = path();
        check(&mut path, seconds(0), 1, false, PASSWORD);
        check(&mut path, seconds(0), 2, true, PASSWORD);
        path.has_moved();
        assert!(matches!(path.hear(seconds(20), at(1), false, &INDICATION), Heard::Taken));
        assert!(!path.look(seconds(49)));
        path.renew(seconds(49), at(2), true);
        assert!(!path.look(seconds(78)), "RTCP was heard");
        // Datagrams from a foreign source renew nothing, on either port.
        for (port, on_rtcp) in [(3, false), (1, true), (2, false)] {
            path.renew(seconds(78), at(port), on_rtcp);
            assert!(matches!(path.hear(seconds(78), at(port), on_rtcp, &INDICATION), Heard::Refused(_)));
        }
        assert!(path.look(seconds(79)) && !path.may_send() && !path.look(seconds(80)));
        assert!(!path.has_moved());
        path.renew(seconds(81), at(1), false);
        assert!(path.may_send() && path.has_moved(), "it is heard again");
        assert!(!path.look(seconds(110)) && path.look(seconds(111)));
    }

    /// Wrong passwords, other protocols and noise from a foreign source, before and after the path is proven.
    #[test]
    fn a_flood_of_what_is_no_check_of_the_party_changes_nothing() {
        let mut path = path();
        for proven in [false, true] {
            let before = (remotes(&path), path.may_send());
            for number in 0..10_000_u32 {
                assert!(!check(&mut path, seconds(1), 7, number % 2 == 0, "not the password of SDP"));
                let [a, b, c, d] = number.to_be_bytes();
                let noise = [a & 3, b, c, d, 0x21, 0x12, 0xa4, 0x42, d, c];
                assert!(matches!(path.hear(seconds(1), at(7), false, &noise), Heard::Refused(_)));
                assert!(matches!(path.hear(seconds(1), at(7), false, &[22; 20]), Heard::Refused(_)));
            }
            assert!(!path.has_moved());
            assert_eq!((remotes(&path), path.may_send()), before);
            if !proven {
                check(&mut path, seconds(1), 1, false, PASSWORD);
                path.has_moved();
            }
        }
    }

    #[test]
    fn a_restart_needs_the_new_password_and_keeps_the_path_meanwhile() {
        let mut path = path();
        check(&mut path, seconds(0), 1, false, PASSWORD);
        path.change(IceTerms::new("ours", PASSWORD, "them"));
        assert!(check(&mut path, seconds(1), 1, false, PASSWORD), "nothing changed");
        path.change(IceTerms::new("ours", "a new password of ICE+/", "them"));
        assert!(!check(&mut path, seconds(2), 5, false, PASSWORD));
        assert_eq!(remotes(&path).0, Some(at(1)));
        assert!(check(&mut path, seconds(9), 5, false, "a new password of ICE+/"));
        assert_eq!(remotes(&path).0, Some(at(5)));
    }
}
