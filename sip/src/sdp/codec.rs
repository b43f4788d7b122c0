//! Codecs in SDP: `a=rtpmap`, `a=fmtp`, the static table, and the policy of a party.

use std::fmt;

use crate::text::Text;

/// The codecs of our own offers and answers, best first. Others are only relayed between two parties that share them.
pub const OWN: [&str; 7] = ["opus", "G722", "PCMA", "PCMU", "L16", "CN", "telephone-event"];

/// Formats that refer to other payload types by number (RFC 2198, RFC 4588, RFC 5109, RFC 8627). They are not relayed,
/// because the numbers of the two legs can differ.
const REFERRING: [&str; 8] =
    ["flexfec", "flexfec-03", "parityfec", "raptorfec", "red", "rtx", "ulpfec", "1d-interleaved-parityfec"];
/// Parameters of `a=fmtp` whose values make payload formats of one name incompatible, with the default of an absent
/// parameter: RFC 4867 §8.3.1 and RFC 5577 §4.2.
const CONFIGURATIONS: [(&str, &[(&str, &str)]); 3] =
    [("AMR", &AMR_CONFIGURATION), ("AMR-WB", &AMR_CONFIGURATION), ("G7221", &[("bitrate", "")])];
const AMR_CONFIGURATION: [(&str, &str); 4] =
    [("octet-align", "0"), ("crc", "0"), ("robust-sorting", "0"), ("interleaving", "")];

/// The payload types with a fixed meaning (RFC 3551 §6, tables 4 and 5): number, name, clock rate, channels.
const STATIC: [(u8, &str, u32, u8); 24] = [
    (0, "PCMU", 8_000, 1),
    (3, "GSM", 8_000, 1),
    (4, "G723", 8_000, 1),
    (5, "DVI4", 8_000, 1),
    (6, "DVI4", 16_000, 1),
    (7, "LPC", 8_000, 1),
    (8, "PCMA", 8_000, 1),
    (9, "G722", 8_000, 1),
    (10, "L16", 44_100, 2),
    (11, "L16", 44_100, 1),
    (12, "QCELP", 8_000, 1),
    (13, "CN", 8_000, 1),
    (14, "MPA", 90_000, 1),
    (15, "G728", 8_000, 1),
    (16, "DVI4", 11_025, 1),
    (17, "DVI4", 22_050, 1),
    (18, "G729", 8_000, 1),
    (25, "CelB", 90_000, 1),
    (26, "JPEG", 90_000, 1),
    (28, "nv", 90_000, 1),
    (31, "H261", 90_000, 1),
    (32, "MPV", 90_000, 1),
    (33, "MP2T", 90_000, 1),
    (34, "H263", 90_000, 1),
];

/// One RTP payload format of a media description.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Codec {
    /// The RTP payload type, 0–127.
    pub payload_type: u8,
    /// The encoding name as the party wrote it; compare with [`Codec::is`].
    pub name: Text,
    /// The RTP clock in Hz; for G.722 8,000 although it samples at 16,000 (RFC 3551 §4.5.2).
    pub clock_rate: u32,
    /// Audio channels; 1 when the rtpmap has none.
    pub channels: u8,
    /// The parameters of `a=fmtp`, without the payload type.
    pub fmtp: Option<Text>,
}

impl Codec {
    /// A codec without parameters.
    pub fn new(payload_type: u8, name: &str, clock_rate: u32, channels: u8) -> Self {
        Codec { payload_type, name: name.into(), clock_rate, channels, fmtp: None }
    }

    /// The same codec with these `a=fmtp` parameters.
    #[must_use]
    pub fn with_fmtp(mut self, parameters: &str) -> Self {
        self.fmtp = Some(parameters.into());
        self
    }

    /// The codec of a static payload type (RFC 3551 §6); `None` for a dynamic or unassigned number.
    pub fn from_static(payload_type: u8) -> Option<Self> {
        let (number, name, clock_rate, channels) = STATIC.iter().find(|row| row.0 == payload_type)?;
        Some(Codec::new(*number, name, *clock_rate, *channels))
    }

