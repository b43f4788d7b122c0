//! The product's words and its ports: what a call record, an event or a permission is, and which stored
//! things the HTTP face may ask for. No I/O, no SIP, no RTP.

pub mod access;
pub mod ai_price;
pub mod call;
pub mod call_info;
pub mod call_log;
pub mod cdr;
pub mod conversation;
pub mod directory;
pub mod event;
pub mod extension;
pub mod idempotency;
pub mod ids;
pub mod json;
pub mod key;
pub mod listing;
pub mod live_call;
pub mod metrics;
pub mod money;
pub mod note;
pub mod number;
pub mod organisation;
pub mod page;
pub mod ports;
pub mod problem;
pub mod public_address;
pub mod quality;
pub mod rate_book;
pub mod rating;
pub mod rules;
pub mod team;
pub mod time;
pub mod totals;
pub mod trunk;
pub mod trunk_address;
pub mod user;
