//! The time limits of one call, from the configuration, its organisation and its trunk.

use std::time::Duration;

use sidetone_call::record::Facts;
use sidetone_model::ids::TrunkId;

use crate::io::Limits;
use crate::routing::Directory;

/// Returns the limits for a call with these facts: a trunk can lower its organisation's limit, not raise it.
pub(super) fn limits_of(limits: Limits, directory: &Directory, facts: &Facts) -> Limits {
    let organisation = directory.organisation(facts.organisation);
    let own = organisation.and_then(|known| known.max_call_seconds).map(seconds);
    let trunk = facts.trunk.and_then(|trunk| limit_of_trunk(directory, trunk));
    Limits { call: own.unwrap_or(limits.call).min(trunk.unwrap_or(Duration::MAX)), ..limits }
}

/// Returns the longest duration of a call over the trunk, if the trunk has its own limit.
pub(super) fn limit_of_trunk(directory: &Directory, trunk: TrunkId) -> Option<Duration> {
    directory.trunk(trunk)?.max_call_seconds.map(seconds)
}

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}
