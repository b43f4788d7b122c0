//! One row of a table of calls or streams.

use sidetone_report::{Html, NO_VERDICT, chip};

/// A row of a table: the cells before and after its verdict.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) verdict: String,
    /// The section that it links to.
    pub(super) anchor: String,
    /// The cells before the verdict.
    pub(super) before: String,
    /// The cells after the verdict.
    pub(super) after: String,
    /// The index of its section.
    pub(super) section: usize,
}

impl Row {
    /// A row for the item number `section` of its list.
    pub(super) fn new(
        verdict: Option<&str>,
        anchor: String,
        section: usize,
        before: Html,
        after: Html,
    ) -> Self {
        let verdict = verdict.unwrap_or(NO_VERDICT).to_owned();
        Row { verdict, anchor, before: before.into_string(), after: after.into_string(), section }
    }

    /// Writes the row; its verdict is a link to its section when that is on the page.
    pub(super) fn write(&self, html: &mut Html, is_linked: bool) {
        html.element("<tr data-v=\"", &self.verdict, "\">").made(&self.before).raw("<td>");
        if is_linked {
            html.element("<a href=\"#", &self.anchor, "\">");
            chip(html, &self.verdict);
            html.raw("</a>");
        } else {
            chip(html, &self.verdict);
        }
        html.raw("</td>").made(&self.after).raw("</tr>");
    }
}
