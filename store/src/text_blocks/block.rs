//! A block: the searchable texts of some records of one organisation, and which records they are.

use memchr::arch::all::packedpair::HeuristicFrequencyRank;
use memchr::memmem::{Finder, FinderBuilder};
use sidetone_model::ids::OrganisationId;
use uuid::Uuid;

/// A record as a block contains it; texts are folded.
#[derive(Debug, Clone)]
pub(in super::super) struct Entry {
    /// Its primary key.
    pub call: Uuid,
    /// Its start, in microseconds.
    pub started_us: i64,
    /// Its direction, hangup cause and team, in the order of [`FACETS`].
    pub facets: [Option<String>; FACETS],
    /// The number of the caller, of the destination, and as dialled.
    pub numbers: [String; NUMBERS],
}

/// Which records a block contains, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) started_us: Vec<i64>,
    pub(super) calls: Vec<Uuid>,
}

/// The texts of the records of a block, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Texts {
    pub(super) facets: [Facet; FACETS],
    /// The numbers of the callers.
    pub(super) callers: Numbers,
    /// The numbers of the destinations and as dialled.
    pub(super) dialled: Numbers,
}

/// Some numbers of each record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    /// The end of each record in `bytes`.
    pub(super) ends: Vec<u32>,
    /// The numbers, with [`END`] after each.
    pub(super) bytes: Vec<u8>,
}

/// One value of each record, out of a few different ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Facet {
    /// The different values.
    pub(super) values: Vec<String>,
    /// For each record, the index of its value plus one; zero for none.
    pub(super) codes: Vec<u16>,
}

/// The condition that records of a search satisfy.
#[derive(Debug, Clone, Default)]
pub(super) struct Condition {
    /// The value of a facet.
    pub(super) facets: [Option<String>; FACETS],
    /// Part of the number of the destination or as dialled.
    pub(super) did: Option<Finder<'static>>,
    /// Part of any number or of the hangup cause.
    pub(super) q: Option<Finder<'static>>,
}

/// A condition in a form that can be compared with others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sought {
    pub(super) facets: [Option<String>; FACETS],
    pub(super) did: Option<Vec<u8>>,
    pub(super) q: Option<Vec<u8>>,
}

/// Identifies a block. A block that is merged into a larger one has fewer records than that one, so an id always
/// identifies the same content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BlockId {
    pub(super) organisation: OrganisationId,
    /// The smallest id of its records.
    pub(super) first_call: Uuid,
    pub(super) records: u64,
}

/// Records of an organisation in the form in which they are stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) keys: Keys,
    pub(super) texts: Texts,
}

/// A finder of `part` in numbers. It compares two bytes of `part` first: those whose last place in it is nearest to
/// its end, because the numbers of a log share their first digits.
pub(super) fn finder(part: &[u8]) -> Finder<'static> {
    let mut ranks = LastPlaces([u8::MAX; 256]);
    for (place, byte) in (0..u8::MAX).zip(part) {
        if let Some(rank) = ranks.0.get_mut(usize::from(*byte)) {
            *rank = u8::MAX - 1 - place;
        }
    }
    FinderBuilder::new().build_forward_with_ranker_owned(ranks, part)
}

/// A rank of each byte; a lower rank is compared first.
struct LastPlaces([u8; 256]);

impl HeuristicFrequencyRank for LastPlaces {
    fn rank(&self, byte: u8) -> u8 {
        self.0.get(usize::from(byte)).copied().unwrap_or(u8::MAX)
    }
}

impl Condition {
    pub(super) fn sought(&self) -> Sought {
        let needle = |part: &Option<Finder<'_>>| part.as_ref().map(|part| part.needle().to_vec());
        Sought { facets: self.facets.clone(), did: needle(&self.did), q: needle(&self.q) }
    }
}

impl Sought {
    /// The memory that the texts take.
    pub(super) fn size_bytes(&self) -> usize {
        let facets = self.facets.iter().flatten().map(String::len).sum::<usize>();
        facets + [&self.did, &self.q].into_iter().flatten().map(Vec::len).sum::<usize>()
    }
}

