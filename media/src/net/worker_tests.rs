use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use crossbeam_channel::{Sender, bounded};

use super::*;
use crate::codec::Codec;
use crate::mix::{Formats, Hears, Seat};
use crate::net::handover::Peer;
use crate::net::relay::Watched;
use crate::net::{Io, RelayConfig, RelayIo};
use crate::session::SessionConfig;

/// The kernel interface that this module tests; `epoll` where the system does not offer the other one.
fn io() -> Io {
    if !module_path!().contains("io_uring") {
        return Io::Epoll;
    }
    Wire::try_io_uring().map_or_else(
        |error| {
            eprintln!("SKIPPED: tests with io_uring run with epoll, this system does not offer it: {error}");
            Io::Epoll
        },
        |()| Io::IoUring,
    )
}

/// A worker on this thread; the test calls its turns.
fn worker() -> (Worker, Sender<Order>, Receiver<Notice>) {
    let (mut workers, orders, notices) = workers(1, 16);
    (workers.pop().unwrap(), orders, notices)
}

/// Workers that hand legs to each other, with inboxes of this length; the order queue is the first worker's.
fn workers(count: usize, inbox_len: usize) -> (Vec<Worker>, Sender<Order>, Receiver<Notice>) {
    let config = RelayConfig {
        bind: LOCALHOST,
        ports: 16_000..=31_999,
        workers: count,
        io: RelayIo::Epoll,
        session: SessionConfig::default(),
        // Of its own for each test: with one seed they would take the same ports in the same order.
        seed: RandomState::new().hash_one(()),
    };
    let (peers, inboxes): (Vec<Peer>, Vec<Receiver<Handover>>) = (0..count)
        .map(|_| {
            let (inbox, handed) = bounded(inbox_len);
            (Peer { inbox, waker: Arc::new(Waker::new().unwrap()) }, handed)
        })
        .unzip();
    let (shared, notices) = Shared::new(config, peers, bounded(16).0, Arc::new(|| {})).unwrap();
    let shared = Arc::new(shared);
    let (orders, receiver) = bounded(16);
    let workers = inboxes.into_iter().enumerate().map(|(index, inbox)| {
        let waker = Arc::clone(&shared.peers[index].waker);
        let wire = Wire::open(&waker, io()).unwrap();
        Worker::new(index, Arc::clone(&shared), waker, receiver.clone(), inbox, wire)
    });
    (workers.collect(), orders, notices)
}

fn admit(worker: &mut Worker, serial: u64) -> PortId {
    let pair = worker.io.shared.bind_pair(LOCALHOST).unwrap();
    let id = PortId::new(serial, 0, pair.rtp.local().port());
    worker.legs.insert(worker.io.shared.leg(id, pair));
    id
}

/// The end of a thread is recorded, however it ends, unless the relay is being shut down.
#[test]
fn a_worker_that_ends_before_its_time_is_noted() {
    let (ended, _orders, _notices) = worker();
    let shared = Arc::clone(&ended.io.shared);
    let watched = Watched(Arc::clone(&shared));
    let thread = std::thread::spawn(move || {
        let _watched = watched;
        panic!("outside of a turn");
    });
    assert!(thread.join().is_err());
    assert!(shared.lost.load(Ordering::SeqCst));
    let (stopped, _orders, _notices) = worker();
    stopped.io.shared.stop.store(true, Ordering::SeqCst);
    drop(Watched(Arc::clone(&stopped.io.shared)));
    assert!(!stopped.io.shared.lost.load(Ordering::SeqCst));
}

#[test]
fn a_panic_costs_the_leg_at_work_and_no_other() {
    let (mut worker, _orders, notices) = worker();
    let (broken, healthy) = (admit(&mut worker, 1), admit(&mut worker, 2));
    worker.io.current = Some(At::Leg(broken));
    worker.recover();
    worker.publish();
    assert!(matches!(notices.try_recv(), Ok(Notice::Closed { id, .. }) if id == broken));
    assert_eq!(worker.legs.open(), 1);
    assert_eq!(crate::net::counters::sum(&worker.io.shared.tallies).panics, 1);
    // Its ports must be closed: another socket can bind them.
    UdpSocket::bind((LOCALHOST, broken.port())).unwrap();
    worker.obey(broken, Command::Snapshot);
    worker.obey(healthy, Command::Snapshot);
    assert!(matches!(notices.try_recv(), Ok(Notice::Snapshot { id, .. }) if id == healthy));
}

#[test]
fn what_came_before_a_command_counts_before_it() {
    let (mut worker, _orders, notices) = worker();
    let id = admit(&mut worker, 1);
    worker.obey(id, Command::Describe(Box::default()));
    let phone = UdpSocket::bind((LOCALHOST, 0)).unwrap();
    for _ in 0..100 {
        phone.send_to(&[0; 20], (LOCALHOST, id.port())).unwrap();
        phone.send_to(&[0; 20], (LOCALHOST, id.port() + 1)).unwrap();
    }
    // Until the loopback interface has delivered all of them; no turn reads them.
    let mut counted = 0;
    while counted < 200 {
        worker.obey(id, Command::Unbridge);
        counted = crate::net::counters::sum(&worker.io.shared.tallies).received;
    }
    worker.obey(id, Command::Close);
    assert!(
        matches!(notices.try_recv(), Ok(Notice::Closed { report, .. }) if report.counters.datagrams == 100)
    );
}

