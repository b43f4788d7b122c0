//! Recordings, traces and SIP messages of one node, read and deleted through another one.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::calls::{Talk, all_records, get, items, read};
use super::site::{Cluster, Node};
use crate::common::site::{found, within};
use crate::service::client::{Answer, Ask};
use crate::service::idempotency::ADMIN;

async fn ask(method: &'static str, node: &Node, path: &str, body: Option<Value>) -> Answer {
    let ask = Ask::new(method, format!("/api/v1{path}")).bearer(ADMIN);
    let ask = match body {
        Some(body) => ask.json(&body),
        None => ask,
    };
    ask.send(node.http()).await
}

/// A recorded call at a node that has ended: its id and the id of its complete recording.
async fn recorded(at: &Node, from: &'static str, to: &'static str) -> (String, String) {
    let talk = Talk::at(at, from, to).await;
    let live = items(&read(at.http(), "/calls").await);
    let call = live[0]["uuid"].as_str().unwrap().to_owned();
    let begun = ask("POST", at, &format!("/calls/{call}/record"), Some(json!({"action": "start"}))).await;
    assert_eq!(begun.status, 200, "{begun:?}");
    found("a second of the recording", async || {
        let path = at.data.path().join("recordings");
        let files =
            std::fs::read_dir(path).ok()?.flatten().filter_map(|dir| std::fs::read_dir(dir.path()).ok());
        let mut lengths = files.flatten().flatten().filter_map(|file| Some(file.metadata().ok()?.len()));
        lengths.any(|length| length > 64_000).then_some(())
    })
    .await;
    talk.caller.hang_up().await.unwrap();
    within("the end of the call", talk.placed).await.unwrap();
    let recording = found("the recording", async || {
        let all = items(&read(at.http(), &format!("/cdrs/{call}/recordings")).await);
        all.into_iter().find(|one| one["bytes"].as_u64() > Some(0) && !one["ended_at"].is_null())
    })
    .await;
    (call, recording["id"].as_str().unwrap().to_owned())
}

