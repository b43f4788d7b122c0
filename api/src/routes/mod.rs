//! The handlers, one file per resource: each extracts, authorises, makes one port call, replies.

pub(crate) mod cdrs;
pub(crate) mod health;
