//! Tests of certificates in files: which are read, refused and selected.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConnection, ServerConnection};
use sidetone_model::time::Timestamp;
use sidetone_sip::flow::Protocol;
use sidetone_sip::transport::TlsSettings as _;
use time::{Duration, OffsetDateTime};

use super::*;

/// A directory of one test, and an authority.
struct World {
    dir: PathBuf,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl World {
    fn new(name: &str) -> World {
        let dir = std::env::temp_dir().join(format!("sidetone-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        World { dir, authority: authority(name) }
    }

    fn authorities(&self) -> PathBuf {
        self.write("ca.pem", &self.authority.pem())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.dir.join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        file
    }

    /// A certificate for these names, valid for this many days from now.
    fn issue(&self, names: &[&str], days: i64) -> CertificateFiles {
        self.issue_with(names, days, |_| {})
    }

    fn issue_with(
        &self,
        names: &[&str],
        days: i64,
        change: impl FnOnce(&mut CertificateParams),
    ) -> CertificateFiles {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let stem = names.first().cloned().unwrap_or_default().replace('*', "any");
        let mut params = CertificateParams::new(names).unwrap();
        let now = OffsetDateTime::now_utc();
        (params.not_before, params.not_after) = (now - Duration::days(400), now + Duration::days(days));
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        CertificateFiles {
            certificate: self.write(&format!("{stem}.pem"), &certificate.pem()),
            key: self.write(&format!("{stem}.key"), &key.serialize_pem()),
            domains: Vec::new(),
        }
    }

    fn trunk(&self, host: &str) -> TrunkFiles {
        let authorities = Some(self.authorities());
        TrunkFiles { host: host.to_owned(), authorities, shown: None, accept_certificate: false }
    }
}

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, format!("authority of {name}"));
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn today() -> Timestamp {
    let micros = OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000;
    Timestamp::from_micros(i64::try_from(micros).unwrap())
}

/// The certificate that the server presents to a client that requests this name, or why the client or server aborts.
fn handshake(
    client: &TlsStore,
    server: &TlsStore,
    name: &str,
) -> Result<(CertificateDer<'static>, Vec<String>), String> {
    let mut client =
        ClientConnection::new(client.client(name).unwrap(), ServerName::try_from(name.to_owned()).unwrap())
            .unwrap();
    let mut server_side = ServerConnection::new(server.server(Protocol::Tls).unwrap()).unwrap();
    let mut wire = Vec::new();
    while client.is_handshaking() || server_side.is_handshaking() {
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        while !wire.is_empty() {
            let mut rest = wire.as_slice();
            server_side.read_tls(&mut rest).unwrap();
            wire = rest.to_vec();
            server_side.process_new_packets().map_err(|error| error.to_string())?;
        }
        while server_side.wants_write() {
            server_side.write_tls(&mut wire).unwrap();
        }
        while !wire.is_empty() {
            let mut rest = wire.as_slice();
            client.read_tls(&mut rest).unwrap();
            wire = rest.to_vec();
            client.process_new_packets().map_err(|error| tls_reason(&std::io::Error::other(error)))?;
        }
    }
    let shown = client.peer_certificates().unwrap()[0].clone().into_owned();
    let proven = server_side.peer_certificates().map(|certificates| server.client_names(certificates));
    Ok((shown, proven.unwrap_or_default()))
}

fn der(files: &CertificateFiles) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(&files.certificate).unwrap()
}

#[test]
fn the_name_that_a_client_asks_for_chooses_the_certificate() {
    let world = World::new("sni");
    let first = world.issue(&["first.example", "shared.example"], 90);
    let second = world.issue(&["second.example", "shared.example", "*.wild.example"], 90);
    let server =
        TlsStore::open(&TlsFiles { certificates: vec![first.clone(), second.clone()], trunks: Vec::new() })
            .unwrap();
    let names = ["first.example", "second.example", "shared.example", "a.wild.example", "other.example"];
    let trunks = names.iter().map(|name| world.trunk(name)).collect();
    let client = TlsStore::open(&TlsFiles { certificates: Vec::new(), trunks }).unwrap();
    for (name, expected) in [
        ("first.example", Ok(&first)),
        ("second.example", Ok(&second)),
        ("shared.example", Ok(&first)),
        ("a.wild.example", Ok(&second)),
        // It gets the first certificate, which is for other names.
        ("other.example", Err("the certificate is for another host")),
    ] {
        let shown = handshake(&client, &server, name).map(|(shown, _)| shown);
        assert_eq!(shown, expected.map(der).map_err(str::to_owned), "{name}");
    }
}

#[test]
fn a_server_of_a_trunk_is_verified() {
    let world = World::new("trunk");
    // Opened immediately: the next certificate may be written to the same file.
    let open = |files| TlsStore::open(&TlsFiles { certificates: vec![files], trunks: Vec::new() }).unwrap();
    let with_uri = |name: &str, uri: &str| {
        let uri = SanType::URI(Ia5String::try_from(uri).unwrap());
        open(world.issue_with(&[name], 90, |params| params.subject_alt_names.push(uri)))
    };
    let other = Err("the certificate is for another host");
    let cases = [
        ("its name", open(world.issue(&["carrier.example"], 90)), Ok(())),
        ("another name", open(world.issue(&["other.example"], 90)), other),
        (
            "an authority's own",
            open(world.issue_with(&["carrier.example"], 90, |params| {
                params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            })),
            Err(
                "the certificate is that of an authority (CA), not of a host: a certificate issued for the host is \
                 needed",
            ),
        ),
        ("expired", open(world.issue(&["carrier.example"], -1)), Err("the certificate has expired")),
        // RFC 5922 §7.1: with SIP URIs in a certificate, its DNS names do not count.
        ("a SIP URI", with_uri("other.example", "sip:carrier.example"), Ok(())),
        ("another SIP URI", with_uri("carrier.example", "sip:other.example"), other),
        ("a URI with a user", with_uri("carrier.example", "sip:sales@other.example"), Ok(())),
    ];
    let client = TlsFiles { certificates: Vec::new(), trunks: vec![world.trunk("carrier.example")] };
    let client = TlsStore::open(&client).unwrap();
    for (case, server, expected) in cases {
        let result = handshake(&client, &server, "carrier.example").map(drop);
        assert_eq!(result, expected.map_err(str::to_owned), "{case}");
    }
    let stranger = World::new("stranger");
    let own = TlsFiles { certificates: vec![stranger.issue(&["carrier.example"], 90)], trunks: Vec::new() };
    let result = handshake(&client, &TlsStore::open(&own).unwrap(), "carrier.example").map(drop);
    assert_eq!(
        result,
        Err("the certificate is of no authority that we trust (is the chain complete?)".to_owned())
    );
}

#[test]
fn a_client_proves_the_trunk_whose_authority_signed_for_its_name() {
    let (world, stranger) = (World::new("client"), World::new("client-stranger"));
    let server = TlsFiles {
        certificates: vec![world.issue(&["here.example"], 90)],
        trunks: vec![
            TrunkFiles { accept_certificate: true, ..world.trunk("carrier.example") },
            TrunkFiles { accept_certificate: true, ..stranger.trunk("other.example") },
            world.trunk("unasked.example"),
        ],
    };
    let server = TlsStore::open(&server).unwrap();
    let shows = |shown: Option<CertificateFiles>| {
        let trunk = TrunkFiles { shown, ..world.trunk("here.example") };
        let client = TlsStore::open(&TlsFiles { certificates: Vec::new(), trunks: vec![trunk] }).unwrap();
        handshake(&client, &server, "here.example").unwrap().1
    };
    let for_clients = |world: &World, name: &str| {
        world.issue_with(&[name], 90, |params| {
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        })
    };
    assert_eq!(shows(None), [""; 0]);
    assert_eq!(shows(Some(for_clients(&world, "carrier.example"))), ["carrier.example"]);
    // Connected nevertheless, as an unknown client: each name counts only with its own authority.
    assert_eq!(shows(Some(for_clients(&world, "other.example"))), [""; 0]);
    assert_eq!(shows(Some(for_clients(&stranger, "carrier.example"))), [""; 0]);
    assert_eq!(shows(Some(for_clients(&world, "unasked.example"))), [""; 0]);
    assert_eq!(shows(Some(for_clients(&world, "*.example"))), [""; 0], "no wildcards (RFC 5922 §7.2)");
    let old = world.issue(&["carrier.example"], -1);
    assert_eq!(shows(Some(old)), [""; 0]);
}

#[test]
fn a_failed_reload_keeps_the_present_certificates() {
    let world = World::new("reload");
    let files = TlsFiles { certificates: vec![world.issue(&["a.example"], 90)], trunks: Vec::new() };
    let server = TlsStore::open(&files).unwrap();
    let trunks = vec![world.trunk("a.example")];
    let client = TlsStore::open(&TlsFiles { certificates: Vec::new(), trunks }).unwrap();
    let before = der(&files.certificates[0]);
    let shown = || handshake(&client, &server, "a.example").unwrap().0;
    assert_eq!(shown(), before);
    // The next certificate is on the disk, and its key is not.
    let key = std::fs::read_to_string(&files.certificates[0].key).unwrap();
    world.issue(&["a.example"], 90);
    let new_key = std::fs::read_to_string(&files.certificates[0].key).unwrap();
    world.write("a.example.key", &key);
    let error = server.reload(&files).unwrap_err().to_string();
    assert!(error.contains("does not belong to the certificate"), "{error}");
    assert_eq!(shown(), before);
    world.write("a.example.key", &new_key);
    server.reload(&files).unwrap();
    assert_eq!(shown(), der(&files.certificates[0]));
    assert_ne!(shown(), before);
}

#[test]
fn every_problem_and_warning_is_named() {
    let world = World::new("review");
    let well = world.issue(&["well.example"], 90);
    let soon = world.issue(&["soon.example"], 10);
    let over = world.issue(&["over.example"], -3);
    let early = world.issue_with(&["early.example"], 90, |params| {
        params.not_before = OffsetDateTime::now_utc() + Duration::days(2);
    });
    let mut narrow = world.issue(&["narrow.example", "*.wild.example"], 90);
    narrow.domains = ["narrow.example", "a.wild.example", "b.a.wild.example"].map(str::to_owned).to_vec();
    let open = world.issue(&["open.example"], 90);
    std::fs::set_permissions(&open.key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mixed = CertificateFiles { key: well.key.clone(), ..world.issue(&["mixed.example"], 90) };
    let missing = CertificateFiles { key: world.dir.join("none.key"), ..well.clone() };
    let empty = CertificateFiles { certificate: world.write("empty.pem", "nothing"), ..well.clone() };
    let garbled =
        world.write("garbled.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let garbled = CertificateFiles { certificate: garbled, ..well.clone() };
    let check = |certificate: &CertificateFiles| {
        let files = TlsFiles { certificates: vec![certificate.clone()], trunks: Vec::new() };
        review(&files, today())
            .into_iter()
            .filter(|remark| !matches!(remark, Remark::Well(_)))
            .collect::<Vec<_>>()
    };
    assert_eq!(check(&well), []);
    for (files, is_problem, expected) in [
        (&soon, false, "expires on 2"),
        (&over, false, "has expired on 2"),
        (&early, false, "is not valid before 2"),
        (&narrow, false, "is not for b.a.wild.example, only for narrow.example, *.wild.example"),
        (&open, false, "every user of this host can read it"),
        (&mixed, true, "does not belong to the certificate"),
        (&missing, true, "No such file"),
        (&empty, true, "holds no certificate"),
        (&garbled, true, "the certificate is malformed"),
    ] {
        let remarks = check(files);
        let [remark] = remarks.as_slice() else { panic!("{expected}: {remarks:?}") };
        let text = match (remark, is_problem) {
            (Remark::Problem(text), true) | (Remark::Warning(text), false) => text,
            other => panic!("{expected}: {other:?}"),
        };
        assert!(text.contains(expected) && text.starts_with("[tls] "), "{text}");
    }
    let trunk = TrunkFiles { authorities: Some(world.dir.join("none.pem")), ..world.trunk("a.example") };
    let remarks = review(&TlsFiles { certificates: Vec::new(), trunks: vec![trunk] }, today());
    assert!(
        matches!(remarks.as_slice(), [Remark::Problem(text)] if text.starts_with("[[tls.trunks]] ca ")),
        "{remarks:?}"
    );
}
