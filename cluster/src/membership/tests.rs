//! The rules of the machine one by one: heartbeats in, changes out.

use std::time::{Duration, Instant};

use sidetone_model::cluster::NodeState;
use sidetone_model::ids::NodeId;
use sidetone_model::time::{Now, Timestamp};
use uuid::Uuid;

use super::*;

const OWN: u128 = 1;
const OTHER: u128 = 2;

/// A machine and its clock.
struct Bench {
    machine: Membership,
    began: Instant,
    now_ms: u64,
    /// Whether each heartbeat returns immediately.
    echoes: bool,
    log: Vec<String>,
}

impl Bench {
    #[expect(
        clippy::disallowed_methods,
        reason = "one reading of the clock, as the origin of simulated time"
    )]
    fn new() -> Self {
        let began = Instant::now();
        let machine = Membership::new(identity(OWN, 10, 0), began);
        Bench { machine, began, now_ms: 0, echoes: true, log: Vec::new() }
    }

    fn now(&self) -> Now {
        Now {
            instant: self.began + Duration::from_millis(self.now_ms),
            wall: Timestamp::from_micros(i64::try_from(self.now_ms).unwrap() * 1_000),
        }
    }

    fn feed(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            self.machine.handle_input(self.now(), input);
            while let Some(output) = self.machine.poll_output() {
                match output {
                    Output::Publish(heartbeat) if self.echoes => inputs.push(Input::Heard(heartbeat)),
                    Output::Publish(_) => {}
                    other => self.log.push(format!("{} {}", self.now_ms, shown(&other))),
                }
            }
        }
    }

    /// Advances the time to `at_ms`, with every timeout at its time.
    fn until(&mut self, at_ms: u64) {
        loop {
            let next = self.machine.next_timeout().unwrap().saturating_duration_since(self.began);
            let next_ms = u64::try_from(next.as_micros().div_ceil(1_000)).unwrap();
            if next_ms > at_ms {
                break;
            }
            self.now_ms = self.now_ms.max(next_ms);
            self.feed(Input::Timeout);
        }
        self.now_ms = at_ms;
    }

    fn state(&self, node: u128) -> Option<NodeState> {
        let view = self.machine.view(self.now());
        let node = NodeId(Uuid::from_u128(node));
        view.members.iter().find(|member| member.last.identity.node == node).map(|member| member.state)
    }
}

fn shown(output: &Output) -> String {
    let number = |node: &NodeId| node.0.as_u128();
    match output {
        Output::Double(is_there) => format!("double {is_there}"),
        Output::Isolated(reason) => format!("isolated: {reason}"),
        Output::Joined(node) => format!("joined {}", number(node)),
        Output::Left(node) => format!("left {}", number(node)),
        Output::Linked => "linked".to_owned(),
        Output::Lost(node) => format!("lost {}", number(node)),
        Output::Publish(heartbeat) => format!("publish {}", heartbeat.seq),
        Output::Reopen => "reopen".to_owned(),
    }
}

fn identity(node: u128, run: u128, started_s: i64) -> Identity {
    Identity {
        node: NodeId(Uuid::from_u128(node)),
        name: format!("node-{node}"),
        run: RunId(Uuid::from_u128(run)),
        started_at: Timestamp::from_micros(started_s * 1_000_000),
        version: "0.1.0".to_owned(),
        sip: vec!["udp://192.0.2.1:5060".to_owned()],
        edge: None,
        http: "http://192.0.2.1:8080".to_owned(),
    }
}

fn beat(node: u128, run: u128, seq: u64) -> Heartbeat {
    Heartbeat {
        v: Heartbeat::FORMAT,
        identity: identity(node, run, i64::try_from(run).unwrap()),
        seq,
        at: Timestamp::default(),
        figures: Figures::default(),
        leaving: false,
    }
}

#[test]
fn a_member_is_there_from_its_second_heartbeat_and_gone_after_three_seconds() {
    let mut bench = Bench::new();
    bench.until(0);
    bench.feed(Input::Heard(beat(OTHER, 20, 7)));
    assert_eq!(bench.state(OTHER), Some(NodeState::Unknown));
    bench.until(1_000);
    bench.feed(Input::Heard(beat(OTHER, 20, 8)));
    assert_eq!(bench.state(OTHER), Some(NodeState::Up));
    // A late or repeated heartbeat is no sign of life.
    bench.until(2_000);
    bench.feed(Input::Heard(beat(OTHER, 20, 8)));
    bench.feed(Input::Heard(beat(OTHER, 20, 7)));
    bench.until(3_999);
    assert_eq!(bench.log, ["0 linked", "1000 joined 2"]);
    bench.until(4_000);
    assert_eq!((bench.log[2].as_str(), bench.state(OTHER)), ("4000 lost 2", Some(NodeState::Gone)));
    bench.feed(Input::Heard(beat(OTHER, 20, 9)));
    assert_eq!((bench.log[3].as_str(), bench.state(OTHER)), ("4000 joined 2", Some(NodeState::Up)));
}

#[test]
fn a_stored_heartbeat_of_a_dead_member_is_found_out() {
    let mut bench = Bench::new();
    bench.until(0);
    bench.feed(Input::Heard(beat(OTHER, 20, 7)));
    bench.until(10_000);
    assert_eq!(bench.log, ["0 linked", "3000 lost 2"]);
    bench.until(3_603_000);
    assert_eq!(bench.state(OTHER), None, "it is forgotten after an hour");
}

