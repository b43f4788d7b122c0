//! The terminal: its input lines, and the output above a prompt.

use std::io::{self, BufRead, Read, Write};

use serde::Serialize;
use tokio::sync::mpsc;

use crate::softphone::view::{View, is_harmful};

/// The output of a phone: text for people, or one JSON object per line.
pub struct Console {
    out: Box<dyn Write + Send>,
    is_json: bool,
    prompt: Option<String>,
    /// The layout.
    pub view: View,
}

impl Console {
    /// Text for people; the prompt is written again after every output.
    pub fn text(out: Box<dyn Write + Send>, view: View, prompt: Option<String>) -> Console {
        Console { out, is_json: false, prompt, view }
    }

    /// One JSON object per line.
    pub fn json(out: Box<dyn Write + Send>) -> Console {
        Console { out, is_json: true, prompt: None, view: View { colour: false, width: 0 } }
    }

    /// Writes an event in the form of this console.
    pub(super) fn tell(&mut self, event: &impl Serialize, text: &str) {
        let text = match serde_json::to_string(event) {
            Ok(event) if self.is_json => escaped(&event) + "\n",
            _ => text.to_owned(),
        };
        let clear = if self.prompt.is_some() { "\r\x1b[K" } else { "" };
        let break_after = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        // A closed pipe (`| head`) is not an error.
        let _ = write!(self.out, "{clear}{text}{break_after}").and_then(|()| self.out.flush());
    }

    /// Writes the prompt, below the current banners.
    pub(super) fn prompt(&mut self, banners: &str) {
        if let Some(prompt) = &self.prompt {
            let _ = write!(self.out, "\r\x1b[K{banners}{prompt}").and_then(|()| self.out.flush());
        }
    }

    /// Whether the output is JSON.
    pub(super) fn is_json(&self) -> bool {
        self.is_json
    }
}

/// The lines of the standard input. The thread that reads them ends with the input or with the process.
pub fn lines() -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel(LINES_MAX);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match (&mut input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
                Ok(1..) if send.blocking_send(String::from_utf8_lossy(&line).into_owned()).is_ok() => {}
                _ => return,
            }
        }
    });
    receive
}

/// JSON without control characters for a terminal in its strings; JSON has none outside of strings.
fn escaped(json: &str) -> String {
    let mut units = [0; 2];
    json.chars().fold(String::with_capacity(json.len()), |mut text, c| {
        if is_harmful(c) {
            text.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            text.push(c);
        }
        text
    })
}

/// Lines that wait while a command is executed.
const LINES_MAX: usize = 16;
/// Longer lines are split.
const LINE_BYTES_MAX: u64 = 4_096;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn json_is_harmless_and_the_same() {
        let event = json!({"title": "a\u{1b}[2J\u{9b}\u{202e}\u{e0001}ü", "n": 1});
        let text = escaped(&event.to_string());
        assert!(!text.chars().any(is_harmful), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), event);
    }
}
