//! The torture messages of RFC 4475 and RFC 5118 and the pitfalls of the message layer, sent twice to a running
//! engine: it still responds, and it still connects calls.

#[path = "../../sip/tests/corpus/mod.rs"]
#[expect(dead_code, reason = "what becomes of each message is the message layer's own test")]
mod corpus;

use sidetone_phone::CallOutcome;

use self::corpus::{RFC4475, RFC5118};

use crate::common::site::{DOMAIN, PASSWORD, Site, answering, talking, within};
use crate::common::wire::Wire;

/// Datagrams that broke other stacks: empty and cut ones, wrong lengths, floods of headers, addresses in every form.
fn pitfalls() -> Vec<(&'static str, Vec<u8>)> {
    let options = |extra: &str| {
        format!(
            "OPTIONS sip:{DOMAIN} SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:5099;branch=z9hG4bKpit{}\r\n\
             From: <sip:a@{DOMAIN}>;tag=1\r\nTo: <sip:{DOMAIN}>\r\nCall-ID: pit{}\r\nCSeq: 1 OPTIONS\r\n{extra}\r\n",
            extra.len(),
            extra.len(),
        )
        .into_bytes()
    };
    let mut cases = vec![
        ("nothing", Vec::new()),
        ("one octet", vec![0]),
        ("a keep-alive", b"\r\n\r\n".to_vec()),
        ("only line ends", b"\r\n".repeat(2_000)),
        ("zeros", vec![0; 1_500]),
        ("RTP", vec![0x80; 172]),
        ("STUN", [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12]].concat()),
        ("a start line alone", b"OPTIONS sip:x SIP/2.0".to_vec()),
        ("headers without an end", options("X: 1")),
        ("a length beyond all numbers", options("Content-Length: 99999999999999999999999\r\n")),
        ("two lengths", options("Content-Length: 0\r\nContent-Length: 5\r\n")),
        ("a length below zero", options("l: -1\r\n")),
        ("a header without a colon", options("Nonsense\r\n")),
        ("an injected line", options("Subject: a\rVia: b\r\n")),
        ("latin-1", [options("Subject: ").as_slice(), b"\xe9\xff\r\n"].concat()),
        ("a fold at the start", options(" folded\r\n")),
        ("an endless number of hops", options("Max-Forwards: 4294967296\r\n")),
        ("an IPv6 reference cut short", options("Contact: <sip:[2001:db8::1>\r\n")),
        ("an open quote", options("Contact: \"\\\r\n")),
        ("thousands of headers", options(&"X: y\r\n".repeat(10_000))),
        ("thousands of vias", options(&"Via: SIP/2.0/UDP a\r\n".repeat(2_500))),
        ("a list of commas", options(&format!("Contact: {}\r\n", ",".repeat(50_000)))),
        ("a long line", options(&format!("Subject: {}\r\n", "a".repeat(60_000)))),
        (
            "a response to nobody",
            b"SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bKx\r\n\r\n".to_vec(),
        ),
    ];
    // Every prefix of one valid message.
    let whole = options("Content-Length: 0\r\n");
    cases.extend((0..whole.len()).map(|length| ("a cut message", whole[..length].to_vec())));
    cases
}

async fn assert_alive(wire: &mut Wire, after: &str) {
    let ask = wire.ask("OPTIONS", "1001", &format!("sip:{DOMAIN}"));
    assert_eq!(wire.exchange(&ask).await.status().as_u16(), 200, "after {after}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_engine_outlives_the_corpus_twice() {
    let site = Site::start().await;
    let (caller, _callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    let (sender, mut wire) = (Wire::open(site.sip).await, Wire::open(site.sip).await);
    let pitfalls = pitfalls();
    for _ in 0..2 {
        for case in RFC4475.iter().chain(&RFC5118) {
            sender.send_bytes(case.bytes).await;
            assert_alive(&mut wire, &format!("§{} {}", case.section, case.name)).await;
        }
        for (name, bytes) in &pitfalls {
            sender.send_bytes(bytes).await;
            // The many prefixes of one message count as one case.
            if *name != "a cut message" {
                assert_alive(&mut wire, name).await;
            }
        }
        assert_alive(&mut wire, "all of it").await;
    }
    let outcome = within("a call", caller.call(talking("1002", 1_500))).await.unwrap();
    let CallOutcome { status, received, .. } = outcome;
    assert!(status == 200 && received > 20, "{status} {received}");
    let records = site.records(1).await;
    assert_eq!(
        (&records[0]["hangup_cause"], &records[0]["loss_pct"]),
        (&"NORMAL_CLEARING".into(), &0.0.into())
    );
}

/// The same, each message alone and with credentials where it has room for them: the code after authentication is as
/// robust as the code before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sound_requests_with_odd_parts_pass_the_gate_and_harm_nobody() {
    let site = Site::start().await;
    let callee = site.phone("1002", answering()).await;
    let mut wire = Wire::open(site.sip).await;
    let targets = [
        ("sip:%31%30%30%32@acme.test", 488),
        ("sip:1002;phone-context=x@acme.test;user=phone", 488),
        ("sip:nobody%00@acme.test", 404),
        ("sip:user;par=u%40example.net@acme.test", 404),
        ("sip:acme.test", 404),
        ("tel:+442071230000", 404),
    ];
    // No codec in common: the number was understood, and no phone rings.
    let sdp = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 18\r\n";
    for (uri, expected) in targets {
        let mut ask = wire.ask("INVITE", "1001", uri).body("application/sdp", sdp);
        ask.to = format!("<sip:1002@{DOMAIN}>");
        let answer = wire.authorized(&ask, "1001", PASSWORD).await;
        assert_eq!(answer.status().as_u16(), expected, "{uri}");
    }
    site.idle().await;
    assert_eq!(*callee.calls().borrow(), sidetone_phone::Calls::default());
}
