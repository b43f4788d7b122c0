//! The matches of the latest searches in each block, in memory: the next page of a search, and a page that is loaded
//! again, search only the blocks that were added since. Blocks never change.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use sidetone_model::ids::OrganisationId;
use uuid::Uuid;

use super::block::{BlockId, Keys, Sought};

/// The matches in each block.
pub(super) type Known = HashMap<BlockId, Arc<Matches>>;

/// The records of a block that a search found.
#[derive(Debug, Default)]
pub(super) struct Matches {
    /// Their indexes in the block, ascending.
    places: Box<[u32]>,
    /// Their starts in microseconds and their ids, once they were read; kept only for few matches: a page of rare
    /// matches needs the keys of many blocks.
    keys: OnceLock<Box<[Key]>>,
}

/// The start of a record in microseconds, and its id.
pub(super) type Key = (i64, Uuid);

impl Matches {
    pub(super) fn new(places: Vec<u32>) -> Self {
        Self { places: places.into(), keys: OnceLock::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The starts and ids, if they were kept.
    pub(super) fn known_keys(&self) -> Option<&[Key]> {
        self.keys.get().map(|keys| &**keys)
    }

    /// Selects the starts and ids of the matches from those of the block; few are kept.
    pub(super) fn keys_in(&self, block: &Keys) -> Vec<Key> {
        let key = |place: &u32| {
            let place = *place as usize;
            Some((*block.started_us.get(place)?, *block.calls.get(place)?))
        };
        let keys: Vec<Key> = self.places.iter().filter_map(key).collect();
        if self.are_few() {
            self.keys.get_or_init(|| keys.clone().into());
        }
        keys
    }

    /// The matches whose key satisfies `passes`; `keys` are the keys of all matches.
    pub(super) fn only(&self, keys: &[Key], passes: impl Fn(&Key) -> bool) -> Self {
        let (places, keys): (Vec<u32>, Vec<Key>) =
            self.places.iter().zip(keys).filter(|(_, key)| passes(key)).unzip();
        let only = Self::new(places);
        if only.are_few() {
            only.keys.get_or_init(|| keys.into());
        }
        only
    }

    fn are_few(&self) -> bool {
        self.places.len() <= KEYS_MAX
    }

    /// The memory that the matches take once their keys were read.
    fn size_bytes(&self) -> usize {
        let keys = if self.are_few() { self.places.len() * size_of::<Key>() } else { 0 };
        size_of_val(&*self.places) + keys + ENTRY_BYTES
    }
}

/// The latest searches; clones share them.
///
/// *Bounds*: [`SEARCHES_MAX`] searches in total, [`OWN_SEARCHES_MAX`] per organisation; [`SEARCH_MAX_BYTES`] per
/// search, [`SIZE_MAX_BYTES`] in total.
#[derive(Debug, Clone, Default)]
pub(super) struct Searches(Arc<Mutex<Vec<Search>>>);

#[derive(Debug)]
struct Search {
    organisation: OrganisationId,
    sought: Sought,
    known: Arc<Known>,
    size_bytes: usize,
}

impl Searches {
    /// The kept matches of a search; empty if there are none.
    pub(super) fn known(&self, organisation: OrganisationId, sought: &Sought) -> Arc<Known> {
        let searches = self.0.lock();
        let search =
            searches.iter().find(|search| search.organisation == organisation && search.sought == *sought);
        search.map(|search| Arc::clone(&search.known)).unwrap_or_default()
    }

    /// Keeps the matches of a search in place of its earlier ones. The oldest searches are dropped, first those of
    /// the same organisation.
    pub(super) fn keep(&self, organisation: OrganisationId, sought: Sought, known: Known) {
        let size_bytes = size_of_search(&sought, &known);
        let mut searches = self.0.lock();
        searches.retain(|search| search.organisation != organisation || search.sought != sought);
        if size_bytes > SEARCH_MAX_BYTES {
            return;
        }
        let is_own = |search: &Search| search.organisation == organisation;
        if searches.iter().filter(|search| is_own(search)).count() >= OWN_SEARCHES_MAX
            && let Some(oldest) = searches.iter().position(is_own)
        {
            searches.remove(oldest);
        }
        let mut total = size_bytes + searches.iter().map(|search| search.size_bytes).sum::<usize>();
        while !searches.is_empty() && (searches.len() >= SEARCHES_MAX || total > SIZE_MAX_BYTES) {
            total -= searches.remove(0).size_bytes;
        }
        searches.push(Search { organisation, sought, known: Arc::new(known), size_bytes });
    }
}

fn size_of_search(sought: &Sought, known: &Known) -> usize {
    known.values().map(|matches| matches.size_bytes()).sum::<usize>()
        + sought.size_bytes()
        + size_of::<Search>()
}

const SEARCHES_MAX: usize = 64;
const OWN_SEARCHES_MAX: usize = 8;
/// One million matches, or some 150,000 whose keys are kept.
const SEARCH_MAX_BYTES: usize = 4 << 20;
const SIZE_MAX_BYTES: usize = 16 << 20;
/// Largest number of matches of a block whose keys are kept.
const KEYS_MAX: usize = 64;
/// Memory that an entry of the map takes in addition to the indexes and the keys.
const ENTRY_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn organisation(number: u128) -> OrganisationId {
        OrganisationId(Uuid::from_u128(number))
    }

    fn sought(text: &str) -> Sought {
        Sought { q: Some(text.as_bytes().to_vec()), ..Sought::default() }
    }

    fn places(of: OrganisationId, matches: usize) -> Known {
        let id = BlockId { organisation: of, first_call: Uuid::nil(), records: 1 };
        HashMap::from([(id, Arc::new(Matches::new(vec![0; matches])))])
    }

    fn is_known(searches: &Searches, of: OrganisationId, text: &str) -> bool {
        !searches.known(of, &sought(text)).is_empty()
    }

    #[test]
    fn an_organisation_displaces_its_own_searches_only() {
        let searches = Searches::default();
        let (other, own) = (organisation(1), organisation(2));
        searches.keep(other, sought("1"), places(other, 1));
        for text in 0..100 {
            searches.keep(own, sought(&text.to_string()), places(own, 1));
        }
        assert!(is_known(&searches, other, "1"));
        let known = (0..100).filter(|text| is_known(&searches, own, &text.to_string()));
        assert_eq!(known.collect::<Vec<_>>(), (92..100).collect::<Vec<_>>(), "the latest ones");
    }

    #[test]
    fn the_number_of_searches_and_their_size_are_bounded() {
        let searches = Searches::default();
        for number in 0..1_000 {
            searches.keep(organisation(number), sought("1"), places(organisation(number), 1));
        }
        assert_eq!(searches.0.lock().len(), SEARCHES_MAX);
        for number in 0..100 {
            searches.keep(organisation(number), sought("1"), places(organisation(number), 900_000));
            let total: usize = searches.0.lock().iter().map(|search| search.size_bytes).sum();
            assert!(total <= SIZE_MAX_BYTES);
        }
        assert!(is_known(&searches, organisation(99), "1"));
        searches.keep(organisation(99), sought("1"), places(organisation(99), 2_000_000));
        assert!(
            !is_known(&searches, organisation(99), "1"),
            "too large, and what was known is no longer true"
        );
    }

    #[test]
    fn the_keys_of_few_matches_are_kept_and_counted() {
        let block = Keys {
            started_us: (0..100).collect(),
            calls: (0..100).map(|call| Uuid::from_u128(call + 1_000)).collect(),
        };
        let few = Matches::new(vec![3, 70, 100]);
        assert_eq!(few.known_keys(), None);
        let keys = [(3, Uuid::from_u128(1_003)), (70, Uuid::from_u128(1_070))];
        assert_eq!(few.keys_in(&block), keys, "the block has no place 100");
        assert_eq!(few.known_keys(), Some(&keys[..]));
        let many = Matches::new((0..100).collect());
        assert_eq!(many.keys_in(&block).len(), 100);
        assert_eq!(many.known_keys(), None);
        assert_eq!([few.size_bytes(), many.size_bytes()], [3 * (4 + 24) + ENTRY_BYTES, 400 + ENTRY_BYTES]);
    }
}
