//! Searches the blocks of an organisation.

use std::collections::HashMap;
use std::sync::Arc;

use sidetone_model::access::Scope;
use sidetone_model::call::Direction;
use sidetone_model::call_log::CdrFilter;
use sidetone_model::ids::OrganisationId;
use sidetone_model::page::{Order, Window};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use super::block::{BlockId, Condition, Texts, finder};
use super::cache::TextCache;
use super::packing::{unpack_keys, unpack_texts};
use super::searches::{Key, Known, Matches};
use crate::StoreError;
use crate::columns::{number, parsed};
use crate::scope::narrowed;
use crate::search::folded;
use crate::sql::{Connection, sql, stored_text};
use crate::statement::{Statement, parts};

/// The part of a query that blocks can answer.
#[derive(Debug, Clone)]
pub(in super::super) struct Wanted {
    organisation: OrganisationId,
    condition: Condition,
    from_us: i64,
    to_us: i64,
    /// Whether the filter has conditions that blocks cannot answer.
    has_more: bool,
}

/// The records that blocks found.
#[derive(Debug)]
pub(in super::super) struct Found {
    organisation: OrganisationId,
    blocks: Vec<Hits>,
}

/// The matches in one block.
#[derive(Debug)]
struct Hits {
    block: Row,
    matches: Arc<Matches>,
}

/// The columns of a block that are read without its contents.
#[derive(Debug, Clone, Copy)]
struct Row {
    first_call: Uuid,
    records: u64,
    first_started_us: i64,
    last_started_us: i64,
}

impl Wanted {
    /// The part of `filter` inside `scope` that blocks can answer; `None` if there is no text to search for, a text
    /// contains a line end, or the search covers all organisations.
    pub(in super::super) fn of(scope: Scope, filter: &CdrFilter) -> Option<Self> {
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
        let texts = [q.as_deref(), did.as_deref()];
        // The records' search column joins texts with line ends; blocks have each text separately.
        if texts == [None, None] || texts.iter().flatten().any(|text| text.contains('\n')) {
            return None;
        }
        let (organisation, team) = narrowed(scope, *organisation_id, *team_id)?;
        let organisation = organisation?;
        let part_of = |text: &Option<String>| Some(finder(stored_text(folded(text.as_deref()?)).as_bytes()));
        Some(Self {
            organisation,
            condition: Condition {
                facets: [
                    direction.map(Direction::as_str).map(str::to_owned),
                    hangup_cause.clone(),
                    team.map(|team| team.to_string()),
                ],
                did: part_of(did),
                q: part_of(q),
            },
            from_us: from.map_or(i64::MIN, Timestamp::as_micros),
            to_us: to.map_or(i64::MAX, Timestamp::as_micros),
            has_more: agent_id.is_some()
                || billing_mode.is_some()
                || campaign_id.is_some()
                || extension_id.is_some()
                || media_verdict.is_some()
                || media_verdict_b.is_some()
                || min_billsec.is_some()
                || mos_max.is_some()
                || node_id.is_some()
                || network.is_some()
                || reference.is_some()
                || user_agent.is_some()
                || room_id.is_some()
                || transcoded.is_some()
                || transport.is_some()
                || trunk_id.is_some(),
        })
    }

    /// Whether the filter has conditions that blocks cannot answer.
    pub(in super::super) fn has_more(&self) -> bool {
        self.has_more
    }
}

