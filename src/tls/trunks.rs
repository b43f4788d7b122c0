//! Certificates of trunks: whether a server is the one in a trunk's address, and which trunk a client is (RFC 5922).

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::verify_server_name;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};

use crate::tls::authorities::{read_certificates, system_authorities};
use crate::tls::certificate::{Certificate, TlsError};
use crate::tls::facts::Facts;
use crate::tls::server_verifier::ServerVerifier;
use crate::tls::settings::TrunkFiles;

/// TLS settings of the trunks at one host.
pub(super) struct Trunk {
    /// The settings of connections to it.
    pub(super) client: Arc<ClientConfig>,
    /// Checks the certificate that it presents as a client; `None` if its calls are not identified by a certificate.
    pub(super) identified_by: Option<Arc<dyn ClientCertVerifier>>,
}

impl Trunk {
    /// Reads the files of a trunk.
    pub(super) fn read(files: &TrunkFiles) -> Result<Self, TlsError> {
        let roots = Arc::new(authorities(files)?);
        let shown = files.shown.as_ref().map(Certificate::read).transpose()?;
        let client = client_config(Arc::clone(&roots), shown.as_ref())?;
        let identified_by = files.accept_certificate.then(|| client_verifier(roots)).transpose()?;
        Ok(Self { client: Arc::new(client), identified_by })
    }
}

/// The authorities that are trusted for a trunk.
fn authorities(files: &TrunkFiles) -> Result<RootCertStore, TlsError> {
    let Some(file) = &files.authorities else { return Ok(system_authorities()) };
    let wrong = |problem| TlsError::Authorities { file: file.clone(), problem };
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(file).map_err(wrong)? {
        roots.add(certificate).map_err(|source| TlsError::Refused { file: file.clone(), source })?;
    }
    Ok(roots)
}

/// The settings of connections to servers with certificates of these authorities.
pub(super) fn client_config(
    roots: Arc<RootCertStore>,
    shown: Option<&Certificate>,
) -> Result<ClientConfig, TlsError> {
    let provider = provider();
    let algorithms = provider.signature_verification_algorithms;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ServerVerifier { roots, algorithms, is_named }));
    let Some(shown) = shown else { return Ok(builder.with_no_client_auth()) };
    let chosen = rustls::sign::SingleCertAndKey::from(Arc::clone(&shown.certified));
    Ok(builder.with_client_cert_resolver(Arc::new(chosen)))
}

fn client_verifier(roots: Arc<RootCertStore>) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    WebPkiClientVerifier::builder_with_provider(roots, provider())
        .build()
        .map_err(|error| TlsError::Setup(Error::General(error.to_string())))
}

/// The cryptography provider; explicit, because the process's default may be another one.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The SIP domains that a client's certificates prove to an authority's verifier.
pub(super) fn proven_domains(
    verifier: &dyn ClientCertVerifier,
    certificates: &[CertificateDer<'_>],
) -> Vec<String> {
    let Some((own, intermediates)) = certificates.split_first() else { return Vec::new() };
    if verifier.verify_client_cert(own, intermediates, UnixTime::now()).is_err() {
        return Vec::new();
    }
    Facts::of(own).map(|facts| facts.domains().to_vec()).unwrap_or_default()
}

/// Checks the name in the trunk's address, not the name that its SRV records resolve to (RFC 5922 §5).
fn is_named(certificate: &CertificateDer<'_>, server: &ServerName<'_>) -> Result<(), Error> {
    let uris = Facts::of(certificate).map(|facts| facts.sip).unwrap_or_default();
    if uris.is_empty() {
        // RFC 5922 §7.2 forbids wildcards, but large carriers present them (Twilio's `*.pstn.twilio.com`).
        return verify_server_name(&ParsedCertificate::try_from(certificate)?, server);
    }
    match uris.contains(&server.to_str().to_ascii_lowercase()) {
        true => Ok(()),
        false => Err(CertificateError::NotValidForName.into()),
    }
}

/// Requests a certificate from every client, and accepts any or none: many phones present one of their manufacturer.
/// The trunk that it identifies is determined after the handshake, with the authorities of each trunk.
#[derive(Debug)]
pub(super) struct AnyClient(pub(super) WebPkiSupportedAlgorithms);

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _own: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, own, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, own, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
