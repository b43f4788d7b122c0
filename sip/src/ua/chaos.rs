//! Two agents with random actions at any time, over a network that loses, duplicates, delays and corrupts.
//!
//! In all cases: no panic, every leg ends exactly once, and no state is left at the end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::dialog::{MIN_SE_S, SessionTimerConfig};
use crate::flow::{Flow, ListenerId};
use crate::message::{Host, Method, Request, StatusCode};
use crate::transaction::ladder::start;
use crate::transaction::{ClientKey, LayerConfig, Local, ServerKey};

struct World {
    ends: [End; 2],
    now: Instant,
    rng: StdRng,
    /// Percentage of datagrams.
    losses: u32,
    corruptions: u32,
    wire: BTreeMap<(Instant, u64), (usize, Bytes)>,
    posted: u64,
}

struct End {
    ua: Ua,
    /// Legs that began, and how often each ended.
    legs: HashMap<LegKey, u32>,
    servers: Vec<ServerKey>,
    refused: Vec<Request>,
    /// INFOs and MESSAGEs without a receipt yet.
    notes: HashSet<ClientKey>,
}

#[derive(Clone, Debug)]
struct Act {
    wait_ms: u64,
    who: usize,
    what: u8,
    which: usize,
}

impl World {
    fn new(seed: u64, losses: u32, corruptions: u32) -> Self {
        let timer = SessionTimerConfig { expires_s: 120, min_se_s: MIN_SE_S };
        let end = |n: u8| End {
            ua: Ua::new(
                UaConfig {
                    extensions: vec!["100rel".to_owned()],
                    // Each agent has session timers or not.
                    session_timer: (seed & u64::from(n) != 0).then_some(timer),
                    ..UaConfig::new(LayerConfig::new(Local::fixed(Host::V4([192, 0, 2, n].into()), None)))
                },
                StdRng::seed_from_u64(seed ^ u64::from(n)),
            ),
            legs: HashMap::new(),
            servers: Vec::new(),
            refused: Vec::new(),
            notes: HashSet::new(),
        };
        Self {
            ends: [end(1), end(2)],
            now: start(),
            rng: StdRng::seed_from_u64(seed),
            losses,
            corruptions,
            wire: BTreeMap::new(),
            posted: 0,
        }
    }

    fn act(&mut self, act: &Act) {
        self.run_until(self.now + Duration::from_millis(act.wait_ms));
        let (now, to) = (self.now, flow(1 - act.who));
        let end = &mut self.ends[act.who];
        let mut legs: Vec<LegKey> = end.legs.keys().copied().collect();
        legs.sort();
        let leg = legs.get(act.which % legs.len().max(1)).copied();
        let server = end.servers.get(act.which % end.servers.len().max(1)).copied();
        let offer = Extra::new().content("application/sdp", "v=0\r\n");
        match (act.what % 14, leg, server) {
            (0 | 1, ..) => {
                let invite = Invite::new("sip:b@192.0.2.2", "<sip:a@192.0.2.1>", "<sip:b@192.0.2.2>");
                let invite = if act.what.is_multiple_of(2) {
                    invite.content("application/sdp", "v=0")
                } else {
                    invite
                };
                let invite =
                    if act.which.is_multiple_of(3) { invite.header("Require", "100rel") } else { invite };
                if let Ok(leg) = end.ua.invite(now, to, invite) {
                    end.legs.entry(leg).or_default();
                }
            }
            (2, Some(leg), _) => end.ua.hang_up(now, leg),
            (3, Some(leg), _) => {
                let _ = end.ua.reinvite(now, leg, &offer);
            }
            (13, Some(leg), _) => {
                let _ = end.ua.request_within(now, leg, Method::Update, &offer);
            }
            (4, Some(leg), _) => {
                let _ = end.ua.ack(now, leg, &offer);
            }
            (5, Some(leg), _) => {
                end.notes.extend(end.ua.info(now, leg, Content::new("application/json", "{}")));
            }
            (6..=8, _, Some(key)) => {
                let status = [180, 183, 200, 200, 200, 401, 486, 488][act.which % 8];
                let _ = end.ua.respond(now, &key, Reply::new(StatusCode::new(status).unwrap()));
            }
            (9, _, Some(key)) => {
                let _ = end.ua.refuse(now, &key, Reply::new(StatusCode::UNAUTHORIZED));
            }
            (10, ..) => {
                let Some(request) = end.refused.pop() else { return };
                let is_note = matches!(request.method(), Method::Info | Method::Message);
                match end.ua.retry(now, to, request, &Extra::new()) {
                    Ok(Retried::Leg(leg)) => *end.legs.entry(leg).or_default() += 0,
                    Ok(Retried::Transaction(key)) if is_note => drop(end.notes.insert(key)),
                    Ok(Retried::Transaction(_)) | Err(_) => {}
                }
            }
            (11, ..) => {
                let draft = Draft::new(Method::Options, "sip:b@h", "<sip:a@h>", "<sip:b@h>");
                let _ = end.ua.request(now, to, draft);
            }
            (12, ..) => {
                let content = Content::new("application/json", "{}");
                let draft = Draft::message("sip:b@h", "<sip:a@h>", "<sip:b@h>", content);
                end.notes.extend(end.ua.request(now, to, draft));
            }
            _ => {}
        }
        self.drain();
    }

