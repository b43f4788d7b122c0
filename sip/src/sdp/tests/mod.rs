//! Tests of the parts together, from text to text.

mod parse;
mod rewrite;
mod srtp;
mod webrtc;
