//! The ICE-lite agent of a leg (RFC 8445 §2.5, RFC 7675): answers checks, and learns the party's address from them.
//!
//! A check that is not authentic changes nothing and is not answered, so that the port does not reflect traffic. The
//! path is that of the nominated pair, and before a nomination that of the first checked pair: a browser sends audio as
//! soon as a pair works, which may be half a second before it nominates one (RFC 8445 §12). The party's consent lasts
//! while its checks arrive; RFC 7675 §5.1 lets a lite agent count them instead of sending its own.

use std::net::SocketAddr;

use super::stun::{Check, Outcome, Response, StunError};
use super::terms::IceTerms;
use crate::time::Micros;

/// The agent of one leg.
#[derive(Clone, Debug)]
pub struct Agent {
    terms: IceTerms,
    path: Option<Path>,
}

/// The pair in use.
#[derive(Clone, Copy, Debug)]
struct Path {
    remote: SocketAddr,
    /// The priority of the party's candidate.
    priority: u32,
    /// Whether the party has nominated the pair; a pair without a nomination is replaced by any nominated pair.
    is_nominated: bool,
    /// Whether the last check of the pair nominated it. A party that nominates all pairs means that of the highest
    /// priority; one that nominates one pair after the other means the last.
    nominates: bool,
    checked_at: Micros,
}

/// The answer to a check.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    response: Response,
    /// Whether the path has changed, or has just been nominated.
    pub has_moved: bool,
}

/// Why a datagram is not answered.
pub type Refusal = StunError;

impl Answer {
    /// The response, for the source of the check.
    pub fn as_slice(&self) -> &[u8] {
        self.response.as_slice()
    }
}

impl Agent {
    /// An agent without a path.
    pub fn new(terms: IceTerms) -> Agent {
        Agent { terms, path: None }
    }

    /// Restarts ICE with new credentials (RFC 8445 §9): checks with the old ones are refused from now on, and the path
    /// is used until another is nominated.
    pub fn restart(&mut self, terms: IceTerms) {
        self.terms = terms;
    }

    /// The credentials in use.
    pub fn terms(&self) -> &IceTerms {
        &self.terms
    }

    /// Handles a STUN datagram.
    ///
    /// # Errors
    /// The datagram is not an authentic check.
    pub fn receive(&mut self, now: Micros, source: SocketAddr, datagram: &[u8]) -> Result<Answer, Refusal> {
        let check = Check::read(datagram, &self.terms.username, &self.terms.password)?;
        let outcome = match check.unknown {
            Some(unknown) => Outcome::Unknown(unknown),
            // A lite agent is controlled; the party changes its role and checks again (RFC 8445 §7.3.1.1).
            None if check.is_controlled => Outcome::RoleConflict,
            None => Outcome::Success(source),
        };
        let has_moved = matches!(outcome, Outcome::Success(_)) && self.learn(now, source, &check);
        let response = Response::new(check.transaction, outcome, &self.terms.password);
        Ok(Answer { response, has_moved })
    }

    /// The party's address for RTP; `None` before the first check, and after 30 seconds without a check of the path.
    pub fn remote(&self, now: Micros) -> Option<SocketAddr> {
        let path = self.path.filter(|path| now < path.checked_at + CONSENT_US)?;
        Some(path.remote)
    }

    /// The party's address for DTLS, whether or not it still consents to audio.
    pub fn checked(&self) -> Option<SocketAddr> {
        self.path.map(|path| path.remote)
    }

    /// When the party's consent ends, unless it checks again; `None` before the first check.
    pub fn next_timeout(&self) -> Option<Micros> {
        self.path.map(|path| path.checked_at + CONSENT_US)
    }

    /// Applies an authentic check; returns whether the path changed.
    fn learn(&mut self, now: Micros, source: SocketAddr, check: &Check) -> bool {
        let fresh = Path {
            remote: source,
            priority: check.priority,
            is_nominated: check.nominates,
            nominates: check.nominates,
            checked_at: now,
        };
        match &mut self.path {
            Some(path) if path.remote == source => {
                // Consent that had ended begins again, as if the path were new.
                let has_returned = now >= path.checked_at + CONSENT_US;
                let is_new = check.nominates && !path.is_nominated;
                *path = Path { is_nominated: path.is_nominated || check.nominates, ..fresh };
                is_new || has_returned
            }
            Some(path) => {
                let is_held = path.nominates && now.since(path.checked_at) < STALE_US;
                let gives_way = !path.is_nominated || !is_held || check.priority >= path.priority;
                if !check.nominates || !gives_way {
                    return false;
                }
                *path = fresh;
                true
            }
            None => {
                self.path = Some(fresh);
                true
            }
        }
    }
}

/// How long one check of the party permits sending to it (RFC 7675 §5.1).
const CONSENT_US: i64 = 30_000_000;
/// A nominated pair without a check for this long is replaced by any other nominated pair: browsers check at least
/// every 2.5 seconds.
const STALE_US: i64 = 6_000_000;

#[cfg(test)]
mod tests {
    use super::super::stun::write_request;
    use super::*;

