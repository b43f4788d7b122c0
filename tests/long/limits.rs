//! Datagrams as large as UDP carries (catalogue T6).

use std::net::UdpSocket;
use std::time::Duration;

use crate::common::records::TempDir;
use crate::long::check::{Checks, note};
use crate::long::engine::{Engine, Start, apply, organisation};
use crate::long::office::{Office, address};

#[test]
#[ignore = "long: half a minute"]
fn long_t6_oversize_datagrams() {
    let mut checks = Checks::default();
    let dir = TempDir::new();
    apply(dir.path(), &organisation(1, "load.test", 1_000, 4));
    let mut engine = Engine::start(dir.path(), &Start::default());
    let office = Office::open(&engine, 50, "load.test", 1_000, 4);
    office.register();
    let mut wrong = Vec::new();
    for (at, length) in [1_500, 8_192, 16_384, 16_385, 20_000, 32_768, 65_000, 65_507].into_iter().enumerate()
    {
        for (kind, bytes) in [("header", padded(length, false)), ("body", padded(length, true))] {
            let answer = asked(&engine, 2 * at as u32 + u32::from(kind == "body"), &bytes);
            note(format!("{length} octets, long {kind}: {answer:?}"));
            let right = match (length, answer) {
                (..=16_384, _) | (_, None) => true,
                (_, Some(status)) => status == 513,
            };
            if !right {
                wrong.push(format!("{length} {kind}: {answer:?}"));
            }
        }
    }
    checks.check("T6 oversize", wrong.is_empty(), format!("{wrong:?}"), "> 16 KiB: 513 or silence");
    // A truncated message is not processed as a complete one.
    let mut cut = padded(65_507, true);
    cut.truncate(30_000);
    let answer = asked(&engine, 99, &cut);
    checks.check(
        "T6 cut",
        answer.is_none_or(|status| status >= 400),
        format!("{answer:?}"),
        "4xx or silence",
    );
    let alive = engine.is_alive() && office.phones[0].register().is_some_and(|answer| answer.status == 200);
    checks.check("T6 afterwards", alive, alive, "a phone registers");
    checks.end();
}

/// A REGISTER of exactly this many octets.
fn padded(length: usize, in_body: bool) -> Vec<u8> {
    let whole = |pad: usize| {
        let (header, body) =
            if in_body { ("y".to_owned(), "z".repeat(pad)) } else { ("y".repeat(pad), String::new()) };
        format!(
            "REGISTER sip:load.test SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bK{length}{in_body};rport\r\n\
             Max-Forwards: 70\r\nFrom: <sip:1000@load.test>;tag={length}\r\nTo: <sip:1000@load.test>\r\n\
             Call-ID: {length}{in_body}\r\nCSeq: 1 REGISTER\r\nSubject: {header}\r\n\
             Content-Length: {:05}\r\n\r\n{body}",
            body.len()
        )
    };
    let bare = whole(1).len() - 1;
    whole(length - bare).into_bytes()
}

fn asked(engine: &Engine, index: u32, bytes: &[u8]) -> Option<u16> {
    let socket = UdpSocket::bind((address(71, index), 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    socket.send_to(bytes, engine.sip).unwrap();
    let mut buffer = [0; 4_096];
    let length = socket.recv(&mut buffer).ok()?;
    String::from_utf8_lossy(&buffer[..length]).strip_prefix("SIP/2.0 ")?.get(..3)?.parse().ok()
}
