//! SIGHUP: changes that can take effect immediately do, others are named, and a broken file changes nothing.

use crate::common::records::TempDir;
use crate::common::site::{declare, directory};
use crate::service::client::Ask;
use crate::service::served::{Served, Start, config};

/// An incomplete certificate renewal changes nothing, and the log has the reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_that_cannot_be_used_are_named_and_the_present_ones_stay() {
    let dir = TempDir::new();
    declare(dir.path(), &directory()).await;
    let issue = || {
        let key = rcgen::KeyPair::generate().unwrap();
        let names = ["localhost".to_owned()];
        let certificate = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    };
    let file = |name: &str| dir.path().join(name);
    let ((certificate, key), (_, other)) = (issue(), issue());
    std::fs::write(file("site.pem"), certificate).unwrap();
    std::fs::write(file("site.key"), &key).unwrap();
    let more = format!(
        "[http]\nlisten = \"127.0.0.1:0\"\n[[tls.certificates]]\ncertificate = \"{}\"\nkey = \"{}\"\n",
        file("site.pem").display(),
        file("site.key").display()
    );
    let start = Start { config: config(dir.path(), &more), log: "", files_max: None, env: Vec::new() };
    let engine = Served::with(dir.path(), start).await;
    std::fs::write(file("site.key"), other).unwrap();
    engine.signal("HUP");
    engine.says("the certificates were not reloaded; the present ones stay in use", 1).await;
    engine.says("does not belong to the certificate", 1).await;
    std::fs::write(file("site.key"), key).unwrap();
    engine.signal("HUP");
    engine.says("the configuration was reloaded", 2).await;
    assert_eq!(engine.said().matches("were not reloaded").count(), 1, "{}", engine.said());
}

const KEY: &str = "tel_acmeboss0001_0123456789abcdefghijklmnopqrstuvwxyz";

/// The status for a caller whose proxy reports another client address.
async fn forwarded(engine: &Served) -> u16 {
    let ask = Ask::new("GET", "/api/v1/cdrs").bearer(KEY).header("X-Forwarded-For", "192.0.2.7");
    ask.send(engine.http).await.status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_hold_holds_and_the_rest_is_named() {
    let dir = TempDir::new();
    declare(dir.path(), &directory()).await;
    let http = "[http]\nlisten = \"127.0.0.1:0\"\n";
    let start = Start { config: config(dir.path(), http), log: "", files_max: None, env: Vec::new() };
    let engine = Served::with(dir.path(), start).await;
    let write = |text: &str| std::fs::write(dir.path().join("sidetone.toml"), text).unwrap();
    assert_eq!(forwarded(&engine).await, 200, "nobody is believed");

    let proxies = format!("{http}trusted_proxies = [\"127.0.0.1\"]\n[log]\nlevel = \"warn\"\n");
    write(&config(dir.path(), &proxies).replace("workers = 1", "workers = 2").replace("12000-", "12002-"));
    engine.signal("HUP");
    engine.says("needs a restart: [media] ports", 1).await;
    engine.says("needs a restart: [media] workers", 1).await;
    assert_eq!(forwarded(&engine).await, 403, "the proxy is believed, and the address not allowed");
    assert!(!engine.said().contains("was reloaded"), "the level is warn by now: {}", engine.said());
    assert!(!engine.said().contains("restart: [http]") && !engine.said().contains("restart: [sip]"));

    write("[http]\nlisten = \"nowhere\"\n[sipp]\n");
    engine.signal("HUP");
    engine.says("nothing has changed", 1).await;
    let said = engine.said();
    assert!(said.contains("http.listen: ") && said.contains("sipp: unknown key"), "{said}");
    assert_eq!(forwarded(&engine).await, 403);

    write(&config(dir.path(), http));
    engine.signal("HUP");
    engine.says("the configuration was reloaded", 1).await;
    assert_eq!(forwarded(&engine).await, 200);
}
