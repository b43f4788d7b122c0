//! The media session of one leg: it selects the party's packets, computes their statistics and judges them
//! (RFC 3550).
//!
//! [`Session`] is a machine without sockets and clocks. Its driver, a live relay or a capture file, passes
//! datagrams and the time to it:
//!
//! ```
//! use sidetone_media::session::{Disposition, Input, Session, SessionConfig};
//! use sidetone_media::time::Micros;
//!
//! let mut session = Session::new(SessionConfig::default());
//! session.handle_input(Micros(0), Input::Answered);
//! let source = ([127, 0, 0, 1], 4000).into();
//! let disposition = session.receive(Micros(20_000), source, &[0x80, 0, 0, 1]);
//! assert!(matches!(disposition, Disposition::Discard(_)), "four bytes are no RTP packet");
//! while let Some(_output) = session.poll_output() {}
//! assert_eq!(session.close(Micros(40_000)).figures.received, 0);
//! ```

mod candidate;
mod clock;
mod closing;
mod description;
mod destinations;
mod extended;
mod foreign;
mod input;
mod machine;
mod numbers;
mod packets;
mod payloads;
mod report;
mod rtcp;
mod run;
mod source;
mod ssrc;
mod state;
mod transit;
pub(crate) mod udptl;
mod video;
mod watch;

use description::Content;
pub use description::{Description, Payload, SessionConfig, StrictSource, XrReports};
pub use foreign::Foreign;
pub use input::{Disposition, Input, Output, Reason};
pub use machine::Session;
pub(crate) use payloads::is_static_noise;
pub use report::{Report, SessionCounters, Withheld};
pub use run::Run;
pub use udptl::FaxCounters;
pub use video::VideoCounters;
pub use watch::{Change, Warning, Watch};

pub use crate::rtcp::{FarEnd, RoundTrip, RtcpView, SenderCount};
pub use crate::rtp::PayloadKind;
pub use crate::stats::{AudioEvidence, AudioSample, Figures, Hundredths, Second, Timeline};
pub use crate::verdict::{Evidence, Measure, Thresholds, Value, Verdict};
