//! One call: the verdict on both directions, then both legs, as a part of a page and as a file.

use sidetone_model::media_quality::{Blame, CallQuality, LegQuality, QualityState};
use sidetone_model::quality::MediaVerdict;
use sidetone_model::time::Timestamp;

use crate::compare::compare;
use crate::document;
use crate::ladder::{Arrow, ladder};
use crate::leg::{leg, name};
use crate::markup::{Html, shown};
use crate::verdict::labelled;

/// Writes the verdicts on both directions: the sentence first, then who should act.
pub fn summary(html: &mut Html, quality: &CallQuality) {
    html.raw("<section class=\"card verdicts\" aria-label=\"Verdict\">");
    direction(html, "Audio from the caller", quality.media_verdict, &quality.sentence, quality.blame);
    if let Some(callee) = &quality.callee {
        let verdict = Some(callee.media_verdict);
        direction(html, "Audio from the called party", verdict, &callee.sentence, callee.blame);
    }
    if quality.state == QualityState::Live {
        let (instant, at) = (quality.at, clock(quality.at));
        html.element(
            "<p class=\"soft\">The call is up; these are the figures of <time datetime=\"",
            instant,
            "\" title=\"",
        );
        html.text(&at).element(" UTC\">", &at, "</time>.</p>");
    }
    html.raw("</section>");
}

fn direction(
    html: &mut Html,
    title: &'static str,
    verdict: Option<MediaVerdict>,
    sentence: &str,
    blame: Option<Blame>,
) {
    html.raw("<div><h2>").raw(title).raw(" ");
    labelled(html, verdict);
    html.element("</h2><p class=\"sentence\">", sentence, "</p>");
    if let Some(blame) = blame {
        html.raw("<p><b>Who should act:</b> ").raw(who_acts(blame)).raw("</p>");
    }
    html.raw("</div>");
}

/// The responsible party, and what it should check.
fn who_acts(blame: Blame) -> &'static str {
    match blame {
        Blame::Network => "the operator of the network between the party and this node.",
        Blame::Remote => "the owner of the party's device, or of its own network.",
        Blame::Us => "the operator of this node: its host, its addresses, or what sends through it.",
    }
}

/// Writes the figures of both legs side by side, then each leg over time; writes nothing without legs. `until` is the
/// end of the call, if known; it is used to draw audio that is missing at the end.
pub fn legs(html: &mut Html, quality: &CallQuality, until: Option<Timestamp>) {
    let named: Vec<(String, &LegQuality)> = quality.legs.iter().map(|leg| (name(leg), leg)).collect();
    if named.is_empty() {
        return;
    }
    compare(html, &named);
    html.raw("<div class=\"legs\">");
    for one in &quality.legs {
        leg(html, one, until);
    }
    html.raw("</div>");
}

/// The contents of a call's file.
#[derive(Clone, Copy, Debug)]
pub struct CallFile<'a> {
    /// The numbers of both parties.
    pub parties: (&'a str, &'a str),
    /// Further facts about the call: labels and texts.
    pub facts: &'a [(&'static str, String)],
    /// The end time, if the call has ended.
    pub ended_at: Option<Timestamp>,
    /// The verdicts and the measurements.
    pub quality: &'a CallQuality,
    /// Its SIP messages.
    pub arrows: &'a [Arrow],
    /// The number of further messages that were not kept.
    pub more: u64,
}

/// Returns the report of a call as one self-contained page.
pub fn file(call: &CallFile<'_>) -> String {
    let CallFile { parties: (from, to), facts, ended_at, quality, arrows, more } = *call;
    let heading = format!("{} → {}", shown(from), shown(to));
    let mut html = Html::default();
    let version = quality.rules_version.as_deref().unwrap_or("unknown");
    document::begin(&mut html, &heading, MEASURED, version);
    html.element("<h2>", &heading, "</h2><dl class=\"figures\">");
    for (label, text) in facts.iter().filter(|(_, text)| !text.is_empty()) {
        html.raw("<div><dt>").raw(label).element("</dt><dd>", shown(text), "</dd></div>");
    }
    html.raw("</dl>");
    summary(&mut html, quality);
    legs(&mut html, quality, ended_at);
    ladder(&mut html, arrows, more);
    document::end(&mut html);
    html.into_string()
}

/// An instant in UTC, to the second.
fn clock(at: Timestamp) -> String {
    let whole = at.to_string();
    whole.get(..19).unwrap_or(&whole).replace('T', " ")
}

/// The place where the packets were measured.
const MEASURED: &str =
    "Measured at the node that carried the call: loss and delay behind it are what the parties report.";

