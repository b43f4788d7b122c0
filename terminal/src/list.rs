//! A table sorted from the worst row to the best, with a filter and a selected row.

use crate::key::Key;
use crate::screen::{Column, ListBody, Tone};

/// How bad a row is: smaller is worse. The class is compared first, then the rank within it, such as a MOS in
/// hundredths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Badness {
    /// The class: 0 is the worst.
    pub class: u8,
    /// The rank within the class.
    pub rank: i64,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The id of the object in the row; the selection follows it.
    pub id: String,
    /// Its position in the sort.
    pub badness: Badness,
    /// The tone of its first cell.
    pub tone: Tone,
    /// Its cells, safe for a terminal.
    pub cells: Vec<String>,
}

/// The table. It shows the rows that contain the filter text.
#[derive(Debug, Default)]
pub(crate) struct List {
    rows: Vec<Row>,
    filter: String,
    /// Whether the user is typing the filter.
    is_typing: bool,
    /// The selected row's id, and its index for when the row is removed.
    selected: Option<String>,
    place: usize,
}

impl List {
    /// Replaces the rows; they are sorted here. Rows that are equally bad keep their order.
    pub(crate) fn set(&mut self, mut rows: Vec<Row>) {
        rows.sort_by_key(|row| row.badness);
        self.rows = rows;
        self.settle();
    }

    /// The number of rows, shown or not.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn filter(&self) -> &str {
        &self.filter
    }

    pub(crate) fn is_typing(&self) -> bool {
        self.is_typing
    }

    /// The id of the selected row.
    pub(crate) fn selected(&self) -> Option<&str> {
        self.shown().nth(self.place).map(|row| row.id.as_str())
    }

    /// Handles a key; returns whether the table uses this key.
    pub(crate) fn key(&mut self, key: Key) -> bool {
        if self.is_typing {
            return self.type_key(key);
        }
        let last = self.shown().count().saturating_sub(1);
        let place = match key {
            Key::Up | Key::Char('k') => self.place.saturating_sub(1),
            Key::Down | Key::Char('j') => self.place.saturating_add(1),
            Key::PageUp => self.place.saturating_sub(PAGE_ROWS),
            Key::PageDown => self.place.saturating_add(PAGE_ROWS),
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => last,
            Key::Char('/') => {
                self.is_typing = true;
                return true;
            }
            Key::Escape if !self.filter.is_empty() => {
                self.filter.clear();
                self.settle();
                return true;
            }
            _ => return false,
        };
        self.place = place.min(last);
        self.selected = self.selected().map(str::to_owned);
        true
    }

    fn type_key(&mut self, key: Key) -> bool {
        match key {
            Key::Char(letter) if self.filter.chars().count() < FILTER_LEN_MAX => self.filter.push(letter),
            Key::Backspace => drop(self.filter.pop()),
            Key::Enter => self.is_typing = false,
            Key::Escape => {
                self.filter.clear();
                self.is_typing = false;
            }
            Key::Interrupt => return false,
            // Other keys do nothing: the filter must be closed before the table moves.
            _ => return true,
        }
        self.settle();
        true
    }

    /// The table as it is shown.
    pub(crate) fn body(&self, columns: &'static [Column], empty: &str) -> ListBody {
        let empty = if self.filter.is_empty() { empty } else { "No row contains the text of the filter." };
        ListBody {
            columns,
            rows: self.shown().map(|row| (row.tone, row.cells.clone())).collect(),
            selected: self.place,
            empty: empty.to_owned(),
        }
    }

    fn shown(&self) -> impl Iterator<Item = &Row> {
        let wanted = self.filter.to_lowercase();
        self.rows.iter().filter(move |row| {
            wanted.is_empty() || row.cells.iter().any(|cell| cell.to_lowercase().contains(&wanted))
        })
    }

    /// Finds the selected row at its new index, or selects the row that is now at the old index.
    fn settle(&mut self) {
        let found = self.selected.as_deref().and_then(|id| self.shown().position(|row| row.id == id));
        let last = self.shown().count().saturating_sub(1);
        self.place = found.unwrap_or(self.place).min(last);
    }
}

/// Rows that a page key moves.
const PAGE_ROWS: usize = 20;
/// Maximum characters of a filter.
const FILTER_LEN_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, rank: i64) -> Row {
        let badness = Badness { class: 0, rank };
        Row { id: id.to_owned(), badness, tone: Tone::Plain, cells: vec![format!("phone {id}")] }
    }

    fn ids(list: &List) -> String {
        list.shown().map(|row| row.id.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_selection_follows_its_row() {
        let mut list = List::default();
        list.set(vec![row("a", 3), row("b", 1), row("c", 2)]);
        assert_eq!((ids(&list).as_str(), list.selected()), ("b c a", Some("b")), "the worst first");
        assert!(list.key(Key::Down));
        assert_eq!(list.selected(), Some("c"));
        list.set(vec![row("a", 1), row("b", 2), row("c", 9)]);
        assert_eq!((ids(&list).as_str(), list.selected()), ("a b c", Some("c")));
        list.set(vec![row("a", 1)]);
        assert_eq!(list.selected(), Some("a"), "the row is gone");
        list.set(Vec::new());
        assert_eq!(list.selected(), None);
        assert!(list.key(Key::End) && list.selected().is_none());
        assert!(!list.key(Key::Enter) && !list.key(Key::Char('q')));
    }

    #[test]
    fn a_filter_is_typed_kept_and_cleared() {
        let mut list = List::default();
        list.set(vec![row("Ada", 1), row("bob", 2)]);
        for key in [Key::Char('/'), Key::Char('B'), Key::Char('o'), Key::Char('x'), Key::Backspace, Key::Down]
        {
            assert!(list.key(key), "{key:?}");
        }
        assert_eq!((ids(&list).as_str(), list.filter(), list.is_typing()), ("bob", "Bo", true));
        assert!(!list.key(Key::Interrupt), "Ctrl-C is never a part of the filter");
        list.key(Key::Enter);
        assert_eq!((ids(&list).as_str(), list.is_typing()), ("bob", false));
        list.key(Key::Escape);
        assert_eq!((ids(&list).as_str(), list.filter()), ("Ada bob", ""));
        list.key(Key::Char('/'));
        assert!((0..500).all(|_| list.key(Key::Char('z'))));
        assert_eq!(list.filter().len(), FILTER_LEN_MAX);
        assert_eq!(list.body(&[], "none").empty, "No row contains the text of the filter.");
    }
}
