//! Addresses of trunks that are configured by name: RFC 3263 §4, except the DNS queries, which the driver
//! makes.
//!
//! A numeric address needs no query. A name is queried when it is needed and its last answer has expired.
//! While DNS does not answer, the last answer stays in use.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;
use sidetone_model::ids::{CallId, TrunkId};
use sidetone_model::trunk_address::{TrunkAddress, TrunkTransport};

/// The answer of DNS for a trunk's address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The servers; empty when DNS does not answer or has no records.
    pub servers: Vec<Server>,
    /// How long the answer is valid.
    pub ttl: Duration,
    /// The transport that the name prefers; `None` unless its NAPTR or SRV records choose one.
    pub transport: Option<TrunkTransport>,
}

/// One server of a name: an SRV record, or the name itself if it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Lower is tried first.
    pub priority: u16,
    /// The share of calls among those of one priority (RFC 2782).
    pub weight: u16,
    /// Its addresses, with ports.
    pub addresses: Vec<SocketAddr>,
}

/// A call or trunk that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiter {
    Call(CallId),
    Trunk(TrunkId),
}

/// The answers for all names.
#[derive(Default)]
pub(super) struct Names {
    entries: HashMap<TrunkAddress, Entry>,
    questions: VecDeque<TrunkAddress>,
}

#[derive(Default)]
struct Entry {
    servers: Vec<Server>,
    transport: Option<TrunkTransport>,
    fresh_until: Option<Instant>,
    /// The calls and trunks that wait for the pending query; `None` when no query is pending.
    waiting: Option<Vec<Waiter>>,
}

impl Names {
    /// Returns the addresses to try, in order; `None` when a query is pending, whose result `waiter` will
    /// get.
    pub(super) fn lookup(
        &mut self,
        now: Instant,
        address: &TrunkAddress,
        waiter: Waiter,
        rng: &mut StdRng,
    ) -> Option<Vec<SocketAddr>> {
        if let Some(ip) = address.ip() {
            return Some(vec![SocketAddr::new(
                ip.to_canonical(),
                address.port.unwrap_or(address.default_port()),
            )]);
        }
        if !self.entries.contains_key(address) && self.entries.len() >= NAMES_MAX {
            // Drop names without a valid answer; they are queried again when needed. A name whose query is
            // pending stays: calls and trunks wait for its answer.
            self.entries.retain(|_, entry| {
                entry.waiting.is_some() || entry.fresh_until.is_some_and(|until| until > now)
            });
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
            // Too many wait already: use the last answer instead.
            Some(_) => return Some(order(&entry.servers, rng)),
            None => {
                entry.waiting = Some(vec![waiter]);
                self.questions.push_back(address.clone());
            }
        }
        None
    }

    /// Queries the names that were never queried.
    pub(super) fn query_unknown(&mut self, servers: &HashSet<TrunkAddress>) {
        for server in servers {
            if !self.entries.contains_key(server) && self.entries.len() < NAMES_MAX {
                self.entries.insert(server.clone(), Entry { waiting: Some(Vec::new()), ..Entry::default() });
                self.questions.push_back(server.clone());
            }
        }
    }

    /// Queries the names whose answers have expired, unless a query is pending.
    pub(super) fn query_expired(&mut self, now: Instant, servers: &HashSet<TrunkAddress>) {
        self.query_unknown(servers);
        for server in servers {
            let Some(entry) = self.entries.get_mut(server) else { continue };
            if entry.waiting.is_none() && entry.fresh_until.is_none_or(|until| until <= now) {
                entry.waiting = Some(Vec::new());
                self.questions.push_back(server.clone());
            }
        }
    }

    /// Returns the addresses of the last answer, whatever its age, in the order to try.
    pub(super) fn last(&self, address: &TrunkAddress, rng: &mut StdRng) -> Vec<SocketAddr> {
        self.entries.get(address).map(|entry| order(&entry.servers, rng)).unwrap_or_default()
    }

    /// Returns the addresses of the last answer, in no order.
    pub(super) fn known(&self, address: &TrunkAddress) -> impl Iterator<Item = SocketAddr> {
        let servers = self.entries.get(address).map(|entry| entry.servers.as_slice()).unwrap_or_default();
        servers.iter().flat_map(|server| server.addresses.iter().copied())
    }

    /// Returns the transport to a server: its configured one, or the one that the last answer for its name prefers.
    pub(super) fn transport_of(&self, address: &TrunkAddress) -> TrunkTransport {
        match address.transport {
            TrunkTransport::Preferred => {
                self.entries.get(address).and_then(|entry| entry.transport).unwrap_or(TrunkTransport::Udp)
            }
            transport => transport,
        }
    }

    /// Stores an answer; returns the calls and trunks that waited for it.
    pub(super) fn answered(&mut self, now: Instant, address: &TrunkAddress, answer: Answer) -> Vec<Waiter> {
        let Some(entry) = self.entries.get_mut(address) else { return Vec::new() };
        if answer.servers.is_empty() {
            entry.fresh_until = Some(now + RETRY_AFTER);
        } else {
            entry.fresh_until = Some(now + answer.ttl.clamp(TTL_MIN, TTL_MAX));
            (entry.servers, entry.transport) = (answer.servers, answer.transport);
        }
        entry.waiting.take().unwrap_or_default()
    }

