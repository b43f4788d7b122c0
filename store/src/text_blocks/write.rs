//! Adds blocks with the records that they contain, and merges small ones.
//!
//! A transaction adds one block per organisation, however few records it has. Whenever this process has added
//! [`FAN_OUT`] blocks of an organisation, blocks of similar size are merged. So a record is rewritten about three
//! times in total, and an organisation has few blocks that are not full.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use sidetone_model::ids::OrganisationId;
use uuid::Uuid;

use super::block::{Block, Entry, RECORDS_MAX};
use super::packing::{pack_keys, pack_texts, unpack_keys, unpack_texts};
use crate::StoreError;
use crate::columns::{number, parsed};
use crate::sql::{Connection, Value, sql};
use crate::statement::{Statement, parts};

/// How many blocks of each organisation this process has added since its last merge; clones share the numbers.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Unmerged(Arc<Mutex<HashMap<OrganisationId, usize>>>);

impl Unmerged {
    /// Counts added blocks; returns whether it is time to merge.
    fn add(&self, organisation: OrganisationId, blocks: usize) -> bool {
        let mut counts = self.0.lock();
        let count = counts.entry(organisation).or_default();
        *count += blocks;
        if *count < FAN_OUT {
            return false;
        }
        counts.remove(&organisation);
        true
    }
}

/// Stores blocks of new records, and merges blocks where there are many small ones.
pub(in super::super) async fn add_blocks(
    connection: &mut Connection,
    unmerged: &Unmerged,
    entries: BTreeMap<OrganisationId, Vec<Entry>>,
) -> Result<(), StoreError> {
    let blocks: Vec<(OrganisationId, Block)> = entries
        .iter()
        .flat_map(|(organisation, entries)| {
            entries.chunks(RECORDS_MAX).map(|entries| (*organisation, Block::of(entries)))
        })
        .collect();
    for part in parts(&blocks) {
        insert(connection, part).await?;
    }
    for (organisation, entries) in &entries {
        if unmerged.add(*organisation, entries.len().div_ceil(RECORDS_MAX))
            && alone(connection, *organisation).await?
        {
            merge_small(connection, *organisation).await?;
        }
    }
    Ok(())
}

/// Stores blocks.
pub(super) async fn insert(
    connection: &mut Connection,
    blocks: &[(OrganisationId, Block)],
) -> Result<(), StoreError> {
    let mut statement = Statement::new(
        "INSERT INTO cdr_text_blocks (organisation_id, first_call_uuid, records, size_bytes, first_started_us,
         last_started_us, call_keys, texts) VALUES ",
    );
    statement.rows(blocks.iter().map(|(organisation, block)| row(*organisation, block)));
    statement.query().execute(connection).await?;
    Ok(())
}

fn row(organisation: OrganisationId, block: &Block) -> [Value; 8] {
    let started_us = &block.keys.started_us;
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    [
        organisation.to_string().into(),
        block.keys.calls.iter().min().copied().unwrap_or_default().to_string().into(),
        count(block.len()).into(),
        count(block.texts.text_bytes()).into(),
        started_us.iter().min().copied().unwrap_or_default().into(),
        started_us.iter().max().copied().unwrap_or_default().into(),
        Some(pack_keys(&block.keys)).into(),
        Some(pack_texts(&block.texts)).into(),
    ]
}

/// Takes the merge lock of the organisation; `false` if another transaction holds it. The caller does not wait for
/// another node's merge: it merges later instead.
async fn alone(connection: &mut Connection, organisation: OrganisationId) -> Result<bool, StoreError> {
    if let Connection::Sqlite(..) = connection {
        return Ok(true);
    }
    let (_, low) = organisation.0.as_u64_pair();
    let lock = low.cast_signed() ^ MERGE_LOCK;
    let row = sql("SELECT CAST(CAST(pg_try_advisory_xact_lock($1) AS INTEGER) AS BIGINT) AS locked")
        .bind(lock)
        .fetch_one(connection)
        .await?;
    Ok(number::<i64>(&row, "locked")? == 1)
}

