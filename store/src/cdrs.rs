//! Call records: written in groups with their events, and found by their id.

use sidetone_model::call::{BillingMode, Direction, HangupCause, Transport};
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::CallId;
use sidetone_model::money::Amount;
use sidetone_model::ports::{CdrSink, PortFuture, Stored};
use sidetone_model::quality::{Hundredths, MediaVerdict, Quality};
use sidetone_model::rating::{Billing, CarrierCharge};
use sidetone_model::time::Timestamp;

use crate::call_events::{ended, missed};
use crate::cdr_counts::Additions;
use crate::cdr_quality::insert_quality;
use crate::columns::{instant, instant_opt, number, number_opt, parsed, parsed_opt, word, word_opt};
use crate::credit::Draws;
use crate::events::insert_event;
use crate::search::{fits_an_index, searchable};
use crate::sql::{AiTokens, Connection, Row, sql};
use crate::{Store, StoreError};

impl CdrSink for Store {
    fn store<'a>(&'a self, cdrs: &'a [Cdr]) -> PortFuture<'a, Stored> {
        Box::pin(async move { Ok(self.insert_cdrs(cdrs).await?) })
    }
}

impl Store {
    /// Stores the records that are not stored yet, each with its event, in one transaction; returns how many
    /// were new.
    async fn insert_cdrs(&self, cdrs: &[Cdr]) -> Result<Stored, StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        transaction.hold(AiTokens::Read).await?;
        let mut new = 0;
        let mut draws = Draws::default();
        let mut additions = Additions::default();
        for cdr in cdrs {
            let search = search_text(cdr);
            let row = insert_cdr(&mut transaction, cdr, &search).await?;
            if let Some(row) = &row {
                insert_quality(&mut transaction, cdr).await?;
                insert_event(&mut transaction, &ended(cdr, number_opt(row, "ai_tokens")?)).await?;
                if let Some(missed) = missed(cdr) {
                    insert_event(&mut transaction, &missed).await?;
                }
                additions.add(cdr, &search);
                new += 1;
            }
            draws.note(cdr, row.is_some());
        }
        additions.store(&mut transaction).await?;
        let drawn = draws.write(&mut transaction).await?;
        transaction.commit().await?;
        Ok(Stored { new, drawn })
    }

    /// The record of a call, of any organisation.
    pub(super) async fn find_cdr(&self, call: CallId) -> Result<Option<Cdr>, StoreError> {
        let row = sql("SELECT * FROM cdrs WHERE call_uuid = $1")
            .bind(call.to_string())
            .fetch_optional(self.readers())
            .await?;
        row.map(|row| cdr(&row)).transpose()
    }
}

/// Inserts a record; returns its stored row, or `None` when the record is stored already.
async fn insert_cdr(connection: &mut Connection, cdr: &Cdr, search: &str) -> Result<Option<Row>, StoreError> {
    let quality = &cdr.quality;
    let far = cdr.media_b.unwrap_or_default();
    let did_search = searchable([cdr.destination_number.as_deref(), cdr.dialled_number.as_deref()]);
    let indexed = fits_an_index(search);
    let row =
        sql("INSERT INTO cdrs (call_uuid, organisation_id, extension_id, trunk_id, direction, transport,
         started_at_us, answered_at_us, ended_at_us, billsec, billing_mode, codec_a, codec_b,
         caller_number, destination_number, dialled_number, agent_id, team_id, campaign_id, contact_id,
         node_id, hangup_cause, bridge_cause, sip_status, sell_scaled, cost_scaled, currency,
         jitter_ms_hundredths, loss_pct_hundredths, mean_interval_ms_hundredths, quality_pct_hundredths,
         mos_hundredths, media_verdict, search, did_search, cost_currency, cost_original_scaled, fx_rate_scaled,
         ai_tokens, search_key, did_key, transcoded, jitter_ms_b_hundredths, loss_pct_b_hundredths,
         mean_interval_ms_b_hundredths, quality_pct_b_hundredths, mos_b_hundredths, media_verdict_b)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
         $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38,
         COALESCE((SELECT tokens_input + tokens_output FROM conversations
                   WHERE call_uuid = $1 AND organisation_id = $2), $39), $40, $41, $42, $43, $44, $45, $46, $47,
         $48)
         ON CONFLICT (call_uuid) DO NOTHING RETURNING ai_tokens")
        .bind(cdr.call_uuid.to_string())
        .bind(cdr.organisation_id.to_string())
        .bind(cdr.extension_id.map(|id| id.to_string()))
        .bind(cdr.trunk_id.map(|id| id.to_string()))
        .bind(cdr.direction.as_str())
        .bind(cdr.transport.as_str())
        .bind(cdr.started_at.as_micros())
        .bind(cdr.answered_at.map(Timestamp::as_micros))
        .bind(cdr.ended_at.map(Timestamp::as_micros))
        .bind(i64::from(cdr.billsec))
        .bind(cdr.billing_mode.as_str())
        .bind(cdr.codec_a.as_deref())
        .bind(cdr.codec_b.as_deref())
        .bind(cdr.caller_number.as_deref())
        .bind(cdr.destination_number.as_deref())
        .bind(cdr.dialled_number.as_deref())
        .bind(cdr.agent_id.map(|id| id.to_string()))
        .bind(cdr.team_id.map(|id| id.to_string()))
        .bind(cdr.campaign_id.map(|id| id.to_string()))
        .bind(cdr.contact_id.map(|id| id.to_string()))
        .bind(cdr.node_id.map(|id| id.to_string()))
        .bind(cdr.hangup_cause.map(HangupCause::as_str))
        .bind(cdr.bridge_cause.map(HangupCause::as_str))
        .bind(cdr.sip_status.map(i64::from))
        .bind(cdr.sell_amount.scaled())
        .bind(cdr.cost_amount.scaled())
        .bind(cdr.currency.map(|currency| currency.as_str().to_owned()))
        .bind(quality.jitter_ms.map(|figure| figure.0))
        .bind(quality.loss_pct.map(|figure| figure.0))
        .bind(quality.mean_interval_ms.map(|figure| figure.0))
        .bind(quality.quality_pct.map(|figure| figure.0))
        .bind(quality.mos.map(|figure| figure.0))
        .bind(quality.verdict.map(MediaVerdict::as_str))
        .bind(search)
        .bind(&did_search)
        .bind(cdr.billing.cost.map(|cost| cost.currency.to_string()))
        .bind(cdr.billing.cost.map(|cost| cost.amount.scaled()))
        .bind(cdr.billing.cost.and_then(|cost| cost.fx_rate).map(Amount::scaled))
        .bind(cdr.ai_tokens.and_then(|tokens| i64::try_from(tokens).ok()))
        .bind(indexed.then_some(search))
        .bind(indexed.then_some(did_search.as_str()))
        .bind(cdr.transcoded())
        .bind(far.jitter_ms.map(|figure| figure.0))
        .bind(far.loss_pct.map(|figure| figure.0))
        .bind(far.mean_interval_ms.map(|figure| figure.0))
        .bind(far.quality_pct.map(|figure| figure.0))
        .bind(far.mos.map(|figure| figure.0))
        .bind(far.verdict.map(MediaVerdict::as_str))
        .fetch_optional(connection)
        .await?;
    Ok(row)
}

