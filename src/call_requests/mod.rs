//! Calls that programs request: stored, then placed by the switch; their callbacks.

mod callbacks;
mod service;

pub use callbacks::CallbackSender;
pub use service::CallRequestService;
