//! How many records each filter finds. The counts are stored with the records, so that a total is read and
//! not counted.
//!
//! A count is for one organisation, one value of one filter and 28 days; the count of all records also exists for
//! each hour. For a list with a single filter, with or without time bounds, the counts are added up, and only the
//! partial periods at both ends are counted in the records. There are no counts for filters whose values each have
//! few records (agent, campaign, extension, reference, room), for devices and networks, for `mos_max`, for several
//! filters together, and for searches: those records are counted with an index.

use std::collections::BTreeMap;
use std::ops::Range;

use sidetone_model::access::Scope;
use sidetone_model::call::{BillingMode, Direction, Transport};
use sidetone_model::call_log::CdrFilter;
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::OrganisationId;
use sidetone_model::quality::MediaVerdict;
use sidetone_model::time::Timestamp;

use crate::StoreError;
use crate::columns::number;
use crate::scope::{narrowed, of_organisation};
use crate::search::fits_an_index;
use crate::sql::{Connection, sql};
use crate::statement::Statement;
use crate::verdict_hours::HOUR_US;

/// What new records add to the counts; in a fixed order, so that two writers cannot deadlock.
#[derive(Debug, Default)]
pub(super) struct Additions(BTreeMap<(OrganisationId, &'static str, String, i64), i64>);

/// The only condition of a filter that has just one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Counted {
    organisation: Option<OrganisationId>,
    dimension: &'static str,
    value: String,
    from_us: i64,
    to_us: i64,
    min_billsec: u64,
}

/// Records that must be counted one by one, in addition to the stored counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// Records that started at or after the first time and before the second, in microseconds.
    Started(i64, i64),
    /// Records billed for less than this many seconds.
    BilledLessThan(u64),
}

impl Additions {
    /// Counts a new record.
    pub(super) fn add(&mut self, cdr: &Cdr, search: &str) {
        let period = cdr.started_at.as_micros().div_euclid(PERIOD_US);
        let mut add = |dimension, value: Option<String>, period| {
            if let Some(value) = value {
                *self.0.entry((cdr.organisation_id, dimension, value, period)).or_default() += 1;
            }
        };
        add(ALL, Some(String::new()), period);
        add(HOUR, Some(String::new()), cdr.started_at.as_micros().div_euclid(HOUR_US));
        add("billing_mode", Some(cdr.billing_mode.as_str().to_owned()), period);
        add("direction", Some(cdr.direction.as_str().to_owned()), period);
        add("hangup_cause", cdr.hangup_cause.map(|cause| cause.as_str().to_owned()), period);
        let verdict = |verdict: Option<MediaVerdict>| verdict.map(|verdict| verdict.as_str().to_owned());
        add("media_verdict", verdict(cdr.quality.verdict), period);
        add("media_verdict_b", verdict(cdr.media_b.and_then(|media| media.verdict)), period);
        add("node_id", cdr.node_id.map(|id| id.to_string()), period);
        add("team_id", cdr.team_id.map(|id| id.to_string()), period);
        add("transcoded", Some(i64::from(cdr.transcoded()).to_string()), period);
        add("transport", Some(cdr.transport.as_str().to_owned()), period);
        add("trunk_id", cdr.trunk_id.map(|id| id.to_string()), period);
        add(BILLSEC, Some(minute_text(u64::from(cdr.billsec) / MINUTE)), NO_PERIOD);
        add(LONG_SEARCH, (!fits_an_index(search)).then(String::new), NO_PERIOD);
    }

    /// Writes the counts.
    pub(super) async fn store(self, connection: &mut Connection) -> Result<(), StoreError> {
        let mut additions = self.0.into_iter().peekable();
        while additions.peek().is_some() {
            let mut statement = Statement::new(
                "INSERT INTO cdr_counts (organisation_id, dimension, value, period, records) VALUES ",
            );
            let rows = additions.by_ref().take(ROWS_PER_STATEMENT);
            for (index, ((organisation, dimension, value, period), records)) in rows.enumerate() {
                statement.bind(if index == 0 { "(" } else { ", (" }, organisation.to_string(), ", ");
                statement.bind("", dimension.to_owned(), ", ");
                statement.bind("", value, ", ");
                statement.bind("", period, ", ");
                statement.bind("", records, ")");
            }
            statement.push(
                " ON CONFLICT (organisation_id, dimension, value, period)
                  DO UPDATE SET records = cdr_counts.records + excluded.records",
            );
            statement.query().execute(&mut *connection).await?;
        }
        Ok(())
    }
}

