//! Input from signalling: the session's configuration, and the SDP result.

use std::net::{IpAddr, SocketAddr};

use crate::rtp::PayloadKind;
use crate::time::ClockRate;
use crate::verdict::Thresholds;

/// Settings of a session for its whole life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// Whether packets are sent to the address that the party's packets come from (symmetric RTP, RFC 4961).
    pub symmetric: bool,
    /// Which sources may become the party's, when the description does not set it.
    pub strict_source: StrictSource,
    /// The thresholds of the verdict.
    pub thresholds: Thresholds,
    /// This host's own addresses. A party that advertises one of them is in error.
    pub own_addresses: Vec<IpAddr>,
    /// Whether samples of G.711 are decoded, to detect silence in packets that arrive correctly.
    pub audio_evidence: bool,
    /// Whether the packets are captured between other systems, so that no address in SDP is ours.
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

/// The SDP result for this leg (RFC 3264); every answer, re-INVITE and UPDATE replaces it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Where the party wants RTP; `None` for `c=0.0.0.0` or port 0, and while `unresolved`.
    pub remote: Option<SocketAddr>,
    /// Whether the party's address is not known and the party is not on hold: SDP names a host name, which is not
    /// resolved, or ICE has no path. Nothing is sent to the party.
    pub unresolved: bool,
    /// Where the party wants RTCP; `None` is the port above `remote` (RFC 3605).
    pub remote_rtcp: Option<SocketAddr>,
    /// Whether RTP and RTCP share one port (RFC 5761).
    pub rtcp_mux: bool,
    /// Whether the negotiated direction allows the party to send to us.
    pub receive: bool,
    /// Whether the negotiated direction allows us to send to the party.
    pub send: bool,
    /// The payload types the party may send; of two with the same number the later one is valid.
    pub payloads: Vec<Payload>,
    /// The party's `a=ptime` in milliseconds.
    pub ptime_ms: Option<u32>,
    /// Our own `a=ptime` towards the party in milliseconds.
    pub own_ptime_ms: Option<u32>,
    /// Our own `a=maxptime` towards the party in milliseconds.
    pub own_maxptime_ms: Option<u32>,
    /// Source address of the party's SIP.
    pub signalling: Option<IpAddr>,
    /// The address in our SDP to the party.
    pub own_advertised: Option<IpAddr>,
    /// Which sources may become the party's; `None` uses the session's configuration.
    pub strict_source: Option<StrictSource>,
    /// The extended reports that the party wants in addition to our reports.
    pub xr: XrReports,
    /// Whether the leg carries UDPTL (fax) in place of RTP; no audio is expected then, and `payloads` is not used.
    pub udptl: bool,
    /// Whether the party's packets are SRTP. In a capture, where no packet is decrypted, their payloads contain the
    /// authentication tag.
    pub protected: bool,
    /// Whether the ports carry video; no audio is expected then, and received packets are only counted.
    pub video: bool,
}

impl Description {
    /// Whether SDP names an address for the party's audio; `false` on hold by address (RFC 3264 §8.4).
    pub(super) fn names_address(&self) -> bool {
        self.remote.is_some() || self.unresolved
    }
}

/// The content of the datagrams on a leg's RTP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// RTP of audio.
    Audio,
    /// UDPTL.
    Fax,
    /// RTP of video.
    Video,
}

impl Content {
    /// The content that a description announces.
    pub(super) fn of(description: &Description) -> Content {
        match (description.udptl, description.video) {
            (true, _) => Content::Fax,
            (false, true) => Content::Video,
            (false, false) => Content::Audio,
        }
    }
}

/// Extended reports (RFC 3611) in addition to our reports to a party.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XrReports {
    /// Our reference time in receiver reports (§4.4), and answers to those of the party (§4.5).
    pub round_trip: bool,
    /// A statistics summary of the party's stream (§4.6), with its loss, duplicates and jitter.
    pub summary: bool,
    /// VoIP metrics of the party's stream (§4.7).
    pub voip: bool,
}

/// Which sources of RTP may become the party's.
///
/// A source that SDP names is always admitted. Any other source must first send four consecutive packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StrictSource {
    /// Every address; addresses that neither SDP nor signalling names have the lowest rank.
    Any,
    /// Every address, and after two seconds of silence any other source is accepted. For a capture, where the
    /// endpoints have already chosen their sources.
    Observed,
    /// Only the address and port of SDP.
    Sdp,
    /// Any port of the address in SDP and of the signalling source address. While that address is unknown,
    /// every source.
    #[default]
    Signalling,
}

impl StrictSource {
    /// All rules.
    const ALL: [StrictSource; 4] =
        [StrictSource::Any, StrictSource::Observed, StrictSource::Sdp, StrictSource::Signalling];

    /// The rule's name in settings and traces.
    pub const fn as_str(self) -> &'static str {
        match self {
            StrictSource::Any => "any",
            StrictSource::Observed => "observed",
            StrictSource::Sdp => "sdp",
            StrictSource::Signalling => "signalling",
        }
    }

    /// The rule with this name.
    pub fn from_name(name: &str) -> Option<StrictSource> {
        StrictSource::ALL.into_iter().find(|rule| rule.as_str() == name)
    }
}

/// One negotiated payload type (RFC 8866 §6.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The payload type number, 0 to 127; others are ignored.
    pub number: u8,
    /// The kind of content.
    pub kind: PayloadKind,
    /// Its RTP clock.
    pub clock: ClockRate,
    /// Payload bytes per millisecond of a codec with a constant bit rate.
    pub bytes_per_ms: Option<u32>,
    /// The packet duration without `a=ptime` in milliseconds, if it differs from the default of the codec: that of iLBC
    /// depends on its `mode` (RFC 3952 §5).
    pub default_ptime_ms: Option<u32>,
    /// The encoding name, as in `a=rtpmap`; empty when no SDP announced it.
    pub name: String,
}

impl Payload {
    /// [`Payload::bytes_per_ms`] for packets whose payload contains the authentication tag of SRTP, and perhaps an MKI;
    /// `None` where the tag makes a payload seem longer by several milliseconds.
    pub fn tagged_bytes_per_ms(&self) -> Option<u32> {
        self.bytes_per_ms.filter(|rate| *rate >= TAGGED_BYTES_PER_MS)
    }
}

/// With this rate the longest tag, which has 16 bytes, counts as two milliseconds.
const TAGGED_BYTES_PER_MS: u32 = 8;
