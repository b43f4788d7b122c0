//! Answers queries about bindings: those of an earlier process, and those of the nodes of a cluster.

use sidetone_model::time::Now;

use crate::bindings_elsewhere;
use crate::call_control::CallControl;
use crate::kept_bindings::{self, ChangedBindings};
use crate::queries::{
    Answer, Query, ReplaceElsewhere, RestoreBindings, TakeChangedBindings, TakeNodeBindings,
};
use crate::shared::Shared;

/// Answers a query about bindings; `None` for any other.
pub(super) fn answer(
    now: Now,
    query: Query,
    changed: &mut ChangedBindings,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Option<Answer> {
    Some(match query {
        Query::ReplaceElsewhere(ReplaceElsewhere(changes)) => {
            Answer::ReplaceElsewhere(bindings_elsewhere::replace(now, changes, control, shared))
        }
        Query::RestoreBindings(RestoreBindings(kept)) => {
            Answer::RestoreBindings(kept_bindings::restore(now, kept, shared))
        }
        Query::TakeChangedBindings(TakeChangedBindings(max)) => {
            Answer::TakeChangedBindings(changed.take(now, max, &shared.directory, &shared.registrar))
        }
        Query::TakeNodeBindings(TakeNodeBindings(max)) => {
            Answer::TakeNodeBindings(changed.take_shared(now, max, shared))
        }
        _ => return None,
    })
}
