//! The head of a trace: a few lines of text that identify the leg and contain its session's settings.

use crate::session::{SessionConfig, StrictSource};
use crate::stats::Hundredths;

/// The first bytes of every trace of this version.
pub const MAGIC: &[u8] = b"sidetone-trace 1\n";

/// Identifies the leg of a trace, and its settings for the verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceHead {
    /// The call.
    pub call: String,
    /// Which party's leg: `a` or `b`.
    pub leg: String,
    /// The node that the leg was on.
    pub node: String,
    /// The version of the rules for this leg.
    pub rules: String,
    /// Wall time of the session's time zero, in microseconds since the Unix epoch.
    pub zero_us: i64,
    /// The session's settings.
    pub config: SessionConfig,
}

impl TraceHead {
    /// The lines, with the empty line that ends them.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut text = String::from_utf8_lossy(MAGIC).into_owned();
        let mut line = |name: &str, value: &str| {
            text.push_str(name);
            text.push(' ');
            text.extend(value.chars().filter(|c| !c.is_control()).take(VALUE_CHARS_MAX));
            text.push('\n');
        };
        line("call", &self.call);
        line("leg", &self.leg);
        line("node", &self.node);
        line("rules", &self.rules);
        line("zero_us", &self.zero_us.to_string());
        // All settings are listed, so that a new one does not compile until the trace includes it. Audio
        // evidence needs payloads, which a trace does not have. A traced leg is our own, never an observed
        // one.
        let SessionConfig {
            symmetric,
            strict_source,
            thresholds,
            own_addresses,
            audio_evidence: _,
            observed: _,
        } = &self.config;
        line("symmetric", flag(*symmetric));
        line("strict_source", strict_source.as_str());
        for address in own_addresses.iter().take(OWN_ADDRESSES_MAX) {
            line("own_address", &address.to_string());
        }
        let defaults = crate::verdict::Thresholds::default();
        for name in crate::verdict::Thresholds::NAMES {
            // Settings with their default are omitted.
            if let Some(value) = thresholds.get(name).filter(|value| defaults.get(name) != Some(*value)) {
                line(name, &value.0.to_string());
            }
        }
        line("strict_address", flag(thresholds.strict_address));
        text.push('\n');
        text.into_bytes()
    }

    /// Reads the lines; `Ok(None)` when `bytes` end before they do. Also returns the head's length in bytes.
    ///
    /// Lines with unknown names are skipped, because a later version may write more.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<(TraceHead, usize)>, &'static str> {
        let known = bytes.len().min(MAGIC.len());
        if bytes.get(..known) != MAGIC.get(..known) {
            return Err("it does not begin like a trace of this version");
        }
        let window = bytes.get(..HEAD_BYTES_MAX).unwrap_or(bytes);
        let Some(end) = window.windows(2).position(|pair| pair == b"\n\n") else {
            let whole = window.len() == HEAD_BYTES_MAX;
            return if whole { Err("its head has no end") } else { Ok(None) };
        };
        let lines = window.get(MAGIC.len()..end.max(MAGIC.len())).unwrap_or_default();
        let text = std::str::from_utf8(lines).map_err(|_| "its head is no text")?;
        // Traces without this line are from a version whose sessions all used this rule.
        let before = SessionConfig { strict_source: StrictSource::Observed, ..SessionConfig::default() };
        let mut head = TraceHead { config: before, ..TraceHead::default() };
        for line in text.lines() {
            let (name, value) = line.split_once(' ').ok_or("a line of its head has no value")?;
            head.set(name, value).ok_or("a value of its head cannot be read")?;
        }
        Ok(Some((head, end + 2)))
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "call" => value.clone_into(&mut self.call),
            "leg" => value.clone_into(&mut self.leg),
            "node" => value.clone_into(&mut self.node),
            "rules" => value.clone_into(&mut self.rules),
            "zero_us" => self.zero_us = value.parse().ok()?,
            "strict_source" => self.config.strict_source = StrictSource::from_name(value)?,
            "symmetric" => self.config.symmetric = read_flag(value)?,
            "own_address" if self.config.own_addresses.len() < OWN_ADDRESSES_MAX => {
                self.config.own_addresses.push(value.parse().ok()?);
            }
            "strict_address" => self.config.thresholds.strict_address = read_flag(value)?,
            _ if self.config.thresholds.get(name).is_some() => {
                let hundredths: i64 = value.parse().ok()?;
                self.config.thresholds.set(name, hundredths as f64 / 100.0).ok()?;
                // The exact value in the text must not be rounded.
                if self.config.thresholds.get(name) != Some(Hundredths(hundredths)) {
                    return None;
                }
            }
            _ => {}
        }
        Some(())
    }
}

