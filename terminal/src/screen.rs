//! The content of a screen: texts and their tones, without positions.

/// The meaning of a text, which a terminal shows as a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// A fault.
    Bad,
    /// Less important.
    Dim,
    /// In order.
    Good,
    /// No special meaning.
    #[default]
    Plain,
    /// A title.
    Strong,
    /// Needs attention.
    Warn,
}

/// A complete screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screen {
    /// The program, and the server or file that it shows.
    pub title: String,
    /// The names of the views; empty if there is only one view.
    pub tabs: Vec<String>,
    /// The shown view, as an index into the names.
    pub tab: usize,
    /// The state of the data: when it was read, or why it could not be read.
    pub status: (Tone, String),
    /// The content.
    pub body: Body,
    /// The keys, or the filter that is being typed.
    pub footer: String,
}

/// The content of a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A table.
    List(ListBody),
    /// Lines, and how many of them are scrolled off above the screen.
    Page(Vec<Line>, usize),
}

/// A table with a selected row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListBody {
    /// Its columns.
    pub columns: &'static [Column],
    /// The cells of each row, in the order of the columns, and the tone of the first one.
    pub rows: Vec<(Tone, Vec<String>)>,
    /// The selected row.
    pub selected: usize,
    /// The text shown when the table has no rows.
    pub empty: String,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its title.
    pub title: &'static str,
    /// Its width.
    pub width: Width,
    /// Whether it contains numbers, which are right-aligned.
    pub is_number: bool,
}

/// The width of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// That many cells.
    Cells(u16),
    /// A share of the width that the other columns leave.
    Share(u16),
}

impl Column {
    /// A column of texts.
    pub const fn text(title: &'static str, width: Width) -> Self {
        Column { title, width, is_number: false }
    }

    /// A column of numbers, this many cells wide.
    pub const fn number(title: &'static str, cells: u16) -> Self {
        Column { title, width: Width::Cells(cells), is_number: true }
    }
}

/// A line of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Its texts, one after the other.
    pub parts: Vec<(Tone, String)>,
}

impl Line {
    /// A line of one text.
    pub fn of(tone: Tone, text: impl Into<String>) -> Self {
        Line { parts: vec![(tone, text.into())] }
    }

    /// Appends another text to the line.
    #[must_use]
    pub fn and(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.parts.push((tone, text.into()));
        self
    }

    /// Its complete text.
    pub fn text(&self) -> String {
        self.parts.iter().map(|(_, text)| text.as_str()).collect()
    }
}
