//! W10: hostile responses. Time is paused and advances only while all tasks wait, so fifteen seconds pass immediately.

use std::time::Duration;

use bytes::Bytes;
use sidetone::outbound_http::{Answer, Budget, End, OutboundHttp, PostError};
use tokio::time::Instant;

use crate::common::elsewhere::{Elsewhere, Server};
use crate::common::receiver::{Reply, Then};

const LIMIT: usize = 64 * 1024;
const BUDGET: Budget = Budget { total: Duration::from_secs(15), answer_bytes: LIMIT };

/// The result of a request to such a server, its duration, and the bytes that the server could send.
async fn asked(server: Server, reply: Reply) -> (Result<Answer, PostError>, Duration, usize) {
    let elsewhere = Elsewhere::with(server, &["crm.example"], move |_| reply.clone())
        .name("crm.example", &[&["8.8.8.8"]]);
    let client = elsewhere.client(&OutboundHttp::default(), &[]);
    let from = Instant::now();
    let result = client.post("https://crm.example/", &[], Bytes::from_static(b"{}"), BUDGET).await;
    (result, from.elapsed(), elsewhere.seen().sent_bytes())
}

fn head(more: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{more}").into_bytes()
}

/// Bytes that may be in buffers and packets when the reader stops.
const ON_THE_WAY: usize = 256 * 1024;

#[tokio::test(start_paused = true)]
async fn ten_gigabytes_are_left_where_they_are() {
    let endless = Then::Endless(vec![b'x'; 16 * 1024], Duration::ZERO);
    for framing in [
        "Content-Length: 10737418240\r\n\r\n",
        "Connection: close\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n280000000\r\n",
    ] {
        let (result, took, sent_bytes) =
            asked(Server::Https, Reply::raw(head(framing)).then(endless.clone())).await;
        let answer = result.unwrap();
        assert_eq!((answer.status, answer.end), (200, End::TooLarge), "{framing}");
        assert!(answer.body.len() <= LIMIT, "{framing}: {} bytes", answer.body.len());
        assert!(sent_bytes <= LIMIT + ON_THE_WAY, "{framing}: {sent_bytes} bytes left the server");
        assert!(took < BUDGET.total);
    }
}

#[tokio::test(start_paused = true)]
async fn exactly_as_much_as_is_read_is_whole() {
    for (len, end) in [(LIMIT, End::Whole), (LIMIT + 1, End::TooLarge)] {
        let (result, ..) = asked(Server::Https, Reply::new(200, "text/plain", vec![b'x'; len])).await;
        let answer = result.unwrap();
        assert_eq!((answer.body.len(), answer.end), (LIMIT, end));
    }
}

