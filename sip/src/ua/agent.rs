//! The interface of the user agent for its driver: inputs, outputs, the next timeout.

use std::time::Instant;

use bytes::Bytes;

use crate::dialog::{AnswerInput, AnswerOutput, InviteInput};
use crate::flow::Flow;
use crate::message::{Message, Uri};
use crate::transaction::{self, ClientKey, Counters, ServerKey};
use crate::ua::event::{Cause, Output};
use crate::ua::leg::{LegKey, Phase};
use crate::ua::reliable_state::Reliable;
use crate::ua::state::Ua;

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
    /// A connection has closed: requests sent on it get no more responses.
    FlowClosed {
        /// The connection.
        flow: Flow,
    },
    /// A connection could not be opened: requests sent on it get no response.
    FlowUnopened {
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
    /// The host of a destination refused a datagram.
    Refused {
        /// Its flow.
        flow: Flow,
        /// Its first bytes.
        bytes: Bytes,
    },
    /// The time of [`Ua::next_timeout`] has been reached.
    Timeout,
    /// An [`Output::Transmit`] with this key could not be sent.
    TransportError {
        /// Its key.
        key: ClientKey,
    },
}

impl Ua {
    /// Processes one event of the driver.
    pub fn handle_input(&mut self, now: Instant, input: Input) {
        match input {
            Input::Datagram { flow, bytes } => {
                self.layer.handle_input(now, transaction::Input::Datagram { flow, bytes });
            }
            Input::FlowClosed { flow } => {
                self.reopen(&flow);
                self.layer.handle_input(now, transaction::Input::FlowClosed { flow });
            }
            Input::FlowUnopened { flow } => {
                self.layer.handle_input(now, transaction::Input::FlowUnopened { flow });
            }
            Input::Message { flow, message } => {
                self.layer.handle_input(now, transaction::Input::Message { flow, message });
            }
            Input::Refused { flow, bytes } => {
                self.layer.handle_input(now, transaction::Input::Refused { flow, bytes });
            }
            Input::TransportError { key } if self.reopen_for(&key) => {}
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

    /// From now on, responses to unauthenticated senders leave no state and cannot be used as an amplifier, as a switch
    /// requires: the final response to a request outside of dialogs is stored for retransmissions only after
    /// [`Ua::prove`].
    pub fn forget_strangers(&mut self) {
        self.layer.forget_strangers();
    }

    /// Marks the sender of a request as authenticated, by its digest or by its address.
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

    /// Our tag in every message of a leg's dialogs.
    pub fn tag_of(&self, leg: LegKey) -> Option<&str> {
        Some(&self.legs.get(&leg)?.local_tag)
    }

    /// The leg with this dialog, as Replaces names it from the peer's view (RFC 3891 §3): our tag and the peer's.
    pub fn leg_of_dialog(&self, call_id: &str, local_tag: &str, remote_tag: &str) -> Option<LegKey> {
        let key = self.leg_of_tag(local_tag)?;
        let leg = self.legs.get(&key).filter(|leg| !leg.released)?;
        leg.dialog_with(call_id, remote_tag).map(|_| key)
    }

    /// The Call-ID, our tag and the peer's tag of a leg's dialog, once there is one.
    pub fn dialog_of(&self, leg: LegKey) -> Option<(&str, &str, &str)> {
        let dialog = self.legs.get(&leg).filter(|leg| !leg.released)?.dialogs.first()?;
        let id = dialog.id();
        Some((&id.call_id, &id.local_tag, &id.remote_tag))
    }

    /// The Contact of a leg's peer and the flow for requests to it, once there is a dialog.
    pub fn peer(&self, leg: LegKey) -> Option<(&Uri, Flow)> {
        let dialog = self.legs.get(&leg)?.dialogs.first()?;
        Some((dialog.remote_target(), dialog.route()))
    }

    /// Whether the peer has sent any response to our INVITE, including 100.
    pub fn is_heard(&self, leg: LegKey) -> bool {
        self.legs.get(&leg).is_some_and(|leg| leg.heard || !matches!(leg.phase, Phase::Calling { .. }))
    }

    /// Whether provisional responses to the INVITE of this leg must be reliable (RFC 3262 §3).
    pub fn needs_reliable(&self, leg: LegKey) -> bool {
        let reliable = self.legs.get(&leg).and_then(|leg| leg.reliable.as_deref());
        matches!(reliable, Some(Reliable::Sent(_)))
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
        self.repeat_reliable(now, key);
        let Some(leg) = self.legs.get_mut(&key) else { return };
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
}

/// Timers of legs that fire for one input; the others wait for the next.
const TIMEOUTS_PER_INPUT_MAX: usize = 256;
