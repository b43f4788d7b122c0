//! The verdicts of the records that a filter selects, counted in the database by leg and group.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sidetone_model::access::Scope;
use sidetone_model::call_log::CdrFilter;
use sidetone_model::ids::{OrganisationId, TeamId};
use sidetone_model::media_quality::LegSide;
use sidetone_model::quality::MediaVerdict;
use sidetone_model::time::Timestamp;
use sidetone_model::verdict_counts::{CountBy, VerdictGroup};
use tokio::time::timeout;

use crate::call_log_query::{Reading, matching};
use crate::cdr_counts::are_hours_counted;
use crate::columns::{number, word_opt};
use crate::scope::{narrowed, of_organisation, within_organisation};
use crate::sql::{Connection, Row};
use crate::statement::Statement;
use crate::verdict_hours::{Counted, HOUR_US, HOURS_MAX, Question};
use crate::{Store, StoreError};

impl Store {
    pub(super) async fn count_verdicts(
        &self,
        scope: Scope,
        filter: &CdrFilter,
        by: CountBy,
    ) -> Result<Vec<VerdictGroup>, StoreError> {
        if let Some((question, first)) = Question::of(scope, filter, by)
            && let Some(groups) = self.verdicts_of_hours(question, first, (scope, filter, by)).await?
        {
            return Ok(groups);
        }
        let mut groups = Groups::new(by);
        let mut transaction = self.readers().begin_read().await?;
        let searched = self.search_calls(scope, filter, &mut transaction).await?;
        let reading = Reading { calls: searched.calls(), ..Reading::whole(scope, filter) };
        // A call within a team may have a leg of another team's extension: the caller's.
        let team = team_of_legs(scope, by);
        for row in counts(&reading, by, (false, team), &mut transaction).await? {
            for (value, leg, verdict, legs) in legs(&row)? {
                groups.add(value, leg, verdict, legs);
            }
        }
        Ok(groups.into_vec())
    }

    /// The same groups, from the hours that are already counted and the hours that have changed since. `None` if the
    /// records must be counted.
    async fn verdicts_of_hours(
        &self,
        question: Question,
        first: i64,
        (scope, filter, by): (Scope, &CdrFilter, CountBy),
    ) -> Result<Option<Vec<VerdictGroup>>, StoreError> {
        let Some((organisation, _)) = narrowed(scope, filter.organisation_id, filter.team_id) else {
            return Ok(None);
        };
        // Locked before the transaction begins: a request that waits holds no connection, and then reads the newest
        // records. A request that waits too long counts the records directly.
        let answer = self.verdict_hours().answer(question);
        let Ok(mut kept) = timeout(KEPT_TIME, answer.lock()).await else { return Ok(None) };
        // An earlier request may have been cancelled before it trimmed the data that it added.
        kept.trim();
        let mut transaction = self.readers().begin_read().await?;
        let newest = newest_hour(organisation, &mut transaction).await?.unwrap_or(first);
        let is_long = newest.saturating_sub(first) > HOURS_MAX;
        if is_long || !are_hours_counted(organisation, &(first..i64::MAX), &mut transaction).await? {
            return Ok(None);
        }
        let now = records_by_hour(organisation, first, &mut transaction).await?;
        drop(transaction);
        for range in kept.stale(&now) {
            // Each range holds a connection for a short time and stays counted. So a week of many records does not
            // keep other requests waiting, and does not begin again when this request is cancelled. Records that were
            // stored in the meantime are in the counts and not in `now`: their hours are counted again the next time.
            let mut transaction = self.readers().begin_read().await?;
            let part =
                between(filter, range.start.saturating_mul(HOUR_US), range.end.saturating_mul(HOUR_US));
            let rows = counts(&Reading::whole(scope, &part), by, (true, None), &mut transaction).await?;
            if is_cut(by, rows.len()) {
                return Ok(None);
            }
            let mut counted = Vec::with_capacity(rows.len());
            for row in &rows {
                let hour = number(row, "hour")?;
                let legs =
                    legs(row)?.map(|(value, leg, verdict, legs)| Counted { hour, value, leg, verdict, legs });
                counted.extend(legs);
            }
            kept.put(&range, &now, counted.into_iter());
        }
        let mut groups = Groups::new(by);
        kept.each(first, |value, leg, verdict, legs| groups.add(value, leg, verdict, legs));
        kept.trim();
        drop(kept);
        let from_us = filter.from.map_or(0, Timestamp::as_micros);
        let part = between(filter, from_us, first.saturating_mul(HOUR_US));
        let mut transaction = self.readers().begin_read().await?;
        let rows = counts(&Reading::whole(scope, &part), by, (false, None), &mut transaction).await?;
        if is_cut(by, rows.len()) {
            return Ok(None);
        }
        for row in &rows {
            for (value, leg, verdict, legs) in legs(row)? {
                groups.add(value, leg, verdict, legs);
            }
        }
        if let Some(team) = team_of_legs(scope, by) {
            // The hours are kept with all extensions, because the extensions of a team may change.
            let own = extensions_of(team, scope, &mut transaction).await?;
            groups.groups.retain(|extension, _| own.contains(extension));
        }
        Ok(Some(groups.into_vec()))
    }
}

