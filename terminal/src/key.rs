//! Keys, as far as the screens know them.

/// A pressed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The tabulator with shift.
    BackTab,
    /// Deletes the last character of the filter.
    Backspace,
    /// A character.
    Char(char),
    /// The arrow down.
    Down,
    /// The last row.
    End,
    /// Opens, or ends the filter.
    Enter,
    /// Goes back, or clears the filter.
    Escape,
    /// The first row.
    Home,
    /// Ctrl-C.
    Interrupt,
    /// The arrow to the left.
    Left,
    /// A screen down.
    PageDown,
    /// A screen up.
    PageUp,
    /// The arrow to the right.
    Right,
    /// The tabulator.
    Tab,
    /// The arrow up.
    Up,
}
