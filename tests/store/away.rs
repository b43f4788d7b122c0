//! D3 on PostgreSQL: a server that becomes unreachable and recovers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sidetone::cdr::journal::Journal;
use sidetone::cdr::writer::CdrWriter;
use sidetone_model::access::Scope;
use sidetone_model::page::Window;
use sidetone_model::ports::CdrLog;
use sidetone_store::{Location, Store};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::common::database::{Kind, TestDatabase, kinds};
use crate::common::records::{TempDir, ended, organisation};

/// The state of the connection between the store and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Up,
    /// Connections are closed, new ones immediately.
    Down,
}

/// A relay to `server` whose state is the value of the channel.
async fn relay(server: String, line: watch::Receiver<Line>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            let (server, mut line) = (server.clone(), line.clone());
            tokio::spawn(async move {
                if *line.borrow_and_update() == Line::Down {
                    return;
                }
                let mut far = TcpStream::connect(server).await.unwrap();
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                    _ = line.wait_for(|line| *line == Line::Down) => {}
                }
            });
        }
    });
    address
}

#[test]
fn while_the_server_is_away_records_wait_and_lists_fail_soon() {
    if !kinds().contains(&Kind::Postgres) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let dir = TempDir::new();
        let database = TestDatabase::new(Kind::Postgres, dir.path()).await;
        let Some((server, url)) = behind(&database.url()) else {
            eprintln!("NOTICE: the server is not reached by TCP; that it goes away is not tested");
            return;
        };
        let (line, watched) = watch::channel(Line::Up);
        let address = relay(server, watched).await;
        let location: Location = url.replace("{address}", &address.to_string()).parse().unwrap();
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
    (!host.contains('%')).then(|| (server, format!("{head}://{user}{{address}}/{path}")))
}
