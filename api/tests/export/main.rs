//! `GET /cdrs/export` over a fake log: bounds, pace and failures on the way.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper of a test may fail the test"
)]

#[cfg(feature = "parquet")]
mod columnar;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use axum::response::Response;
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};
use sidetone_api::{ApiState, Ports, router};
use sidetone_model::access::{Permission, Scope};
use sidetone_model::call::{BillingMode, Direction, EndedBy, HangupCause, Transport};
use sidetone_model::call_log::{CdrFilter, CdrPlace, CdrQuery};
use sidetone_model::cdr::Cdr;
use sidetone_model::device::Device;
use sidetone_model::directory::Network;
use sidetone_model::forwarding::ForwardReason;
use sidetone_model::ids::{ApiKeyId, CallId, OrganisationId};
use sidetone_model::money::Amount;
use sidetone_model::page::{Order, Page};
use sidetone_model::ports::{ApiKey, ApiKeys, CdrLog, PortFuture, Readiness};
use sidetone_model::problem::Problem;
use sidetone_model::quality::{Hundredths, MediaVerdict, Quality};
use sidetone_model::rating::{Billing, CarrierCharge};
use sidetone_model::time::Timestamp;
use sidetone_model::totals::CdrTotals;
use sidetone_model::verdict_counts::{CountBy, VerdictGroup};
use tower::ServiceExt;
use uuid::Uuid;

/// A log of `rows` records that counts how often it is read, and fails at one of the reads.
struct Log {
    rows: u64,
    chunks: AtomicUsize,
    fails_at: usize,
}

impl CdrLog for Log {
    fn list(&self, _: Scope, _: CdrQuery) -> PortFuture<'_, Page<Cdr>> {
        Box::pin(async { Err(Problem::Internal("an export lists nothing".to_owned())) })
    }

    fn count<'a>(&'a self, _: Scope, _: &'a CdrFilter, count_max: u32) -> PortFuture<'a, u64> {
        Box::pin(async move { Ok(self.rows.min(u64::from(count_max))) })
    }

    fn chunk<'a>(
        &'a self,
        _: Scope,
        _: &'a CdrFilter,
        _: Order,
        after: Option<CdrPlace>,
        limit: u32,
    ) -> PortFuture<'a, Vec<Cdr>> {
        let read = self.chunks.fetch_add(1, Ordering::Relaxed);
        let first = after.map_or(0, |place| place.call_uuid.0.as_u128() as u64 + 1);
        let last = self.rows.min(first + u64::from(limit));
        Box::pin(async move {
            if read == self.fails_at {
                return Err(Problem::Internal("secret detail".to_owned()));
            }
            Ok((first..last).map(record).collect())
        })
    }

    fn verdicts<'a>(&'a self, _: Scope, _: &'a CdrFilter, _: CountBy) -> PortFuture<'a, Vec<VerdictGroup>> {
        Box::pin(async { Ok(vec![]) })
    }

    fn totals<'a>(&'a self, _: Scope, _: &'a CdrFilter) -> PortFuture<'a, CdrTotals> {
        Box::pin(async { Ok(CdrTotals::default()) })
    }

    fn find(&self, _: CallId) -> PortFuture<'_, Option<Cdr>> {
        Box::pin(async { Ok(None) })
    }
}

struct Keys;

impl ApiKeys for Keys {
    fn find(&self, id: &str) -> PortFuture<'_, Option<ApiKey>> {
        let mut permissions = vec![Permission::CallsRead];
        if id == "MARGIN" {
            permissions.push(Permission::MarginRead);
        }
        Box::pin(async move {
            Ok(Some(ApiKey {
                key: ApiKeyId(Uuid::nil()),
                organisation_id: OrganisationId(Uuid::nil()),
                secret_sha256: Sha256::digest(b"secret").into(),
                permissions,
                allow: vec![Network { address: "127.0.0.1".parse().unwrap(), prefix_len: 32 }],
                rate_per_minute: 100,
            }))
        })
    }
}

struct Ready;

impl Readiness for Ready {
    fn unready(&self) -> Vec<String> {
        vec![]
    }
}

