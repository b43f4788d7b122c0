//! TLS settings of connections, and the names of the servers that we connect to.
//!
//! Certificates, keys and authorities are read from files elsewhere; this crate only requests the settings.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, ServerConfig};

use crate::flow::{ListenerId, Protocol};

/// Provides the TLS settings; called for every connection, so that a change applies to the next one.
pub trait TlsSettings: Send + Sync {
    /// Settings of a connection that a peer opened to a listener of this transport; `None` refuses it.
    fn server(&self, protocol: Protocol) -> Option<Arc<ServerConfig>>;

    /// Settings of a connection that we open to a server of this name; `None` when it cannot be secured.
    fn client(&self, server: &str) -> Option<Arc<ClientConfig>>;

    /// The host names, in lower case, that a client proves by its certificates, its own first; none for
    /// certificates that are not trusted for this.
    fn client_names(&self, certificates: &[CertificateDer<'_>]) -> Vec<String>;
}

/// The names of the TLS servers to which connections are opened, each with a number that represents it in a flow.
///
/// Tenants choose the names with their trunks. Therefore a number is never reused for another name, and beyond
/// [`SERVERS_MAX`] names the least recently used half is removed: many names of one tenant do not block another
/// tenant's trunk.
#[derive(Default)]
pub(super) struct Servers(Mutex<Known>);

#[derive(Default)]
struct Known {
    numbers: HashMap<Arc<str>, u32>,
    names: HashMap<u32, Named>,
    next: u32,
    /// Counts the uses of names.
    uses: u64,
}

struct Named {
    name: Arc<str>,
    last_use: u64,
}

impl Servers {
    /// The identifier of connections to the server of this name; `None` when all numbers are used.
    pub(super) fn listener(&self, name: &str) -> Option<ListenerId> {
        self.known().number(name).map(ListenerId::to_server)
    }

    /// The name of the server to which we open a connection.
    pub(super) fn name(&self, listener: ListenerId) -> Option<Arc<str>> {
        let number = listener.server()?;
        self.known().names.get(&number).map(|named| Arc::clone(&named.name))
    }

    /// Code under the lock does not panic; if it did, each name would still have one number.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn number(&mut self, name: &str) -> Option<u32> {
        self.uses += 1;
        if let Some(number) = self.numbers.get(name) {
            if let Some(named) = self.names.get_mut(number) {
                named.last_use = self.uses;
            }
            return Some(*number);
        }
        let number = self.next;
        if number >= NUMBERS_END {
            return None;
        }
        self.next += 1;
        if self.names.len() >= SERVERS_MAX {
            self.forget_half();
        }
        let name: Arc<str> = name.into();
        self.numbers.insert(Arc::clone(&name), number);
        self.names.insert(number, Named { name, last_use: self.uses });
        Some(number)
    }

    /// Removes the least recently used names.
    fn forget_half(&mut self) {
        let mut uses: Vec<u64> = self.names.values().map(|named| named.last_use).collect();
        let middle = uses.len() / 2;
        let (_, &mut first_kept, _) = uses.select_nth_unstable(middle);
        self.names.retain(|_, named| named.last_use >= first_kept);
        self.numbers.retain(|_, number| self.names.contains_key(number));
    }
}

/// More than the trunks of any switch.
const SERVERS_MAX: usize = 1 << 16;
/// From this number on, a [`ListenerId`] does not represent a server.
const NUMBERS_END: u32 = (1 << 31) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number() {
        let servers = Servers::default();
        let (one, other) = (servers.listener("a.example").unwrap(), servers.listener("b.example").unwrap());
        assert_ne!(one, other);
        assert_eq!(servers.listener("a.example"), Some(one));
        assert_eq!(servers.name(other).as_deref(), Some("b.example"));
        assert_eq!((servers.name(ListenerId::OUTBOUND), servers.name(ListenerId(0))), (None, None));
    }

    #[test]
    fn many_names_take_the_place_of_none_in_use() {
        let servers = Servers::default();
        let (used, unused) =
            (servers.listener("used.example").unwrap(), servers.listener("old.example").unwrap());
        for number in 0..4 * SERVERS_MAX {
            servers.listener(&format!("{number}.example")).unwrap();
            assert_eq!(servers.listener("used.example"), Some(used));
            assert!(servers.known().names.len() <= SERVERS_MAX);
        }
        assert_eq!(servers.name(used).as_deref(), Some("used.example"));
        assert_eq!(servers.name(unused), None);
        assert_ne!(servers.listener("old.example"), Some(unused), "a number stands for one name");
        let known = servers.known();
        assert_eq!(known.numbers.len(), known.names.len());
    }
}
