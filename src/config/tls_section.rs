//! Reads `[tls]`.

use std::path::PathBuf;

use sidetone_model::trunk_address::TrunkAddress;

use crate::config::settings::Config;
use crate::fields::{Fields, Problem};
use crate::tls::{CertificateFiles, TlsFiles, TrunkFiles};

/// Reads the certificates and the trunks with their own settings.
pub(super) fn read_tls(mut fields: Fields<'_>, tls: &mut TlsFiles) {
    for (path, table) in fields.tables("certificates") {
        let mut fields = Fields::new(path, table, fields.problems());
        let certificate = fields.required_text("certificate");
        let key = fields.required_text("key");
        let domains = fields.texts("domains").unwrap_or_default();
        let domains = domains.iter().map(|domain| domain.to_ascii_lowercase()).collect();
        if let (Some(certificate), Some(key)) = (certificate, key) {
            let files = CertificateFiles { certificate: certificate.into(), key: key.into(), domains };
            tls.certificates.push(files);
        }
        fields.finish();
    }
    for (path, table) in fields.tables("trunks") {
        let mut fields = Fields::new(path, table, fields.problems());
        let host = fields.required_checked("host", host);
        let authorities = fields.text("ca").filter(|file| !file.is_empty()).map(PathBuf::from);
        let shown = match (fields.text("certificate"), fields.text("key")) {
            (Some(certificate), Some(key)) => Some(CertificateFiles {
                certificate: certificate.into(),
                key: key.into(),
                domains: Vec::new(),
            }),
            (None, None) => None,
            (Some(_), None) => fields.refuse("key", "is missing: a certificate needs its key"),
            (None, Some(_)) => fields.refuse("certificate", "is missing: a key needs its certificate"),
        };
        let accept_certificate = fields.boolean("accept_certificate").unwrap_or_default();
        if let Some(host) = host {
            if tls.trunks.iter().any(|known| known.host == host) {
                fields.refuse::<()>("host", format!("\"{host}\" has settings already; write them together"));
            }
            tls.trunks.push(TrunkFiles { host, authorities, shown, accept_certificate });
        }
        fields.finish();
    }
    fields.finish();
}

/// Adds a problem if a listener needs a certificate and there is none.
pub(super) fn require_certificate(config: &Config, problems: &mut Vec<Problem>) {
    if !config.tls.certificates.is_empty() {
        return;
    }
    let advice = "needs a certificate: add [[tls.certificates]] with certificate and key";
    if let Some(listener) = config.sip.listen.iter().find(|listener| listener.transport.is_secure()) {
        problems.push(Problem::new("sip.listen", format!("{listener} {advice}")));
    }
    if config.http.tls {
        problems.push(Problem::new("http.tls", advice));
    }
}

/// The host of a trunk's address, in the form in which addresses are compared.
fn host(text: &str) -> Result<String, String> {
    let address = match text.contains(':') {
        true => format!("sip:[{text}]"),
        false => format!("sip:{text}"),
    };
    match address.parse::<TrunkAddress>() {
        Ok(address) if address.port.is_none() => Ok(address.host),
        _ => Err("must be the host of a trunk's address, such as \"carrier.example\"".to_owned()),
    }
}
