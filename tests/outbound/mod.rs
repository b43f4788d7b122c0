//! Requests to URLs of tenants: where they may be sent, where never, and what hostile responses can do.

mod asked;
mod call_info;
mod hostile;
mod names;
mod refused;
