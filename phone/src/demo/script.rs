//! The script: every call of the demo, with its expected verdict.

use std::time::Duration;

use sidetone_model::quality::MediaVerdict;

/// One call of the demo.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// Its name in the table.
    pub name: &'static str,
    /// A description of the scene.
    pub about: &'static str,
    /// The expected verdict.
    pub expected: MediaVerdict,
    /// The caller's audio, as a scenario; `None` sends nothing.
    pub caller: Option<&'static str>,
    /// The behaviour of the called phone.
    pub callee: Callee,
    /// Whether the caller holds the call for a while.
    pub holds: bool,
    /// Whether the caller's SDP contains an address at which it is unreachable.
    pub misplaced: bool,
}

/// The behaviour of a called phone.
#[derive(Clone, Copy, Debug)]
pub enum Callee {
    /// Answers and sends nothing.
    Listens,
    /// Refuses with this status.
    Refuses(u16),
    /// Rings until the caller cancels.
    Rings,
    /// Answers and sends audio.
    Talks,
}

impl Scene {
    /// The calling extension; `place` is the scene's index in [`SCENES`].
    pub fn from(place: usize) -> String {
        (FIRST_CALLER + place).to_string()
    }

    /// The called extension.
    pub fn to(place: usize) -> String {
        (FIRST_CALLEE + place).to_string()
    }
}

const fn talk(
    name: &'static str,
    expected: MediaVerdict,
    caller: &'static str,
    about: &'static str,
) -> Scene {
    Scene {
        name,
        about,
        expected,
        caller: Some(caller),
        callee: Callee::Talks,
        holds: false,
        misplaced: false,
    }
}

const fn clean(name: &'static str, expected: MediaVerdict, about: &'static str) -> Scene {
    Scene { expected, ..talk(name, MediaVerdict::Ok, "clean duration=1m", about) }
}

/// All calls of the demo; they are placed at the same time.
pub const SCENES: [Scene; 13] = [
    clean("clean", MediaVerdict::Ok, "undisturbed audio both ways"),
    Scene { holds: true, ..clean("on hold", MediaVerdict::Ok, "the caller holds the call for two seconds") },
    talk(
        "pauses",
        MediaVerdict::Ok,
        "clean dtx=1s/1s:cn duration=1m",
        "the caller's phone sends nothing in silence",
    ),
    talk(
        "lossy",
        MediaVerdict::LossyInbound,
        "clean loss=8 duration=1m",
        "some 8 % of the caller's packets are lost",
    ),
    talk(
        "jittery",
        MediaVerdict::JitteryInbound,
        "clean jitter=normal:120:60 duration=1m",
        "a queue delays the caller's packets by 120±60 ms",
    ),
    talk("unpaced", MediaVerdict::UnpacedSender, "unpaced", "the caller sends five packets at a time"),
    talk("wrong ptime", MediaVerdict::PtimeMismatch, "wrong-ptime", "30 ms packets where SDP says 20"),
    talk(
        "dies midway",
        MediaVerdict::DegradedAudio,
        "clean stop=3s duration=1m",
        "the caller's audio stops after three seconds",
    ),
    Scene {
        caller: None,
        ..clean("caller mute", MediaVerdict::NoInboundMedia, "nothing arrives from the caller")
    },
    Scene {
        callee: Callee::Listens,
        ..clean("callee mute", MediaVerdict::NoOutboundMedia, "nothing is sent to the caller")
    },
    Scene {
        caller: None,
        misplaced: true,
        ..clean(
            "bad address",
            MediaVerdict::WrongAdvertisedAddress,
            "the caller's SDP names an address that leads nowhere",
        )
    },
    Scene {
        callee: Callee::Rings,
        ..clean("unanswered", MediaVerdict::Unanswered, "it rings, and the caller gives up")
    },
    Scene {
        callee: Callee::Refuses(486),
        ..clean("busy", MediaVerdict::Unanswered, "the called phone is busy")
    },
];

/// How long the answered calls last.
pub(super) const TALK_TIME: Duration = Duration::from_secs(9);
/// How long an answering phone rings.
pub(super) const RING_TIME: Duration = Duration::from_millis(500);
/// How long a caller lets an unanswered phone ring.
pub(super) const PATIENCE: Duration = Duration::from_secs(4);
/// When a call is held, and for how long.
pub(super) const HOLD: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(2));
/// The shortest total time, for the progress bar.
pub(super) const PLAY_TIME: Duration = Duration::from_millis(9_700);

const FIRST_CALLER: usize = 101;
const FIRST_CALLEE: usize = 201;