/// Record 0 has few fields, every other one all fields.
fn record(number: u64) -> Cdr {
    let bare = bare(number);
    if number == 0 {
        return bare;
    }
    let id = Uuid::from_u128(7);
    let amount = "0.008".parse().unwrap();
    Cdr {
        answered_at: Some(Timestamp::from_micros(1_767_225_600_000_001)),
        ended_at: Some(Timestamp::from_micros(1_767_225_660_000_001)),
        billsec: u32::MAX,
        ai_tokens: Some(5_000_000_000),
        reference: None,
        codec_a: Some("PCMU".to_owned()),
        codec_b: Some("opus".to_owned()),
        dialled_number: Some("02071230000".to_owned()),
        agent_id: Some(id.into()),
        team_id: Some(id.into()),
        campaign_id: Some(id.into()),
        contact_id: Some(id.into()),
        node_id: Some(id.into()),
        hangup_cause: Some(HangupCause::NormalClearing),
        bridge_cause: Some(HangupCause::UserBusy),
        sip_status: Some(486),
        ended_by: Some(EndedBy::Callee),
        fax: true,
        transferred_from: Some(id.into()),
        transferred_to: Some(id.into()),
        forwarded_by: Some("1001".into()),
        forward_reason: Some(ForwardReason::NoAnswer),
        forwarded_to: Some("+442079460000".into()),
        sell_amount: Amount::MAX,
        cost_amount: amount,
        currency: Some("EUR".parse().unwrap()),
        billing: Billing {
            cost: Some(CarrierCharge { currency: "USD".parse().unwrap(), amount, fx_rate: None }),
            ..Billing::default()
        },
        quality: Quality {
            jitter_ms: Some(Hundredths(2096)),
            loss_pct: Some(Hundredths(0)),
            mean_interval_ms: Some(Hundredths(2001)),
            quality_pct: Some(Hundredths(9950)),
            mos: Some(Hundredths(441)),
            verdict: Some(MediaVerdict::Ok),
        },
        media_b: Some(Quality {
            jitter_ms: Some(Hundredths(310)),
            loss_pct: Some(Hundredths(1512)),
            mean_interval_ms: Some(Hundredths(2355)),
            quality_pct: Some(Hundredths(8100)),
            mos: Some(Hundredths(233)),
            verdict: Some(MediaVerdict::LossyInbound),
        }),
        media: None,
        ..bare
    }
}

fn bare(number: u64) -> Cdr {
    Cdr {
        call_uuid: CallId(Uuid::from_u128(u128::from(number))),
        organisation_id: OrganisationId(Uuid::nil()),
        called: None,
        extension_id: None,
        trunk_id: None,
        direction: Direction::Inbound,
        transport: Transport::Sip,
        started_at: Timestamp::from_micros(0),
        answered_at: None,
        ended_at: None,
        billsec: 0,
        ai_tokens: None,
        reference: None,
        billing_mode: BillingMode::Free,
        codec_a: None,
        codec_b: None,
        caller_number: Some("=1+1".to_owned()),
        destination_number: Some("+442071230000".to_owned()),
        dialled_number: None,
        agent_id: None,
        team_id: None,
        campaign_id: None,
        contact_id: None,
        node_id: None,
        hangup_cause: None,
        bridge_cause: None,
        sip_status: None,
        ended_by: None,
        fax: false,
        transferred_from: None,
        transferred_to: None,
        forwarded_by: None,
        forward_reason: None,
        forwarded_to: None,
        sell_amount: Amount::ZERO,
        cost_amount: Amount::ZERO,
        currency: None,
        billing: Default::default(),
        quality: Quality::default(),
        media_b: None,
        device_a: Device {
            user_agent: Some("Example Phone 7".to_owned()),
            network: Some("192.0.2.0/24".to_owned()),
        },
        device_b: Device {
            user_agent: Some("=gateway".to_owned()),
            network: Some("2001:db8::/64".to_owned()),
        },
        media: None,
    }
}

/// Requests an export of `rows` records; the database fails at read `fails_at`.
fn ask(rows: u64, fails_at: usize, query: &str, case: impl AsyncFnOnce(Response, &Log)) {
    ask_as("tel_GOOD_secret", rows, fails_at, query, case);
}

