//! Calls that programs request: stored, then placed by the switch; and their callbacks.

mod callbacks;
mod counters;
mod service;

pub use callbacks::CallbackSender;
pub use counters::CallbackCounters;
pub use service::CallRequestService;