    /// Parses the value of `a=rtpmap`: `96 opus/48000/2` (RFC 8866 §6.6). `None` when it is invalid.
    pub(super) fn from_rtpmap(value: &str) -> Option<Self> {
        let payload_type = Codec::rtpmap_number(value)?;
        let (_, mapping) = value.trim().split_once([' ', '\t'])?;
        let mut parts = mapping.trim().split('/').map(str::trim);
        let name = parts.next().filter(|name| is_encoding_name(name))?;
        let clock_rate: u32 = parts.next()?.parse().ok().filter(|rate| *rate > 0)?;
        let channels = match parts.next() {
            None => 1,
            Some(text) => text.parse().ok().filter(|channels| *channels > 0)?,
        };
        // Devices that write G722/16000 mean the codec whose RTP clock is 8,000 (RFC 3551 §4.5.2).
        let clock_rate = if name.eq_ignore_ascii_case("G722") { 8_000 } else { clock_rate };
        Some(Codec::new(payload_type, name, clock_rate, channels))
    }

    /// The payload type in the value of an `a=rtpmap`.
    pub(super) fn rtpmap_number(value: &str) -> Option<u8> {
        let (number, _) = value.trim().split_once([' ', '\t'])?;
        number.parse().ok().filter(|number| *number < 128)
    }

    /// Whether the encoding name is `name`, in any case (RFC 8866 §6.6).
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Whether both are the same codec: name in any case, clock rate, channels, and the parameters that make payload
    /// formats of one name incompatible, such as `octet-align` of AMR. Numbers and other parameters may differ.
    pub fn matches(&self, other: &Codec) -> bool {
        self.is(&other.name)
            && self.clock_rate == other.clock_rate
            && self.channels == other.channels
            && self.has_configuration_of(other)
    }

    fn has_configuration_of(&self, other: &Codec) -> bool {
        let known = CONFIGURATIONS.iter().find(|(name, _)| self.is(name));
        let parameters = known.map_or(&[][..], |(_, parameters)| *parameters);
        parameters.iter().all(|(name, absent)| {
            let value = |codec: &Codec| codec.parameter(name).unwrap_or(absent).to_ascii_lowercase();
            value(self) == value(other)
        })
    }

    /// The value of a parameter of `a=fmtp`, which is a list separated by semicolons in most payload formats.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let pairs = self.fmtp.as_deref()?.split(';').filter_map(|pair| pair.split_once('='));
        let mut pairs = pairs.map(|(key, value)| (key.trim(), value.trim()));
        pairs.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The duration of a packet without `a=ptime` in milliseconds, if the parameters make it differ from the codec's
    /// default: `mode=20` of iLBC (RFC 3952 §5).
    pub fn frame_ms(&self) -> Option<u8> {
        (self.is("iLBC") && self.parameter("mode") == Some("20")).then_some(20)
    }

    /// Whether it is redundant beside `other`: the same codec, and for a codec unknown to us also the same parameters,
    /// because two configurations of it may be incompatible.
    pub(super) fn repeats(&self, other: &Codec) -> bool {
        self.matches(other) && (self.is_own() || self.fmtp == other.fmtp)
    }

    /// The same codec in a list: the one with the same number if there are several.
    pub(super) fn found_in<'a>(&self, codecs: &'a [Codec]) -> Option<&'a Codec> {
        let same = || codecs.iter().filter(|codec| codec.matches(self));
        same().find(|codec| codec.payload_type == self.payload_type).or_else(|| same().next())
    }

    /// Whether it carries events or comfort noise and not audio, so that it is not sufficient for a call.
    pub fn is_auxiliary(&self) -> bool {
        self.is("telephone-event") || self.is("CN")
    }

    /// Whether the switch can relay it without changing the audio, whether or not it can decode it. Formats that
    /// refer to other payload types are not relayed. 20 ms of L16 at a higher rate than 16,000, or of two channels,
    /// do not fit into a packet of a usual network.
    pub fn is_pass_through(&self) -> bool {
        if self.is("L16") {
            return self.channels <= 1 && matches!(self.clock_rate, 8_000 | 16_000);
        }
        !REFERRING.iter().any(|name| self.is(name))
    }

    /// Whether it may be in our own answer: one of [`OWN`] at its usual rate.
    pub fn is_own(&self) -> bool {
        match self.clock_rate {
            _ if self.is("L16") => self.is_pass_through(),
            8_000 => OWN.iter().any(|name| self.is(name)) && !self.is("opus"),
            48_000 => self.is("opus") || self.is("telephone-event"),
            _ => false,
        }
    }
}

