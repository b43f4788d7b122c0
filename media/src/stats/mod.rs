//! What one leg's packets add up to: loss, timing, quality (RFC 3550 §6.4.1 and appendix A).
//!
//! Integer arithmetic per packet, divisions only when figures are asked for.

mod decimal;
mod figures;

pub use decimal::Hundredths;
pub use figures::{Figures, Sums};