#[test]
fn an_isolated_node_judges_no_other() {
    let mut bench = Bench::new();
    bench.until(0);
    for (at_ms, seq) in [(0, 1), (1_000, 2), (2_000, 3)] {
        bench.until(at_ms);
        bench.feed(Input::Heard(beat(OTHER, 20, seq)));
    }
    bench.echoes = false;
    bench.feed(Input::Failed("the connection was refused".to_owned()));
    bench.until(20_000);
    let expected = [
        "0 linked",
        "1000 joined 2",
        "5000 isolated: the connection was refused",
        "5000 reopen",
        "8000 reopen",
        "11000 reopen",
        "14000 reopen",
        "17000 reopen",
        "20000 reopen",
    ];
    assert_eq!(bench.log, expected);
    assert_eq!(bench.state(OTHER), Some(NodeState::Unknown));
    let view = bench.machine.view(bench.now());
    assert_eq!((view.is_linked, view.reason.as_str()), (false, "the connection was refused"));
    // After this node is linked again, the other one has three seconds.
    bench.echoes = true;
    bench.until(20_999);
    bench.log.clear();
    bench.until(24_100);
    assert_eq!(bench.log, ["21000 linked", "24000 lost 2"]);
}

#[test]
fn a_new_run_of_a_node_is_another_member() {
    let mut bench = Bench::new();
    bench.until(0);
    bench.feed(Input::Heard(beat(OTHER, 20, 1)));
    bench.feed(Input::Heard(beat(OTHER, 20, 2)));
    bench.feed(Input::Heard(beat(OTHER, 21, 1)));
    // A late heartbeat of the previous run.
    bench.feed(Input::Heard(beat(OTHER, 20, 3)));
    assert_eq!(bench.log, ["0 linked", "0 joined 2", "0 lost 2"]);
    assert_eq!(bench.state(OTHER), Some(NodeState::Up));
}

#[test]
fn a_node_that_stops_in_order_leaves_at_once() {
    let mut bench = Bench::new();
    bench.until(0);
    bench.feed(Input::Heard(beat(OTHER, 20, 1)));
    bench.feed(Input::Heard(beat(OTHER, 20, 2)));
    bench.feed(Input::Heard(Heartbeat { leaving: true, ..beat(OTHER, 20, 3) }));
    bench.until(60_000);
    assert_eq!(bench.log, ["0 linked", "0 joined 2", "0 left 2"]);
    assert_eq!(bench.state(OTHER), Some(NodeState::Left));
    // The node returns under the same id.
    bench.feed(Input::Heard(beat(OTHER, 21, 1)));
    assert_eq!((bench.log[3].as_str(), bench.state(OTHER)), ("60000 joined 2", Some(NodeState::Up)));
    bench.log.clear();
    bench.echoes = false;
    bench.feed(Input::Leave);
    assert!(bench.log.is_empty());
}

#[test]
fn a_second_process_of_the_same_name_is_found_and_its_end_too() {
    let mut bench = Bench::new();
    bench.until(0);
    // A stored heartbeat of an earlier run of this node is not another process.
    bench.feed(Input::Heard(beat(OWN, 9, 44)));
    bench.until(5_000);
    assert_eq!(bench.log, ["0 linked"]);
    for (at_ms, seq) in [(5_000, 1), (6_000, 2), (7_000, 3)] {
        bench.until(at_ms);
        bench.feed(Input::Heard(beat(OWN, 11, seq)));
    }
    assert!(bench.machine.view(bench.now()).has_double);
    bench.until(10_000);
    assert!(!bench.machine.view(bench.now()).has_double);
    assert_eq!(bench.log, ["0 linked", "6000 double true", "10000 double false"]);
}

#[test]
fn the_table_of_members_is_bounded() {
    let mut bench = Bench::new();
    bench.until(0);
    for node in 0..300 {
        bench.feed(Input::Heard(beat(100 + node, 20, 1)));
    }
    let view = bench.machine.view(bench.now());
    assert_eq!((view.members.len(), view.refused), (MEMBERS_MAX + 1, 300 - MEMBERS_MAX as u64));
}

#[test]
fn heartbeats_of_the_next_version_are_read_and_unknown_formats_are_not() {
    let written = String::from_utf8(beat(OTHER, 20, 5).write()).unwrap();
    assert_eq!(Heartbeat::read(written.as_bytes()).unwrap(), beat(OTHER, 20, 5));
    let later = written.replace("\"calls\":0", "\"calls\":0,\"colour\":{\"of\":\"paint\"}");
    assert_ne!(later, written);
    assert_eq!(Heartbeat::read(later.as_bytes()).unwrap(), beat(OTHER, 20, 5));
    let earlier = written.replace("\"loaded\":false,", "");
    assert_ne!(earlier, written);
    assert_eq!(Heartbeat::read(earlier.as_bytes()).unwrap(), beat(OTHER, 20, 5));
    let other = Heartbeat::read(b"{\"v\":2,\"who\":\"x\"}").unwrap_err();
    assert_eq!(other.to_string(), "read a heartbeat of format 2: this program reads format 1");
    for wrong in [&b""[..], b"[]", b"{}", b"{\"v\":1}", b"\xff\xfe", &[b' '; Heartbeat::BYTES_MAX + 1]] {
        assert!(Heartbeat::read(wrong).is_err());
    }
}
