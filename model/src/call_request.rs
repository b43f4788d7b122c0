//! Calls that programs request: the request, its state, and the port that places the calls.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::access::Scope;
use crate::call::{HangupCause, words};
use crate::call_fields::GivenFields;
use crate::call_operation::CallOperation;
use crate::ids::{CallId, CallRequestId, ExtensionId, OrganisationId, TeamId};
use crate::page::{Page, Window};
use crate::port_future::PortFuture;
use crate::problem::{FieldProblem, Problem};
use crate::time::Timestamp;

/// A call as a program requests it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedCall {
    /// The extension that rings first: its id or number, its agent's id, or its user's email address.
    pub from: String,
    /// The number to call after `from` has answered.
    pub to: String,
    /// The number shown to an outside party; one of the organisation's.
    pub caller_id: Option<String>,
    /// A text of the program, stored with the record.
    pub reference: Option<String>,
    /// How long each side rings.
    pub ring_seconds: u32,
    /// Whether the phone of `from` is requested to answer by itself.
    pub auto_answer: bool,
    /// The longest duration of the answered call.
    pub max_seconds: Option<u32>,
    /// Texts of the program.
    pub variables: BTreeMap<String, String>,
    /// The URL to which the progress of the call is reported.
    pub callback_url: Option<String>,
}

/// The order to the switch: the request with its extension, under the id of its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOrder {
    /// The call.
    pub call: CallId,
    /// The extension that rings first.
    pub from: ExtensionId,
    /// The request.
    pub requested: RequestedCall,
}

/// The answer of the switch to a request that it could execute now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeable {
    /// The id for its call.
    pub call: CallId,
    /// The result of the checks.
    pub would: WouldCall,
    /// What may keep the call from succeeding.
    pub warnings: Vec<String>,
}

/// What a request would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WouldCall {
    /// The phone that would ring first.
    pub from: WouldRing,
    /// The target.
    pub to: WouldReach,
    /// The kind of the target's route.
    pub route: RouteKind,
    /// The price of a minute; zero when the call is not billed.
    #[cfg_attr(feature = "openapi", schema(example = "0.02"))]
    pub sell_per_minute: String,
    /// The currency of the price, or that of the organisation.
    #[cfg_attr(feature = "openapi", schema(example = "EUR"))]
    pub currency: String,
}

/// The extension that would ring first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WouldRing {
    /// The extension.
    pub extension_id: ExtensionId,
    /// Its number.
    pub number: String,
    /// How many phones are registered for it.
    pub phones: u32,
}

/// The target that would be called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WouldReach {
    /// The number as routed.
    pub number: String,
    /// The number that an outside party would be shown; absent when it would be shown none, and for an internal call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller_id: Option<String>,
}

/// The kind of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum RouteKind {
    /// An extension of the organisation.
    Extension,
    /// An outside number.
    Outside,
    /// A conference room.
    Room,
}

/// Why the switch does not place a requested call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceRefused {
    /// The node accepts no new call now.
    Busy,
    /// The extension has no registered phone.
    Unregistered,
    /// These fields are wrong.
    Wrong(Vec<FieldProblem>),
}

/// Why a requested call cannot be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelRefused {
    /// Both sides have answered.
    Answered,
    /// It is not live.
    Gone,
}

words! {
    /// How far a request has come.
    RequestState {
        /// Both sides have answered.
        Answered = "answered",
        /// `from` has answered, and `to` is called.
        Calling = "calling",
        /// It was cancelled before both sides had answered.
        Cancelled = "cancelled",
        /// The answered call is over.
        Completed = "completed",
        /// It ended without an answer of both sides; `reason` says why.
        Failed = "failed",
        /// Stored; nothing rings yet.
        Queued = "queued",
        /// `from` is called.
        Ringing = "ringing",
    }
}

impl RequestState {
    /// Whether no other state follows.
    pub const fn is_final(self) -> bool {
        matches!(self, RequestState::Cancelled | RequestState::Completed | RequestState::Failed)
    }
}

/// A change of a requested call, as the switch reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestChange {
    /// The call.
    pub call: CallId,
    /// The new state.
    pub state: RequestState,
    /// The reason, for a final state other than `completed`.
    pub reason: Option<String>,
    /// When it happened.
    pub at: Timestamp,
}

/// A stored request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CallRequest {
    /// The request.
    pub id: CallRequestId,
    /// The call, and its record later.
    pub call_uuid: CallId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// The team of the extension of `from`; decides who may see the request.
    #[serde(skip)]
    pub team_id: Option<TeamId>,
    /// How far it has come.
    pub state: RequestState,
    /// Why it failed or was cancelled, such as `no_answer`, `busy`, `cancelled`, `node_restarted`; the list is open.
    /// Absent in other states.
    #[cfg_attr(feature = "openapi", schema(example = "no_answer"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The caller, as requested.
    pub from: String,
    /// The extension of `from`.
    pub extension_id: ExtensionId,
    /// The target, as requested.
    pub to: String,
    /// The program's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The program's texts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// The URL that the progress is reported to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    /// When it was stored.
    pub created_at: Timestamp,
    /// When `from` answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_answered_at: Option<Timestamp>,
    /// When `to` answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_answered_at: Option<Timestamp>,
    /// When it reached a final state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The call's record, by its `call_uuid`; absent until it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cdr: Option<CallId>,
}