/// A response whose body is not text: its status, and its bytes after the head.
async fn bytes(node: &Node, path: &str, range: Option<&str>) -> (u16, Vec<u8>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(node.http()).await.unwrap();
    let range = range.map(|range| format!("Range: bytes={range}\r\n")).unwrap_or_default();
    let head = format!(
        "GET /api/v1{path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {ADMIN}\r\n{range}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    within("a file", stream.read_to_end(&mut answer)).await.unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
    (status, answer[end + 4..].to_vec())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_is_read_and_deleted_through_another_node() {
    let Some(cluster) = Cluster::start().await else { return };
    let (first, second, token) = cluster.two().await;
    let (call, recording) = recorded(&second, "1001", "1002").await;
    let audio = format!("/cdrs/{call}/recordings/{recording}/audio");
    let (status, own) = bytes(&second, &audio, None).await;
    assert_eq!((status, &own[..4]), (200, &b"RIFF"[..]));
    let (status, far) = bytes(&first, &audio, None).await;
    assert_eq!(status, 200);
    assert!(far == own, "{} bytes here, {} there", own.len(), far.len());
    let (status, part) = bytes(&first, &audio, Some("100-4099")).await;
    assert_eq!((status, part.as_slice()), (206, &own[100..4_100]));
    // Deleted through the other node, it is gone at both.
    let deleted = ask("DELETE", &first, &format!("/cdrs/{call}/recordings/{recording}"), None).await;
    assert_eq!(deleted.status, 204, "{deleted:?}");
    assert_eq!(ask("GET", &second, &audio, None).await.status, 404);

    // A node that is gone still has its files.
    let (call, recording) = recorded(&second, "1003", "1004").await;
    second.served.kill();
    first.sees(&token, &[("first", "up"), ("second", "gone")]).await;
    let audio = ask("GET", &first, &format!("/cdrs/{call}/recordings/{recording}/audio"), None).await;
    assert_eq!(audio.status, 404);
    assert!(audio.text.contains("is gone"), "{audio:?}");
    let deleted = ask("DELETE", &first, &format!("/cdrs/{call}/recordings/{recording}"), None).await;
    assert_eq!(deleted.status, 409, "{deleted:?}");
}

/// The only recording below a node's data.
fn recording_file(of: &Node) -> PathBuf {
    let directories = std::fs::read_dir(of.data.path().join("recordings")).unwrap();
    let files = directories.flat_map(|directory| std::fs::read_dir(directory.unwrap().path()).unwrap());
    let paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    assert_eq!(paths.len(), 1, "{paths:?}");
    paths[0].clone()
}

/// The download ends before its declared length, so the client can detect that it is incomplete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_download_from_a_node_that_falls_silent_ends() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let Some(cluster) = Cluster::start().await else { return };
    let (first, second, _) = cluster.two().await;
    let (call, recording) = recorded(&second, "1001", "1002").await;
    // Longer than all buffers between the disk and the client.
    std::fs::File::options().append(true).open(recording_file(&second)).unwrap().set_len(LONG).unwrap();
    let mut stream = tokio::net::TcpStream::connect(first.http()).await.unwrap();
    let head = format!(
        "GET /api/v1/cdrs/{call}/recordings/{recording}/audio HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
         Authorization: Bearer {ADMIN}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut read = vec![0; 64 * 1024];
    within("the beginning", stream.read_exact(&mut read)).await.unwrap();
    let beginning = String::from_utf8_lossy(&read).to_lowercase();
    assert!(beginning.contains(&format!("\r\ncontent-length: {LONG}\r\n")), "{}", &beginning[..400]);
    second.served.signal("STOP");
    // A client does not distinguish a closed connection from a reset one.
    let _ = within("the end of the download", stream.read_to_end(&mut read)).await;
    assert!((read.len() as u64) < LONG, "the node was not asked any more when it fell silent");
    // A client that resumes the download is told to retry later.
    let rest = format!("bytes={}-", read.len());
    let again = Ask::new("GET", format!("/api/v1/cdrs/{call}/recordings/{recording}/audio"));
    let again = again.bearer(ADMIN).header("Range", &rest).send(first.http()).await;
    assert!([404, 503].contains(&again.status), "{again:?}");
    second.served.signal("CONT");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_trace_of_a_leg_is_read_through_another_node() {
    let Some(mut cluster) = Cluster::start().await else { return };
    cluster.media = "trace = true\n";
    let (first, second, _) = cluster.two().await;
    let talk = Talk::at(&second, "1001", "1002").await;
    found("packets", async || {
        let live = items(&read(second.http(), "/calls").await);
        live[0]["legs"].as_array()?.iter().all(|leg| leg["codec"].is_string()).then_some(())
    })
    .await;
    talk.caller.hang_up().await.unwrap();
    within("the end of the call", talk.placed).await.unwrap();
    let (call, length) = found("the record", async || {
        let record = all_records(first.http()).await.pop()?;
        let call = record["call_uuid"].as_str()?;
        let quality = get(first.http(), &format!("/cdrs/{call}/quality")).await;
        let length = quality.json()["legs"][0]["trace"]["bytes"].as_u64()?;
        Some((call.to_owned(), length))
    })
    .await;
    let path = format!("/cdrs/{call}/trace?leg=a");
    // The end of the file is written after the record.
    let entire = async |node: &Node| {
        found("the entire trace", async || {
            let (status, trace) = bytes(node, &path, None).await;
            (status == 200 && trace.len() as u64 == length).then_some(trace)
        })
        .await
    };
    let own = entire(&second).await;
    assert!(own.starts_with(b"sidetone-trace"));
    assert!(entire(&first).await == own, "the same through the other node");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_are_not_stored_yet_are_read_through_another_node() {
    let Some(mut cluster) = Cluster::start().await else { return };
    cluster.more = "[signalling]\nkeep_days = 1\n".to_owned();
    let (first, second, _) = cluster.two().await;
    let talk = Talk::at(&second, "1001", "1002").await;
    talk.caller.hang_up().await.unwrap();
    within("the end of the call", talk.placed).await.unwrap();
    // They are stored half a minute after the end of the call.
    let call = found("the record", async || {
        Some(all_records(first.http()).await.pop()?["call_uuid"].as_str()?.to_owned())
    })
    .await;
    let path = format!("/cdrs/{call}/signalling");
    let own = found("messages that stay the same", async || {
        let own = read(second.http(), &path).await;
        assert_eq!(own.status, 200, "{own:?}");
        let far = read(first.http(), &path).await;
        if read(second.http(), &path).await.json() != own.json() {
            return None;
        }
        assert_eq!((far.status, far.json()), (200, own.json()));
        Some(own)
    })
    .await;
    assert!(own.json()["messages"].as_array().is_some_and(|messages| messages.len() >= 8), "{own:?}");
    let text = read(first.http(), &format!("{path}?format=text")).await;
    assert!(text.status == 200 && text.text.contains("BYE sip:"), "{text:?}");

    let unknown = read(first.http(), &format!("/cdrs/{}/signalling", uuid::Uuid::from_u128(7))).await;
    assert_eq!(unknown.status, 404);
}

/// Size of a recording whose download is still running when its node becomes unreachable.
const LONG: u64 = 256 * 1024 * 1024;
