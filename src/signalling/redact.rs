//! Removes from a SIP message the parts that must not be kept: credentials, media keys, passwords in URIs, and every
//! body that is not SDP.
//!
//! Works on lines, because a message that the parser refuses is kept as well. RFC 3261 §20 (headers), RFC 4568 §9.1
//! (`crypto`), RFC 8839 §5.4 (`ice-pwd`), RFC 4566 §5.12 (`k=`), RFC 3830 (`key-mgmt`).

use std::borrow::Cow;
use std::fmt::Write as _;

/// The parts of a message that are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// The start line.
    pub(super) summary: String,
    /// The method of a request; for a response, that of its CSeq.
    pub(super) method: String,
    /// The status of a response.
    pub(super) status: Option<u16>,
    pub(super) call_id: String,
    pub(super) cseq: String,
    pub(super) from: String,
    pub(super) to: String,
    /// The Content-Type, when there is a body.
    pub(super) body_type: Option<String>,
    pub(super) body_bytes: u64,
    /// The complete message, at most [`TEXT_MAX`] bytes.
    pub(super) text: String,
}

/// Returns the parts of a message that are kept.
pub(super) fn redacted(message: &[u8]) -> Kept {
    let (head, body) = split(message);
    let head = String::from_utf8_lossy(head);
    let mut lines = head.split('\n').map(|line| bounded(line.strip_suffix('\r').unwrap_or(line)));
    let start = lines.find(|line| !line.is_empty()).unwrap_or_default();
    let mut kept = Kept { summary: shortened(without_passwords(&start), LINE_MAX), ..Kept::default() };
    kept.status = kept.summary.strip_prefix("SIP/2.0 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let lines: Vec<Cow<'_, str>> = lines.collect();
    let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
    kept.read(&lines);
    let is_note = matches!(kept.method.as_str(), "INFO" | "MESSAGE");
    let mut text = format!("{}\r\n", kept.summary);
    let mut removing = false;
    for line in &lines {
        // The rest is cut below.
        if text.len() > TEXT_MAX {
            break;
        }
        // A line that begins with a space continues the header before it (RFC 3261 §7.3.1).
        let continues = line.starts_with([' ', '\t']);
        if continues && removing {
            continue;
        }
        let name = line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
        removing = !continues && (is_secret(&name) || is_note && matches!(name.as_str(), "subject" | "s"));
        if removing {
            let (written, value) = line.split_once(':').unwrap_or((line, ""));
            let scheme = value.trim_start().split(' ').next().filter(|word| SCHEMES.contains(word));
            let space = if scheme.is_some() { " " } else { "" };
            let _ = write!(text, "{written}: {}{space}{REMOVED}\r\n", scheme.unwrap_or_default());
        } else {
            text.push_str(&without_passwords(line));
            text.push_str("\r\n");
        }
    }
    text.push_str("\r\n");
    if !body.is_empty() {
        kept.body_bytes = body.len() as u64;
        if kept.has_sdp(is_note, &lines) {
            text.push_str(&sdp(&String::from_utf8_lossy(body)));
        } else {
            let kind = kept.body_type.as_deref().unwrap_or("no Content-Type");
            let _ = write!(text, "[{} bytes of {kind} not kept]\r\n", body.len());
        }
    }
    kept.text = shortened(text, TEXT_MAX);
    kept
}

impl Kept {
    /// Reads the headers that the summary contains.
    fn read(&mut self, lines: &[&str]) {
        for line in lines {
            let Some((name, value)) = line.split_once(':') else { continue };
            let field = match name.trim().to_ascii_lowercase().as_str() {
                "call-id" | "i" => &mut self.call_id,
                "cseq" => &mut self.cseq,
                "from" | "f" => &mut self.from,
                "to" | "t" => &mut self.to,
                "content-type" | "c" => self.body_type.get_or_insert_default(),
                _ => continue,
            };
            if field.is_empty() && !line.starts_with([' ', '\t']) {
                *field = shortened(without_passwords(value.trim()), LINE_MAX);
            }
        }
        self.method = match self.status {
            Some(_) => self.cseq.split_whitespace().nth(1).unwrap_or_default().to_owned(),
            None => self.summary.split(' ').next().unwrap_or_default().to_owned(),
        };
    }

    /// Whether its body is kept: SDP that is not compressed. A note's text is never kept, whatever its type.
    fn has_sdp(&self, is_note: bool, lines: &[&str]) -> bool {
        let kind = self.body_type.as_deref().unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let packed = |line: &&str| {
            let name = line.split(':').next().unwrap_or_default().trim();
            name.eq_ignore_ascii_case("content-encoding") || name.eq_ignore_ascii_case("e")
        };
        kind.eq_ignore_ascii_case("application/sdp") && !is_note && !lines.iter().any(packed)
    }
}

/// A line that is not longer than [`SCANNED_MAX`]. Of a longer one only the name is kept, because a part of its value
/// may be a part of a password, and the time of the search for URIs is quadratic in the length.
fn bounded(line: &str) -> Cow<'_, str> {
    if line.len() <= SCANNED_MAX {
        return Cow::Borrowed(line);
    }
    let name = line.split([':', ' ']).next().filter(|name| name.len() <= LINE_MAX).unwrap_or_default();
    Cow::Owned(format!("{name}: {CUT}"))
}

