//! What a leg costs in memory: tens of thousands are live, and captures hold one for every stream.

use sidetone_media::session::{Second, Session};
use sidetone_media::stats::Stream;

#[test]
fn a_leg_stays_small() {
    // What a packet touches lies here, so that it is few cache lines; all else is boxed.
    assert!(size_of::<Stream>() <= 208, "{} bytes", size_of::<Stream>());
    assert!(size_of::<Session>() <= 320, "{} bytes", size_of::<Session>());
    // A row of the timeline, every second.
    assert_eq!(size_of::<Second>(), 24);
}
