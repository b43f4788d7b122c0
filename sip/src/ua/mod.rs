//! The user agent: requests and calls for a switch or a phone, over the transaction layer and the dialogs.
//!
//! It makes no decisions about calls: the user decides which call is accepted, where it goes and what is offered. RFC
//! 3261's mandatory actions happen here: ACK, 481, 491, 500 and 420, the 487 of a cancelled INVITE, the 200 of a BYE, a
//! 2xx repeated until its ACK, the ACK repeated for a repeated 2xx, the BYE of a fork that answered second.
//!
//! The user sees **legs**: a [`LegKey`] identifies one INVITE and the one dialog that it created. Every leg
//! ends with exactly one [`Event::Ended`], whichever side ended it. After that event its key is invalid,
//! except that results of its INFOs are still reported.
//!
//! Session timers (RFC 4028) run automatically when [`UaConfig::session_timer`] is set, reliable provisional
//! responses (RFC 3262) when [`UaConfig::extensions`] lists `100rel`.
//!
//! Not here: name resolution (RFC 3263). A request is sent to the given [`Flow`](crate::flow::Flow), one inside a
//! dialog to the address in its route or target.
//!
//! # The loop
//!
//! A phone that calls another, both in one thread; a driver would use a socket instead of the two variables.
//!
//! ```
//! # use std::time::Instant;
//! # use bytes::Bytes;
//! # use rand::{SeedableRng, rngs::StdRng};
//! # use sidetone_sip::flow::{Flow, ListenerId};
//! # use sidetone_sip::message::{Host, StatusCode};
//! # use sidetone_sip::transaction::{LayerConfig, Local};
//! use sidetone_sip::ua::{Cause, Event, Input, Invite, Output, Reply, Ua, UaConfig};
//!
//! # fn phone(last: u8) -> Ua {
//! #     let local = Local::fixed(Host::V4([192, 0, 2, last].into()), None);
//! #     Ua::new(UaConfig::new(LayerConfig::new(local)), StdRng::seed_from_u64(last.into()))
//! # }
//! # #[allow(clippy::disallowed_methods)] let now = Instant::now();
//! let (mut alice, mut bob) = (phone(1), phone(2));
//! let to_bob = Flow::udp(ListenerId(0), "192.0.2.2:5060".parse()?);
//! let to_alice = Flow::udp(ListenerId(0), "192.0.2.1:5060".parse()?);
//!
//! let invite = Invite::new("sip:bob@192.0.2.2", "<sip:alice@192.0.2.1>", "<sip:bob@192.0.2.2>");
//! let leg = alice.invite(now, to_bob, invite.content("application/sdp", "v=0\r\n"))?;
//!
//! let mut heard = Vec::new();
//! for _ in 0..10 {
//!     // Drain to None after every input; a real loop also feeds `Input::Timeout` at `next_timeout()`.
//!     while let Some(output) = alice.poll_output() {
//!         match output {
//!             Output::Transmit { bytes, .. } => bob.handle_input(now, Input::Datagram { flow: to_alice, bytes }),
//!             Output::Event(Event::Answered { leg, .. }) => {
//!                 heard.push("answered");
//!                 alice.hang_up(now, leg);
//!             }
//!             Output::Event(Event::Ended { cause: Cause::HungUp, .. }) => heard.push("hung up"),
//!             _ => {}
//!         }
//!     }
//!     while let Some(output) = bob.poll_output() {
//!         match output {
//!             Output::Transmit { bytes, .. } => alice.handle_input(now, Input::Datagram { flow: to_bob, bytes }),
//!             Output::Event(Event::Invited { key, .. }) => {
//!                 bob.respond(now, &key, Reply::new(StatusCode::RINGING))?;
//!                 bob.respond(now, &key, Reply::new(StatusCode::OK).content("application/sdp", "v=0\r\n"))?;
//!             }
//!             Output::Event(Event::Ended { cause: Cause::Bye(_), .. }) => heard.push("bob heard BYE"),
//!             _ => {}
//!         }
//!     }
//! }
//! assert_eq!(heard, ["answered", "hung up", "bob heard BYE"]);
//! # let _ = leg;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agent;
#[cfg(test)]
mod chaos;
mod commands;
mod draft;
mod event;
mod flows;
mod inbound;
#[cfg(test)]
mod ladder;
mod leg;
mod pracks;
mod refresh;
mod reliable;
mod reliable_state;
mod sending;
mod session;
mod standing;
mod state;
mod subscription_key;
mod subscriptions;
#[cfg(test)]
mod tests;
mod updating;

pub use agent::Input;
pub use draft::{Content, Draft, Extra, Invite, Reply};
pub use event::{Cause, Event, Output, Receipt, Retried};
pub use leg::LegKey;
pub use standing::Standing;
pub use state::{LEGS_MAX, Ua, UaConfig};
pub use subscription_key::SubscriptionKey;
