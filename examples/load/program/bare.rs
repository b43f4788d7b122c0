//! The mode `bare`: the smallest possible relay in user space (`epoll`, `recvmmsg`, `send`), as a baseline.
//!
//! Ports come in pairs. A datagram that arrives at one port is sent from the other one, to the source of the first
//! datagram that the other one received. There is no session, no statistics, no clock.

use std::io::{ErrorKind, Write};
use std::net::UdpSocket;

use crate::program::clock::{Clock, MILLISECOND, nanos};
use crate::program::error::LoadError;
use crate::program::options::BareOptions;
use crate::program::sockets::Sockets;

/// Runs the mode until its time is over.
///
/// # Errors
/// A port is taken, or no descriptor is left.
pub(crate) fn run(options: &BareOptions) -> Result<(), LoadError> {
    let mut sockets = Sockets::new()?;
    let ports = options.pairs.checked_mul(2).and_then(|ports| options.listen.port().checked_add(ports));
    let end = ports.ok_or_else(|| LoadError::Usage("--pairs needs more ports than there are".to_owned()))?;
    for port in options.listen.port()..end {
        sockets.bind(*options.listen.ip(), port)?;
    }
    // Second handles of the sockets, by index, separate from those that are read.
    let senders = senders(&sockets, usize::from(end - options.listen.port()))?;
    let mut connected = vec![false; senders.len()];
    // A closed stdout is no failure of the run.
    let _ = writeln!(std::io::stdout(), "ready");
    let clock = Clock::start();
    let until = nanos(options.lifetime);
    while clock.now() < until {
        sockets.receive(PATIENCE_MS * MILLISECOND, |socket, from, bytes| {
            if let (Some(known), Some(sender)) = (connected.get_mut(socket), senders.get(socket))
                && !*known
            {
                *known = sender.connect(from).is_ok();
            }
            if let Some(sender) = senders.get(socket ^ 1) {
                forward(sender, bytes);
            }
        })?;
    }
    Ok(())
}

/// A second handle of each socket for sending, because the first ones are borrowed while they are read.
fn senders(sockets: &Sockets, count: usize) -> Result<Vec<UdpSocket>, LoadError> {
    let sender = |index| Some(sockets.socket(index)?.try_clone());
    (0..count).filter_map(sender).map(|sender| Ok(sender?)).collect()
}

/// A datagram that cannot be sent is lost, as in any relay. The ICMP error of an earlier one causes a second try.
fn forward(sender: &UdpSocket, bytes: &[u8]) {
    if let Err(error) = sender.send(bytes)
        && error.kind() == ErrorKind::ConnectionRefused
    {
        let _ = sender.send(bytes);
    }
}

const PATIENCE_MS: u64 = 500;
