//! Implements the API's port: resolves the caller, checks with the switch, stores the request, and places its call
//! after the commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sidetone_model::access::Scope;
use sidetone_model::call_fields::GivenFields;
use sidetone_model::call_operation::CallOperation;
use sidetone_model::call_parking::PickUpOrder;
use sidetone_model::call_request::{
    BUSY_RETRY_S, CallOrder, CallRequest, CallRequests, CancelRefused, PlaceRefused, Placeable,
    RequestChange, RequestQuery, RequestState, RequestedCall,
};
use sidetone_model::ids::{CallId, CallRequestId, NodeId, OrganisationId};
use sidetone_model::page::Page;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::{FieldProblem, Problem};
use sidetone_model::room::{RoomName, Rooms};
use sidetone_store::{NamedExtension, Store};
use sidetone_switch::queries::{CancelCall, CheckCall, EndCall, Operate, PlaceCall, WrongFields};
use uuid::Uuid;

use crate::clock::{Clock, instant};
use crate::driver::Handle;
use crate::load::Load;
use crate::supervise::{Supervisor, Task};

/// Places calls on behalf of programs; clones share the switch.
#[derive(Clone)]
pub struct CallRequestService {
    /// The store.
    pub store: Store,
    /// The switch.
    pub switch: Handle,
    /// This node.
    pub node: NodeId,
    /// The clock.
    pub clock: Clock,
    /// The owner of the tasks that place calls.
    pub supervisor: Supervisor,
    /// How many media ports the relay can open at the same time.
    pub ports_max: usize,
    /// The load of this node.
    pub load: Arc<Load>,
    /// Whether this node drains.
    pub draining: Arc<AtomicBool>,
}

impl CallRequestService {
    /// Returns the extension that `from` identifies, inside `scope`.
    async fn extension(
        &self,
        scope: Scope,
        organisation: OrganisationId,
        from: &str,
    ) -> Result<NamedExtension, Problem> {
        let named = self.store.extension_named(organisation, from).await?;
        let named = named.ok_or_else(|| Problem::Unprocessable(vec![no_extension()]))?;
        require_covered(scope, &named)?;
        Ok(named)
    }

    /// Checks that a conference room which `to` names by its id is inside `scope`. A room that does not exist is a wrong
    /// field of the request.
    async fn require_reached_room(&self, scope: Scope, to: &str) -> Result<(), Problem> {
        let name = to.to_ascii_lowercase().parse::<RoomName>().ok();
        let Some(room) = name.and_then(RoomName::room_id) else { return Ok(()) };
        match self.store.find(room).await? {
            Some(room) if !scope.reaches(room.organisation_id) => {
                Err(Problem::Forbidden("to: the conference room is outside the caller's scope".to_owned()))
            }
            Some(_) | None => Ok(()),
        }
    }

    async fn checked(
        &self,
        scope: Scope,
        organisation: OrganisationId,
        requested: &RequestedCall,
    ) -> Result<(NamedExtension, Placeable), Problem> {
        let named = self.store.extension_named(organisation, &requested.from).await?;
        let Some(named) = named else {
            let given = GivenFields::Placement {
                organisation,
                from: Some(requested.from.clone()),
                to: Some(requested.to.clone()),
                caller_id: requested.caller_id.clone(),
                has_callback: requested.callback_url.is_some(),
            };
            return Err(Problem::Unprocessable(self.wrong(scope, given).await?));
        };
        require_covered(scope, &named)?;
        self.require_reached_room(scope, &requested.to).await?;
        let wrong = self.unsigned(named.organisation_id, requested.callback_url.is_some()).await?;
        let checked = self.switch.ask(CheckCall(named.id, requested.clone())).await?;
        let placeable = match checked.map_err(Problem::from) {
            Ok(_) if !wrong.is_empty() => return Err(Problem::Unprocessable(wrong)),
            Ok(placeable) => placeable,
            Err(Problem::Unprocessable(fields)) => {
                return Err(Problem::Unprocessable(fields.into_iter().chain(wrong).collect()));
            }
            Err(Problem::Busy { retry_after_s }) if self.draining.load(Ordering::Relaxed) => {
                return Err(Problem::Draining { retry_after_s });
            }
            Err(problem) => return Err(problem),
        };
        // A call needs one port for each side.
        if self.switch.ports().saturating_add(2) > self.ports_max || self.load.is_busy(instant()) {
            return Err(Problem::Busy { retry_after_s: BUSY_RETRY_S });
        }
        Ok((named, placeable))
    }

    /// Returns the errors in fields of a request, including those that the switch's directory shows.
    async fn wrong(&self, scope: Scope, mut given: GivenFields) -> Result<Vec<FieldProblem>, Problem> {
        let GivenFields::Placement { organisation, from, has_callback, .. } = &mut given else {
            return Ok(self.switch.ask(WrongFields(given)).await?);
        };
        let mut wrong = Vec::new();
        if let Some(from) = from {
            match self.store.extension_named(*organisation, from).await? {
                // The request is refused for this reason anyway; nothing is looked up in another tenant's directory.
                Some(named) if !scope.covers(named.organisation_id, named.team_id) => return Ok(Vec::new()),
                Some(named) => *organisation = named.organisation_id,
                None => {
                    wrong.push(no_extension());
                }
            }
        }
        let unsigned = self.unsigned(*organisation, *has_callback).await?;
        wrong.extend(self.switch.ask(WrongFields(given)).await?);
        wrong.extend(unsigned);
        Ok(wrong)
    }