/// Searches the blocks; `None` when they do not contain every record of the organisation.
pub(in super::super) async fn find(
    on: &mut Connection,
    cache: &TextCache,
    wanted: &Wanted,
) -> Result<Option<Found>, StoreError> {
    let rows = blocks(on, wanted.organisation).await?;
    if rows.iter().map(|row| row.records).sum::<u64>() != records(on, wanted.organisation).await? {
        return Ok(None);
    }
    let id = |row: &Row| BlockId {
        organisation: wanted.organisation,
        first_call: row.first_call,
        records: row.records,
    };
    let sought = wanted.condition.sought();
    let known = cache.searches.known(wanted.organisation, &sought);
    // From all blocks, so that matches in blocks outside this time window are kept, and those in merged blocks are
    // not.
    let mut matches: Known =
        rows.iter().map(id).filter_map(|id| Some((id, Arc::clone(known.get(&id)?)))).collect();
    let rows: Vec<Row> = rows
        .into_iter()
        .filter(|row| row.last_started_us >= wanted.from_us && row.first_started_us < wanted.to_us)
        .collect();
    let new: Vec<Row> = rows.iter().copied().filter(|row| !matches.contains_key(&id(row))).collect();
    let turn = cache.turn();
    for part in new.chunks(BLOCKS_AT_ONCE) {
        let mut texts: Vec<(Row, Option<Arc<Texts>>)> =
            part.iter().map(|row| (*row, cache.block(id(row), turn))).collect();
        if texts.iter().any(|(_, texts)| texts.is_none()) {
            let missing: Vec<Uuid> =
                texts.iter().filter(|(_, texts)| texts.is_none()).map(|(row, _)| row.first_call).collect();
            let mut read = read_texts(on, wanted.organisation, &missing).await?;
            for (row, texts) in texts.iter_mut().filter(|(_, texts)| texts.is_none()) {
                *texts = read.remove(&row.first_call);
                if let Some(texts) = texts {
                    cache.keep(id(row), texts, turn);
                }
            }
        }
        for (row, texts) in texts {
            let texts = texts.ok_or(StoreError::Corrupt { column: "texts" })?;
            matches.insert(id(&row), Arc::new(Matches::new(texts.search(&wanted.condition))));
        }
        // A search of a million records takes milliseconds; other tasks run in between.
        tokio::task::yield_now().await;
    }
    let hits = |block: Row| Some(Hits { block, matches: Arc::clone(matches.get(&id(&block))?) });
    let blocks = rows.into_iter().filter_map(hits).filter(|hits| hits.matches.len() > 0).collect();
    let mut found = Found { organisation: wanted.organisation, blocks };
    if !new.is_empty() {
        cache.searches.keep(wanted.organisation, sought, matches);
    }
    found.cut(on, wanted).await?;
    Ok(Some(found))
}

impl Found {
    /// The number of records.
    pub(in super::super) fn total(&self) -> u64 {
        self.blocks.iter().map(|hits| hits.matches.len() as u64).sum()
    }

    /// The ids of the records of a window, by start in `order`, then by id.
    pub(in super::super) async fn window(
        &mut self,
        on: &mut Connection,
        order: Order,
        window: &Window,
    ) -> Result<Vec<String>, StoreError> {
        let end = usize::try_from(window.offset).unwrap_or(usize::MAX).saturating_add(window.limit as usize);
        // Times in inverted form for descending order, so that the window's first records are the smallest.
        let turned = |started_us: i64| match order {
            Order::Ascending => started_us,
            Order::Descending => !started_us,
        };
        let begins = |row: &Row| turned(row.first_started_us).min(turned(row.last_started_us));
        self.blocks.sort_unstable_by_key(|hits| begins(&hits.block));
        let mut calls: Vec<(i64, Uuid)> = Vec::new();
        let key = |&(started_us, call): &(i64, Uuid)| match order {
            Order::Ascending => (started_us, call.as_u128()),
            Order::Descending => (started_us, !call.as_u128()),
        };
        for part in self.blocks.chunks(KEYS_AT_ONCE) {
            // Every record of the window comes before all those of the remaining blocks.
            let next = part.first().map(|hits| begins(&hits.block)).unwrap_or_default();
            if calls.len() >= end && calls.last().is_some_and(|(last, _)| *last < next) {
                break;
            }
            for keys in keys_of(on, self.organisation, part).await? {
                calls.extend(keys.into_iter().map(|(started_us, call)| (turned(started_us), call)));
            }
            calls.sort_unstable_by_key(key);
            calls.truncate(end);
        }
        let first = usize::try_from(window.offset).unwrap_or(usize::MAX);
        Ok(calls.iter().skip(first).map(|(_, call)| call.to_string()).collect())
    }

    /// Drops matches outside the time bounds, in the blocks that cross a bound.
    async fn cut(&mut self, on: &mut Connection, wanted: &Wanted) -> Result<(), StoreError> {
        let is_cut = |row: &Row| row.first_started_us < wanted.from_us || row.last_started_us >= wanted.to_us;
        let (cut, mut whole): (Vec<Hits>, Vec<Hits>) =
            std::mem::take(&mut self.blocks).into_iter().partition(|hits| is_cut(&hits.block));
        for part in cut.chunks(KEYS_AT_ONCE) {
            for (Hits { block, matches }, keys) in
                part.iter().zip(keys_of(on, self.organisation, part).await?)
            {
                let is_within = |(started_us, _): &Key| (wanted.from_us..wanted.to_us).contains(started_us);
                let matches = matches.only(&keys, is_within);
                if matches.len() > 0 {
                    whole.push(Hits { block: *block, matches: Arc::new(matches) });
                }
            }
        }
        self.blocks = whole;
        Ok(())
    }
}

