//! Measures the cost of a message: parsing and writing an INVITE with SDP, compared with rsip on the same
//! bytes.

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sidetone_sip::message::{Datagram, Message, Name, parse_datagram};

/// An INVITE like that of a desk phone.
const INVITE: &str = "INVITE sip:+4989123456@sip.example.com;user=phone SIP/2.0\r\n\
    Via: SIP/2.0/UDP 192.0.2.10:5060;rport;branch=z9hG4bK-3f1c-8a1e-77c2\r\n\
    Max-Forwards: 70\r\n\
    From: \"Front Desk\" <sip:201@sip.example.com>;tag=9fxced76sl\r\n\
    To: <sip:+4989123456@sip.example.com;user=phone>\r\n\
    Call-ID: 3848276298220188511@192.0.2.10\r\n\
    CSeq: 2 INVITE\r\n\
    Contact: <sip:201@192.0.2.10:5060;transport=udp>\r\n\
    Allow: INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK, NOTIFY, REFER\r\n\
    Supported: replaces, 100rel, timer\r\n\
    User-Agent: Deskphone/4.2\r\n\
    Content-Type: application/sdp\r\n\
    Content-Length: 203\r\n\
    \r\n\
    v=0\r\no=- 20518 0 IN IP4 192.0.2.10\r\ns=-\r\nc=IN IP4 192.0.2.10\r\nt=0 0\r\n\
    m=audio 54400 RTP/AVP 8 0 101\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:0 PCMU/8000\r\n\
    a=rtpmap:101 telephone-event/8000\r\na=ptime:20\r\na=sendrecv\r\n";

fn read(bytes: &Bytes) -> Message {
    match parse_datagram(bytes.clone()) {
        Ok(Datagram::Message(message)) => message,
        other => unreachable!("the INVITE is sound: {other:?}"),
    }
}

fn message(criterion: &mut Criterion) {
    let bytes = Bytes::from_static(INVITE.as_bytes());
    let parsed = read(&bytes);
    let mut group = criterion.benchmark_group("sip_message");
    group.throughput(Throughput::Bytes(INVITE.len() as u64));
    group.bench_function("parse", |b| b.iter(|| read(black_box(&bytes))));
    group.bench_function("write", |b| b.iter(|| black_box(&parsed).to_bytes()));
    group.bench_function("parse_and_write", |b| b.iter(|| read(black_box(&bytes)).to_bytes()));
    group.bench_function("parse_and_views", |b| {
        b.iter(|| {
            let message = read(black_box(&bytes));
            let headers = message.headers();
            let tags = (headers.from().map(|from| from.params), headers.to().map(|to| to.params));
            black_box((headers.via_top(), tags, headers.cseq(), headers.header(Name::CallId).map(str::len)))
        });
    });
    group.bench_function("rsip_parse", |b| {
        b.iter(|| rsip::SipMessage::try_from(black_box(INVITE.as_bytes())))
    });
    group.bench_function("rsip_parse_and_write", |b| {
        b.iter(|| {
            rsip::SipMessage::try_from(black_box(INVITE.as_bytes())).map(|message| message.to_string())
        });
    });
    group.finish();
}

criterion_group!(benches, message);
criterion_main!(benches);
