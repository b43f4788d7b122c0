//! A query of the call log: the filter, the order, and the window.
//!
//! The scope is not part of the query: it is passed beside every query, and no query can widen it.

use crate::call::{BillingMode, Direction, Transport};
use crate::cdr::Cdr;
use crate::ids::{AgentId, CallId, CampaignId, ExtensionId, NodeId, OrganisationId, RoomId, TeamId, TrunkId};
use crate::page::{Order, Window};
use crate::quality::{Hundredths, MediaVerdict};
use crate::time::Timestamp;

/// A filter of records; every given condition must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CdrFilter {
    /// The agent of the record.
    pub agent_id: Option<AgentId>,
    /// See [`BillingMode`].
    pub billing_mode: Option<BillingMode>,
    /// The campaign that placed the call.
    pub campaign_id: Option<CampaignId>,
    /// Part of the number dialled, as routed or as keyed; in any case, every character literal.
    pub did: Option<String>,
    /// See [`Direction`].
    pub direction: Option<Direction>,
    /// The extension that called or was called.
    pub extension_id: Option<ExtensionId>,
    /// Started at this instant or later.
    pub from: Option<Timestamp>,
    /// Why the caller's leg ended; an unknown name matches nothing.
    pub hangup_cause: Option<String>,
    /// The verdict on the caller's leg.
    pub media_verdict: Option<MediaVerdict>,
    /// The verdict on the called party's leg.
    pub media_verdict_b: Option<MediaVerdict>,
    /// Billed at least this many seconds.
    pub min_billsec: Option<u64>,
    /// The caller's leg has a MOS, and it is at most this.
    pub mos_max: Option<Hundredths>,
    /// The network of either party, as [`crate::device::network`] writes it.
    pub network: Option<String>,
    /// The node that carried the call.
    pub node_id: Option<NodeId>,
    /// One of the organisations in scope.
    pub organisation_id: Option<OrganisationId>,
    /// Part of any searchable text of the record; in any case, every character literal, no line end.
    pub q: Option<String>,
    /// The text that the program gave when it requested the call, whole.
    pub reference: Option<String>,
    /// The stored conference room that a party of the call was in.
    pub room_id: Option<RoomId>,
    /// The team of the record.
    pub team_id: Option<TeamId>,
    /// Started before this instant.
    pub to: Option<Timestamp>,
    /// Whether the codecs of the two legs differ.
    pub transcoded: Option<bool>,
    /// See [`Transport`].
    pub transport: Option<Transport>,
    /// The trunk that carried the outside leg.
    pub trunk_id: Option<TrunkId>,
    /// The complete User-Agent of either party.
    pub user_agent: Option<String>,
}

/// What a list is sorted by; `call_uuid` always follows, in the same order, so that pages are disjoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(rename_all = "snake_case", default = "started_at", description = "Sort keys.")
)]
#[expect(missing_docs, reason = "the keys are fields of `Cdr`")]
pub enum CdrSort {
    Billsec,
    CallerNumber,
    DestinationNumber,
    Direction,
    EndedAt,
    Mos,
    SellAmount,
    #[default]
    StartedAt,
}

impl CdrSort {
    /// Every key with the name that the API uses.
    pub const ALL: [(CdrSort, &'static str); 8] = [
        (CdrSort::Billsec, "billsec"),
        (CdrSort::CallerNumber, "caller_number"),
        (CdrSort::DestinationNumber, "destination_number"),
        (CdrSort::Direction, "direction"),
        (CdrSort::EndedAt, "ended_at"),
        (CdrSort::Mos, "mos"),
        (CdrSort::SellAmount, "sell_amount"),
        (CdrSort::StartedAt, "started_at"),
    ];

    /// The key of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(sort, _)| *sort)
    }
}

/// A page of the call log; newest first by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CdrQuery {
    /// The filter.
    pub filter: CdrFilter,
    /// The sort key; records without a value come last in either order.
    pub sort: CdrSort,
    /// The sort order.
    pub order: Order,
    /// The window.
    pub window: Window,
}

impl Default for CdrQuery {
    fn default() -> Self {
        Window::default().into()
    }
}

impl From<Window> for CdrQuery {
    /// This window of all records, newest first.
    fn from(window: Window) -> Self {
        Self { filter: CdrFilter::default(), sort: CdrSort::default(), order: Order::Descending, window }
    }
}

/// The position of a reader in the records sorted by `started_at`; reading continues after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CdrPlace {
    /// The start of the last record read.
    pub started_at: Timestamp,
    /// Its primary key.
    pub call_uuid: CallId,
}

impl From<&Cdr> for CdrPlace {
    fn from(cdr: &Cdr) -> Self {
        Self { started_at: cdr.started_at, call_uuid: cdr.call_uuid }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_keys_are_those_of_the_document_alone() {
        for (sort, name) in CdrSort::ALL {
            assert_eq!(CdrSort::from_name(name), Some(sort));
        }
        for name in ["", "Billsec", "call_uuid", "cost_amount", "started_at_us", "started_at desc"] {
            assert_eq!(CdrSort::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn the_default_is_the_newest_first_page() {
        let query = CdrQuery::default();
        assert_eq!((query.sort, query.order), (CdrSort::StartedAt, Order::Descending));
        assert_eq!(query.window, Window::default());
    }
}