impl Counted {
    /// Returns the condition of `filter` inside `scope`, if one count is sufficient for it.
    pub(super) fn of(scope: Scope, filter: &CdrFilter) -> Option<Self> {
        // Fields are listed explicitly, so that no filter is forgotten.
        let CdrFilter {
            agent_id,
            billing_mode,
            campaign_id,
            did,
            direction,
            extension_id,
            from,
            hangup_cause,
            media_verdict,
            media_verdict_b,
            min_billsec,
            mos_max,
            network,
            node_id,
            organisation_id,
            q,
            reference,
            room_id,
            team_id,
            to,
            transcoded,
            transport,
            trunk_id,
            user_agent,
        } = filter;
        let texts = [q, did, reference, network, user_agent];
        let uncounted = texts.iter().any(|text| text.is_some())
            || agent_id.is_some()
            || campaign_id.is_some()
            || extension_id.is_some()
            || mos_max.is_some()
            || room_id.is_some();
        if uncounted {
            return None;
        }
        let (organisation, team) = narrowed(scope, *organisation_id, *team_id)?;
        let mut asked = [
            ("billing_mode", billing_mode.map(BillingMode::as_str).map(str::to_owned)),
            ("direction", direction.map(Direction::as_str).map(str::to_owned)),
            ("hangup_cause", hangup_cause.clone()),
            ("media_verdict", media_verdict.map(MediaVerdict::as_str).map(str::to_owned)),
            ("media_verdict_b", media_verdict_b.map(MediaVerdict::as_str).map(str::to_owned)),
            ("node_id", node_id.map(|id| id.to_string())),
            ("team_id", team.map(|id| id.to_string())),
            ("transcoded", transcoded.map(|holds| i64::from(holds).to_string())),
            ("transport", transport.map(Transport::as_str).map(str::to_owned)),
            ("trunk_id", trunk_id.map(|id| id.to_string())),
            (BILLSEC, min_billsec.map(|billsec| minute_text(billsec.div_ceil(MINUTE)))),
        ]
        .into_iter()
        .filter_map(|(dimension, value)| Some((dimension, value?)));
        let (dimension, value) = asked.next().unwrap_or((ALL, String::new()));
        let bounded = from.is_some() || to.is_some();
        if asked.next().is_some() || (dimension == BILLSEC && bounded) {
            return None;
        }
        Some(Self {
            organisation,
            dimension,
            value,
            from_us: from.map_or(i64::MIN, Timestamp::as_micros),
            to_us: to.map_or(i64::MAX, Timestamp::as_micros),
            min_billsec: min_billsec.unwrap_or(0),
        })
    }

