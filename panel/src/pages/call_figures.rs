//! The verdict on both legs of a call and their figures, drawn by the crate `report` like the reports of
//! captures.

use maud::{Markup, PreEscaped, html};
use serde_json::Value;
use sidetone_model::media_quality::CallQuality;
use sidetone_model::time::Timestamp;
use sidetone_report::Html;

use crate::show::{sentence, text};

/// The quality of a call as the API answered it; `None` if this panel cannot parse it.
pub(crate) fn measured(quality: &Value) -> Option<CallQuality> {
    serde_json::from_value(quality.clone()).ok()
}

/// The verdict first: its sentence, and who should act.
pub(crate) fn summary(quality: &Value) -> Markup {
    match measured(quality) {
        Some(quality) => drawn(|html| sidetone_report::summary(html, &quality)),
        None => html! {
            section class="card verdicts" aria-label="Verdict" {
                p class="sentence" { (sentence(text(quality, "sentence"))) }
                p class="problem" { "The figures of this call cannot be read." }
            }
        },
    }
}

/// Both legs side by side, with their values over time.
pub(crate) fn legs(quality: &Value, ended_at: Option<Timestamp>) -> Markup {
    match measured(quality) {
        Some(quality) => drawn(|html| sidetone_report::legs(html, &quality, ended_at)),
        None => html! {},
    }
}

/// Markup of the crate `report`, which has escaped all text.
fn drawn(draw: impl FnOnce(&mut Html)) -> Markup {
    let mut html = Html::default();
    draw(&mut html);
    PreEscaped(html.into_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_that_cannot_be_read_leave_the_sentence() {
        let shown = summary(&json!({"sentence": "nothing <b>", "state": "odd"})).into_string();
        assert!(shown.contains("Nothing &lt;b&gt;.") && shown.contains("cannot be read"), "{shown}");
        assert_eq!(legs(&json!({}), None).into_string(), "");
    }
}
