//! Records as a table for people: at most 100 columns wide, with optional colours.

use serde_json::Value;

use crate::demo::result::{Audio, Record, Showing, callee_sentence, sentence};
use crate::terminal::{painted, wrapped};

/// How rows are written.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    colour: bool,
}

#[derive(Clone, Copy)]
enum Colour {
    Bold,
    Dim,
    Green,
    Red,
    Yellow,
}

impl Table {
    /// A table with or without colours.
    pub fn new(colour: bool) -> Self {
        Table { colour }
    }

    /// The head of the table, two lines.
    pub fn head(&self) -> String {
        let names = line(
            "call",
            "from",
            "to",
            &format!("  {:<24}", "verdict"),
            ["loss", "jitter", "gap", "quality", "MOS", "s"],
            "cause",
        );
        let units = line("", "", "", &" ".repeat(26), ["%", "ms", "ms", "%", "", ""], "");
        self.paint(Colour::Bold, &format!("{names}\n{units}")) + "\n"
    }

    /// The rows of a scene; below them the explanations of the verdicts, and the expected verdict if it differs.
    pub fn scene(&self, showing: &Showing) -> String {
        let expected = showing.is_as_expected();
        let mark = self.mark(expected);
        let mut row =
            self.directions(showing.scene.name, &mark, &showing.record, &showing.quality, !expected);
        if showing.attempts > 1 || !expected {
            let wanted = showing.scene.expected.as_str();
            let remark = match (expected, showing.attempts) {
                (true, _) => "at the second attempt".to_owned(),
                (false, 1) => format!("expected {wanted}"),
                (false, _) => format!("expected {wanted}, at both attempts"),
            };
            row.push_str(&self.paint(Colour::Dim, &format!("  ↳ {remark}")));
            row.push('\n');
        }
        row
    }

    /// Whether a result is the expected one.
    pub fn mark(&self, is_as_expected: bool) -> String {
        if is_as_expected { self.paint(Colour::Green, "✓") } else { self.paint(Colour::Red, "✗") }
    }

    /// The rows of a call without an expected verdict, and the explanations of its verdicts; `quality` is the API's
    /// report on its media.
    pub fn call(&self, name: &str, record: &Record, quality: &Value) -> String {
        self.directions(name, " ", record, quality, false)
    }

    /// `text` in dim letters.
    pub fn dim(&self, text: &str) -> String {
        self.paint(Colour::Dim, text)
    }

    /// `text` in bold letters.
    pub fn bold(&self, text: &str) -> String {
        self.paint(Colour::Bold, text)
    }

    /// The audio of the caller, and below it that of the called party, if there was any. Each row's from and to show
    /// the direction.
    fn directions(&self, name: &str, mark: &str, record: &Record, quality: &Value, wrong: bool) -> String {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let (from, to) = (text(&record.caller_number), text(&record.destination_number));
        let answered = record.billsec > 0 || record.audio.mean_interval_ms.is_some();
        let seconds = if answered { record.billsec.to_string() } else { "–".to_owned() };
        let cause = text(&record.hangup_cause);
        let mut rows = self.row([name, &from, &to], (mark, wrong), &record.audio, [&seconds, &cause]);
        let shown = sentence(quality).filter(|_| !record.audio.is_ok()).unwrap_or_default();
        rows.push_str(&self.why(shown));
        if let Some(callee) = &record.media_b {
            rows.push_str(&self.row(["", &to, &from], (" ", false), callee, ["", ""]));
            // The sentence on the whole call may contain it already.
            let own = callee_sentence(quality).filter(|own| !callee.is_ok() && !shown.contains(*own));
            rows.push_str(&self.why(own.unwrap_or_default()));
        }
        rows
    }

    /// The explanation of a verdict.
    fn why(&self, sentence: &str) -> String {
        if sentence.is_empty() {
            return String::new();
        }
        let lines = wrapped(sentence, WHY_COLUMNS);
        lines.iter().map(|line| self.dim(&format!("             {line}")) + "\n").collect()
    }

    fn row(
        &self,
        [name, from, to]: [&str; 3],
        (mark, wrong): (&str, bool),
        audio: &Audio,
        [seconds, cause]: [&str; 2],
    ) -> String {
        let verdict = audio.media_verdict.as_deref();
        let colour = match verdict {
            _ if wrong => Colour::Red,
            Some("ok") => Colour::Green,
            None | Some("unanswered") => Colour::Dim,
            Some(_) => Colour::Yellow,
        };
        let [loss, jitter, gap, quality, mos] = figures(audio);
        let verdict = format!("{mark} {}", self.paint(colour, &format!("{:<24}", verdict.unwrap_or("–"))));
        line(name, from, to, &verdict, [&loss, &jitter, &gap, &quality, &mos, seconds], cause) + "\n"
    }

    fn paint(&self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Bold => "1",
            Colour::Dim => "2",
            Colour::Green => "32",
            Colour::Red => "31",
            Colour::Yellow => "33",
        };
        painted(self.colour, code, text)
    }
}

/// The figures of a direction, as the table shows them.
fn figures(audio: &Audio) -> [String; 5] {
    [
        figure(audio.loss_pct, 1),
        figure(audio.jitter_ms, 1),
        figure(audio.mean_interval_ms, 1),
        figure(audio.quality_pct, 1),
        figure(audio.mos, 2),
    ]
}