    fn run_until(&mut self, until: Instant) {
        loop {
            let timer = self.ends.iter().filter_map(|end| end.ua.next_timeout()).min();
            let arrival = self.wire.keys().next().map(|(at, _)| *at);
            let Some(at) = [timer, arrival].into_iter().flatten().min().filter(|at| *at <= until) else {
                break;
            };
            self.now = self.now.max(at);
            if let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (who, bytes) = entry.remove();
                self.ends[who].ua.handle_input(self.now, Input::Datagram { flow: flow(1 - who), bytes });
            } else {
                for end in &mut self.ends {
                    end.ua.handle_input(self.now, Input::Timeout);
                }
            }
            self.drain();
        }
        self.now = until;
    }

    fn drain(&mut self) {
        for who in 0..2 {
            while let Some(output) = self.ends[who].ua.poll_output() {
                match output {
                    Output::Transmit { bytes, .. } => self.post(1 - who, &bytes),
                    Output::Event(event) => self.ends[who].hear(event),
                    Output::Hold { .. }
                    | Output::Rejected { .. }
                    | Output::Overload { .. }
                    | Output::Withheld { .. } => {}
                }
            }
        }
    }

    fn post(&mut self, to: usize, bytes: &Bytes) {
        for _ in 0..if self.rng.random_ratio(1, 20) { 2 } else { 1 } {
            if self.rng.random_ratio(self.losses, 100) {
                continue;
            }
            let mut copy = bytes.to_vec();
            if self.rng.random_ratio(self.corruptions, 100) {
                let at = self.rng.random_range(0..copy.len());
                copy[at] = self.rng.random();
            }
            self.posted += 1;
            let delay_ms = self.rng.random_range(1..300);
            self.wire.insert((self.now + Duration::from_millis(delay_ms), self.posted), (to, copy.into()));
        }
    }
}

impl End {
    fn hear(&mut self, event: Event) {
        let about = match &event {
            Event::Acked { leg, .. }
            | Event::Answered { leg, .. }
            | Event::Progress { leg, .. }
            | Event::Reinvited { leg, .. }
            | Event::ReinviteCancelled { leg, .. }
            | Event::ReinviteClashed { leg }
            | Event::ReinviteDue { leg }
            | Event::RefreshDue { leg }
            | Event::OfferUnanswered { leg }
            | Event::Updated { leg, .. } => Some(*leg),
            Event::Request { leg, .. } | Event::Response { leg, .. } | Event::Unanswered { leg, .. } => *leg,
            // A receipt may arrive after the end of its leg.
            Event::InfoAnswered { key, .. } | Event::MessageAnswered { key, .. } => {
                assert!(self.notes.remove(key), "a second receipt: {event:?}");
                None
            }
            Event::Invited { .. }
            | Event::Ended { .. }
            | Event::NotifyAnswered { .. }
            | Event::Resubscribed { .. } => None,
        };
        assert!(
            about.is_none_or(|leg| self.legs.get(&leg) == Some(&0)),
            "an event about no living leg: {event:?}"
        );
        match event {
            Event::Invited { leg, key, .. } => {
                assert_eq!(self.legs.insert(leg, 0), None);
                self.servers.push(key);
            }
            Event::Reinvited { key, .. } | Event::Request { key, .. } | Event::Updated { key, .. } => {
                self.servers.push(key);
            }
            Event::Ended { leg, cause } => {
                *self.legs.get_mut(&leg).expect("a leg that began") += 1;
                if let Cause::Refused { request: Some(request), .. } = cause {
                    self.refused.push(request);
                }
            }
            Event::Response { request: Some(request), .. }
            | Event::InfoAnswered { receipt: Receipt::Answered { request: Some(request), .. }, .. }
            | Event::MessageAnswered { receipt: Receipt::Answered { request: Some(request), .. }, .. } => {
                self.refused.push(request);
            }
            _ => {}
        }
    }
}

