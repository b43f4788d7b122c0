//! Messages between nodes: a line of JSON, and bytes after it.

use serde::{Deserialize, Serialize};

/// A line of JSON, and the body.
pub(super) fn encode(head: &impl Serialize, body: &[u8]) -> Vec<u8> {
    // Heads consist of texts and numbers, which JSON can always represent; JSON on one line has no line end.
    let mut bytes = serde_json::to_vec(head).unwrap_or_default();
    bytes.push(b'\n');
    bytes.extend_from_slice(body);
    bytes
}

/// The head of a message and its body; `None` if it cannot be parsed.
pub(super) fn decode<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<(T, Vec<u8>)> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (head, body) = bytes.split_at_checked(end)?;
    Some((serde_json::from_slice(head).ok()?, body.get(1..)?.to_vec()))
}