/// The last hour with a record, of one organisation or of all.
async fn newest_hour(
    organisation: Option<OrganisationId>,
    on: &mut Connection,
) -> Result<Option<i64>, StoreError> {
    let mut statement = Statement::new("SELECT MAX(period) AS newest FROM cdr_counts");
    of_organisation(&mut statement, organisation);
    statement.push(" AND dimension = 'hour' AND value = ''");
    Ok(statement.query().fetch_one(on).await?.try_get("newest")?)
}

/// How many records there are in each hour from `first` on, of one organisation or of all.
async fn records_by_hour(
    organisation: Option<OrganisationId>,
    first: i64,
    on: &mut Connection,
) -> Result<BTreeMap<i64, u64>, StoreError> {
    let mut statement =
        Statement::new("SELECT period, CAST(SUM(records) AS BIGINT) AS records FROM cdr_counts");
    of_organisation(&mut statement, organisation);
    statement.bind(" AND dimension = 'hour' AND value = '' AND period >= ", first, " GROUP BY period");
    let rows = statement.query().fetch_all(on).await?;
    rows.iter().map(|row| Ok((number(row, "period")?, number(row, "records")?))).collect()
}

/// The filter for the records that started at or after the first time and before the second, in microseconds.
fn between(filter: &CdrFilter, from_us: i64, to_us: i64) -> CdrFilter {
    let (from, to) = (Timestamp::from_micros(from_us), Timestamp::from_micros(to_us));
    CdrFilter { from: Some(from), to: Some(to), ..filter.clone() }
}

/// Whether the limit may have cut off counts of User-Agents.
fn is_cut(by: CountBy, rows: usize) -> bool {
    by == CountBy::UserAgent && rows as u64 >= USER_AGENT_COUNTS_MAX.unsigned_abs()
}

/// The team whose extensions' legs are counted.
fn team_of_legs(scope: Scope, by: CountBy) -> Option<TeamId> {
    match (by, scope) {
        (CountBy::Extension, Scope::Team { team, .. }) => team,
        _ => None,
    }
}

/// The extensions of a team.
async fn extensions_of(
    team: TeamId,
    scope: Scope,
    on: &mut Connection,
) -> Result<BTreeSet<String>, StoreError> {
    let mut statement = Statement::new("SELECT id FROM extensions");
    within_organisation(&mut statement, scope);
    statement.bind(" AND team_id = ", team.to_string(), "");
    let rows = statement.query().fetch_all(on).await?;
    rows.iter().map(|row| Ok(row.try_get("id")?)).collect()
}

/// The records, counted by groups and verdicts and by the hour in which they started; with a team, only the legs of
/// its extensions.
async fn counts(
    reading: &Reading<'_>,
    by: CountBy,
    (by_hour, team): (bool, Option<TeamId>),
    on: &mut Connection,
) -> Result<Vec<Row>, StoreError> {
    let (caller, callee) = values(by);
    let mut statement = Statement::new("SELECT ");
    value(&mut statement, caller, team);
    statement.push(" AS value_a, ");
    value(&mut statement, callee, team);
    // Both legs in one statement, so that each record is read once.
    statement.push(" AS value_b, media_verdict, media_verdict_b, COUNT(*) AS calls");
    statement.push(if by_hour { ", started_at_us / 3600000000 AS hour FROM cdrs" } else { " FROM cdrs" });
    matching(&mut statement, reading);
    statement.push(if by_hour { " GROUP BY 1, 2, 3, 4, 6" } else { " GROUP BY 1, 2, 3, 4" });
    if by == CountBy::UserAgent {
        // The remote party chooses this text and can send any number of different ones.
        statement.bind(" ORDER BY 5 DESC, 1, 2, 3, 4 LIMIT ", USER_AGENT_COUNTS_MAX, "");
    }
    Ok(statement.query().fetch_all(on).await?)
}

