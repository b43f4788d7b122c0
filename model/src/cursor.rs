//! Cursors: the start of the next page of a list, by the sort values of the last item before it.
//!
//! A cursor is opaque to clients. It contains a digest of its list, so it is not valid for another list. It grants no
//! access, because every page is read within the scope of its caller.

use serde::{Serialize, Serializer};

/// The start of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// A digest of the list: its path, its filters and sort, and the scope of the caller.
    pub list: [u8; 16],
    /// The number of matching items when the first page was read; 0 before that.
    pub total: u64,
    /// The number of items on the previous pages.
    pub given: u64,
    /// The sort values of the last item on the previous page; empty for the first page.
    pub key: Vec<KeyValue>,
}

/// A sort value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyValue {
    /// A whole number.
    Integer(i64),
    /// No value; such items come last.
    Missing,
    /// A text.
    Text(String),
}

impl Cursor {
    /// Whether it is the cursor of a first page.
    pub fn is_first(&self) -> bool {
        self.key.is_empty()
    }

    /// Returns the cursor after a page of `items`, the last of which has the sort values `key`.
    #[must_use]
    pub fn after(&self, total: u64, items: usize, key: Vec<KeyValue>) -> Self {
        Self { list: self.list, total, given: self.given.saturating_add(items as u64), key }
    }

    /// Returns the text for clients; hexadecimal digits.
    pub fn to_token(&self) -> String {
        let mut bytes = vec![VERSION];
        bytes.extend(self.list);
        bytes.extend(self.total.to_be_bytes());
        bytes.extend(self.given.to_be_bytes());
        for value in &self.key {
            match value {
                KeyValue::Missing => bytes.push(MISSING),
                KeyValue::Integer(number) => {
                    bytes.push(INTEGER);
                    bytes.extend(number.to_be_bytes());
                }
                KeyValue::Text(text) => {
                    bytes.push(TEXT);
                    bytes.extend((text.len() as u64).to_be_bytes());
                    bytes.extend(text.as_bytes());
                }
            }
        }
        bytes.extend(checksum(&bytes).to_be_bytes());
        let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0');
        bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }

    /// Reads the text of a client; an empty text means the first page. `None` if it is not a cursor of this
    /// version.
    ///
    /// *Bounds*: [`Cursor::TOKEN_LEN_MAX`].
    pub fn from_token(token: &str) -> Option<Self> {
        if token.is_empty() {
            return Some(Self::default());
        }
        if token.len() > Self::TOKEN_LEN_MAX || !token.len().is_multiple_of(2) {
            return None;
        }
        let halves: Vec<u8> = token.bytes().map(half).collect::<Option<_>>()?;
        let bytes: Vec<u8> = halves.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low).collect();
        let (bytes, sum) = bytes.split_last_chunk::<8>()?;
        if u64::from_be_bytes(*sum) != checksum(bytes) {
            return None;
        }
        let mut left = Bytes(bytes);
        let [VERSION] = left.take()? else { return None };
        let (list, total, given) = (left.take()?, left.number()?, left.number()?);
        let mut key = Vec::new();
        while !left.0.is_empty() {
            key.push(match left.take()? {
                [MISSING] => KeyValue::Missing,
                [INTEGER] => KeyValue::Integer(i64::from_be_bytes(left.take()?)),
                [TEXT] => KeyValue::Text(left.text()?),
                _ => return None,
            });
        }
        (!key.is_empty()).then_some(Self { list, total, given, key })
    }

    /// The longest text that is read.
    pub const TOKEN_LEN_MAX: usize = 4096;
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_token())
    }
}

/// The unread bytes of a token.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, left) = self.0.split_first_chunk::<N>()?;
        self.0 = left;
        Some(*taken)
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let len = usize::try_from(self.number()?).ok()?;
        let (text, left) = self.0.split_at_checked(len)?;
        self.0 = left;
        String::from_utf8(text.to_vec()).ok()
    }
}

/// FNV-1a (RFC 9923): an altered text is refused.
fn checksum(bytes: &[u8]) -> u64 {
    let fold = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold)
}

/// The value of a hexadecimal digit, lower case: a cursor has one spelling.
fn half(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

const VERSION: u8 = 1;
const MISSING: u8 = 0;
const INTEGER: u8 = 1;
const TEXT: u8 = 2;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_text_is_the_first_page_and_others_are_refused() {
        assert_eq!(Cursor::from_token(""), Some(Cursor::default()));
        let token = Cursor { key: vec![KeyValue::Missing], ..Cursor::default() }.to_token();
        assert!(Cursor::from_token(&token).is_some());
        let upper = token.replace('0', "A");
        let changed = token.replacen('0', "1", 1);
        for wrong in [&token[1..], &token[2..], &upper, &changed, "x", "00", "01", &token[..token.len() - 2]]
        {
            assert_eq!(Cursor::from_token(wrong), None, "{wrong}");
        }
        assert_eq!(Cursor::from_token(&"0".repeat(Cursor::TOKEN_LEN_MAX + 2)), None);
    }

    proptest! {
        #[test]
        fn fuzz_tokens_are_read_back(
            list in any::<[u8; 16]>(),
            total in any::<u64>(),
            texts in prop::collection::vec(".{0,20}", 0..3),
            number in any::<i64>(),
        ) {
            let mut key: Vec<KeyValue> = texts.into_iter().map(KeyValue::Text).collect();
            key.extend([KeyValue::Integer(number), KeyValue::Missing]);
            let cursor = Cursor { list, total, given: total, key };
            prop_assert_eq!(Cursor::from_token(&cursor.to_token()), Some(cursor));
        }

        #[test]
        fn fuzz_no_text_is_read_wrongly(mut token in "(01)?([0-9a-f]{2}){0,100}", sums in any::<bool>()) {
            let halves: Vec<u8> = token.bytes().filter_map(half).collect();
            let bytes: Vec<u8> = halves.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
            if sums {
                token.push_str(&format!("{:016x}", checksum(&bytes)));
            }
            if let Some(cursor) = Cursor::from_token(&token).filter(|_| !token.is_empty()) {
                prop_assert_eq!(cursor.to_token(), token);
            }
        }
    }
}
