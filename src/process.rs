//! The process as the system sees it: its resource usage and limits. Reading them changes nothing.

use std::io;
use std::path::Path;

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::TimeValLike;

/// The resources that the process uses; 0 where the system does not report them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time, in user space and in the kernel.
    pub cpu_us: u64,
    /// Resident memory.
    pub resident_bytes: u64,
    /// Open files and sockets.
    pub open_files: u64,
    /// Their limit.
    pub open_files_max: u64,
}

/// Returns the processor time that this process has used, in microseconds.
pub fn cpu_us() -> u64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| {
        let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        u64::try_from(micros).unwrap_or_default()
    })
}

/// Returns the current usage of this process.
pub fn usage() -> Usage {
    // The second word of statm: resident pages.
    let resident_pages: u64 = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or_default();
    let page_bytes = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten();
    Usage {
        cpu_us: cpu_us(),
        resident_bytes: resident_pages
            * page_bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(4096),
        open_files: std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64),
        open_files_max: getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft),
    }
}

/// Bytes of the files in `dir`.
pub fn dir_bytes(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

/// Raises the limit of open files to the maximum that the system grants: every call has eight sockets.
pub fn raise_open_files() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::warn!(%error, "the limit of open files cannot be raised; it limits the number of calls");
    }
}

/// Advice for an address that cannot be bound.
pub fn bind_advice(error: &io::Error, port: u16) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "choose another address or stop what uses it".to_owned(),
        io::ErrorKind::AddrNotAvailable => {
            "no interface of this machine has this address; write one that `ip addr` lists, or 0.0.0.0 for all"
                .to_owned()
        }
        io::ErrorKind::PermissionDenied if port < PRIVILEGED_PORTS => format!(
            "ports below {PRIVILEGED_PORTS} need the capability CAP_NET_BIND_SERVICE (AmbientCapabilities= of a \
             systemd unit, or `setcap cap_net_bind_service=+ep` on the program); grant it or choose a port from \
             {PRIVILEGED_PORTS} on"
        ),
        io::ErrorKind::PermissionDenied => {
            "the system does not permit it; check the rules of its security module or choose another address"
                .to_owned()
        }
        _ => "choose another address".to_owned(),
    }
}

/// Ports below this one need a privilege.
const PRIVILEGED_PORTS: u16 = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_fits_what_the_system_said() {
        let cases = [
            (io::ErrorKind::AddrInUse, 80, "stop what uses it"),
            (io::ErrorKind::PermissionDenied, 80, "CAP_NET_BIND_SERVICE"),
            (io::ErrorKind::PermissionDenied, 5060, "security module"),
            (io::ErrorKind::AddrNotAvailable, 80, "no interface"),
        ];
        for (kind, port, expected) in cases {
            let advice = bind_advice(&kind.into(), port);
            assert!(advice.contains(expected), "{kind}: {advice}");
            assert_eq!(advice.contains("stop"), kind == io::ErrorKind::AddrInUse, "{kind}: {advice}");
        }
    }
}