    /// Returns the next name to query.
    pub(super) fn poll_question(&mut self) -> Option<TrunkAddress> {
        self.questions.pop_front()
    }
}

/// Orders servers by priority, and within a priority at random in proportion to their weights (RFC 2782).
fn order(servers: &[Server], rng: &mut StdRng) -> Vec<SocketAddr> {
    let mut left: Vec<&Server> = servers.iter().collect();
    // Within a priority, servers of weight 0 come first, so that they keep a small chance.
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

/// Most addresses of one name that are tried.
const ADDRESSES_MAX: usize = 16;
/// Most names that are remembered.
const NAMES_MAX: usize = 65_536;
/// Time until the next query after an empty answer.
const RETRY_AFTER: Duration = Duration::from_secs(15);
/// Shortest validity of an answer: a TTL of 0 must not cause a query per call.
const TTL_MIN: Duration = Duration::from_secs(5);
const TTL_MAX: Duration = Duration::from_secs(3_600);
/// Calls and registrations that may wait for one name.
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
        Answer { servers, ttl: Duration::from_secs(60), transport: None }
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
        // The random draws are 0..=80: 0 selects the server of weight 0; 1..=20 and 21..=80 select the
        // others.
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

        // DNS stops answering: the last answer stays in use, and the name is queried again after a while.
        assert_eq!(names.lookup(at(61), &name, call(4), &mut rng), None);
        assert_eq!(names.last(&name, &mut rng), known);
        assert_eq!(names.poll_question(), Some(name.clone()));
        assert_eq!(names.answered(at(62), &name, Answer::default()), [call(4)]);
        assert_eq!(names.lookup(at(76), &name, call(5), &mut rng), Some(known));
        assert_eq!(names.lookup(at(77), &name, call(6), &mut rng), None);
        assert_eq!(names.poll_question(), Some(name));
    }

    #[test]
    fn a_name_prefers_a_transport_unless_it_is_given() {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
        let now = Instant::now();
        let (mut names, mut rng) = (Names::default(), StdRng::seed_from_u64(1));
        let call = Waiter::Call(CallId(Uuid::nil()));
        for (text, before, after) in [
            ("sip:carrier.example", TrunkTransport::Udp, TrunkTransport::Tls),
            ("sip:carrier.example;transport=tcp", TrunkTransport::Tcp, TrunkTransport::Tcp),
            ("sip:carrier.example;transport=udp", TrunkTransport::Udp, TrunkTransport::Udp),
            ("sip:carrier.example:5060", TrunkTransport::Udp, TrunkTransport::Udp),
            ("sip:192.0.2.7", TrunkTransport::Udp, TrunkTransport::Udp),
        ] {
            let name: TrunkAddress = text.parse().unwrap();
            assert_eq!(names.transport_of(&name), before, "{text}");
            names.lookup(now, &name, call, &mut rng);
            let answer = Answer { transport: Some(TrunkTransport::Tls), ..answer(vec![server(0, 0, 1)]) };
            names.answered(now, &name, answer);
            assert_eq!(names.transport_of(&name), after, "{text}");
            // DNS stops answering.
            names.answered(now, &name, Answer::default());
            assert_eq!(names.transport_of(&name), after, "{text}");
        }
    }

    #[test]
    fn a_full_table_keeps_the_names_whose_query_is_pending() {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
        let now = Instant::now();
        let (mut names, mut rng) = (Names::default(), StdRng::seed_from_u64(1));
        let call = Waiter::Call(CallId(Uuid::nil()));
        for n in 0..NAMES_MAX {
            let name: TrunkAddress = format!("sip:carrier-{n}.example").parse().unwrap();
            assert_eq!(names.lookup(now, &name, call, &mut rng), None);
            if n > 0 {
                names.answered(now, &name, Answer::default());
            }
        }
        let later = now + Duration::from_secs(3_600);
        let one_more: TrunkAddress = "sip:another.example".parse().unwrap();
        assert_eq!(names.lookup(later, &one_more, call, &mut rng), None);
        let first: TrunkAddress = "sip:carrier-0.example".parse().unwrap();
        assert_eq!(names.answered(later, &first, answer(vec![server(0, 0, 1)])), [call]);
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
            ("sip:192.0.2.7;transport=tls", "192.0.2.7:5061"),
            ("sip:192.0.2.7;transport=tcp", "192.0.2.7:5060"),
        ] {
            let waiter = Waiter::Call(CallId(Uuid::nil()));
            let found = names.lookup(now, &text.parse().unwrap(), waiter, &mut rng);
            assert_eq!(found, Some(vec![expected.parse().unwrap()]), "{text}");
        }
        assert_eq!(names.poll_question(), None);
    }
}
