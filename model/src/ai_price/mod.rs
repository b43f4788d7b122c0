//! The costs and sell prices of AI models.

mod port;
mod price;
pub mod rules;

pub use port::{AiPriceFilter, AiPrices};
pub use price::{AiPrice, AiPriceKind, ModelPattern, charge};
