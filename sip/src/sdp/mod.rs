//! Session descriptions (RFC 8866) and their negotiation (RFC 3264) for a switch that anchors audio.
//!
//! [`SessionDescription`] is what we understand of a body; [`CodecPolicy`] says which codecs a party may use;
//! [`offer_from`] and [`answer_to`] carry an offer and its answer across the switch; [`OfferAnswer`] keeps one
//! dialog's exchange in order; [`Negotiated`] is what came of it and what the media side needs to know.
//!
//! Not here: SRTP, ICE candidates, video and T.38. Such media are refused with port 0, never passed on unread.
//! The crate `sdp-types` reads and writes the lines; its types are named in `parse.rs` and nowhere else.

mod codec;
mod description;
mod negotiate;
mod offer_answer;
mod parse;
mod rewrite;

pub use codec::{Codec, CodecPolicy, PASS_THROUGH};
pub use description::{Address, Direction, Media, MediaKind, Origin, Rtcp, SessionDescription};
pub use negotiate::{Negotiated, NegotiationError, Payload, Role, audio_place, payload_map};
pub use offer_answer::{OfferAnswer, OfferAnswerError};
pub use parse::{ATTRIBUTES_MAX, BODY_BYTES_MAX, LINES_MAX, MEDIA_MAX, SdpError};
pub use rewrite::{answer, answer_to, offer, offer_from};

#[cfg(test)]
mod tests;