fn ask_as(token: &str, rows: u64, fails_at: usize, query: &str, case: impl AsyncFnOnce(Response, &Log)) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let log = Arc::new(Log { rows, chunks: AtomicUsize::new(0), fails_at });
        let clock = Arc::new(|| Timestamp::from_micros(0));
        let router =
            router(ApiState::new(Ports::of_log(log.clone(), Arc::new(Keys), Arc::new(Ready)), clock));
        let mut request = Request::get(format!("/api/v1/cdrs/export{query}"))
            .header("authorization", format!("Bearer {token}"))
            .body(Body::empty())
            .unwrap();
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 4711))));
        case(router.oneshot(request).await.unwrap(), &log).await;
    });
}

#[test]
fn a_million_records_are_written_and_one_more_is_refused() {
    ask(1_000_000, usize::MAX, "", async |response, log| {
        assert_eq!((response.status().as_u16(), log.chunks.load(Ordering::Relaxed)), (200, 0));
    });
    ask(1_000_001, usize::MAX, "", async |response, log| {
        assert_eq!((response.status().as_u16(), log.chunks.load(Ordering::Relaxed)), (400, 0));
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains("more than 1,000,000 records"));
    });
}

/// Only one piece is in memory, however long the export: the next one is read when the last one was taken.
#[test]
fn nothing_is_read_before_the_caller_takes_what_was_read() {
    ask(50_500, usize::MAX, "?format=ndjson", async |response, log| {
        let mut body = response.into_body();
        let (mut frames, mut rows, mut piece_len_max) = (0, 0, 0);
        while let Some(frame) = body.frame().await {
            let piece = frame.unwrap().into_data().unwrap();
            frames += 1;
            rows += piece.iter().filter(|byte| **byte == b'\n').count();
            piece_len_max = piece_len_max.max(piece.len());
            assert_eq!(log.chunks.load(Ordering::Relaxed), frames);
        }
        assert_eq!((frames, rows), (73, 50_500));
        assert!(piece_len_max < 1024 * 1024, "{piece_len_max}");
    });
}

#[test]
fn a_failure_on_the_way_breaks_the_body_off() {
    ask(5_000, 2, "", async |response, _| {
        assert_eq!(response.status().as_u16(), 200);
        let mut body = response.into_body();
        let mut frames = 0;
        let error = loop {
            match body.frame().await.unwrap() {
                Ok(_) => frames += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(frames, 2);
        drop(error);
    });
}

#[test]
fn an_empty_export_has_its_header_row_alone() {
    for (query, text) in [("", "call_uuid,"), ("?format=ndjson", "")] {
        ask(0, usize::MAX, query, async |response, _| {
            assert_eq!(response.status().as_u16(), 200);
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let body = String::from_utf8(body.to_vec()).unwrap();
            assert!(
                body.starts_with(text) && body.lines().count() == usize::from(!text.is_empty()),
                "{body}"
            );
        });
    }
}

#[test]
fn a_cell_that_would_be_a_formula_is_a_text() {
    ask(1, usize::MAX, "", async |response, _| {
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(body.contains(",'=1+1,+442071230000,"), "{body}");
    });
}

#[test]
fn a_wrong_field_answers_400_and_is_named() {
    let cases = [
        ("?format=xml", "format: must be one of csv, ndjson, parquet"),
        ("?limit=5&offset=0", "limit: an export has no pages; offset: an export has no pages"),
        ("?sort=billsec", "sort: an export is always sorted by started_at"),
        ("?team_id=x&did=%00", "team_id: must be a UUID; did: must not contain control characters"),
    ];
    for (query, message) in cases {
        ask(0, usize::MAX, query, async |response, _| {
            assert_eq!(response.status().as_u16(), 400, "{query}");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["error"]["message"], message);
        });
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn an_export_as_parquet_needs_the_feature() {
    ask(0, usize::MAX, "?format=parquet", async |response, _| {
        assert_eq!(response.status().as_u16(), 400);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            body["error"]["message"],
            "format: this build has no parquet, must be csv or ndjson; a build with --features parquet writes it"
        );
    });
}
