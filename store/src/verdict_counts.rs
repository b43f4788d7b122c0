//! The verdicts of the records that a filter selects, counted in the database by leg and group.

use std::collections::BTreeMap;

use sidetone_model::access::Scope;
use sidetone_model::call_log::CdrFilter;
use sidetone_model::quality::MediaVerdict;
use sidetone_model::time::Timestamp;
use sidetone_model::verdict_counts::{CountBy, VerdictGroup};

use crate::call_log_query::{Reading, matching};
use crate::columns::{number, word};
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
        let mut statement = Statement::new(
            "SELECT value, leg, verdict, COUNT(*) AS legs FROM (WITH matching AS (SELECT started_at_us, direction,
             extension_id, called_extension_id, trunk_id, media_verdict, media_verdict_b FROM cdrs",
        );
        let mut transaction = self.readers().begin_read().await?;
        let searched = self.search_calls(scope, filter, &mut transaction).await?;
        matching(&mut statement, &Reading { calls: searched.calls(), ..Reading::whole(scope, filter) });
        statement.push(") SELECT ");
        statement.push(caller);
        statement.push(" AS value, 'a' AS leg, media_verdict AS verdict FROM matching UNION ALL SELECT ");
        statement.push(callee);
        statement.push(
            " AS value, 'b' AS leg, media_verdict_b AS verdict FROM matching) AS legs
             WHERE value IS NOT NULL AND verdict IS NOT NULL",
        );
        // A call within a team has a leg of another team's extension where it was called by one.
        if let (CountBy::Extension, Scope::Team { team: Some(team), .. }) = (by, scope) {
            statement.bind(
                " AND value IN (SELECT id FROM extensions WHERE team_id = ",
                team.to_string(),
                ")",
            );
        }
        statement.push(" GROUP BY value, leg, verdict");
        let mut groups = BTreeMap::new();
        for row in statement.query().fetch_all(&mut *transaction).await? {
            add(&mut groups, by, &row)?;
        }
        Ok(groups.into_values().collect())
    }
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
        CountBy::Trunk => (
            "CASE WHEN direction = 'inbound' THEN trunk_id END",
            "CASE WHEN direction = 'outbound' THEN trunk_id END",
        ),
    }
}

fn add(groups: &mut BTreeMap<String, VerdictGroup>, by: CountBy, row: &Row) -> Result<(), StoreError> {
    let value: String = row.try_get("value")?;
    let group = groups.entry(value).or_insert_with_key(|value| VerdictGroup::new(named(by, value)));
    let (verdict, legs) = (word(row, "verdict", MediaVerdict::from_name)?, number(row, "legs")?);
    match row.try_get::<&str>("leg")? {
        "a" => group.caller.add(verdict, legs),
        _ => group.callee.add(verdict, legs),
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
        CountBy::Extension | CountBy::Trunk => value.to_owned(),
    }
}
