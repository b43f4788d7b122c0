//! One datagram.

use bytes::Bytes;
use sidetone_sip::message::{Datagram, Message, Rejected, Response, StatusCode, parse_datagram};

/// A message that passes the guard has the guaranteed properties and survives writing and parsing; the reply to a
/// refused one is at most 512 bytes larger.
pub fn sip_message(data: &[u8]) {
    match parse_datagram(Bytes::copy_from_slice(data)) {
        Ok(Datagram::Message(message)) => {
            check_views(&message);
            let written = message.to_bytes();
            assert_eq!(read(&written), message);
            assert_eq!(read(&written).to_bytes(), written);
            if let Message::Request(mut request) = message {
                request.note_source("[::ffff:192.0.2.1]:5060".parse().unwrap()).unwrap();
                let noted = read(&request.to_bytes());
                assert_eq!(noted.headers().via_top().unwrap(), request.via_top().unwrap());
                read(&Response::reply_to(&request, StatusCode::OK).to_bytes());
            }
        }
        Ok(Datagram::Ping | Datagram::Pong) => {
            assert!(data.iter().all(|byte| matches!(byte, b'\r' | b'\n')));
        }
        Err(Rejected { reply, .. }) => {
            if let Some(reply) = reply {
                assert!(reply.to_bytes().len() <= data.len() + 512, "an answer is no amplifier");
            }
        }
    }
}

/// The properties that the guard guarantees.
pub(crate) fn check_views(message: &Message) {
    let headers = message.headers();
    assert!(!headers.vias().unwrap().is_empty());
    headers.via_top().unwrap();
    headers.from().unwrap();
    headers.to().unwrap();
    headers.cseq().unwrap();
    headers.contacts().unwrap();
    assert!(!headers.call_id().is_empty());
    if let Message::Request(request) = message {
        request.parsed_uri().unwrap();
        assert_eq!(request.method(), &request.cseq().unwrap().method);
    }
    // The others may fail, not panic.
    let _ = (headers.routes(), headers.record_routes(), headers.rack(), headers.replaces());
    let _ = (headers.refer_to(), headers.referred_by(), headers.path(), headers.diversion());
    let _ = (headers.session_expires(), headers.min_se(), headers.expires(), headers.event());
    let _ = (headers.authorization().count(), headers.www_authenticate().count(), headers.reasons().count());
    let _ = (headers.p_asserted_identity(), headers.subscription_state(), headers.user_agent());
}

fn read(bytes: &[u8]) -> Message {
    match parse_datagram(Bytes::copy_from_slice(bytes)) {
        Ok(Datagram::Message(message)) => message,
        other => panic!("what was written is refused: {other:?}"),
    }
}
