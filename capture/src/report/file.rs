//! One capture on the page: its facts, the table of its calls, a section for each, its streams without
//! signalling.

use std::collections::{BTreeMap, BTreeSet};

use sidetone_report::{Html, NO_VERDICT, grouped, is_wrong};

use crate::{Group, Head};

use super::anchor::FileAnchor;
use super::contents::Entry;
use super::facts::{empty, facts, tally};
use super::registrations::registrations;
use super::row::Row;
use super::{call, stream};

/// The remaining, or used, part of the page's size limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Room {
    /// Rows of a table.
    pub(super) rows: usize,
    /// Sections of calls, and of streams by themselves.
    pub(super) sections: usize,
    /// Bytes of plots.
    pub(super) plot_bytes: usize,
}

impl Room {
    /// The limits of the next of `files` captures: an equal share of the plot bytes, and all rows and sections except
    /// [`LEAST`] for each further capture.
    pub(super) fn share(self, files: usize) -> Room {
        Room {
            rows: self.rows.saturating_sub((files - 1) * LEAST).max(LEAST),
            sections: self.sections.saturating_sub((files - 1) * LEAST).max(LEAST),
            plot_bytes: self.plot_bytes / files,
        }
    }

    pub(super) fn use_up(&mut self, used: Room) {
        self.rows = self.rows.saturating_sub(used.rows);
        self.sections = self.sections.saturating_sub(used.sections);
        self.plot_bytes = self.plot_bytes.saturating_sub(used.plot_bytes);
    }
}

/// A capture under construction on the page.
#[derive(Debug)]
pub(super) struct FilePart {
    file: usize,
    head: Head,
    calls: usize,
    streams: usize,
    room: Room,
    points_max: usize,
    of_calls: List,
    of_streams: List,
}

/// Rows of a table with the sections below it, within the limits.
#[derive(Debug, Default)]
struct List {
    seen: usize,
    verdicts: BTreeMap<String, u64>,
    rows: Kept<Row>,
    sections: Kept<String>,
}

/// The kept items: those with a fault first, then in order.
#[derive(Debug)]
struct Kept<T> {
    wrong: Vec<(usize, T)>,
    fine: Vec<(usize, T)>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Kept { wrong: Vec::new(), fine: Vec::new() }
    }
}

impl<T> Kept<T> {
    /// Whether an item would be kept.
    fn takes(&self, is_wrong: bool, room: usize) -> bool {
        self.wrong.len() + if is_wrong { 0 } else { self.fine.len() } < room
    }

    fn push(&mut self, place: usize, is_wrong: bool, room: usize, thing: T) {
        if !self.takes(is_wrong, room) {
            return;
        }
        if is_wrong {
            self.wrong.push((place, thing));
            if self.wrong.len() + self.fine.len() > room {
                self.fine.pop();
            }
        } else {
            self.fine.push((place, thing));
        }
    }

    fn len(&self) -> usize {
        self.wrong.len() + self.fine.len()
    }

    fn places(&self) -> BTreeSet<usize> {
        self.wrong.iter().chain(&self.fine).map(|(place, _)| *place).collect()
    }
}

impl FilePart {
    pub(super) fn new(file: usize, head: Head, (calls, streams): (usize, usize), room: Room) -> Self {
        let points_max = (room.plot_bytes / POINT_BYTES / streams.max(1)).clamp(POINTS_MIN, POINTS_MAX);
        FilePart {
            file,
            head,
            calls,
            streams,
            room,
            points_max,
            of_calls: List::default(),
            of_streams: List::default(),
        }
    }

    pub(super) fn group(&mut self, group: &Group) {
        let (file, points_max, room) = (self.file, self.points_max, self.room);
        let Some((place, call)) = &group.call else { return self.lone(group) };
        let verdict = call::verdict(call);
        let list = &mut self.of_calls;
        let number = list.begin(verdict);
        if list.rows.takes(is_wrong(verdict), room.rows) {
            let line = call::line(file, *place, call, number);
            list.rows.push(number, is_wrong(verdict), room.rows, line);
        }
        if list.sections.takes(is_wrong(verdict), room.sections) {
            let mut section = call::section(file, group, *place, call, points_max);
            section.shrink_to_fit();
            list.sections.push(number, is_wrong(verdict), room.sections, section);
        }
    }

    /// Streams without signalling: a row each, plotted together.
    fn lone(&mut self, group: &Group) {
        let (file, points_max, room) = (self.file, self.points_max, self.room);
        let list = &mut self.of_streams;
        let is_any_wrong = group.streams.iter().any(|(_, stream)| is_wrong(stream.verdict));
        let section = list.seen;
        for (place, stream) in &group.streams {
            let number = list.begin(stream.verdict);
            if list.rows.takes(is_wrong(stream.verdict), room.rows) {
                let line = stream::line(file, *place, stream, section);
                list.rows.push(number, is_wrong(stream.verdict), room.rows, line);
            }
        }
        if list.sections.takes(is_any_wrong, room.sections) {
            let mut html = Html::default();
            stream::together(&mut html, file, &group.streams, points_max);
            list.sections.push(section, is_any_wrong, room.sections, html.into_string());
        }
    }