impl Block {
    /// A block of `entries`; at most [`RECORDS_MAX`] are meant for one.
    pub(super) fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut block = Self::default();
        for entry in entries {
            block.keys.started_us.push(entry.started_us);
            block.keys.calls.push(entry.call);
            for (facet, value) in block.texts.facets.iter_mut().zip(&entry.facets) {
                facet.push(value.as_deref());
            }
            let [caller, dialled @ ..] = &entry.numbers;
            block.texts.callers.push(std::slice::from_ref(caller));
            block.texts.dialled.push(dialled);
        }
        block
    }

    /// Adds the records of `other`.
    pub(super) fn append(&mut self, other: Self) {
        self.keys.started_us.extend(other.keys.started_us);
        self.keys.calls.extend(other.keys.calls);
        for (facet, added) in self.texts.facets.iter_mut().zip(&other.texts.facets) {
            facet.append(added);
        }
        self.texts.callers.append(&other.texts.callers);
        self.texts.dialled.append(&other.texts.dialled);
    }

    /// The number of records.
    pub(super) fn len(&self) -> usize {
        self.keys.calls.len()
    }
}

impl Facet {
    fn push(&mut self, value: Option<&str>) {
        let code = value.map_or(0, |value| self.code(value));
        self.codes.push(code);
    }

    /// The code of a value, which is added if it is new.
    fn code(&mut self, value: &str) -> u16 {
        let place = self.values.iter().position(|known| known == value).unwrap_or_else(|| {
            self.values.push(value.to_owned());
            self.values.len().saturating_sub(1)
        });
        u16::try_from(place.saturating_add(1)).unwrap_or(u16::MAX)
    }

    fn append(&mut self, other: &Facet) {
        let mut codes = vec![0];
        codes.extend(other.values.iter().map(|value| self.code(value)));
        let code = |of: &u16| codes.get(usize::from(*of)).copied().unwrap_or_default();
        self.codes.extend(other.codes.iter().map(code));
    }

    /// Keeps the hits of records whose value is `wanted`; returns whether there are any such records.
    fn keep(&self, wanted: &str, hits: &mut [bool]) -> bool {
        let Some(place) = self.values.iter().position(|value| value == wanted) else { return false };
        for (hit, code) in hits.iter_mut().zip(&self.codes) {
            *hit &= usize::from(*code) == place.saturating_add(1);
        }
        true
    }
}

impl Texts {
    /// The indexes of the records that satisfy `condition`, in ascending order.
    pub(super) fn search(&self, condition: &Condition) -> Vec<u32> {
        let mut hits = vec![true; self.callers.ends.len()];
        for (facet, wanted) in self.facets.iter().zip(&condition.facets) {
            if wanted.as_deref().is_some_and(|wanted| !facet.keep(wanted, &mut hits)) {
                return Vec::new();
            }
        }
        if let Some(part) = &condition.did {
            let mut found = vec![false; hits.len()];
            self.dialled.mark(part, &mut found);
            both(&mut hits, &found);
        }
        if let Some(part) = &condition.q {
            let mut found = self.with_cause(part);
            self.callers.mark(part, &mut found);
            self.dialled.mark(part, &mut found);
            both(&mut hits, &found);
        }
        (0..).zip(hits).filter_map(|(place, hit)| hit.then_some(place)).collect()
    }

    /// The memory that these texts take.
    pub(super) fn size_bytes(&self) -> usize {
        let facets: usize =
            self.facets.iter().map(|facet| facet.codes.len() * 2 + facet.values.len() * 64).sum();
        let records = self.callers.ends.len() * 8;
        size_of::<Self>() + self.text_bytes() + records + facets
    }

    /// The bytes of the texts alone.
    pub(super) fn text_bytes(&self) -> usize {
        self.callers.bytes.len() + self.dialled.bytes.len()
    }

    /// Which records have `part` in their hangup cause.
    fn with_cause(&self, part: &Finder<'_>) -> Vec<bool> {
        let [_, causes, _] = &self.facets;
        let mut has = vec![false];
        has.extend(
            causes.values.iter().map(|cause| part.find(cause.to_ascii_lowercase().as_bytes()).is_some()),
        );
        causes.codes.iter().map(|code| has.get(usize::from(*code)).copied().unwrap_or_default()).collect()
    }
}

