//! Tests of the parts together, from text to text.

mod fax;
mod parse;
mod rewrite;
mod srtp;
mod webrtc;
