//! SIP over TLS and WebSocket, trunks over TLS, and the API over HTTPS: certificates of an authority of the test.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use sidetone::config::{Config, Listener, Transport};
use sidetone::tls::{CertificateFiles, TlsFiles, TrunkFiles};
use sidetone_phone::{Carrier, Phone, PhoneConfig};
use sidetone_sip::flow::Protocol;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::receiver::Authority;
use crate::common::records::TempDir;
use crate::common::site::{
    PASSWORD, Site, answering, calls, config, directory, established, open_end, talking, until, within,
};
use crate::common::tunnel::{Tunnel, secured};
use crate::common::wire::Wire;
use crate::flows::answered::assert_whole;

const NAME: &str = "sip.acme.test";

/// An authority with a certificate for a site.
struct Certified {
    authority: Authority,
    dir: TempDir,
}

impl Certified {
    fn new() -> Self {
        Self { authority: Authority::new(), dir: TempDir::new() }
    }

    fn issue(&self, stem: &str, names: &[&str]) -> CertificateFiles {
        let (certificate, key) = self.authority.issue(self.dir.path(), stem, names, false);
        CertificateFiles { certificate, key, domains: Vec::new() }
    }

    /// A client configuration that trusts the authority.
    fn client(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.pem().as_bytes()).unwrap()).unwrap();
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth()
    }

    /// A trunk at a host whose certificate is of this authority.
    fn trunk(&self, host: &str) -> TrunkFiles {
        let authorities = Some(self.authority.file_in(self.dir.path()));
        TrunkFiles { host: host.to_owned(), authorities, shown: None, accept_certificate: false }
    }

    /// Makes a site listen on every transport.
    fn listen(&self, config: &mut Config) {
        let listener = |transport| Listener { transport, address: ([127, 0, 0, 1], 0).into() };
        config.sip.listen.extend([Transport::Tls, Transport::Ws, Transport::Wss].map(listener));
        config.tls.certificates = vec![self.issue("site", &[NAME, "127.0.0.1"])];
    }

    async fn site(&self, directory: &str) -> Site {
        Site::configured(directory, |config| self.listen(config)).await
    }

    async fn tunnel(&self, site: &Site, protocol: Protocol) -> Tunnel {
        let to = site.over(protocol);
        match protocol {
            Protocol::Ws => Tunnel::ws(to).await,
            Protocol::Wss => Tunnel::wss(to, self.client(), NAME).await,
            _ => Tunnel::tls(to, self.client(), NAME).await,
        }
    }
}