    /// Returns the problem of a callback for which the organisation has no secret.
    async fn unsigned(
        &self,
        organisation: OrganisationId,
        has_callback: bool,
    ) -> Result<Vec<FieldProblem>, Problem> {
        if !has_callback || self.store.has_callback_secret(organisation).await? {
            return Ok(Vec::new());
        }
        let (field, message) = ("callback_url".to_owned(), UNSIGNED.to_owned());
        Ok(vec![FieldProblem { field, message }])
    }

    async fn store_and_place(
        &self,
        scope: Scope,
        organisation: OrganisationId,
        requested: RequestedCall,
    ) -> Result<CallRequest, Problem> {
        let (named, placeable) = self.checked(scope, organisation, &requested).await?;
        let request = CallRequest {
            id: CallRequestId(Uuid::now_v7()),
            call_uuid: placeable.call,
            organisation_id: named.organisation_id,
            team_id: named.team_id,
            state: RequestState::Queued,
            reason: None,
            from: requested.from.clone(),
            extension_id: named.id,
            to: requested.to.clone(),
            reference: requested.reference.clone(),
            variables: requested.variables.clone(),
            callback_url: requested.callback_url.clone(),
            created_at: (self.clock)(),
            from_answered_at: None,
            to_answered_at: None,
            ended_at: None,
            cdr: None,
        };
        let order = CallOrder { call: placeable.call, from: named.id, requested };
        let service = self.clone();
        let committed = Box::new(move || {
            let supervisor = service.supervisor.clone();
            drop(supervisor.once(Task::CallRequests, async move { service.send(order).await }));
        });
        self.store.insert_request(self.node, &request, committed).await?;
        Ok(request)
    }

    /// Passes a stored request to the switch; if it is not placed, stores the reason.
    async fn send(&self, order: CallOrder) {
        let call = order.call;
        let reason = match self.switch.ask(PlaceCall(order)).await {
            Ok(Ok(())) => return,
            Ok(Err(PlaceRefused::Unregistered)) => "unregistered",
            Ok(Err(PlaceRefused::Wrong(_))) => "unprocessable",
            Ok(Err(PlaceRefused::Busy)) | Err(_) => "node_busy",
        };
        let change = RequestChange {
            call,
            state: RequestState::Failed,
            reason: Some(reason.to_owned()),
            at: (self.clock)(),
        };
        for _ in 0..ATTEMPTS_MAX {
            match self.store.change_request(&change).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, "the end of a call request cannot be stored now"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn cancel_request(&self, id: CallRequestId) -> Result<(), Problem> {
        let found = self.store.request(id).await?;
        let request = found.ok_or_else(|| Problem::NotFound("there is no such call request".to_owned()))?;
        if request.state.is_final() {
            return Err(CancelRefused::Gone.into());
        }
        Ok(self.switch.ask(CancelCall(request.call_uuid)).await??)
    }
}

impl CallRequests for CallRequestService {
    fn check(
        &self,
        scope: Scope,
        organisation: OrganisationId,
        requested: RequestedCall,
    ) -> PortFuture<'_, Placeable> {
        Box::pin(async move { Ok(self.checked(scope, organisation, &requested).await?.1) })
    }

    fn wrong_fields(&self, scope: Scope, given: GivenFields) -> PortFuture<'_, Vec<FieldProblem>> {
        Box::pin(self.wrong(scope, given))
    }

    fn place(
        &self,
        scope: Scope,
        organisation: OrganisationId,
        requested: RequestedCall,
    ) -> PortFuture<'_, CallRequest> {
        Box::pin(self.store_and_place(scope, organisation, requested))
    }

    fn find(&self, request: CallRequestId) -> PortFuture<'_, Option<CallRequest>> {
        Box::pin(async move { Ok(self.store.request(request).await?) })
    }

    fn list<'a>(&'a self, scope: Scope, query: &'a RequestQuery) -> PortFuture<'a, Page<CallRequest>> {
        Box::pin(async move { Ok(self.store.requests(scope, query).await?) })
    }

    fn cancel(&self, request: CallRequestId) -> PortFuture<'_, ()> {
        Box::pin(self.cancel_request(request))
    }

    fn end_call(&self, call: CallId) -> PortFuture<'_, bool> {
        Box::pin(async move { Ok(self.switch.ask(EndCall(call)).await?) })
    }

    fn operate(&self, operation: CallOperation) -> PortFuture<'_, CallId> {
        Box::pin(async move { Ok(self.switch.ask(Operate(operation)).await??) })
    }

    fn pick_up<'a>(
        &'a self,
        scope: Scope,
        organisation: OrganisationId,
        call: CallId,
        from: &'a str,
    ) -> PortFuture<'a, CallId> {
        Box::pin(async move {
            let by = self.extension(scope, organisation, from).await?.id;
            let order = CallOperation::PickUp(PickUpOrder { call, by });
            Ok(self.switch.ask(Operate(order)).await??)
        })
    }
}

/// Checks that an extension is inside `scope`.
fn require_covered(scope: Scope, named: &NamedExtension) -> Result<(), Problem> {
    if scope.covers(named.organisation_id, named.team_id) {
        return Ok(());
    }
    Err(Problem::Forbidden("from: the extension is outside the caller's scope".to_owned()))
}

fn no_extension() -> FieldProblem {
    let message = "is no extension, agent or user with an extension".to_owned();
    FieldProblem { field: "from".to_owned(), message }
}

const UNSIGNED: &str = "needs the organisation's callback_secret, which signs the callbacks: set it with PATCH \
                        /organisations/{id}";
/// How often storing the end of a request that was not placed is attempted; after that, only a restart ends it.
const ATTEMPTS_MAX: u32 = 30;
const PAUSE: Duration = Duration::from_secs(2);
