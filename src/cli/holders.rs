//! Finds which process uses an address, for the message of `sidetone check` on an address in use.
//!
//! The system shows the sockets of every process, but which process has a socket only to that process's user and to
//! root.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::config::Transport;

/// A process and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) name: String,
}

/// The engine that uses a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunningEngine {
    /// Its process; `None` if it belongs to another user.
    pub(super) process: Option<Process>,
}

/// The user of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Holder {
    /// The engine with the same data directory.
    Engine,
    /// Another process.
    Other(Process),
    /// A process that this user may not inspect.
    Unseen,
}

/// Returns the engine that holds `lock`, the lock of a data directory.
pub(super) fn running_engine(lock: &Path) -> Option<RunningEngine> {
    let file = File::open(lock).ok()?;
    // A shared lock for a moment, so that two checks do not detect each other as engines.
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        Ok(()) | Err(TryLockError::Error(_)) => return None,
    }
    let wanted = file.metadata().ok().map(|meta| (meta.dev(), meta.ino()))?;
    let has_it = |pid: &u32| {
        descriptors(*pid)
            .iter()
            .any(|path| fs::metadata(path).is_ok_and(|meta| (meta.dev(), meta.ino()) == wanted))
    };
    let own = std::process::id();
    let pid = pids().into_iter().filter(|pid| *pid != own).find(has_it);
    Some(RunningEngine { process: pid.map(|pid| Process { pid, name: name_of(pid) }) })
}

/// Returns the user of `address`, which is in use.
pub(super) fn holder(transport: Transport, address: SocketAddr, engine: Option<&RunningEngine>) -> Holder {
    let (tables, listening) = match transport {
        Transport::Tcp | Transport::Tls | Transport::Ws | Transport::Wss => {
            (["/proc/net/tcp", "/proc/net/tcp6"], true)
        }
        Transport::Udp => (["/proc/net/udp", "/proc/net/udp6"], false),
    };
    let inodes: Vec<u64> = tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| sockets(&table, address, listening))
        .collect();
    let owners = owners(&inodes);
    match engine.map(|engine| engine.process.as_ref().map(|process| process.pid)) {
        Some(Some(pid)) if owners.contains_key(&pid) => Holder::Engine,
        // Neither the engine's process nor this socket's is visible, so it is assumed to be the same one.
        Some(None) if owners.is_empty() => Holder::Engine,
        // A child that is being started has the sockets of its parent for a moment.
        _ => match owners.into_iter().min_by_key(|(pid, _)| *pid) {
            Some((pid, name)) => Holder::Other(Process { pid, name }),
            None => Holder::Unseen,
        },
    }
}

/// The inodes of the sockets in a table of `/proc/net` that prevent binding `address`.
fn sockets(table: &str, address: SocketAddr, listening: bool) -> Vec<u64> {
    let inode = |line: &str| {
        let mut words = line.split_whitespace();
        let (ip, port) = words.nth(1)?.split_once(':')?;
        if u16::from_str_radix(port, 16).ok()? != address.port() {
            return None;
        }
        let (ip, wanted) = (ip_of(ip)?.to_canonical(), address.ip().to_canonical());
        let state = words.nth(1)?;
        let clash = ip == wanted || ip.is_unspecified() || wanted.is_unspecified();
        (clash && (!listening || state == LISTEN)).then(|| words.nth(5)?.parse().ok())?
    };
    table.lines().skip(1).filter_map(inode).collect()
}

/// An address in the format of `/proc/net`: words of 32 bits in the machine's byte order.
fn ip_of(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = hex.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let octets: Vec<u8> = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            Some(Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?).into())
        }
        _ => None,
    }
}

/// The processes that have one of these sockets.
fn owners(inodes: &[u64]) -> HashMap<u32, String> {
    let names: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let has_one = |pid: &u32| {
        descriptors(*pid).iter().any(|path| {
            fs::read_link(path).is_ok_and(|link| names.iter().any(|name| link.as_os_str() == name.as_str()))
        })
    };
    if names.is_empty() {
        return HashMap::new();
    }
    pids().into_iter().filter(has_one).map(|pid| (pid, name_of(pid))).collect()
}

fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The descriptors of a process; none if this user may not see them.
fn descriptors(pid: u32) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// The state of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn the_sockets_of_an_address_are_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             \x20  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1\n\
             \x20  1: 00000000:1F90 00000000:0000 01 00000000:00000000 00:00000000 00000000     0        0 102 1\n\
             \x20  2: 0200007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 103 1\n\
             \x20  3: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 104 1\n";
        let at = |address: &str, listening| sockets(table, address.parse().unwrap(), listening);
        if cfg!(target_endian = "little") {
            assert_eq!(at("127.0.0.1:8080", true), [101]);
            assert_eq!(at("127.0.0.1:8080", false), [101, 102]);
            assert_eq!(at("0.0.0.0:8080", true), [101, 103]);
            assert_eq!(at("[::ffff:127.0.0.1]:8081", true), [104]);
        }
        assert_eq!(at("127.0.0.1:80", true), [0_u64; 0]);
        assert_eq!(ip_of(&"0".repeat(32)), Some(Ipv6Addr::UNSPECIFIED.into()));
        assert_eq!(ip_of("0100"), None);
    }

    #[test]
    fn a_socket_of_this_process_is_named() {
        let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("[::1]:0"));
        let own = Process { pid: std::process::id(), name: name_of(std::process::id()) };
        let engine = RunningEngine { process: Some(own.clone()) };
        let address = tcp.local_addr().unwrap();
        assert_eq!(holder(Transport::Tcp, address, None), Holder::Other(own.clone()));
        assert_eq!(holder(Transport::Tcp, address, Some(&engine)), Holder::Engine);
        assert_eq!(holder(Transport::Udp, ([127, 0, 0, 1], 9).into(), Some(&engine)), Holder::Unseen);
        // A machine without IPv6 has no such socket.
        if let Ok(udp) = udp {
            assert_eq!(holder(Transport::Udp, udp.local_addr().unwrap(), None), Holder::Other(own));
        }
    }
}
