//! Rows of cells as text: in columns if the terminal is wide enough, otherwise row by row; wrapped between
//! words.

use std::fmt::Write;

/// The layout of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Columns of the terminal; `None` writes every row on one line, however long.
    pub width: Option<usize>,
    /// Whether verdicts have colours (ANSI escape sequences).
    pub colour: bool,
}

/// Rows of cells, each with remarks below it. The last cell of a row is its verdict.
#[derive(Debug)]
pub(super) struct Grid {
    header: Vec<String>,
    rows: Vec<Row>,
}

/// A single row.
#[derive(Debug)]
pub(super) struct Row {
    cells: Vec<String>,
    remarks: Vec<String>,
    colour: &'static str,
}

impl Row {
    /// A row whose verdict, its last cell, is coloured by `verdict`.
    pub(super) fn new(cells: Vec<String>, remarks: Vec<String>, verdict: Option<&str>) -> Self {
        let colour = match verdict {
            Some("ok") => GREEN,
            None | Some("unanswered") => GREY,
            Some("no_inbound_media" | "no_outbound_media" | "wrong_advertised_address") => RED,
            Some(_) => YELLOW,
        };
        Row { cells: cells.iter().map(|cell| printable(cell)).collect(), remarks, colour }
    }
}

impl Grid {
    pub(super) fn new(header: &[&str]) -> Self {
        Grid { header: header.iter().map(|&cell| cell.to_owned()).collect(), rows: Vec::new() }
    }

    pub(super) fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Writes an empty line and then the rows.
    pub(super) fn write(&self, look: Look, out: &mut String) {
        out.push('\n');
        let width = look.width.map(|width| width.max(MIN_WIDTH));
        match self.widths(width) {
            Some(widths) => self.write_columns(&widths, look, out),
            None => self.write_cards(width.unwrap_or(MIN_WIDTH), look, out),
        }
    }

    /// The width of each column; `None` where the terminal is too narrow for all of them.
    fn widths(&self, width: Option<usize>) -> Option<Vec<usize>> {
        let columns = self.header.len();
        let natural: Vec<usize> = self.fold_columns(|cell| cell.chars().count());
        let Some(width) = width else { return Some(natural) };
        let room = width.checked_sub(GAP * columns.saturating_sub(1))?;
        let least: Vec<usize> = self.fold_columns(|cell| {
            pieces(cell).iter().map(|piece| piece.trim_end().chars().count()).max().unwrap_or(0)
        });
        if least.iter().sum::<usize>() > room {
            return None;
        }
        let mut widths = natural;
        // Each turn narrows a column, and none below its longest word.
        while widths.iter().sum::<usize>() > room {
            let slack =
                |place: usize, width: usize| width - least.get(place).copied().unwrap_or(width).min(width);
            let widest = (0..columns).max_by_key(|place| {
                let width = widths.get(*place).copied().unwrap_or(0);
                (slack(*place, width).min(1), width)
            })?;
            let slot = widths.get_mut(widest)?;
            *slot = slot.checked_sub(1)?;
        }
        Some(widths)
    }

