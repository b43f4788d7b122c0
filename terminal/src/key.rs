//! The keys that the screens handle.

/// A pressed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Shift and Tab.
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
    /// One screen down.
    PageDown,
    /// One screen up.
    PageUp,
    /// The arrow to the right.
    Right,
    /// Tab.
    Tab,
    /// The arrow up.
    Up,
}
