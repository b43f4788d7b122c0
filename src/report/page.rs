//! The page: what holds it together, what it may do, and how large it may grow.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::capture::{Analysis, CallReport, StreamReport, grouped};

use super::call::{self, How};
use super::facts::{empty, facts, tally};
use super::markup::Html;
use super::stream::{self, Anchor};

/// Renders analyses as one page that needs nothing else.
///
/// *Bounds*: ten thousand rows, sections for the first 1,500 calls and as many streams that no call announced, those
/// with something wrong first; plots have as many points as 6 MB allow, 600 at most.
pub fn html(analyses: &[Analysis]) -> String {
    let mut html = Html::default();
    head(&mut html, analyses);
    let streams: usize = analyses.iter().map(|analysis| analysis.streams.len()).sum();
    let points_max = (PLOT_BYTES_MAX / POINT_BYTES / streams.max(1)).clamp(POINTS_MIN, POINTS_MAX);
    let single = analyses.iter().map(|analysis| analysis.calls.len()).sum::<usize>() == 1;
    for (file, analysis) in analyses.iter().enumerate() {
        let how = How { open: single, points_max };
        Capture { file, analysis, how, share: analyses.len() }.write(&mut html);
    }
    html.raw(
        "</main><footer>Made by Sidetone. The rules are explained in docs/verdicts.md.</footer><script>",
    );
    html.raw(SCRIPT).raw("</script></body></html>\n");
    html.into_string()
}

fn head(html: &mut Html, analyses: &[Analysis]) {
    html.raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    html.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; ");
    html.raw("form-action 'none'; style-src 'sha256-").text(digest(STYLE)).raw("'; script-src 'sha256-");
    html.text(digest(SCRIPT))
        .raw("'\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    html.raw("<meta name=\"color-scheme\" content=\"light dark\"><title>");
    match analyses {
        [one] => html.text(super::markup::shown(&one.file)),
        several => html.text(several.len()).raw(" captures"),
    };
    html.raw(" – Sidetone</title><style>")
        .raw(STYLE)
        .raw("</style></head><body><header><h1>Call quality</h1>");
    html.raw(
        "<p>Judged by what was captured: loss and delay behind the place of the capture are not in it. \
         Rules version ",
    );
    html.text(sidetone_media::verdict::RULES_VERSION).raw(".</p></header><main>");
}

/// What a policy calls a script or a style by (CSP level 2 §4.2.4).
fn digest(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// One capture on the page.
struct Capture<'a> {
    file: usize,
    analysis: &'a Analysis,
    how: How,
    /// Captures that share the page's room.
    share: usize,
}

impl Capture<'_> {
    fn write(&self, html: &mut Html) {
        facts(html, self.analysis);
        let registrations = &self.analysis.registrations;
        if self.analysis.calls.is_empty() && self.analysis.streams.is_empty() && registrations.is_empty() {
            empty(html, self.analysis);
        }
        super::registrations::registrations(html, self.analysis);
        self.calls(html);
        self.streams(html);
    }

    fn calls(&self, html: &mut Html) {
        let calls = &self.analysis.calls;
        if calls.is_empty() {
            return;
        }
        html.raw("<section><h3>Calls</h3>");
        tally(html, calls.iter().map(|call| call.media_verdict));
        let is_wrong = |call: &CallReport| call.media_verdict.is_some_and(|verdict| verdict != "ok");
        let rows = chosen(calls, self.room(ROWS_MAX), is_wrong);
        let linked = chosen(calls, self.room(SECTIONS_MAX), is_wrong);
        let listed: Vec<(usize, &CallReport)> =
            calls.iter().enumerate().filter(|(place, _)| rows.contains(place)).collect();
        call::table(html, self.file, &listed, &|place| linked.contains(&place));
        left_out(html, calls.len() - listed.len());
        let owners = self.owners();
        for (place, call) in calls.iter().enumerate().filter(|(place, _)| linked.contains(place)) {
            call::section(html, self.file, place, self.analysis, call, &owners, self.how);
        }
        html.raw("</section>");
    }

    /// The streams that belong to no call.
    fn streams(&self, html: &mut Html) {
        let owners = self.owners();
        let alone: Vec<(usize, &StreamReport)> = self
            .analysis
            .streams
            .iter()
            .enumerate()
            .filter(|(place, _)| owners.get(*place).is_none_or(Option::is_none))
            .collect();
        if alone.is_empty() {
            return;
        }
        html.raw("<section><h3>Streams without signalling</h3>");
        tally(html, alone.iter().map(|(_, stream)| stream.verdict));
        let is_wrong =
            |(_, stream): &(usize, &StreamReport)| stream.verdict.is_some_and(|verdict| verdict != "ok");
        let rows = chosen(&alone, self.room(ROWS_MAX), is_wrong);
        let linked = chosen(&alone, self.room(SECTIONS_MAX), is_wrong);
        let listed: Vec<(usize, &StreamReport)> =
            rows.iter().filter_map(|row| alone.get(*row).copied()).collect();
        let drawn: BTreeSet<usize> =
            linked.iter().filter_map(|row| alone.get(*row)).map(|(place, _)| *place).collect();
        stream::table(html, self.file, &listed, &|place| drawn.contains(&place));
        left_out(html, alone.len() - listed.len());
        // The two directions of a call that nobody announced stand together.
        let mut drawings: Vec<&(usize, &StreamReport)> =
            alone.iter().filter(|(place, _)| drawn.contains(place)).collect();
        drawings.sort_by_key(|(place, stream)| stream.mirror.map_or(*place, |mirror| mirror.min(*place)));
        for (place, found) in drawings {
            stream::stream(
                html,
                found,
                Anchor { kind: 's', file: self.file, place: *place },
                self.how.points_max,
            );
        }
        html.raw("</section>");
    }

    /// The first call of each stream.
    fn owners(&self) -> Vec<Option<usize>> {
        let mut owners = vec![None; self.analysis.streams.len()];
        for (place, call) in self.analysis.calls.iter().enumerate() {
            for number in &call.streams {
                if let Some(owner) = owners.get_mut(*number) {
                    owner.get_or_insert(place);
                }
            }
        }
        owners
    }

    fn room(&self, whole: usize) -> usize {
        whole / self.share.max(1)
    }
}

/// The places of at most `room` things, those with something wrong first, then in order.
fn chosen<T>(all: &[T], room: usize, is_wrong: impl Fn(&T) -> bool) -> BTreeSet<usize> {
    let places = |wrong: bool| {
        all.iter()
            .enumerate()
            .filter(|(_, one)| is_wrong(one) == wrong)
            .map(|(place, _)| place)
            .collect::<Vec<_>>()
    };
    places(true).into_iter().chain(places(false)).take(room).collect()
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

/// Rows of all tables of calls; and as many of streams.
const ROWS_MAX: usize = 10_000;
/// Calls, and streams by themselves, that have a section of their own.
const SECTIONS_MAX: usize = 1_500;
/// Points of a plot.
const POINTS_MAX: usize = 600;
const POINTS_MIN: usize = 30;
/// What all plots together may take, and what a point takes in a stream's four plots at the worst.
const PLOT_BYTES_MAX: usize = 6_000_000;
const POINT_BYTES: usize = 40;

pub(super) const STYLE: &str = include_str!("page.css");
pub(super) const SCRIPT: &str = include_str!("page.js");
