//! The query of the call log: converts the parameters to a [`CdrQuery`].

use axum::http::Uri;
use sidetone_model::call::{Direction, Transport};
use sidetone_model::call_log::{CdrFilter, CdrQuery, CdrSort};
use sidetone_model::page::Order;
use sidetone_model::quality::MediaVerdict;
use sidetone_model::time::Timestamp;

use crate::error::ApiError;
use crate::page::{self, Wrong};

/// Reads the query of `GET /cdrs`.
///
/// # Errors
/// `invalid_request` with every wrong field.
pub(crate) fn list(uri: &Uri) -> Result<CdrQuery, ApiError> {
    let mut query = CdrQuery::default();
    page::read(uri, |name, value| {
        match name {
            "limit" => query.window.limit = page::limit(value)?,
            "offset" => query.window.offset = page::count(value)?,
            "order" => query.order = page::order(value)?,
            "sort" => query.sort = sort(value)?,
            _ => take_filter(&mut query.filter, name, value)?,
        }
        Ok(())
    })?;
    Ok(query)
}

/// Reads the query of `GET /cdrs/totals`: only filters.
///
/// # Errors
/// `invalid_request` with every wrong field.
pub(crate) fn totals(uri: &Uri) -> Result<CdrFilter, ApiError> {
    let mut filter = CdrFilter::default();
    page::read(uri, |name, value| take_filter(&mut filter, name, value))?;
    Ok(filter)
}

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// RFC 4180.
    Csv,
    /// One JSON object a line.
    Ndjson,
    /// Apache Parquet, a columnar file.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// The query of `GET /cdrs/export`: every filter, no paging.
#[derive(Debug)]
pub(crate) struct ExportQuery {
    pub(crate) filter: CdrFilter,
    pub(crate) format: Format,
    pub(crate) order: Order,
}

/// Reads the query of `GET /cdrs/export`.
///
/// # Errors
/// `invalid_request` with every wrong field.
pub(crate) fn export(uri: &Uri) -> Result<ExportQuery, ApiError> {
    let mut query =
        ExportQuery { filter: CdrFilter::default(), format: Format::Csv, order: Order::Descending };
    page::read(uri, |name, value| {
        match name {
            "format" => query.format = format(value)?,
            "limit" | "offset" => return Err("an export has no pages".to_owned()),
            "order" => query.order = page::order(value)?,
            // Only this sort can be read in pieces without sorting everything in the database for each piece.
            "sort" => match sort(value)? {
                CdrSort::StartedAt => {}
                _ => return Err("an export is sorted by started_at alone".to_owned()),
            },
            _ => take_filter(&mut query.filter, name, value)?,
        }
        Ok(())
    })?;
    Ok(query)
}

fn take_filter(filter: &mut CdrFilter, name: &str, value: &str) -> Result<(), Wrong> {
    match name {
        "agent_id" => filter.agent_id = Some(page::uuid(value)?.into()),
        "campaign_id" => filter.campaign_id = Some(page::uuid(value)?.into()),
        "did" => filter.did = page::text(value)?,
        "direction" => filter.direction = Some(direction(value)?),
        "extension_id" => filter.extension_id = Some(page::uuid(value)?.into()),
        "from" => filter.from = Some(bound(value)?),
        "hangup_cause" => filter.hangup_cause = Some(page::text(value)?.unwrap_or_default()),
        "media_verdict" => filter.media_verdict = Some(verdict(value)?),
        "media_verdict_b" => filter.media_verdict_b = Some(verdict(value)?),
        "min_billsec" => filter.min_billsec = Some(page::count(value)?),
        "node_id" => filter.node_id = Some(page::uuid(value)?.into()),
        "organisation_id" => filter.organisation_id = Some(page::uuid(value)?.into()),
        "q" => filter.q = page::text(value)?,
        "team_id" => filter.team_id = Some(page::uuid(value)?.into()),
        "to" => filter.to = Some(bound(value)?),
        "transcoded" => filter.transcoded = Some(boolean(value)?),
        "transport" => filter.transport = Some(transport(value)?),
        "trunk_id" => filter.trunk_id = Some(page::uuid(value)?.into()),
        _ => page::unknown()?,
    }
    Ok(())
}

/// A timestamp or a date, as a bound in time.
pub(crate) fn bound(value: &str) -> Result<Timestamp, Wrong> {
    Timestamp::parse_bound(value)
        .map_err(|_| "must be an RFC 3339 timestamp, its + written as %2B, or a date YYYY-MM-DD".to_owned())
}

