//! The memory of a leg: tens of thousands are live, and captures have one for every stream.

use sidetone_media::session::{Second, Session};
use sidetone_media::stats::Stream;

#[test]
fn a_leg_stays_small() {
    // Most packets touch only the three cache lines of a session; folding a run touches a few more.
    assert!(size_of::<Session>() <= 192, "{} bytes", size_of::<Session>());
    assert!(size_of::<Stream>() <= 208, "{} bytes", size_of::<Stream>());
    // A row of the timeline, one per second.
    assert_eq!(size_of::<Second>(), 24);
}