    const PASSWORD: &str = "VOkJxbRl1RmTxUk/WvJxBt";
    const CONTROLLING: u16 = 0x802a;
    const CONTROLLED: u16 = 0x8029;

    fn agent() -> Agent {
        Agent::new(IceTerms::new("ours", PASSWORD, "them"))
    }

    fn at(port: u16) -> SocketAddr {
        SocketAddr::new("192.0.2.1".parse().unwrap(), port)
    }

    fn request(role: u16, priority: u32, nominates: bool, password: &str) -> Vec<u8> {
        let priority = priority.to_be_bytes();
        let mut attributes: Vec<(u16, &[u8])> = vec![(6, b"ours:them"), (0x24, &priority), (role, &[1; 8])];
        if nominates {
            attributes.push((0x25, &[]));
        }
        write_request([9; 12], &attributes, password)
    }

    /// A check of the party from `port` at the second.
    fn check(agent: &mut Agent, second: i64, port: u16, priority: u32, nominates: bool) -> bool {
        let datagram = request(CONTROLLING, priority, nominates, PASSWORD);
        agent.receive(Micros(second * 1_000_000), at(port), &datagram).unwrap().has_moved
    }

    fn remote(agent: &Agent, second: i64) -> Option<u16> {
        agent.remote(Micros(second * 1_000_000)).map(|remote| remote.port())
    }

    #[test]
    fn a_forged_check_changes_nothing_and_gets_no_answer() {
        let mut agent = agent();
        for (port, datagram) in [
            (1, request(CONTROLLING, 9, true, "another password, long")),
            (2, request(CONTROLLING, 9, true, "")),
            (3, vec![0; 20]),
        ] {
            assert!(agent.receive(Micros(0), at(port), &datagram).is_err());
            assert_eq!((agent.checked(), agent.next_timeout()), (None, None));
        }
        check(&mut agent, 0, 7, 5, true);
        let forged = request(CONTROLLING, 99, true, "another password, long");
        assert_eq!(agent.receive(Micros(1), at(8), &forged).unwrap_err(), Refusal::Unauthenticated);
        assert_eq!(remote(&agent, 1), Some(7));
    }

    #[test]
    fn the_nominated_pair_is_the_path() {
        let mut agent = agent();
        assert!(check(&mut agent, 0, 1, 10, false));
        assert_eq!(remote(&agent, 0), Some(1), "a browser sends audio before it nominates");
        assert!(!check(&mut agent, 0, 2, 20, false));
        assert_eq!(remote(&agent, 0), Some(1), "until a pair is nominated");
        assert!(check(&mut agent, 0, 2, 20, true));
        assert_eq!(remote(&agent, 0), Some(2));
        // A party that nominates every pair means the pair of the highest priority.
        assert!(!check(&mut agent, 1, 1, 10, true));
        assert!(check(&mut agent, 1, 3, 30, true));
        assert_eq!(remote(&agent, 1), Some(3));
        // A party that moves no longer nominates its previous pair.
        assert!(!check(&mut agent, 2, 3, 30, false));
        assert_eq!(remote(&agent, 2), Some(3));
        assert!(check(&mut agent, 2, 1, 10, true));
        assert_eq!(remote(&agent, 2), Some(1));
        // A pair without checks is replaced.
        assert!(check(&mut agent, 9, 4, 1, true));
        assert_eq!(remote(&agent, 9), Some(4));
    }

    #[test]
    fn consent_ends_after_thirty_seconds_without_a_check_of_the_path() {
        let mut agent = agent();
        check(&mut agent, 0, 1, 10, true);
        check(&mut agent, 20, 1, 10, false);
        assert_eq!(agent.next_timeout(), Some(Micros(50_000_000)));
        // Checks of other pairs are no consent for this one.
        check(&mut agent, 49, 2, 1, false);
        assert_eq!((remote(&agent, 49), remote(&agent, 50)), (Some(1), None));
        assert!(check(&mut agent, 60, 1, 10, false), "it may be sent to again");
        assert_eq!(remote(&agent, 60), Some(1));
    }

    #[test]
    fn a_party_in_our_role_is_sent_back_and_a_restart_changes_the_password() {
        let mut agent = agent();
        let answer = agent.receive(Micros(0), at(1), &request(CONTROLLED, 9, true, PASSWORD)).unwrap();
        assert_eq!(
            (answer.as_slice()[..2].to_vec(), answer.as_slice()[26..28].to_vec()),
            (vec![1, 0x11], vec![4, 87])
        );
        assert_eq!((answer.has_moved, agent.checked()), (false, None));
        check(&mut agent, 0, 1, 10, true);
        agent.restart(IceTerms::new("ours", "a new password of ICE+/", "them"));
        let old = request(CONTROLLING, 10, true, PASSWORD);
        assert!(agent.receive(Micros(1), at(2), &old).is_err());
        assert_eq!(remote(&agent, 1), Some(1), "in use until another is nominated");
        let new = request(CONTROLLING, 10, true, "a new password of ICE+/");
        assert!(agent.receive(Micros(1), at(2), &new).unwrap().has_moved);
        assert_eq!(remote(&agent, 1), Some(2));
    }
}
