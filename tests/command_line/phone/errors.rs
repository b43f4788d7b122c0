//! The error messages after wrong input, and when the switch is unreachable.

use super::handset::{run, start};
use crate::common::records::TempDir;
use crate::common::site::{DOMAIN, Site, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_and_an_unknown_user_are_said_so() {
    let site = Site::start().await;
    let dir = TempDir::new();
    let file = dir.path().join("wrong");
    std::fs::write(&file, "guess\n").unwrap();
    let file = file.to_str().unwrap();
    for user in ["1001", "1999"] {
        let run = within("the phone", run(site.sip, user, "", &["--password-file", file])).await;
        assert_eq!(run.status, 1);
        let said = format!(
            "sidetone: phone: {user}@{DOMAIN}: the switch does not take this user with this password"
        );
        assert!(run.err.starts_with(&said), "{}", run.err);
        assert!(!run.err.contains("guess"), "{}", run.err);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switch_that_is_away_is_said_so() {
    // Held, so that no other program gets the port: the UDP socket is connected elsewhere, so datagrams of others are
    // answered with ICMP, and the TCP socket does not listen.
    let (closed, _held) = loop {
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.connect("127.0.0.1:9").unwrap();
        let (address, tcp) = (udp.local_addr().unwrap(), tokio::net::TcpSocket::new_v4().unwrap());
        if tcp.bind(address).is_ok() {
            break (address, (udp, tcp));
        }
    };
    for transport in ["udp", "tcp"] {
        let run = within("the phone", run(closed, "1001", "", &["--transport", transport])).await;
        assert_eq!(run.status, 1);
        let said = format!("sidetone: phone: {closed}: no process listens there over {transport} (");
        assert!(run.err.starts_with(&said), "{}", run.err);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_script_or_command_line_is_refused_before_anything_is_done() {
    let nobody = ([127, 0, 0, 1], 9).into();
    let run = run(nobody, "1001", "call 1002\nwait snow\n", &[]).await;
    assert_eq!(run.status, 2);
    assert!(run.err.starts_with("sidetone: phone: script: line 2: wait for what?"), "{}", run.err);

    let dir = TempDir::new();
    let common = ["--user", "1001", "--domain", DOMAIN, "--script", "missing", "--password-file", "none"];
    let run = start(dir.path(), &common).await;
    assert_eq!(run.status, 2);
    assert!(run.err.starts_with("sidetone: phone: missing: cannot be read ("), "{}", run.err);

    std::fs::write(dir.path().join("missing"), "quit\n").unwrap();
    let run = start(dir.path(), &common).await;
    assert_eq!(run.status, 2);
    assert!(run.err.starts_with("sidetone: phone: none: cannot be read ("), "{}", run.err);

    for arguments in
        [&["--user", "10 01", "--domain", DOMAIN][..], &["--domain", DOMAIN], &["--volume", "11"]]
    {
        assert_eq!(start(dir.path(), arguments).await.status, 2, "{arguments:?}");
    }
}
