use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
pub(in crate::rooms) fn any_instant() -> Instant {
    Instant::now()
}
