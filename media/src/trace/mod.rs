//! Header-only traces: every input of a leg's session that affects its report, without audio.
//!
//! A [`TracedSession`] is a [`Session`](crate::session::Session) that can record its inputs; a [`Replay`]
//! feeds them to another session, whose report is equal to the last bit. RTP is recorded as its header and
//! its length, so a trace reveals no audio and works with SRTP too. Packets are recorded as differences from
//! a prediction: three bytes each for a talking party, about 300 bytes per second including the packets we
//! send. The format is described in `docs/trace.md`.
//!
//! This module does no I/O: blocks go to a [`TraceSink`], and the driver of a replay supplies bytes.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//!
//! use sidetone_media::session::{Report, Session, SessionConfig};
//! use sidetone_media::time::Micros;
//! use sidetone_media::trace::{Replay, TraceHead, TraceSink, TracedSession};
//!
//! #[derive(Debug, Default)]
//! struct Memory(Mutex<Vec<u8>>);
//!
//! impl TraceSink for Memory {
//!     fn append(&self, bytes: Vec<u8>) -> Option<Vec<u8>> {
//!         self.0.lock().ok()?.extend(bytes);
//!         Some(Vec::new())
//!     }
//!
//!     fn name(&self) -> &str {
//!         "memory"
//!     }
//! }
//!
//! let memory = Arc::new(Memory::default());
//! let mut leg = TracedSession::new(Session::new(SessionConfig::default()));
//! leg.trace(TraceHead::default(), memory.clone());
//! leg.answer(Micros(1_000));
//! leg.receive(Micros(2_000), ([192, 0, 2, 1], 4000).into(), &[0x80; 60]);
//! let live = leg.close(Micros(3_000));
//!
//! let mut replay = Replay::new();
//! let file = memory.0.lock().unwrap();
//! let read = replay.feed(&file)?;
//! let replayed = replay.finish(file.len() - read)?;
//! assert_eq!(replayed.report, Report { trace: None, ..live });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bytes;
mod description;
mod forecast;
mod head;
mod record;
mod replay;
mod traced;
mod writer;

pub use head::{MAGIC, TraceHead};
pub use replay::{Replay, Replayed, TraceDamage};
pub use traced::TracedSession;
pub use writer::{BLOCK_BYTES, TRACE_BYTES_MAX, TraceFile, TraceSink, TraceWriter};
