//! `sidetone check --call`: a real call through a running engine that leaves nothing in it.

use std::path::Path;
use std::process::Command;

use sidetone_model::access::Scope;
use sidetone_model::listing::Listing;
use sidetone_model::organisation::Organisations;
use sidetone_store::Store;

use crate::common::chosen::{database_in, url_in};
use crate::common::records::TempDir;
use crate::common::site::{DOMAIN, KEY, PASSWORD, Site, until, within};

/// The exit code, stdout and stderr of the test for an engine with this data directory.
async fn check(dir: &Path, arguments: &[&str]) -> (i32, String, String) {
    let file = dir.join("sidetone.toml");
    let text = format!(
        "[node]\ndata_dir = \"{}\"\n[database]\nurl = \"{}\"\n[sip]\nlisten = [\"udp://127.0.0.1:0\"]\n\
         [http]\nlisten = \"127.0.0.1:0\"\n[media]\nports = \"12000-31999\"\nreal_time = false\n",
        dir.display(),
        url_in(dir)
    );
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidetone"));
    command.arg("check").arg("--config").arg(&file).args(arguments).env_clear().current_dir(dir);
    let run = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = within("the self-test", run).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The names of all organisations, and the number of all extensions and keys.
async fn contents(dir: &Path) -> (Vec<String>, u64, u64) {
    let store = Store::open(&database_in(dir)).await.unwrap();
    let (all, listing) = (Scope::Everything, Listing::default());
    let organisations = Organisations::list(&store, all, &listing).await.unwrap();
    let extensions = store.list_extensions(all, &listing).await.unwrap().total;
    let keys = store.list_api_keys(all, &listing).await.unwrap().total;
    store.close().await;
    (organisations.items.into_iter().map(|one| one.name).collect(), extensions, keys)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_call_goes_through_and_nothing_of_it_stays() {
    let site = Site::start().await;
    let before = contents(site.dir.path()).await;
    let (sip, url) = (site.sip.to_string(), format!("http://{}", site.http));
    let (code, out, err) = check(site.dir.path(), &["--call", "--sip", &sip, "--url", &url]).await;
    assert_eq!(code, 0, "{out}{err}");
    let steps: Vec<&str> =
        out.lines().filter_map(|line| line.strip_prefix("call ")?.split(' ').next()).collect();
    assert_eq!(
        steps,
        ["engine", "extensions", "register", "register", "call", "verdict", "clean-up"],
        "{out}{err}"
    );
    assert!(out.ends_with("ok\n") && out.contains("RTP packets received"), "{out}");
    assert_eq!(contents(site.dir.path()).await, before);
    // Bindings of every organisation: the phones of the test were in an organisation of their own.
    until("no phone stays registered", || site.engine().bindings() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn given_extensions_are_used_as_they_are() {
    let site = Site::start().await;
    let (sip, url) = (site.sip.to_string(), format!("http://{}", site.http));
    let file = |name: &str, text: String| {
        std::fs::write(site.dir.path().join(name), text).unwrap();
    };
    file("passwords", format!("{PASSWORD}\n{PASSWORD}\n"));
    file("key", format!("{KEY}\n"));
    let given = ["--call", "--from", "1001", "--to", "1002", "--domain", DOMAIN, "--passwords", "passwords"];
    let more = ["--key-file", "key", "--sip", &sip, "--url", &url];
    let (code, out, err) = check(site.dir.path(), &[&given[..], &more].concat()).await;
    assert_eq!(code, 0, "{out}{err}");
    let records = site.records(1).await;
    assert_eq!(records[0]["caller_number"], "1001");
    // Three seconds of audio; on a busy machine the BYE is later.
    assert!(records[0]["billsec"].as_u64().is_some_and(|seconds| seconds >= 3), "{records:#?}");

    file("passwords", format!("wrong\n{PASSWORD}\n"));
    let (code, out, err) = check(site.dir.path(), &[&given[..], &more].concat()).await;
    assert_eq!(code, 1, "{out}{err}");
    assert!(
        err.contains("check the number, the domain and the password") && !out.contains("\nok\n"),
        "{out}{err}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_failure_names_what_to_do_and_leaves_nothing() {
    let site = Site::start().await;
    let before = contents(site.dir.path()).await;
    let url = format!("http://{}", site.http);
    // A port on which nothing answers: one that is bound and never read.
    let deaf = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let sip = deaf.local_addr().unwrap().to_string();
    let (code, out, err) = check(site.dir.path(), &["--call", "--sip", &sip, "--url", &url]).await;
    assert_eq!(code, 1, "{out}{err}");
    assert!(
        err.contains("check --call: register: ") && err.contains("check that the engine listens there"),
        "{err}"
    );
    assert!(out.contains("call clean-up"), "{out}");
    assert_eq!(contents(site.dir.path()).await, before);

    // No engine, and one whose HTTP address differs.
    let (code, _, err) =
        check(site.dir.path(), &["--call", "--url", "http://127.0.0.1:9", "--sip", &sip]).await;
    assert!(code == 1 && err.contains("--url names another address"), "{err}");
    let empty = TempDir::new();
    let (code, _, err) = check(empty.path(), &["--call"]).await;
    assert!(code == 1 && err.contains("start it (systemctl start sidetone)"), "{err}");
}
