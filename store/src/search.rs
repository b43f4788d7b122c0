//! Texts that substring searches look at, and the patterns that search them.
//!
//! Folded here and not in SQL: `lower()` and `LIKE` fold ASCII alone on SQLite and by locale on PostgreSQL.

/// `texts` as one searchable text.
pub(super) fn searchable<'a>(texts: impl IntoIterator<Item = Option<&'a str>>) -> String {
    // A line end stands in no pattern: no match spans two texts.
    folded(&texts.into_iter().flatten().collect::<Vec<_>>().join("\n"))
}

/// Whether an index takes a text. Its entries have a bound on PostgreSQL, a third of a page, for all their columns
/// together; what a stranger dials has none.
pub(super) fn fits_an_index(text: &str) -> bool {
    text.chars().count() <= INDEXED_CHARS_MAX
}

/// The pattern for `LIKE … ESCAPE '\'` that finds `text` literally, anywhere.
pub(super) fn containing(text: &str) -> String {
    let mut pattern = String::from("%");
    for character in folded(text).chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

/// Lower case, each character by itself: `str::to_lowercase` folds a sigma by what stands around it, so that
/// a part of a text would not always fold to a part of the folded text. Both sigmas are one letter.
pub(super) fn folded(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).map(|c| if c == 'ς' { 'σ' } else { c }).collect()
}

/// As the migration that filled `search_key` has it.
const INDEXED_CHARS_MAX: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_folded_and_literal() {
        let cases = [
            ("+44", "%+44%"),
            ("50%_\\", "%50\\%\\_\\\\%"),
            ("NO_ANSWER", "%no\\_answer%"),
            ("İ", "%i\u{307}%"),
            ("Straẞe", "%straße%"),
            ("ΟΔΟΣ", "%οδοσ%"),
            ("οδος", "%οδοσ%"),
            ("", "%%"),
        ];
        for (text, pattern) in cases {
            assert_eq!(containing(text), pattern, "{text}");
        }
    }

    #[test]
    fn texts_are_kept_apart() {
        assert_eq!(searchable([Some("A"), None, Some("ΟΔΟΣ")]), "a\nοδοσ");
        assert_eq!(searchable([None, None]), "");
    }
}
