//! Session descriptions (RFC 8866) and their negotiation (RFC 3264) for a switch that anchors audio.
//!
//! [`SessionDescription`] contains the used parts of a body; [`CodecPolicy`] defines the codecs that a party may use;
//! [`offer_from`] and [`answer_to`] convert an offer and its answer for the other leg of the switch; [`OfferAnswer`]
//! tracks one dialog's exchange; [`Negotiated`] is its result for the media side.
//!
//! T.38 replaces audio and is passed on; video is passed on beside audio, between two parties that may have it. ICE
//! candidates of parties are read and never passed on. Nothing is passed on unparsed. The crate `sdp-types` parses
//! the lines; only `parse.rs` uses its types.

mod codec;
mod crypto;
mod description;
mod fax;
mod negotiate;
mod offer_answer;
mod parse;
mod rewrite;
mod srtp;
mod t38;
mod video;
mod video_lines;
mod webrtc;
mod xr;

pub use codec::{Codec, CodecPolicy, OWN};
pub use crypto::{Crypto, CryptoKey, CryptoSuite, SrtpTerms};
pub use description::{Address, Direction, Media, MediaKind, Origin, Rtcp, SessionDescription};
pub use negotiate::{Negotiated, NegotiationError, Payload, Role, Video, audio_place, payload_map};
pub use offer_answer::{OfferAnswer, OfferAnswerError};
pub use parse::{ATTRIBUTES_MAX, BODY_BYTES_MAX, LINES_MAX, MEDIA_MAX, SdpError};
pub use rewrite::{answer, answer_to, offer, offer_from};
pub use srtp::{IceRule, KeySeed, SrtpRule};
pub use t38::T38;
pub use video::{answer_video, offer_video};
pub use video_lines::VideoLines;
pub use webrtc::{
    Dtls, DtlsTerms, Fingerprint, IceCandidate, IceCredentials, IceTerms, IceTransport, Setup, Webrtc,
};
pub use xr::XrWish;

#[cfg(test)]
mod tests;
