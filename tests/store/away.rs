//! D3 on PostgreSQL: a server that becomes unreachable and recovers, and one that is slow when the node starts.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sidetone::cdr::journal::Journal;
use sidetone::cdr::writer::CdrWriter;
use sidetone_model::access::Scope;
use sidetone_model::page::Window;
use sidetone_model::ports::CdrLog;
use sidetone_store::{Location, Store};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::common::database::{Kind, TestDatabase, kinds};
use crate::common::records::{TempDir, ended, organisation};
use crate::common::waiting::within;

/// The state of the connection between the store and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Up,
    /// Connections are closed, new ones immediately.
    Down,
}

/// A relay to `server` whose state is the value of the channel. It does not answer the first `silent` connections of
/// readers.
async fn relay(server: String, line: watch::Receiver<Line>, silent: u32) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let left = Arc::new(Mutex::new(silent));
    tokio::spawn(async move {
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            let (server, mut line, left) = (server.clone(), line.clone(), Arc::clone(&left));
            tokio::spawn(async move {
                if *line.borrow_and_update() == Line::Down {
                    return;
                }
                let startup = startup_message(&mut near).await;
                if is_silent(&startup, &mut left.lock().unwrap()) {
                    // Until the store gives up.
                    let _ = near.read_to_end(&mut Vec::new()).await;
                    return;
                }
                let mut far = TcpStream::connect(server).await.unwrap();
                far.write_all(&startup).await.unwrap();
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                    _ = line.wait_for(|line| *line == Line::Down) => {}
                }
            });
        }
    });
    address
}

/// The first message of a client: its length in four bytes, the protocol, and its options.
async fn startup_message(near: &mut TcpStream) -> Vec<u8> {
    let mut message = vec![0; 4];
    near.read_exact(&mut message).await.unwrap();
    let length = u32::from_be_bytes(message[..4].try_into().unwrap());
    message.resize(length as usize, 0);
    near.read_exact(&mut message[4..]).await.unwrap();
    message
}

/// Whether a connection is one of readers that gets no answer.
fn is_silent(startup: &[u8], left: &mut u32) -> bool {
    let is_silent = *left > 0 && String::from_utf8_lossy(startup).contains("default_transaction_read_only");
    *left -= u32::from(is_silent);
    is_silent
}

/// A database behind a relay, its location, and the state of the connection; `None` with a notice where PostgreSQL is
/// not tested, or not reached by TCP.
async fn relayed(dir: &Path, silent: u32) -> Option<(TestDatabase, Location, watch::Sender<Line>)> {
    if !kinds().contains(&Kind::Postgres) {
        return None;
    }
    let database = TestDatabase::new(Kind::Postgres, dir).await;
    let Some((server, url)) = behind(&database.url()) else {
        eprintln!("NOTICE: the server is not reached by TCP; that it is away or slow is not tested");
        return None;
    };
    let (line, watched) = watch::channel(Line::Up);
    let address = relay(server, watched, silent).await;
    let location = url.replace("{address}", &address.to_string()).parse().unwrap();
    Some((database, location, line))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_slow_at_the_start_does_not_prevent_it() {
    let dir = TempDir::new();
    // Each silent connection fails after 1.5 s.
    let silent = 2;
    let Some((_database, location, _line)) = relayed(dir.path(), silent).await else { return };
    let store = within("the store", Store::open(location)).await.unwrap();
    let scope = Scope::Organisation(organisation(1));
    assert_eq!(store.list(scope, Window::at(0, 10).into()).await.unwrap().total, 0);
    store.close().await;
}

#[test]
fn while_the_server_is_away_records_wait_and_lists_fail_soon() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let dir = TempDir::new();
        let Some((_database, location, line)) = relayed(dir.path(), 0).await else { return };
        let store = Store::open(location).await.unwrap();
        let scope = Scope::Organisation(organisation(1));
        let (journal, reader, _) = Journal::open(&dir.path().join("journal")).unwrap();
        let sink = Arc::new(store.clone());
        let mut writer = CdrWriter::new(reader).with_pause(Duration::from_millis(20));
        let writer = tokio::spawn(async move { writer.run(&*sink).await });
        for number in 0..150 {
            if number == 50 {
                line.send(Line::Down).unwrap();
            }
            assert!(journal.ended(ended(number)).unwrap().await, "a call never waits for the database");
        }
        // A reader waits a second and a half; on a busy machine the test may take longer, but never hang.
        let list = tokio::time::timeout(Duration::from_secs(30), store.list(scope, Window::default().into()));
        assert!(list.await.expect("an answer").is_err());
        line.send(Line::Up).unwrap();
        drop(journal);
        tokio::time::timeout(Duration::from_secs(30), writer).await.expect("stored within 30 s").unwrap();
        let page = store.list(scope, Window::at(0, 500).into()).await.unwrap();
        assert_eq!((page.total, page.items.len()), (150, 150));
        store.close().await;
    });
}

/// The server's address, and the URL with a place for another one.
fn behind(url: &str) -> Option<(String, String)> {
    let (head, tail) = url.split_once("://")?;
    let (authority, path) = tail.split_once('/')?;
    let (user, host) = authority.rsplit_once('@').map_or(("", authority), |(user, host)| (user, host));
    let user = if user.is_empty() { String::new() } else { format!("{user}@") };
    let server = if host.contains(':') { host.to_owned() } else { format!("{host}:5432") };
    // Without TLS the relay can read the first message.
    (!host.contains('%')).then(|| (server, format!("{head}://{user}{{address}}/{path}?sslmode=disable")))
}
