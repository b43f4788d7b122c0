//! Flow tokens: a signed flow of this node, used as the user part of a URI and in branches (RFC 5626 §5.2).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::flow::{Flow, ListenerId, Protocol};

/// Signs the flows of one node, and reads them.
#[derive(Clone)]
pub(super) struct Signer(Hmac<Sha256>);

impl Signer {
    /// From the key of the cluster. A token is valid at one node only, because it contains the node's own listener
    /// number.
    pub(super) fn new(key: &[u8], node: &[u8]) -> Self {
        let mut mac = keyed(key);
        mac.update(b"flow tokens of node ");
        mac.update(node);
        Signer(keyed(&mac.finalize().into_bytes()))
    }

    /// The token of a flow: 30 characters for IPv4, 46 for IPv6.
    pub(super) fn token(&self, flow: &Flow) -> String {
        let mut bytes = Vec::with_capacity(IPV6_LEN + SEAL_LEN);
        bytes.push(number(flow.protocol));
        bytes.extend_from_slice(&flow.listener.0.to_be_bytes());
        bytes.extend_from_slice(&flow.remote.port().to_be_bytes());
        match flow.remote.ip() {
            IpAddr::V4(v4) => bytes.extend_from_slice(&v4.octets()),
            IpAddr::V6(v6) => bytes.extend_from_slice(&v6.octets()),
        }
        let mut mac = self.0.clone();
        mac.update(&bytes);
        bytes.extend_from_slice(mac.finalize().into_bytes().get(..SEAL_LEN).unwrap_or_default());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The flow of a token; `None` for a token that this node has not signed.
    pub(super) fn flow(&self, token: &str) -> Option<Flow> {
        if token.len() > TOKEN_LEN_MAX {
            return None;
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
        let (content, seal) = bytes.split_at_checked(bytes.len().checked_sub(SEAL_LEN)?)?;
        let mut mac = self.0.clone();
        mac.update(content);
        mac.verify_truncated_left(seal).ok()?;
        let (protocol, rest) = content.split_first()?;
        let (listener, rest) = rest.split_first_chunk::<4>()?;
        let (port, address) = rest.split_first_chunk::<2>()?;
        let ip = match address.len() {
            4 => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(address).ok()?)),
            _ => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?)),
        };
        Some(Flow {
            listener: ListenerId(u32::from_be_bytes(*listener)),
            remote: SocketAddr::new(ip, u16::from_be_bytes(*port)),
            protocol: PROTOCOLS.into_iter().find(|known| number(*known) == *protocol)?,
        })
    }

    /// A short digest of `parts`: equal for equal parts, and unpredictable without the key.
    pub(super) fn digest(&self, parts: &[&[u8]]) -> String {
        let mut mac = self.0.clone();
        mac.update(b"branch");
        for part in parts {
            mac.update(&part.len().to_be_bytes());
            mac.update(part);
        }
        BASE64_URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes().get(..DIGEST_LEN).unwrap_or_default())
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    // A key longer than a block is hashed first (RFC 2104 §2).
    let mut block = [0; BLOCK_LEN];
    let hashed;
    let key = if key.len() > BLOCK_LEN {
        hashed = <Sha256 as sha2::Digest>::digest(key);
        hashed.as_slice()
    } else {
        key
    };
    block.iter_mut().zip(key).for_each(|(place, byte)| *place = *byte);
    Hmac::new(&block.into())
}

fn number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Udp => 1,
        Protocol::Tcp => 2,
        Protocol::Tls => 3,
        Protocol::Ws => 4,
        Protocol::Wss => 5,
    }
}

const PROTOCOLS: [Protocol; 5] = [Protocol::Udp, Protocol::Tcp, Protocol::Tls, Protocol::Ws, Protocol::Wss];
/// Bytes of the content of a token with an IPv6 address.
const IPV6_LEN: usize = 23;
/// Length of a seal: 80 bits, as in the example of RFC 5626 §5.2.
const SEAL_LEN: usize = 10;
const TOKEN_LEN_MAX: usize = (IPV6_LEN + SEAL_LEN).div_ceil(3) * 4;
const DIGEST_LEN: usize = 9;
const BLOCK_LEN: usize = 64;