    fn fold_columns(&self, measure: impl Fn(&str) -> usize) -> Vec<usize> {
        let mut widths: Vec<usize> = self.header.iter().map(|cell| measure(cell)).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(&row.cells) {
                *width = (*width).max(measure(cell));
            }
        }
        widths
    }

    /// Columns of numbers are aligned to the right.
    fn write_columns(&self, widths: &[usize], look: Look, out: &mut String) {
        let is_number = |cell: &String| cell.chars().all(|c| c.is_ascii_digit() || ".,–-".contains(c));
        let numeric: Vec<bool> = (0..self.header.len())
            .map(|place| self.rows.iter().filter_map(|row| row.cells.get(place)).all(is_number))
            .collect();
        write_cells(&self.header, widths, &numeric, "", out);
        for row in &self.rows {
            let colour = if look.colour { row.colour } else { "" };
            write_cells(&row.cells, widths, &numeric, colour, out);
            write_remarks(row, look, out);
        }
    }

    /// Writes a row in as many lines as it takes: its name and verdict, its cells with their headings, its
    /// remarks.
    fn write_cards(&self, width: usize, look: Look, out: &mut String) {
        for row in &self.rows {
            let last = row.cells.len().saturating_sub(1);
            let mut words = Vec::new();
            for (place, (heading, cell)) in self.header.iter().zip(&row.cells).enumerate() {
                if place == 0 || place == last || cell.is_empty() || cell == "–" {
                    continue;
                }
                // "loss %" and "3.33" are "loss 3.33 %".
                words.push(match heading.rsplit_once(' ') {
                    Some((name, unit @ ("%" | "ms"))) => format!("{name} {cell} {unit}"),
                    Some((name, "(UTC)")) => format!("{name} {cell}"),
                    _ => format!("{heading} {cell}"),
                });
            }
            let (name, verdict) = (row.cells.first(), row.cells.last());
            let heading = self.header.first().map_or("", String::as_str);
            let (open, close) = if look.colour { (row.colour, PLAIN) } else { ("", "") };
            let (name, verdict) = (name.map_or("", String::as_str), verdict.map_or("", String::as_str));
            // A row without a name continues the one above it.
            let name = if name.is_empty() { "  and".to_owned() } else { format!("{heading} {name}") };
            let mut lines = wrapped(&format!("{name}:"), width, "", INDENT);
            let last = lines.last().map_or(0, |line| line.chars().count());
            if last + 1 + verdict.chars().count() > width {
                lines.push(INDENT.to_owned());
            }
            let gap = if lines.last().is_some_and(|line| line.ends_with(' ')) { "" } else { " " };
            let _ = writeln!(out, "{}{gap}{open}{verdict}{close}", lines.join("\n"));
            if !words.is_empty() {
                for line in wrapped(&words.join(", "), width, INDENT, INDENT) {
                    let _ = writeln!(out, "{line}");
                }
            }
            write_remarks(row, look, out);
        }
    }
}

