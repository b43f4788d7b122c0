//! Recognises RTP and SIP by the first bytes of a payload.

/// Whether a payload looks like RTP: version 2, and no payload type that collides with RTCP (RFC 5761 §4).
#[inline]
pub(super) fn is_rtp(payload: &[u8]) -> bool {
    matches!(payload, [0x80..=0xbf, second, ..] if !(192..=223).contains(second))
}

/// A payload without the leading empty lines, which serve as keep-alives and sometimes precede a message (RFC
/// 3261 §7.5).
pub(super) fn unpadded(payload: &[u8]) -> &[u8] {
    let begin = payload.iter().take(PADDING_MAX).take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    payload.get(begin..).unwrap_or_default()
}

/// Whether a payload begins with a SIP request line or status line (RFC 3261 §7.1, §7.2).
pub(super) fn is_sip(payload: &[u8]) -> bool {
    if !payload.first().is_some_and(u8::is_ascii_uppercase) {
        return false;
    }
    if payload.starts_with(b"SIP/2.0 ") {
        return true;
    }
    let line = payload.iter().take(START_LINE_LEN_MAX).position(|byte| matches!(byte, b'\r' | b'\n'));
    line.and_then(|len| payload.get(..len)).is_some_and(|line| line.ends_with(b" SIP/2.0"))
}

/// Line ends before a message.
const PADDING_MAX: usize = 64;
/// The longest SIP start line that is recognised.
const START_LINE_LEN_MAX: usize = 1_024;
