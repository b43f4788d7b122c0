//! Phones with calls between them, whose packets are all counted.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::long::engine::Engine;
use crate::long::media::Audio;
use crate::long::phone::Phone;

/// Registered phones in pairs, each on its own address.
pub struct Office {
    pub phones: Vec<Arc<Phone>>,
    pub audio: Audio,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The packets sent and lost within a window of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss {
    pub sent: u64,
    pub lost: u64,
}

impl Loss {
    pub fn percent(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.lost as f64 * 100.0 / self.sent as f64 }
    }
}

/// The packets that phones had sent at the beginning of a window.
pub struct Window {
    from: Vec<u32>,
}

impl Office {
    /// `count` phones of one domain, numbered from `first`, on addresses from 127.`net`.0.1; none is registered yet.
    pub fn open(engine: &Engine, net: u8, domain: &str, first: u32, count: u32) -> Office {
        Office::through(&vec![engine.sip; count as usize], net, domain, first)
    }

    /// The same, with the address that each phone sends its SIP to.
    pub fn through(ways: &[SocketAddr], net: u8, domain: &str, first: u32) -> Office {
        let phones: Vec<Arc<Phone>> = (0..)
            .zip(ways)
            .map(|(index, way)| Arc::new(Phone::new(*way, address(net, index), domain, first + index, index)))
            .collect();
        let audio = Audio::start(phones.iter().map(|phone| Arc::clone(&phone.talk)).collect());
        let stop = Arc::new(AtomicBool::new(false));
        let (until, listened) = (Arc::clone(&stop), phones.clone());
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                listen(&listened);
            }
        });
        Office { phones, audio, stop, thread: Some(thread) }
    }

    /// Registers every phone.
    pub fn register(&self) {
        for phone in &self.phones {
            let answer = phone.register();
            assert!(
                answer.as_ref().is_some_and(|answer| answer.status == 200),
                "{}: {answer:?}",
                phone.number
            );
        }
    }

    /// Connects the phones 2n and 2n + 1 of `pairs`.
    pub fn connect(&self, pairs: std::ops::Range<usize>) {
        for pair in pairs {
            let callee = &self.phones[2 * pair + 1];
            let answer = self.phones[2 * pair].call(&callee.number);
            assert!(answer.as_ref().is_some_and(|answer| answer.status == 200), "pair {pair}: {answer:?}");
        }
    }

    /// How many calls of the pairs are up at both ends.
    pub fn up(&self, pairs: std::ops::Range<usize>) -> usize {
        pairs.filter(|pair| self.phones[2 * pair].is_up() && self.phones[2 * pair + 1].is_up()).count()
    }

    /// Begins a window of counted packets.
    pub fn window(&self) -> Window {
        Window { from: self.phones.iter().map(|phone| phone.talk.sent()).collect() }
    }

    /// The packets of the pairs since the beginning of the window, and how many of them did not arrive; waits for those
    /// in flight.
    pub fn loss(&self, window: &Window, pairs: std::ops::Range<usize>) -> Loss {
        let until: Vec<u32> = self.phones.iter().map(|phone| phone.talk.sent()).collect();
        std::thread::sleep(ON_THE_WAY);
        let mut loss = Loss::default();
        for at in 2 * pairs.start..2 * pairs.end {
            let (from, until) = (window.from[at], until[at]);
            loss.sent += u64::from(until - from);
            loss.lost += u64::from(self.phones[at].talk.lost(from, until));
        }
        loss
    }
}

impl Drop for Office {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

/// The address of phone `index` in 127.`net`.0.0/16.
pub fn address(net: u8, index: u32) -> Ipv4Addr {
    let [_, _, high, low] = (index + 1).to_be_bytes();
    Ipv4Addr::new(127, net, high, low)
}

/// Passes received datagrams to the phones; waits at most a tenth of a second.
fn listen(phones: &[Arc<Phone>]) {
    let mut waits: Vec<PollFd> =
        phones.iter().map(|phone| PollFd::new(phone.sip.as_fd(), PollFlags::POLLIN)).collect();
    if poll(&mut waits, PollTimeout::from(100_u8)).unwrap_or(0) == 0 {
        return;
    }
    let mut buffer = vec![0; 65_535];
    for (phone, wait) in phones.iter().zip(&waits) {
        if wait.any() != Some(true) {
            continue;
        }
        while let Ok(length) = phone.sip.recv(&mut buffer) {
            phone.take(&buffer[..length]);
        }
    }
}

/// Longer than a packet takes through a busy machine.
const ON_THE_WAY: std::time::Duration = std::time::Duration::from_secs(2);
