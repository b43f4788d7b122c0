//! The allowed destinations of requests; pure.

use std::net::IpAddr;

use sidetone_model::directory::Network;
use sidetone_model::ports::OutgoingUrls;
use sidetone_model::public_address::is_public;
use url::{Host, Url};

use crate::outbound_http::settings::OutboundHttp;

/// Which destinations are allowed: the configuration, and the host's own addresses.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    allow: Vec<Network>,
    ports: Vec<u16>,
    own: Vec<IpAddr>,
}

/// Why a URL is refused; a lower-case fragment that states the rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The host is an address that is not public, in any notation.
    #[error("must be on a public address, and {0} is none")]
    Address(IpAddr),
    /// Spaces and control characters, which URL parsers treat differently.
    #[error("must hold no spaces and no control characters")]
    Characters,
    /// The part after `#` is never sent.
    #[error("must not end in a #fragment: it is never sent")]
    Fragment,
    /// The name refers to a different host in every network.
    #[error("must be on a public address, and {0} is a name of the local network")]
    LocalName(String),
    /// The name is not valid.
    #[error("must name a host, such as https://crm.example/sidetone")]
    Name,
    /// It is not a URL.
    #[error("must be a URL such as https://crm.example/sidetone ({0})")]
    NoUrl(url::ParseError),
    /// One of the host's own addresses.
    #[error("must not be this service's own address, and {0} is")]
    Own(IpAddr),
    /// The port is not one of the allowed ones.
    #[error("must not name port {port}: the ports are {}", listed(ports))]
    Port {
        /// The port.
        port: u16,
        /// The allowed ports.
        ports: Vec<u16>,
    },
    /// Not `https`.
    #[error("must begin with https://")]
    Scheme,
    /// Too long.
    #[error("must be at most {URL_LEN_MAX} characters")]
    TooLong,
    /// Credentials before the host.
    #[error("must not hold a user name or a password")]
    UserInfo,
}

impl Policy {
    /// The rules of `settings`; `own` are the addresses of the host.
    pub fn new(settings: &OutboundHttp, own: Vec<IpAddr>) -> Self {
        let own = own.into_iter().map(|address| address.to_canonical()).collect();
        Self { allow: settings.allow_addresses.clone(), ports: settings.ports.clone(), own }
    }

    /// Parses a URL like a browser (WHATWG URL Standard), and checks all rules that need no name lookup.
    ///
    /// # Errors
    /// The rule that the URL breaks.
    pub fn check_url(&self, text: &str) -> Result<Url, Refusal> {
        if text.chars().count() > URL_LEN_MAX {
            return Err(Refusal::TooLong);
        }
        // The standard would silently remove them: `https://exam\nple.com` is one host for it and two for other
        // parsers.
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(Refusal::Characters);
        }
        // RFC 3986 §3.1: a scheme is case-insensitive.
        if !text.get(..SCHEME.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME)) {
            return Err(Refusal::Scheme);
        }
        let url = Url::parse(text).map_err(Refusal::NoUrl)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::UserInfo);
        }
        if url.fragment().is_some() {
            return Err(Refusal::Fragment);
        }
        self.check_host(&url)?;
        let port = url.port_or_known_default().unwrap_or_default();
        if !self.ports.contains(&port) {
            return Err(Refusal::Port { port, ports: self.ports.clone() });
        }
        Ok(url)
    }

    /// Checks that a connection may be made to `address`.
    ///
    /// # Errors
    /// The rule that the address breaks.
    pub fn check_address(&self, address: IpAddr) -> Result<(), Refusal> {
        let address = address.to_canonical();
        if self.allow.iter().any(|network| network.contains(address)) {
            return Ok(());
        }
        if !is_public(address) {
            return Err(Refusal::Address(address));
        }
        if self.own.contains(&address) {
            return Err(Refusal::Own(address));
        }
        Ok(())
    }

    fn check_host(&self, url: &Url) -> Result<(), Refusal> {
        match url.host() {
            None => Err(Refusal::Name),
            Some(Host::Ipv4(address)) => self.check_address(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => self.check_address(IpAddr::V6(address)),
            Some(Host::Domain(name)) => {
                let plain = name.strip_suffix('.').unwrap_or(name);
                let labels_are_whole =
                    plain.split('.').all(|label| (1..=LABEL_LEN_MAX).contains(&label.len()));
                if !labels_are_whole || plain.len() > NAME_LEN_MAX {
                    return Err(Refusal::Name);
                }
                // A test network that allows its own addresses may use any names; the addresses they resolve to are
                // checked anyway.
                if self.allow.is_empty() && is_local(plain) {
                    return Err(Refusal::LocalName(plain.to_owned()));
                }
                Ok(())
            }
        }
    }
}

impl OutgoingUrls for Policy {
    fn check(&self, url: &str) -> Result<(), String> {
        self.check_url(url).map(drop).map_err(|refusal| refusal.to_string())
    }
}

/// A name that is not public: one with a single label, or below a reserved domain.
fn is_local(name: &str) -> bool {
    let below =
        |domain: &str| name.strip_suffix(domain).is_some_and(|head| head.is_empty() || head.ends_with('.'));
    !name.contains('.') || LOCAL_DOMAINS.iter().any(|domain| below(domain))
}

fn listed(ports: &[u16]) -> String {
    ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")
}

/// Characters of a URL.
pub const URL_LEN_MAX: usize = 2_048;
const SCHEME: &str = "https://";
/// RFC 6761, RFC 6762, RFC 8375, ICANN's reservation of `internal`, and a domain that many systems use by
/// default.
const LOCAL_DOMAINS: [&str; 5] = ["home.arpa", "internal", "local", "localdomain", "localhost"];
/// Characters of a name and of one label of it (RFC 1035 §2.3.4).
const NAME_LEN_MAX: usize = 253;
const LABEL_LEN_MAX: usize = 63;
