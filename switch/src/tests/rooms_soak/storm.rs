//! Forty members whose phones vanish in every way, return and are controlled: the live rooms match the audio that live
//! phones hear from the mixes, and no seat without a phone lasts for more than 30 s.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand::RngExt;
use sidetone_model::call::HangupCause;
use sidetone_model::ids::CallId;

use crate::io::PortId;
use crate::machine::Input;
use crate::mixing::Recording;
use crate::tests::network::{OfRooms, SDP, address};
use crate::tests::rooms_soak::ears::Ears;
use crate::tests::rooms_soak::soak::{CARRIER, End, Phone, Soak, request};

const MEMBERS: usize = 40;

/// Steps, of 0.2 s on average, between two comparisons of the phones' audio.
const LISTENS_EVERY: usize = 40;

/// The longest time for which a seat may have no phone.
const GHOST_MAX: Duration = Duration::from_secs(30);

/// How a phone vanishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Death {
    /// Its program ended: the host answers that it knows no such call.
    Closed,
    /// The network from it is down: none of its packets arrive.
    Network,
    /// Its power is cut: it neither receives nor sends.
    Power,
}

/// A phone that vanished.
struct Lost {
    death: Death,
    at: Instant,
    port: PortId,
    /// Whether the relay has reported its silence.
    is_reported: bool,
}

struct Storm {
    soak: Soak,
    /// The lost phones by their Call-ID.
    lost: BTreeMap<String, Lost>,
    /// Numbers that call again.
    again: Vec<String>,
    deaths: BTreeMap<Death, usize>,
    longest: Duration,
    returned: usize,
    muted: usize,
}

impl Storm {
    fn new(seed: u64) -> Storm {
        let mut soak = Soak::new(seed);
        soak.net.carriers.get_mut(&address(CARRIER)).unwrap().options = Some(200);
        soak.ears = Some(Ears::default());
        Storm {
            soak,
            lost: BTreeMap::new(),
            again: Vec::new(),
            deaths: BTreeMap::new(),
            longest: Duration::ZERO,
            returned: 0,
            muted: 0,
        }
    }

    fn act(&mut self) {
        let living: Vec<usize> = (0..self.soak.phones.len()).filter(|at| self.is_living(*at)).collect();
        let one = (!living.is_empty()).then(|| living[self.soak.rng.random_range(0..living.len())]);
        match (self.soak.rng.random_range(0..100), one) {
            (0..35, _) if self.soak.phones.len() < MEMBERS => self.call(),
            (35..38, Some(phone)) => self.soak.hang_up(phone),
            (38..60, Some(phone)) => self.soak.key(phone),
            (60..68, Some(phone)) => self.die(phone),
            (68..76, Some(phone)) => {
                // A muted phone sends nothing and answers probes, or sends again.
                let silent = self.soak.rng.random::<bool>().then_some(Duration::from_secs(1));
                self.muted += usize::from(silent.is_some());
                self.soak.net.feed(Input::Silent(PortId(self.soak.phones[phone].port), silent));
                self.soak.net.run();
            }
            (76..80, Some(phone)) => self.soak.hold(phone),
            (80..90, _) => self.soak.control(),
            _ => {}
        }
        while let Some(session) = self.soak.stopped.pop_front() {
            self.soak.net.feed(Input::Recorded(session, Recording { bytes: 44, error: None }));
            self.soak.net.run();
        }
    }

    /// A phone calls, for the first time or again, and enters its PIN.
    fn call(&mut self) {
        let number = self.again.pop();
        self.returned += usize::from(number.is_some());
        self.soak.calls += 1;
        let calls = self.soak.calls;
        let number = number.unwrap_or_else(|| format!("+3314{calls:07}"));
        let (to, call) = ("+442071230002", format!("storm-{calls}"));
        let port = self.soak.net.ports.0.len() as u64 + 1;
        let told = self.soak.net.told.len();
        self.soak.net.inject(CARRIER, request("INVITE", to, &number, &call, "", 1, SDP));
        let answer = self.soak.net.told[told..].iter().find(|answer| answer.status().is_success()).unwrap();
        let tag = answer.header("To").unwrap().split("tag=").nth(1).unwrap().to_owned();
        self.soak.net.inject(CARRIER, request("ACK", to, &number, &call, &tag, 1, ""));
        self.soak.phones.push(Phone { port, end: End::Outside { number, call, tag, cseq: 1 } });
        let keys = ["200#", "300#1234#", "300#9876#", "400#1234#", "400#9876#"];
        self.soak.net.key(port, keys[self.soak.rng.random_range(0..keys.len())]);
    }

    fn is_living(&self, phone: usize) -> bool {
        match &self.soak.phones[phone].end {
            End::Inside(_) => true,
            End::Outside { call, .. } => !self.lost.contains_key(call),
        }
    }

    fn die(&mut self, phone: usize) {
        let Phone { port, end: End::Outside { number, call, .. } } = &self.soak.phones[phone] else { return };
        let death = [Death::Closed, Death::Network, Death::Power][self.soak.rng.random_range(0..3)];
        let (at, port) = (self.soak.net.now(), PortId(*port));
        *self.deaths.entry(death).or_default() += 1;
        let carrier = self.soak.net.carriers.get_mut(&address(CARRIER)).unwrap();
        carrier.gone.insert(call.clone(), (death == Death::Closed).then_some(481));
        if self.soak.rng.random() {
            self.again.push(number.clone());
        }
        self.lost.insert(call.clone(), Lost { death, at, port, is_reported: false });
    }

