//! The load program. The protocol side ([`carrier`], [`phones`], [`registrations`], [`streams`]) receives `now` and
//! writes into an [`outbox`]; the modes ([`calls`], [`crash`], [`register`], [`relay`], [`bare`]) own sockets and the
//! clock.

mod bare;
mod bencode;
mod call_log;
mod calls;
mod carrier;
mod clock;
mod crash;
mod digest;
mod drops;
mod error;
mod latency;
mod ng;
mod options;
mod outbox;
mod pace;
mod phones;
mod process;
mod provision;
mod register;
mod registrations;
mod relay;
mod report;
mod run;
mod sip_text;
mod site;
mod sockets;
mod streams;
mod switchboard;
mod wire;

pub(crate) use options::Arguments;
pub(crate) use run::run;
