//! What the responses of a call mean for its caller; pure.

/// Of two final responses the one a caller learns more from (RFC 3261 §16.7 step 6): 6xx, then the lowest
/// class, and inside a class what says something about the callee before what says something about a device.
pub(super) fn better(a: u16, b: u16) -> u16 {
    let rank = |status: u16| match status {
        600.. => (0, 0),
        486 => (4, 0),
        408 => (4, 3),
        401 | 407 | 415 | 420 | 484 => (4, 1),
        _ => (status / 100, 2),
    };
    if rank(b) < rank(a) { b } else { a }
}

/// What the caller is told for a fork's final response: a redirection or a challenge between us and a phone is
/// not the caller's business (RFC 3261 §16.7 step 7).
pub(super) fn refusal(status: u16) -> u16 {
    match status {
        300..=399 | 401 | 407 | 481 | 487 => 480,
        503 => 500,
        other => other,
    }
}

/// Whether a trunk's failure may be its own, so that another trunk is worth trying: what says something about the
/// number or its owner is the same everywhere.
pub(super) fn another_may_mend(status: u16) -> bool {
    matches!(status, 408 | 500..=599)
}
