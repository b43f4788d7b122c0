//! Answers the queries of the tasks that exchange state with other nodes or store bindings.

use sidetone_model::time::Now;

use crate::binding_queries;
use crate::call_control::CallControl;
use crate::kept_bindings::ChangedBindings;
use crate::outbound_decisions;
use crate::queries::{Answer, ExpectRoom, HandOverRoom, KeepRoom, Query};
use crate::room_owners::{self, RoomOwners};
use crate::shared::Shared;

/// Answers such a query; `None` for any other.
pub(super) fn answer(
    now: Now,
    query: Query,
    (owners, changed): (&mut RoomOwners, &mut ChangedBindings),
    control: &mut CallControl,
    shared: &mut Shared,
) -> Option<Answer> {
    Some(match query {
        Query::CreditNeeds(_) => Answer::CreditNeeds(control.billing.credit_needs(now)),
        Query::ReserveCredit(query) => {
            control.billing.reserved(now, query.0);
            Answer::ReserveCredit(())
        }
        Query::DecideOutbound(query) => {
            outbound_decisions::decide(now, query.0, control, shared);
            Answer::DecideOutbound(())
        }
        Query::ExpectRoom(ExpectRoom(state)) => {
            Answer::ExpectRoom(control.accepts && control.conferences.rooms.expect(now, state))
        }
        Query::HandOverRoom(HandOverRoom(room)) => {
            Answer::HandOverRoom(owners.handovers.begin(now, room, control, shared))
        }
        Query::KeepRoom(KeepRoom(room)) => {
            owners.handovers.keep(now, room, control, shared);
            Answer::KeepRoom(())
        }
        Query::ReplaceRoomOwners(query) => {
            Answer::ReplaceRoomOwners(room_owners::replace(now, query.0, owners, control, shared))
        }
        Query::TakeOutboundNeeds(_) => {
            Answer::TakeOutboundNeeds(outbound_decisions::take_needs(control, shared))
        }
        Query::TakeWantedRooms(_) => {
            Answer::TakeWantedRooms(room_owners::wanted(now, owners, control, shared))
        }
        query => return binding_queries::answer(now, query, changed, control, shared),
    })
}
