//! Call records: written in groups with their events, and found by their id.

use std::collections::{BTreeMap, HashMap};

use sidetone_model::call::{BillingMode, Direction, EndedBy, HangupCause, Transport};
use sidetone_model::call_request::RequestChange;
use sidetone_model::cdr::Cdr;
use sidetone_model::device::Device;
use sidetone_model::event::Event;
use sidetone_model::forwarding::ForwardReason;
use sidetone_model::ids::{CallId, ExtensionId, OrganisationId};
use sidetone_model::money::Amount;
use sidetone_model::ports::{CallRows, CallSink, CdrSink, PortFuture, Stored};
use sidetone_model::quality::{Hundredths, MediaVerdict, Quality};
use sidetone_model::rating::{Billing, CarrierCharge};
use sidetone_model::switch_event::SwitchEvent;
use sidetone_model::time::Timestamp;

use crate::ai_tokens_lock::{AiTokens, hold};
use crate::call_events::{ended, missed};
use crate::call_requests::change_requests;
use crate::cdr_counts::Additions;
use crate::cdr_quality::insert_qualities;
use crate::columns::{instant, instant_opt, number, number_opt, parsed, parsed_opt, word, word_opt};
use crate::credit::Draws;
use crate::events::insert_events;
use crate::search::{fits_an_index, folded, searchable};
use crate::sql::{Connection, Row, Value, sql, stored_text};
use crate::statement::{Statement, parts};
use crate::text_blocks::{Entry, add_blocks};
use crate::{Store, StoreError};

impl CallSink for Store {
    fn store_calls<'a>(&'a self, rows: CallRows<'a>) -> PortFuture<'a, Stored> {
        Box::pin(async move { Ok(self.insert_calls(rows).await?) })
    }
}

impl CdrSink for Store {
    fn store<'a>(&'a self, records: &'a [Cdr]) -> PortFuture<'a, Stored> {
        Box::pin(async move { Ok(self.insert_calls(CallRows { records, ..CallRows::default() }).await?) })
    }
}