/// A registered phone whose SIP goes through a tunnel.
async fn phone(site: &Site, tunnel: &Tunnel, number: &str) -> Phone {
    let config = site.phone_config(number, answering());
    site.phone_of(PhoneConfig { switch: tunnel.tcp, carrier: Carrier::Tcp, ..config }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_on_each_secure_transport_calls_and_is_called() {
    let certified = Certified::new();
    let site = certified.site(&directory()).await;
    let datagram = site.phone("1002", answering()).await;
    let cases = [(Protocol::Tls, "tls", "1001"), (Protocol::Ws, "ws", "1003"), (Protocol::Wss, "ws", "1004")];
    for (place, (protocol, param, number)) in cases.into_iter().enumerate() {
        let tunnel = certified.tunnel(&site, protocol).await;
        let secure = phone(&site, &tunnel, number).await;
        for (caller, dialled) in [(&secure, "1002"), (&datagram, number)] {
            let outcome = within("the call", caller.call(talking(dialled, 2_000))).await.unwrap();
            assert_eq!(outcome.status, 200, "{protocol} to {dialled}");
        }
        // The end of the last call may still be in flight to the callee.
        calls(&secure, 0, 0).await;
        let (outcome, ()) = tokio::join!(within("the call", datagram.call(open_end(number))), async {
            established(&datagram, &secure).await;
            secure.hang_up().await.unwrap();
        });
        assert_eq!(outcome.unwrap().status, 200, "{protocol}: hung up by the callee");
        let records = site.records(3 * place + 3).await;
        for record in &records[..3] {
            assert_eq!(record["hangup_cause"], json!("NORMAL_CLEARING"), "{protocol}");
        }
        records[1..3].iter().for_each(assert_whole);
        let here = site.over(protocol);
        let via = tunnel.header("INVITE", "Via");
        assert!(via.starts_with(&format!("SIP/2.0/{protocol} {here};")), "{via}");
        let contact = tunnel.header("INVITE", "Contact");
        assert!(contact.ends_with(&format!("@{here};transport={param}>")), "{contact}");
        drop(secure);
        until("the binding ends with its connection", || site.engine().bindings() == 1).await;
    }
}

/// A `sips:` request must arrive over TLS, and is forwarded only over secure transports (RFC 3261 §26.2.2).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sips_request_stays_on_secure_transports() {
    let certified = Certified::new();
    let site = certified.site(&directory()).await;
    let _datagram = site.phone("1002", answering()).await;
    let callee = certified.tunnel(&site, Protocol::Tls).await;
    let _secure = phone(&site, &callee, "1003").await;
    let (over_tls, plain) =
        (certified.tunnel(&site, Protocol::Tls).await, certified.tunnel(&site, Protocol::Ws).await);
    for (at, number, status) in [
        (over_tls.udp, "1002", 480),
        (plain.udp, "1003", 416),
        (site.sip, "1003", 416),
        (over_tls.udp, "1003", 200),
    ] {
        let mut wire = Wire::open(at).await;
        let mut invite = wire.invite("1001", number);
        invite.uri = invite.uri.replace("sip:", "sips:");
        let answer = match status {
            416 => wire.exchange(&invite).await,
            _ => wire.authorized(&invite, "1001", PASSWORD).await,
        };
        assert_eq!(answer.status().as_u16(), status, "to {number} by {at}");
        if status == 200 {
            // §12.1.1: the dialog is secure too.
            let contact = answer.header("Contact").unwrap().to_owned();
            assert_eq!(contact, format!("<sips:{number}@{}>", site.over(Protocol::Tls)));
        }
    }
}

/// Acme in Britain with a number for 1001, and these trunks.
fn with_trunks(trunks: &str) -> String {
    let text = directory().replacen("currency = \"EUR\"\n", "currency = \"EUR\"\ncountry_code = \"44\"\n", 1);
    let number =
        "[[organisations.numbers]]\nnumber = \"+442071230000\"\ndestination = { extension = \"1001\" }\n";
    format!("{text}{number}{trunks}")
}

fn trunk(name: &str, address: &str) -> String {
    format!("[[trunks]]\nname = \"{name}\"\naddress = \"{address}\"\n")
}

/// Calls between two sites over TLS: each identifies the other only by its certificate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_is_called_over_tls_and_known_by_its_certificate() {
    let certified = Certified::new();
    let peer = TrunkFiles { accept_certificate: true, ..certified.trunk("acme.example") };
    let carrier = directory()
        + "[[organisations.numbers]]\nnumber = \"+447700900123\"\ndestination = { extension = \"1002\" }\n"
        + &trunk("acme", "sip:acme.example;transport=tls");
    let carrier = Site::configured(&carrier, |config| {
        certified.listen(config);
        config.tls.trunks = vec![peer];
    })
    .await;
    let _callee = carrier.phone("1002", answering()).await;
    let to = carrier.over(Protocol::Tls);
    for (shown, status) in [(Some("acme.example"), 200), (Some("other.example"), 404), (None, 404)] {
        let shown = shown.map(|name| certified.issue("shown", &[name]));
        let known = TrunkFiles { shown, ..certified.trunk("127.0.0.1") };
        let trunks = trunk("carrier", &format!("sip:{to};transport=tls"));
        let site = Site::configured(&with_trunks(&trunks), |config| {
            certified.listen(config);
            config.tls.trunks = vec![known];
        })
        .await;
        let caller = site.phone("1001", answering()).await;
        let outcome = within("the call", caller.call(talking("+447700900123", 2_000))).await.unwrap();
        // An unknown sender is challenged, and has no credentials: for the caller the trunk has failed.
        assert_eq!(outcome.status == 200, status == 200, "{}", outcome.status);
        let record = site.record().await;
        assert_eq!(record["direction"], json!("outbound"));
        if status == 200 {
            assert_whole(&record);
            let there = carrier.record().await;
            assert_eq!(there["direction"], json!("inbound"));
            assert_whole(&there);
        }
    }
}

