//! The bytes of a block in the database: an LZ4 block each for its keys and its texts.
//!
//! ```text
//! version u8 | length u32 | LZ4 block, of either
//! keys:  records u32 | start i64 each | call UUID each
//! texts: records u32 | for each facet: values u16, length u16 and text of each, code u16 of each record
//!        | for callers and for numbers dialled: bytes u32, length of each record (LEB128), texts
//! ```
//!
//! Integers are little-endian.

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};
use uuid::Uuid;

use super::block::{FACETS, Facet, Keys, Numbers, Texts};

/// The packed keys.
pub(super) fn pack_keys(keys: &Keys) -> Vec<u8> {
    let mut raw = Vec::with_capacity(4 + keys.calls.len() * 24);
    put_len(&mut raw, keys.calls.len());
    keys.started_us.iter().for_each(|started_us| raw.extend(started_us.to_le_bytes()));
    keys.calls.iter().for_each(|call| raw.extend(call.as_bytes()));
    pack(&raw)
}

/// The keys that were packed; `None` when the bytes are damaged or of a newer version.
pub(super) fn unpack_keys(packed: &[u8]) -> Option<Keys> {
    let raw = unpack(packed)?;
    let mut rest = raw.as_slice();
    let records = take_len(&mut rest)?;
    let started = take(&mut rest, records.checked_mul(8)?)?;
    let calls = take(&mut rest, records.checked_mul(16)?)?;
    let started_us = started.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
    let calls = calls.as_chunks().0.iter().map(|bytes| Uuid::from_bytes(*bytes)).collect();
    rest.is_empty().then_some(Keys { started_us, calls })
}

/// The packed texts.
pub(super) fn pack_texts(texts: &Texts) -> Vec<u8> {
    let mut raw = Vec::with_capacity(texts.size_bytes());
    put_len(&mut raw, texts.callers.ends.len());
    for facet in &texts.facets {
        put_short(&mut raw, facet.values.len());
        for value in &facet.values {
            // Names and ids: far shorter than this.
            let value = value.as_bytes().get(..usize::from(u16::MAX)).unwrap_or(value.as_bytes());
            put_short(&mut raw, value.len());
            raw.extend_from_slice(value);
        }
        facet.codes.iter().for_each(|code| raw.extend(code.to_le_bytes()));
    }
    for numbers in [&texts.callers, &texts.dialled] {
        put_len(&mut raw, numbers.bytes.len());
        let mut start = 0;
        for end in &numbers.ends {
            put_varint(&mut raw, end.saturating_sub(start));
            start = *end;
        }
        raw.extend_from_slice(&numbers.bytes);
    }
    pack(&raw)
}

/// The texts that were packed; `None` when the bytes are damaged or of a newer version.
pub(super) fn unpack_texts(packed: &[u8]) -> Option<Texts> {
    let raw = unpack(packed)?;
    let mut rest = raw.as_slice();
    let records = take_len(&mut rest)?;
    let mut facets: [Facet; FACETS] = Default::default();
    for facet in &mut facets {
        for _ in 0..take_short(&mut rest)? {
            let length = take_short(&mut rest)?;
            facet.values.push(String::from_utf8(take(&mut rest, length)?.to_vec()).ok()?);
        }
        let codes = take(&mut rest, records.checked_mul(2)?)?;
        facet.codes = codes.as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes)).collect();
        if facet.codes.iter().any(|code| usize::from(*code) > facet.values.len()) {
            return None;
        }
    }
    let [callers, dialled] = [take_numbers(&mut rest, records)?, take_numbers(&mut rest, records)?];
    rest.is_empty().then_some(Texts { facets, callers, dialled })
}

fn take_numbers(rest: &mut &[u8], records: usize) -> Option<Numbers> {
    let len = take_len(rest)?;
    let (mut ends, mut end) = (Vec::with_capacity(records), 0_u32);
    for _ in 0..records {
        end = end.checked_add(take_varint(rest)?)?;
        ends.push(end);
    }
    let bytes = take(rest, len)?.to_vec();
    (usize::try_from(end).ok()? == len).then_some(Numbers { ends, bytes })
}

