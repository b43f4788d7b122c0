//! What AI models cost and are sold for.

mod port;
mod price;
pub mod rules;

pub use port::{AiPriceFilter, AiPrices};
pub use price::{AiPrice, AiPriceKind, ModelPattern, charge};
