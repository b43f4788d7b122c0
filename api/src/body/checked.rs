//! Bodies with values that are checked against the stored data: every wrong field is reported, whichever kind
//! of rule it breaks.

use sidetone_model::field_check::{Checked, FieldCheck, StoredRule, ValueFault};
use sidetone_model::ids::OrganisationId;
use sidetone_model::problem::FieldProblem;
use uuid::Uuid;

use crate::auth::Caller;
use crate::body::extract::Body;
use crate::body::fields::{Fields, PlacedCheck};
use crate::error::ApiError;
use crate::state::ApiState;

impl Body {
    /// Reads the body of a new resource, which belongs to the organisation in `organisation_id` or to the caller's.
    ///
    /// # Errors
    /// Like [`Body::read`]; the problems include those found in the stored data.
    pub(crate) async fn read_new<T>(
        self,
        caller: &Caller,
        state: &ApiState,
        take: impl FnOnce(&mut Fields) -> Option<T>,
    ) -> Result<T, ApiError> {
        let (mut fields, taken) = self.fields(take)?;
        let checks = within(caller, fields.take_checks());
        let resource = Checked { organisation: owner(caller, &fields, &checks), own: None };
        judge(state, resource, &mut fields, checks).await?;
        fields.taken(taken)
    }

    /// Reads a change to the resource `own` of `organisation`, which the caller may see.
    ///
    /// # Errors
    /// As [`Body::read_new`].
    pub(crate) async fn read_change<T>(
        self,
        caller: &Caller,
        state: &ApiState,
        organisation: Option<OrganisationId>,
        own: Uuid,
        take: impl FnOnce(&mut Fields) -> Option<T>,
    ) -> Result<T, ApiError> {
        let (mut fields, taken) = self.fields(take)?;
        let checks = within(caller, fields.take_checks());
        let resource = Checked { organisation, own: Some(own) };
        judge(state, resource, &mut fields, checks).await?;
        fields.taken(taken)
    }
}

/// Removes checks of organisations that the caller does not reach: such a request is refused later, and the answer must
/// not depend on whether they exist.
fn within(caller: &Caller, checks: Vec<PlacedCheck>) -> Vec<PlacedCheck> {
    let reaches = |PlacedCheck { check, .. }: &PlacedCheck| {
        let named = (check.rule == StoredRule::Organisation).then(|| check.value.parse().ok()).flatten();
        named.is_none_or(|named| caller.scope().reaches(named))
    };
    checks.into_iter().filter(reaches).collect()
}

/// The organisation of a new resource, if the caller reaches it.
fn owner(caller: &Caller, fields: &Fields, checks: &[PlacedCheck]) -> Option<OrganisationId> {
    if !fields.has(OWNER) {
        return Some(caller.principal().organisation_id);
    }
    let mut named = checks.iter().map(|placed| &placed.check).filter(|check| check.field == OWNER);
    named.find_map(|check| check.value.parse().ok())
}

/// Adds the problems found in the stored data.
///
/// A value that another resource has is a conflict. If that is the only kind of problem, the operation answers
/// 409 itself.
async fn judge(
    state: &ApiState,
    resource: Checked,
    fields: &mut Fields,
    checks: Vec<PlacedCheck>,
) -> Result<(), ApiError> {
    let Some(port) = state.field_checks.as_deref() else { return Ok(()) };
    let is_wrong = fields.is_wrong();
    // The operation itself reports the problem of a single value.
    if checks.is_empty() || (checks.len() == 1 && !is_wrong) {
        return Ok(());
    }
    let values: Vec<FieldCheck> = checks.iter().map(|placed| placed.check.clone()).collect();
    let faults = port.faults(resource, values).await?;
    let found: Vec<(PlacedCheck, ValueFault)> =
        checks.into_iter().zip(faults).filter_map(|(check, fault)| Some((check, fault?))).collect();
    let only_taken = !is_wrong && found.iter().all(|(_, fault)| matches!(fault, ValueFault::Taken(_)));
    match (only_taken, found.as_slice()) {
        (true, [] | [_]) => Ok(()),
        (true, taken) => Err(ApiError::taken(taken.iter().map(problem).collect())),
        (false, _) => {
            for (check, fault) in found {
                fields.refuse_checked(check, fault.message());
            }
            Ok(())
        }
    }
}

fn problem((placed, fault): &(PlacedCheck, ValueFault)) -> FieldProblem {
    FieldProblem { field: placed.check.field.clone(), message: fault.message().to_owned() }
}

/// The field that names the owner of a new resource.
const OWNER: &str = "organisation_id";
