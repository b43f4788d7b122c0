//! The query of the call log: converts the parameters to a [`CdrQuery`].

use axum::http::Uri;
use sidetone_model::call_log::{CdrFilter, CdrQuery};
use sidetone_model::page::{Order, Window};
use sidetone_model::problem::FieldProblem;

use crate::auth::Caller;
use crate::error::ApiError;
use crate::listing::WindowParts;
use crate::params::{self, With};
use crate::routes::cdr_params::{
    CdrExportParams, CdrFilterParams, CdrPageParams, ExportSortKey, Format, OrderKey,
};

/// The query of `GET /cdrs`.
pub(crate) type ListQuery = With<CdrFilterParams, CdrPageParams>;
/// The query of `GET /cdrs/export`.
pub(crate) type ExportParams = With<CdrFilterParams, CdrExportParams>;

/// Reads the query of `GET /cdrs`.
///
/// # Errors
/// `invalid_request` with every wrong field.
pub(crate) fn list(uri: &Uri, caller: &Caller) -> Result<CdrQuery, ApiError> {
    let (query, parts) = read(uri)?;
    Ok(CdrQuery { window: params::window(uri, caller, parts)?, ..query })
}

/// Returns the query, and the parts of its window separately.
fn read(uri: &Uri) -> Result<(CdrQuery, WindowParts), ApiError> {
    let With(filter, CdrPageParams { limit, offset, cursor, sort, order }) = params::read::<ListQuery>(uri)?;
    let query = CdrQuery {
        filter: filter_of(filter)?,
        sort: sort.unwrap_or_default(),
        order: order.map_or(Order::Descending, Order::from),
        window: Window::default(),
    };
    Ok((query, (limit, offset, cursor)))
}

/// Reads the query of `GET /cdrs/totals`: only filters.
///
/// # Errors
/// `invalid_request` with every wrong field.
pub(crate) fn totals(uri: &Uri) -> Result<CdrFilter, ApiError> {
    filter_of(params::read(uri)?)
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
    let With(filter, export) = params::read_or::<ExportParams>(uri, |name| match name {
        "limit" | "offset" | "cursor" => "an export has no pages",
        _ => "is not a parameter of this list",
    })?;
    // The only sort key of an export.
    let (None | Some(ExportSortKey::StartedAt)) = export.sort;
    Ok(ExportQuery {
        filter: filter_of(filter)?,
        format: export.format.unwrap_or(Format::Csv),
        order: export.order.map_or(Order::Descending, Order::from),
    })
}

/// Converts the parameters to a filter.
///
/// # Errors
/// `invalid_request` for a filter without an index, if no `from` limits the records to read.
pub(crate) fn filter_of(given: CdrFilterParams) -> Result<CdrFilter, ApiError> {
    let unindexed = [
        ("network", given.network.is_some()),
        ("user_agent", given.user_agent.as_ref().is_some_and(|text| !text.is_empty())),
    ];
    let unbounded = |(field, is_given): (&str, bool)| {
        (is_given && given.from.is_none()).then(|| FieldProblem {
            field: field.to_owned(),
            message: "needs from: records are searched from that time on".to_owned(),
        })
    };
    let problems: Vec<FieldProblem> = unindexed.into_iter().filter_map(unbounded).collect();
    if problems.is_empty() { Ok(given.into()) } else { Err(ApiError::invalid(problems)) }
}

impl From<CdrFilterParams> for CdrFilter {
    fn from(given: CdrFilterParams) -> Self {
        CdrFilter {
            agent_id: given.agent_id,
            billing_mode: given.billing_mode,
            campaign_id: given.campaign_id,
            did: params::search(given.did),
            direction: given.direction,
            extension_id: given.extension_id,
            from: given.from,
            hangup_cause: given.hangup_cause,
            media_verdict: given.media_verdict,
            media_verdict_b: given.media_verdict_b,
            min_billsec: given.min_billsec,
            mos_max: given.mos_max,
            network: given.network.map(|network| network.to_string()),
            node_id: given.node_id,
            organisation_id: given.organisation_id,
            q: params::search(given.q),
            reference: params::search(given.reference),
            room_id: given.room_id,
            team_id: given.team_id,
            to: given.to,
            transcoded: given.transcoded,
            transport: given.transport,
            trunk_id: given.trunk_id,
            user_agent: params::search(given.user_agent),
        }
    }
}

impl From<OrderKey> for Order {
    fn from(key: OrderKey) -> Self {
        match key {
            OrderKey::Asc => Order::Ascending,
            OrderKey::Desc => Order::Descending,
        }
    }
}