/// Adds the expression of a group; with a team, only for its extensions.
fn value(statement: &mut Statement, expression: &'static str, team: Option<TeamId>) {
    let Some(team) = team else { return statement.push(expression) };
    statement.push("CASE WHEN ");
    statement.push(expression);
    statement.bind(" IN (SELECT id FROM extensions WHERE team_id = ", team.to_string(), ") THEN ");
    statement.push(expression);
    statement.push(" END");
}

/// The expressions of the group of the caller's leg and of the called party's.
fn values(by: CountBy) -> (&'static str, &'static str) {
    match by {
        CountBy::Day => {
            ("CAST(started_at_us / 86400000000 AS TEXT)", "CAST(started_at_us / 86400000000 AS TEXT)")
        }
        CountBy::Hour => {
            ("CAST(started_at_us / 3600000000 AS TEXT)", "CAST(started_at_us / 3600000000 AS TEXT)")
        }
        CountBy::Extension => (
            "CASE WHEN direction <> 'inbound' THEN extension_id END",
            "CASE direction WHEN 'inbound' THEN extension_id WHEN 'internal' THEN called_extension_id END",
        ),
        CountBy::Network => ("network_a", "network_b"),
        CountBy::Trunk => (
            "CASE WHEN direction = 'inbound' THEN trunk_id END",
            "CASE WHEN direction = 'outbound' THEN trunk_id END",
        ),
        CountBy::UserAgent => ("user_agent_a", "user_agent_b"),
    }
}

/// The legs of the calls in a row that were judged and belong to a group: value, leg, verdict, number.
fn legs(row: &Row) -> Result<impl Iterator<Item = (&str, LegSide, MediaVerdict, u64)>, StoreError> {
    let calls = number(row, "calls")?;
    let side = |leg, of, verdict| -> Result<_, StoreError> {
        let value = row.try_get::<Option<&str>>(of)?;
        let judged = value.zip(word_opt(row, verdict, MediaVerdict::from_name)?);
        Ok(judged.map(|(value, verdict)| (value, leg, verdict, calls)))
    };
    let sides =
        [side(LegSide::A, "value_a", "media_verdict")?, side(LegSide::B, "value_b", "media_verdict_b")?];
    Ok(sides.into_iter().flatten())
}

/// The groups while they are added up.
struct Groups {
    by: CountBy,
    groups: BTreeMap<String, VerdictGroup>,
}

impl Groups {
    fn new(by: CountBy) -> Self {
        Self { by, groups: BTreeMap::new() }
    }

    fn add(&mut self, value: &str, leg: LegSide, verdict: MediaVerdict, legs: u64) {
        let group = match self.groups.get_mut(value) {
            Some(group) => group,
            None => {
                let named = VerdictGroup::new(named(self.by, value));
                self.groups.entry(value.to_owned()).or_insert(named)
            }
        };
        match leg {
            LegSide::A => group.caller.add(verdict, legs),
            LegSide::B => group.callee.add(verdict, legs),
        }
    }

    fn into_vec(self) -> Vec<VerdictGroup> {
        self.groups.into_values().collect()
    }
}

/// The value of a group in the model's form: for an hour or a day, the time at which it begins.
fn named(by: CountBy, value: &str) -> String {
    let begins = |length_us: i64| {
        let number = value.parse::<i64>().unwrap_or_default();
        Timestamp::from_micros(number.saturating_mul(length_us)).to_string()
    };
    match by {
        CountBy::Day => begins(86_400_000_000),
        CountBy::Hour => begins(HOUR_US),
        CountBy::Extension | CountBy::Network | CountBy::Trunk | CountBy::UserAgent => value.to_owned(),
    }
}

/// The number of User-Agent counts that are read, the largest first. Each counts the calls of one text and verdict on
/// both sides.
const USER_AGENT_COUNTS_MAX: i64 = 20_000;
/// How long a request waits for another one with the same question.
const KEPT_TIME: Duration = Duration::from_secs(10);
