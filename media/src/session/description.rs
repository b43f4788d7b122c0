//! What signalling tells a media session: its configuration, and what SDP settled.

use std::net::{IpAddr, SocketAddr};

use crate::rtp::PayloadKind;
use crate::time::ClockRate;
use crate::verdict::Thresholds;

/// What holds for a session from its first packet to its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// Whether the party is answered to where its packets come from (symmetric RTP, RFC 4961).
    pub symmetric: bool,
    /// Which sources may become the party's, where the description says nothing else.
    pub strict_source: StrictSource,
    /// The numbers the verdict compares with.
    pub thresholds: Thresholds,
    /// This host's own addresses, which no party can sensibly advertise.
    pub own_addresses: Vec<IpAddr>,
    /// Whether some samples of G.711 are looked at, so that silence in healthy packets is seen.
    pub audio_evidence: bool,
    /// Whether the packets are captured on their way between others, so that no address in SDP is ours.
    pub observed: bool,
}

impl Default for SessionConfig {
    fn default() -> Self {
        SessionConfig {
            symmetric: true,
            strict_source: StrictSource::default(),
            thresholds: Thresholds::default(),
            own_addresses: Vec::new(),
            audio_evidence: false,
            observed: false,
        }
    }
}

/// What SDP settled for this leg (RFC 3264); every answer, re-INVITE and UPDATE replaces it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Where the party wants RTP; `None` for `c=0.0.0.0` or port 0.
    pub remote: Option<SocketAddr>,
    /// Where the party wants RTCP; `None` is the port above `remote` (RFC 3605).
    pub remote_rtcp: Option<SocketAddr>,
    /// Whether RTP and RTCP share one port (RFC 5761).
    pub rtcp_mux: bool,
    /// Whether the negotiated direction lets the party send to us.
    pub receive: bool,
    /// Whether the negotiated direction lets us send to the party.
    pub send: bool,
    /// The payload types the party may send; of two with one number the later holds.
    pub payloads: Vec<Payload>,
    /// The party's `a=ptime` in milliseconds.
    pub ptime_ms: Option<u32>,
    /// Our own `a=ptime` towards the party in milliseconds.
    pub own_ptime_ms: Option<u32>,
    /// Our own `a=maxptime` towards the party in milliseconds.
    pub own_maxptime_ms: Option<u32>,
    /// Where the party's SIP comes from.
    pub signalling: Option<IpAddr>,
    /// The address we put into our SDP to the party.
    pub own_advertised: Option<IpAddr>,
    /// Which sources may become the party's; `None` takes what the session was set up with.
    pub strict_source: Option<StrictSource>,
}

/// Which sources of RTP may become the party's.
///
/// A source that SDP names is always admitted. Any other is believed after four consecutive packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StrictSource {
    /// Every address; those that neither SDP nor signalling names come last.
    Any,
    /// Every address, and after two seconds of silence any takes the leg: for a capture, where the parties have decided
    /// already.
    Observed,
    /// The address and port of SDP alone.
    Sdp,
    /// Any port of the address of SDP, and of the address that signalling comes from. While signalling comes from an
    /// unknown address, every one.
    #[default]
    Signalling,
}

impl StrictSource {
    /// Every rule.
    const ALL: [StrictSource; 4] =
        [StrictSource::Any, StrictSource::Observed, StrictSource::Sdp, StrictSource::Signalling];

    /// The name in settings and traces.
    pub const fn as_str(self) -> &'static str {
        match self {
            StrictSource::Any => "any",
            StrictSource::Observed => "observed",
            StrictSource::Sdp => "sdp",
            StrictSource::Signalling => "signalling",
        }
    }

    /// The rule of that name.
    pub fn from_name(name: &str) -> Option<StrictSource> {
        StrictSource::ALL.into_iter().find(|rule| rule.as_str() == name)
    }
}

/// One negotiated payload type (RFC 8866 §6.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The payload type number, 0 to 127; others are ignored.
    pub number: u8,
    /// What its packets carry.
    pub kind: PayloadKind,
    /// Its RTP clock.
    pub clock: ClockRate,
    /// Payload bytes per millisecond of a codec with a constant bit rate.
    pub bytes_per_ms: Option<u32>,
    /// The encoding name, as in `a=rtpmap`; empty where no SDP announced it.
    pub name: String,
}
