//! Verdicts of complete hours, kept in memory: the panel requests the last 24 hours and the last 7 days again and
//! again, and only the newest hours change.
//!
//! An hour is kept with the number of its records. `cdr_counts` has the current number, including the records of all
//! nodes; an hour with a different number is counted again. The columns that are counted here never change in a
//! stored record, and no record is removed.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use sidetone_model::access::Scope;
use sidetone_model::call_log::CdrFilter;
use sidetone_model::ids::{OrganisationId, TeamId};
use sidetone_model::media_quality::LegSide;
use sidetone_model::quality::MediaVerdict;
use sidetone_model::verdict_counts::CountBy;

/// The counts of each question; clones share them.
///
/// *Bounds*: [`QUESTIONS_MAX`] questions in total, [`OWN_QUESTIONS_MAX`] per organisation; [`COUNTS_MAX`] counts per
/// question; [`BYTES_MAX`] in total, besides the questions that are being counted.
#[derive(Debug, Clone, Default)]
pub(super) struct VerdictHours(Arc<Mutex<Vec<(Question, Answer)>>>);

/// The counts of one question; locked while they are updated.
pub(super) type Answer = Arc<tokio::sync::Mutex<Kept>>;

/// The scope of the caller, and the filter and grouping that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Question {
    scope: Scope,
    organisation: Option<OrganisationId>,
    team: Option<TeamId>,
    by: CountBy,
}

/// The hours that were counted for a question.
#[derive(Debug, Default)]
pub(super) struct Kept {
    hours: BTreeMap<i64, Hour>,
    /// The values of groups; each one's number is its index.
    values: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

#[derive(Debug, Default)]
struct Hour {
    /// All records of the organisation in this hour, with a verdict or not.
    records: u64,
    counts: Vec<Count>,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    value: u32,
    leg: LegSide,
    verdict: MediaVerdict,
    legs: u32,
}

/// The number of legs with one verdict that a group has in one hour.
pub(super) struct Counted<'a> {
    pub(super) hour: i64,
    pub(super) value: &'a str,
    pub(super) leg: LegSide,
    pub(super) verdict: MediaVerdict,
    pub(super) legs: u64,
}

impl Question {
    /// The question, and the first complete hour. `None` when its counts are not kept: the filter has no start time,
    /// or conditions other than time, organisation and team.
    pub(super) fn of(scope: Scope, filter: &CdrFilter, by: CountBy) -> Option<(Self, i64)> {
        let CdrFilter { from, organisation_id, team_id, .. } = *filter;
        let plain = CdrFilter { from, organisation_id, team_id, ..CdrFilter::default() };
        let from_us = from?.as_micros();
        if *filter != plain || by == CountBy::Day || from_us < 0 {
            return None;
        }
        let question = Self { scope, organisation: organisation_id, team: team_id, by };
        Some((question, from_us.saturating_add(HOUR_US - 1) / HOUR_US))
    }

    /// The organisation of the caller; `None` for an operator.
    fn tenant(&self) -> Option<OrganisationId> {
        self.scope.organisation()
    }
}

impl VerdictHours {
    /// The counts of the question; empty for a new question.
    pub(super) fn answer(&self, question: Question) -> Answer {
        let mut answers = self.0.lock();
        let known = answers.iter().position(|(known, _)| *known == question);
        let answer = match known {
            Some(place) => answers.remove(place).1,
            None => Answer::default(),
        };
        // The latest questions are at the end.
        let own = answers.iter().filter(|(known, _)| known.tenant() == question.tenant()).count();
        let is_own = |(known, _): &(Question, Answer)| known.tenant() == question.tenant();
        let oldest = match (own >= OWN_QUESTIONS_MAX, answers.len() >= QUESTIONS_MAX) {
            (true, _) => answers.iter().position(is_own),
            (false, true) => Some(0),
            (false, false) => None,
        };
        if let Some(oldest) = oldest {
            answers.remove(oldest);
        }
        // The size of an answer that is in use is counted the next time.
        let bytes = |answer: &Answer| answer.try_lock().map_or(0, |kept| kept.bytes());
        let mut total: usize = answers.iter().map(|(_, kept)| bytes(kept)).sum();
        total += bytes(&answer);
        while total > BYTES_MAX && !answers.is_empty() {
            total -= bytes(&answers.remove(0).1).min(total);
        }
        answers.push((question, Arc::clone(&answer)));
        answer
    }
}

