//! Selects which calls and streams are shown, which are the worst, and which make the command fail; pure.

use sidetone_capture::{CallDirection, CallReport, Group, Part, StreamReport};
use sidetone_model::quality::MediaVerdict;

/// A verdict to select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Any verdict that is a fault.
    Bad,
    /// A missing verdict.
    Nothing,
    /// This one.
    Verdict(MediaVerdict),
}

impl Wanted {
    /// Parses a verdict's name.
    ///
    /// *Errors*: there is no such verdict; the text lists all of them.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "bad" => return Ok(Wanted::Bad),
            "none" => return Ok(Wanted::Nothing),
            _ => {}
        }
        MediaVerdict::from_name(&text.replace('-', "_")).map(Wanted::Verdict).ok_or_else(|| {
            let names: Vec<&str> = MediaVerdict::ALL.iter().map(|(_, name)| *name).collect();
            format!("there is no such verdict; there are bad, none, {}", names.join(", "))
        })
    }

    fn is(self, verdict: Option<&str>) -> bool {
        match self {
            Wanted::Bad => !matches!(verdict, None | Some("ok" | "unanswered")),
            Wanted::Nothing => verdict.is_none(),
            Wanted::Verdict(wanted) => verdict == Some(wanted.as_str()),
        }
    }
}

/// The selection to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    /// Call-IDs, or numbers in the table.
    pub(super) calls: Vec<String>,
    /// Patterns of callers' numbers.
    pub(super) from: Vec<String>,
    /// Verdicts to show.
    pub(super) verdicts: Vec<Wanted>,
    /// Verdicts that make the command fail.
    pub(super) fail_on: Vec<Wanted>,
}

impl Choice {
    /// Whether everything is selected.
    pub(super) fn is_everything(&self) -> bool {
        self.calls.is_empty() && self.from.is_empty() && self.verdicts.is_empty()
    }

    /// Whether a call, or streams without signalling, are shown.
    pub(super) fn takes(&self, group: &Group) -> bool {
        let is_named = match &group.call {
            Some((place, call)) => self.names(*place, call),
            None => self.calls.is_empty() && self.from.is_empty(),
        };
        is_named && (self.verdicts.is_empty() || any(&self.verdicts, &verdicts(group)))
    }

    fn names(&self, place: usize, call: &CallReport) -> bool {
        let number = (place + 1).to_string();
        let is_call =
            self.calls.is_empty() || self.calls.iter().any(|id| *id == call.call_id || *id == number);
        let is_from = self.from.is_empty() || self.from.iter().any(|pattern| matches(pattern, &call.from));
        is_call && is_from
    }

    /// Whether a shown item makes the command fail.
    pub(super) fn fails(&self, group: &Group) -> bool {
        any(&self.fail_on, &verdicts(group))
    }

    /// The same for a part of an analysis.
    pub(super) fn fails_part(&self, part: &Part) -> bool {
        match part {
            Part::Call(call) => any(&self.fail_on, &of_call(call)),
            // For a stream with signalling, its call decides.
            Part::Stream(stream) => stream.direction.is_none() && any(&self.fail_on, &[stream.verdict]),
        }
    }
}

/// Whether a direction has one of the wanted verdicts; `ok`, `unanswered` and a missing verdict match only if
/// no direction has a worse one.
fn any(wanted: &[Wanted], verdicts: &[Option<&str>]) -> bool {
    let named = |verdict: Option<&str>| verdict.and_then(MediaVerdict::from_name);
    let worst = verdicts.iter().fold(None, |worst, verdict| MediaVerdict::worse(worst, named(*verdict)));
    let worst = worst.map(MediaVerdict::as_str);
    wanted.iter().any(|wanted| match wanted {
        Wanted::Nothing | Wanted::Verdict(MediaVerdict::Ok | MediaVerdict::Unanswered) => wanted.is(worst),
        Wanted::Bad | Wanted::Verdict(_) => verdicts.iter().any(|verdict| wanted.is(*verdict)),
    })
}

/// The verdicts of a call, or of each of the streams without signalling.
fn verdicts(group: &Group) -> Vec<Option<&str>> {
    match &group.call {
        Some((_, call)) => of_call(call),
        None => group.streams.iter().map(|(_, stream)| stream.verdict).collect(),
    }
}

/// The verdicts of both directions.
fn of_call(call: &CallReport) -> Vec<Option<&'static str>> {
    call.directions().iter().map(CallDirection::verdict).collect()
}

/// How bad an item is; smaller is worse: first items without any audio, then impaired ones by their MOS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Badness {
    pub(super) class: u8,
    /// The lowest MOS in hundredths.
    pub(super) mos: i64,
}

impl Badness {
    /// Whether a direction was without any audio.
    pub(super) fn is_silent(self) -> bool {
        self.class == 0
    }

    /// The badness of the worst direction of a call, or of streams without signalling.
    pub(super) fn of(group: &Group) -> Self {
        let worst_class = verdicts(group).into_iter().map(class).min().unwrap_or(CLASS_NONE);
        let streams = group.streams.iter().map(|(_, stream): &(usize, Box<StreamReport>)| stream.mos);
        let legs = group.call.iter().flat_map(|(_, call)| call.directions());
        let of_call = legs.map(|direction| direction.figures.mos);
        let mos = streams.chain(of_call).flatten().map(|mos| mos.0).min();
        Badness { class: worst_class, mos: mos.unwrap_or(i64::MAX) }
    }
}

fn class(verdict: Option<&str>) -> u8 {
    match verdict {
        Some("no_inbound_media" | "no_outbound_media" | "wrong_advertised_address") => 0,
        Some("ok") => 2,
        None | Some("unanswered") => CLASS_NONE,
        Some(_) => 1,
    }
}

