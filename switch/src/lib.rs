//! The switch: back-to-back calls between phones and trunks, with media anchored on our ports.
//!
//! [`call`] decides about one call and knows no SIP message; [`machine`] connects calls with dialogs,
//! the registrar and the directory, [`conference`] are the conferences, [`routing`] is the dial plan, [`rating`] the prices.
//! No I/O and no clock: the driver of the engine feeds the machine and carries out what it says.

pub mod admitting;
mod authentication;
mod billing;
pub mod call;
mod call_control;
mod call_limits;
mod call_queries;
mod call_table;
mod call_to_sip;
pub mod carriers;
mod certificate;
pub mod conference;
mod conference_adapter;
mod conference_commands;
mod conference_leg;
mod converted_keys;
pub mod counters;
pub mod denied;
mod dialling;
mod dialog_credentials;
mod diverting;
mod dtmf;
mod ending;
mod guess_alerts;
mod hunt;
mod ids;
mod incoming;
pub mod incoming_message;
pub mod io;
mod kept_bindings;
mod leg;
mod link;
mod live;
mod live_media;
pub mod machine;
mod merging;
mod message_parts;
mod messaging;
pub mod mixing;
mod negotiation;
mod notes;
mod operations;
mod outbound;
mod outcome;
mod own_mix;
mod parties;
mod phone_messages;
mod placement;
mod port_id;
mod qualifying;
pub mod queries;
pub mod rating;
mod reason;
mod redirected;
mod referring;
mod registering;
mod registrant;
mod registration_queries;
mod replacing;
mod requested;
mod requested_leg;
mod ringing;
pub mod routing;
mod senders;
mod shared;
mod sip_to_call;
mod star_codes;
mod star_dialling;
mod stay;
mod subscriptions;
pub mod switch_io;
mod transcoding;
mod transfers;
mod trunk_access;
pub mod trunk_dns;
mod trunk_health;
mod trunk_queries;
mod trunk_servers;
mod trunks;

#[cfg(test)]
mod tests;
