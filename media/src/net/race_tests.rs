//! A third address sends ClientHellos before and after the browser's (CVE-2023-49786, CVE-2023-51443). Tests the path
//! of a leg, the handshake of the relay's thread and that of the browser, in simulated time.

use std::net::SocketAddr;

use crossbeam_channel::bounded;

use super::super::webrtc::{Heard, Web};
use super::*;
use crate::session::Reason;
use crate::srtp::SrtpKeys;
use crate::time::Micros;
use crate::webrtc::{IceTerms, WebrtcTerms, write_request};

#[path = "../../tests/support/client_hello.rs"]
mod client_hello;

/// A leg, its browser and the third address.
struct Race {
    /// The state of xorshift64.
    random: u64,
    start: Instant,
    /// Milliseconds since the start.
    clock: u64,
    /// Milliseconds that a datagram takes from one side to the other.
    delay: u64,
    web: Web,
    jobs: Receiver<Job>,
    handshakes: Handshakes,
    keys: Option<SrtpKeys>,
    browser: Handshake,
    browser_keys: Option<SrtpKeys>,
    /// Datagrams in transit: arrival time, whether to the browser, and bytes.
    wire: VecDeque<(u64, bool, Vec<u8>)>,
    /// The ClientHellos of the third address.
    hellos: [Vec<u8>; 2],
    /// The number sent before the first datagram of the browser's handshake, and after it.
    sprayed: [u32; 2],
    has_shaken: bool,
}

impl Race {
    /// The seed determines delays, times and addresses; with an odd seed the switch is the DTLS client.
    fn new(seed: u64, ours: &Certificate, theirs: &Certificate) -> Race {
        let (start, is_client) = (now(), seed % 2 == 1);
        let (jobs, queue) = bounded(1_000);
        let ice = IceTerms::new("ours", PASSWORD, "them");
        let terms = WebrtcTerms { ice, fingerprint: theirs.fingerprint(), is_client };
        let hello = |certificate| match Handshake::new(start, certificate, [1; 32], true).poll_output() {
            Some(HandshakeOutput::Datagram(hello)) => hello,
            output => panic!("no ClientHello: {output:?}"),
        };
        let mut race = Race {
            random: seed * 2 + 1,
            start,
            clock: 0,
            delay: 0,
            web: Web::new(PortId::new(1, 0, 2), terms, jobs),
            jobs: queue,
            handshakes: Handshakes::new(ours.clone(), Vec::new()),
            keys: None,
            browser: Handshake::new(start, theirs, ours.fingerprint(), !is_client),
            browser_keys: None,
            wire: VecDeque::new(),
            hellos: [hello(theirs), client_hello::null_client_hello([7; 32])],
            sprayed: [0; 2],
            has_shaken: false,
        };
        race.delay = 1 + race.below(40);
        race
    }

    fn below(&mut self, end: u64) -> u64 {
        for shift in [13, -7, 17_i32] {
            let shifted = if shift < 0 { self.random >> -shift } else { self.random << shift };
            self.random ^= shifted;
        }
        self.random % end
    }

    fn now(&self) -> Instant {
        self.start + Duration::from_millis(self.clock)
    }

    fn at(&self) -> Micros {
        Micros(i64::try_from(self.clock * 1_000).unwrap())
    }

    fn post(&mut self, to_browser: bool, datagram: Vec<u8>) {
        self.wire.push_back((self.clock + self.delay, to_browser, datagram));
    }

    /// A ClientHello of another address, or of another port of the browser's address, gets no state.
    fn spray(&mut self) {
        let address = if self.below(2) == 0 { "198.51.100.7:4000" } else { "192.0.2.1:4001" };
        let hello = usize::from(self.below(2) == 0);
        let heard = self.web.hear(self.at(), address.parse().unwrap(), &self.hellos[hello]);
        assert!(matches!(heard, Heard::Refused(Reason::Foreign)), "{address}");
        self.sprayed[usize::from(self.has_shaken)] += 1;
    }

