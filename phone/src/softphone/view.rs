//! The layout of notes on a terminal. Text in, text out; text from the network passes [`clean`].

use sidetone_model::exact_json::ExactJson;

use crate::terminal::{painted, wrapped};
use crate::{Channel, Level, ShownNote};

/// The capabilities of a terminal.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Whether it supports colours.
    pub colour: bool,
    /// Its columns.
    pub width: usize,
}

/// Which rows of a note are open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fold {
    /// Every row.
    All,
    /// None.
    #[default]
    Closed,
    /// These.
    Rows(Vec<String>),
}

/// Text that is safe for a terminal: a control character is replaced by its symbol; characters that change the text
/// direction or are invisible are replaced too.
pub fn clean(text: &str) -> String {
    text.chars().map(harmless).collect()
}

fn harmless(c: char) -> char {
    match c {
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\x7f' => '\u{2421}',
        c if is_harmful(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// Characters that must not reach a terminal: controls, line separators, and those that change the text
/// direction.
pub(super) fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

impl View {
    /// A note as a card with its `number`.
    pub fn note(&self, note: &ShownNote, number: usize, fold: &Fold, is_acknowledged: bool) -> String {
        let edge = painted(self.colour, colour_of(note.level), "┃");
        let mut lines = vec![format!("{} {}", self.tag(note.level), self.bold(&clean(&note.title)))];
        for line in note.body.iter().flat_map(|body| body.lines()) {
            lines.extend(wrapped(&clean(line), self.width.saturating_sub(2)));
        }
        let width = note.rows.iter().map(|(name, _)| clean(name).chars().count()).max().unwrap_or_default();
        let width = width.min(NAME_WIDTH_MAX);
        for (name, value) in &note.rows {
            let is_open = match fold {
                Fold::All => true,
                Fold::Closed => false,
                Fold::Rows(rows) => rows.contains(name),
            };
            self.row(name, value, (0, width), is_open, &mut lines);
        }
        lines.push(self.dim(&foot(note, number, fold, is_acknowledged)));
        lines.iter().map(|line| format!("{edge} {line}\n")).collect()
    }

    /// The line that is shown while an alert is active.
    pub fn banner(&self, note: &ShownNote, number: usize) -> String {
        let text = format!(" {} · x {number} takes this down ", clean(&note.title));
        format!("{}{}\n", self.tag(note.level), self.bold(&text))
    }

    /// One line of a list of notes.
    pub fn line(&self, note: &ShownNote, number: usize, is_acknowledged: bool) -> String {
        let state = match (note.ack, is_acknowledged) {
            (_, true) => "acknowledged",
            (true, false) => "to acknowledge",
            (false, false) => "",
        };
        format!("{number:>3}  {} {}  {}\n", self.tag(note.level), clean(&note.title), self.dim(state))
    }

    /// A name and its value, or the rows inside it.
    fn row(
        &self,
        name: &str,
        value: &ExactJson,
        (depth, width): (usize, usize),
        is_open: bool,
        lines: &mut Vec<String>,
    ) {
        let indent = "  ".repeat(depth);
        let name = clean(name);
        let padding = " ".repeat(width.saturating_sub(name.chars().count()));
        let head = format!("{indent}{}{padding}  ", self.dim(&name));
        let items = value.items().map(|items| {
            items.into_iter().enumerate().map(|(at, item)| ((at + 1).to_string(), item)).collect::<Vec<_>>()
        });
        let is_array = items.is_some();
        let inner = match items.or_else(|| value.members()) {
            Some(inner) => inner,
            None => {
                let room = self.width.saturating_sub(2 + indent.len() + width + 2);
                let mut text = wrapped(&clean(&plain(value)), room).into_iter();
                lines.push(format!("{head}{}", text.next().unwrap_or_default()));
                let hanging = " ".repeat(indent.len() + width + 2);
                lines.extend(text.map(|line| format!("{hanging}{line}")));
                return;
            }
        };
        let size = if is_array { format!("[{}]", inner.len()) } else { format!("{{{}}}", inner.len()) };
        if inner.is_empty() || !is_open || depth >= DEPTH_MAX {
            lines.push(format!("{head}▸ {size}"));
            return;
        }
        lines.push(format!("{head}▾ {size}"));
        let width = inner.iter().map(|(name, _)| clean(name).chars().count()).max().unwrap_or_default();
        for (name, value) in inner {
            self.row(&name, &value, (depth + 1, width.min(NAME_WIDTH_MAX)), true, lines);
        }
    }

    fn tag(&self, level: Level) -> String {
        let name = level.as_str().to_ascii_uppercase();
        if self.colour {
            painted(true, &format!("1;7;{}", colour_of(level)), &format!(" {name} "))
        } else {
            format!("[{name}]")
        }
    }

    /// Bold text.
    pub fn bold(&self, text: &str) -> String {
        painted(self.colour, "1", text)
    }

    /// Text that is less important.
    pub fn dim(&self, text: &str) -> String {
        if text.is_empty() { String::new() } else { painted(self.colour, "2", text) }
    }
}

fn colour_of(level: Level) -> &'static str {
    match level {
        Level::Info => "34",
        Level::Warning => "33",
        Level::Alert => "31",
    }
}

/// The last lines of a card: the source of a note and the available commands.
fn foot(note: &ShownNote, number: usize, fold: &Fold, is_acknowledged: bool) -> String {
    let way = match note.channel {
        Channel::Info => "in the call",
        Channel::Message => "by message",
    };
    let mut parts = vec![format!("note {number}, {way}")];
    if is_acknowledged {
        parts.push("acknowledged".to_owned());
    } else if note.ack {
        parts.push(format!("a {number} acknowledges"));
    }
    let folds = note.rows.iter().any(|(_, value)| value.as_str().starts_with(['{', '[']));
    if folds && *fold == Fold::Closed {
        parts.push(format!("o {number} unfolds"));
    }
    parts.join(" · ")
}

/// A value as text for people.
pub(super) fn plain(value: &ExactJson) -> String {
    match value.as_str() {
        "true" => "yes".to_owned(),
        "false" => "no".to_owned(),
        "null" => "–".to_owned(),
        other => serde_json::from_str(other).unwrap_or_else(|_| other.to_owned()),
    }
}

/// Longer names shift their values to the right.
const NAME_WIDTH_MAX: usize = 24;
/// The maximum depth to which rows are opened.
const DEPTH_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};
    use sidetone_media::time::Micros;

    use super::*;

    fn note(json: Value) -> ShownNote {
        let Value::Object(fields) = &json else { panic!("a note is an object") };
        let known = ["id", "title", "body", "level", "ack"];
        ShownNote {
            id: "n1".into(),
            title: json["title"].as_str().unwrap().into(),
            body: json["body"].as_str().map(str::to_owned),
            level: match json["level"].as_str() {
                Some("alert") => Level::Alert,
                Some("warning") => Level::Warning,
                _ => Level::Info,
            },
            ack: json["ack"] == true,
            rows: fields
                .iter()
                .filter(|(name, _)| !known.contains(&name.as_str()))
                .map(|(name, value)| (name.clone(), ExactJson::parse(value.to_string()).unwrap()))
                .collect(),
            channel: Channel::Info,
            from: "sip:events@acme.test".into(),
            call_id: Some("c".into()),
            at: Micros(0),
            exact: ExactJson::parse(json.to_string()).unwrap(),
            json,
        }
    }

    fn debt() -> ShownNote {
        note(json!({
            "title": "Customer owes 900 euros", "body": "Two reminders were sent.\nBe kind.", "level": "alert",
            "ack": true, "customer": "Jane Roe", "since": null, "blocked": false,
            "invoices": [{"no": 17, "EUR": 400.5}, {"no": 21, "EUR": 499.5}], "address": {"city": "Graz", "zip": "8010"}
        }))
    }

    fn check(view: View, note: &ShownNote, fold: &Fold, expected: Expect) {
        expected.assert_eq(&view.note(note, 2, fold, false));
    }

    const PLAIN: View = View { colour: false, width: 60 };

    #[test]
    fn a_note_is_a_card() {
        check(
            PLAIN,
            &debt(),
            &Fold::Closed,
            expect![[r#"
                ┃ [ALERT] Customer owes 900 euros
                ┃ Two reminders were sent.
                ┃ Be kind.
                ┃ customer  Jane Roe
                ┃ since     –
                ┃ blocked   no
                ┃ invoices  ▸ [2]
                ┃ address   ▸ {2}
                ┃ note 2, in the call · a 2 acknowledges · o 2 unfolds
            "#]],
        );
    }

    #[test]
    fn rows_unfold() {
        check(
            PLAIN,
            &debt(),
            &Fold::All,
            expect![[r#"
            ┃ [ALERT] Customer owes 900 euros
            ┃ Two reminders were sent.
            ┃ Be kind.
            ┃ customer  Jane Roe
            ┃ since     –
            ┃ blocked   no
            ┃ invoices  ▾ [2]
            ┃   1  ▾ {2}
            ┃     no   17
            ┃     EUR  400.5
            ┃   2  ▾ {2}
            ┃     no   21
            ┃     EUR  499.5
            ┃ address   ▾ {2}
            ┃   city  Graz
            ┃   zip   8010
            ┃ note 2, in the call · a 2 acknowledges
        "#]],
        );
        check(
            PLAIN,
            &debt(),
            &Fold::Rows(vec!["address".into()]),
            expect![[r#"
            ┃ [ALERT] Customer owes 900 euros
            ┃ Two reminders were sent.
            ┃ Be kind.
            ┃ customer  Jane Roe
            ┃ since     –
            ┃ blocked   no
            ┃ invoices  ▸ [2]
            ┃ address   ▾ {2}
            ┃   city  Graz
            ┃   zip   8010
            ┃ note 2, in the call · a 2 acknowledges
        "#]],
        );
    }

    #[test]
    fn levels_have_colours() {
        let colours = View { colour: true, ..PLAIN };
        let cards: String = [("info", "i"), ("warning", "w"), ("alert", "a")]
            .into_iter()
            .map(|(level, title)| {
                colours.note(&note(json!({"title": title, "level": level})), 1, &Fold::Closed, true)
            })
            .collect();
        expect![[r#"
            ^[34m┃^[0m ^[1;7;34m INFO ^[0m ^[1mi^[0m
            ^[34m┃^[0m ^[2mnote 1, in the call · acknowledged^[0m
            ^[33m┃^[0m ^[1;7;33m WARNING ^[0m ^[1mw^[0m
            ^[33m┃^[0m ^[2mnote 1, in the call · acknowledged^[0m
            ^[31m┃^[0m ^[1;7;31m ALERT ^[0m ^[1ma^[0m
            ^[31m┃^[0m ^[2mnote 1, in the call · acknowledged^[0m
        "#]]
        .assert_eq(&cards.replace('\x1b', "^"));
    }

    #[test]
    fn nothing_of_the_network_commands_the_terminal() {
        let evil = note(json!({
            "title": "a\u{1b}[2Jb\u{9b}31mc", "body": "bell \u{7} back \u{8}\r\u{202e}txt", "na\u{1b}me": "v\u{1b}]0;x\u{7}",
            "deep": {"\u{1b}": ["\u{7f}"]}
        }));
        check(
            PLAIN,
            &evil,
            &Fold::All,
            expect![[r#"
            ┃ [INFO] a␛[2Jb�31mc
            ┃ bell ␇ back ␈␍�txt
            ┃ na␛me  v␛]0;x␇
            ┃ deep   ▾ {1}
            ┃   ␛  ▾ [1]
            ┃     1  ␡
            ┃ note 2, in the call
        "#]],
        );
        let shown =
            PLAIN.note(&evil, 1, &Fold::All, false) + &PLAIN.banner(&evil, 1) + &PLAIN.line(&evil, 1, false);
        assert!(shown.chars().all(|c| c == '\n' || !is_harmful(c)));
    }
}
