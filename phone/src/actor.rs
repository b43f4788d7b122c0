//! The task of one phone: routes commands, datagrams, timers and events between its parts.

use std::time::{Duration, Instant};

use sidetone_sip::message::Method;
use sidetone_sip::ua::{Event, Input, Output, Receipt};
use tokio::sync::{mpsc, watch};

use crate::calls::CallTable;
use crate::command::Command;
use crate::config::{Calls, News};
use crate::endpoint::{Endpoint, now};
use crate::referrals::Referrals;
use crate::requests::Requests;
use crate::transport::Arrived;

/// One phone's state.
pub(super) struct Actor {
    phone: Endpoint,
    calls: CallTable,
    requests: Requests,
    referrals: Referrals,
    owner: Owner,
}

/// The channels to the phone's owner.
pub(super) struct Owner {
    pub(super) inbox: mpsc::Receiver<Command>,
    pub(super) counted: watch::Sender<Calls>,
}

impl Actor {
    pub(super) fn new(phone: Endpoint, requests: Requests, owner: Owner) -> Actor {
        Actor { phone, calls: CallTable::default(), requests, referrals: Referrals::default(), owner }
    }

    pub(super) async fn run(mut self) {
        loop {
            self.settle().await;
            let calls = self.calls.count();
            self.owner.counted.send_if_modified(|counted| std::mem::replace(counted, calls) != calls);
            let dues = [self.phone.ua.next_timeout(), self.calls.next_due(), self.requests.next_due()];
            let due = dues.into_iter().flatten().min().unwrap_or_else(|| now() + IDLE);
            tokio::select! {
                arrived = self.phone.transport.receive() => self.arrived(arrived),
                command = self.owner.inbox.recv() => match command {
                    Some(command) => self.command(command).await,
                    None => return,
                },
                () = tokio::time::sleep_until(due.into()) => self.timeout(now()),
            }
        }
    }

    fn arrived(&mut self, arrived: Arrived) {
        let phone = &mut self.phone;
        match arrived {
            Arrived::Closed => phone.report(News::Lost),
            Arrived::Message { from, .. }
                if phone.config.only_the_switch && from.ip() != phone.config.switch.ip() => {}
            Arrived::Message { from, bytes } => {
                if let Some(tap) = &phone.config.tap {
                    tap.note(from, phone.local(), &bytes);
                }
                let flow = phone.transport.flow_of(from);
                phone.ua.handle_input(now(), Input::Datagram { flow, bytes });
            }
        }
    }

    async fn command(&mut self, command: Command) {
        let Actor { phone, calls, requests, referrals, .. } = self;
        match command {
            Command::Acknowledge(id, at, done) => requests.acknowledge(phone, &id, at, done),
            Command::Answer(done) => {
                // The owner may have dropped the phone; then no caller waits.
                let _ = done.send(calls.answer_ringing(phone));
            }
            Command::Call(plan, done) => calls.place(phone, plan, done).await,
            Command::Decline => calls.decline(phone),
            Command::Dial(digits, done) => {
                let _ = done.send(calls.dial(&digits));
            }
            Command::HangUp => calls.hang_up(phone),
            Command::Move => calls.move_media(phone).await,
            Command::Notes(notes) => phone.config.notes = notes,
            Command::Offer(direction) => calls.offer_all(phone, direction),
            Command::Refer(number, done) => {
                referrals.refer_to_number(phone, calls.newest_up(), &number, done)
            }
            Command::ReferToCall(done) => referrals.refer_to_leg(phone, calls.two_up(), done),
            Command::Register(seconds, done) => requests.register(phone, seconds, done),
            Command::Send(parcel, done) => requests.send(phone, &parcel, calls.newest_up(), done),
        }
    }

    /// Executes the outputs of the user agent.
    async fn settle(&mut self) {
        while let Some(output) = self.phone.ua.poll_output() {
            match output {
                Output::Transmit { flow, bytes, .. } => {
                    if let Some(tap) = &self.phone.config.tap {
                        tap.note(self.phone.local(), flow.remote, &bytes);
                    }
                    // If the system refuses a datagram, it is lost, as on any network.
                    let _ = self.phone.transport.send(flow.remote, &bytes).await;
                }
                Output::Event(event) => self.event(event).await,
                Output::Hold { .. }
                | Output::Overload { .. }
                | Output::Rejected { .. }
                | Output::Withheld { .. } => {}
            }
        }
        self.calls.report_outcomes();
    }

    async fn event(&mut self, event: Event) {
        let Actor { phone, calls, requests, referrals, .. } = self;
        match event {
            Event::Invited { leg, key, request, .. } => calls.ring(phone, leg, key, &request).await,
            Event::Answered { leg, response } => calls.answered(phone, leg, &response),
            Event::Progress { leg, response } => calls.progress(phone, leg, &response),
            Event::Reinvited { leg, key, request, .. } => calls.reinvited(phone, leg, &key, &request),
            Event::Response { leg, key, response, request, .. } => {
                let is_invite = response.cseq().is_ok_and(|cseq| cseq.method == Method::Invite);
                match leg.filter(|_| is_invite) {
                    _ if referrals.response(phone, key, &response, request.as_ref()) => {}
                    Some(leg) => calls.reinvite_answered(phone, leg, &response),
                    None => requests.response(phone, key, &response, request),
                }
            }
            Event::InfoAnswered { key, receipt, .. } | Event::MessageAnswered { key, receipt } => {
                match receipt {
                    Receipt::Answered { response, request, .. } => {
                        requests.response(phone, key, &response, request);
                    }
                    Receipt::TimedOut | Receipt::Unreachable => requests.unanswered(key),
                }
            }
            Event::Unanswered { key, .. } if referrals.unanswered(key) => {}
            Event::Unanswered { key, .. } => requests.unanswered(key),
            Event::Request { leg, key, request, .. } => match request.method() {
                Method::Info | Method::Message => requests.note(phone, leg, key, &request),
                Method::Notify => referrals.notified(phone, leg, &key, &request),
                Method::Options => phone.respond(&key, 200),
                _ => phone.respond(&key, 405),
            },
            Event::Ended { leg, cause } => {
                referrals.ended(leg);
                calls.ended(phone, leg, cause);
            }
            Event::Acked { leg, .. } => calls.up(phone, leg),
            // It offers again at `ReinviteDue`.
            Event::ReinviteCancelled { .. } | Event::ReinviteClashed { .. } => {}
            Event::ReinviteDue { leg } => calls.offer_again(phone, leg),
            // UPDATE is not in its Allow.
            Event::Updated { key, .. } => phone.respond(&key, 405),
            // Only with session timers, subscriptions and reliable responses, which this phone does not support.
            Event::NotifyAnswered { .. }
            | Event::OfferUnanswered { .. }
            | Event::RefreshDue { .. }
            | Event::Resubscribed { .. } => {}
        }
    }

    fn timeout(&mut self, now: Instant) {
        if self.phone.ua.next_timeout().is_some_and(|at| at <= now) {
            self.phone.ua.handle_input(now, Input::Timeout);
        }
        self.calls.timeout(&mut self.phone, now);
        self.requests.timeout(&mut self.phone, now);
    }
}

/// How long a phone with nothing to wait for sleeps.
const IDLE: Duration = Duration::from_secs(3_600);
