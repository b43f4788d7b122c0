//! The most recently searched blocks, in memory.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::block::{BlockId, Texts};
use super::searches::Searches;

/// Texts of blocks, at most [`SIZE_MAX_BYTES`], and what searches found in them; clones share them.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct TextCache {
    texts: Arc<Mutex<Cached>>,
    pub(super) searches: Searches,
}

#[derive(Debug, Default)]
struct Cached {
    blocks: HashMap<BlockId, (Arc<Texts>, Turn)>,
    size_bytes: usize,
    turn: Turn,
}

/// The number of a search: blocks of the oldest ones are dropped first.
type Turn = u64;

impl TextCache {
    /// The number of a new search.
    pub(super) fn turn(&self) -> Turn {
        let mut cached = self.texts.lock();
        cached.turn += 1;
        cached.turn
    }

    /// The texts of a block.
    pub(super) fn block(&self, id: BlockId, turn: Turn) -> Option<Arc<Texts>> {
        let mut cached = self.texts.lock();
        let (texts, last) = cached.blocks.get_mut(&id)?;
        *last = turn;
        Some(Arc::clone(texts))
    }

    /// Keeps the texts of a block, unless they would displace others of the same search: a search that reads more
    /// than fits would otherwise find nothing in memory when it is repeated.
    pub(super) fn keep(&self, id: BlockId, texts: &Arc<Texts>, turn: Turn) {
        let mut cached = self.texts.lock();
        let size = size_of_entry(texts);
        if cached.size_bytes + size > SIZE_MAX_BYTES {
            cached.make_room(turn);
        }
        if cached.size_bytes + size > SIZE_MAX_BYTES {
            return;
        }
        if let Some((replaced, _)) = cached.blocks.insert(id, (Arc::clone(texts), turn)) {
            cached.size_bytes -= size_of_entry(&replaced);
        }
        cached.size_bytes += size;
    }
}

impl Cached {
    /// Drops blocks of the oldest searches, but not of searches from `turn` on, until a quarter of the size is free.
    fn make_room(&mut self, turn: Turn) {
        let mut by_turn: Vec<(Turn, BlockId)> =
            self.blocks.iter().map(|(id, (_, last))| (*last, *id)).filter(|(last, _)| *last < turn).collect();
        by_turn.sort_unstable_by_key(|(last, _)| *last);
        for (_, id) in by_turn {
            if self.size_bytes <= SIZE_MAX_BYTES / 4 * 3 {
                return;
            }
            if let Some((dropped, _)) = self.blocks.remove(&id) {
                self.size_bytes -= size_of_entry(&dropped);
            }
        }
    }
}

fn size_of_entry(texts: &Texts) -> usize {
    texts.size_bytes() + ENTRY_BYTES
}

/// 64 MiB: the texts of about 1.6 million records.
const SIZE_MAX_BYTES: usize = 64 << 20;
/// Memory that an entry of the map takes in addition to the texts.
const ENTRY_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use sidetone_model::ids::OrganisationId;
    use uuid::Uuid;

    use super::super::block::Numbers;
    use super::*;

    fn id(number: u64) -> BlockId {
        BlockId { organisation: OrganisationId(Uuid::nil()), first_call: Uuid::nil(), records: number }
    }

    #[test]
    fn the_size_is_bounded_and_old_searches_go_first() {
        let cache = TextCache::default();
        let callers = Numbers { bytes: vec![0; SIZE_MAX_BYTES / 8], ..Numbers::default() };
        let texts = Arc::new(Texts { callers, ..Texts::default() });
        let old = cache.turn();
        for number in 0..4 {
            cache.keep(id(number), &texts, old);
        }
        let new = cache.turn();
        assert!(cache.block(id(0), new).is_some());
        for number in 4..40 {
            cache.keep(id(number), &texts, new);
            assert!(cache.texts.lock().size_bytes <= SIZE_MAX_BYTES);
        }
        assert!(cache.block(id(0), new).is_some(), "used by the new search");
        assert!((1..4).all(|number| cache.block(id(number), new).is_none()), "of the old search");
        assert!(cache.block(id(4), new).is_some(), "the first of the new search stay");
        assert!(cache.block(id(39), new).is_none());
    }
}
