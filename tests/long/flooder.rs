//! A limited source of datagrams: many loopback addresses, a fixed rate; responses are ignored.

use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrIn, sendmmsg};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

/// Makes the datagrams: the bytes of number `n`, as sent from `source`.
pub type Make = Box<dyn FnMut(u64, SocketAddr, &mut Vec<u8>) + Send>;

/// A thread that floods until it is stopped.
pub struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    began: Instant,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    /// Sends `rate` datagrams a second to `target`, from a socket on each of `sources` in turn.
    pub fn start(target: SocketAddr, sources: &[Ipv4Addr], rate: u64, make: Make) -> Flood {
        let sockets: Vec<UdpSocket> = sources
            .iter()
            .map(|source| {
                let socket = UdpSocket::bind((*source, 0)).unwrap();
                socket.set_nonblocking(true).unwrap();
                socket
            })
            .collect();
        Flood::from(target, sockets, rate, make)
    }

    /// The same from existing sockets.
    pub fn from(target: SocketAddr, sockets: Vec<UdpSocket>, rate: u64, make: Make) -> Flood {
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (until, count) = (Arc::clone(&stop), Arc::clone(&sent));
        let thread = std::thread::spawn(move || pour(target, &sockets, rate, make, &until, &count));
        Flood { stop, sent, began: Instant::now(), thread: Some(thread) }
    }

    /// How many datagrams have been sent.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Stops; returns how many were sent, and how many of them a second.
    pub fn stop(mut self) -> (u64, f64) {
        let per_second = self.sent() as f64 / self.began.elapsed().as_secs_f64();
        self.end();
        (self.sent(), per_second)
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.end();
    }
}

fn pour(
    target: SocketAddr,
    sockets: &[UdpSocket],
    rate: u64,
    mut make: Make,
    stop: &AtomicBool,
    sent: &AtomicU64,
) {
    let SocketAddr::V4(target) = target else { panic!("an IPv4 target") };
    let to = [Some(SockaddrIn::from(target)); BATCH];
    let mut headers = MultiHeaders::<SockaddrIn>::preallocate(BATCH, None);
    let mut buffers = vec![Vec::new(); BATCH];
    let (began, mut number) = (Instant::now(), 0_u64);
    for socket in sockets.iter().cycle() {
        while began.elapsed().as_secs_f64() * (rate as f64) < (number + BATCH as u64) as f64 {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(Duration::from_micros(300));
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let source = socket.local_addr().unwrap();
        for buffer in &mut buffers {
            buffer.clear();
            make(number, source, buffer);
            number += 1;
        }
        let slices: Vec<[IoSlice; 1]> = buffers.iter().map(|buffer| [IoSlice::new(buffer)]).collect();
        let sent_now =
            sendmmsg(socket.as_raw_fd(), &mut headers, slices.iter(), to, [], MsgFlags::MSG_DONTWAIT);
        sent.fetch_add(sent_now.map_or(0, |results| results.count() as u64), Ordering::Relaxed);
    }
}

/// The attack of the flood test: OPTIONS, INVITE, REGISTER, ACK, CANCEL and random bytes, in equal parts.
pub fn mixed(domain: &str, seed: u64) -> Make {
    let (domain, mut rng) = (domain.to_owned(), StdRng::seed_from_u64(seed));
    let pool = pool(&mut rng);
    let kinds = ["OPTIONS", "INVITE", "REGISTER", "ACK", "CANCEL"];
    Box::new(move |number, source, out| {
        let kind = kinds.get(usize::try_from(number % 6).unwrap());
        match kind {
            Some(method) => request(method, &domain, number, source, rng.random_range(1000..1100), out),
            None => junk(&mut rng, &pool, out),
        }
    })
}

/// Only these methods.
pub fn requests(methods: &'static [&'static str], domain: &str, seed: u64) -> Make {
    let (domain, mut rng) = (domain.to_owned(), StdRng::seed_from_u64(seed));
    Box::new(move |number, source, out| {
        let method = methods[usize::try_from(number).unwrap() % methods.len()];
        request(method, &domain, number, source, rng.random_range(1000..1100), out);
    })
}

/// Only random bytes.
pub fn noise(seed: u64) -> Make {
    let mut rng = StdRng::seed_from_u64(seed);
    let pool = pool(&mut rng);
    Box::new(move |_, _, out| junk(&mut rng, &pool, out))
}

/// Random bytes from which datagrams are cut: new ones for each datagram would cost more than sending it.
fn pool(rng: &mut StdRng) -> Vec<u8> {
    let mut pool = vec![0; 1 << 18];
    rng.fill_bytes(&mut pool);
    pool
}

fn junk(rng: &mut StdRng, pool: &[u8], out: &mut Vec<u8>) {
    let length = rng.random_range(1..=1_400);
    let from = rng.random_range(0..pool.len() - length);
    out.extend_from_slice(&pool[from..from + length]);
}

/// A valid request without a matching transaction or dialog, as small as an attacker would write it.
fn request(method: &str, domain: &str, number: u64, source: SocketAddr, user: u32, out: &mut Vec<u8>) {
    use std::io::Write;
    let body = if method == "INVITE" { SDP } else { "" };
    let kind = if body.is_empty() { "" } else { "Content-Type: application/sdp\r\n" };
    write!(
        out,
        "{method} sip:{user}@{domain} SIP/2.0\r\nVia: SIP/2.0/UDP {source};branch=z9hG4bK{number:x}\r\n\
         Max-Forwards: 70\r\nFrom: <sip:{user}@{domain}>;tag={number:x}\r\nTo: <sip:{user}@{domain}>\r\n\
         Call-ID: {number:x}\r\nCSeq: 1 {method}\r\nContact: <sip:{user}@{source}>\r\n{kind}\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
}

const SDP: &str =
    "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\n";
/// Datagrams of one system call, all from one source.
const BATCH: usize = 32;
