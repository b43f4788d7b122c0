//! The fields of a SIP message that identify its dialog, found without parsing the message (RFC 3261 §12).

/// The fields that identify the dialog of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Peek<'m> {
    pub(super) call_id: &'m [u8],
    pub(super) from_tag: &'m [u8],
    pub(super) to_tag: &'m [u8],
    pub(super) is_response: bool,
    /// Whether it belongs to an INVITE transaction, including its ACK and CANCEL.
    pub(super) invites: bool,
}

/// Reads the fields; `None` without a Call-ID. If a header continues on a second line, only the first is read.
pub(super) fn peek(message: &[u8]) -> Option<Peek<'_>> {
    let mut found = Peek::default();
    let leading = message.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let mut lines = message.get(leading..)?.split(|byte| *byte == b'\n').take(LINES_MAX);
    let start = lines.next()?;
    found.is_response = start.get(..4).is_some_and(|begin| begin.eq_ignore_ascii_case(b"SIP/"));
    for line in lines.map(<[u8]>::trim_ascii) {
        if line.is_empty() {
            break;
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        let is = |known: [&str; 2]| {
            known.iter().any(|known| name.trim_ascii().eq_ignore_ascii_case(known.as_bytes()))
        };
        if is(["call-id", "i"]) {
            found.call_id = value;
        } else if is(["from", "f"]) {
            found.from_tag = tag(value);
        } else if is(["to", "t"]) {
            found.to_tag = tag(value);
        } else if is(["cseq", "cseq"]) {
            let method = value.rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
            found.invites = [&b"INVITE"[..], b"ACK", b"CANCEL"].contains(&method);
        }
    }
    (!found.call_id.is_empty()).then_some(found)
}

/// The tag of an address header; empty without one.
fn tag(address: &[u8]) -> &[u8] {
    let params =
        address.iter().rposition(|byte| *byte == b'>').and_then(|at| address.get(at..)).unwrap_or(address);
    let mut params = params.split(|byte| *byte == b';').skip(1);
    let tag = params.find_map(|param| {
        let at = param.iter().position(|byte| *byte == b'=')?;
        let (name, value) = param.split_at(at);
        name.trim_ascii()
            .eq_ignore_ascii_case(b"tag")
            .then(|| value.get(1..).unwrap_or_default().trim_ascii())
    });
    tag.unwrap_or_default()
}

/// The largest number of lines that are read.
const LINES_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_dialog_of_a_message_is_read() {
        let request =
            b"\r\nACK sip:a SIP/2.0\r\nFROM: \"x;tag=no\" <sip:a;tag=no>;x=1;Tag=one\r\nt:sip:b;tag=two\r\n\
                        i : abc@d\r\nCSeq: 1 ACK\r\n\r\nCall-ID: body";
        let expected =
            Peek { call_id: b"abc@d", from_tag: b"one", to_tag: b"two", is_response: false, invites: true };
        assert_eq!(peek(request), Some(expected));
        let response = b"SIP/2.0 200 OK\nCall-ID: x\nTo: <sip:b>\nCSeq: 2 BYE\n\n";
        let expected = Peek { call_id: b"x", is_response: true, ..Peek::default() };
        assert_eq!(peek(response), Some(expected));
        assert_eq!(peek(b"OPTIONS sip:a SIP/2.0\r\n\r\nCall-ID: x\r\n"), None);
    }

    proptest! {
        #[test]
        fn fuzz_any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = peek(&bytes);
        }
    }
}