async fn blocks(on: &mut Connection, organisation: OrganisationId) -> Result<Vec<Row>, StoreError> {
    let rows = sql("SELECT first_call_uuid, records, first_started_us, last_started_us FROM cdr_text_blocks
         WHERE organisation_id = $1")
    .bind(organisation.to_string())
    .fetch_all(on)
    .await?;
    rows.iter()
        .map(|row| {
            Ok(Row {
                first_call: parsed(row, "first_call_uuid")?,
                records: number(row, "records")?,
                first_started_us: row.try_get("first_started_us")?,
                last_started_us: row.try_get("last_started_us")?,
            })
        })
        .collect()
}

/// The number of the organisation's records, from the stored counts.
async fn records(on: &mut Connection, organisation: OrganisationId) -> Result<u64, StoreError> {
    let row = sql("SELECT CAST(COALESCE(SUM(records), 0) AS BIGINT) AS total FROM cdr_counts
         WHERE organisation_id = $1 AND dimension = 'all'")
    .bind(organisation.to_string())
    .fetch_one(on)
    .await?;
    number(&row, "total")
}

async fn read_texts(
    on: &mut Connection,
    organisation: OrganisationId,
    blocks: &[Uuid],
) -> Result<HashMap<Uuid, Arc<Texts>>, StoreError> {
    let packed = read(on, "SELECT first_call_uuid, texts AS packed", organisation, blocks).await?;
    let unpacked = packed.into_iter().map(|(block, packed)| {
        let texts = unpack_texts(&packed).ok_or(StoreError::Corrupt { column: "texts" })?;
        Ok((block, Arc::new(texts)))
    });
    unpacked.collect()
}

/// The keys of the matches in each of these blocks.
async fn keys_of(
    on: &mut Connection,
    organisation: OrganisationId,
    blocks: &[Hits],
) -> Result<Vec<Vec<Key>>, StoreError> {
    let unread: Vec<Uuid> = blocks
        .iter()
        .filter(|hits| hits.matches.known_keys().is_none())
        .map(|hits| hits.block.first_call)
        .collect();
    let mut blocks_keys = HashMap::with_capacity(unread.len());
    for (block, packed) in
        read(on, "SELECT first_call_uuid, call_keys AS packed", organisation, &unread).await?
    {
        blocks_keys.insert(block, unpack_keys(&packed).ok_or(StoreError::Corrupt { column: "call_keys" })?);
    }
    let keys = |hits: &Hits| match hits.matches.known_keys() {
        Some(known) => Ok(known.to_vec()),
        None => {
            let keys =
                blocks_keys.get(&hits.block.first_call).ok_or(StoreError::Corrupt { column: "call_keys" })?;
            Ok(hits.matches.keys_in(keys))
        }
    };
    blocks.iter().map(keys).collect()
}

/// The bytes that `select` returns for each block.
async fn read(
    on: &mut Connection,
    select: &'static str,
    organisation: OrganisationId,
    blocks: &[Uuid],
) -> Result<Vec<(Uuid, Vec<u8>)>, StoreError> {
    let mut packed = Vec::with_capacity(blocks.len());
    for part in parts(blocks) {
        let mut statement = Statement::new(select);
        statement.push(" FROM cdr_text_blocks");
        statement.bind(" WHERE organisation_id = ", organisation.to_string(), " AND first_call_uuid IN (");
        statement.list(part.iter().map(|block| block.to_string().into()));
        statement.push(")");
        for row in statement.query().fetch_all(&mut *on).await? {
            let bytes: Option<Vec<u8>> = row.try_get("packed")?;
            packed.push((parsed(&row, "first_call_uuid")?, bytes.unwrap_or_default()));
        }
    }
    Ok(packed)
}

/// Blocks that are read and searched in one step.
const BLOCKS_AT_ONCE: usize = 8;
/// Blocks whose keys are read together: the records of a page are in few blocks.
const KEYS_AT_ONCE: usize = 4;
