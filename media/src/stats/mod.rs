//! Statistics of one leg's packets: loss, timing, quality (RFC 3550 §6.4.1 and appendix A).
//!
//! [`Stream`] folds the packets of one SSRC, or of one leg whose session separates the SSRCs. It uses integer
//! arithmetic per packet, divides only when figures are requested, and never allocates.

mod audio;
mod bursts;
mod cold_timing;
mod decimal;
mod emodel;
mod figures;
mod lateness;
mod loss;
mod modal;
mod players;
mod playout;
mod skew;
mod steps;
pub mod stream;
mod stream_config;
mod timeline;
mod timing;
mod worst;

pub(crate) use audio::AudioFold;
pub use audio::{AudioEvidence, AudioSample};
pub use bursts::Bursts;
pub use decimal::Hundredths;
pub use emodel::e_model;
pub use figures::{EModel, Figures, PhoneRating, Sums, Worst};
pub use lateness::{Lateness, Percentiles};
pub(crate) use steps::{Next, STEPS_MAX, Steps};
pub use stream::{Arrival, Stream};
pub use stream_config::StreamConfig;
pub use timeline::{Second, Timeline};
