//! SIP between nodes over TLS.

use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::phones::{phone, place};
use super::rooms::{Guest, one_room};
use super::site::Cluster;
use crate::common::records::TempDir;
use crate::common::site::{established, open_end, within};
use crate::common::tones::hears;

const TONES: [u32; 2] = [430, 617];

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Writes the certificate of a node with this name.
fn issue(dir: &Path, file: &str, name: &str, authority: &CertifiedIssuer<'static, KeyPair>) {
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, authority).unwrap();
    std::fs::write(dir.join(format!("{file}.pem")), own.pem()).unwrap();
    std::fs::write(dir.join(format!("{file}.key")), key.serialize_pem()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_and_rooms_between_nodes_go_over_tls_and_a_stranger_is_refused() {
    let Some(mut cluster) = Cluster::start().await else { return };
    let (dir, own) = (TempDir::new(), authority());
    std::fs::write(dir.path().join("authority.pem"), own.pem()).unwrap();
    for name in ["first", "second"] {
        issue(dir.path(), name, name, &own);
    }
    // A certificate of another authority for the name of a node.
    issue(dir.path(), "third", "third", &authority());
    cluster.tls = Some(dir.path().to_owned());
    let (first, second, token) = cluster.two().await;
    // A phone of the second node is called from the first one.
    let (caller, callee) = (Arc::new(phone(&first, "1001").await), phone(&second, "1002").await);
    let placed = place(&caller, &callee, "1002").await;
    established(&caller, &callee).await;
    caller.hang_up().await.unwrap();
    assert_eq!(within("the end of the call", placed).await.unwrap(), 200);
    let one = Guest::joins(&first, "1003", TONES[0]).await;
    one_room(&first, &["1003"]).await;
    let other = Guest::joins(&second, "1004", TONES[1]).await;
    one_room(&second, &["1003", "1004"]).await;
    hears(&one.heard, &TONES, &[TONES[1]]).await;
    hears(&other.heard, &TONES, &[TONES[0]]).await;
    for node in [&first, &second] {
        assert!(node.metric("sidetone_cluster_links_total{result=\"opened\"}").await > 0);
        assert_eq!(node.metric("sidetone_cluster_links_total{result=\"refused\"}").await, 0);
    }
    // A node with a certificate of another authority is a member on NATS, but no other node accepts its SIP.
    let third = cluster.node("third", 3).await;
    third.sees(&token, &[("first", "up"), ("second", "up"), ("third", "up")]).await;
    let refused = phone(&third, "1005").await;
    let call = refused.call(open_end("300"));
    tokio::pin!(call);
    tokio::select! {
        outcome = &mut call => assert_ne!(outcome.map_or(0, |outcome| outcome.status), 200),
        () = third.served.says("TLS with another node failed", 1) => {}
    }
    one_room(&second, &["1003", "1004"]).await;
    other.leaves().await;
    one.leaves().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_says_what_is_wrong_with_the_files() {
    let Some(mut cluster) = Cluster::start().await else { return };
    let (dir, own, data) = (TempDir::new(), authority(), TempDir::new());
    let check = |cluster: &Cluster| {
        let (_, out, err) = cluster.command(&["check"], &cluster.config("first", 1, &data));
        out + &err
    };
    let text = check(&cluster);
    assert!(text.contains("SIP between nodes over UDP at 127.0.0.1:0, which is not encrypted"), "{text}");
    cluster.tls = Some(dir.path().to_owned());
    let text = check(&cluster);
    assert!(text.contains("[cluster] tls_certificate") && text.contains("No such file"), "{text}");
    std::fs::write(dir.path().join("authority.pem"), own.pem()).unwrap();
    issue(dir.path(), "first", "other", &own);
    let text = check(&cluster);
    assert!(
        text.contains("has neither the name first nor the address 127.0.0.1; other nodes refuse it"),
        "{text}"
    );
    issue(dir.path(), "first", "first", &own);
    let text = check(&cluster);
    assert!(text.contains("SIP between nodes over TLS at 127.0.0.1:0, certificate"), "{text}");
    let key = KeyPair::generate().unwrap();
    std::fs::write(dir.path().join("first.key"), key.serialize_pem()).unwrap();
    let text = check(&cluster);
    assert!(text.contains("tls_key") && text.contains("does not belong to the certificate"), "{text}");
    // An expired one.
    let mut params = CertificateParams::new(["first".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let expired = params.signed_by(&key, &own).unwrap();
    std::fs::write(dir.path().join("first.pem"), expired.pem()).unwrap();
    let text = check(&cluster);
    assert!(text.contains("has expired on 2020-01-01"), "{text}");
}
