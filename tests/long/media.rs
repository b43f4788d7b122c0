//! The audio of the phones of a load test, packet by packet: every packet has its sender and its number.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The audio of one phone: its packets, and those that its peer has received.
pub struct Talk {
    pub at: SocketAddr,
    socket: UdpSocket,
    index: u32,
    peer: Mutex<Option<SocketAddr>>,
    sent: AtomicU32,
    arrived: Mutex<Vec<u64>>,
    /// Packets that arrived twice.
    pub doubled: AtomicU64,
}

impl Talk {
    pub fn new(address: Ipv4Addr, index: u32) -> Talk {
        let socket = UdpSocket::bind((address, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        Talk {
            at: socket.local_addr().unwrap(),
            socket,
            index,
            peer: Mutex::new(None),
            sent: AtomicU32::new(0),
            arrived: Mutex::default(),
            doubled: AtomicU64::new(0),
        }
    }

    /// Sends to an address from now on.
    pub fn talk_to(&self, peer: SocketAddr) {
        *self.peer.lock().unwrap() = Some(peer);
    }

    /// Sends no more.
    pub fn stop(&self) {
        *self.peer.lock().unwrap() = None;
    }

    /// How many packets were sent.
    pub fn sent(&self) -> u32 {
        self.sent.load(Ordering::Relaxed)
    }

    /// How many packets of `from..until` have not arrived.
    pub fn lost(&self, from: u32, until: u32) -> u32 {
        let arrived = self.arrived.lock().unwrap();
        let is_there = |number: u32| {
            arrived.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
        };
        u32::try_from((from..until).filter(|number| !is_there(*number)).count()).unwrap()
    }

    fn send(&self, packet: &mut [u8; PACKET_BYTES]) {
        let Some(peer) = *self.peer.lock().unwrap() else { return };
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let [_, _, high, low] = number.to_be_bytes();
        packet[2..4].copy_from_slice(&[high, low]);
        packet[4..8].copy_from_slice(&number.wrapping_mul(160).to_be_bytes());
        packet[8..12].copy_from_slice(&(0x5000_0000 + self.index).to_be_bytes());
        packet[16..20].copy_from_slice(&self.index.to_be_bytes());
        packet[20..24].copy_from_slice(&number.to_be_bytes());
        // A full socket buffer counts as a lost packet.
        let _ = self.socket.send_to(packet, peer);
    }

    fn arrived(&self, number: u32) {
        let mut arrived = self.arrived.lock().unwrap();
        let word = number as usize / 64;
        if arrived.len() <= word && word < WORDS_MAX {
            arrived.resize(word + 1, 0);
        }
        let Some(word) = arrived.get_mut(word) else { return };
        if *word >> (number % 64) & 1 == 1 {
            self.doubled.fetch_add(1, Ordering::Relaxed);
        }
        *word |= 1 << (number % 64);
    }
}

/// The thread that sends and receives the audio of all phones.
pub struct Audio {
    stop: Arc<AtomicBool>,
    /// The largest delay of a sent packet, in microseconds, since this was last read.
    late_us: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Audio {
    pub fn start(talks: Vec<Arc<Talk>>) -> Audio {
        let (stop, late_us) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (until, late) = (Arc::clone(&stop), Arc::clone(&late_us));
        let thread = std::thread::spawn(move || {
            let (began, mut turn) = (Instant::now(), 0_u32);
            let mut packet = [0xff; PACKET_BYTES];
            packet[..2].copy_from_slice(&[0x80, 0]);
            packet[12..16].copy_from_slice(MARK);
            while !until.load(Ordering::Relaxed) {
                let due = began + EVERY / TURNS * turn;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                let behind = u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX);
                late.fetch_max(behind, Ordering::Relaxed);
                let group = talks.iter().skip((turn % TURNS) as usize).step_by(TURNS as usize);
                for talk in group {
                    receive(talk, &talks);
                    talk.send(&mut packet);
                }
                turn += 1;
            }
        });
        Audio { stop, late_us, thread: Some(thread) }
    }

    /// The largest delay of a sent packet since the last call.
    pub fn take_lateness(&self) -> Duration {
        Duration::from_micros(self.late_us.swap(0, Ordering::Relaxed))
    }
}

impl Drop for Audio {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

fn receive(talk: &Talk, talks: &[Arc<Talk>]) {
    let mut buffer = [0; 2_048];
    while let Ok(length) = talk.socket.recv(&mut buffer) {
        if length != PACKET_BYTES || buffer[12..16] != *MARK {
            continue;
        }
        let word = |at: usize| u32::from_be_bytes(buffer[at..at + 4].try_into().unwrap());
        let sender = talks.iter().find(|talk| talk.index == word(16));
        if let Some(sender) = sender {
            sender.arrived(word(20));
        }
    }
}

/// RTP header and 20 ms of G.711.
const PACKET_BYTES: usize = 172;
const MARK: &[u8; 4] = b"LOAD";
const EVERY: Duration = Duration::from_millis(20);
/// The phones send at different times within the 20 ms, as independent phones do.
const TURNS: u32 = 5;
/// Four million packets a phone: 23 hours.
const WORDS_MAX: usize = 65_536;
