//! Datagrams that the kernel dropped because the buffer of a UDP socket was full (proc(5), `/proc/net/udp`).

use std::collections::HashSet;
use std::fs;

/// Returns the number of datagrams that the kernel has dropped so far at the open UDP sockets of the processes. The
/// count of a closed socket is lost.
pub(crate) fn dropped_datagrams(pids: &[u32]) -> u64 {
    let inodes: HashSet<u64> = pids.iter().flat_map(|pid| socket_inodes(*pid)).collect();
    let tables =
        ["/proc/net/udp", "/proc/net/udp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    tables
        .iter()
        .flat_map(|table| drops_of(table))
        .filter(|(inode, _)| inodes.contains(inode))
        .map(|(_, drops)| drops)
        .sum()
}

fn socket_inodes(pid: u32) -> impl Iterator<Item = u64> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| {
        let target = fs::read_link(file.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    })
}

/// The inode and the drops of each socket in a table.
fn drops_of(table: &str) -> impl Iterator<Item = (u64, u64)> {
    table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace();
        let inode = fields.nth(9)?.parse().ok()?;
        Some((inode, fields.next_back()?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_full_buffer_is_seen_at_the_process_that_has_the_socket() {
        let own = [std::process::id()];
        let before = dropped_datagrams(&own);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        // The socket is never read, and the kernel counts 700 bytes or more for each datagram.
        for _ in 0..20_000 {
            sender.send_to(&[0; 172], to).unwrap();
        }
        assert!(dropped_datagrams(&own) > before + 100);
        assert_eq!(dropped_datagrams(&[u32::MAX]), 0);
    }

    #[test]
    fn the_table_is_read_as_documented() {
        let table = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
                     43: 0100007F:13C4 00000000:0000 07 00000000:00000000 00:00000000 00000000   104        0 9876 2 0000000000000000 12\n";
        assert_eq!(drops_of(table).collect::<Vec<_>>(), [(9_876, 12)]);
    }
}
