//! What one leg's packets add up to: loss, timing, quality (RFC 3550 §6.4.1 and appendix A).
//!
//! [`Stream`] folds the packets of one SSRC, or of one leg whose SSRCs the session tells apart. Integer
//! arithmetic per packet, divisions only when figures are asked for, and no allocation at all.

mod decimal;
mod figures;
mod loss;
mod modal;
mod playout;
pub mod stream;
mod timing;

pub use decimal::Hundredths;
pub use figures::{Figures, Sums};
pub use stream::{Arrival, Stream, StreamConfig};
