//! Maps the responses of a call's targets to the result for its caller. Pure.

/// Returns the final response that informs the caller better (RFC 3261 §16.7 step 6): a 6xx, then the lowest
/// class; within a class, a status about the callee before a status about a device.
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

/// Returns the status that the caller gets for a fork's final response. A redirection, a challenge or an extension of
/// the request concerns only the phone and us (RFC 3261 §16.7 step 7).
pub(super) fn refusal(status: u16) -> u16 {
    match status {
        300..=399 | 401 | 407 | 420..=422 | 481 | 487 => 480,
        503 => 500,
        other => other,
    }
}

/// Returns the status that a party gets for its offer inside the call when the other party refused ours with `status`.
/// Statuses about our request need headers that concern only us: WWW-Authenticate, Allow, Unsupported, Min-SE.
pub(super) fn offer_refusal(status: u16) -> u16 {
    match status {
        300..=399 | 401 | 405 | 407 | 415 | 420..=422 => 488,
        503 => 500,
        other => other,
    }
}

/// Whether another trunk may succeed after this failure: it may if the failure concerns the trunk, but not if
/// it concerns the number or its owner.
pub(super) fn another_may_mend(status: u16) -> bool {
    matches!(status, 408 | 500..=599)
}