    /// Returns the part, its line in the overview, and what it has used; `is_only` when the page has no
    /// other.
    pub(super) fn finish(self, is_only: bool) -> (Vec<String>, Entry, Room) {
        let FilePart { file, head, of_calls, of_streams, .. } = self;
        let mut html = Html::default();
        facts(&mut html, FileAnchor(file), &head, (self.calls, self.streams));
        if self.calls == 0 && self.streams == 0 && head.registrations.is_empty() {
            empty(&mut html, &head);
        } else if self.calls + self.streams > 0 && of_calls.seen + of_streams.seen == 0 {
            html.raw("<p class=\"note\">No call and no stream of this capture was chosen.</p>");
        }
        registrations(&mut html, &head);
        let mut used = Room { plot_bytes: self.points_max * POINT_BYTES * self.streams, ..Room::default() };
        let mut verdicts = of_calls.verdicts.clone();
        for (verdict, count) in &of_streams.verdicts {
            *verdicts.entry(verdict.clone()).or_default() += count;
        }
        let refused = head.registrations.iter().filter(|registration| registration.is_failed()).count();
        let registrations = (head.registrations.len(), refused);
        let (calls, lone) = (of_calls.seen, of_streams.seen);
        let entry = Entry { name: head.file.clone(), calls, lone, registrations, verdicts };
        let is_single = is_only && of_calls.seen == 1;
        let mut out = vec![html.into_string()];
        for (list, title, columns) in [
            (of_calls, "<section><h3>Calls</h3>", call::COLUMNS),
            (of_streams, "<section><h3>Streams without signalling</h3>", stream::COLUMNS),
        ] {
            used.rows += list.rows.len();
            used.sections += list.sections.len();
            list.write(&mut out, title, columns, is_single);
        }
        (out, entry, used)
    }
}

impl List {
    /// Counts the next call or stream; returns its number among those that are shown.
    fn begin(&mut self, verdict: Option<&str>) -> usize {
        *self.verdicts.entry(verdict.unwrap_or(NO_VERDICT).to_owned()).or_default() += 1;
        self.seen += 1;
        self.seen - 1
    }

    fn write(self, out: &mut Vec<String>, title: &'static str, columns: &'static str, is_single: bool) {
        if self.seen == 0 {
            return;
        }
        let mut html = Html::default();
        html.raw(title);
        tally(&mut html, &self.verdicts);
        let drawn = self.sections.places();
        let shown = self.rows.len();
        let mut lines: Vec<(usize, Row)> = self.rows.wrong.into_iter().chain(self.rows.fine).collect();
        lines.sort_by_key(|(number, _)| *number);
        html.raw("<div class=\"scroll\"><table class=\"sortable\"><thead><tr>");
        html.raw(columns).raw("</tr></thead><tbody>");
        for (_, line) in &lines {
            line.write(&mut html, drawn.contains(&line.section));
        }
        html.raw("</tbody></table></div>");
        left_out(&mut html, self.seen - shown);
        out.push(html.into_string());
        let is_single = is_single && self.sections.len() == 1;
        for (_, section) in self.sections.wrong.into_iter().chain(self.sections.fine) {
            if is_single {
                out.push(section.replacen("<details class=\"call\">", "<details class=\"call\" open>", 1));
            } else {
                out.push(section);
            }
        }
        out.push("</section>".to_owned());
    }
}

fn left_out(html: &mut Html, count: usize) {
    if count > 0 {
        html.element(
            "<p class=\"note\">",
            grouped(count as u64),
            " more, none of them worse, are left out: ",
        );
        html.raw("<code>--format csv</code> has them all.</p>");
    }
}

/// Rows and sections that every capture may have.
const LEAST: usize = 1;
/// Points of a plot.
const POINTS_MAX: usize = 600;
const POINTS_MIN: usize = 30;
/// The largest size of a point in a stream's four plots.
const POINT_BYTES: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_kept_first() {
        let mut kept = Kept::default();
        for place in 0..10 {
            kept.push(place, place % 3 == 0, 6, place);
        }
        assert_eq!(kept.places(), BTreeSet::from([0, 1, 2, 3, 6, 9]));
        assert!(!kept.takes(false, 6) && kept.takes(true, 6));
    }

    #[test]
    fn what_one_capture_leaves_the_next_may_use() {
        let mut room = Room { rows: 100, sections: 10, plot_bytes: 6_000 };
        let first = room.share(3);
        assert_eq!(first, Room { rows: 98, sections: 8, plot_bytes: 2_000 });
        room.use_up(Room { rows: 1, sections: 1, plot_bytes: 100 });
        assert_eq!(room.share(2), Room { rows: 98, sections: 8, plot_bytes: 2_950 });
        room.use_up(Room { rows: 98, sections: 8, plot_bytes: 5_900 });
        assert_eq!(room.share(1), Room { rows: 1, sections: 1, plot_bytes: 0 });
    }
}