const fn flag(value: bool) -> &'static str {
    if value { "1" } else { "0" }
}

fn read_flag(value: &str) -> Option<bool> {
    match value {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// More than any head needs.
const HEAD_BYTES_MAX: usize = 16_384;
/// Own addresses in a head.
const OWN_ADDRESSES_MAX: usize = 64;
/// The longest value; ids of calls and nodes are much shorter.
const VALUE_CHARS_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Thresholds;

    fn head() -> TraceHead {
        let mut thresholds = Thresholds { strict_address: true, ..Thresholds::default() };
        thresholds.set("loss_pct", 0.07).unwrap();
        thresholds.set("tail_ms", 9_999_999.99).unwrap();
        TraceHead {
            call: "01890000-0000-7000-8000-000000000001".to_owned(),
            leg: "b".to_owned(),
            node: "west 1".to_owned(),
            rules: "1".to_owned(),
            zero_us: -5,
            config: SessionConfig {
                symmetric: false,
                strict_source: StrictSource::Any,
                thresholds,
                own_addresses: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
                audio_evidence: false,
                observed: false,
            },
        }
    }

    #[test]
    fn a_head_survives() {
        for head in [head(), TraceHead::default()] {
            let mut bytes = head.write();
            let len = bytes.len();
            for end in 0..len {
                assert_eq!(TraceHead::read(&bytes[..end]), Ok(None), "cut at {end}");
            }
            bytes.extend(b"what follows");
            assert_eq!(TraceHead::read(&bytes), Ok(Some((head, len))));
        }
    }

    #[test]
    fn every_threshold_survives() {
        for name in Thresholds::NAMES {
            for hundredths in [0, 1, 33, 999_999_999] {
                let mut head = head();
                head.config.thresholds.set(name, f64::from(hundredths) / 100.0).unwrap();
                let read = TraceHead::read(&head.write()).unwrap().unwrap().0;
                assert_eq!(read, head, "{name}");
            }
        }
    }

    #[test]
    fn what_is_no_head() {
        let cases: [(&str, &[u8]); 5] = [
            ("a capture", &[0xd4, 0xc3, 0xb2, 0xa1]),
            ("another version", b"sidetone-trace 2\n\n"),
            ("a line without a value", b"sidetone-trace 1\ncall\n\n"),
            ("no number", b"sidetone-trace 1\nzero_us x\n\n"),
            ("no text", b"sidetone-trace 1\ncall \xff\n\n"),
        ];
        for (name, bytes) in cases {
            assert!(TraceHead::read(bytes).is_err(), "{name}");
        }
        let endless = [MAGIC, &vec![b'x'; HEAD_BYTES_MAX]].concat();
        assert!(TraceHead::read(&endless).is_err());
        let old = TraceHead::read(b"sidetone-trace 1\nlater thing\n\n").unwrap().unwrap().0;
        assert_eq!(old.config.strict_source, StrictSource::Observed);
    }

    #[test]
    fn a_name_cannot_break_a_line() {
        let head = TraceHead { call: "x\nsymmetric 0\u{0}".to_owned(), ..TraceHead::default() };
        let read = TraceHead::read(&head.write()).unwrap().unwrap().0;
        assert_eq!((read.call.as_str(), read.config.symmetric), ("xsymmetric 0", true));
    }
}
