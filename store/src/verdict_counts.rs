//! The verdicts of the records that a filter selects, counted in the database by leg and group.

use std::collections::BTreeMap;

use sidetone_model::access::Scope;
use sidetone_model::call_log::CdrFilter;
use sidetone_model::ids::TeamId;
use sidetone_model::media_quality::LegSide;
use sidetone_model::quality::MediaVerdict;
use sidetone_model::time::Timestamp;
use sidetone_model::verdict_counts::{CountBy, VerdictGroup};

use crate::call_log_query::{Reading, matching};
use crate::columns::{number, word_opt};
use crate::sql::Row;
use crate::statement::Statement;
use crate::{Store, StoreError};

impl Store {
    pub(super) async fn count_verdicts(
        &self,
        scope: Scope,
        filter: &CdrFilter,
        by: CountBy,
    ) -> Result<Vec<VerdictGroup>, StoreError> {
        let (caller, callee) = legs(by);
        // A call within a team has a leg of another team's extension where it was called by one.
        let team = match (by, scope) {
            (CountBy::Extension, Scope::Team { team: Some(team), .. }) => Some(team),
            _ => None,
        };
        let mut statement = Statement::new("SELECT ");
        value(&mut statement, caller, team);
        statement.push(" AS value_a, ");
        value(&mut statement, callee, team);
        // Both legs at once, so that each record is read once.
        statement.push(" AS value_b, media_verdict, media_verdict_b, COUNT(*) AS calls FROM cdrs");
        let mut transaction = self.readers().begin_read().await?;
        let searched = self.search_calls(scope, filter, &mut transaction).await?;
        matching(&mut statement, &Reading { calls: searched.calls(), ..Reading::whole(scope, filter) });
        statement.push(" GROUP BY 1, 2, 3, 4");
        if by == CountBy::UserAgent {
            // The other party chooses this text, as many different ones as it likes.
            statement.bind(" ORDER BY 5 DESC, 1, 2, 3, 4 LIMIT ", USER_AGENT_COUNTS_MAX, "");
        }
        let mut groups = BTreeMap::new();
        for row in statement.query().fetch_all(&mut *transaction).await? {
            add(&mut groups, by, &row)?;
        }
        Ok(groups.into_values().collect())
    }
}

/// Adds the expression of a group; with a team, only of its extensions.
fn value(statement: &mut Statement, expression: &'static str, team: Option<TeamId>) {
    let Some(team) = team else { return statement.push(expression) };
    statement.push("CASE WHEN ");
    statement.push(expression);
    statement.bind(" IN (SELECT id FROM extensions WHERE team_id = ", team.to_string(), ") THEN ");
    statement.push(expression);
    statement.push(" END");
}

/// The expressions of the group of the caller's leg and of the called party's.
fn legs(by: CountBy) -> (&'static str, &'static str) {
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

/// Adds both legs of the calls of a row, as far as they were judged and belong to a group.
fn add(groups: &mut BTreeMap<String, VerdictGroup>, by: CountBy, row: &Row) -> Result<(), StoreError> {
    let calls = number(row, "calls")?;
    for (leg, of, verdict) in
        [(LegSide::A, "value_a", "media_verdict"), (LegSide::B, "value_b", "media_verdict_b")]
    {
        let value = row.try_get::<Option<&str>>(of)?;
        let Some((value, verdict)) = value.zip(word_opt(row, verdict, MediaVerdict::from_name)?) else {
            continue;
        };
        let group = match groups.get_mut(value) {
            Some(group) => group,
            None => {
                groups.entry(value.to_owned()).or_insert_with_key(|value| VerdictGroup::new(named(by, value)))
            }
        };
        match leg {
            LegSide::A => group.caller.add(verdict, calls),
            LegSide::B => group.callee.add(verdict, calls),
        }
    }
    Ok(())
}

/// The value of a group as the model has it: of an hour or day, the instant with which it begins.
fn named(by: CountBy, value: &str) -> String {
    let begins = |length_us: i64| {
        let number = value.parse::<i64>().unwrap_or_default();
        Timestamp::from_micros(number.saturating_mul(length_us)).to_string()
    };
    match by {
        CountBy::Day => begins(86_400_000_000),
        CountBy::Hour => begins(3_600_000_000),
        CountBy::Extension | CountBy::Network | CountBy::Trunk | CountBy::UserAgent => value.to_owned(),
    }
}

/// Counts of User-Agents that are read: the largest. Each is the calls of one text and verdict on both sides.
const USER_AGENT_COUNTS_MAX: i64 = 20_000;
