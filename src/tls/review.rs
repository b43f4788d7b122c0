//! Reviews the files of `[tls]`: problems that prevent the start, and files that will soon fail.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sidetone_model::time::Timestamp;

use crate::tls::certificate::{Certificate, TlsError};
use crate::tls::settings::{CertificateFiles, TlsFiles};
use crate::tls::trunks::Trunk;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    /// The engine does not start with it.
    Problem(String),
    /// The engine starts, but clients or trunks will refuse it, or it is unsafe.
    Warning(String),
    /// A correct item.
    Well(String),
}

/// Reviews every certificate, key and authority.
pub fn review(files: &TlsFiles, now: Timestamp) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let shown = files.trunks.iter().filter_map(|trunk| trunk.shown.as_ref());
    for certificate in files.certificates.iter().chain(shown) {
        review_certificate(certificate, now, &mut remarks);
    }
    for trunk in &files.trunks {
        match Trunk::read(trunk) {
            Ok(_) => remarks.push(Remark::Well(format!("tls trunk {}", trunk.host))),
            // Reported with the certificates.
            Err(TlsError::Certificate { .. } | TlsError::Key { .. } | TlsError::Mismatch { .. }) => {}
            Err(error) => remarks.push(Remark::Problem(error.to_string())),
        }
    }
    remarks
}

fn review_certificate(files: &CertificateFiles, now: Timestamp, remarks: &mut Vec<Remark>) {
    let file = files.certificate.display();
    let facts = match Certificate::read(files) {
        Ok(certificate) => certificate.facts,
        Err(error) => return remarks.push(Remark::Problem(error.to_string())),
    };
    let day = |time: Timestamp| time.to_string().chars().take(10).collect::<String>();
    let (begins, ends) = (day(facts.begins), day(facts.ends));
    let renew = "renew it, then send SIGHUP to the engine";
    let warning = if facts.ends < now {
        Some(format!("has expired on {ends}; {renew}"))
    } else if facts.begins > now {
        Some(format!("is not valid before {begins}; check the clock of this host"))
    } else if facts.ends.since(now) < WARNING_MICROS {
        Some(format!("expires on {ends}; {renew}"))
    } else {
        None
    };
    remarks.extend(warning.map(|text| Remark::Warning(format!("[tls] certificate {file}: {text}"))));
    for domain in files.domains.iter().filter(|domain| !facts.covers(domain)) {
        let names = facts.dns.join(", ");
        remarks.push(Remark::Warning(format!(
            "[tls] certificate {file}: is not for {domain}, only for {names}; get one with this name"
        )));
    }
    if is_open(&files.key) {
        remarks.push(Remark::Warning(format!(
            "[tls] key {}: every user of this host can read it; run `chmod o-rwx` on it",
            files.key.display()
        )));
    }
    let mut well = format!("tls certificate {file}");
    for name in facts.dns.iter().chain(&facts.sip).take(NAMES_SHOWN_MAX) {
        // Writing to a string cannot fail.
        let _ = write!(well, " {name}");
    }
    remarks.push(Remark::Well(format!("{well}, until {ends}")));
}

/// Whether other users than the owner and its group can read a file.
fn is_open(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
}

/// Names of one certificate that are shown.
const NAMES_SHOWN_MAX: usize = 8;
/// A certificate that expires sooner causes a warning: 30 days, the time at which common clients renew.
const WARNING_MICROS: i64 = 30 * 86_400 * 1_000_000;