const CLASS_NONE: u8 = 3;

/// Whether a number matches a pattern, in which `*` stands for any characters; a leading `+` may be omitted.
fn matches(pattern: &str, number: &str) -> bool {
    let pattern = pattern.strip_prefix('+').unwrap_or(pattern);
    let number = number.strip_prefix('+').unwrap_or(number);
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = number.strip_prefix(first) else { return false };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        match rest.find(piece) {
            Some(at) => rest = rest.get(at + piece.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The worst items so far; while reading, at most twice the requested number is kept.
#[derive(Debug)]
pub(super) struct Worst {
    /// Items to keep at the end.
    len_max: usize,
    /// Each with the index of its file.
    groups: Vec<(Badness, usize, Group)>,
}

impl Worst {
    pub(super) fn new(len_max: u32) -> Self {
        Worst { len_max: usize::try_from(len_max).unwrap_or(usize::MAX), groups: Vec::new() }
    }

    pub(super) fn push(&mut self, file: usize, group: Group) {
        self.groups.push((Badness::of(&group), file, group));
        if self.groups.len() >= self.len_max.saturating_mul(2) {
            self.shrink();
        }
    }

    /// The worst items by file, the worst first; files without any are omitted.
    pub(super) fn into_files(mut self) -> Vec<(usize, Vec<Group>)> {
        self.shrink();
        let mut files: Vec<(usize, Vec<Group>)> = Vec::new();
        self.groups.sort_by_key(|(badness, file, _)| (*file, *badness));
        for (_, file, group) in self.groups {
            match files.last_mut() {
                Some((last, groups)) if *last == file => groups.push(group),
                _ => files.push((file, vec![group])),
            }
        }
        files
    }

    fn shrink(&mut self) {
        // The sort is stable: of equally bad items, the first ones are kept.
        self.groups.sort_by_key(|(badness, ..)| *badness);
        self.groups.truncate(self.len_max);
    }
}

#[cfg(test)]
mod tests {
    use sidetone_media::simulate::Scenario;

    use super::*;
    use sidetone_capture::{EngineOptions, Groups, Source, compose_calls, read_parts};

    fn groups(text: &str, calls: u32) -> Vec<Group> {
        let mut file = Vec::new();
        compose_calls(&text.parse::<Scenario>().unwrap(), calls, &mut file).unwrap();
        let read = read_parts(EngineOptions::default(), "x", Source::Stream(&mut &file[..]), &mut |_, _| {});
        Groups::from(read.parts).collect()
    }

    fn places(choice: &Choice, groups: &[Group]) -> Vec<usize> {
        let chosen = groups.iter().filter(|group| choice.takes(group));
        chosen.filter_map(|group| Some(group.call.as_ref()?.0)).collect()
    }

    #[test]
    fn numbers_match_with_and_without_a_star() {
        let cases = [
            ("1001", "1001", true),
            ("1001", "21001", false),
            ("1001", "10010", false),
            ("*1001", "+441001", true),
            ("441632*", "+441632960001", true),
            ("+441632*01", "441632960001", true),
            ("*96*", "441632960001", true),
            ("1*1", "1", false),
            ("*", "", true),
            ("", "1001", false),
        ];
        for (pattern, number, expected) in cases {
            assert_eq!(matches(pattern, number), expected, "{pattern} {number}");
        }
    }

    #[test]
    fn a_call_is_chosen_by_id_number_caller_and_verdict() {
        let groups = groups("lossy duration=3s", 4);
        let id = groups[2].call.as_ref().unwrap().1.call_id.clone();
        let verdict = |text| Wanted::parse(text).unwrap();
        let all = Choice::default();
        assert!(all.is_everything() && places(&all, &groups) == [0, 1, 2, 3]);
        let cases = [
            (Choice { calls: vec![id, "1".to_owned()], ..Choice::default() }, vec![0, 2]),
            (Choice { from: vec!["1003".to_owned()], ..Choice::default() }, vec![3]),
            (Choice { verdicts: vec![verdict("ok")], ..Choice::default() }, vec![]),
            (Choice { verdicts: vec![verdict("ok"), verdict("bad")], ..Choice::default() }, vec![0, 1, 2, 3]),
            (
                Choice {
                    verdicts: vec![verdict("lossy-inbound")],
                    from: vec!["100*".into()],
                    ..Choice::default()
                },
                vec![0, 1, 2, 3],
            ),
            (Choice { calls: vec!["9".to_owned()], ..Choice::default() }, vec![]),
        ];
        for (choice, expected) in cases {
            assert_eq!(places(&choice, &groups), expected, "{choice:?}");
        }
        let fails = |text| Choice { fail_on: vec![verdict(text)], ..Choice::default() }.fails(&groups[0]);
        assert!(fails("bad") && fails("lossy_inbound") && !fails("none") && !fails("ok"));
        let error = Wanted::parse("lost").unwrap_err();
        assert!(error.contains("lossy_inbound") && error.contains("bad"), "{error}");
    }

    #[test]
    fn the_worst_are_kept_and_no_more() {
        let mut worst = Worst::new(3);
        let files =
            ["clean duration=3s", "no-inbound duration=5s", "lossy duration=3s", "loss=3 duration=9s"];
        for (file, text) in files.into_iter().enumerate() {
            for group in groups(text, 2) {
                worst.push(file, group);
                assert!(worst.groups.len() <= 6);
            }
        }
        let kept: Vec<(usize, usize)> =
            worst.into_files().into_iter().map(|(file, groups)| (file, groups.len())).collect();
        assert_eq!(kept, [(1, 2), (2, 1)], "without audio, then the lowest MOS");
    }
}
