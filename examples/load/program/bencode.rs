//! Bencoding, the encoding of rtpengine's control protocol: only strings and dictionaries of strings.

/// Appends a dictionary of strings; keys must be in order.
pub(crate) fn write_dictionary(to: &mut Vec<u8>, entries: &[(&str, &str)]) {
    to.push(b'd');
    for (key, value) in entries {
        for text in [key, value] {
            to.extend_from_slice(text.len().to_string().as_bytes());
            to.push(b':');
            to.extend_from_slice(text.as_bytes());
        }
    }
    to.push(b'e');
}

/// Returns the string of a key in the outermost dictionary.
pub(crate) fn text_of<'a>(bytes: &'a [u8], wanted: &str) -> Option<&'a str> {
    let mut rest = bytes.strip_prefix(b"d")?;
    while !rest.starts_with(b"e") {
        let (key, after) = text(rest)?;
        if key == wanted.as_bytes() {
            return std::str::from_utf8(text(after)?.0).ok();
        }
        rest = skip(after, DEPTH_MAX)?;
    }
    None
}

/// A string and the bytes after it.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = bytes.iter().take(LENGTH_DIGITS_MAX + 1).position(|byte| *byte == b':')?;
    let length = std::str::from_utf8(bytes.get(..colon)?).ok()?.parse().ok()?;
    bytes.get(colon + 1..)?.split_at_checked(length)
}

/// The bytes after a value of any kind.
fn skip(bytes: &[u8], depth: u32) -> Option<&[u8]> {
    match bytes.first()? {
        b'i' => {
            let end = bytes.iter().position(|byte| *byte == b'e')?;
            bytes.get(end + 1..)
        }
        b'd' | b'l' => {
            let mut rest = bytes.get(1..)?;
            let depth = depth.checked_sub(1)?;
            while !rest.starts_with(b"e") {
                rest = skip(rest, depth)?;
            }
            rest.get(1..)
        }
        _ => Some(text(bytes)?.1),
    }
}

const DEPTH_MAX: u32 = 16;
const LENGTH_DIGITS_MAX: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_it_reads() {
        let mut bytes = Vec::new();
        write_dictionary(&mut bytes, &[("call-id", "1"), ("command", "offer"), ("sdp", "v=0\r\n")]);
        assert_eq!(bytes, b"d7:call-id1:17:command5:offer3:sdp5:v=0\r\ne");
        assert_eq!(text_of(&bytes, "sdp"), Some("v=0\r\n"));
        assert_eq!(text_of(&bytes, "offer"), None, "a value is no key");
    }

    #[test]
    fn skips_what_is_between_and_never_overruns() {
        let answer = b"d7:createdi1700000000e4:tagsd1:al1:b1:cee6:result2:oke";
        assert_eq!(text_of(answer, "result"), Some("ok"));
        for cut in 0..answer.len() {
            assert_eq!(text_of(&answer[..cut], "sdp"), None, "{cut}");
        }
        for broken in [&b"d99999999999:x"[..], b"d3:sdpi1ee", b"d3:sdp9:abce", b"i1e", b"", b"d-1:a1:be"] {
            assert_eq!(text_of(broken, "sdp"), None, "{broken:?}");
        }
        let deep = [b"d1:a".as_slice(), &[b'l'; 4_000]].concat();
        assert_eq!(text_of(&deep, "sdp"), None);
    }
}