/// A query of requests, newest first; every given filter must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestQuery {
    /// One of the organisations in scope.
    pub organisation_id: Option<OrganisationId>,
    /// The state.
    pub state: Option<RequestState>,
    /// The complete text of the program.
    pub reference: Option<String>,
    /// The window.
    pub window: Window,
}

/// Places calls for programs.
pub trait CallRequests: Send + Sync {
    /// Makes every check of a request of `organisation` inside `scope`; nothing rings.
    fn check(
        &self,
        scope: Scope,
        organisation: OrganisationId,
        requested: RequestedCall,
    ) -> PortFuture<'_, Placeable>;

    /// Returns the problems of `given`, for a request whose other fields are already refused, so that one answer names
    /// all.
    fn wrong_fields(&self, scope: Scope, given: GivenFields) -> PortFuture<'_, Vec<FieldProblem>>;

    /// Stores a request, and then places its call.
    fn place(
        &self,
        scope: Scope,
        organisation: OrganisationId,
        requested: RequestedCall,
    ) -> PortFuture<'_, CallRequest>;

    /// One request, of any organisation.
    fn find(&self, request: CallRequestId) -> PortFuture<'_, Option<CallRequest>>;

    /// The requests inside `scope`, newest first.
    fn list<'a>(&'a self, scope: Scope, query: &'a RequestQuery) -> PortFuture<'a, Page<CallRequest>>;

    /// Cancels a request; a conflict if both sides have answered or the request is final.
    fn cancel(&self, request: CallRequestId) -> PortFuture<'_, ()>;

    /// Ends a live call; returns whether there was one.
    fn end_call(&self, call: CallId) -> PortFuture<'_, bool>;

    /// Begins an operation on a live call; returns the call of a transfer's target, otherwise the same call.
    ///
    /// # Errors
    /// [`OperationRefused`](crate::call_operation::OperationRefused) as a [`Problem`].
    fn operate(&self, operation: CallOperation) -> PortFuture<'_, CallId>;

    /// Calls the phones of an extension of `organisation` inside `scope`, which picks up a live call; returns the call
    /// to the phones.
    ///
    /// # Errors
    /// As for [`CallRequests::operate`]; unprocessable if the extension does not exist, forbidden if it is outside
    /// `scope`.
    fn pick_up<'a>(
        &'a self,
        scope: Scope,
        organisation: OrganisationId,
        call: CallId,
        from: &'a str,
    ) -> PortFuture<'a, CallId>;
}

/// Returns the reason of a request whose call ended with `cause`.
pub fn reason_of(cause: HangupCause) -> String {
    match cause {
        HangupCause::CallRejected => "declined".to_owned(),
        HangupCause::OriginatorCancel => "hung_up".to_owned(),
        HangupCause::SwitchCongestion => "node_busy".to_owned(),
        HangupCause::UserBusy => "busy".to_owned(),
        HangupCause::UserNotRegistered => "unregistered".to_owned(),
        other => other.as_str().to_ascii_lowercase(),
    }
}

impl From<PlaceRefused> for Problem {
    fn from(refused: PlaceRefused) -> Self {
        match refused {
            PlaceRefused::Busy => Problem::Busy { retry_after_s: BUSY_RETRY_S },
            PlaceRefused::Unregistered => {
                Problem::Conflict("from: the extension has no registered phone".to_owned())
            }
            PlaceRefused::Wrong(fields) => Problem::Unprocessable(fields),
        }
    }
}

impl From<CancelRefused> for Problem {
    fn from(refused: CancelRefused) -> Self {
        Problem::Conflict(match refused {
            CancelRefused::Answered => {
                "both sides have answered, end the call with DELETE /calls/{uuid}".to_owned()
            }
            CancelRefused::Gone => "the request is over".to_owned(),
        })
    }
}

/// Seconds until a program may place a call again at a busy node.
pub const BUSY_RETRY_S: u64 = 30;
/// The reason of a request whose call was interrupted by a crash or restart of the node.
pub const NODE_RESTARTED: &str = "node_restarted";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_match_the_json() {
        for (state, name) in RequestState::ALL {
            assert_eq!(RequestState::from_name(name), Some(*state));
            assert_eq!(serde_json::to_value(state).unwrap(), *name);
        }
    }

    #[test]
    fn reasons_are_words_of_the_api() {
        let cases = [
            (HangupCause::NoAnswer, "no_answer"),
            (HangupCause::UserBusy, "busy"),
            (HangupCause::CallRejected, "declined"),
            (HangupCause::UserNotRegistered, "unregistered"),
        ];
        for (cause, reason) in cases {
            assert_eq!(reason_of(cause), reason);
        }
    }
}
