//! A minimal HTTP client for the demo's own API: one request per connection.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The response is not JSON over HTTP/1.1.
    #[error("read {path}: the answer is not JSON")]
    Answer {
        /// The requested path.
        path: String,
    },
    /// The connection failed.
    #[error("read {path}: {source}")]
    Io {
        /// The requested path.
        path: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The status is not the expected success.
    #[error("read {path}: the API answered {status}")]
    Refused {
        /// The requested path.
        path: String,
        /// The status.
        status: u16,
    },
}

/// Reads `path` of the API at `address` with `key`.
///
/// # Errors
/// When the connection fails or takes too long, the status is not 200, or the body is not JSON.
pub async fn get(address: SocketAddr, path: &str, key: &str) -> Result<Value, ClientError> {
    ask(address, path, key, None, 200).await
}

/// Sends `body` to `path` of the API at `address` with `key`.
///
/// # Errors
/// Like [`get`]; the status has to be 202.
pub(super) async fn post(
    address: SocketAddr,
    path: &str,
    key: &str,
    body: &Value,
) -> Result<Value, ClientError> {
    ask(address, path, key, Some(body.to_string()), 202).await
}

/// Sends a command to `path` of the API at `address` with `key`.
///
/// # Errors
/// Like [`get`]; the status has to be 204.
pub(super) async fn command(address: SocketAddr, path: &str, key: &str) -> Result<(), ClientError> {
    ask(address, path, key, Some("{}".to_owned()), 204).await.map(drop)
}

async fn ask(
    address: SocketAddr,
    path: &str,
    key: &str,
    body: Option<String>,
    expected: u16,
) -> Result<Value, ClientError> {
    let slow = || io::Error::from(io::ErrorKind::TimedOut);
    let answer = tokio::time::timeout(ANSWER_MAX, exchange(address, path, key, body)).await;
    let answer = answer
        .unwrap_or_else(|_| Err(slow()))
        .map_err(|source| ClientError::Io { path: path.to_owned(), source })?;
    let (status, body) = parse(&answer).ok_or_else(|| ClientError::Answer { path: path.to_owned() })?;
    if status != expected {
        return Err(ClientError::Refused { path: path.to_owned(), status });
    }
    if body.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(body).map_err(|_| ClientError::Answer { path: path.to_owned() })
}

async fn exchange(address: SocketAddr, path: &str, key: &str, body: Option<String>) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    let (method, content) = match body {
        None => ("GET", "\r\n".to_owned()),
        Some(body) => {
            let length = body.len();
            ("POST", format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"))
        }
    };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
         Connection: close\r\n{content}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
    Ok(answer)
}

/// The status and the body of a complete response.
fn parse(answer: &[u8]) -> Option<(u16, &[u8])> {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = std::str::from_utf8(answer.get(..end)?).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some((status, answer.get(end + 4..)?))
}

/// How long a response may take.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// The longest response; a page of records is far shorter.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        type Case<'a> = (&'a [u8], Option<(u16, &'a [u8])>);
        let cases: [Case<'_>; 5] = [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", Some((200, b"{}"))),
            (b"HTTP/1.1 401 Unauthorized\r\n\r\n", Some((401, b""))),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", None),
            (b"SIP/2.0 200 OK\r\n\r\n", None),
            (b"", None),
        ];
        for (answer, expected) in cases {
            assert_eq!(parse(answer), expected, "{answer:?}");
        }
    }
}
