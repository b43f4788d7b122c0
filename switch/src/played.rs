//! The end of a prompt: the chime of a star code, a prompt that a program plays into a call, or one of a room.

use sidetone_model::call::HangupCause;
use sidetone_model::time::Now;

use crate::call_control::CallControl;
use crate::conference;
use crate::io::{Input, PortId};
use crate::linked_operations;
use crate::live::LiveCall;
use crate::shared::Shared;

/// Passes the end of the prompt with this token at a port to the part that plays it.
pub(super) fn played(now: Now, port: PortId, token: u64, control: &mut CallControl, shared: &mut Shared) {
    let Some(call) = control.calls.call_at(port) else { return };
    let has_prompt = |live: &LiveCall| live.call.parties().prompt().is_some();
    if control.star_codes.confirms(call) {
        control.feed(now, call, Input::End(HangupCause::NormalClearing), shared);
    } else if control.calls.get(call).is_some_and(has_prompt) {
        control.feed(now, call, Input::Played(port, token), shared);
        linked_operations::played(now, call, control, shared);
    } else if let Some(leg) = control.calls.leg_at(port).filter(|leg| control.conferences.has(*leg)) {
        control.conferences.handle_input(now, conference::Input::Played(leg, token));
    }
}