    /// Delivers the datagrams that are due.
    fn carry(&mut self) {
        while self.wire.front().is_some_and(|(due, ..)| *due <= self.clock) {
            let Some((_, to_browser, datagram)) = self.wire.pop_front() else { return };
            let now = self.now();
            match (to_browser, datagram[0]) {
                (true, 0..=3) => {
                    // The check was answered: the browser begins.
                    self.take_of_browser();
                }
                (true, _) => {
                    self.browser.handle_input(now, HandshakeInput::Datagram(&datagram));
                    self.take_of_browser();
                }
                (false, first) => {
                    self.has_shaken |= first >= 20;
                    if let Heard::Check(answer) = self.web.hear(self.at(), browser_address(), &datagram) {
                        self.web.begin();
                        self.post(true, answer.as_slice().to_vec());
                    }
                }
            }
        }
    }

    fn take_of_browser(&mut self) {
        while let Some(output) = self.browser.poll_output() {
            match output {
                HandshakeOutput::Datagram(datagram) => self.post(false, datagram),
                HandshakeOutput::Failed(failure) => panic!("{failure}"),
                HandshakeOutput::Keys(keys) => self.browser_keys = Some(*keys),
            }
        }
    }

    /// Runs the thread of the handshakes, and carries out its commands to the leg.
    fn shake(&mut self) {
        let now = self.now();
        while let Ok(job) = self.jobs.try_recv() {
            match job {
                Job::Begin(port, begin) => self.handshakes.begin(now, port, &begin),
                Job::Datagram(port, datagram) => {
                    self.handshakes.feed(now, port, HandshakeInput::Datagram(&datagram));
                }
                Job::Stop => {}
            }
        }
        if self.handshakes.next.is_some_and(|next| next <= now) {
            self.handshakes.tick(now);
        }
        while let Some((_, shaken)) = self.handshakes.undelivered.pop_front() {
            assert_eq!(shaken.round, 0, "one handshake");
            if let Some(keys) = shaken.keys {
                assert!(self.keys.replace(*keys).is_none(), "keys come once");
            }
            assert_eq!(self.web.handshake_target(), Some(browser_address()));
            shaken.datagrams.into_iter().for_each(|datagram| self.post(true, datagram));
        }
    }

    /// Returns after how many milliseconds both sides had keys.
    fn run(&mut self) -> Option<u64> {
        let (first_check, mut keyed) = (20 + self.below(50), None);
        for clock in 0..CLOCK_MAX {
            self.clock = clock;
            if clock == 0 {
                // More datagrams than the leg passes on in one second.
                (0..100).for_each(|_| self.spray());
            }
            if self.below(4) == 0 {
                self.spray();
            }
            if clock == first_check {
                let check = write_request([9; 12], &[(6, b"ours:them"), (0x25, &[])], PASSWORD);
                self.post(false, check);
            }
            self.carry();
            self.shake();
            if self.keys.is_some() && self.browser_keys.is_some() {
                keyed = keyed.or(Some(clock - first_check));
            }
        }
        keyed
    }
}

#[test]
fn client_hellos_of_a_third_address_delay_no_keys() {
    let (ours, theirs) = (Certificate::self_signed().unwrap(), Certificate::self_signed().unwrap());
    for seed in 0..100 {
        let mut race = Race::new(seed, &ours, &theirs);
        // The check and the flights of DTLS take one delay each. No flight is repeated, because a repetition takes a
        // second.
        let keyed = race.run().unwrap_or_else(|| panic!("seed {seed}: no keys"));
        assert!(keyed <= 10 * race.delay + 10, "seed {seed}: {keyed} ms with a delay of {} ms", race.delay);
        let (switch, browser) = (race.keys.unwrap(), race.browser_keys.unwrap());
        assert_eq!((&switch.send, &switch.receive), (&browser.receive, &browser.send), "seed {seed}");
        assert!(race.sprayed.iter().all(|sent| *sent >= 50), "seed {seed}: {:?}", race.sprayed);
        assert!(race.handshakes.legs.len() <= 1, "seed {seed}");
    }
}

fn browser_address() -> SocketAddr {
    SocketAddr::new("192.0.2.1".parse().unwrap(), 4_000)
}

const PASSWORD: &str = "VOkJxbRl1RmTxUk/WvJxBt";
/// Milliseconds of a run: less than the time after which DTLS repeats a flight.
const CLOCK_MAX: u64 = 900;
