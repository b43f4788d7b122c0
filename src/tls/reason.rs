//! Why a handshake failed, in terms that the operator of the remote host understands.

use std::io;

use rustls::{AlertDescription, CertificateError};

/// Returns the explanation of a failed handshake; a lower-case fragment.
pub fn tls_reason(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(reason)) => certificate(reason),
        Some(rustls::Error::InvalidMessage(_)) => "what answers does not speak TLS".to_owned(),
        Some(rustls::Error::AlertReceived(received)) => {
            format!("the other side refused it: {}", alert(*received))
        }
        Some(rustls::Error::PeerIncompatible(_)) => {
            "the two sides have no TLS version, cipher or key exchange in common".to_owned()
        }
        Some(other) => other.to_string(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => "the connection was closed".to_owned(),
        None => error.get_ref().map_or_else(|| error.kind().to_string(), ToString::to_string),
    }
}

fn certificate(reason: &CertificateError) -> String {
    match reason {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate is not valid yet".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate is for another host".to_owned()
        }
        CertificateError::UnknownIssuer => {
            "the certificate is of no authority that we trust (is the chain complete?)".to_owned()
        }
        CertificateError::BadEncoding => "the certificate is damaged: it cannot be decoded".to_owned(),
        CertificateError::BadSignature => {
            "the certificate's signature is wrong: it was changed, or its chain belongs to another one"
                .to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the certificate is for another purpose (extended key usage)".to_owned()
        }
        CertificateError::Revoked => "the certificate was revoked".to_owned(),
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "the certificate is signed with an algorithm that is not supported".to_owned()
        }
        CertificateError::UnhandledCriticalExtension => {
            "the certificate has a critical extension that is not supported".to_owned()
        }
        CertificateError::Other(other) => beyond(&other.to_string()),
        _ => INVALID.to_owned(),
    }
}

/// The explanation of an error of the verifier by its name.
fn beyond(name: &str) -> String {
    match name {
        "CaUsedAsEndEntity" => "the certificate is that of an authority (CA), not of a host: \
                                a certificate issued for the host is needed"
            .to_owned(),
        "EndEntityUsedAsCa" => {
            "the certificate was signed with one that is no authority's (CA): check the chain".to_owned()
        }
        "PathLenConstraintViolated" => {
            "the certificate's chain is longer than its authority allows".to_owned()
        }
        "NameConstraintViolation" => {
            "the certificate is for a name that its authority may not certify".to_owned()
        }
        _ => INVALID.to_owned(),
    }
}

/// The meaning of an alert of the other side (RFC 8446 §6.2).
fn alert(received: AlertDescription) -> &'static str {
    match received {
        AlertDescription::AccessDenied => "it denies access",
        AlertDescription::BadCertificate => "it cannot use our certificate",
        AlertDescription::CertificateExpired => "our certificate has expired",
        AlertDescription::CertificateRequired => "it demands a certificate, and none is configured",
        AlertDescription::CertificateRevoked => "our certificate was revoked",
        AlertDescription::CertificateUnknown => "it does not accept our certificate",
        AlertDescription::DecryptError => "a signature of ours is wrong, does the key fit the certificate?",
        AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => {
            "it has no cipher or key exchange in common with us, or demands a certificate"
        }
        AlertDescription::InternalError => "it has an internal error",
        AlertDescription::NoApplicationProtocol => "it expects another protocol over TLS",
        AlertDescription::ProtocolVersion => "it has no TLS version in common with us",
        AlertDescription::UnknownCA => "it does not trust the authority of our certificate",
        AlertDescription::UnrecognisedName => "it has no certificate for the name that we asked for",
        AlertDescription::UnsupportedCertificate => "it does not support our kind of certificate",
        _ => "it gave no reason that we know",
    }
}

const INVALID: &str = "the certificate is not valid, check it and its chain with `openssl verify`";

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::OtherError;

    use super::*;

    #[derive(Debug)]
    struct Named(&'static str);

    impl std::fmt::Display for Named {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.0)
        }
    }

    impl std::error::Error for Named {}

    #[test]
    fn every_reason_is_in_words() {
        let named = |name| CertificateError::Other(OtherError(Arc::new(Named(name))));
        let of_certificate = |reason| rustls::Error::InvalidCertificate(reason);
        let alert = rustls::Error::AlertReceived;
        for (error, expected) in [
            (
                of_certificate(named("CaUsedAsEndEntity")),
                "the certificate is that of an authority (CA), not of a",
            ),
            (of_certificate(named("Anything")), "the certificate is not valid, check it"),
            (of_certificate(CertificateError::BadSignature), "the certificate's signature is wrong"),
            (of_certificate(CertificateError::BadEncoding), "the certificate is damaged"),
            (of_certificate(CertificateError::InvalidPurpose), "the certificate is for another purpose"),
            (of_certificate(CertificateError::Revoked), "the certificate was revoked"),
            (
                of_certificate(CertificateError::UnknownRevocationStatus),
                "the certificate is not valid, check it",
            ),
            (
                alert(AlertDescription::UnknownCA),
                "the other side refused it: it does not trust the authority",
            ),
            (
                alert(AlertDescription::Unknown(200)),
                "the other side refused it: it gave no reason that we know",
            ),
        ] {
            let said = tls_reason(&io::Error::other(error));
            assert!(said.starts_with(expected), "{said}");
        }
    }
}
