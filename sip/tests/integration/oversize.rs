//! Datagrams of more than 16 KiB are dropped; shorter ones are parsed.
#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop where it fails"
)]

use std::time::Instant;

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_sip::flow::{Flow, ListenerId};
use sidetone_sip::message::{Host, Rejection};
use sidetone_sip::transaction::{LayerConfig, Local};
use sidetone_sip::ua::{Event, Input, Output, Ua, UaConfig};

/// A REGISTER of exactly `length` bytes.
fn register(length: usize) -> Vec<u8> {
    let whole = |body: usize| {
        format!(
            "REGISTER sip:a.test SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.2;branch=z9hG4bK1\r\nMax-Forwards: 70\r\n\
             From: <sip:1@a.test>;tag=1\r\nTo: <sip:1@a.test>\r\nCall-ID: 1\r\nCSeq: 1 REGISTER\r\n\
             Content-Length: {body:06}\r\n\r\n{}",
            "x".repeat(body)
        )
    };
    whole(length - whole(0).len()).into_bytes()
}

#[test]
fn a_datagram_of_more_than_16_kib_is_dropped_without_an_answer() {
    for (length, is_taken) in [(1_000, true), (16_384, true), (16_385, false), (65_507, false)] {
        let local = Local::fixed(Host::V4([192, 0, 2, 1].into()), None);
        let mut ua = Ua::new(UaConfig::new(LayerConfig::new(local)), StdRng::seed_from_u64(1));
        let flow = Flow::udp(ListenerId(0), ([192, 0, 2, 2], 5060).into());
        let bytes = register(length);
        assert_eq!(bytes.len(), length);
        ua.handle_input(Instant::now(), Input::Datagram { flow, bytes: bytes.into() });
        let outputs: Vec<Output> = std::iter::from_fn(|| ua.poll_output()).collect();
        let right = match outputs.as_slice() {
            [Output::Event(Event::Request { .. })] => is_taken,
            [Output::Rejected { reason: Rejection::TooLarge, .. }] => !is_taken,
            _ => false,
        };
        assert!(right, "{length} bytes: {outputs:?}");
        assert_eq!(ua.transactions().1, usize::from(is_taken));
    }
}
