//! The DTLS certificate: the relay has it, and the SDP of calls with browsers carries its fingerprint.

use sidetone_sip::sdp::Fingerprint;

use crate::machine::Switch;

impl Switch {
    /// Sets the fingerprint of the certificate that the relay shows in DTLS. Without it, calls of browsers are refused
    /// with 488.
    pub fn certify(&mut self, fingerprint: Fingerprint) {
        self.shared.ids.certify(fingerprint);
    }
}
