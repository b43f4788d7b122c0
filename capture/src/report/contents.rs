//! The overview of several captures: how many calls were fine in all of them, and links to each.

use std::collections::BTreeMap;

use sidetone_report::{Html, chip, grouped, shown};

use crate::counted;

use super::anchor::FileAnchor;
use super::facts::tally;

/// One capture in the overview.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) calls: usize,
    /// Streams without signalling.
    pub(super) lone: usize,
    /// Registrations, and how many of them were not accepted.
    pub(super) registrations: (usize, usize),
    /// The number of calls, or of streams without signalling, for each verdict.
    pub(super) verdicts: BTreeMap<String, u64>,
}

/// Writes the overview of a page; nothing for a single capture.
pub(super) fn contents(html: &mut Html, entries: &[Entry]) {
    if entries.len() < 2 {
        return;
    }
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    for (verdict, count) in entries.iter().flat_map(|entry| &entry.verdicts) {
        *all.entry(verdict.clone()).or_default() += count;
    }
    let sum = |count: fn(&Entry) -> usize| entries.iter().map(count).sum::<usize>();
    html.raw("<section class=\"contents\"><h2>").text(entries.len()).raw(" captures</h2><p>");
    html.text(counted(sum(|entry| entry.calls), "call")).raw(", ");
    html.text(counted(sum(|entry| entry.lone), "RTP stream")).raw(" without signalling");
    let registrations = sum(|entry| entry.registrations.0);
    if registrations > 0 {
        html.raw(", ").text(counted(registrations, "registration"));
        html.element(", ", sum(|entry| entry.registrations.1), " of them not accepted");
    }
    html.raw(".</p>");
    tally(html, &all);
    html.raw(
        "<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th class=\"n\">#</th><th>capture</th>\
         <th class=\"n\">not ok</th><th>verdicts</th><th class=\"n\">calls</th>\
         <th class=\"n\">streams without signalling</th></tr></thead><tbody>",
    );
    for (place, entry) in entries.iter().enumerate() {
        html.raw("<tr><td class=\"n\">").text(place + 1).raw("</td><td class=\"name\"><a href=\"#");
        html.text(FileAnchor(place)).raw("\" title=\"").text(shown(&entry.name)).raw("\">");
        // Captures are mostly in one folder: the name identifies them, and the part itself has the path.
        let name = entry.name.rsplit('/').next().unwrap_or(&entry.name);
        html.text(shown(name)).raw("</a></td><td class=\"n\">");
        html.text(grouped(entry.bad())).raw("</td><td>");
        for (verdict, count) in &entry.verdicts {
            chip(html, verdict);
            html.element(" <b>", grouped(*count), "</b> ");
        }
        let (all, refused) = entry.registrations;
        if refused > 0 {
            html.raw("<span class=\"chip warn\">registration not accepted</span>");
            html.element(" <b>", grouped(refused as u64), "</b> ");
        }
        if all > refused {
            html.raw("<span class=\"chip good\">registration accepted</span>");
            html.element(" <b>", grouped((all - refused) as u64), "</b> ");
        }
        html.raw("</td><td class=\"n\">").text(grouped(entry.calls as u64)).raw("</td><td class=\"n\">");
        html.text(grouped(entry.lone as u64)).raw("</td></tr>");
    }
    html.raw("</tbody></table></div></section>");
}

impl Entry {
    /// The number of calls and streams with a bad verdict, and of registrations that were not accepted.
    fn bad(&self) -> u64 {
        let is_bad = |verdict: &str| sidetone_report::is_wrong(Some(verdict));
        let bad = self.verdicts.iter().filter(|(verdict, _)| is_bad(verdict)).map(|(_, count)| count);
        bad.sum::<u64>() + self.registrations.1 as u64
    }
}
