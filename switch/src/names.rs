//! The addresses of trunks that are named: RFC 3263 §4 without the questions, which a driver asks.
//!
//! A numeric address is known at once. A name is asked for when somebody wants it and its last answer has aged; while
//! the name service is away the last answer goes on to serve.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;
use sidetone_model::ids::{CallId, TrunkId};
use sidetone_model::trunk_address::TrunkAddress;

/// What the name service says of a trunk's address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The servers; none when the name service is away or knows none.
    pub servers: Vec<Server>,
    /// How long they hold.
    pub ttl: Duration,
}

/// One server of a name: a line of its SRV record, or the name itself where it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Lower is tried first.
    pub priority: u16,
    /// The share of calls among those of one priority (RFC 2782).
    pub weight: u16,
    /// Its addresses with the port.
    pub addresses: Vec<SocketAddr>,
}

/// Who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiter {
    Call(CallId),
    Trunk(TrunkId),
}

/// What is known of names.
#[derive(Default)]
pub(super) struct Names {
    entries: HashMap<TrunkAddress, Entry>,
    questions: VecDeque<TrunkAddress>,
}

#[derive(Default)]
struct Entry {
    servers: Vec<Server>,
    fresh_until: Option<Instant>,
    /// Those that wait for the answer that was asked for; `None` when nothing was asked.
    waiting: Option<Vec<Waiter>>,
}

impl Names {
    /// The addresses to try, in order; `None` when the name had to be asked for and `waiter` will hear.
    pub(super) fn lookup(
        &mut self,
        now: Instant,
        address: &TrunkAddress,
        waiter: Waiter,
        rng: &mut StdRng,
    ) -> Option<Vec<SocketAddr>> {
        if let Some(ip) = address.ip() {
            return Some(vec![SocketAddr::new(ip.to_canonical(), address.port.unwrap_or(SIP_PORT))]);
        }
        if !self.entries.contains_key(address) && self.entries.len() >= NAMES_MAX {
            // Names of trunks that are gone make room; they are asked for again when they come back.
            self.entries.retain(|_, entry| entry.fresh_until.is_some_and(|until| until > now));
            if self.entries.len() >= NAMES_MAX {
                return Some(Vec::new());
            }
        }
        let entry = self.entries.entry(address.clone()).or_default();
        if entry.fresh_until.is_some_and(|until| until > now) {
            return Some(order(&entry.servers, rng));
        }
        match &mut entry.waiting {
            Some(waiting) if waiting.len() < WAITERS_MAX => waiting.push(waiter),
            // So many wait that one more would only wait longer: it takes what there was.
            Some(_) => return Some(order(&entry.servers, rng)),
            None => {
                entry.waiting = Some(vec![waiter]);
                self.questions.push_back(address.clone());
            }
        }
        None
    }

    /// The last answer, however old.
    pub(super) fn last(&self, address: &TrunkAddress, rng: &mut StdRng) -> Vec<SocketAddr> {
        self.entries.get(address).map(|entry| order(&entry.servers, rng)).unwrap_or_default()
    }

    /// The addresses of the last answer, in no order.
    pub(super) fn known(&self, address: &TrunkAddress) -> impl Iterator<Item = SocketAddr> {
        let servers = self.entries.get(address).map(|entry| entry.servers.as_slice()).unwrap_or_default();
        servers.iter().flat_map(|server| server.addresses.iter().copied())
    }

    /// Takes an answer; those that waited for it.
    pub(super) fn answered(&mut self, now: Instant, address: &TrunkAddress, answer: Answer) -> Vec<Waiter> {
        let Some(entry) = self.entries.get_mut(address) else { return Vec::new() };
        if answer.servers.is_empty() {
            entry.fresh_until = Some(now + RETRY_AFTER);
        } else {
            entry.fresh_until = Some(now + answer.ttl.clamp(TTL_MIN, TTL_MAX));
            entry.servers = answer.servers;
        }
        entry.waiting.take().unwrap_or_default()
    }

    /// The next name to ask for.
    pub(super) fn poll_question(&mut self) -> Option<TrunkAddress> {
        self.questions.pop_front()
    }
}

