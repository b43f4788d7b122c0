//! Ladder tests of the four machines: a script of inputs, and a ladder of all events as result.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use expect_test::Expect;

use super::client::{Client, ClientInput, ClientOutput, ResponseClass};
use super::client_invite::ClientInvite;
use super::server::{Server, ServerInput, ServerOutput};
use super::server_invite::ServerInvite;
use super::timers::Timer;

pub(crate) enum AnyClient {
    Invite(ClientInvite),
    Other(Client),
}

pub(crate) enum AnyServer {
    Invite(ServerInvite),
    Other(Server),
}

/// The actions of a script on a machine.
trait Machine {
    fn feed(&mut self, now: Instant, word: Option<&str>);
    fn drain(&mut self) -> Vec<&'static str>;
    fn next_timer(&self) -> Option<(Timer, Instant)>;
}

/// A start time; machines never read a clock.
#[expect(clippy::disallowed_methods, reason = "tests need one Instant to begin with")]
pub(crate) fn start() -> Instant {
    Instant::now()
}

/// `script`: `"100 180, 200 cancel"` — milliseconds, then a status, `cancel` or `error`.
pub(crate) fn check_client(new: impl Fn(Instant) -> AnyClient, script: &str, expected: Expect) {
    expected.assert_eq(&climb(new, script));
}

/// `script`: `"100 180, 200 ack, 300 request"` — milliseconds, then the user's status, `ack` or `request`.
pub(crate) fn check_server(new: impl Fn(Instant) -> AnyServer, script: &str, expected: Expect) {
    expected.assert_eq(&climb(new, script));
}

fn climb<M: Machine>(new: impl Fn(Instant) -> M, script: &str) -> String {
    let zero = start();
    let mut machine = new(zero);
    let mut out = String::new();
    print(&mut out, Duration::ZERO, "new", &machine.drain());
    for step in script.split(',').map(str::trim).filter(|step| !step.is_empty()) {
        let (at_ms, word) = step.split_once(' ').expect("`<ms> <word>`");
        let at = Duration::from_millis(at_ms.parse().expect("milliseconds"));
        run_timers(&mut machine, zero, Some(at), &mut out);
        machine.feed(zero + at, Some(word));
        print(&mut out, at, word, &machine.drain());
    }
    run_timers(&mut machine, zero, None, &mut out);
    out
}

fn run_timers(machine: &mut impl Machine, zero: Instant, until: Option<Duration>, out: &mut String) {
    for _ in 0..RUNGS_MAX {
        let Some((timer, at)) = machine.next_timer() else { return };
        if until.is_some_and(|until| at - zero > until) {
            return;
        }
        machine.feed(at, None);
        print(out, at - zero, &format!("timer {timer}"), &machine.drain());
    }
    panic!("the machine never rests:\n{out}");
}

fn print(out: &mut String, at: Duration, input: &str, outputs: &[&str]) {
    let line = format!("{:<9}{input:<16} {}", format!("{}ms", at.as_millis()), outputs.join(", "));
    writeln!(out, "{}", line.trim_end()).expect("a String takes all");
}

impl Machine for AnyClient {
    fn feed(&mut self, now: Instant, word: Option<&str>) {
        let input = match word {
            None => ClientInput::Timeout,
            Some("cancel") => ClientInput::Cancel,
            Some("error") => ClientInput::TransportError,
            Some(status) => ClientInput::Response(ResponseClass::of(status.parse().expect("a status"))),
        };
        match self {
            AnyClient::Invite(machine) => machine.handle_input(now, input),
            AnyClient::Other(machine) => machine.handle_input(now, input),
        }
    }

    fn drain(&mut self) -> Vec<&'static str> {
        std::iter::from_fn(|| match self {
            AnyClient::Invite(machine) => machine.poll_output(),
            AnyClient::Other(machine) => machine.poll_output(),
        })
        .map(|output| match output {
            ClientOutput::Deliver => ">tu response",
            ClientOutput::SendAck => ">net ACK",
            ClientOutput::SendCancel => ">net CANCEL",
            ClientOutput::SendRequest => ">net request",
            ClientOutput::Terminated => "end",
            ClientOutput::TimedOut(_) => ">tu timeout",
            ClientOutput::Unreachable => ">tu unreachable",
        })
        .collect()
    }

    fn next_timer(&self) -> Option<(Timer, Instant)> {
        match self {
            AnyClient::Invite(machine) => machine.next_timer(),
            AnyClient::Other(machine) => machine.next_timer(),
        }
    }
}

impl Machine for AnyServer {
    fn feed(&mut self, now: Instant, word: Option<&str>) {
        let input = match word {
            None => ServerInput::Timeout,
            Some("ack") => ServerInput::Ack,
            Some("request") => ServerInput::Request,
            Some(status) => ServerInput::Response(ResponseClass::of(status.parse().expect("a status"))),
        };
        match self {
            AnyServer::Invite(machine) => machine.handle_input(now, input),
            AnyServer::Other(machine) => machine.handle_input(now, input),
        }
    }

    fn drain(&mut self) -> Vec<&'static str> {
        std::iter::from_fn(|| match self {
            AnyServer::Invite(machine) => machine.poll_output(),
            AnyServer::Other(machine) => machine.poll_output(),
        })
        .map(|output| match output {
            ServerOutput::DeliverAck => ">tu ACK",
            ServerOutput::NoAck => ">tu no ACK",
            ServerOutput::SendResponse => ">net response",
            ServerOutput::SendTrying => ">net 100",
            ServerOutput::Terminated => "end",
        })
        .collect()
    }

    fn next_timer(&self) -> Option<(Timer, Instant)> {
        match self {
            AnyServer::Invite(machine) => machine.next_timer(),
            AnyServer::Other(machine) => machine.next_timer(),
        }
    }
}

impl From<ClientInvite> for AnyClient {
    fn from(machine: ClientInvite) -> Self {
        AnyClient::Invite(machine)
    }
}

impl From<Client> for AnyClient {
    fn from(machine: Client) -> Self {
        AnyClient::Other(machine)
    }
}

impl From<ServerInvite> for AnyServer {
    fn from(machine: ServerInvite) -> Self {
        AnyServer::Invite(machine)
    }
}

impl From<Server> for AnyServer {
    fn from(machine: Server) -> Self {
        AnyServer::Other(machine)
    }
}

/// A machine that fires more timers than this without input has a bug.
const RUNGS_MAX: usize = 64;