    /// Returns the sum of the counts, and which records are to be counted as well.
    pub(super) async fn read(&self, connection: &mut Connection) -> Result<(u64, Vec<Rest>), StoreError> {
        let (first, end, parts) = periods(self.from_us, self.to_us);
        let rest = if self.dimension == BILLSEC {
            let cut = !self.min_billsec.is_multiple_of(MINUTE);
            cut.then(|| Rest::BilledLessThan(self.min_billsec.div_ceil(MINUTE).saturating_mul(MINUTE)))
                .into_iter()
                .collect()
        } else {
            parts.into_iter().flatten().map(|(from, to)| Rest::Started(from, to)).collect()
        };
        let mut statement =
            Statement::new("SELECT CAST(COALESCE(SUM(records), 0) AS BIGINT) AS total FROM cdr_counts");
        of_organisation(&mut statement, self.organisation);
        statement.bind(" AND dimension = ", self.dimension.to_owned(), "");
        let compared = if self.dimension == BILLSEC { " AND value >= " } else { " AND value = " };
        statement.bind(compared, self.value.clone(), "");
        if self.dimension != BILLSEC {
            statement.bind(" AND period >= ", first, "");
            statement.bind(" AND period < ", end, "");
        }
        let row = statement.query().fetch_one(&mut *connection).await?;
        let mut total: u64 = number(&row, "total")?;
        if self.dimension != ALL {
            return Ok((total, rest));
        }
        let mut ends = Vec::new();
        for part in rest {
            let Rest::Started(from_us, to_us) = part else { continue };
            let (hours, cut) = whole_hours(from_us, to_us);
            if hours.is_empty() || !are_hours_counted(self.organisation, &hours, connection).await? {
                ends.push(Rest::Started(from_us, to_us));
                continue;
            }
            total = total.saturating_add(sum(self.organisation, HOUR, &hours, connection).await?);
            ends.extend(cut.into_iter().flatten().map(|(from_us, to_us)| Rest::Started(from_us, to_us)));
        }
        Ok((total, ends))
    }
}

/// Whether every record of the 28-day periods that contain these hours is also counted by its hour. A node with a
/// version before migration 0380 counts none by the hour.
pub(super) async fn are_hours_counted(
    organisation: Option<OrganisationId>,
    hours: &Range<i64>,
    connection: &mut Connection,
) -> Result<bool, StoreError> {
    let first = hours.start.div_euclid(PERIOD_HOURS);
    let end = hours.end.saturating_sub(1).div_euclid(PERIOD_HOURS).saturating_add(1);
    let whole = first.saturating_mul(PERIOD_HOURS)..end.saturating_mul(PERIOD_HOURS);
    let all = sum(organisation, ALL, &(first..end), connection).await?;
    Ok(all == sum(organisation, HOUR, &whole, connection).await?)
}

/// The number of records in some periods of a dimension without values, of one organisation or of all.
async fn sum(
    organisation: Option<OrganisationId>,
    dimension: &'static str,
    periods: &Range<i64>,
    connection: &mut Connection,
) -> Result<u64, StoreError> {
    let mut statement =
        Statement::new("SELECT CAST(COALESCE(SUM(records), 0) AS BIGINT) AS total FROM cdr_counts");
    of_organisation(&mut statement, organisation);
    statement.bind(" AND dimension = ", dimension.to_owned(), " AND value = ''");
    statement.bind(" AND period >= ", periods.start, "");
    statement.bind(" AND period < ", periods.end, "");
    number(&statement.query().fetch_one(connection).await?, "total")
}

/// Whether any record of the organisation has texts that are too long for the search index.
pub(super) async fn has_long_texts(
    connection: &mut Connection,
    organisation: OrganisationId,
) -> Result<bool, StoreError> {
    let row = sql("SELECT records FROM cdr_counts WHERE organisation_id = $1 AND dimension = $2 LIMIT 1")
        .bind(organisation.to_string())
        .bind(LONG_SEARCH)
        .fetch_optional(connection)
        .await?;
    Ok(row.is_some())
}

/// The whole periods from `from_us` up to `to_us`, as first and end, and the remaining ranges before and
/// after.
fn periods(from_us: i64, to_us: i64) -> (i64, i64, [Option<(i64, i64)>; 2]) {
    let first = if from_us == i64::MIN {
        i64::MIN
    } else {
        from_us.saturating_add(PERIOD_US - 1).div_euclid(PERIOD_US)
    };
    let end = if to_us == i64::MAX { i64::MAX } else { to_us.div_euclid(PERIOD_US) };
    if first > end || from_us >= to_us {
        // Within one period, or empty.
        return (0, 0, [(from_us < to_us).then_some((from_us, to_us)), None]);
    }
    let part = |from: i64, to: i64| (from < to).then_some((from, to));
    let before = if first == i64::MIN { None } else { part(from_us, first.saturating_mul(PERIOD_US)) };
    let behind = if end == i64::MAX { None } else { part(end.saturating_mul(PERIOD_US), to_us) };
    (first, end, [before, behind])
}

