//! The user agent itself: its state, and its interface for the driver.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use bytes::Bytes;
use rand::rngs::StdRng;

use crate::dialog::{AnswerInput, AnswerOutput, InviteInput, InviteOutput, SessionTimerConfig};
use crate::flow::Flow;
use crate::message::{Message, Uri};
use crate::transaction::deadlines::Deadlines;
use crate::transaction::{self, ClientKey, Counters, Layer, LayerConfig, ServerKey};
use crate::ua::event::{Cause, Event, Output};
use crate::ua::leg::{Leg, LegKey, Phase};

/// A user agent, client and server in one.
pub struct Ua {
    pub(super) config: UaConfig,
    pub(super) layer: Layer,
    pub(super) legs: HashMap<LegKey, Leg>,
    /// All dialogs of a leg have the same local tag.
    pub(super) legs_by_tag: HashMap<String, LegKey>,
    /// The purpose of each client transaction, until its final response.
    pub(super) purposes: HashMap<ClientKey, Purpose>,
    deadlines: Deadlines<LegKey>,
    outputs: VecDeque<Output>,
    keys: u64,
}

/// Settings of a [`Ua`].
#[derive(Clone, Debug)]
pub struct UaConfig {
    /// Settings of the transaction layer.
    pub layer: LayerConfig,
    /// The largest number of legs; a further INVITE is answered 503.
    pub legs_len_max: usize,
    /// The option tags that are accepted in Require; any other is answered 420.
    pub extensions: Vec<String>,
    /// Settings of session timers; `None` means that no leg has one.
    pub session_timer: Option<SessionTimerConfig>,
}

/// Inputs of a user agent from its driver.
#[derive(Debug)]
pub enum Input {
    /// A datagram arrived.
    Datagram {
        /// Its flow.
        flow: Flow,
        /// One datagram.
        bytes: Bytes,
    },
    /// A connection has closed: requests sent on it get no response any more.
    FlowClosed {
        /// The connection.
        flow: Flow,
    },
    /// A parsed message arrived, for example from a stream.
    Message {
        /// Its flow.
        flow: Flow,
        /// The message.
        message: Message,
    },
    /// The time of [`Ua::next_timeout`] has come.
    Timeout,
    /// An [`Output::Transmit`] with this key could not be sent.
    TransportError {
        /// Its key.
        key: ClientKey,
    },
}

/// The purpose of a client transaction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Bye(LegKey),
    Info(LegKey),
    Invite(LegKey),
    Message,
    Outside,
    /// An UPDATE that refreshes the session.
    Refresh(LegKey),
    Reinvite {
        leg: LegKey,
        cseq: u32,
        offered: bool,
    },
    Within(LegKey),
}

impl UaConfig {
    /// Space for [`LEGS_MAX`] legs, no extensions.
    pub fn new(layer: LayerConfig) -> Self {
        Self { layer, legs_len_max: LEGS_MAX, extensions: Vec::new(), session_timer: None }
    }
}

impl Ua {
    /// A user agent without legs; `rng` makes branches, tags, Call-IDs and random waits.
    pub fn new(config: UaConfig, rng: StdRng) -> Self {
        Self {
            layer: Layer::new(config.layer.clone(), rng),
            config,
            legs: HashMap::new(),
            legs_by_tag: HashMap::new(),
            purposes: HashMap::new(),
            deadlines: Deadlines::new(),
            outputs: VecDeque::new(),
            keys: 0,
        }
    }

    /// Processes one event of the driver.
    pub fn handle_input(&mut self, now: Instant, input: Input) {
        match input {
            Input::Datagram { flow, bytes } => {
                self.layer.handle_input(now, transaction::Input::Datagram { flow, bytes });
            }
            Input::FlowClosed { flow } => {
                self.layer.handle_input(now, transaction::Input::FlowClosed { flow });
            }
            Input::Message { flow, message } => {
                self.layer.handle_input(now, transaction::Input::Message { flow, message });
            }
            Input::TransportError { key } => {
                self.layer.handle_input(now, transaction::Input::TransportError { key });
            }
            Input::Timeout => {
                self.layer.handle_input(now, transaction::Input::Timeout);
                self.timeout(now);
            }
        }
        self.pump(now);
    }

