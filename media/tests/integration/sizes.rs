//! What a leg costs in memory: tens of thousands are live, and captures hold one for every stream.

use sidetone_media::session::{Second, Session};
use sidetone_media::stats::Stream;

#[test]
fn a_leg_stays_small() {
    // What most packets touch lies in the three cache lines of a session, what a run of them folds into in a few more.
    assert!(size_of::<Session>() <= 192, "{} bytes", size_of::<Session>());
    assert!(size_of::<Stream>() <= 208, "{} bytes", size_of::<Stream>());
    // A row of the timeline, every second.
    assert_eq!(size_of::<Second>(), 24);
}