impl Numbers {
    fn push(&mut self, numbers: &[String]) {
        for number in numbers {
            self.bytes.extend_from_slice(number.as_bytes());
            self.bytes.push(END);
        }
        self.ends.push(end_of(&self.bytes));
    }

    fn append(&mut self, other: &Numbers) {
        let before = end_of(&self.bytes);
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| before.saturating_add(*end)));
    }

    /// Marks the records with `part` in one of these numbers.
    fn mark(&self, part: &Finder<'_>, hits: &mut [bool]) {
        if part.needle().is_empty() {
            hits.fill(true);
            return;
        }
        let mut records = self.ends.iter().map(|end| *end as usize).zip(hits);
        let mut from = 0;
        while let Some(at) = self.bytes.get(from..).and_then(|rest| part.find(rest)).map(|at| from + at) {
            // A match ends before the END of its number, and so inside its record.
            let Some((end, hit)) = records.find(|(end, _)| *end > at) else { return };
            *hit = true;
            from = end;
        }
    }
}

fn both(hits: &mut [bool], found: &[bool]) {
    for (hit, found) in hits.iter_mut().zip(found) {
        *hit &= found;
    }
}

fn end_of(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// Direction, hangup cause, team.
pub(super) const FACETS: usize = 3;
/// Caller, destination, as dialled.
pub(super) const NUMBERS: usize = 3;
/// Records of a block that is written in one step.
pub(super) const RECORDS_MAX: usize = 4096;
/// Not part of any text, so that no match spans two numbers or two records.
const END: u8 = 0xFF;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry((numbers, cause): ([String; NUMBERS], bool)) -> Entry {
        let cause = cause.then(|| "USER_BUSY".to_owned());
        Entry { call: Uuid::nil(), started_us: 0, facets: [Some("inbound".to_owned()), cause, None], numbers }
    }

    fn finder(text: &str) -> Finder<'static> {
        super::finder(text.as_bytes())
    }

    proptest! {
        #[test]
        fn fuzz_a_block_finds_what_its_texts_contain(
            records in proptest::collection::vec((["[0-2é]{0,4}", "[0-2é]{0,4}", "[0-2é]{0,2}"], any::<bool>()), 0..40),
            part in "[0-2éub]{0,3}",
            cut in 0..40_usize,
        ) {
            let entries: Vec<Entry> = records.into_iter().map(entry).collect();
            let (first, rest) = entries.split_at(cut.min(entries.len()));
            let mut block = Block::of(first);
            block.append(Block::of(rest));
            prop_assert_eq!(&block, &Block::of(&entries));
            let places = |holds: &dyn Fn(&Entry) -> bool| -> Vec<u32> {
                (0..).zip(&entries).filter(|(_, entry)| holds(entry)).map(|(place, _)| place).collect()
            };
            let q = Condition { q: Some(finder(&part)), ..Condition::default() };
            let any = |entry: &Entry| {
                entry.numbers.iter().any(|number| number.contains(&part))
                    || entry.facets[1].as_ref().is_some_and(|cause| cause.to_lowercase().contains(&part))
            };
            prop_assert_eq!(block.texts.search(&q), places(&any));
            let did = Condition { did: Some(finder(&part)), ..Condition::default() };
            let dialled = |entry: &Entry| entry.numbers[1..].iter().any(|number| number.contains(&part));
            prop_assert_eq!(block.texts.search(&did), places(&dialled));
            let busy = [None, Some("USER_BUSY".to_owned()), None];
            let both = Condition { facets: busy, did: Some(finder(&part)), q: Some(finder(&part)) };
            let holds = |entry: &Entry| entry.facets[1].is_some() && dialled(entry);
            prop_assert_eq!(block.texts.search(&both), places(&holds));
        }
    }

    #[test]
    fn an_unknown_value_of_a_facet_matches_nothing() {
        let block = Block::of(&[entry((["1", "2", ""].map(str::to_owned), true))]);
        let wanted = |direction: &str| Condition {
            facets: [Some(direction.to_owned()), None, None],
            ..Condition::default()
        };
        assert_eq!(block.texts.search(&wanted("inbound")), [0]);
        assert!(block.texts.search(&wanted("outbound")).is_empty());
    }
}
