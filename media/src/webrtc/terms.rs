//! The negotiated protection and path of a leg's packets.

use std::fmt;

use crate::srtp::SrtpKeys;

/// How the packets of a leg are protected, and how their path is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protection {
    /// With keys in SDP, or unprotected, on the path that ICE finds.
    Ice(IceTerms, Option<SrtpKeys>),
    /// With keys in SDP (RFC 4568).
    Sdes(SrtpKeys),
    /// With keys from a DTLS handshake, on the path that ICE finds.
    Webrtc(WebrtcTerms),
}

/// ICE and DTLS of a leg.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebrtcTerms {
    /// The credentials of the checks.
    pub ice: IceTerms,
    /// The SHA-256 digest of the party's certificate.
    pub fingerprint: [u8; 32],
    /// Whether we are the DTLS client.
    pub is_client: bool,
}

/// The credentials of a leg's checks (RFC 8445 §7.2.2); our password is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct IceTerms {
    /// The user name of a check: our fragment, a colon and the party's.
    pub username: String,
    /// Our password.
    pub password: String,
}

impl IceTerms {
    /// The credentials of these fragments and of our password.
    pub fn new(own_ufrag: &str, own_password: &str, their_ufrag: &str) -> IceTerms {
        IceTerms { username: format!("{own_ufrag}:{their_ufrag}"), password: own_password.to_owned() }
    }
}

impl fmt::Debug for IceTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IceTerms({})", self.username)
    }
}