/// A trunk whose certificate is for another name, or expired, gets no call; the next trunk is tried.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_with_a_wrong_certificate_is_passed_over() {
    let certified = Certified::new();
    for expired in [false, true] {
        let name = if expired { "127.0.0.1" } else { "other.example" };
        let (certificate, key) = certified.authority.issue(certified.dir.path(), "wrong", &[name], expired);
        let wrong = Site::configured(&directory(), |config| {
            certified.listen(config);
            config.tls.certificates = vec![CertificateFiles { certificate, key, domains: Vec::new() }];
        })
        .await;
        let good = answering_carrier().await;
        let trunks = trunk("first", &format!("sip:{};transport=tls", wrong.over(Protocol::Tls)))
            + "priority = 1\n"
            + &trunk("second", &format!("sip:{}", good.local()))
            + "priority = 2\n";
        let site = Site::configured(&with_trunks(&trunks), |config| {
            config.tls = TlsFiles { certificates: Vec::new(), trunks: vec![certified.trunk("127.0.0.1")] };
        })
        .await;
        let caller = site.phone("1001", answering()).await;
        let outcome = within("the call", caller.call(talking("+447700900123", 600))).await.unwrap();
        assert_eq!(outcome.status, 200, "expired: {expired}");
        let refused = "sidetone_sip_tcp_refused_total{reason=\"unsecured\"} 1";
        assert!(metrics(&site).await.contains(refused), "expired: {expired}");
    }
}

/// A carrier on UDP that answers.
async fn answering_carrier() -> Phone {
    let nobody: SocketAddr = ([127, 0, 0, 1], 9).into();
    let mut config = crate::common::site::phone_config(nobody, "carrier", answering());
    config.domain = "carrier.example".into();
    Phone::start(config).await.unwrap()
}

async fn metrics(site: &Site) -> String {
    let mut stream = tokio::net::TcpStream::connect(site.http).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    within("metrics", stream.read_to_string(&mut text)).await.unwrap();
    text
}

/// Both listeners present the certificate that was read last; existing connections stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_changes_the_certificate_of_the_next_connection() {
    let certified = Certified::new();
    let dir = TempDir::new();
    crate::common::site::declare(dir.path(), &directory()).await;
    let mut config = config(dir.path());
    certified.listen(&mut config);
    config.http.tls = true;
    let engine = sidetone::app::Engine::start(&config).await.unwrap();
    let (sip, http) = (engine.sip_over(Protocol::Tls).next().unwrap(), engine.http);
    let mut first = secured(sip, certified.client(), NAME).await.unwrap();
    assert_eq!(healthz(http, certified.client()).await, "HTTP/1.1 200 OK");
    let shown = |stream: &tokio_rustls::client::TlsStream<tokio::net::TcpStream>| {
        stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
    };
    let (before, _) = (shown(&first), certified.issue("site", &[NAME, "127.0.0.1"]));
    engine.reload(&config).await;
    let second = secured(sip, certified.client(), NAME).await.unwrap();
    assert_ne!(shown(&second), before);
    assert_eq!(shown(&secured(http, certified.client(), NAME).await.unwrap()), shown(&second));
    // A file that is not a certificate changes nothing.
    std::fs::write(&config.tls.certificates[0].certificate, "nothing").unwrap();
    engine.reload(&config).await;
    let third = secured(sip, certified.client(), NAME).await.unwrap();
    assert_eq!(shown(&third), shown(&second));
    assert!(secured(http, certified.client(), "other.example").await.is_err(), "not its name");
    first.write_all(b"\r\n\r\n").await.unwrap();
    let mut pong = [0; 2];
    within("the answer to a keep-alive", first.read_exact(&mut pong)).await.unwrap();
    engine.stop(std::time::Duration::ZERO).await;
}

/// The first line of the answer of `GET /healthz`.
async fn healthz(http: SocketAddr, client: ClientConfig) -> String {
    let mut stream = secured(http, client, NAME).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    within("an answer", stream.read_to_string(&mut text)).await.unwrap();
    text.lines().next().unwrap_or_default().to_owned()
}
