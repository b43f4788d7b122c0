//! Verdicts as coloured chips.

use sidetone_model::quality::MediaVerdict;

use crate::markup::Html;

/// Whether a verdict is a fault.
pub fn is_wrong(verdict: Option<&str>) -> bool {
    !matches!(verdict, None | Some("ok" | "unanswered" | NO_VERDICT))
}

/// A verdict in its colour.
pub fn chip(html: &mut Html, verdict: &str) {
    html.raw(match verdict {
        "ok" => "<span class=\"chip good\">",
        "unanswered" | NO_VERDICT => "<span class=\"chip none\">",
        "no_inbound_media" | "no_outbound_media" | "wrong_advertised_address" => "<span class=\"chip bad\">",
        _ => "<span class=\"chip warn\">",
    });
    html.text(verdict).raw("</span>");
}

/// Shown instead of a missing verdict.
pub const NO_VERDICT: &str = "not judged";

/// The colour of a verdict and its short name for people; `None` if the name is not a verdict.
pub fn label(verdict: &str) -> Option<(&'static str, &'static str)> {
    Some(match verdict {
        "ok" => ("good", "ok"),
        "unanswered" => ("none", "unanswered"),
        "no_inbound_media" => ("bad", "no audio received"),
        "no_outbound_media" => ("bad", "no audio sent"),
        "wrong_advertised_address" => ("bad", "wrong address"),
        "lossy_inbound" => ("bad", "loss"),
        "jittery_inbound" => ("warn", "jitter"),
        "unpaced_sender" => ("warn", "uneven sender"),
        "ptime_mismatch" => ("warn", "packet time"),
        "degraded_audio" => ("warn", "degraded"),
        _ => return None,
    })
}

/// The short name of a verdict in its colour.
pub(crate) fn labelled(html: &mut Html, verdict: Option<MediaVerdict>) {
    let (class, label) = verdict.and_then(|verdict| label(verdict.as_str())).unwrap_or(("none", NO_VERDICT));
    html.raw("<span class=\"chip ").raw(class).raw("\"");
    if let Some(verdict) = verdict {
        html.element(" title=\"", verdict.as_str(), "\"");
    }
    html.raw(">").raw(label).raw("</span>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verdict_has_a_short_name() {
        for (verdict, name) in MediaVerdict::ALL {
            let (class, short) = label(name).unwrap();
            let mut html = Html::default();
            labelled(&mut html, Some(verdict));
            let expected = format!("<span class=\"chip {class}\" title=\"{name}\">{short}</span>");
            assert_eq!(html.into_string(), expected);
        }
        let mut html = Html::default();
        labelled(&mut html, None);
        assert_eq!(html.into_string(), "<span class=\"chip none\">not judged</span>");
        assert_eq!(label("odd"), None);
    }
}