/// The headers of a message and its body, which an empty line separates.
fn split(message: &[u8]) -> (&[u8], &[u8]) {
    let leading = message.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let message = message.get(leading..).unwrap_or_default();
    let mut at = 0;
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        let next = at + line.len();
        if matches!(line, b"\r\n" | b"\n") {
            return (message.get(..at).unwrap_or_default(), message.get(next..).unwrap_or_default());
        }
        at = next;
    }
    (message, &[])
}

/// Whether the value of a header is a credential. Challenges are kept: without a response they prove nothing.
fn is_secret(name: &str) -> bool {
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// A header line or a start line, without the passwords of its URIs.
fn without_passwords(line: &str) -> String {
    let mut rest = line;
    let mut text = String::with_capacity(line.len());
    while let Some(at) = rest.find(':') {
        let (before, after) = rest.split_at(at + 1);
        text.push_str(before);
        rest = after;
        let scheme = before.trim_end_matches(':').rsplit(|c: char| !c.is_ascii_alphanumeric()).next();
        let is_uri = after.starts_with("//")
            || scheme
                .is_some_and(|scheme| SIP_SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)));
        if !is_uri {
            continue;
        }
        // The user part ends with the last @ before the end of the host; unescaped characters that devices send stay
        // inside it.
        let end =
            after.find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"')).unwrap_or(after.len());
        let (uri, _) = after.split_at(end);
        let Some(mut user_end) = uri.find('@') else { continue };
        while let Some(more) = uri.get(user_end + 1..).and_then(|host| {
            let host = host.split([',', ';', '?']).next()?;
            host.find('@')
        }) {
            user_end += 1 + more;
        }
        let (user, tail) = after.split_at(user_end);
        match user.split_once(':') {
            Some((name, _)) => {
                let _ = write!(text, "{name}:{REMOVED}");
            }
            None => text.push_str(user),
        }
        rest = tail;
    }
    text.push_str(rest);
    without_embedded(text)
}

/// Removes credentials that a URI contains as a header (RFC 3261 §19.1.1): `<sip:a@b?Authorization=…>`.
fn without_embedded(line: String) -> String {
    const NAME: &str = "authorization=";
    let lower = line.to_ascii_lowercase();
    if !lower.contains(NAME) {
        return line;
    }
    let mut text = String::with_capacity(line.len());
    let mut from = 0;
    while let Some(at) = lower.get(from..).and_then(|rest| rest.find(NAME)) {
        let value = from + at + NAME.len();
        let rest = line.get(value..).unwrap_or_default();
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '&' | '>')).unwrap_or(rest.len());
        text.push_str(line.get(from..value).unwrap_or_default());
        text.push_str(REMOVED);
        from = value + end;
    }
    text.push_str(line.get(from..).unwrap_or_default());
    text
}