    /// The next output; drain after every call that changes the user agent.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to feed [`Input::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        [self.layer.next_timeout(), self.deadlines.next()].into_iter().flatten().min()
    }

    /// Totals of messages that the transaction layer absorbed.
    pub fn counters(&self) -> Counters {
        self.layer.counters()
    }

    /// Number of legs, including those that wait for their last BYE.
    pub fn legs_len(&self) -> usize {
        self.legs.len()
    }

    /// Number of client and server transactions.
    pub fn transactions(&self) -> (usize, usize) {
        self.layer.transactions()
    }

    /// Whether there is space for requests that can also be sent later, such as keep-alives.
    pub fn has_spare_room(&self) -> bool {
        self.layer.has_spare_room()
    }

    /// Responses to unauthenticated senders leave no state and are no amplifier from now on, as a switch
    /// needs it: the final response to a request outside of dialogs is stored for retransmissions only after
    /// [`Ua::prove`].
    pub fn forget_strangers(&mut self) {
        self.layer.forget_strangers();
    }

    /// Marks the sender of a request as known, by its digest or by its address.
    pub fn prove(&mut self, key: &ServerKey) {
        self.layer.prove(key);
    }

    /// The Call-ID of a leg's INVITE.
    pub fn call_id(&self, leg: LegKey) -> Option<&str> {
        let leg = self.legs.get(&leg)?;
        match leg.dialogs.first() {
            Some(dialog) => Some(&dialog.id().call_id),
            None => leg.invite.as_ref().map(|invite| invite.call_id()),
        }
    }

    /// The Contact of a leg's peer and the flow for requests to it, once there is a dialog.
    pub fn peer(&self, leg: LegKey) -> Option<(&Uri, Flow)> {
        let dialog = self.legs.get(&leg)?.dialogs.first()?;
        Some((dialog.remote_target(), dialog.route()))
    }

    /// Whether the peer has sent any response to our INVITE, also 100.
    pub fn is_heard(&self, leg: LegKey) -> bool {
        self.legs.get(&leg).is_some_and(|leg| leg.heard || !matches!(leg.phase, Phase::Calling { .. }))
    }

    /// Handles the outputs of the layer: bytes go to the driver, events to the legs.
    pub(super) fn pump(&mut self, now: Instant) {
        while let Some(output) = self.layer.poll_output() {
            match output {
                transaction::Output::Event(event) => self.dispatch(now, event),
                transaction::Output::Overload { flow } => self.outputs.push_back(Output::Overload { flow }),
                transaction::Output::Rejected { flow, reason } => {
                    self.outputs.push_back(Output::Rejected { flow, reason });
                }
                transaction::Output::Transmit { flow, bytes, key } => {
                    self.outputs.push_back(Output::Transmit { flow, bytes, key });
                }
                transaction::Output::Withheld { flow } => self.outputs.push_back(Output::Withheld { flow }),
            }
        }
    }

    pub(super) fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    pub(super) fn overload(&mut self, flow: Flow) {
        self.outputs.push_back(Output::Overload { flow });
    }

    pub(super) fn insert_leg(&mut self, leg: Leg) -> LegKey {
        let leg = Leg { timer: self.session_timer(), ..leg };
        self.keys += 1;
        let key = LegKey(self.keys);
        self.legs_by_tag.insert(leg.local_tag.clone(), key);
        self.legs.insert(key, leg);
        key
    }

    /// Reports the end of the leg to the user, once.
    pub(super) fn release(&mut self, key: LegKey, cause: Cause) {
        if let Some(leg) = self.legs.get_mut(&key).filter(|leg| !leg.released) {
            leg.released = true;
            self.event(Event::Ended { leg: key, cause });
        }
    }

    pub(super) fn remove_leg(&mut self, now: Instant, key: LegKey) {
        if let Some(leg) = self.legs.remove(&key) {
            self.legs_by_tag.remove(&leg.local_tag);
            // Otherwise the transaction of the INVITE stays for ever when the peer sent 100 and then failed.
            if let Some(client) = &leg.reinvite {
                self.layer.cancel(now, client);
            }
            self.drop_refresh(leg.update);
        }
        self.deadlines.set(key, None);
    }

    /// Removes a leg that has nothing left to do; otherwise updates its timeout.
    pub(super) fn settle(&mut self, now: Instant, key: LegKey) {
        match self.legs.get(&key) {
            Some(leg) if matches!(leg.phase, Phase::Ending) && leg.byes == 0 => self.remove_leg(now, key),
            Some(leg) => self.deadlines.set(key, leg.next_timeout()),
            None => {}
        }
    }

    /// Our Contact for the peer of a flow.
    pub(super) fn contact(&self, flow: &Flow, user: Option<&str>) -> String {
        let local = self.config.layer.local.address(flow);
        let mut uri = Uri::sip(local.host, local.port);
        if let Some(user) = user {
            uri = uri.with_user(user);
        }
        if flow.protocol.is_reliable() {
            uri = uri.with_param("transport", Some(&flow.protocol.as_str().to_ascii_lowercase()));
        }
        format!("<{uri}>")
    }

    fn timeout(&mut self, now: Instant) {
        for _ in 0..TIMEOUTS_PER_INPUT_MAX {
            let Some(key) = self.deadlines.pop_due(now) else { return };
            self.timeout_leg(now, key);
            self.settle(now, key);
        }
    }

    fn timeout_leg(&mut self, now: Instant, key: LegKey) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        // §13.3.1.1: proxies cancel a call without a response for three minutes.
        if let Phase::Ringing { server, refresh: Some(at) } = &mut leg.phase
            && now >= *at
        {
            *at = now + crate::ua::leg::PROVISIONAL_EVERY;
            self.layer.retransmit(now, server);
        }
        if let Some(answer) = &mut leg.answer {
            answer.machine.handle_input(now, AnswerInput::Timeout);
            match answer.machine.poll_output() {
                Some(AnswerOutput::Retransmit) => self.layer.retransmit(now, &answer.key),
                Some(AnswerOutput::GiveUp) => {
                    leg.answer = None;
                    self.end_by_bye(now, key, Cause::AckMissing);
                    return;
                }
                None => {}
            }
        }
        if let Some(leg) = self.legs.get_mut(&key) {
            leg.usage.handle_input(now, InviteInput::Timeout, self.layer.rng());
        }
        self.poll_usage(key);
        self.poll_timer(now, key);
    }

    /// Passes a due retry of an INVITE to the user.
    pub(super) fn poll_usage(&mut self, key: LegKey) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        if let Some(InviteOutput::Retry) = leg.usage.poll_output()
            && !leg.released
        {
            self.event(Event::ReinviteDue { leg: key });
        }
    }
}

/// Default bound of the table of legs: 5,000 calls of two legs.
pub const LEGS_MAX: usize = 10_000;

/// Timers of legs that fire for one input; the others wait for the next.
const TIMEOUTS_PER_INPUT_MAX: usize = 256;
