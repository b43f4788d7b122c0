//! Reads the call log of the provisioned organisation over HTTP.

use std::io::{Read as _, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::program::error::LoadError;
use crate::program::provision::KEY;

/// The compared fields of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    /// The number that called.
    pub(crate) caller: String,
    /// Whether the engine ended the call after a crash.
    pub(crate) crashed: bool,
}

/// Reads every record, oldest first.
///
/// # Errors
/// There is no response, or it is not a call log.
pub(crate) fn read_call_log(http: SocketAddrV4) -> Result<Vec<Read>, LoadError> {
    let mut records = Vec::new();
    loop {
        let path = format!("/api/v1/cdrs?limit={PAGE}&offset={}&sort=started_at&order=asc", records.len());
        let page: Value = serde_json::from_str(&get(http, &path)?).map_err(|_| no_log("no JSON"))?;
        let items = page.get("items").and_then(Value::as_array).ok_or_else(|| no_log("no items"))?;
        let word = |item: &Value, name| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        records.extend(items.iter().map(|item| Read {
            caller: word(item, "caller_number"),
            crashed: word(item, "hangup_cause") == "CRASH",
        }));
        if items.len() < PAGE {
            return Ok(records);
        }
    }
}

/// The body of a response with status 200. HTTP/1.0 has neither chunks nor persistent connections.
fn get(http: SocketAddrV4, path: &str) -> Result<String, LoadError> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::V4(http), HTTP_MAX)?;
    stream.set_read_timeout(Some(HTTP_MAX))?;
    let head = format!(
        "GET {path} HTTP/1.0\r\nHost: {http}\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| no_log("no answer"))?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    if status != "200" {
        return Err(no_log(&format!("status {status}: {body}")));
    }
    Ok(body.to_owned())
}

fn no_log(why: &str) -> LoadError {
    LoadError::SetUp(format!("the call log cannot be read: {why}"))
}

/// Records per response; the API has no larger pages.
const PAGE: usize = 500;
const HTTP_MAX: Duration = Duration::from_secs(30);