/// SDP without media keys.
fn sdp(body: &str) -> String {
    let mut text = String::with_capacity(body.len());
    for line in body.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)) {
        let lower = line.trim_start().to_ascii_lowercase();
        let kept = if lower.starts_with("a=crypto:") {
            // The tag and the suite, without the keys.
            line.split_whitespace().take(2).collect::<Vec<_>>().join(" ") + " "
        } else if let Some(name) = SDP_SECRETS.iter().find(|name| lower.starts_with(**name)) {
            (*name).to_owned()
        } else {
            text.push_str(line);
            text.push_str("\r\n");
            continue;
        };
        let _ = write!(text, "{kept}{REMOVED}\r\n");
    }
    // The last line of a body ends with a line break, too.
    text.truncate(text.trim_end().len());
    text.push_str("\r\n");
    text
}

/// A text of at most `max` bytes, with a mark where it was cut.
fn shortened(mut text: String, max: usize) -> String {
    if text.len() > max {
        let end = text.floor_char_boundary(max.saturating_sub(CUT.len()));
        text.truncate(end);
        text.push_str(CUT);
    }
    text
}

/// The most bytes that are kept of a message.
pub(super) const TEXT_MAX: usize = 8 << 10;
/// The most bytes of a header in a summary.
const LINE_MAX: usize = 256;
/// The most bytes of a line that is searched for URIs.
const SCANNED_MAX: usize = 2 << 10;
const REMOVED: &str = "[removed]";
const CUT: &str = "[cut]";
/// Parts of the names of headers that contain credentials.
const SECRET_NAMES: [&str; 8] =
    ["authorization", "authentication-info", "password", "passwd", "secret", "token", "cookie", "api-key"];
