//! The registrations of a capture: a row each, and the explanation below it.

use sidetone_report::{Html, shown};

use crate::{Head, RegistrationReport};

/// Writes the table of registrations, those that were not accepted first; writes nothing if there are none.
pub(super) fn registrations(html: &mut Html, head: &Head) {
    let all = &head.registrations;
    if all.is_empty() {
        return;
    }
    html.raw(
        "<section><h3>Registrations</h3><div class=\"scroll\"><table class=\"registrations\"><thead><tr><th>result</th><th>who</th>\
         <th>from</th><th>registrar</th><th>device</th><th>started (UTC)</th><th class=\"n\">tries</th>\
         <th class=\"n\">status</th><th class=\"n\">expires s</th></tr></thead><tbody>",
    );
    let failed = all.iter().filter(|one| one.is_failed());
    for one in failed.chain(all.iter().filter(|one| !one.is_failed())).take(ROWS_MAX) {
        row(html, one);
    }
    html.raw("</tbody></table></div>");
    let more = all.len().saturating_sub(ROWS_MAX);
    if more > 0 {
        html.element(
            "<p class=\"note\">",
            more,
            " more are left out: <code>--format csv</code> has them all.</p>",
        );
    }
    html.raw("</section>");
}

fn row(html: &mut Html, one: &RegistrationReport) {
    html.raw(if one.is_failed() {
        "<tr><td><span class=\"chip warn\">"
    } else {
        "<tr><td><span class=\"chip good\">"
    });
    html.text(one.result).element("</span></td><td>", shown(&one.aor), "</td>");
    html.element("<td>", &one.from, "</td>").element("<td>", &one.registrar, "</td>");
    html.element("<td>", shown(one.user_agent.as_deref().unwrap_or_default()), "</td>");
    let started = one.first_at.to_string();
    html.element("<td>", started.get(..19).unwrap_or(&started).replace('T', " "), "</td>");
    html.element("<td class=\"n\">", one.tries, "</td><td class=\"n\">");
    if let Some(status) = one.sip_status {
        html.text(status);
    }
    html.raw("</td><td class=\"n\">");
    if let Some(seconds) = one.expires_s {
        html.text(seconds);
    }
    html.element("</td></tr><tr class=\"words\"><td colspan=\"9\"><p>", &one.sentence, "</p></td></tr>");
}

/// Rows of one capture.
const ROWS_MAX: usize = 1_000;
