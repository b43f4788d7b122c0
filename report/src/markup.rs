//! HTML under construction: constants are added unchanged, everything else is escaped.

use std::fmt::{self, Display, Write};

/// A page or a part of one.
#[derive(Debug, Default)]
pub struct Html(String);

impl Html {
    /// Adds constant markup.
    pub fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds text, also within an attribute in double quotes.
    pub fn text(&mut self, text: impl Display) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = write!(Escaper(&mut self.0), "{text}");
        self
    }

    /// Adds an element that contains only text; `open` and `close` are its tags.
    pub fn element(&mut self, open: &'static str, text: impl Display, close: &'static str) -> &mut Self {
        self.raw(open).text(text).raw(close)
    }

    /// Adds markup made by another [`Html`].
    pub fn made(&mut self, markup: &str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Returns the markup.
    pub fn into_string(self) -> String {
        self.0
    }
}

struct Escaper<'a>(&'a mut String);

impl Write for Escaper<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // HTML forbids control characters, and characters that change the text direction could make a
                // number look different.
                c if c.is_control() || BIDI.contains(&c) => self.0.push('\u{fffd}'),
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

/// Characters that change the direction of text.
const BIDI: [char; 9] = [
    '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}',
    '\u{2069}',
];

/// Text of any length, truncated for display.
pub fn shown(text: &str) -> String {
    let mut out: String = text.chars().take(SHOWN_MAX).collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        out.push('…');
    }
    out
}

/// A Call-ID, a name or a file may have any length.
const SHOWN_MAX: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        let mut html = Html::default();
        html.element("<p title=\"", "\"><script>alert('&')</script>\u{0}\u{202e}", "\">");
        assert_eq!(
            html.into_string(),
            "<p title=\"&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;\u{fffd}\u{fffd}\">"
        );
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(shown(&"a".repeat(500)).chars().count(), SHOWN_MAX + 1);
        assert_eq!(shown("short"), "short");
    }
}
