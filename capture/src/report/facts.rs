//! The header above the calls: the file, its content, and how many calls were fine.

use std::collections::BTreeMap;

use sidetone_report::{Html, chip, grouped, shown};

use crate::Head;

use super::anchor::FileAnchor;

/// Writes the header of one capture with these numbers of calls and streams.
pub(super) fn facts(html: &mut Html, anchor: FileAnchor, head: &Head, (calls, streams): (usize, usize)) {
    html.raw("<h2 id=\"").text(anchor).raw("\">").text(shown(&head.file)).raw("</h2><dl class=\"facts\">");
    let skipped = &head.skipped;
    let counts = [
        ("packets", head.packets),
        ("bytes", head.bytes),
        ("calls", calls as u64),
        ("RTP streams", streams as u64),
    ];
    for (name, count) in counts {
        fact(html, name, count);
    }
    let looked_over = [
        ("registrations", head.registrations.len() as u64),
        ("not IP", skipped.not_ip),
        ("truncated", skipped.truncated),
        ("later fragments", skipped.fragments),
        ("malformed SIP", skipped.malformed_sip),
        ("beyond the limits", skipped.over_limit),
        ("without a time", head.times.untimed),
        ("not in the order of time from packet", head.times.out_of_order_from.unwrap_or_default()),
    ];
    for (name, count) in looked_over.into_iter().filter(|(_, count)| *count > 0) {
        fact(html, name, count);
    }
    html.raw("</dl>");
}

fn fact(html: &mut Html, name: &'static str, count: u64) {
    html.element("<div><dt>", name, "</dt><dd>").text(grouped(count)).raw("</dd></div>");
}

/// The text that replaces the calls when there are none.
pub(super) fn empty(html: &mut Html, head: &Head) {
    html.raw("<section class=\"empty\"><h3>");
    html.raw(match head.packets {
        0 => "This capture holds no packet",
        _ => "No calls and no audio were found",
    });
    html.raw("</h3><ul>");
    if head.packets == 0 {
        html.raw(
            "<li>Was the capture stopped before anything was sent?</li>\
             <li>Does its filter let UDP through, the SIP port and the media ports alike?</li>\
             <li>Was it taken on the interface that carries the calls?</li>",
        );
    } else {
        html.raw(
            "<li>A capture with only signalling has calls and no streams; this one has neither.</li>\
             <li>SIP over TLS cannot be read. RTP is still found when enough of it was captured.</li>\
             <li>Streams without SIP need about a second of packets to be told from other traffic.</li>",
        );
    }
    html.raw("</ul></section>");
}

/// The numbers of calls or streams by verdict, as chips.
pub(super) fn tally(html: &mut Html, counts: &BTreeMap<String, u64>) {
    html.raw("<p class=\"tally\">");
    for (verdict, count) in counts {
        chip(html, verdict);
        html.element(" <b>", grouped(*count), "</b> ");
    }
    html.raw("</p>");
}
