//! The routing data of calls: organisations, extensions, numbers, trunks.

use std::net::IpAddr;

use uuid::Uuid;

use crate::call::words;
use crate::forwarding::Forwarding;
use crate::ids::{AgentId, ExtensionId, NumberId, OrganisationId, RoomId, TeamId, TrunkId};
use crate::language::Language;
use crate::message_waiting::MessageWaiting;
use crate::money::Currency;
pub use crate::numbering::Numbering;
use crate::room::RoomConfig;
use crate::trunk_interop::TrunkInterop;

/// An organisation in the form that the switch needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organisation {
    /// Primary key.
    pub id: OrganisationId,
    /// Unique name.
    pub name: String,
    /// The SIP domain and digest realm of its phones; lower case, unique.
    pub sip_domain: String,
    /// The currency of its amounts.
    pub currency: Currency,
    /// How its users write phone numbers.
    pub numbering: Numbering,
    /// The largest number of simultaneous outbound calls; `None` sets no limit.
    pub max_outbound_calls: Option<u32>,
    /// The longest duration of an answered call in seconds; `None` takes the node's limit.
    pub max_call_seconds: Option<u32>,
    /// The language of its prompts.
    pub language: Language,
    /// Whether its phones change their forwarding and do not disturb by star codes.
    pub star_codes: bool,
}

/// A user's line: it registers, calls and is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Primary key.
    pub id: ExtensionId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// The agent that its records belong to.
    pub agent_id: Option<AgentId>,
    /// The team that its records belong to: the agent's, or else its own.
    pub team_id: Option<TeamId>,
    /// The digits dialled for it; unique within the organisation, and its digest username.
    pub number: String,
    /// The person's name.
    pub name: String,
    /// Digest credential: lower-case hex of H(number:realm:password).
    pub ha1: Ha1,
    /// Encoding names it may use, in order of preference; empty means every codec that the switch supports.
    pub codecs: Vec<String>,
    /// Which source address its media must have; `None` means the node's setting.
    pub strict_source: Option<StrictSource>,
    /// Whether its media is encrypted.
    pub srtp: Srtp,
    /// Whether it has video.
    pub video: Video,
    /// Where its calls go instead of its phones.
    pub forwarding: Forwarding,
    /// Whether it refuses calls.
    pub do_not_disturb: bool,
    /// The language of its prompts; `None` is the organisation's.
    pub language: Option<Language>,
    /// How many bindings it may have, 1–50.
    pub max_registrations: u32,
    /// Whether its phones are sent `message_waiting` without a subscription.
    pub notify_message_waiting: bool,
    /// The messages in its mailbox.
    pub message_waiting: MessageWaiting,
}

/// H(A1) of one user in the two algorithms that phones use (RFC 7616 §3.4.2); never the password itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Ha1 {
    /// 32 hex digits.
    pub md5: String,
    /// 64 hex digits.
    pub sha256: String,
}

impl std::fmt::Debug for Ha1 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A log must not contain a credential.
        f.write_str("Ha1(..)")
    }
}

/// A phone number of an organisation and its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Primary key.
    pub id: NumberId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// E.164 with `+`; unique.
    pub number: String,
    /// The destination of a call to it.
    pub destination: Destination,
}

/// The destination of a phone number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A conference room of the same organisation; without one the caller is asked for the room's number.
    Conference(Option<RoomId>),
    /// An extension of the same organisation.
    Extension(ExtensionId),
}

words! {
    /// The kind of destination of a phone number.
    DestinationKind {
        /// A conference room, or whichever the caller keys.
        Conference = "conference",
        /// An extension.
        Extension = "extension",
    }
}