/// One line; `verdict` is already padded, because it may contain colour codes.
fn line(name: &str, from: &str, to: &str, verdict: &str, figures: [&str; 6], cause: &str) -> String {
    let [loss, jitter, gap, quality, mos, seconds] = figures;
    let line = format!(
        "{name:<11}  {from:<4} {to:<3}  {verdict} {loss:>4} {jitter:>6} {gap:>4} {quality:>7} {mos:>4} {seconds:>2} {cause}"
    );
    line.trim_end().to_owned()
}

/// Width for a sentence beside the names of the calls.
const WHY_COLUMNS: usize = 85;

/// A figure that cannot be judged is shown as a dash.
fn figure(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::demo::script::SCENES;

    fn showing(place: usize, attempts: u32, verdict: Option<&str>, figures: bool) -> Showing {
        let figure = |value: f64| figures.then_some(value);
        let json = json!({
            "call_uuid": "00000000-0000-0000-0000-000000000000",
            "caller_number": (101 + place).to_string(),
            "destination_number": (201 + place).to_string(),
            "billsec": if figures { 9 } else { 0 },
            "hangup_cause": if figures { "NORMAL_CLEARING" } else { "ORIGINATOR_CANCEL" },
            "loss_pct": figure(8.21),
            "jitter_ms": figure(103.26),
            "mean_interval_ms": figure(20.04),
            "quality_pct": figure(100.0),
            "mos": figure(4.5),
            "media_verdict": verdict,
            "media_b": figures.then(|| json!({
                "loss_pct": 12.5, "jitter_ms": 0.25, "mean_interval_ms": 22.0, "quality_pct": 87.0, "mos": 2.4,
                "media_verdict": "lossy_inbound",
            })),
        });
        let record = Record::deserialize(&json).unwrap();
        let sentence = "The caller was heard badly, since packets of the audio were lost on their way to us; \
            the worst was a second after the answer.";
        let quality =
            json!({ "sentence": sentence, "callee": { "sentence": "The called party was heard badly." } });
        Showing { scene: SCENES[place], place, attempts, json, record, quality }
    }

    #[test]
    fn a_terminal_of_100_columns_is_wide_enough() {
        let table = Table::new(false);
        let mut out = table.head();
        out += &table.scene(&showing(0, 1, Some("ok"), true));
        out += &table.scene(&showing(3, 2, Some("lossy_inbound"), true));
        out += &table.scene(&showing(10, 2, Some("no_inbound_media"), true));
        out += &table.scene(&showing(10, 1, Some("wrong_advertised_address"), false));
        out += &table.scene(&showing(12, 1, None, false));
        out += &table.call(
            "your call",
            &showing(12, 1, Some("ok"), true).record,
            &json!({ "sentence": "Good." }),
        );
        assert!(out.lines().all(|line| line.chars().count() <= 100), "{out}");
        let callee = "The called party was heard badly.";
        let quality = json!({ "sentence": format!("Lost. {callee}"), "callee": { "sentence": callee } });
        let both = table.call("both", &showing(3, 1, Some("lossy_inbound"), true).record, &quality);
        assert_eq!(both.matches(callee).count(), 1, "{both}");
        expect![[r#"
            call         from to     verdict                  loss jitter  gap quality  MOS  s cause
                                                                 %     ms   ms       %
            clean        101  201  ✓ ok                        8.2  103.3 20.0   100.0 4.50  9 NORMAL_CLEARING
                         201  101    lossy_inbound            12.5    0.2 22.0    87.0 2.40
                         The called party was heard badly.
            lossy        104  204  ✓ lossy_inbound             8.2  103.3 20.0   100.0 4.50  9 NORMAL_CLEARING
                         The caller was heard badly, since packets of the audio were lost on their way to us;
                         the worst was a second after the answer.
                         204  104    lossy_inbound            12.5    0.2 22.0    87.0 2.40
                         The called party was heard badly.
              ↳ at the second attempt
            bad address  111  211  ✗ no_inbound_media          8.2  103.3 20.0   100.0 4.50  9 NORMAL_CLEARING
                         The caller was heard badly, since packets of the audio were lost on their way to us;
                         the worst was a second after the answer.
                         211  111    lossy_inbound            12.5    0.2 22.0    87.0 2.40
                         The called party was heard badly.
              ↳ expected wrong_advertised_address, at both attempts
            bad address  111  211  ✓ wrong_advertised_address    –      –    –       –    –  – ORIGINATOR_CANCEL
                         The caller was heard badly, since packets of the audio were lost on their way to us;
                         the worst was a second after the answer.
            busy         113  213  ✗ –                           –      –    –       –    –  – ORIGINATOR_CANCEL
                         The caller was heard badly, since packets of the audio were lost on their way to us;
                         the worst was a second after the answer.
              ↳ expected unanswered
            your call    113  213    ok                        8.2  103.3 20.0   100.0 4.50  9 NORMAL_CLEARING
                         213  113    lossy_inbound            12.5    0.2 22.0    87.0 2.40
        "#]]
        .assert_eq(&out);
    }

    #[test]
    fn colours_are_left_out_when_unwanted() {
        let showing = showing(3, 1, Some("ok"), true);
        assert!(!Table::new(false).scene(&showing).contains('\u{1b}'));
        let row = Table::new(true).scene(&showing);
        assert!(row.contains("\u{1b}[31m✗") && row.contains("expected lossy_inbound"), "{row}");
    }
}
