//! Datagrams to send, in one reused buffer.

use std::net::SocketAddrV4;

/// Datagrams to send.
#[derive(Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// One datagram: its socket by index, its destination, and where its bytes end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    socket: usize,
    to: SocketAddrV4,
    end: usize,
}

/// One datagram of an outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram<'a> {
    /// The index of the socket that sends it.
    pub(crate) socket: usize,
    /// Its destination.
    pub(crate) to: SocketAddrV4,
    /// Its content.
    pub(crate) bytes: &'a [u8],
}

impl Outbox {
    /// Adds a datagram whose bytes `write` appends.
    pub(crate) fn push(&mut self, socket: usize, to: SocketAddrV4, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.entries.push(Entry { socket, to, end: self.bytes.len() });
    }

    /// Returns the datagrams in the order in which they were added.
    pub(crate) fn datagrams(&self) -> impl Iterator<Item = Datagram<'_>> {
        let mut start = 0;
        self.entries.iter().map(move |entry| {
            let bytes = self.bytes.get(start..entry.end).unwrap_or_default();
            start = entry.end;
            Datagram { socket: entry.socket, to: entry.to, bytes }
        })
    }

    /// Removes the datagrams and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// Returns the number of datagrams.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The datagrams as texts; for tests.
    #[cfg(test)]
    pub(crate) fn drain_texts(&mut self) -> Vec<(usize, SocketAddrV4, String)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let texts = self.datagrams().map(|sent| (sent.socket, sent.to, text(sent.bytes))).collect();
        self.clear();
        texts
    }
}
