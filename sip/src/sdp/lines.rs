//! The lines of a session description where they lie, nothing copied.
//!
//! [`Lines::read`] takes what `sdp-types` would take, for a third of the time; where it finds nothing to take, that
//! parser says why.

/// A session description line by line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lines<'a> {
    pub(super) username: &'a str,
    pub(super) session_id: &'a str,
    pub(super) version: u64,
    /// The maker's address, of the `o=` line.
    pub(super) maker: &'a str,
    /// Empty when there is none.
    pub(super) name: &'a str,
    pub(super) connection: Option<&'a str>,
    pub(super) attributes: Vec<Attribute<'a>>,
    pub(super) sections: Vec<Section<'a>>,
}

/// One `m=` section.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Section<'a> {
    pub(super) kind: &'a str,
    pub(super) port: u16,
    pub(super) protocol: &'a str,
    pub(super) formats: &'a str,
    /// The first one of its own.
    pub(super) connection: Option<&'a str>,
    pub(super) attributes: Vec<Attribute<'a>>,
}

/// The name of an `a=` line, and what stands behind its colon.
pub(super) type Attribute<'a> = (&'a str, Option<&'a str>);

impl<'a> Lines<'a> {
    /// The lines of `text`; `None` when it is no description, or has no origin of its own.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let mut rest = text.split("\r\n").filter(|line| !line.is_empty());
        let version = key_and_value(rest.next()?)?;
        if version != (b'v', "0") {
            return None;
        }
        let (mut origin, mut name, mut connection) = (None, None, None);
        let (mut attributes, mut sections) = (Vec::new(), Vec::<Section<'_>>::new());
        for line in rest {
            let (key, value) = key_and_value(line)?;
            match (key, sections.last_mut()) {
                (b'm', _) => sections.push(Section::read(value)?),
                (b'a', Some(section)) => section.attributes.push(attribute(value)),
                (b'a', None) => attributes.push(attribute(value)),
                (b'c', Some(section)) => {
                    let address = address(value)?;
                    section.connection.get_or_insert(address);
                }
                (b'c', None) if connection.is_none() => connection = Some(address(value)?),
                (b'o', None) if origin.is_none() => origin = Some(self::origin(value)?),
                (b's', None) if name.is_none() => name = Some(value),
                // What may stand there once stands there again.
                (b'c' | b'o' | b's', None) => return None,
                _ => {}
            }
        }
        let (username, session_id, version, maker) = origin?;
        let name = name.unwrap_or_default();
        Some(Lines { username, session_id, version, maker, name, connection, attributes, sections })
    }
}

impl<'a> Section<'a> {
    /// `audio 49170 RTP/AVP 0 8`, or with a number of ports behind the first.
    fn read(value: &'a str) -> Option<Self> {
        let mut fields = value.splitn(4, ' ');
        let (kind, ports) = (fields.next()?, fields.next()?);
        let (protocol, formats) = (fields.next()?, fields.next()?);
        let (port, count) = ports.split_once('/').map_or((ports, None), |(port, count)| (port, Some(count)));
        if count.is_some_and(|count| count.parse::<u16>().is_err()) {
            return None;
        }
        let port = port.parse().ok()?;
        Some(Section { kind, port, protocol, formats, connection: None, attributes: Vec::new() })
    }
}

/// A line has one letter and an equals sign in front, and no byte that ends lines elsewhere.
fn key_and_value(line: &str) -> Option<(u8, &str)> {
    let (key, value) = line.split_once('=')?;
    let [key] = key.as_bytes() else { return None };
    let is_clean = !line.bytes().fold(false, |is_odd, byte| is_odd | matches!(byte, 0 | b'\r' | b'\n'));
    is_clean.then_some((*key, value))
}

/// User name, session id, version and address of an `o=` line.
fn origin(value: &str) -> Option<(&str, &str, u64, &str)> {
    let mut fields = value.split(' ').filter(|field| !field.is_empty());
    let (username, session_id) = (fields.next()?, fields.next()?);
    let version = fields.next()?.parse().ok()?;
    Some((username, session_id, version, network(fields)?))
}

/// The address of a `c=` line.
fn address(value: &str) -> Option<&str> {
    network(value.split(' ').filter(|field| !field.is_empty()))
}

/// The address behind the types of network and address, with which a line ends.
fn network<'a>(mut fields: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (network, kind, address) = (fields.next()?, fields.next()?, fields.next()?);
    (fields.next().is_none() && is_token(network) && is_token(kind)).then_some(address)
}

fn attribute(value: &str) -> Attribute<'_> {
    value.split_once(':').map_or((value, None), |(name, value)| (name, Some(value)))
}

/// Whether a text is a token (RFC 8866 §9).
fn is_token(text: &str) -> bool {
    let is_token_byte = |byte| matches!(byte, 0x21 | 0x23..=0x27 | 0x2a..=0x2b | 0x2d..=0x2e | 0x30..=0x39 | 0x41..=0x5a | 0x5e..=0x7e);
    !text.is_empty() && text.bytes().all(is_token_byte)
}