impl fmt::Display for Codec {
    /// The mapping of `a=rtpmap`: `opus/48000/2`, `PCMU/8000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.clock_rate)?;
        if self.channels > 1 { write!(f, "/{}", self.channels) } else { Ok(()) }
    }
}

/// The codecs that a party may use, in its order of preference: the `codecs` list of an extension.
///
/// Comfort noise and telephone events follow the audio and are never restricted. Video is allowed or not, whatever its
/// codec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodecPolicy {
    names: Vec<String>,
    has_video: bool,
}

impl CodecPolicy {
    /// Every pass-through codec, in the order of the offerer.
    pub const ANY: CodecPolicy = CodecPolicy { names: Vec::new(), has_video: false };

    /// Only these codecs, in this order; an empty list means [`CodecPolicy::ANY`].
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        CodecPolicy { names: names.into_iter().map(Into::into).collect(), has_video: false }
    }

    /// The same policy, with or without permission for video.
    #[must_use]
    pub fn with_video(self, has_video: bool) -> Self {
        CodecPolicy { has_video, ..self }
    }

    /// Whether the party may have video.
    pub fn has_video(&self) -> bool {
        self.has_video
    }

    /// The codecs of `offered` that the switch can relay and this policy allows: audio in the policy's order
    /// (or the offerer's when the policy has none), then events and comfort noise; duplicates are removed.
    pub fn apply(&self, offered: &[Codec]) -> Vec<Codec> {
        let mut kept: Vec<(usize, &Codec)> = Vec::new();
        for codec in offered.iter().filter(|codec| codec.is_pass_through()) {
            let rank = if codec.is_auxiliary() { Some(usize::MAX) } else { self.rank(codec) };
            if let Some(rank) = rank
                && !kept.iter().any(|(_, other)| codec.repeats(other))
            {
                kept.push((rank, codec));
            }
        }
        // The sort is stable, so equal ranks keep the offerer's order.
        kept.sort_by_key(|(rank, _)| *rank);
        kept.into_iter().map(|(_, codec)| codec.clone()).collect()
    }

    /// The index of an audio codec in the list; `None` when it is not allowed.
    fn rank(&self, codec: &Codec) -> Option<usize> {
        if self.names.is_empty() {
            return Some(0);
        }
        self.names.iter().position(|name| codec.is(name))
    }

    /// The codecs of our own offer: the allowed codecs with their usual numbers. L16 needs four times the packet size
    /// without better sound, so it is offered only when the policy names it. The same applies to G.729, which is only
    /// relayed.
    pub fn codecs(&self) -> Vec<Codec> {
        let mut codecs = vec![
            Codec::new(96, "opus", 48_000, 2).with_fmtp("useinbandfec=1"),
            Codec::new(9, "G722", 8_000, 1),
            Codec::new(8, "PCMA", 8_000, 1),
            Codec::new(0, "PCMU", 8_000, 1),
            Codec::new(101, "telephone-event", 8_000, 1).with_fmtp("0-16"),
            Codec::new(13, "CN", 8_000, 1),
        ];
        if !self.names.is_empty() {
            codecs.push(Codec::new(97, "L16", 16_000, 1));
            codecs.push(Codec::new(18, "G729", 8_000, 1));
        }
        self.apply(&codecs)
    }
}

/// Whether an encoding name can be written back: the token of RFC 8866 §9.
fn is_encoding_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_LEN_MAX
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]".contains(&byte))
}

