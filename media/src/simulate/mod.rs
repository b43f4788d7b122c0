//! Simulates impaired RTP: the packets of a talker and the effects of a network, reproducible by seed.
//!
//! A [`Scenario`] describes one party of a call; a [`Simulation`] yields its packets in order of arrival.
//! Tests, the demo's phones, benches and `sidetone simulate` use it. Sans-I/O: a driver that sends in real
//! time waits until [`Simulation::next_due`] and sends the packet of [`Simulation::next`].
//!
//! ```
//! use sidetone_media::simulate::{Scenario, Simulation};
//!
//! let scenario: Scenario = "clean duration=2s loss=5 jitter=0..40 seed=7".parse()?;
//! let mut datagram = Vec::new();
//! for packet in Simulation::new(&scenario) {
//!     packet.write(&mut datagram);
//!     assert_eq!(datagram.len(), 172);
//! }
//! # Ok::<(), sidetone_media::simulate::ScenarioError>(())
//! ```

mod catalogue;
mod packet;
mod path;
mod play;
mod random;
mod scenario;
mod stream;
mod talker;
mod text;
mod tone;

pub use catalogue::{CATALOGUE, Entry};
pub use packet::{Content, Packet};
pub use play::{description, play};
pub use random::Random;
pub use scenario::{
    Call, Codec, Delay, Digits, Holes, Loss, Pace, Path, Scenario, Silence, SilenceMode, Span, Stalls, Talker,
};
pub use stream::Simulation;
pub use text::{KEYS, ScenarioError};