/// Merges the blocks of an organisation that are not full, if there are enough of similar size.
async fn merge_small(connection: &mut Connection, organisation: OrganisationId) -> Result<(), StoreError> {
    let rows =
        sql("SELECT first_call_uuid, records, size_bytes FROM cdr_text_blocks WHERE organisation_id = $1
         AND records < 4096 AND size_bytes < 1048576")
        .bind(organisation.to_string())
        .fetch_all(&mut *connection)
        .await?;
    let mut small = Vec::with_capacity(rows.len());
    for row in &rows {
        let weight = number::<u64>(row, "records")?.max(number::<u64>(row, "size_bytes")? / TYPICAL_BYTES);
        small.push((parsed(row, "first_call_uuid")?, weight));
    }
    for sources in to_merge(small) {
        merge(connection, organisation, &sources).await?;
    }
    Ok(())
}

/// Which blocks are merged into one: those of a tier, once they are many. If the result completes the number of a
/// higher tier, the blocks of that tier are included. Each block has its weight, which is about the number of its
/// records.
fn to_merge(small: Vec<(Uuid, u64)>) -> Vec<Vec<Uuid>> {
    let mut tiers = [const { Vec::new() }; TIERS];
    for (block, weight) in small {
        if let Some(tier) = tiers.get_mut(tier_of(weight)) {
            tier.push((vec![block], weight));
        }
    }
    let mut merged = Vec::new();
    for place in 0..TIERS {
        let Some(tier) = tiers.get_mut(place).map(std::mem::take) else { continue };
        let weight: u64 = tier.iter().map(|(_, weight)| weight).sum();
        if tier.len() < FAN_OUT && weight < FULL {
            merged.extend(tier);
            continue;
        }
        let (mut sources, mut weight) = (Vec::new(), 0);
        for (blocks, more) in tier {
            sources.extend(blocks);
            weight += more;
            if weight >= FULL {
                merged.push((std::mem::take(&mut sources), std::mem::take(&mut weight)));
            }
        }
        match tiers.get_mut(tier_of(weight)).filter(|_| tier_of(weight) > place) {
            Some(next) => next.push((sources, weight)),
            None => merged.push((sources, weight)),
        }
    }
    merged.into_iter().map(|(blocks, _)| blocks).filter(|blocks| blocks.len() > 1).collect()
}

/// The tier of a block: by [`FAN_OUT`]; [`TIERS`] for a full one.
fn tier_of(weight: u64) -> usize {
    match weight {
        0..16 => 0,
        16..256 => 1,
        256..FULL => 2,
        FULL.. => TIERS,
    }
}

async fn merge(
    connection: &mut Connection,
    organisation: OrganisationId,
    sources: &[Uuid],
) -> Result<(), StoreError> {
    let mut merged = Block::default();
    for part in parts(sources) {
        let mut statement = Statement::new("DELETE FROM cdr_text_blocks WHERE organisation_id = ");
        statement.bind("", organisation.to_string(), " AND first_call_uuid IN (");
        statement.list(part.iter().map(|source| source.to_string().into()));
        statement.push(") RETURNING call_keys, texts");
        for row in statement.query().fetch_all(&mut *connection).await? {
            let keys: Option<Vec<u8>> = row.try_get("call_keys")?;
            let texts: Option<Vec<u8>> = row.try_get("texts")?;
            merged.append(Block {
                keys: keys
                    .and_then(|keys| unpack_keys(&keys))
                    .ok_or(StoreError::Corrupt { column: "call_keys" })?,
                texts: texts
                    .and_then(|texts| unpack_texts(&texts))
                    .ok_or(StoreError::Corrupt { column: "texts" })?,
            });
        }
    }
    if merged.len() > 0 {
        insert(connection, &[(organisation, merged)]).await?;
    }
    Ok(())
}

/// Blocks of a tier that are merged into one.
const FAN_OUT: usize = 16;
/// Blocks below 16, below 256 and below 4,096.
const TIERS: usize = 3;
/// The weight from which a block is no longer merged; the statement that reads small blocks contains it too.
const FULL: u64 = 4096;
/// The size of the texts of a record, estimated generously; a block of longer texts is full with fewer records.
const TYPICAL_BYTES: u64 = 256;
/// Distinguishes the lock of an organisation from locks of other kinds.
const MERGE_LOCK: i64 = 0x5EED_0190_7E87_B10C;

#[cfg(test)]
mod tests {
    use super::*;

    /// The weights of the blocks after each merge.
    fn merged(weights: &[u64]) -> Vec<u64> {
        let blocks: Vec<(Uuid, u64)> =
            (0..).zip(weights).map(|(number, weight)| (Uuid::from_u128(number), *weight)).collect();
        to_merge(blocks.clone())
            .iter()
            .map(|sources| {
                sources.iter().map(|source| blocks.iter().find(|(id, _)| id == source).unwrap().1).sum()
            })
            .collect()
    }

    #[test]
    fn blocks_of_a_tier_are_merged_once_they_are_many() {
        let cases: [(&str, Vec<u64>, Vec<u64>); 8] = [
            ("few", vec![1; 15], vec![]),
            ("as many as make one", vec![1; 16], vec![16]),
            ("each tier for itself", [vec![3; 16], vec![20; 3]].concat(), vec![48]),
            ("a tier completed by the one below", [vec![1; 16], vec![20; 15]].concat(), vec![316]),
            ("through all tiers", [vec![1; 16], vec![16; 15], vec![256; 15]].concat(), vec![4096]),
            ("few that fill a block", vec![3000, 2000], vec![5000]),
            ("many that fill several", vec![2000; 7], vec![6000, 6000]),
            ("many that fill several, and a rest", vec![2000; 8], vec![6000, 6000, 4000]),
        ];
        for (name, weights, expected) in cases {
            assert_eq!(merged(&weights), expected, "{name}");
        }
    }

    /// However long it runs: few small blocks, and each record rewritten few times.
    #[test]
    fn a_record_is_rewritten_a_few_times() {
        let (mut blocks, mut rewritten) = (Vec::<(Uuid, u64)>::new(), 0);
        for group in 1..=20_000_u128 {
            blocks.push((Uuid::from_u128(group), 3));
            if group % 16 != 0 {
                continue;
            }
            let small = blocks.iter().filter(|(_, weight)| *weight < FULL).copied().collect();
            for sources in to_merge(small) {
                let weight =
                    blocks.iter().filter(|(id, _)| sources.contains(id)).map(|(_, weight)| weight).sum();
                blocks.retain(|(id, _)| !sources.contains(id));
                blocks.push((sources[0], weight));
                rewritten += weight;
            }
            assert!(blocks.iter().filter(|(_, weight)| *weight < FULL).count() < 48, "after {group}");
            assert!(blocks.iter().all(|(_, weight)| *weight < 2 * FULL));
        }
        assert!(rewritten < 60_000 * 3, "{rewritten} of 60,000 records");
    }
}
