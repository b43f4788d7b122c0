//! Tests of the parts together, from text to text.

mod fax;
mod ice;
mod parse;
mod rewrite;
mod srtp;
mod video;
mod webrtc;
