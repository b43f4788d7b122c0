//! Packs JSON of one kind: an LZ4 block with a dictionary of typical text.
//!
//! ```text
//! dictionary u8 | length u32 LE | LZ4 block
//! ```
//!
//! The media quality of a call is 12 KB of JSON, most of which is the same for every call: names of rules and
//! figures, thresholds, sentences. Packed, it is a tenth of that size, and packing takes less time than writing the
//! rest would.

use lz4_flex::block::{compress_into_with_dict, decompress_into_with_dict, get_maximum_output_size};

/// Packs `text`; `None` when it is longer than readers accept.
pub(super) fn pack(text: &str) -> Option<Vec<u8>> {
    let len = u32::try_from(text.len()).ok().filter(|len| *len <= LEN_MAX)?;
    let mut packed = vec![0; HEAD_LEN + get_maximum_output_size(text.len())];
    let (head, block) = packed.split_at_mut_checked(HEAD_LEN)?;
    let [dictionary, size @ ..] = head else { return None };
    *dictionary = QUALITY_1;
    size.copy_from_slice(&len.to_le_bytes());
    let block_len = compress_into_with_dict(text.as_bytes(), block, DICTIONARY_1).ok()?;
    packed.truncate(HEAD_LEN + block_len);
    packed.shrink_to_fit();
    Some(packed)
}

/// Returns the text that was packed; `None` when the bytes are damaged or of a newer version.
pub(super) fn unpack(packed: &[u8]) -> Option<String> {
    let (head, block) = packed.split_at_checked(HEAD_LEN)?;
    let [QUALITY_1, size @ ..] = head else { return None };
    let len = u32::from_le_bytes(size.try_into().ok()?);
    if len > LEN_MAX {
        return None;
    }
    let len = usize::try_from(len).ok()?;
    let mut text = vec![0; len];
    let written = decompress_into_with_dict(block, &mut text, DICTIONARY_1).ok()?;
    (written == len).then(|| String::from_utf8(text).ok()).flatten()
}

/// Identifies [`DICTIONARY_1`]. Rows refer to it: it never changes, and another dictionary gets another number.
const QUALITY_1: u8 = 1;
/// Typical quality records: of a call with audio and of one without.
const DICTIONARY_1: &[u8] = include_bytes!("quality_dictionary.txt");
/// Bytes before the block.
const HEAD_LEN: usize = 5;
/// Far more than two timelines of the longest call; a longer text is damaged and must not be allocated.
const LEN_MAX: u32 = 16 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// After any change of the dictionary, stored rows could not be unpacked.
    #[test]
    fn the_dictionary_is_the_one_of_stored_rows() {
        let sum =
            DICTIONARY_1.iter().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
        assert_eq!((DICTIONARY_1.len(), sum), (DICTIONARY_LEN, DICTIONARY_SUM));
    }

    #[test]
    fn a_text_of_the_kind_has_a_tenth_of_its_size() {
        let text = std::str::from_utf8(DICTIONARY_1).unwrap();
        // The same call with other figures, and its other leg.
        let text =
            text.replace("390", "412").replace("8003", "9127").replace("2026-11-23T02", "2031-07-09T21");
        let packed = pack(&text).unwrap();
        assert!(packed.len() * 10 < text.len(), "{} of {}", packed.len(), text.len());
        assert_eq!(unpack(&packed).unwrap(), text);
    }

    #[test]
    fn damage_is_no_text() {
        let packed = pack("{\"state\":\"final\"}").unwrap();
        for len in 0..packed.len() {
            assert_eq!(unpack(&packed[..len]), None, "{len}");
        }
        let mut other = packed.clone();
        other[0] = 2;
        assert_eq!(unpack(&other), None, "a dictionary of a newer version");
        let mut long = packed;
        long[1..5].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(unpack(&long), None);
    }

    proptest! {
        #[test]
        fn fuzz_what_is_packed_comes_back(text in "[ -~é]{0,2000}") {
            prop_assert_eq!(unpack(&pack(&text).unwrap()).unwrap(), text);
        }

        #[test]
        fn fuzz_any_bytes_are_survived(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(first) = bytes.first_mut() {
                *first = QUALITY_1;
            }
            if let Some(size) = bytes.get_mut(3..5) {
                size.fill(0);
            }
            let _ = unpack(&bytes);
        }
    }

    const DICTIONARY_LEN: usize = 13_707;
    const DICTIONARY_SUM: u64 = 17208301772678561557;
}
