use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use crossbeam_channel::{Sender, bounded};

use super::*;
use crate::net::RelayConfig;
use crate::session::SessionConfig;

/// A worker on this thread: it turns when the test says so.
fn worker() -> (Worker, Sender<Order>, Receiver<Notice>) {
    let config = RelayConfig {
        bind: LOCALHOST,
        ports: 16_000..=31_999,
        workers: 1,
        session: SessionConfig::default(),
        seed: u64::from(std::process::id()) + 77,
    };
    let (shared, notices) = Shared::new(config, 1, Arc::new(|| {})).unwrap();
    let (orders, receiver) = bounded(16);
    let alarm = Arc::new(Alarm::new().unwrap());
    let epoll = listen(&alarm).unwrap();
    (Worker::new(0, Arc::new(shared), alarm, receiver, epoll), orders, notices)
}

fn admit(worker: &mut Worker, serial: u64) -> PortId {
    let pair = worker.shared.bind_pair(LOCALHOST).unwrap();
    let id = PortId::new(serial, 0, pair.rtp.local.port());
    worker.admit(worker.shared.leg(id, pair));
    id
}

#[test]
fn a_panic_costs_the_leg_at_work_and_no_other() {
    let (mut worker, _orders, notices) = worker();
    let (broken, healthy) = (admit(&mut worker, 1), admit(&mut worker, 2));
    worker.current = Some(broken);
    worker.recover();
    worker.publish();
    assert!(matches!(notices.try_recv(), Ok(Notice::Closed { id, .. }) if id == broken));
    assert_eq!(worker.open, 1);
    assert_eq!(crate::net::counters::sum(&worker.shared.tallies).panics, 1);
    // Its ports are closed for certain: somebody else may bind them.
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
        counted = crate::net::counters::sum(&worker.shared.tallies).received;
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
    // The same pair under a new serial number, as after its rest.
    let Ok(pair) = crate::net::endpoint::Pair::bind(LOCALHOST, old.port()) else { return };
    let new = PortId::new(2, 0, old.port());
    worker.admit(worker.shared.leg(new, pair));
    worker.obey(old, Command::Close);
    assert_eq!(worker.visit(old, false, EpollFlags::EPOLLIN), 0);
    assert_eq!(worker.open, 1);
    assert!(notices.try_recv().is_err());
}

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
