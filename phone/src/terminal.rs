//! Text for a terminal: colours, and lines of limited width.

/// The text in the style of an ANSI `code`, if colours are enabled.
pub(super) fn painted(colour: bool, code: &str, text: &str) -> String {
    if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Lines of at most `width` characters, broken at spaces if possible.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(WIDTH_MIN);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + word.len() > width {
            lines.push(String::new());
            used = 0;
        }
        while let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            let part: Vec<char> = word.drain(..word.len().min(width - used.min(width))).collect();
            used += part.len();
            line.extend(part);
            if word.is_empty() {
                break;
            }
            lines.push(String::new());
            used = 0;
        }
    }
    lines
}

/// The smallest width of a value.
const WIDTH_MIN: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_broken_at_spaces() {
        assert_eq!(wrapped("one two three four five six", 20), ["one two three four", "five six"]);
        assert_eq!(wrapped(&"x".repeat(45), 20), ["x".repeat(20), "x".repeat(20), "x".repeat(5)]);
        assert_eq!(wrapped("", 20), [""]);
    }
}