/// Longest encoding name; the longest registered one has 30 characters.
const NAME_LEN_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rtpmap_is_read_or_refused() {
        let table = [
            ("plain", "0 PCMU/8000", Some("PCMU/8000")),
            ("channels", "111 opus/48000/2", Some("opus/48000/2")),
            ("one channel is the default", "8 PCMA/8000/1", Some("PCMA/8000")),
            ("spaces", " 101   telephone-event/8000 ", Some("telephone-event/8000")),
            ("the 16 kHz mistake", "9 G722/16000", Some("G722/8000")),
            ("no rate", "96 opus", None),
            ("rate zero", "96 opus/0", None),
            ("channels zero", "96 opus/48000/0", None),
            ("no name", "96 /8000", None),
            ("number out of range", "128 PCMU/8000", None),
            ("rate out of range", "96 x/99999999999", None),
            ("no mapping", "96", None),
            ("name with a bracket", "96 a<b/8000", None),
        ];
        for (name, input, expected) in table {
            let read = Codec::from_rtpmap(input).map(|codec| codec.to_string());
            assert_eq!(read.as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn codecs_are_equal_by_name_rate_and_channels() {
        let opus = Codec::new(96, "opus", 48_000, 2);
        assert!(opus.matches(&Codec::new(111, "OPUS", 48_000, 2).with_fmtp("x=1")));
        assert!(!opus.matches(&Codec::new(96, "opus", 48_000, 1)));
        assert!(!opus.matches(&Codec::new(96, "opus", 24_000, 2)));
    }

    #[test]
    fn a_policy_restricts_and_orders() {
        let offered: Vec<Codec> = [18, 0, 8, 9, 13, 0].into_iter().filter_map(Codec::from_static).collect();
        let numbers = |codecs: Vec<Codec>| codecs.iter().map(|codec| codec.payload_type).collect::<Vec<_>>();
        assert_eq!(numbers(CodecPolicy::ANY.apply(&offered)), [18, 0, 8, 9, 13]);
        assert_eq!(numbers(CodecPolicy::new(["g729", "PCMU"]).apply(&offered)), [18, 0, 13]);
        assert_eq!(numbers(CodecPolicy::new(["g722", "PCMU"]).apply(&offered)), [9, 0, 13]);
        assert_eq!(numbers(CodecPolicy::new(["opus"]).apply(&offered)), [13]);
        assert_eq!(numbers(CodecPolicy::ANY.codecs()), [96, 9, 8, 0, 101, 13]);
        assert_eq!(numbers(CodecPolicy::new(["L16", "PCMA"]).codecs()), [97, 8, 101, 13]);
        assert_eq!(numbers(CodecPolicy::new(["G729", "PCMA"]).codecs()), [18, 8, 101, 13]);
    }

    #[test]
    fn configurations_that_do_not_understand_each_other_do_not_match() {
        let amr = |fmtp: &str| Codec::new(96, "AMR", 8_000, 1).with_fmtp(fmtp);
        // RFC 4867 §8.3.1: octet-align is 0 when absent; mode-set and the others are no reason to refuse.
        let table = [
            ("the same", amr("octet-align=1"), amr("octet-align=1; mode-set=0,2,4,7"), true),
            ("bandwidth-efficient by default", amr("octet-align=0"), Codec::new(97, "amr", 8_000, 1), true),
            ("octet-aligned", amr("mode-set=7;Octet-Align=1"), amr("mode-set=7"), false),
            ("with checksums", amr("octet-align=1;crc=1"), amr("octet-align=1"), false),
            ("interleaved", amr("octet-align=1;interleaving=3"), amr("octet-align=1"), false),
            (
                "annex B of G.729 is a matter of the two ends",
                Codec::new(18, "G729", 8_000, 1).with_fmtp("annexb=no"),
                Codec::new(18, "G729", 8_000, 1),
                true,
            ),
            (
                "the bit rate of G.722.1",
                Codec::new(96, "G7221", 16_000, 1).with_fmtp("bitrate=24000"),
                Codec::new(96, "G7221", 16_000, 1).with_fmtp("bitrate=32000"),
                false,
            ),
        ];
        for (name, one, other, expected) in table {
            assert_eq!((one.matches(&other), other.matches(&one)), (expected, expected), "{name}");
        }
    }

    #[test]
    fn unknown_codecs_are_relayed_and_never_our_own() {
        let table = [
            ("AMR-WB", Codec::new(96, "AMR-WB", 16_000, 1), (true, false)),
            ("unknown to us", Codec::new(96, "x-codec", 24_000, 2), (true, false)),
            ("events on another clock", Codec::new(97, "telephone-event", 16_000, 1), (true, false)),
            ("redundancy names other numbers", Codec::new(98, "RED", 8_000, 1), (false, false)),
            ("G.711", Codec::new(0, "PCMU", 8_000, 1), (true, true)),
        ];
        for (name, codec, expected) in table {
            assert_eq!((codec.is_pass_through(), codec.is_own()), expected, "{name}");
        }
    }

    #[test]
    fn plain_audio_is_carried_where_a_packet_holds_it() {
        let rates =
            [(8_000, 1, true), (16_000, 1, true), (16_000, 2, false), (44_100, 1, false), (48_000, 1, false)];
        for (rate, channels, is_carried) in rates {
            assert_eq!(
                Codec::new(97, "l16", rate, channels).is_pass_through(),
                is_carried,
                "{rate}/{channels}"
            );
        }
    }
}
