//! Why a handshake failed, in terms that the operator of the remote host understands.

use std::io;

use rustls::CertificateError;

/// Returns the explanation of a failed handshake; a lower-case fragment.
pub fn tls_reason(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(reason)) => certificate(reason),
        Some(rustls::Error::InvalidMessage(_)) => "what answers does not speak TLS".to_owned(),
        Some(rustls::Error::AlertReceived(alert)) => format!("the other side refused it ({alert:?})"),
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
        other => format!("the certificate is wrong ({other})"),
    }
}
