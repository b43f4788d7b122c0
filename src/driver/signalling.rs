//! Passes SIP messages from the driver to the tap; without a tap, nothing is inspected or copied.

use std::sync::Arc;

use bytes::Bytes;
use sidetone_media::net::RtcpSink;
use sidetone_model::ids::CallId;
use sidetone_model::signalling::SipDirection;
use sidetone_model::time::Now;
use sidetone_sip::flow::Flow;
use sidetone_switch::machine::{Input, Output, Switch};

use crate::signalling::{OwnedCall, SignallingTap};

/// The tap, if messages are kept.
#[derive(Debug, Default)]
pub(super) struct Tapped(Option<Box<SignallingTap>>);

impl Tapped {
    /// Passes messages to this tap from now on.
    pub(super) fn by(tap: SignallingTap, switch: &mut Switch) -> Self {
        switch.watch_legs();
        Tapped(Some(Box::new(tap)))
    }

    /// A datagram that may be dropped unread.
    pub(super) fn datagram(&self, flow: Flow, bytes: &Bytes) -> Option<(Flow, Bytes)> {
        self.0.as_ref().map(|_| (flow, bytes.clone()))
    }

    /// The message of an input that is about to be fed.
    pub(super) fn message(&self, input: &Input) -> Option<(Flow, Bytes)> {
        self.0.as_ref()?;
        match input {
            Input::Datagram { flow, bytes } => Some((*flow, bytes.clone())),
            Input::Message { flow, message } => Some((*flow, message.to_bytes())),
            _ => None,
        }
    }

    /// The receiver of the RTCP of a call's legs; `None` without an export.
    pub(super) fn rtcp_of(&mut self, call: CallId) -> Option<Arc<dyn RtcpSink>> {
        self.0.as_mut()?.rtcp_of(call)
    }

    /// Passes on the message of the input that was fed, after the legs that it created.
    pub(super) fn fed(&mut self, now: Now, switch: &mut Switch, message: Option<(Flow, Bytes)>) {
        let Some(tap) = &mut self.0 else { return };
        learn(tap, switch);
        if let Some((flow, bytes)) = message {
            tap.note(now, flow, SipDirection::Received, bytes);
        }
    }

    /// Passes on an output that is about to be executed.
    pub(super) fn output(&mut self, now: Now, switch: &mut Switch, output: &Output) {
        let Some(tap) = &mut self.0 else { return };
        learn(tap, switch);
        match output {
            Output::Ended(record) => {
                tap.ended(now, record.call_uuid, record.organisation_id, record.media.as_deref())
            }
            Output::Transmit { flow, bytes, .. } => tap.note(now, *flow, SipDirection::Sent, bytes.clone()),
            _ => {}
        }
    }
}

fn learn(tap: &mut SignallingTap, switch: &mut Switch) {
    while let Some(leg) = switch.poll_leg() {
        let of = OwnedCall { call: leg.call, organisation: leg.organisation };
        tap.learn(of, &leg.call_id, &leg.our_tag, leg.peer_tag.as_deref());
    }
}
