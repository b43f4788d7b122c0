//! Makes text from outside this program safe for a terminal.

/// Returns the beginning of a text without characters that a terminal interprets: control characters (C0, C1, DEL),
/// line separators and marks that change the text direction are each replaced by a dot. At most 300 characters.
pub fn clean(text: &str) -> String {
    text.chars().take(TEXT_LEN_MAX).map(|letter| if is_harmless(letter) { letter } else { '·' }).collect()
}

fn is_harmless(letter: char) -> bool {
    let is_mark = matches!(letter,
        // Soft hyphens, zero-width and direction marks, embeddings, isolates, separators, the byte order mark, and tags.
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !letter.is_control() && !is_mark
}

/// Maximum characters of one text.
const TEXT_LEN_MAX: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_interprets_is_left() {
        let cases = [
            ("Ada", "Ada"),
            ("", ""),
            ("\x1b[2J\x1b]0;owned\x07", "·[2J·]0;owned·"),
            ("a\r\nb\tc", "a··b·c"),
            ("\u{9b}31m\u{7f}", "·31m·"),
            ("\u{202e}evil\u{2066}", "·evil·"),
            ("Zoë 東京", "Zoë 東京"),
            ("\u{61c}a\u{ad}\u{e0041}", "·a··"),
        ];
        for (text, expected) in cases {
            assert_eq!(clean(text), expected, "{text:?}");
        }
        assert_eq!(clean(&"x".repeat(10_000)).len(), TEXT_LEN_MAX);
    }
}