/// Authentication schemes, which are kept.
const SCHEMES: [&str; 4] = ["Digest", "Basic", "Bearer", "digest"];
const SIP_SCHEMES: [&str; 2] = ["sip", "sips"];
const SDP_SECRETS: [&str; 3] = ["a=ice-pwd:", "a=key-mgmt:", "k="];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn invite(headers: &str, body: &str) -> Kept {
        redacted(
            format!(
                "INVITE sip:200:hunter2@pbx.example.com;x=1 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1:5060\r\n{headers}\
                 CSeq: 2 INVITE\r\n\r\n{body}"
            )
            .as_bytes(),
        )
    }

    #[test]
    fn credentials_are_removed_and_the_rest_is_kept() {
        for (name, line, kept) in [
            (
                "digest",
                "Authorization: Digest username=\"100\", response=\"hunter2\"",
                "Authorization: Digest [removed]",
            ),
            ("proxy", "proxy-AUTHORIZATION:hunter2", "proxy-AUTHORIZATION: [removed]"),
            (
                "folded",
                "Authorization: Digest a=1,\r\n response=\"hunter2\"",
                "Authorization: Digest [removed]",
            ),
            ("info", "Authentication-Info: rspauth=\"hunter2\"", "Authentication-Info: [removed]"),
            ("own", "X-Auth-Token: hunter2", "X-Auth-Token: [removed]"),
            (
                "uri",
                "Contact: \"a:b\" <sip:100:hunter2@192.0.2.1:5060>",
                "<sip:100:[removed]@192.0.2.1:5060>",
            ),
            ("sips", "Route: <SIPS:u:hunter2@h;lr>, <sip:x@h>", "<SIPS:u:[removed]@h;lr>, <sip:x@h>"),
            ("at", "Contact: <sip:u:p@hunter2@host>", "<sip:u:[removed]@host>"),
            ("list", "Route: sip:a@b,sip:c:hunter2@d", "sip:a@b,sip:c:[removed]@d"),
            ("http", "Call-Info: <https://u:hunter2@host/x>", "<https://u:[removed]@host/x>"),
            (
                "header of a URI",
                "Refer-To: <sip:a@b?Authorization=hunter2&X=1>",
                "?Authorization=[removed]&X=1>",
            ),
            ("plain", "Contact: <sip:100@[2001:db8::1]:5060;ob>", "<sip:100@[2001:db8::1]:5060;ob>"),
            ("challenge", "WWW-Authenticate: Digest nonce=\"n\"", "WWW-Authenticate: Digest nonce=\"n\""),
        ] {
            let text = invite(&format!("{line}\r\n"), "").text;
            assert!(!text.contains("hunter2"), "{name}: {text}");
            assert!(text.contains(kept), "{name}: {text}");
            assert!(text.contains("\r\nCSeq: 2 INVITE\r\n\r\n"), "{name}: {text}");
        }
    }

    #[test]
    fn sdp_is_kept_without_its_keys_and_other_bodies_only_by_type_and_length() {
        let keys = "v=0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:hunter2|2^20\r\na=ice-ufrag:abcd\r\n\
                    a=ice-pwd:hunter2\r\nk=clear:hunter2\r\nA=KEY-MGMT:mikey hunter2\r\na=sendrecv\r\n";
        let kept = invite("c: application/SDP ;charset=utf-8\r\n", keys);
        assert!(!kept.text.contains("hunter2"), "{}", kept.text);
        for line in ["a=crypto:1 AES_CM_128_HMAC_SHA1_80 [removed]", "a=ice-ufrag:abcd", "a=sendrecv"] {
            assert!(kept.text.contains(&format!("\r\n{line}\r\n")), "{}", kept.text);
        }
        assert_eq!(kept.body_bytes, keys.len() as u64);
        for (headers, body) in [
            ("Content-Type: application/dtmf-relay\r\n", "Signal=hunter2\r\n"),
            ("Content-Type: application/sdp\r\nContent-Encoding: gzip\r\n", "hunter2"),
            ("", "hunter2"),
        ] {
            let kept = invite(headers, body);
            assert!(!kept.text.contains("hunter2"), "{}", kept.text);
            assert!(kept.text.contains(&format!("[{} bytes of ", body.len())), "{}", kept.text);
        }
        let note = "INFO sip:a@b SIP/2.0\r\nSubject: hunter2\r\nContent-Type: application/sdp\r\n\r\nhunter2";
        let reply = "SIP/2.0 200 OK\r\nCSeq: 1 MESSAGE\r\ns: hunter2\r\nc: application/sdp\r\n\r\nhunter2";
        for text in [note, reply] {
            assert!(!redacted(text.as_bytes()).text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn the_summary_is_read() {
        let kept = redacted(
            b"\r\nSIP/2.0 486 Busy Here\r\ni: abc@h\r\nf: <sip:1:x@h>;tag=a\r\nTo: <sip:2@h>;tag=b\r\n\
              CSeq: 7 INVITE\r\n\r\n",
        );
        assert_eq!(
            (kept.status, kept.method.as_str(), kept.cseq.as_str()),
            (Some(486), "INVITE", "7 INVITE")
        );
        assert_eq!((kept.call_id.as_str(), kept.from.as_str()), ("abc@h", "<sip:1:[removed]@h>;tag=a"));
        assert_eq!((kept.to.as_str(), kept.body_type), ("<sip:2@h>;tag=b", None));
        assert_eq!(invite("", "").summary, "INVITE sip:200:[removed]@pbx.example.com;x=1 SIP/2.0");
        let long = invite(&format!("X-Long: {}\r\n", "é".repeat(500)).repeat(10), "");
        assert!(long.text.len() <= TEXT_MAX && long.text.ends_with("[cut]"));
    }

    /// A part of a long value may be a part of a password.
    #[test]
    fn of_a_very_long_line_the_name_is_kept() {
        let at = "@".repeat(60_000);
        let kept = invite(&format!("Contact: <sip:u:hunter2{at}h>\r\nX: <sip:c:hunter2@d>\r\n"), "");
        assert!(kept.text.contains("\r\nContact: [cut]\r\nX: <sip:c:[removed]@d>\r\n"), "{}", kept.text);
    }

    proptest! {
        #[test]
        fn fuzz_any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            prop_assert!(redacted(&bytes).text.len() <= TEXT_MAX);
        }

        #[test]
        fn fuzz_no_password_of_a_uri_is_kept(user in "[a-z0-9+;=]{1,8}", password in "Z[A-Za-z0-9&=+$.]{3,12}",
                                             before in "[ -;=?-~]{0,20}", after in "[;?&a-z0-9=]{0,20}") {
            let line = format!("X: {before} <sip:{user}:{password}@host{after}>\r\n");
            let kept = invite(&line, "").text.contains(&format!(":{password}"));
            prop_assert!(!kept);
        }
    }
}
