//! The explanation of a verdict.

use sidetone_model::media_quality::LegQuality;

use crate::markup::Html;

/// The explanation: the sentence, then who should act, when it happened, and other remarks.
pub fn explanation(html: &mut Html, quality: &LegQuality) {
    html.element("<p class=\"sentence\">", &quality.sentence, "</p><p class=\"who\">");
    if let Some(reason) = &quality.reason {
        html.element("<span>reason <b>", reason, "</b></span>");
    }
    if let Some(blame) = quality.blame {
        html.element("<span>look first at <b>", blame.as_str(), "</b></span>");
    }
    if let Some(affected) = quality.affected {
        html.element("<span>affected: second <b>", affected.first_s, "</b> to <b>");
        html.text(affected.last_s).raw("</b></span>");
    }
    for flag in &quality.flags {
        html.element("<span class=\"flag\">", flag, "</span>");
    }
    html.raw("</p>");
}
