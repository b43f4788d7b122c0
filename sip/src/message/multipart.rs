//! Bodies of several parts (RFC 2046 §5.1, RFC 5621): finds the part of a type, such as the session description beside
//! the ISUP message of SIP-I or the location of an emergency call.

use memchr::memmem;

use crate::message::{Headers, Name};

/// The first part of `media_type` in a body of the type `multipart/…`, also inside a part that is such a body itself;
/// `None` if there is none or the boundary cannot be read.
pub fn part<'b>(headers: &Headers, body: &'b [u8], media_type: &str) -> Option<&'b [u8]> {
    find(headers.header(Name::ContentType)?, body, media_type, NESTED_MAX)
}

fn find<'b>(content_type: &str, body: &'b [u8], wanted: &str, depth: usize) -> Option<&'b [u8]> {
    if is_type(content_type, wanted) {
        return Some(body);
    }
    let (_, params) = content_type.split_once(';').filter(|_| is_multipart(content_type))?;
    let boundary = boundary(params)?;
    let depth = depth.checked_sub(1)?;
    parts(body, &boundary).find_map(|part| {
        let (head, content) = split(part)?;
        // Without the header it is plain text (RFC 2046 §5.1).
        find(content_type_of(head)?, content, wanted, depth)
    })
}

/// The parts between the delimiters, at most [`PARTS_MAX`].
fn parts<'b>(body: &'b [u8], boundary: &str) -> impl Iterator<Item = &'b [u8]> {
    let delimiter = format!("--{boundary}");
    let mut starts: Vec<usize> = memmem::find_iter(body, delimiter.as_bytes())
        // A delimiter begins a line.
        .filter(|at| at.checked_sub(1).is_none_or(|before| body.get(before) == Some(&b'\n')))
        .take(PARTS_MAX + 1)
        .collect();
    starts.push(body.len());
    let length = delimiter.len();
    let ends: Vec<usize> = starts.iter().skip(1).copied().collect();
    starts.into_iter().zip(ends).filter_map(move |(start, end)| {
        let part = body.get(start + length..end)?;
        // The last delimiter has two more hyphens.
        if part.starts_with(b"--") {
            return None;
        }
        let line = memchr::memchr(b'\n', part)?;
        let part = part.get(line + 1..)?;
        // The line break before a delimiter belongs to the delimiter.
        let part = part.strip_suffix(b"\n").unwrap_or(part);
        Some(part.strip_suffix(b"\r").unwrap_or(part))
    })
}

/// The headers of a part and its content; `None` if the part is cut off in its headers.
fn split(part: &[u8]) -> Option<(&[u8], &[u8])> {
    // Without headers a part begins with the empty line.
    for start in [&b"\r\n"[..], b"\n"] {
        if let Some(content) = part.strip_prefix(start) {
            return Some((&[], content));
        }
    }
    for gap in [&b"\r\n\r\n"[..], b"\n\n"] {
        if let Some(at) = memmem::find(part, gap) {
            return Some((part.get(..at)?, part.get(at + gap.len()..)?));
        }
    }
    None
}

fn content_type_of(head: &[u8]) -> Option<&str> {
    let lines = head.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    lines.filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
        let name = name.trim();
        (name.eq_ignore_ascii_case("content-type") || name.eq_ignore_ascii_case("c")).then(|| value.trim())
    })
}

fn essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

fn is_type(content_type: &str, wanted: &str) -> bool {
    essence(content_type).eq_ignore_ascii_case(wanted)
}

fn is_multipart(content_type: &str) -> bool {
    essence(content_type).get(..10).is_some_and(|start| start.eq_ignore_ascii_case("multipart/"))
}

/// The boundary, at most 70 characters (RFC 2046 §5.1.1).
fn boundary(params: &str) -> Option<String> {
    let params = params.split(';').filter_map(|param| param.split_once('='));
    let mut found = params.filter(|(name, _)| name.trim().eq_ignore_ascii_case("boundary"));
    let (_, value) = found.next()?;
    let value = value.trim().trim_matches('"');
    (!value.is_empty() && value.len() <= BOUNDARY_LEN_MAX).then(|| value.to_owned())
}

/// Parts that are read.
const PARTS_MAX: usize = 16;
/// How deep a part may be.
const NESTED_MAX: usize = 3;
const BOUNDARY_LEN_MAX: usize = 70;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(content_type: &str) -> Headers {
        let mut headers = Headers::new();
        headers.push(Name::ContentType, content_type).unwrap();
        headers
    }

    #[test]
    fn the_part_of_a_type_is_found() {
        let mixed = "multipart/mixed;boundary=\"b 1\"";
        for (name, content_type, body, expected) in [
            ("alone", "application/sdp", "v=0\r\n", Some("v=0\r\n")),
            ("another type", "text/plain", "v=0\r\n", None),
            (
                "first of two",
                mixed,
                "--b 1\r\nContent-Type: application/sdp\r\n\r\nv=0\r\ns=-\r\n\r\n--b 1\r\nContent-Type: application/isup\r\n\r\n\u{1}\r\n--b 1--\r\n",
                Some("v=0\r\ns=-\r\n"),
            ),
            (
                "second, with parameters, a preamble and bare line feeds",
                mixed,
                "preamble\n--b 1\nContent-Type: application/isup;version=itu-t92+\n\n--b 1 no\n--b 1\nc: Application/SDP;x=y\n\nv=0\n--b 1--",
                Some("v=0"),
            ),
            (
                "nested",
                "Multipart/Mixed; boundary=a",
                "--a\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: application/sdp\r\n\r\nv=0\r\n--b--\r\n--a--\r\n",
                Some("v=0"),
            ),
            ("none of it", mixed, "--b 1\r\nContent-Type: application/isup\r\n\r\nv=0\r\n--b 1--\r\n", None),
            ("plain text", mixed, "--b 1\r\n\r\nv=0\r\n--b 1--\r\n", None),
            ("cut off", mixed, "--b 1\r\nContent-Type: application/sdp", None),
            ("no boundary", "multipart/mixed", "--\r\nContent-Type: application/sdp\r\n\r\nv=0", None),
            ("after the end", mixed, "--b 1--\r\nContent-Type: application/sdp\r\n\r\nv=0", None),
        ] {
            let found = part(&headers(content_type), body.as_bytes(), "application/sdp");
            assert_eq!(found.map(|part| std::str::from_utf8(part).unwrap()), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn fuzz_any_body_is_read_without_a_panic(body in "(--a|\r\n|\n|:|Content-Type: (application/sdp|multipart/x;boundary=a)|v|--){0,60}") {
            let whole = headers("multipart/mixed;boundary=a");
            let found = part(&whole, body.as_bytes(), "application/sdp");
            prop_assert!(found.is_none_or(|part| part.len() < body.len()));
        }
    }
}