impl Destination {
    /// The destination of that kind and id.
    ///
    /// # Errors
    /// The problem of the id.
    pub fn of(kind: DestinationKind, id: Option<Uuid>) -> Result<Self, &'static str> {
        match (kind, id) {
            (DestinationKind::Conference, room) => Ok(Destination::Conference(room.map(RoomId))),
            (DestinationKind::Extension, Some(extension)) => {
                Ok(Destination::Extension(ExtensionId(extension)))
            }
            (DestinationKind::Extension, None) => {
                Err("is required: name the extension that the number leads to")
            }
        }
    }

    /// Returns the kind.
    pub fn kind(self) -> DestinationKind {
        match self {
            Destination::Conference(_) => DestinationKind::Conference,
            Destination::Extension(_) => DestinationKind::Extension,
        }
    }

    /// Returns the id, if there is one.
    pub fn id(self) -> Option<Uuid> {
        match self {
            Destination::Conference(room) => room.map(|room| room.0),
            Destination::Extension(extension) => Some(extension.0),
        }
    }
}

/// A carrier or peer: calls come from its networks and go to its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trunk {
    /// Primary key.
    pub id: TrunkId,
    /// The only organisation that uses it; `None` when shared by all.
    pub organisation_id: Option<OrganisationId>,
    /// Unique name.
    pub name: String,
    /// Where calls are sent, in the form of [`TrunkAddress`](crate::trunk_address::TrunkAddress); `None`
    /// means that it takes no calls.
    pub address: Option<String>,
    /// Networks that its calls come from, canonical.
    pub accept_from: Vec<Network>,
    /// Trunks with a lower priority are tried first.
    pub priority: u16,
    /// The switch's user name there, for digest and REGISTER; may be empty.
    pub username: String,
    /// The password of `username`; empty answers no challenge.
    pub password: Secret,
    /// The only realm that gets our credentials; when empty, the realm in the challenge of the trunk's own address.
    pub realm: String,
    /// Whether the switch registers at the carrier.
    pub register: bool,
    /// Numbers that are sent exactly as dialled, such as `112`.
    pub short_numbers: Vec<String>,
    /// Which source address its media must have; `None` means the node's setting.
    pub strict_source: Option<StrictSource>,
    /// Whether its media is encrypted.
    pub srtp: Srtp,
    /// Whether it has video.
    pub video: Video,
    /// The longest duration of an answered call over it in seconds; `None` sets no limit.
    pub max_call_seconds: Option<u32>,
    /// How its carrier differs from others.
    pub interop: TrunkInterop,
}

words! {
    /// Which address the media of a leg must come from.
    StrictSource {
        /// Any address. An unknown sender that sends first takes the leg.
        Any = "any",
        /// The address and port of the peer's session description.
        Sdp = "sdp",
        /// The address of the session description, or the address that the signalling comes from.
        Signalling = "signalling",
    }
}

words! {
    /// Whether the media of a leg is encrypted (SRTP with keys in SDP, RFC 4568, or by DTLS, RFC 5763).
    Srtp {
        /// Never.
        Off = "off",
        /// When the peer has it too.
        Optional = "optional",
        /// Always; a call without it is refused.
        Required = "required",
        /// Browsers by DTLS with ICE, and other phones when they have it too; not for trunks.
        Webrtc = "webrtc",
    }
}

words! {
    /// Whether a party has video. It is relayed unchanged between two parties that both have it.
    Video {
        /// Refused in its place.
        Off = "off",
        /// Relayed.
        Pass = "pass",
    }
}