fn pack(raw: &[u8]) -> Vec<u8> {
    let mut packed = vec![0; HEAD_LEN + get_maximum_output_size(raw.len())];
    let written =
        packed.get_mut(HEAD_LEN..).and_then(|block| compress_into(raw, block).ok()).unwrap_or_default();
    packed.truncate(HEAD_LEN + written);
    if let Some((version, length)) = packed.get_mut(..HEAD_LEN).and_then(<[u8]>::split_first_mut) {
        *version = VERSION;
        length.copy_from_slice(&u32::try_from(raw.len()).unwrap_or(u32::MAX).to_le_bytes());
    }
    packed.shrink_to_fit();
    packed
}

fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let (head, block) = packed.split_at_checked(HEAD_LEN)?;
    let [VERSION, length @ ..] = head else { return None };
    let length = u32::from_le_bytes(length.try_into().ok()?);
    if length > RAW_LEN_MAX {
        return None;
    }
    let length = usize::try_from(length).ok()?;
    let mut raw = vec![0; length];
    (decompress_into(block, &mut raw).ok()? == length).then_some(raw)
}

fn put_len(raw: &mut Vec<u8>, len: usize) {
    raw.extend(u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_short(raw: &mut Vec<u8>, len: usize) {
    raw.extend(u16::try_from(len).unwrap_or(u16::MAX).to_le_bytes());
}

fn put_varint(raw: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        raw.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    raw.push(value.to_le_bytes()[0]);
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(len)?;
    *rest = left;
    Some(taken)
}

fn take_len(rest: &mut &[u8]) -> Option<usize> {
    let records = usize::try_from(u32::from_le_bytes(take(rest, 4)?.try_into().ok()?)).ok()?;
    // Every record, and every byte of a text, takes at least one of the remaining bytes.
    (records <= rest.len()).then_some(records)
}

fn take_short(rest: &mut &[u8]) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(take(rest, 2)?.try_into().ok()?)))
}

fn take_varint(rest: &mut &[u8]) -> Option<u32> {
    let mut value = 0_u32;
    for shift in [0, 7, 14, 21, 28] {
        let byte = *take(rest, 1)?.first()?;
        value |= u32::from(byte & 0x7F).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

const VERSION: u8 = 1;
/// Bytes before the LZ4 block.
const HEAD_LEN: usize = 5;
/// Far more than any block has; a longer one is damaged and must not be allocated.
const RAW_LEN_MAX: u32 = 256 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::block::{Block, Entry};
    use super::*;

    proptest! {
        #[test]
        fn fuzz_a_block_that_is_packed_comes_back(
            records in proptest::collection::vec(
                (any::<u128>(), any::<i64>(), [".{0,9}", ".{0,300}", ".{0,3}"], proptest::option::of("[a-c]")), 0..30),
        ) {
            let entries = records.into_iter().map(|(call, started_us, numbers, value)| Entry {
                call: Uuid::from_u128(call),
                started_us,
                facets: [value.clone(), None, value],
                numbers,
            });
            let block = Block::of(&entries.collect::<Vec<_>>());
            prop_assert_eq!(unpack_keys(&pack_keys(&block.keys)), Some(block.keys));
            prop_assert_eq!(unpack_texts(&pack_texts(&block.texts)), Some(block.texts));
        }

        #[test]
        fn fuzz_any_bytes_are_survived(raw in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (unpack_keys(&raw), unpack_texts(&raw));
            let _ = (unpack_keys(&pack(&raw)), unpack_texts(&pack(&raw)));
        }
    }

    #[test]
    fn damage_is_no_block() {
        let entry = Entry {
            call: Uuid::from_u128(7),
            started_us: 7,
            facets: Default::default(),
            numbers: Default::default(),
        };
        let packed = pack_texts(&Block::of(&[entry]).texts);
        for len in 0..packed.len() {
            assert_eq!(unpack_texts(&packed[..len]), None, "{len}");
        }
        let mut newer = packed.clone();
        newer[0] = 2;
        assert_eq!(unpack_texts(&newer), None);
        let mut long = packed;
        long[1..5].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(unpack_texts(&long), None);
    }
}