impl Kept {
    /// The hours to count, as ranges: those whose number of records differs from the one in `now`. A range of more
    /// than one hour has at most [`RANGE_RECORDS_MAX`] records.
    pub(super) fn stale(&self, now: &BTreeMap<i64, u64>) -> Vec<Range<i64>> {
        let mut ranges: Vec<(Range<i64>, u64)> = Vec::new();
        for (hour, records) in now {
            if self.hours.get(hour).is_some_and(|kept| kept.records == *records) {
                continue;
            }
            match ranges.last_mut() {
                Some((last, sum)) if last.end == *hour && *sum + records <= RANGE_RECORDS_MAX => {
                    last.end = *hour + 1;
                    *sum += records;
                }
                _ => ranges.push((*hour..*hour + 1, *records)),
            }
        }
        ranges.into_iter().map(|(range, _)| range).collect()
    }

    /// Replaces the hours of `range` by the new counts; `now` has their numbers of records.
    pub(super) fn put<'a>(
        &mut self,
        range: &Range<i64>,
        now: &BTreeMap<i64, u64>,
        counted: impl Iterator<Item = Counted<'a>>,
    ) {
        for (hour, records) in now.range(range.clone()) {
            self.hours.insert(*hour, Hour { records: *records, counts: Vec::new() });
        }
        for Counted { hour, value, leg, verdict, legs } in counted {
            let value = self.number(value);
            if let Some(hour) = self.hours.get_mut(&hour) {
                let legs = u32::try_from(legs).unwrap_or(u32::MAX);
                hour.counts.push(Count { value, leg, verdict, legs });
            }
        }
    }

    /// Passes each value and its legs in the hours from `first` on to `give`.
    pub(super) fn each(&self, first: i64, mut give: impl FnMut(&str, LegSide, MediaVerdict, u64)) {
        // A table, because a week of an organisation with many networks has several hundred thousand counts.
        let mut sums = vec![0_u64; self.values.len() * SUMS_OF_VALUE];
        for count in self.hours.range(first..).flat_map(|(_, hour)| &hour.counts) {
            let place = count.value as usize * SUMS_OF_VALUE + place_of_sum(count.leg, count.verdict);
            if let Some(sum) = sums.get_mut(place) {
                *sum += u64::from(count.legs);
            }
        }
        for (value, sums) in self.values.iter().zip(sums.chunks(SUMS_OF_VALUE)) {
            for (leg, _) in LegSide::ALL.iter().copied() {
                for (verdict, _) in MediaVerdict::ALL {
                    let legs = sums.get(place_of_sum(leg, verdict)).copied().unwrap_or_default();
                    if legs > 0 {
                        give(value, leg, verdict, legs);
                    }
                }
            }
        }
    }

    /// Drops hours more than [`HOURS_MAX`] before the newest, and everything if the limits are exceeded.
    pub(super) fn trim(&mut self) {
        let newest = self.hours.last_key_value().map_or(0, |(hour, _)| *hour);
        self.hours = self.hours.split_off(&newest.saturating_sub(HOURS_MAX));
        // Values of dropped hours are still stored.
        if self.counts() > COUNTS_MAX || self.values.len() > VALUES_MAX {
            *self = Self::default();
        }
    }

    fn counts(&self) -> usize {
        self.hours.values().map(|hour| hour.counts.len()).sum()
    }

    /// The approximate memory that it takes.
    fn bytes(&self) -> usize {
        self.counts() * size_of::<Count>() + self.values.len() * VALUE_BYTES
    }

    fn number(&mut self, value: &str) -> u32 {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        let value: Arc<str> = value.into();
        self.values.push(Arc::clone(&value));
        self.numbers.insert(value, number);
        number
    }
}

