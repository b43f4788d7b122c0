//! A screen as plain text, for programs and for output that is not a terminal.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;

use crate::screen::{Body, Column, ListBody, Screen};

/// Writes a screen as text: the status, and the table or the page. Columns are as wide as their cells.
pub fn plain(screen: &Screen) -> String {
    let mut text = String::new();
    let name = screen.tabs.get(screen.tab).map_or(screen.title.as_str(), String::as_str);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{name}");
    if !screen.status.1.is_empty() {
        let _ = writeln!(text, "{}", screen.status.1);
    }
    match &screen.body {
        Body::List(list) => table(&mut text, list),
        Body::Page(lines, _) => lines.iter().for_each(|line| {
            let _ = writeln!(text, "{}", line.text().trim_end());
        }),
    }
    text
}

fn table(text: &mut String, list: &ListBody) {
    if list.rows.is_empty() {
        let _ = writeln!(text, "{}", list.empty);
        return;
    }
    let cells = |place: usize| list.rows.iter().filter_map(move |(_, cells)| cells.get(place));
    let widths: Vec<usize> = list
        .columns
        .iter()
        .enumerate()
        .map(|(place, column)| {
            cells(place).map(|cell| cell.width()).max().unwrap_or_default().max(column.title.width())
        })
        .collect();
    let titles = list.columns.iter().map(|column| column.title.to_owned()).collect();
    for cells in [&titles].into_iter().chain(list.rows.iter().map(|(_, cells)| cells)) {
        let mut line = String::new();
        for ((cell, column), width) in cells.iter().zip(list.columns).zip(&widths) {
            pad(&mut line, cell, column, *width);
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

fn pad(line: &mut String, cell: &str, column: &Column, width: usize) {
    let blank = " ".repeat(width.saturating_sub(cell.width()));
    let _ = if column.is_number { write!(line, "{blank}{cell}  ") } else { write!(line, "{cell}{blank}  ") };
}