#[tokio::test(start_paused = true)]
async fn a_drip_ends_when_the_time_is_over() {
    let drip = |bytes: &[u8]| Then::Endless(bytes.to_vec(), Duration::from_secs(1));
    // In the body.
    let begun = Reply::raw(head("Content-Length: 1000\r\n\r\n")).then(drip(b"x"));
    let (result, took, _) = asked(Server::Https, begun).await;
    assert_eq!(result.unwrap().end, End::Late);
    assert_eq!(took.as_secs(), 15);
    // In the head.
    let (result, took, _) = asked(Server::Https, Reply::raw(head("X-Slow: ")).then(drip(b"x"))).await;
    assert_eq!(result.unwrap_err().to_string(), "no answer within 15 s (waiting for the answer)");
    assert_eq!(took.as_secs(), 15);
    // Before the head.
    let (result, took, _) = asked(Server::Https, Reply::never()).await;
    assert_eq!(result.unwrap_err().to_string(), "no answer within 15 s (waiting for the answer)");
    assert_eq!(took.as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_headers_are_not_read() {
    let many = "X-A: b\r\n".repeat(100_000);
    let (result, _, sent_bytes) = asked(Server::Https, Reply::raw(head(&format!("{many}\r\n")))).await;
    assert!(matches!(result, Err(PostError::Answer(_) | PostError::Closed)), "{result:?}");
    assert!(sent_bytes <= LIMIT + ON_THE_WAY, "{sent_bytes}");
    let (result, ..) =
        asked(Server::Https, Reply::raw(head(&format!("X-A: {}\r\n\r\n", "b".repeat(20_000))))).await;
    assert!(matches!(result, Err(PostError::Answer(_))), "{result:?}");
    let endless = Then::Endless(b"X-A: b\r\n".repeat(1_000), Duration::ZERO);
    let (result, ..) = asked(Server::Https, Reply::raw(head("")).then(endless)).await;
    assert!(matches!(result, Err(PostError::Answer(_))), "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_packed_stays_packed() {
    // A gzip header, and data that would expand to much more.
    let packed = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &[0; 1_000]].concat();
    let reply =
        Reply::with(200, &[("Content-Encoding", "gzip"), ("Content-Type", "application/json")], &packed);
    let (result, ..) = asked(Server::Https, reply).await;
    let answer = result.unwrap();
    assert_eq!((&answer.body[..], answer.end), (&packed[..], End::Whole));
}

#[tokio::test(start_paused = true)]
async fn interim_answers_are_bounded() {
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    // A hundred interim responses are few bytes, and a final response follows.
    let few = [interim.repeat(100).as_bytes(), b"HTTP/1.1 204 No Content\r\n\r\n"].concat();
    let (result, ..) = asked(Server::Https, Reply::raw(few)).await;
    assert_eq!(result.unwrap().status, 204);
    let endless = Then::Endless(interim.repeat(100).into_bytes(), Duration::ZERO);
    let (result, _, sent_bytes) = asked(Server::Https, Reply::raw("").then(endless)).await;
    assert!(matches!(result, Err(PostError::Answer(_))), "{result:?}");
    assert!(sent_bytes <= LIMIT + ON_THE_WAY, "{sent_bytes}");
}

#[tokio::test(start_paused = true)]
async fn connections_that_end_early_say_so() {
    let (result, ..) = asked(Server::Https, Reply::raw("")).await;
    assert_eq!(result.unwrap_err().to_string(), "the connection was closed before an answer came");
    let (result, ..) = asked(Server::Https, Reply::raw("HTTP/1.1 200 OK\r\nContent-")).await;
    assert!(result.is_err(), "{result:?}");
    let (result, ..) = asked(Server::Https, Reply::raw(head("Content-Length: 10\r\n\r\nhalf"))).await;
    assert_eq!(result.unwrap().end, End::Broken);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_http_is_no_answer() {
    for junk in
        ["SSH-2.0-OpenSSH_9.2\r\n", "\0\0\0\0\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n"]
    {
        let (result, ..) = asked(Server::Https, Reply::raw(junk)).await;
        assert!(matches!(result, Err(PostError::Answer(_))), "{junk}: {result:?}");
    }
    let both = head("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n");
    let (result, ..) = asked(Server::Https, Reply::raw(both)).await;
    assert!(!matches!(result, Ok(Answer { end: End::Whole, .. })), "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_tls_is_no_connection() {
    for junk in
        [b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), vec![0xff; 100_000], vec![0x16, 3, 3, 0xff, 0xff]]
    {
        let len = junk.len();
        let (result, took, _) = asked(Server::Junk(junk), Reply::never()).await;
        assert!(matches!(result, Err(PostError::Tls(_) | PostError::Timeout { .. })), "{len}: {result:?}");
        assert!(took <= BUDGET.total);
    }
    let (result, took, _) = asked(Server::Silent, Reply::never()).await;
    assert_eq!(result.unwrap_err().to_string(), "no answer within 15 s (waiting for TLS)");
    assert_eq!(took.as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_seconds_or_a_date_of_the_answers_own_clock() {
    let date = "Sat, 21 Nov 2026 12:00:00 GMT";
    let cases = [
        (vec![("Retry-After", "120")], Some(120)),
        (vec![("Retry-After", " 0 ")], Some(0)),
        (vec![("Retry-After", "Sat, 21 Nov 2026 12:05:00 GMT"), ("Date", date)], Some(300)),
        (vec![("Retry-After", "Sat, 21 Nov 2026 11:00:00 GMT"), ("Date", date)], Some(0)),
        (vec![("Retry-After", "Sat, 21 Nov 2026 12:05:00 GMT")], None),
        (vec![("Retry-After", "soon")], None),
        (vec![("Retry-After", "-1")], None),
        (vec![("Retry-After", "")], None),
        (vec![("Retry-After", "99999999999999999999999")], None),
        (vec![], None),
    ];
    for (headers, seconds) in cases {
        let (result, ..) = asked(Server::Https, Reply::with(503, &headers, "busy")).await;
        assert_eq!(result.unwrap().retry_after.map(|after| after.as_secs()), seconds, "{headers:?}");
    }
}