/// The order in which servers are tried: by priority, and among equals by chance in proportion to their weights
/// (RFC 2782).
fn order(servers: &[Server], rng: &mut StdRng) -> Vec<SocketAddr> {
    let mut left: Vec<&Server> = servers.iter().collect();
    // Those without weight stand first among their equals, so that they have a chance at all.
    left.sort_by_key(|server| (server.priority, server.weight));
    let mut ordered = Vec::new();
    while let Some(first) = left.first() {
        let equals = left.iter().take_while(|server| server.priority == first.priority);
        let total: u32 = equals.clone().map(|server| u32::from(server.weight)).sum();
        let drawn = rng.random_range(0..=total);
        let mut sum = 0;
        let chosen = equals.clone().position(|server| {
            sum += u32::from(server.weight);
            sum >= drawn
        });
        let server = left.remove(chosen.unwrap_or_default());
        ordered.extend(&server.addresses);
    }
    ordered.truncate(ADDRESSES_MAX);
    ordered
}

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 16;
/// Names that are remembered.
const NAMES_MAX: usize = 65_536;
/// After an answer that held nothing, when to ask again.
const RETRY_AFTER: Duration = Duration::from_secs(15);
/// The port of a trunk whose address and records name none (RFC 3261 §19.1.2).
pub(super) const SIP_PORT: u16 = 5060;
/// A name service that says 0 is asked once a call at most this often.
const TTL_MIN: Duration = Duration::from_secs(5);
const TTL_MAX: Duration = Duration::from_secs(3_600);
/// Calls and registrations that wait for one name.
const WAITERS_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use uuid::Uuid;

    use super::*;

    fn server(priority: u16, weight: u16, last: u8) -> Server {
        Server { priority, weight, addresses: vec![([192, 0, 2, last], 5060).into()] }
    }

    fn answer(servers: Vec<Server>) -> Answer {
        Answer { servers, ttl: Duration::from_secs(60) }
    }

    #[test]
    fn priorities_come_in_order_and_weights_share_the_calls() {
        let servers = [server(20, 100, 9), server(10, 60, 1), server(10, 20, 2), server(10, 0, 3)];
        let mut rng = StdRng::seed_from_u64(1);
        let mut first = HashMap::new();
        for _ in 0..10_000 {
            let ordered = order(&servers, &mut rng);
            assert_eq!(ordered.len(), 4);
            assert_eq!(ordered[3], ([192, 0, 2, 9], 5060).into());
            *first.entry(ordered[0]).or_insert(0) += 1;
        }
        let share = |last: u8| first.get(&([192, 0, 2, last], 5060).into()).copied().unwrap_or(0);
        // Draws are of 0..=80: 0 is the weightless one's, 1..=20 and 21..=80 the others'.
        assert!((7_200..7_600).contains(&share(1)), "{}", share(1));
        assert!((2_300..2_650).contains(&share(2)), "{}", share(2));
        assert!((70..190).contains(&share(3)), "{}", share(3));
    }

    #[test]
    fn a_name_is_asked_for_once_and_again_when_it_has_aged() {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut rng = StdRng::seed_from_u64(1);
        let mut names = Names::default();
        let name: TrunkAddress = "sip:carrier.example".parse().unwrap();
        let call = |n| Waiter::Call(CallId(Uuid::from_u128(n)));
        let known: Vec<SocketAddr> = vec![([192, 0, 2, 1], 5060).into()];

        assert_eq!(names.lookup(at(0), &name, call(1), &mut rng), None);
        assert_eq!(names.lookup(at(0), &name, call(2), &mut rng), None);
        assert_eq!((names.poll_question(), names.poll_question()), (Some(name.clone()), None));
        assert_eq!(names.answered(at(1), &name, answer(vec![server(0, 0, 1)])), [call(1), call(2)]);
        assert_eq!(names.lookup(at(60), &name, call(3), &mut rng), Some(known.clone()));

        // The name service goes away: the last answer serves, and it is asked again after a while.
        assert_eq!(names.lookup(at(61), &name, call(4), &mut rng), None);
        assert_eq!(names.last(&name, &mut rng), known);
        assert_eq!(names.poll_question(), Some(name.clone()));
        assert_eq!(names.answered(at(62), &name, Answer::default()), [call(4)]);
        assert_eq!(names.lookup(at(76), &name, call(5), &mut rng), Some(known));
        assert_eq!(names.lookup(at(77), &name, call(6), &mut rng), None);
        assert_eq!(names.poll_question(), Some(name));
    }

    #[test]
    fn numbers_need_no_question() {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
        let now = Instant::now();
        let (mut names, mut rng) = (Names::default(), StdRng::seed_from_u64(1));
        for (text, expected) in [
            ("sip:192.0.2.7", "192.0.2.7:5060"),
            ("sip:192.0.2.7:5080", "192.0.2.7:5080"),
            ("sip:[2001:db8::1]", "[2001:db8::1]:5060"),
            ("sip:[::ffff:192.0.2.7]:1", "192.0.2.7:1"),
        ] {
            let waiter = Waiter::Call(CallId(Uuid::nil()));
            let found = names.lookup(now, &text.parse().unwrap(), waiter, &mut rng);
            assert_eq!(found, Some(vec![expected.parse().unwrap()]), "{text}");
        }
        assert_eq!(names.poll_question(), None);
    }
}