/// The index of the sum of a leg and a verdict among the sums of a value.
fn place_of_sum(leg: LegSide, verdict: MediaVerdict) -> usize {
    leg as usize * MediaVerdict::ALL.len() + verdict as usize
}

const SUMS_OF_VALUE: usize = LegSide::ALL.len() * MediaVerdict::ALL.len();
/// An hour in microseconds.
pub(super) const HOUR_US: i64 = 3_600_000_000;
/// Hours that are kept: 8 days.
pub(super) const HOURS_MAX: i64 = 8 * 24;
/// Counts of one question; with more, nothing is kept. Sufficient for 8 days of 2,500 networks that all have calls in
/// each hour.
const COUNTS_MAX: usize = 500_000;
const VALUES_MAX: usize = 50_000;
/// The memory of a value (a network or a User-Agent), with its entries in the list and the table.
const VALUE_BYTES: usize = 120;
const BYTES_MAX: usize = 48 << 20;
const QUESTIONS_MAX: usize = 40;
/// Questions of one organisation: those of its page, and of a few teams.
const OWN_QUESTIONS_MAX: usize = 15;
/// This many records are counted within some tenths of a second.
const RANGE_RECORDS_MAX: u64 = 20_000;

#[cfg(test)]
mod tests {
    use sidetone_model::time::Timestamp;
    use uuid::Uuid;

    use super::*;

    fn organisation(number: u128) -> OrganisationId {
        OrganisationId(Uuid::from_u128(number))
    }

    fn question(organisation: u128, by: CountBy) -> Question {
        let scope = Scope::Organisation(self::organisation(organisation));
        Question { scope, organisation: None, team: None, by }
    }

    fn now(records: &[(i64, u64)]) -> BTreeMap<i64, u64> {
        records.iter().copied().collect()
    }

    fn put(kept: &mut Kept, range: Range<i64>, records: &[(i64, u64)], legs: &[(i64, &str, u64)]) {
        let counted = legs.iter().map(|(hour, value, legs)| Counted {
            hour: *hour,
            value,
            leg: LegSide::A,
            verdict: MediaVerdict::Ok,
            legs: *legs,
        });
        kept.put(&range, &now(records), counted);
    }