#[test]
fn an_old_token_finds_nobody() {
    let (mut worker, _orders, notices) = worker();
    let old = admit(&mut worker, 1);
    worker.close(old);
    assert!(notices.try_recv().is_ok());
    // The same pair with a new serial number, as after its rest.
    let Ok(pair) = crate::net::pair::Pair::bind(LOCALHOST, old.port()) else { return };
    let new = PortId::new(2, 0, old.port());
    worker.legs.insert(worker.io.shared.leg(new, pair));
    worker.obey(old, Command::Close);
    assert_eq!(worker.visit(old, false, Read::All), 0);
    assert_eq!(worker.legs.open(), 1);
    assert!(notices.try_recv().is_err());
}

fn seat() -> Box<Seat> {
    let formats = Formats {
        receive: vec![(0, Codec::Pcmu)],
        send: (0, Codec::Pcmu),
        event_receive: None,
        event_send: None,
        noise_receive: Vec::new(),
        ptime_ms: 20,
        hears: true,
        speaks: true,
    };
    Box::new(Seat { formats, muted: false, hears: Hears::Mix, seed: 1 })
}

#[test]
fn a_mix_wakes_its_worker_for_as_long_as_somebody_sits_in_it() {
    let (mut worker, _orders, _notices) = worker();
    assert!(worker.patience().is_none(), "without legs");
    let id = admit(&mut worker, 1);
    let idle = worker.mixes.next_tick();
    worker.obey(id, Command::Join { mix: MixId(3), seat: seat() });
    assert_eq!((idle, worker.mixes.changed_size()), (None, Some((1, 1))));
    assert!(worker.mixes.is_due(worker.io.shared.clock.now()), "the first tick is due at once");
    let due = worker.mixes.next_tick().unwrap();
    worker.tick_mixes();
    let next = worker.mixes.next_tick().unwrap();
    let ahead_us = next.since(worker.io.shared.clock.now());
    assert!(next > due && ahead_us <= 20_000, "the next one follows in 20 ms");
    worker.obey(id, Command::Leave);
    assert_eq!(worker.mixes.changed_size(), Some((0, 0)));
    // Its obsolete tick entries find no mix and are removed.
    while worker.mixes.next_tick().is_some() {
        worker.tick_mixes();
    }
    worker.publish();
    let counters = crate::net::counters::sum(&worker.io.shared.tallies);
    // More than one if this thread was late.
    assert!(counters.ticks.total() >= 1);
    assert_eq!((counters.mixes, counters.panics), (0, 0));
}

#[test]
fn a_worker_that_has_no_room_is_handed_everything_later_and_in_order() {
    let (mut workers, _orders, notices) = workers(2, 1);
    let (Some(mut away), Some(mut home)) = (workers.pop(), workers.pop()) else { panic!("two workers") };
    let id = admit(&mut home, 1);
    home.command(id, Command::Describe(Box::default()));
    // The second worker owns mixes with odd ids.
    home.command(id, Command::Join { mix: MixId(1), seat: seat() });
    home.command(id, Command::Snapshot);
    home.handovers.flush(&home.io.shared.peers);
    assert!(home.handovers.is_waiting(), "the leg is handed over, its orders wait");
    assert!(home.patience().is_some_and(|patience| patience.as_millis() <= 1), "it asks again soon");
    let is_told = |notices: &Receiver<Notice>| matches!(notices.try_recv(), Ok(Notice::Snapshot { id: who, .. }) if who == id);
    for _ in 0..3 {
        assert!(!is_told(&notices));
        away.take_orders();
        home.handovers.flush(&home.io.shared.peers);
    }
    assert_eq!((home.legs.open(), away.legs.open(), away.mixes.changed_size()), (0, 1, Some((1, 1))));
    assert!(!home.handovers.is_waiting() && is_told(&notices));
    // The leg returns home; commands that arrive at home meanwhile wait for it.
    home.command(id, Command::Leave);
    home.command(id, Command::Snapshot);
    home.handovers.flush(&home.io.shared.peers);
    away.take_orders();
    assert!(!is_told(&notices));
    away.handovers.flush(&away.io.shared.peers);
    home.take_orders();
    assert_eq!((home.legs.open(), away.legs.open(), away.mixes.changed_size()), (1, 0, Some((0, 0))));
    assert!(is_told(&notices));
    home.command(id, Command::Close);
    assert!(matches!(notices.try_recv(), Ok(Notice::Closed { id: who, .. }) if who == id));
}

#[test]
fn a_leg_that_ends_elsewhere_leaves_nothing_at_home() {
    let (mut workers, _orders, notices) = workers(2, 16);
    let (Some(mut away), Some(mut home)) = (workers.pop(), workers.pop()) else { panic!("two workers") };
    let id = admit(&mut home, 1);
    home.command(id, Command::Join { mix: MixId(1), seat: seat() });
    home.handovers.flush(&home.io.shared.peers);
    away.take_orders();
    // The leg is recalled, but a panic there ends it first.
    home.command(id, Command::Leave);
    home.command(id, Command::Snapshot);
    home.handovers.flush(&home.io.shared.peers);
    away.io.current = Some(At::Mix(MixId(1)));
    away.recover();
    assert!(matches!(notices.try_recv(), Ok(Notice::Closed { id: who, .. }) if who == id));
    away.take_orders();
    away.handovers.flush(&away.io.shared.peers);
    home.take_orders();
    assert!(!home.handovers.is_waiting() && !home.handovers.is_full());
    home.command(id, Command::Snapshot);
    assert!(notices.try_recv().is_err(), "it is told to nobody");
}

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
