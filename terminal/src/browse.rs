//! The browser of a capture: the list of its calls, and the page of one of them.

use crate::call_page::{CallFacts, call_page};
use crate::clean::clean;
use crate::key::Key;
use crate::list::{List, Row};
use crate::screen::{Body, Column, Line, Screen, Tone, Width};
use crate::top::scrolled;

/// A request of the browser to its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrowseOutput {
    /// Provide the page of the row with this id through [`Browse::show`].
    Open(String),
    /// The user quits.
    Quit,
}

/// The browser: a state machine without I/O. It gets the rows once, then keys.
#[derive(Debug)]
pub struct Browse {
    title: String,
    note: (Tone, String),
    list: List,
    page: Option<(Vec<Line>, usize)>,
}

impl Browse {
    /// The columns of its rows.
    pub const COLUMNS: [Column; 9] = [
        Column::text("Verdict", Width::Cells(24)),
        Column::number("MOS", 4),
        Column::number("Loss %", 6),
        Column::number("Jitter", 7),
        Column::text("From", Width::Share(2)),
        Column::text("To", Width::Share(2)),
        Column::text("Started", Width::Cells(19)),
        Column::number("Time", 8),
        Column::text("Codec", Width::Share(1)),
    ];

    /// A browser of these rows, whose cells match [`Browse::COLUMNS`]; the worst is shown first. `note` is shown
    /// above the rows.
    pub fn new(title: &str, note: (Tone, String), rows: Vec<Row>) -> Self {
        let mut list = List::default();
        list.set(rows);
        Browse { title: clean(title), note, list, page: None }
    }

    /// Handles a key; returns the resulting request, if any.
    pub fn handle_key(&mut self, key: Key) -> Option<BrowseOutput> {
        if key == Key::Interrupt {
            return Some(BrowseOutput::Quit);
        }
        if let Some((lines, scroll)) = &mut self.page {
            match scrolled(*scroll, lines.len(), key) {
                Some(to) => *scroll = to.min(lines.len().saturating_sub(1)),
                None if key == Key::Char('q') => return Some(BrowseOutput::Quit),
                None if matches!(key, Key::Escape | Key::Left | Key::Backspace) => self.page = None,
                None => {}
            }
            return None;
        }
        if self.list.key(key) {
            return None;
        }
        match key {
            Key::Char('q') => Some(BrowseOutput::Quit),
            Key::Enter | Key::Right => self.list.selected().map(|id| BrowseOutput::Open(id.to_owned())),
            _ => None,
        }
    }

    /// Shows the page of a call.
    pub fn show(&mut self, facts: &CallFacts) {
        self.page = Some((call_page(facts), 0));
    }

    /// Returns the current screen.
    pub fn screen(&self) -> Screen {
        let footer = match (&self.page, self.list.is_typing(), self.list.filter()) {
            (Some(_), ..) => "Esc back  arrows scroll  q quit".to_owned(),
            (None, true, filter) => format!("/{filter}_   Enter keeps the filter, Esc clears it"),
            (None, false, "") => "arrows rows  / filter  Enter call  q quit".to_owned(),
            (None, false, filter) => format!("filter {filter}   Esc clears it  Enter call  q quit"),
        };
        let body = match &self.page {
            Some((lines, scroll)) => Body::Page(lines.clone(), *scroll),
            None => {
                Body::List(self.list.body(&Self::COLUMNS, "The capture holds no call and no RTP stream."))
            }
        };
        Screen {
            title: self.title.clone(),
            tabs: Vec::new(),
            tab: 0,
            status: self.note.clone(),
            body,
            footer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::Badness;

    #[test]
    fn a_call_is_chosen_opened_and_left() {
        let row = |id: &str, rank: i64| Row {
            id: id.to_owned(),
            badness: Badness { class: 0, rank },
            tone: Tone::Bad,
            cells: vec![format!("verdict {id}")],
        };
        let note = (Tone::Dim, "2 calls".to_owned());
        let mut browse = Browse::new("x.pcap\u{1b}c", note, vec![row("1", 9), row("0", 1)]);
        assert_eq!(browse.screen().title, "x.pcap·c");
        assert_eq!(
            browse.handle_key(Key::Enter),
            Some(BrowseOutput::Open("0".to_owned())),
            "the worst first"
        );
        browse.show(&CallFacts { heading: "1001 -> 1002".to_owned(), ..CallFacts::default() });
        let Body::Page(lines, 0) = browse.screen().body else { panic!("no page") };
        assert_eq!(lines.first().map(Line::text).as_deref(), Some("1001 -> 1002"));
        assert_eq!(browse.handle_key(Key::Enter), None);
        assert_eq!(browse.handle_key(Key::Escape), None);
        let Body::List(list) = browse.screen().body else { panic!("no list") };
        assert_eq!((list.rows.len(), list.selected), (2, 0));
        assert_eq!(browse.handle_key(Key::Char('/')), None);
        assert_eq!(browse.handle_key(Key::Char('q')), None, "q is typed");
        assert_eq!(browse.handle_key(Key::Interrupt), Some(BrowseOutput::Quit));
        browse.handle_key(Key::Escape);
        assert_eq!(browse.handle_key(Key::Char('q')), Some(BrowseOutput::Quit));
    }
}
