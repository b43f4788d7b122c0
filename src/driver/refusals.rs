//! The log of refused requests: one line each, as fail2ban reads it (`docs/security.md`), and at most one a second for
//! each source.

use sidetone_model::line_limit::LineLimit;
use sidetone_model::time::Timestamp;
use sidetone_switch::denied::Denied;

/// Writes refused requests into the log.
#[derive(Debug, Default)]
pub(super) struct RefusalLog {
    /// Apart, so that a refused call hides no guessed password.
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
            tracing::warn!(%source, account, method, reason, left_out, "SIP authentication failed");
        } else {
            tracing::info!(%source, account, reason, left_out, "call refused");
        }
    }
}
