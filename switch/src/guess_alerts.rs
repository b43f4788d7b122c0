//! Decides which password guesses are reported to an organisation by the event `security.guessing`: a limit that
//! was reached, at most once a minute for each source and account, and at most [`ALERTS_PER_MINUTE_MAX`] in all.
//! `sidetone_sip::auth` sets the limits.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use sidetone_model::guessing::{GuessLimit, Guessing};
use sidetone_model::ids::OrganisationId;
use sidetone_model::time::Now;
use sidetone_sip::auth::{Limit, WINDOW};
use sidetone_sip::flow::source_of;
use sidetone_sip::message::Request;

use crate::authentication::{claimed_account, claimed_line};
use crate::routing::Directory;
use crate::switch_io::{Notice, Output, Outputs};

/// The recent alerts of all organisations.
///
/// *Bounds*: [`ALERTS_PER_MINUTE_MAX`] entries for each organisation of the directory.
#[derive(Debug, Default)]
pub(super) struct GuessAlerts {
    organisations: HashMap<OrganisationId, Recent>,
}

/// The alerts of one organisation within [`EVERY`].
#[derive(Debug, Default)]
struct Recent {
    recent: Vec<(Instant, IpAddr, String)>,
    left_out: u64,
}

impl GuessAlerts {
    /// Decides whether the organisation gets an alert for a limit that was reached now. Returns the number of
    /// alerts left out before; `None` when this one is left out too.
    fn take(
        &mut self,
        now: Instant,
        organisation: OrganisationId,
        source: IpAddr,
        account: &str,
    ) -> Option<u64> {
        let sent = self.organisations.entry(organisation).or_default();
        sent.recent.retain(|(at, ..)| now.saturating_duration_since(*at) < EVERY);
        let source = source_of(source);
        let is_known =
            sent.recent.iter().any(|(_, known, name)| (*known, name.as_str()) == (source, account));
        if is_known || sent.recent.len() >= ALERTS_PER_MINUTE_MAX {
            sent.left_out = sent.left_out.saturating_add(1);
            return None;
        }
        sent.recent.push((now, source, account.to_owned()));
        Some(std::mem::take(&mut sent.left_out))
    }

    /// Handles a wrong password that reached a limit: notifies the operator, and the organisation of the account.
    pub(super) fn guessed(
        &mut self,
        now: Now,
        source: IpAddr,
        request: &Request,
        limit: Limit,
        directory: &Directory,
        outputs: &mut Outputs,
    ) {
        let limit_word = word(limit);
        outputs.push_back(Output::Notice(Notice::Guessing(source, limit_word)));
        // No organisation has the domain, so only the operator is notified.
        let Some((organisation_id, extension_id)) = claimed_line(directory, request) else { return };
        let account = claimed_account(request);
        let Some(left_out) = self.take(now.instant, organisation_id, source, &account) else {
            return;
        };
        let guessing = Guessing {
            organisation_id,
            account,
            extension_id,
            source: source.to_canonical(),
            limit: limit_word,
            failures: limit.failures(),
            window_seconds: WINDOW.as_secs(),
            left_out,
            at: now.wall,
        };
        outputs.push_back(Output::News(Box::new(guessing.into())));
    }
}

fn word(limit: Limit) -> GuessLimit {
    match limit {
        Limit::Account => GuessLimit::Account,
        Limit::AllSources => GuessLimit::AllSources,
        Limit::Source => GuessLimit::Source,
    }
}

/// Time between two alerts for the same source and account.
const EVERY: Duration = Duration::from_secs(60);
/// Alerts of one organisation per minute, so that many sources do not fill its event log.
const ALERTS_PER_MINUTE_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
    fn one_alert_a_minute_for_a_source_and_account_and_twenty_in_all() {
        let zero = Instant::now();
        let (ours, theirs) = (OrganisationId(Uuid::from_u128(1)), OrganisationId(Uuid::from_u128(2)));
        let mut alerts = GuessAlerts::default();
        let mut take = |seconds: u64, organisation, source: &str, account: &str| {
            let source = source.parse().unwrap();
            alerts.take(zero + Duration::from_secs(seconds), organisation, source, account)
        };
        assert_eq!(take(0, ours, "2001:db8::1", "1001@acme.test"), Some(0));
        assert_eq!(take(59, ours, "2001:db8::2", "1001@acme.test"), None, "the same /64");
        assert_eq!(take(59, ours, "2001:db8:0:1::1", "1001@acme.test"), Some(1), "says what was left out");
        assert_eq!(take(59, ours, "2001:db8::1", "1002@acme.test"), Some(0), "another account");
        assert_eq!(take(59, theirs, "2001:db8::1", "1001@acme.test"), Some(0), "another organisation");
        assert_eq!(take(60, ours, "2001:db8::1", "1001@acme.test"), Some(0), "a minute later");
        let sent = (0..100).filter(|n| take(60, ours, &format!("192.0.2.{n}"), "1001@acme.test").is_some());
        assert_eq!(sent.count(), ALERTS_PER_MINUTE_MAX - 3, "three of the last minute");
        assert_eq!(take(120, ours, "192.0.2.99", "1001@acme.test"), Some(83));
    }
}
