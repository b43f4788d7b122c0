//! The certificate that a node presents in DTLS: self-signed, and created once per process, because SDP contains its
//! fingerprint.

use std::fmt;
use std::sync::{Arc, OnceLock};

use dimpl::{Config, DtlsCertificate};
use ring::digest::{SHA256, digest};

/// A self-signed certificate with a key of ECDSA P-256, and its configuration for DTLS.
#[derive(Clone)]
pub struct Certificate {
    pub(super) config: Arc<Config>,
    pub(super) pair: DtlsCertificate,
    fingerprint: [u8; 32],
}

/// Why there is no certificate; completes "failed to make a certificate: ".
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The parts of the DTLS configuration do not match; the text contains the reason.
    #[error("the DTLS library refused its settings: {0}")]
    Config(String),
    /// The system has no randomness, or the key was refused.
    #[error("the key could not be made")]
    Key(#[source] rcgen::Error),
}

impl Certificate {
    /// A new certificate. Its key comes from the system's randomness and never leaves the process.
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn self_signed() -> Result<Certificate, CertificateError> {
        // Browsers check the fingerprint and nothing else.
        let key =
            rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(CertificateError::Key)?;
        let params = rcgen::CertificateParams::new(vec![NAME.to_owned()]).map_err(CertificateError::Key)?;
        let signed = params.self_signed(&key).map_err(CertificateError::Key)?;
        let certificate = signed.der().to_vec();
        let fingerprint = fingerprint_of(&certificate);
        let pair = DtlsCertificate { certificate, private_key: key.serialize_der() };
        Ok(Certificate { config: config()?, pair, fingerprint })
    }

    /// The SHA-256 digest, for `a=fingerprint`.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificate(..)")
    }
}

/// The settings of every certificate of the process: the library tries each key exchange when it builds them.
fn config() -> Result<Arc<Config>, CertificateError> {
    static CONFIG: OnceLock<Arc<Config>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(Arc::clone(config));
    }
    let config = Config::builder()
        .with_crypto_provider(dimpl::crypto::rust_crypto::default_provider())
        .mtu(MTU)
        .build()
        .map_err(|error| CertificateError::Config(error.to_string()))?;
    Ok(Arc::clone(CONFIG.get_or_init(|| Arc::new(config))))
}

/// The SHA-256 digest of a certificate (RFC 8122 §5).
pub(super) fn fingerprint_of(certificate: &[u8]) -> [u8; 32] {
    let digest = digest(&SHA256, certificate);
    digest.as_ref().try_into().unwrap_or_default()
}

/// The subject; nothing reads it.
const NAME: &str = "sidetone";
/// The longest DTLS datagram that we send, in bytes.
const MTU: usize = 1_150;