/// The text that a free search covers.
fn search_text(cdr: &Cdr) -> String {
    searchable([
        cdr.caller_number.as_deref(),
        cdr.destination_number.as_deref(),
        cdr.dialled_number.as_deref(),
        cdr.hangup_cause.map(HangupCause::as_str),
    ])
}

/// The record in a row.
pub(super) fn cdr(row: &Row) -> Result<Cdr, StoreError> {
    let figure =
        |column: &'static str| Ok::<_, StoreError>(row.try_get::<Option<i64>>(column)?.map(Hundredths));
    let status: Option<i64> = row.try_get("sip_status")?;
    Ok(Cdr {
        call_uuid: parsed(row, "call_uuid")?,
        organisation_id: parsed(row, "organisation_id")?,
        extension_id: parsed_opt(row, "extension_id")?,
        trunk_id: parsed_opt(row, "trunk_id")?,
        direction: word(row, "direction", Direction::from_name)?,
        transport: word(row, "transport", Transport::from_name)?,
        started_at: instant(row, "started_at_us")?,
        answered_at: instant_opt(row, "answered_at_us")?,
        ended_at: instant_opt(row, "ended_at_us")?,
        billsec: number(row, "billsec")?,
        billing_mode: word(row, "billing_mode", BillingMode::from_name)?,
        codec_a: row.try_get("codec_a")?,
        codec_b: row.try_get("codec_b")?,
        caller_number: row.try_get("caller_number")?,
        destination_number: row.try_get("destination_number")?,
        dialled_number: row.try_get("dialled_number")?,
        agent_id: parsed_opt(row, "agent_id")?,
        team_id: parsed_opt(row, "team_id")?,
        campaign_id: parsed_opt(row, "campaign_id")?,
        contact_id: parsed_opt(row, "contact_id")?,
        node_id: parsed_opt(row, "node_id")?,
        hangup_cause: word_opt(row, "hangup_cause", HangupCause::from_name)?,
        bridge_cause: word_opt(row, "bridge_cause", HangupCause::from_name)?,
        sip_status: status
            .map(|status| u16::try_from(status).map_err(|_| StoreError::Corrupt { column: "sip_status" }))
            .transpose()?,
        sell_amount: Amount::from_scaled(row.try_get("sell_scaled")?),
        cost_amount: Amount::from_scaled(row.try_get("cost_scaled")?),
        currency: parsed_opt(row, "currency")?,
        ai_tokens: number_opt(row, "ai_tokens")?,
        called: None,
        billing: Billing { cost: carrier_charge(row)?, ..Billing::default() },
        quality: Quality {
            jitter_ms: figure("jitter_ms_hundredths")?,
            loss_pct: figure("loss_pct_hundredths")?,
            mean_interval_ms: figure("mean_interval_ms_hundredths")?,
            mos: figure("mos_hundredths")?,
            quality_pct: figure("quality_pct_hundredths")?,
            verdict: word_opt(row, "media_verdict", MediaVerdict::from_name)?,
        },
        media_b: Quality {
            jitter_ms: figure("jitter_ms_b_hundredths")?,
            loss_pct: figure("loss_pct_b_hundredths")?,
            mean_interval_ms: figure("mean_interval_ms_b_hundredths")?,
            mos: figure("mos_b_hundredths")?,
            quality_pct: figure("quality_pct_b_hundredths")?,
            verdict: word_opt(row, "media_verdict_b", MediaVerdict::from_name)?,
        }
        .of_callee(),
        media: None,
    })
}

/// What the carrier charged, where the record contains it.
fn carrier_charge(row: &Row) -> Result<Option<CarrierCharge>, StoreError> {
    let Some(currency) = parsed_opt(row, "cost_currency")? else { return Ok(None) };
    let amount = row.try_get::<Option<i64>>("cost_original_scaled")?.unwrap_or_default();
    let fx_rate: Option<i64> = row.try_get("fx_rate_scaled")?;
    Ok(Some(CarrierCharge {
        currency,
        amount: Amount::from_scaled(amount),
        fx_rate: fx_rate.map(Amount::from_scaled),
    }))
}