fn flow(to: usize) -> Flow {
    let last = u8::try_from(to + 1).unwrap();
    Flow::udp(ListenerId(0), ([192, 0, 2, last], 5060).into())
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = (0_u64..2_000, 0_usize..2, any::<u8>(), any::<usize>());
    prop::collection::vec(
        act.prop_map(|(wait_ms, who, what, which)| Act { wait_ms, who, what, which }),
        1..60,
    )
}

fn everything_ends(seed: u64, losses: u32, corruptions: u32, acts: &[Act]) {
    let mut world = World::new(seed, losses, corruptions);
    for act in acts {
        world.act(act);
    }
    for who in 0..2 {
        let now = world.now;
        let legs: Vec<LegKey> = world.ends[who].legs.keys().copied().collect();
        legs.into_iter().for_each(|leg| world.ends[who].ua.hang_up(now, leg));
        world.drain();
    }
    // A cancelled INVITE and the BYE after a lost ACK take 32 s each, and a late INVITE may still arrive in
    // between.
    for _ in 0..4 {
        world.run_until(world.now + Duration::from_secs(70));
        for who in 0..2 {
            let now = world.now;
            let legs: Vec<LegKey> = world.ends[who].legs.keys().copied().collect();
            legs.into_iter().for_each(|leg| world.ends[who].ua.hang_up(now, leg));
            world.drain();
        }
    }
    for end in &world.ends {
        assert!(end.legs.values().all(|ended| *ended == 1), "each leg ends once: {:?}", end.legs);
        assert!(end.notes.is_empty(), "each note has its receipt: {:?}", end.notes);
        assert_eq!((end.ua.legs_len(), end.ua.transactions()), (0, (0, 0)));
        assert!(
            end.ua.purposes.is_empty() && end.ua.legs_by_tag.is_empty() && end.ua.next_timeout().is_none()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_ends_on_a_bad_network(seed: u64, acts in acts()) {
        everything_ends(seed, 15, 0, &acts);
    }

    #[test]
    fn everything_ends_on_a_lying_network(seed: u64, acts in acts()) {
        everything_ends(seed, 5, 20, &acts);
    }
}

/// Places a call that requires reliable provisional responses, and returns whether both agents have it a minute later.
fn reliable_call_is_up(seed: u64, losses: u32) -> bool {
    let mut world = World::new(seed, losses, 0);
    let invite = Invite::new("sip:b@192.0.2.2", "<sip:a@192.0.2.1>", "<sip:b@192.0.2.2>");
    let invite = invite.header("Require", "100rel").content("application/sdp", "v=0");
    let leg = world.ends[0].ua.invite(world.now, flow(1), invite).unwrap();
    world.ends[0].legs.insert(leg, 0);
    world.drain();
    world.run_until(world.now + Duration::from_secs(10));
    if let Some(key) = world.ends[1].servers.first().copied() {
        for status in [180, 183, 200] {
            let reply = Reply::new(StatusCode::new(status).unwrap()).content("application/sdp", "v=0");
            let _ = world.ends[1].ua.respond(world.now, &key, reply); // It fails once the INVITE is refused.
            world.drain();
            world.run_until(world.now + Duration::from_millis(700));
        }
    }
    world.run_until(world.now + Duration::from_secs(60));
    let up = |end: &End| end.legs.values().any(|ended| *ended == 0) && end.ua.legs_len() == 1;
    let up = [up(&world.ends[0]), up(&world.ends[1])];
    assert_eq!(up[0], up[1], "seed {seed}, {losses} %: one side has a call that the other has not");
    for end in &mut world.ends {
        let legs: Vec<LegKey> = end.legs.keys().copied().collect();
        legs.into_iter().for_each(|leg| end.ua.hang_up(world.now, leg));
    }
    world.drain();
    world.run_until(world.now + Duration::from_secs(200));
    for end in &world.ends {
        assert!(end.legs.values().all(|ended| *ended == 1), "seed {seed}: {:?}", end.legs);
        assert_eq!((end.ua.legs_len(), end.ua.transactions()), (0, (0, 0)), "seed {seed}");
    }
    up[0]
}

#[test]
fn calls_with_reliable_responses_survive_losses() {
    for (losses, at_least) in [(0, 60), (5, 60), (20, 58), (40, 40)] {
        let up = (0..60).filter(|seed| reliable_call_is_up(*seed, losses)).count();
        assert!(up >= at_least, "{losses} % lost: {up} of 60");
    }
}
