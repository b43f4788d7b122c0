//! The network interfaces of this host, as the kernel lists them: their frames, and whether they are up.

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{InterfaceFlags, if_nameindex};
use sidetone_media::pcap::LinkType;

/// One interface, as looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index; a later interface with the same name has another one.
    pub index: usize,
    /// The link layer of its frames.
    pub link: LinkType,
    /// Whether it is the loopback, where every packet is captured twice: when it is sent and when it is received.
    pub is_loopback: bool,
}

/// Why an interface cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InterfaceError {
    /// There is no interface with that name.
    #[error("there is no interface \"{name}\"; there are: {}", .known.join(", "))]
    Unknown {
        /// The given name.
        name: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// The link layer of its frames is not supported.
    #[error(
        "the frames of interface \"{name}\" are of a kind that is not read here ({hardware}); choose the interface below it"
    )]
    Link {
        /// The interface.
        name: String,
        /// The kernel's number of the link layer.
        hardware: u16,
    },
}

impl Interface {
    /// Looks up an interface by its name.
    ///
    /// # Errors
    /// When there is none, or its frames cannot be read.
    pub fn find(name: &str) -> Result<Self, InterfaceError> {
        let unknown = || InterfaceError::Unknown { name: name.to_owned(), known: names() };
        let seen = look(name).ok_or_else(unknown)?;
        let link = link_of(seen.hardware)
            .ok_or_else(|| InterfaceError::Link { name: name.to_owned(), hardware: seen.hardware })?;
        let is_loopback = seen.hardware == ARPHRD_LOOPBACK;
        Ok(Interface { name: name.to_owned(), index: seen.index, link, is_loopback })
    }

    /// Returns its current state.
    pub fn state(&self) -> State {
        match look(&self.name) {
            None => State::Gone,
            Some(seen) if seen.index != self.index => State::Replaced,
            Some(seen) if seen.is_up => State::Up,
            Some(_) => State::Down,
        }
    }
}

/// The state of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It was disabled.
    Down,
    /// It does not exist any more.
    Gone,
    /// Another interface has its name.
    Replaced,
    /// It is up.
    Up,
}

/// The names of all interfaces, in the kernel's order.
pub fn names() -> Vec<String> {
    let Ok(interfaces) = if_nameindex() else { return Vec::new() };
    interfaces.iter().map(|interface| interface.name().to_string_lossy().into_owned()).collect()
}

/// Returns the interfaces that are up and can be read, without those whose frames also appear on another one.
pub fn all_up() -> Vec<String> {
    let is_up = |name: &String| Interface::find(name).is_ok_and(|found| found.state() == State::Up);
    names().into_iter().filter(|name| is_up(name) && !is_seen_elsewhere(&relations(name))).collect()
}

/// The relations that the kernel lists for an interface, by name (`/sys/class/net`).
fn relations(name: &str) -> Vec<String> {
    let entries = std::fs::read_dir(std::path::Path::new("/sys/class/net").join(name));
    let entries = entries.into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Whether another interface has the same frames: the bridge or bond that it is a member of, or the interface
/// below a VLAN.
fn is_seen_elsewhere(relations: &[String]) -> bool {
    let has = |wanted: &str| relations.iter().any(|name| name == wanted);
    let is_above = relations.iter().any(|name| name.starts_with("lower_"));
    has("master") || (is_above && !has("bridge") && !has("bonding"))
}

/// The link layer of a hardware type on a raw packet socket.
fn link_of(hardware: u16) -> Option<LinkType> {
    match hardware {
        ARPHRD_ETHER | ARPHRD_LOOPBACK => Some(LinkType::ETHERNET),
        ARPHRD_NONE | ARPHRD_RAWIP => Some(LinkType::RAW),
        _ => None,
    }
}

/// An interface as the kernel lists it.
struct Seen {
    index: usize,
    hardware: u16,
    is_up: bool,
}

/// The interface with that name in the network namespace of this thread.
fn look(name: &str) -> Option<Seen> {
    let seen = |interface: InterfaceAddress| {
        let link = interface.address.as_ref()?.as_link_addr()?;
        let is_up = interface.flags.contains(InterfaceFlags::IFF_UP);
        Some(Seen { index: link.ifindex(), hardware: link.hatype(), is_up })
    };
    getifaddrs().ok()?.filter(|interface| interface.interface_name == name).find_map(seen)
}

// Hardware types, `linux/if_arp.h`.
const ARPHRD_ETHER: u16 = 1;
const ARPHRD_RAWIP: u16 = 519;
const ARPHRD_LOOPBACK: u16 = 772;
/// Tunnels without a link layer: tun, WireGuard.
const ARPHRD_NONE: u16 = 0xfffe;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_known_and_its_frames_are_ethernet() {
        let lo = Interface::find("lo").unwrap();
        assert_eq!((lo.link, lo.is_loopback), (LinkType::ETHERNET, true));
        assert_eq!(Interface { index: lo.index + 1, ..lo.clone() }.state(), State::Replaced);
        assert_eq!(Interface { name: "nosuch0".to_owned(), ..lo }.state(), State::Gone);
    }

    /// The error contains the given name and the existing ones, whatever was given.
    #[test]
    fn an_unknown_interface_is_named_with_those_that_exist() {
        for name in
            ["nosuch0", "", ".", "..", "../lo", "lo/", "a name that is far too long for one", "\u{e9}"]
        {
            let error = Interface::find(name).unwrap_err();
            assert!(
                matches!(&error, InterfaceError::Unknown { known, .. } if known.iter().any(|it| it == "lo"))
            );
            assert!(error.to_string().contains(&format!("\"{name}\"")), "{error}");
        }
    }

    #[test]
    fn any_is_what_is_up_and_seen_once() {
        let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let cases: [(&str, &[&str], bool); 6] = [
            ("a card", &["address", "upper_br0", "statistics"], false),
            ("a port of a bridge", &["address", "master", "brport", "upper_br0"], true),
            ("a bridge", &["address", "bridge", "lower_eth0"], false),
            ("a bond", &["bonding", "lower_eth0", "lower_eth1"], false),
            ("a VLAN", &["address", "lower_eth0"], true),
            ("one that is not there", &[], false),
        ];
        for (name, relations, expected) in cases {
            assert_eq!(is_seen_elsewhere(&own(relations)), expected, "{name}");
        }
        assert!(all_up().iter().all(|name| Interface::find(name).unwrap().state() == State::Up));
        assert_eq!(all_up().contains(&"lo".to_owned()), Interface::find("lo").unwrap().state() == State::Up);
    }

    #[test]
    fn frames_that_are_not_read_here_are_refused() {
        assert_eq!(link_of(ARPHRD_NONE), Some(LinkType::RAW));
        assert_eq!(link_of(512), None, "point-to-point links have no header with the protocol");
    }
}
