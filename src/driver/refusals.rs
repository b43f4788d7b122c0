//! Log of refused requests, in the format for fail2ban (`docs/security.md`): one line per request, at most
//! one a second per source.

use sidetone_model::line_limit::LineLimit;
use sidetone_model::time::Timestamp;
use sidetone_switch::denied::Denied;

/// Writes refused requests to the log.
#[derive(Debug, Default)]
pub(super) struct RefusalLog {
    /// Limited separately, so that a refused call does not hide a failed authentication.
    authentication: LineLimit,
    calls: LineLimit,
}

impl RefusalLog {
    pub(super) fn write(&mut self, now: Timestamp, denied: &Denied) {
        let kind = if denied.denial.is_authentication() { &mut self.authentication } else { &mut self.calls };
        let Some(left_out) = kind.take(now, denied.source) else { return };
        let Denied { source, account, method, denial } = denied;
        let (source, reason) = (source.to_canonical(), denial.as_str());
        if denial.is_authentication() {
            tracing::warn!(target: TARGET, %source, account, method, reason, left_out, "SIP authentication failed");
        } else {
            tracing::info!(target: TARGET, %source, account, reason, left_out, "call refused");
        }
    }
}

/// The target of the lines. Operators' fail2ban filters contain it, so it does not follow this module's path.
const TARGET: &str = "sidetone::switch::driver::refusals";