    fn sums(kept: &Kept, first: i64) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        kept.each(first, |value, _, _, legs| *sums.entry(value.to_owned()).or_default() += legs);
        sums
    }

    /// The first and end hours of the ranges to count.
    fn stale(kept: &Kept, records: &[(i64, u64)]) -> Vec<(i64, i64)> {
        kept.stale(&now(records)).into_iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn an_hour_is_counted_again_when_its_records_changed() {
        let mut kept = Kept::default();
        let records = [(10, 5), (11, 7), (13, 1)];
        assert_eq!(stale(&kept, &records), [(10, 12), (13, 14)]);
        put(&mut kept, 10..12, &records, &[(10, "a", 4), (11, "a", 2), (11, "b", 1)]);
        put(&mut kept, 13..14, &records, &[]);
        assert!(stale(&kept, &records).is_empty(), "an hour without judged legs is known too");
        assert_eq!(sums(&kept, 10), [("a".to_owned(), 6), ("b".to_owned(), 1)].into());
        assert_eq!(sums(&kept, 11), [("a".to_owned(), 2), ("b".to_owned(), 1)].into());
        // A call that started in hour 11 ended.
        let records = [(10, 5), (11, 8), (13, 1)];
        assert_eq!(stale(&kept, &records), [(11, 12)]);
        put(&mut kept, 11..12, &records, &[(11, "b", 2)]);
        assert_eq!(sums(&kept, 10), [("a".to_owned(), 4), ("b".to_owned(), 2)].into());
    }

    #[test]
    fn many_records_are_counted_in_several_ranges() {
        let half = RANGE_RECORDS_MAX / 2;
        let records = [(1, half), (2, half), (3, 1), (4, 3 * half), (5, 1), (7, 1)];
        assert_eq!(stale(&Kept::default(), &records), [(1, 3), (3, 4), (4, 5), (5, 6), (7, 8)]);
    }

    #[test]
    fn the_oldest_questions_are_forgotten_when_all_take_too_much() {
        let answers = VerdictHours::default();
        let texts: Vec<String> = (0..VALUES_MAX).map(|number| number.to_string()).collect();
        let legs: Vec<(i64, &str, u64)> = texts.iter().map(|text| (1, text.as_str(), 1)).collect();
        for number in 0..20 {
            let answer = answers.answer(question(number, CountBy::Network));
            let mut kept = answer.try_lock().unwrap();
            put(&mut kept, 1..2, &[(1, 1)], &legs);
            kept.trim();
        }
        let kept_for =
            |number| answers.0.lock().iter().any(|(known, _)| *known == question(number, CountBy::Network));
        assert!(!kept_for(0) && kept_for(18) && kept_for(19));
        let bytes: usize = answers.0.lock().iter().map(|(_, kept)| kept.try_lock().unwrap().bytes()).sum();
        // The last answer was filled after the sizes were checked.
        assert!(bytes <= BYTES_MAX + BYTES_MAX / 4, "{bytes}");
    }

    #[test]
    fn old_hours_are_forgotten_and_too_much_is_not_kept() {
        let mut kept = Kept::default();
        put(&mut kept, 0..2_000, &[(0, 1), (1_999, 1)], &[(0, "old", 1), (1_999, "new", 1)]);
        kept.trim();
        assert_eq!(sums(&kept, 0), [("new".to_owned(), 1)].into());
        let texts: Vec<String> = (0..=VALUES_MAX).map(|number| number.to_string()).collect();
        let legs: Vec<(i64, &str, u64)> = texts.iter().map(|text| (1_999, text.as_str(), 1)).collect();
        put(&mut kept, 1_999..2_000, &[(1_999, 1)], &legs);
        kept.trim();
        assert!(sums(&kept, 0).is_empty() && kept.values.is_empty());
    }

    #[test]
    fn a_filter_with_other_conditions_is_not_kept() {
        let scope = Scope::Organisation(organisation(1));
        let from = Some(Timestamp::from_micros(HOUR_US * 5 + 1));
        let plain = CdrFilter { from, ..CdrFilter::default() };
        let hour = |filter: &CdrFilter, by| Question::of(scope, filter, by).map(|(_, hour)| hour);
        assert_eq!(hour(&plain, CountBy::Trunk), Some(6));
        assert_eq!(hour(&plain, CountBy::Day), None);
        assert_eq!(hour(&CdrFilter::default(), CountBy::Trunk), None);
        let whole = CdrFilter { from: Some(Timestamp::from_micros(HOUR_US * 5)), ..plain.clone() };
        assert_eq!(hour(&whole, CountBy::Trunk), Some(5));
        for other in [
            CdrFilter { to: from, ..plain.clone() },
            CdrFilter { q: Some("1".to_owned()), ..plain.clone() },
            CdrFilter { transcoded: Some(true), ..plain.clone() },
        ] {
            assert_eq!(hour(&other, CountBy::Trunk), None);
        }
    }

    #[test]
    fn an_organisation_displaces_only_its_own_questions() {
        let answers = VerdictHours::default();
        let other = answers.answer(question(2, CountBy::Hour));
        for team in 0..100 {
            let team = Some(TeamId(Uuid::from_u128(team)));
            answers.answer(Question { team, ..question(1, CountBy::Hour) });
        }
        assert_eq!(answers.0.lock().len(), OWN_QUESTIONS_MAX + 1);
        assert!(Arc::ptr_eq(&other, &answers.answer(question(2, CountBy::Hour))), "it is the same one");
        for number in 0..100 {
            answers.answer(question(10 + number, CountBy::Hour));
        }
        assert_eq!(answers.0.lock().len(), QUESTIONS_MAX);
    }
}
