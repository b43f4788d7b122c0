//! Access rights: every operation of the API document against every kind of caller (reliability H1, H3).
//!
//! The operations come from the document and the expectations from the table in `policy.rs`: an operation without a
//! row fails, and so does a row without an operation. Two tenants hold the same resources under recognisable names;
//! no response to one contains anything of the other, and no response to a team contains anything of the other team.

mod client;
mod fixture;
mod policy;
mod rights;
mod schemathesis;
mod unavailable;