/// `true` or `false`.
pub(crate) fn boolean(value: &str) -> Result<bool, Wrong> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

fn direction(value: &str) -> Result<Direction, Wrong> {
    Direction::from_name(value).ok_or_else(|| "must be one of inbound, outbound, internal".to_owned())
}

fn transport(value: &str) -> Result<Transport, Wrong> {
    Transport::from_name(value).ok_or_else(|| "must be one of sip, whatsapp".to_owned())
}

fn verdict(value: &str) -> Result<MediaVerdict, Wrong> {
    MediaVerdict::from_name(value).ok_or_else(|| {
        let known = MediaVerdict::ALL.map(|(_, name)| name).join(", ");
        format!("unknown verdict '{}', must be one of {known}", page::shown(value))
    })
}

fn sort(value: &str) -> Result<CdrSort, Wrong> {
    CdrSort::from_name(value).ok_or_else(|| {
        let known = CdrSort::ALL.map(|(_, name)| name).join(", ");
        format!("unknown key '{}', must be one of {known}", page::shown(value))
    })
}

fn format(value: &str) -> Result<Format, Wrong> {
    match value {
        "csv" => Ok(Format::Csv),
        "ndjson" => Ok(Format::Ndjson),
        "parquet" => parquet(),
        _ => Err("must be one of csv, ndjson, parquet".to_owned()),
    }
}

#[cfg(feature = "parquet")]
fn parquet() -> Result<Format, Wrong> {
    Ok(Format::Parquet)
}

#[cfg(not(feature = "parquet"))]
fn parquet() -> Result<Format, Wrong> {
    let wrong = "this build has no parquet, must be csv or ndjson; a build with --features parquet writes it";
    Err(wrong.to_owned())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn every_parameter_of_the_document_is_read() {
        let id = "00000000-0000-0000-0000-00000000000A";
        let uri = format!(
            "/cdrs?extension_id={id}&did=%2B44&campaign_id={id}&from=2026-01-01&to=2026-01-02T00:00:00Z\
             &team_id={id}&agent_id={id}&direction=inbound&transport=sip&hangup_cause=USER_BUSY\
             &transcoded=false&trunk_id={id}&min_billsec=5&node_id={id}&organisation_id={id}&limit=7\
             &offset=9&sort=billsec&order=asc&q=50%25&media_verdict=ok&media_verdict_b=lossy_inbound"
        );
        let query = list(&uri.parse().unwrap()).unwrap();
        let id = Uuid::from_u128(10);
        let expected = CdrFilter {
            agent_id: Some(id.into()),
            campaign_id: Some(id.into()),
            did: Some("+44".to_owned()),
            direction: Some(Direction::Inbound),
            extension_id: Some(id.into()),
            from: Some(Timestamp::from_micros(1_767_225_600_000_000)),
            hangup_cause: Some("USER_BUSY".to_owned()),
            media_verdict: Some(MediaVerdict::Ok),
            media_verdict_b: Some(MediaVerdict::LossyInbound),
            min_billsec: Some(5),
            node_id: Some(id.into()),
            organisation_id: Some(id.into()),
            q: Some("50%".to_owned()),
            team_id: Some(id.into()),
            to: Some(Timestamp::from_micros(1_767_312_000_000_000)),
            transcoded: Some(false),
            transport: Some(Transport::Sip),
            trunk_id: Some(id.into()),
        };
        assert_eq!(query.filter, expected);
        assert_eq!((query.sort, query.order), (CdrSort::Billsec, Order::Ascending));
        assert_eq!((query.window.limit, query.window.offset), (7, 9));
    }

    #[test]
    fn an_empty_search_finds_everything() {
        let query = list(&"/cdrs?q=&did=".parse().unwrap()).unwrap();
        assert_eq!(query, CdrQuery::default());
    }

    #[test]
    fn an_export_is_csv_newest_first_unless_said_otherwise() {
        let query = export(&"/cdrs/export".parse().unwrap()).unwrap();
        assert_eq!((query.format, query.order), (Format::Csv, Order::Descending));
        let uri = "/cdrs/export?format=ndjson&order=asc&sort=started_at";
        let query = export(&uri.parse().unwrap()).unwrap();
        assert_eq!((query.format, query.order), (Format::Ndjson, Order::Ascending));
    }
}