#[cfg(test)]
mod tests {
    use sidetone_model::ids::CallId;
    use sidetone_model::media_quality::{LegSide, QualitySecond, QualityTimeline};
    use sidetone_model::quality::Hundredths;
    use uuid::Uuid;

    use super::*;

    const HOSTILE: &str = "\"><img src=x onerror=alert(1)><script>alert('1')</script>\u{202e}";

    fn leg_of(side: LegSide, lost: u32) -> LegQuality {
        let row = |received, lost| QualitySecond {
            received,
            lost,
            audio_expected: true,
            ..QualitySecond::default()
        };
        let rows = vec![row(50, 0), row(50 - lost, lost), row(0, 0)];
        let mut leg: LegQuality = serde_json::from_value(serde_json::json!({
            "leg": side, "media_verdict": "lossy_inbound", "sentence": HOSTILE, "party": HOSTILE, "codec": "PCMU",
            "inbound": {"loss_pct": 12.5, "packets": 1234}, "outbound": {"far_end": {"reports": 3, "loss_pct": 7.5}},
        }))
        .unwrap();
        leg.inbound.timeline = Some(QualityTimeline::new(Timestamp::from_micros(0), 1, rows));
        leg
    }

    fn quality() -> CallQuality {
        CallQuality {
            call_uuid: CallId(Uuid::nil()),
            state: QualityState::Final,
            at: Timestamp::from_micros(0),
            rules_version: Some("2".to_owned()),
            media_verdict: Some(MediaVerdict::LossyInbound),
            reason: None,
            blame: Some(Blame::Network),
            sentence: HOSTILE.to_owned(),
            media_verdict_worse: None,
            callee: None,
            flags: Vec::new(),
            legs: vec![leg_of(LegSide::A, 10), leg_of(LegSide::B, 0)],
        }
    }

    fn report(quality: &CallQuality) -> String {
        let arrow = Arrow {
            at: Timestamp::from_micros(0),
            from: HOSTILE.to_owned(),
            to: "this node".to_owned(),
            summary: HOSTILE.to_owned(),
            sdp: Some(HOSTILE.to_owned()),
        };
        file(&CallFile {
            parties: (HOSTILE, "1002"),
            facts: &[("Device of the caller", HOSTILE.to_owned()), ("Reference", String::new())],
            ended_at: Some(Timestamp::from_micros(20_000_000)),
            quality,
            arrows: &[arrow],
            more: 2,
        })
    }

    #[test]
    fn a_call_is_explained_drawn_and_compared() {
        let page = report(&quality());
        for expected in [
            "<h2>Audio from the caller <span class=\"chip bad\" title=\"lossy_inbound\">loss</span></h2>",
            "<b>Who should act:</b> the operator of the network between the party and this node.",
            "<tr><th scope=\"row\">Lost</th><td class=\"n\">12.5</td><td class=\"n\">12.5</td>",
            "What the party reports by RTCP",
            "<dt>far end loss</dt><dd>7.5 <i>%</i></dd>",
            "Lost and late packets",
            "no packets came",
            "2 more messages are not shown.",
            "Rules version 2.",
        ] {
            assert!(page.contains(expected), "{expected} is missing:\n{page}");
        }
        assert_eq!(page.matches("<section class=\"leg\">").count(), 2);
        // An empty fact has no label.
        assert!(!page.contains("Reference"));
    }

    /// Numbers, sentences, devices and SIP come from other parties.
    #[test]
    fn a_file_is_alone_and_runs_nothing_of_others() {
        let page = report(&quality());
        assert!(page.contains("default-src 'none'"));
        for word in ["<img", "http://", "https://", "@import", "url(", " style=", "\u{202e}"] {
            assert!(!page.contains(word), "{word} is on the page");
        }
        assert_eq!(page.matches("<script").count(), 1, "the page's own");
    }

    #[test]
    fn a_call_without_media_is_a_sentence() {
        let quality = CallQuality { legs: Vec::new(), media_verdict: None, blame: None, ..quality() };
        let mut html = Html::default();
        legs(&mut html, &quality, None);
        assert_eq!(html.into_string(), "");
        assert!(report(&quality).contains("not judged"));
    }

    /// A timeline of many hours is reduced to a bounded size.
    #[test]
    fn a_long_call_is_drawn_with_few_points() {
        let mut quality = quality();
        let row =
            QualitySecond { received: 50, jitter_max_ms: Some(Hundredths(300)), ..QualitySecond::default() };
        let rows = vec![row; 20_000];
        quality.legs[0].inbound.timeline = Some(QualityTimeline::new(Timestamp::from_micros(0), 16, rows));
        let page = report(&quality);
        assert!(page.len() < 200_000, "{} bytes", page.len());
    }
}