impl Video {
    /// Every value of the setting, as users write it.
    pub const WORDS: [(&'static str, Video); 2] =
        [(Video::Off.as_str(), Video::Off), (Video::Pass.as_str(), Video::Pass)];
}

impl Srtp {
    /// Every value of the setting, as users write it.
    pub const WORDS: [(&'static str, Srtp); 4] = [
        (Srtp::Off.as_str(), Srtp::Off),
        (Srtp::Optional.as_str(), Srtp::Optional),
        (Srtp::Required.as_str(), Srtp::Required),
        (Srtp::Webrtc.as_str(), Srtp::Webrtc),
    ];
}

impl StrictSource {
    /// Every value of the setting, as users write it.
    pub const WORDS: [(&'static str, StrictSource); 3] = [
        (StrictSource::Any.as_str(), StrictSource::Any),
        (StrictSource::Sdp.as_str(), StrictSource::Sdp),
        (StrictSource::Signalling.as_str(), StrictSource::Signalling),
    ];
}

/// A password that has to be stored in plain text; never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// An address block, canonical: an IPv4-mapped IPv6 block is an IPv4 one and host bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    /// First address of the block.
    pub address: IpAddr,
    /// Leading bits that are compared.
    pub prefix_len: u8,
}

impl Network {
    /// Whether `address` is in the block; an IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let shift = 32 - u32::from(self.prefix_len.min(32));
                (u64::from(own.to_bits()) >> shift) == (u64::from(other.to_bits()) >> shift)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let shift = 128 - u32::from(self.prefix_len.min(128));
                shift == 128 || (own.to_bits() >> shift) == (other.to_bits() >> shift)
            }
            _ => false,
        }
    }
}

/// The text is neither an address nor a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an address or a network such as 192.0.2.0/24")]
pub struct NetworkError;

impl std::str::FromStr for Network {
    type Err = NetworkError;

    /// Reads `address` or `address/bits`, and makes it canonical.
    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NetworkError)?;
        let most: u8 = if address.is_ipv4() { 32 } else { 128 };
        let prefix_len = match bits {
            None => most,
            // `parse` would accept a sign.
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().ok().filter(|bits| *bits <= most).ok_or(NetworkError)?
            }
            Some(_) => return Err(NetworkError),
        };
        let (address, prefix_len) = match address {
            // ::ffff:192.0.2.0/120 is 192.0.2.0/24; with a prefix shorter than 96 it is not an IPv4 network.
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) if prefix_len >= 96 => (IpAddr::V4(v4), prefix_len - 96),
                _ => (address, prefix_len),
            },
            IpAddr::V4(_) => (address, prefix_len),
        };
        let cleared = |bits: u128, width: u32| {
            let host = width - u32::from(prefix_len);
            if host == 128 { 0 } else { (bits >> host) << host }
        };
        let address = match address {
            IpAddr::V4(v4) => {
                IpAddr::V4(u32::try_from(cleared(v4.to_bits().into(), 32)).unwrap_or(u32::MAX).into())
            }
            IpAddr::V6(v6) => IpAddr::V6(cleared(v6.to_bits(), 128).into()),
        };
        Ok(Network { address, prefix_len })
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_len)
    }
}

/// All routing data of the switch, as one consistent read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectorySnapshot {
    /// Grows with every change of the stored directory.
    pub revision: i64,
    /// All organisations.
    pub organisations: Vec<Organisation>,
    /// All extensions.
    pub extensions: Vec<Extension>,
    /// All phone numbers.
    pub numbers: Vec<Number>,
    /// All conference rooms.
    pub rooms: Vec<RoomConfig>,
    /// All trunks.
    pub trunks: Vec<Trunk>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_by_prefix() {
        let cases = [
            ("192.0.2.0", 24, "192.0.2.255", true),
            ("192.0.2.0", 24, "192.0.3.0", false),
            ("192.0.2.0", 24, "::ffff:192.0.2.7", true),
            ("0.0.0.0", 0, "203.0.113.1", true),
            ("127.0.0.1", 32, "127.0.0.2", false),
            ("2001:db8::", 32, "2001:db8:ffff::1", true),
            ("2001:db8::", 32, "2001:db9::1", false),
            ("::", 0, "2001:db9::1", true),
            ("::", 0, "192.0.2.1", false),
        ];
        for (network, prefix_len, address, inside) in cases {
            let network = Network { address: network.parse().unwrap(), prefix_len };
            assert_eq!(network.contains(address.parse().unwrap()), inside, "{network:?} {address}");
        }
    }
}
