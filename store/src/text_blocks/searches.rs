//! What the latest searches found in each block, in memory: the next page of a search, and a page that is loaded again,
//! search only the blocks that were added since. Blocks never change.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use sidetone_model::ids::OrganisationId;

use super::block::{BlockId, Sought};

/// The places of the matches in each block.
pub(super) type Places = HashMap<BlockId, Arc<[u32]>>;

/// The latest searches; clones share them.
///
/// *Bounds*: [`SEARCHES_MAX`] in all, [`OWN_SEARCHES_MAX`] of one organisation, of each [`SEARCH_MAX_BYTES`], of all
/// together [`SIZE_MAX_BYTES`].
#[derive(Debug, Clone, Default)]
pub(super) struct Searches(Arc<Mutex<Vec<Search>>>);

#[derive(Debug)]
struct Search {
    organisation: OrganisationId,
    sought: Sought,
    places: Arc<Places>,
    size_bytes: usize,
}

impl Searches {
    /// What is known of a search; empty when it is new.
    pub(super) fn places(&self, organisation: OrganisationId, sought: &Sought) -> Arc<Places> {
        let searches = self.0.lock();
        let known =
            searches.iter().find(|known| known.organisation == organisation && known.sought == *sought);
        known.map(|known| Arc::clone(&known.places)).unwrap_or_default()
    }

    /// Keeps what a search found, in place of what was known of it; the oldest ones are dropped, first those of the same
    /// organisation.
    pub(super) fn keep(&self, organisation: OrganisationId, sought: Sought, places: Places) {
        let size_bytes = size_of_search(&sought, &places);
        let mut searches = self.0.lock();
        searches.retain(|known| known.organisation != organisation || known.sought != sought);
        if size_bytes > SEARCH_MAX_BYTES {
            return;
        }
        let is_own = |known: &Search| known.organisation == organisation;
        if searches.iter().filter(|known| is_own(known)).count() >= OWN_SEARCHES_MAX
            && let Some(oldest) = searches.iter().position(is_own)
        {
            searches.remove(oldest);
        }
        let mut total = size_bytes + searches.iter().map(|known| known.size_bytes).sum::<usize>();
        while !searches.is_empty() && (searches.len() >= SEARCHES_MAX || total > SIZE_MAX_BYTES) {
            total -= searches.remove(0).size_bytes;
        }
        searches.push(Search { organisation, sought, places: Arc::new(places), size_bytes });
    }
}

fn size_of_search(sought: &Sought, places: &Places) -> usize {
    let found: usize = places.values().map(|places| size_of_val::<[u32]>(places) + ENTRY_BYTES).sum();
    found + sought.size_bytes() + size_of::<Search>()
}

const SEARCHES_MAX: usize = 64;
const OWN_SEARCHES_MAX: usize = 8;
/// One million matches.
const SEARCH_MAX_BYTES: usize = 4 << 20;
const SIZE_MAX_BYTES: usize = 16 << 20;
/// What an entry of the map takes beside the places.
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

    fn places(of: OrganisationId, matches: usize) -> Places {
        let id = BlockId { organisation: of, first_call: Uuid::nil(), records: 1 };
        HashMap::from([(id, Arc::from(vec![0; matches]))])
    }

    fn is_known(searches: &Searches, of: OrganisationId, text: &str) -> bool {
        !searches.places(of, &sought(text)).is_empty()
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
            let total: usize = searches.0.lock().iter().map(|known| known.size_bytes).sum();
            assert!(total <= SIZE_MAX_BYTES);
        }
        assert!(is_known(&searches, organisation(99), "1"));
        searches.keep(organisation(99), sought("1"), places(organisation(99), 2_000_000));
        assert!(
            !is_known(&searches, organisation(99), "1"),
            "too large, and what was known is no longer true"
        );
    }
}
