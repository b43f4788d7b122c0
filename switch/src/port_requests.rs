//! Requests of calls for media ports, within the share of their organisation.

use std::net::IpAddr;

use sidetone_model::ids::CallId;

use crate::call_table::CallTable;
use crate::io::{Input, LegName};
use crate::routing::is_short;
use crate::shared::Shared;
use crate::switch_io::Output;

/// Outputs the request of a call for the port of a leg, and one for its video. Returns the refusal if the organisation
/// holds its share of the ports; an emergency call is never refused.
pub(super) fn request(
    id: CallId,
    (fork, towards, video): (Option<usize>, IpAddr, bool),
    calls: &CallTable,
    shared: &mut Shared,
) -> Option<Input> {
    let live = calls.get(id)?;
    let is_emergency = live.hunt.as_ref().is_some_and(|hunt| is_short(&hunt.number));
    let (organisation, is_alone) =
        (live.call.facts().organisation, !shared.directory.has_several_organisations());
    let allows = |count| is_emergency || calls.shares().allow(organisation, count, is_alone);
    if !allows(1) {
        return Some(Input::PortOpened(None));
    }
    let leg = LegName { call: id, fork };
    let (group, video) = (live.call.group(), video && allows(2));
    shared.outputs.push_back(Output::OpenPort { leg, group, towards, video });
    None
}