    /// Reports the silence of lost phones a second after their last packet, and checks that none keeps its seat.
    fn look(&mut self) {
        let now = self.soak.net.now();
        for lost in self.lost.values_mut() {
            let silent_for = now - lost.at;
            if !lost.is_reported && silent_for >= Duration::from_secs(1) {
                lost.is_reported = true;
                self.soak.net.feed(Input::Silent(lost.port, Some(silent_for)));
            }
        }
        self.soak.net.run();
        let calls = &self.soak.net.switch.control.calls;
        let port_of: BTreeMap<CallId, &Lost> =
            self.lost.values().filter_map(|lost| Some((calls.call_at(lost.port)?, lost))).collect();
        for room in self.soak.net.live_rooms() {
            for member in &room.members {
                let Some(lost) = port_of.get(&member.call_uuid) else { continue };
                self.longest = self.longest.max(now - lost.at);
                assert!(now - lost.at <= GHOST_MAX, "{:?} keeps the seat {member:?}", lost.death);
            }
        }
    }

    /// Compares the audio of the live phones with the live rooms.
    fn listen(&mut self) {
        let Some(mut ears) = self.soak.ears.take() else { return };
        let calls = &self.soak.net.switch.control.calls;
        ears.keep(|port| calls.call_at(port).is_some());
        let living = (0..self.soak.phones.len()).filter(|at| self.is_living(*at));
        let ports = living.map(|at| PortId(self.soak.phones[at].port));
        let port_of: BTreeMap<CallId, PortId> =
            ports.filter_map(|port| Some((calls.call_at(port)?, port))).collect();
        for room in self.soak.net.live_rooms() {
            let port = |call| port_of.get(call).copied();
            let phones = room.members.iter().filter_map(|member| Some((member.id, port(&member.call_uuid)?)));
            ears.look(&room, &phones.collect(), self.soak.rng.random_range(0..1_000));
        }
        self.soak.ears = Some(ears);
    }

    /// Counts the members that left because their phone was lost.
    fn gone(&self) -> usize {
        let is_gone = |news: &&OfRooms| match news {
            OfRooms::News(news) => format!("{:?}", news.what).contains("MediaTimeout"),
            _ => false,
        };
        self.soak.net.of_rooms.iter().filter(is_gone).count()
    }
}

/// Each seed is a separate test, so that they run in parallel.
#[test]
fn in_a_storm_no_seat_is_without_a_phone() {
    no_seat_is_without_a_phone(1);
}

#[test]
fn in_a_second_storm_no_seat_is_without_a_phone() {
    no_seat_is_without_a_phone(2);
}

#[test]
fn in_a_third_storm_no_seat_is_without_a_phone() {
    no_seat_is_without_a_phone(3);
}

fn no_seat_is_without_a_phone(seed: u64) {
    let mut storm = Storm::new(seed);
    let end = storm.soak.net.now() + Duration::from_secs(600);
    let (mut most, mut gone, mut steps) = (0, 0, 0_usize);
    while storm.soak.net.now() < end {
        storm.act();
        storm.look();
        gone += storm.gone();
        storm.soak.read();
        storm.soak.due.clear();
        storm.soak.compare();
        steps += 1;
        if steps.is_multiple_of(LISTENS_EVERY) {
            storm.listen();
        }
        most = most.max(storm.soak.reader.live().map(|room| room.members.len()).sum());
        let pause = storm.soak.rng.random_range(10..400);
        storm.soak.net.wait(Duration::from_millis(pause));
        gone += storm.gone();
        storm.soak.read();
        storm.soak.due.clear();
    }
    // No further actions: only live phones are left.
    for _ in 0..31 {
        storm.soak.net.wait(Duration::from_secs(1));
        storm.look();
        gone += storm.gone();
        storm.soak.read();
        storm.soak.due.clear();
    }
    storm.soak.compare();
    storm.listen();
    let living = (0..storm.soak.phones.len()).filter(|at| storm.is_living(*at)).count();
    assert_eq!(storm.soak.phones.len(), living, "seed {seed}");
    storm.soak.net.feed(Input::EndCalls(HangupCause::NormalClearing));
    storm.soak.net.run();
    storm.soak.read();
    assert_eq!((storm.soak.joined, storm.soak.reader.live().count()), (storm.soak.left, 0));
    assert!(storm.soak.recording.is_empty(), "a recording without members");
    println!(
        "seed {seed}: {most} members at once, deaths {:?}, {gone} noticed, {} muted, {} returned, at most {:?} without a phone",
        storm.deaths, storm.muted, storm.returned, storm.longest
    );
    let ears = storm.soak.ears.as_ref().unwrap();
    assert!(ears.heard > 500 && ears.unheard > 500, "{} heard, {} not", ears.heard, ears.unheard);
    assert!(most >= 25 && gone > 30 && storm.returned > 10 && storm.deaths.len() == 3);
}
