//! Events of media ports: each concerns a call, and a room if the leg is seated in one.

use sidetone_media::session::Report;
use sidetone_model::ids::{CallId, LegId};
use sidetone_model::time::Now;

use crate::call_control::CallControl;
use crate::conference;
use crate::dtmf::DtmfSource;
use crate::io::{self, PortId};
use crate::live_media::{self, MediaQueries};
use crate::messaging;
use crate::played;
use crate::shared::Shared;
use crate::switch_io::{Input, Output};

/// Routes an input about a media port to its call or its seat.
pub(super) fn handle(
    now: Now,
    input: Input,
    control: &mut CallControl,
    shared: &mut Shared,
    media_queries: &mut MediaQueries,
) {
    let mut reported =
        |control: &CallControl, shared: &mut Shared, call: CallId, port: PortId, report: &Report| {
            media_queries.reported(now, (call, port), report, &control.calls, &mut shared.outputs);
        };
    match input {
        Input::Digit(port, digit) => {
            if let Some(leg) = control.calls.leg_at(port) {
                control.conferences.keyed(now, leg, digit, DtmfSource::Media);
            }
        }
        Input::Key(port, digit, duration_ms) => {
            let io = (&mut shared.ua, &mut shared.outputs);
            messaging::keyed(now, port, (digit, duration_ms), &control.calls, io);
        }
        Input::Played(port, token) => played::played(now, port, token, control, shared),
        Input::Talking(port, talks) => {
            seat_input(now, port, control, |leg| conference::Input::Talking(leg, talks));
        }
        Input::Report(port, report) => {
            if let Some(call) = control.calls.remove_port(port) {
                reported(control, shared, call, port, &report);
                control.feed(now, call, io::Input::Report(port, report), shared);
            }
        }
        Input::Silent(port, silent_for) => {
            seat_input(now, port, control, |leg| conference::Input::Silent(leg, silent_for.is_some()));
            if let Some(call) = control.calls.call_at(port) {
                control.feed(now, call, io::Input::Silent(port, silent_for), shared);
            }
        }
        Input::Snapshot(port, report) => {
            if let Some(call) = control.calls.call_at(port) {
                reported(control, shared, call, port, &report);
            }
        }
        Input::Warning(port, warning) => {
            let event = live_media::warning_event(now, port, &warning, &mut control.calls);
            shared.outputs.extend(event.map(|event| Output::News(Box::new(event.into()))));
        }
        _ => {} // The caller passes only the inputs above.
    }
}

/// Feeds an event of a port to the rooms, if its leg belongs to them.
fn seat_input(
    now: Now,
    port: PortId,
    control: &mut CallControl,
    input: impl FnOnce(LegId) -> conference::Input,
) {
    if let Some(leg) = control.calls.leg_at(port).filter(|leg| control.conferences.has(*leg)) {
        control.conferences.handle_input(now, input(leg));
    }
}
