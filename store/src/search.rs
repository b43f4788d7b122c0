//! Texts for substring searches, and their patterns.
//!
//! Case is folded here and not in SQL: `lower()` and `LIKE` fold only ASCII on SQLite, and by locale on
//! PostgreSQL.

/// `texts` as one searchable text.
pub(super) fn searchable<'a>(texts: impl IntoIterator<Item = Option<&'a str>>) -> String {
    // A pattern contains no line end, so that no match spans two texts.
    folded(&texts.into_iter().flatten().collect::<Vec<_>>().join("\n"))
}

/// Whether a text fits into an index. PostgreSQL limits an index entry to a third of a page for all its columns
/// together; the length of a dialled number is unlimited.
pub(super) fn fits_an_index(text: &str) -> bool {
    text.chars().count() <= INDEXED_CHARS_MAX
}

/// The pattern for `LIKE … ESCAPE '\'` that finds `text` literally at any position.
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

/// Lower case, each character separately: `str::to_lowercase` folds a sigma depending on its neighbours, so that the
/// folded part of a text would not always be a part of the folded text. Both sigmas are folded to one letter.
pub(super) fn folded(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).map(|c| if c == 'ς' { 'σ' } else { c }).collect()
}

/// The same as in the migration that filled `search_key`.
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
