//! The mode `bare`: the least that a relay in user space can do, as the measure of others: `epoll`, `recvmmsg`, `send`.
//!
//! Ports come in pairs. What arrives at one of a pair is sent from the other to where that one's first datagram came
//! from. There is no session, no statistics, no clock.

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
    // The other sockets of the pairs, by index, apart from the sockets that are read.
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

/// A second handle of each socket, so that one is read while another sends.
fn senders(sockets: &Sockets, count: usize) -> Result<Vec<UdpSocket>, LoadError> {
    let sender = |index| Some(sockets.socket(index)?.try_clone());
    (0..count).filter_map(sender).map(|sender| Ok(sender?)).collect()
}

/// A datagram that cannot be sent is lost, as in any relay; the error of an earlier one is taken by a second try.
fn forward(sender: &UdpSocket, bytes: &[u8]) {
    if let Err(error) = sender.send(bytes)
        && error.kind() == ErrorKind::ConnectionRefused
    {
        let _ = sender.send(bytes);
    }
}

const PATIENCE_MS: u64 = 500;
