//! Measures the cost of a call: INVITE, 180, 200, ACK, BYE, 200 through two user agents, with few and with
//! many other calls.

#![expect(clippy::indexing_slicing, reason = "there are two ends, and `who` is one of them")]

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_sip::flow::{Flow, ListenerId};
use sidetone_sip::message::{Host, StatusCode};
use sidetone_sip::transaction::{LayerConfig, Local};
use sidetone_sip::ua::{Event, Input, Invite, LegKey, Output, Reply, Ua, UaConfig};

/// Both ends of every call; messages arrive without delay.
struct Pair {
    ends: [Ua; 2],
    now: Instant,
    answered: Option<LegKey>,
}

impl Pair {
    fn new() -> Self {
        let end = |n: u8| {
            let layer = LayerConfig::new(Local::fixed(Host::V4([192, 0, 2, n].into()), None));
            Ua::new(UaConfig::new(layer), StdRng::seed_from_u64(n.into()))
        };
        #[expect(clippy::disallowed_methods, reason = "a bench is a driver")]
        let now = Instant::now();
        Self { ends: [end(1), end(2)], now, answered: None }
    }

    /// Sets up one call; 20 ms pass, so that the number of transactions that stay for 32 s becomes constant.
    fn call(&mut self) -> Option<LegKey> {
        self.now += Duration::from_millis(20);
        self.settle();
        let invite = Invite::new("sip:bob@192.0.2.2", "<sip:alice@192.0.2.1>", "<sip:bob@192.0.2.2>")
            .content("application/sdp", SDP);
        let _ = self.ends[0].invite(self.now, flow(2), invite);
        self.settle();
        self.answered.take()
    }

    fn hang_up(&mut self, leg: LegKey) {
        self.ends[0].hang_up(self.now, leg);
        self.settle();
    }

    fn settle(&mut self) {
        for end in &mut self.ends {
            while end.next_timeout().is_some_and(|at| at <= self.now) {
                end.handle_input(self.now, Input::Timeout);
            }
        }
        while self.step(0) || self.step(1) {}
    }

    fn step(&mut self, who: usize) -> bool {
        let Some(output) = self.ends[who].poll_output() else { return false };
        match output {
            Output::Transmit { bytes, .. } => {
                let source = flow(if who == 0 { 1 } else { 2 });
                self.ends[1 - who].handle_input(self.now, Input::Datagram { flow: source, bytes });
            }
            Output::Event(Event::Invited { key, .. }) => {
                let _ = self.ends[who].respond(self.now, &key, Reply::new(StatusCode::RINGING));
                let answer = Reply::new(StatusCode::OK).content("application/sdp", SDP);
                let _ = self.ends[who].respond(self.now, &key, answer);
            }
            Output::Event(Event::Answered { leg, .. }) => self.answered = Some(leg),
            _ => {}
        }
        true
    }
}

fn flow(last: u8) -> Flow {
    Flow::udp(ListenerId(0), ([192, 0, 2, last], 5060).into())
}

fn call(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sip_call");
    for beside in [0, 5_000] {
        let mut pair = Pair::new();
        for _ in 0..beside {
            pair.call();
        }
        assert_eq!(pair.ends[0].legs_len(), beside);
        group.bench_with_input(BenchmarkId::new("both ends", beside), &beside, |b, _| {
            b.iter(|| {
                let leg = pair.call().unwrap_or_else(|| unreachable!("every call is answered"));
                pair.hang_up(leg);
            });
        });
    }
    group.finish();
}

const SDP: &str = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n\
                   m=audio 4000 RTP/AVP 8 0\r\na=ptime:20\r\na=sendrecv\r\n";

criterion_group!(benches, call);
criterion_main!(benches);