/// The whole hours from `from_us` up to `to_us`, and the remaining ranges before and after.
fn whole_hours(from_us: i64, to_us: i64) -> (Range<i64>, [Option<(i64, i64)>; 2]) {
    let first = from_us.saturating_add(HOUR_US - 1).div_euclid(HOUR_US);
    let end = to_us.div_euclid(HOUR_US);
    if first >= end {
        return (0..0, [(from_us < to_us).then_some((from_us, to_us)), None]);
    }
    let part = |from: i64, to: i64| (from < to).then_some((from, to));
    let (before, behind) =
        (part(from_us, first.saturating_mul(HOUR_US)), part(end.saturating_mul(HOUR_US), to_us));
    (first..end, [before, behind])
}

/// Ten digits, so that texts compare as the numbers do; no call has more minutes.
fn minute_text(minutes: u64) -> String {
    format!("{:010}", minutes.min(9_999_999_999))
}

const ALL: &str = "all";
const HOUR: &str = "hour";
const BILLSEC: &str = "billsec";
const LONG_SEARCH: &str = "long_search";
/// The period of counts that are not split by time.
const NO_PERIOD: i64 = 0;
const ROWS_PER_STATEMENT: usize = 64;
/// One value of the `billsec` dimension, in seconds.
const MINUTE: u64 = 60;
/// 28 days; the migration that counted the existing records divides by the same number.
const PERIOD_US: i64 = 2_419_200_000_000;
/// A period is a whole number of hours.
const PERIOD_HOURS: i64 = PERIOD_US / HOUR_US;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_whole_periods_and_what_is_left_over() {
        let period = PERIOD_US;
        let cases = [
            ("no bounds", i64::MIN, i64::MAX, (i64::MIN, i64::MAX, [None, None])),
            ("whole periods", 2 * period, 5 * period, (2, 5, [None, None])),
            (
                "both cut",
                period + 1,
                3 * period + 2,
                (2, 3, [Some((period + 1, 2 * period)), Some((3 * period, 3 * period + 2))]),
            ),
            ("within one", period + 1, period + 9, (0, 0, [Some((period + 1, period + 9)), None])),
            (
                "two cut",
                period + 1,
                2 * period + 9,
                (2, 2, [Some((period + 1, 2 * period)), Some((2 * period, 2 * period + 9))]),
            ),
            (
                "from alone",
                3 * period + 1,
                i64::MAX,
                (4, i64::MAX, [Some((3 * period + 1, 4 * period)), None]),
            ),
            ("to alone", i64::MIN, 3 * period + 1, (i64::MIN, 3, [None, Some((3 * period, 3 * period + 1))])),
            ("nothing", 5, 5, (0, 0, [None, None])),
            ("backwards", 9 * period, period, (0, 0, [None, None])),
            ("before 1970", -period - 1, -1, (-1, -1, [Some((-period - 1, -period)), Some((-period, -1))])),
        ];
        for (name, from, to, expected) in cases {
            assert_eq!(periods(from, to), expected, "{name}");
        }
    }

    #[test]
    fn hours_are_whole_and_the_ends_are_left_over() {
        let hour = HOUR_US;
        assert_eq!(whole_hours(2 * hour, 5 * hour), (2..5, [None, None]));
        let cut = [Some((hour + 1, 2 * hour)), Some((3 * hour, 3 * hour + 2))];
        assert_eq!(whole_hours(hour + 1, 3 * hour + 2), (2..3, cut));
        assert_eq!(whole_hours(hour + 1, hour + 9), (0..0, [Some((hour + 1, hour + 9)), None]));
        assert_eq!(whole_hours(hour + 1, 2 * hour + 9), (0..0, [Some((hour + 1, 2 * hour + 9)), None]));
        assert_eq!(whole_hours(5, 5), (0..0, [None, None]));
        assert_eq!(PERIOD_HOURS * hour, PERIOD_US);
    }

    #[test]
    fn minutes_compare_as_their_texts() {
        assert!(minute_text(9) < minute_text(10));
        assert_eq!(minute_text(u64::MAX), "9999999999");
    }
}