#[cfg(test)]
mod tests {
    use sidetone_model::call::{BillingMode, Direction, Transport};
    use sidetone_model::call_log::CdrSort;
    use sidetone_model::quality::{Hundredths, MediaVerdict};
    use sidetone_model::time::Timestamp;
    use uuid::Uuid;

    use super::*;

    /// The query of `GET /cdrs` without a cursor.
    fn list(uri: &Uri) -> Result<CdrQuery, ApiError> {
        let (query, (limit, offset, _)) = read(uri)?;
        let window = Window::at(offset.unwrap_or(0), limit.unwrap_or(Window::LIMIT_DEFAULT));
        Ok(CdrQuery { window, ..query })
    }

    #[test]
    fn every_parameter_of_the_document_is_read() {
        let id = "00000000-0000-0000-0000-00000000000A";
        let uri = format!(
            "/cdrs?extension_id={id}&did=%2B44&campaign_id={id}&from=2026-01-01&to=2026-01-02T00:00:00Z\
             &team_id={id}&agent_id={id}&direction=inbound&transport=sip&hangup_cause=USER_BUSY\
             &transcoded=false&trunk_id={id}&min_billsec=5&node_id={id}&organisation_id={id}&limit=7\
             &offset=9&sort=billsec&order=asc&q=50%25&media_verdict=ok&media_verdict_b=lossy_inbound\
             &reference=ticket-1&billing_mode=rated&room_id={id}&mos_max=3.55&network=192.0.2.77/24&user_agent=Phone%207"
        );
        let query = list(&uri.parse().unwrap()).unwrap();
        let id = Uuid::from_u128(10);
        let expected = CdrFilter {
            agent_id: Some(id.into()),
            billing_mode: Some(BillingMode::Rated),
            campaign_id: Some(id.into()),
            did: Some("+44".to_owned()),
            direction: Some(Direction::Inbound),
            extension_id: Some(id.into()),
            from: Some(Timestamp::from_micros(1_767_225_600_000_000)),
            hangup_cause: Some("USER_BUSY".to_owned()),
            media_verdict: Some(MediaVerdict::Ok),
            media_verdict_b: Some(MediaVerdict::LossyInbound),
            min_billsec: Some(5),
            mos_max: Some(Hundredths(355)),
            network: Some("192.0.2.0/24".to_owned()),
            node_id: Some(id.into()),
            organisation_id: Some(id.into()),
            q: Some("50%".to_owned()),
            reference: Some("ticket-1".to_owned()),
            room_id: Some(id.into()),
            team_id: Some(id.into()),
            to: Some(Timestamp::from_micros(1_767_312_000_000_000)),
            transcoded: Some(false),
            transport: Some(Transport::Sip),
            trunk_id: Some(id.into()),
            user_agent: Some("Phone 7".to_owned()),
        };
        assert_eq!(query.filter, expected);
        assert_eq!((query.sort, query.order), (CdrSort::Billsec, Order::Ascending));
        assert_eq!((query.window.limit, query.window.offset), (7, 9));
    }

    /// Scores have two decimals; a limit may have more.
    #[test]
    fn a_limit_of_scores_may_have_any_decimals() {
        for (text, expected) in [
            ("1", Some(100)),
            ("3.55", Some(355)),
            ("1.8909762055502075", Some(189)),
            ("4.999", Some(499)),
            ("5", Some(500)),
            ("5.0001", None),
            ("0.99", None),
            ("1e0", None),
            ("NaN", None),
        ] {
            let query = list(&format!("/cdrs?mos_max={text}").parse().unwrap());
            assert_eq!(query.ok().and_then(|query| query.filter.mos_max), expected.map(Hundredths), "{text}");
        }
    }

    /// These filters have no index, so that a list without `from` would read every record.
    #[test]
    fn filters_of_devices_need_a_time_to_begin_at() {
        for (query, is_right) in [
            ("network=192.0.2.0/24", false),
            ("user_agent=Phone", false),
            ("network=192.0.2.0/24&from=2026-01-01", true),
            ("user_agent=Phone&from=2026-01-01", true),
            ("network=here&from=2026-01-01", false),
            ("user_agent=", true),
        ] {
            let uri = format!("/cdrs?{query}").parse().unwrap();
            assert_eq!(list(&uri).is_ok(), is_right, "{query}");
            assert_eq!(totals(&uri).is_ok(), is_right, "{query}");
            assert_eq!(export(&uri).is_ok(), is_right, "{query}");
        }
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
