//! Answers queries about trunks.

use std::net::SocketAddr;
use std::time::Duration;

use sidetone_model::call::Direction;
use sidetone_model::ids::TrunkId;
use sidetone_model::quality::Hundredths;
use sidetone_model::time::Now;
use sidetone_model::trunk_status::{TrunkAddressState, TrunkAddressStatus, TrunkStatus};

use crate::call_table::CallTable;
use crate::hunt::Hunt;
use crate::live::LiveCall;
use crate::registering::Registrations;
use crate::shared::Shared;
use crate::trunk_servers::next_hops;

/// Returns the state of a trunk; `None` when the directory has no such trunk.
///
/// *Bounds*: it iterates over all live calls.
pub(super) fn status(
    now: Now,
    id: TrunkId,
    calls: &CallTable,
    registrations: &Registrations,
    shared: &Shared,
) -> Option<TrunkStatus> {
    let trunk = shared.directory.trunk(id)?;
    // The trunk of a forwarded inbound call is the one that it came from; its hunt has the other one.
    let called = |live: &LiveCall| match live.call.facts().direction {
        Direction::Inbound => live.hunt.as_ref().and_then(Hunt::calls),
        Direction::Internal => None,
        Direction::Outbound => live.call.facts().trunk,
    };
    let is_of = |live: &LiveCall| live.call.facts().trunk == Some(id) || called(live) == Some(id);
    let live = || calls.iter().filter(|live| is_of(live) && live.state().is_some());
    // Servers are tried in turn: the last leg is the current one.
    let server_of = |live: &LiveCall| {
        live.callees.iter().rev().find(|callee| callee.leg.is_some()).map(|callee| callee.flow.remote)
    };
    let outbound = |address: SocketAddr| {
        let is_there = |live: &&LiveCall| called(live) == Some(id) && server_of(live) == Some(address);
        live().filter(is_there).count() as u64
    };
    let mut addresses = Vec::new();
    for server in next_hops(trunk) {
        for address in shared.trunks.addresses_of(id, &server) {
            let probe = shared.trunks.health.probe(id, address);
            addresses.push(TrunkAddressStatus {
                server: server.to_string(),
                address: address.to_string(),
                state: probe.map_or(TrunkAddressState::Unknown, |probe| probe.state),
                round_trip_ms: probe.and_then(|probe| probe.round_trip).map(hundredths_of_ms),
                checked_at: probe.map(|probe| probe.checked_at),
                outbound_calls: outbound(address),
            });
        }
    }
    Some(TrunkStatus {
        trunk_id: id,
        registration: registrations.status(now, id),
        calls: live().count() as u64,
        addresses,
        refusals: shared.trunks.health.refusals(id),
    })
}

fn hundredths_of_ms(duration: Duration) -> Hundredths {
    Hundredths(i64::try_from(duration.as_micros() / 10).unwrap_or(i64::MAX))
}