impl Store {
    /// Stores events of live calls and then the records that are not stored yet, each with its quality and its
    /// events, in one transaction with few statements; returns how many records were new.
    async fn insert_calls(&self, CallRows { events, records }: CallRows<'_>) -> Result<Stored, StoreError> {
        let changes: Vec<&RequestChange> = events.iter().filter_map(SwitchEvent::request).collect();
        let mut events: Vec<Event> = events.iter().filter_map(SwitchEvent::event).collect();
        let mut transaction = self.writer().begin_write().await?;
        let mut draws = Draws::default();
        let mut new = Vec::new();
        if !records.is_empty() {
            hold(&mut transaction, AiTokens::Read).await?;
            let mut inserted = insert_cdrs(&mut transaction, records).await?;
            let mut additions = Additions::default();
            let mut entries: BTreeMap<OrganisationId, Vec<Entry>> = BTreeMap::new();
            for cdr in records {
                // If a group has two records of one call, the first one is stored.
                let row = inserted.remove(&cdr.call_uuid);
                draws.note(cdr, row.is_some());
                let Some(Inserted { ai_tokens, search }) = row else { continue };
                events.push(ended(cdr, ai_tokens));
                events.extend(missed(cdr));
                additions.add(cdr, &search);
                entries.entry(cdr.organisation_id).or_default().push(entry(cdr));
                new.push(cdr);
            }
            insert_qualities(&mut transaction, &new).await?;
            additions.store(&mut transaction).await?;
            add_blocks(&mut transaction, self.unmerged(), entries).await?;
        }
        // Callbacks show the request with its record.
        change_requests(&mut transaction, &changes).await?;
        insert_events(&mut transaction, &events).await?;
        let drawn = draws.write(&mut transaction).await?;
        transaction.commit().await?;
        Ok(Stored { new: new.len(), drawn })
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

/// A record that was not stored before.
struct Inserted {
    ai_tokens: Option<u64>,
    /// The text that a free search covers.
    search: String,
}

/// Inserts the records that are not stored yet, and returns them.
async fn insert_cdrs(
    connection: &mut Connection,
    records: &[Cdr],
) -> Result<BTreeMap<CallId, Inserted>, StoreError> {
    let mut inserted = BTreeMap::new();
    for part in parts(records) {
        let mut statement = Statement::new(
            "INSERT INTO cdrs (call_uuid, organisation_id, extension_id, trunk_id, direction, transport,
             started_at_us, answered_at_us, ended_at_us, billsec, billing_mode, codec_a, codec_b,
             caller_number, destination_number, dialled_number, agent_id, team_id, campaign_id, contact_id,
             node_id, hangup_cause, bridge_cause, sip_status, sell_scaled, cost_scaled, currency,
             jitter_ms_hundredths, loss_pct_hundredths, mean_interval_ms_hundredths, quality_pct_hundredths,
             mos_hundredths, media_verdict, jitter_ms_b_hundredths, loss_pct_b_hundredths,
             mean_interval_ms_b_hundredths, quality_pct_b_hundredths, mos_b_hundredths, media_verdict_b,
             search, did_search, cost_currency, cost_original_scaled, fx_rate_scaled, search_key, did_key,
             transcoded, reference, ended_by, transferred_from, transferred_to, forwarded_by,
             forward_reason, forwarded_to, called_extension_id, search_packed, fax, user_agent_a, network_a, user_agent_b, network_b,
             ai_tokens) VALUES ",
        );
        let mut searches: HashMap<CallId, String> = HashMap::with_capacity(part.len());
        for (index, cdr) in part.iter().enumerate() {
            let search = search_text(cdr);
            statement.push(if index == 0 { "(" } else { ", (" });
            statement.list(values(cdr, &search));
            // The tokens of a conversation that was stored before its record.
            statement.bind(
                ", COALESCE((SELECT tokens_input + tokens_output FROM conversations WHERE call_uuid = ",
                cdr.call_uuid.to_string(),
                "",
            );
            statement.bind(" AND organisation_id = ", cdr.organisation_id.to_string(), "), ");
            statement.bind("", cdr.ai_tokens.and_then(|tokens| i64::try_from(tokens).ok()), "))");
            searches.entry(cdr.call_uuid).or_insert(search);
        }
        statement.push(" ON CONFLICT (call_uuid) DO NOTHING RETURNING call_uuid, ai_tokens");
        for row in statement.query().fetch_all(&mut *connection).await? {
            let call = parsed(&row, "call_uuid")?;
            let search = searches.remove(&call).unwrap_or_default();
            inserted.insert(call, Inserted { ai_tokens: number_opt(&row, "ai_tokens")?, search });
        }
    }
    Ok(inserted)
}

/// The values of a record's columns, except the tokens. Its texts are in a block: see [`entry`].
fn values(cdr: &Cdr, search: &str) -> [Value; COLUMNS] {
    let did_search = searchable([cdr.destination_number.as_deref(), cdr.dialled_number.as_deref()]);
    let indexed = fits_an_index(search);
    let [jitter, loss, interval, quality, mos, verdict] = figures(Some(cdr.quality));
    let [jitter_b, loss_b, interval_b, quality_b, mos_b, verdict_b] = figures(cdr.media_b);
    let cost = cdr.billing.cost;
    [
        cdr.call_uuid.to_string().into(),
        cdr.organisation_id.to_string().into(),
        cdr.extension_id.map(|id| id.to_string()).into(),
        cdr.trunk_id.map(|id| id.to_string()).into(),
        cdr.direction.as_str().into(),
        cdr.transport.as_str().into(),
        cdr.started_at.as_micros().into(),
        cdr.answered_at.map(Timestamp::as_micros).into(),
        cdr.ended_at.map(Timestamp::as_micros).into(),
        i64::from(cdr.billsec).into(),
        cdr.billing_mode.as_str().into(),
        cdr.codec_a.as_deref().into(),
        cdr.codec_b.as_deref().into(),
        cdr.caller_number.as_deref().into(),
        cdr.destination_number.as_deref().into(),
        cdr.dialled_number.as_deref().into(),
        cdr.agent_id.map(|id| id.to_string()).into(),
        cdr.team_id.map(|id| id.to_string()).into(),
        cdr.campaign_id.map(|id| id.to_string()).into(),
        cdr.contact_id.map(|id| id.to_string()).into(),
        cdr.node_id.map(|id| id.to_string()).into(),
        cdr.hangup_cause.map(HangupCause::as_str).into(),
        cdr.bridge_cause.map(HangupCause::as_str).into(),
        cdr.sip_status.map(i64::from).into(),
        cdr.sell_amount.scaled().into(),
        cdr.cost_amount.scaled().into(),
        cdr.currency.map(|currency| currency.as_str().to_owned()).into(),
        jitter,
        loss,
        interval,
        quality,
        mos,
        verdict,
        jitter_b,
        loss_b,
        interval_b,
        quality_b,
        mos_b,
        verdict_b,
        search.into(),
        did_search.clone().into(),
        cost.map(|cost| cost.currency.to_string()).into(),
        cost.map(|cost| cost.amount.scaled()).into(),
        cost.and_then(|cost| cost.fx_rate).map(Amount::scaled).into(),
        indexed.then_some(search).into(),
        indexed.then_some(did_search).into(),
        cdr.transcoded().into(),
        cdr.reference.as_deref().into(),
        cdr.ended_by.map(EndedBy::as_str).into(),
        cdr.transferred_from.map(|id| id.to_string()).into(),
        cdr.transferred_to.map(|id| id.to_string()).into(),
        (&cdr.forwarded_by).into(),
        cdr.forward_reason.map(ForwardReason::as_str).into(),
        (&cdr.forwarded_to).into(),
        called_extension(cdr).map(|id| id.to_string()).into(),
        true.into(),
        cdr.fax.into(),
        cdr.device_a.user_agent.as_deref().into(),
        cdr.device_a.network.as_deref().into(),
        cdr.device_b.user_agent.as_deref().into(),
        cdr.device_b.network.as_deref().into(),
    ]
}

/// The extension that was called, unless the record is that extension's own.
fn called_extension(cdr: &Cdr) -> Option<ExtensionId> {
    cdr.called.map(|called| called.extension_id).filter(|called| cdr.extension_id != Some(*called))
}

/// The figures and the verdict of one leg; without values for no leg.
fn figures(leg: Option<Quality>) -> [Value; 6] {
    let leg = leg.unwrap_or_default();
    let [jitter, loss, interval, quality, mos] =
        [leg.jitter_ms, leg.loss_pct, leg.mean_interval_ms, leg.quality_pct, leg.mos]
            .map(|figure| Value::from(figure.map(|figure| figure.0)));
    [jitter, loss, interval, quality, mos, leg.verdict.map(MediaVerdict::as_str).into()]
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

/// The texts of a record, for the block that it is stored with.
fn entry(cdr: &Cdr) -> Entry {
    let number = |number: &Option<String>| stored_text(folded(number.as_deref().unwrap_or_default()));
    Entry {
        call: cdr.call_uuid.0,
        started_us: cdr.started_at.as_micros(),
        facets: [
            Some(cdr.direction.as_str().to_owned()),
            cdr.hangup_cause.map(|cause| cause.as_str().to_owned()),
            cdr.team_id.map(|team| team.to_string()),
        ],
        numbers: [number(&cdr.caller_number), number(&cdr.destination_number), number(&cdr.dialled_number)],
    }
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
        ended_by: word_opt(row, "ended_by", EndedBy::from_name)?,
        fax: row.try_get::<i64>("fax")? != 0,
        transferred_from: parsed_opt(row, "transferred_from")?,
        transferred_to: parsed_opt(row, "transferred_to")?,
        forwarded_by: row.try_get("forwarded_by")?,
        forward_reason: word_opt(row, "forward_reason", ForwardReason::from_name)?,
        forwarded_to: row.try_get("forwarded_to")?,
        sell_amount: Amount::from_scaled(row.try_get("sell_scaled")?),
        cost_amount: Amount::from_scaled(row.try_get("cost_scaled")?),
        currency: parsed_opt(row, "currency")?,
        ai_tokens: number_opt(row, "ai_tokens")?,
        reference: row.try_get("reference")?,
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
        device_a: device(row, "user_agent_a", "network_a")?,
        device_b: device(row, "user_agent_b", "network_b")?,
        media: None,
    })
}

fn device(row: &Row, user_agent: &'static str, network: &'static str) -> Result<Device, StoreError> {
    Ok(Device { user_agent: row.try_get(user_agent)?, network: row.try_get(network)? })
}

/// The amount that the carrier charged, if the record contains it.
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

/// Number of columns that are filled from a record's values.
const COLUMNS: usize = 61;