/// Writes cells side by side, each in as many lines as it takes; `colour` is the colour of the last one.
fn write_cells(cells: &[String], widths: &[usize], numeric: &[bool], colour: &str, out: &mut String) {
    let columns: Vec<Vec<String>> =
        cells.iter().zip(widths).map(|(cell, width)| wrapped(cell, *width, "", "")).collect();
    let lines = columns.iter().map(Vec::len).max().unwrap_or(0);
    for number in 0..lines {
        let mut line = String::new();
        for (place, ((column, width), numeric)) in columns.iter().zip(widths).zip(numeric).enumerate() {
            let text = column.get(number).map_or("", String::as_str);
            let blank = width.saturating_sub(text.chars().count());
            let (left, right) = if *numeric { (blank, GAP) } else { (0, blank + GAP) };
            let is_coloured = !colour.is_empty() && place + 1 == columns.len() && !text.is_empty();
            let (open, close) = if is_coloured { (colour, PLAIN) } else { ("", "") };
            let _ = write!(line, "{:left$}{open}{text}{close}{:right$}", "", "");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

fn write_remarks(row: &Row, look: Look, out: &mut String) {
    let width = look.width.map_or(REMARK_WIDTH, |width| width.clamp(MIN_WIDTH, REMARK_WIDTH));
    for remark in &row.remarks {
        let remark: String = remark.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        for line in wrapped(&remark, width, "      ↳ ", "        ") {
            let _ = writeln!(out, "{line}");
        }
    }
}

/// A text in lines of at most `width` characters, broken between words; a longer word is broken at the end of
/// the line.
pub(super) fn wrapped(text: &str, width: usize, first: &str, next: &str) -> Vec<String> {
    let width = width.max(next.chars().count().max(first.chars().count()) + 1);
    let (mut lines, mut line, mut len) = (Vec::new(), first.to_owned(), first.chars().count());
    // The column in which the text of the line begins.
    let mut begin = len;
    for piece in pieces(text) {
        let visible = piece.trim_end().chars().count();
        if len > begin && len + visible > width {
            lines.push(std::mem::replace(&mut line, next.to_owned()).trim_end().to_owned());
            begin = next.chars().count();
            len = begin;
        }
        for c in piece.chars() {
            if len >= width {
                if c.is_whitespace() {
                    continue;
                }
                lines.push(std::mem::replace(&mut line, next.to_owned()));
                begin = next.chars().count();
                len = begin;
            }
            line.push(c);
            len += 1;
        }
    }
    if len > begin || lines.is_empty() {
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// Words with the space after them; a name of several words, such as `lossy_inbound`, may be broken as well.
fn pieces(text: &str) -> Vec<&str> {
    text.split_inclusive([' ', '_']).collect()
}

/// Text of a capture, made safe for a terminal: without control characters, and of limited length.
pub(super) fn printable(text: &str) -> String {
    let mut out: String =
        text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(CELL_WIDTH_MAX).collect();
    if text.chars().nth(CELL_WIDTH_MAX).is_some() {
        out.pop();
        out.push('…');
    }
    out
}

/// Spaces between two columns.
const GAP: usize = 2;
/// Indentation of the lines that belong to a row.
const INDENT: &str = "      ";
/// The widest remark.
const REMARK_WIDTH: usize = 106;
/// The smallest terminal width that is assumed.
pub(super) const MIN_WIDTH: usize = 30;
/// The widest cell; a Call-ID or a name may be of any length.
const CELL_WIDTH_MAX: usize = 120;
const GREEN: &str = "\u{1b}[32m";
const GREY: &str = "\u{1b}[90m";
const PLAIN: &str = "\u{1b}[0m";
const RED: &str = "\u{1b}[31m";
const YELLOW: &str = "\u{1b}[33m";

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn grid() -> Grid {
        let mut grid = Grid::new(&["name", "status", "loss %", "verdict"]);
        let row = |cells: [&str; 4], remarks: &[&str], verdict| {
            let own = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
            Row::new(own(&cells), own(remarks), verdict)
        };
        grid.push(row(["Ada", "200 NORMAL_CLEARING", "0.00", "ok"], &[], Some("ok")));
        let sentence = "7 of the 57 packets of the caller's audio (12.30 %) were lost on the way here.";
        let verdict = "lossy_inbound";
        grid.push(row(["Bartholomew", "200 NORMAL_CLEARING", "12.30", verdict], &[sentence], Some(verdict)));
        grid.push(row(["Cy", "", "–", "no media"], &["as call 1"], None));
        grid
    }

    fn check(look: Look, expected: &Expect) {
        let mut out = String::new();
        grid().write(look, &mut out);
        expected.assert_eq(&out);
        let plain = out.replace(GREEN, "").replace(YELLOW, "").replace(GREY, "").replace(PLAIN, "");
        if let Some(width) = look.width {
            assert!(plain.lines().all(|line| line.chars().count() <= width), "{plain}");
        }
    }

    #[test]
    fn columns_are_aligned_and_remarks_stand_below() {
        check(
            Look::default(),
            &expect![[r"

                name         status               loss %  verdict
                Ada          200 NORMAL_CLEARING    0.00  ok
                Bartholomew  200 NORMAL_CLEARING   12.30  lossy_inbound
                      ↳ 7 of the 57 packets of the caller's audio (12.30 %) were lost on the way here.
                Cy                                     –  no media
                      ↳ as call 1
            "]],
        );
    }

    #[test]
    fn cells_wrap_by_words_where_the_terminal_is_narrow() {
        check(
            Look { width: Some(48), colour: false },
            &expect![[r"

                name         status         loss %  verdict
                Ada          200 NORMAL_      0.00  ok
                             CLEARING
                Bartholomew  200 NORMAL_     12.30  lossy_
                             CLEARING               inbound
                      ↳ 7 of the 57 packets of the caller's
                        audio (12.30 %) were lost on the way
                        here.
                Cy                               –  no media
                      ↳ as call 1
            "]],
        );
    }

    #[test]
    fn rows_stand_by_themselves_where_columns_have_no_room() {
        check(
            Look { width: Some(34), colour: false },
            &expect![[r"

                name Ada: ok
                      status 200 NORMAL_CLEARING,
                      loss 0.00 %
                name Bartholomew: lossy_inbound
                      status 200 NORMAL_CLEARING,
                      loss 12.30 %
                      ↳ 7 of the 57 packets of the
                        caller's audio (12.30 %)
                        were lost on the way here.
                name Cy: no media
                      ↳ as call 1
            "]],
        );
    }

    #[test]
    fn a_verdict_has_its_colour() {
        let mut out = String::new();
        grid().write(Look { width: None, colour: true }, &mut out);
        assert!(out.contains("0.00  \u{1b}[32mok\u{1b}[0m"), "{out}");
        assert!(out.contains("\u{1b}[33mlossy_inbound\u{1b}[0m\n"), "{out}");
        let mut cards = String::new();
        grid().write(Look { width: Some(34), colour: true }, &mut cards);
        assert!(cards.contains("name Cy: \u{1b}[90mno media\u{1b}[0m"), "{cards}");
    }

    #[test]
    fn a_word_that_is_too_long_is_broken() {
        assert_eq!(wrapped("a 123456789 b", 4, "", ""), ["a", "1234", "5678", "9 b"]);
        assert_eq!(wrapped("", 4, "", ""), [""]);
        assert_eq!(wrapped("ab cd", 5, "", ""), ["ab cd"]);
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
    }
}
