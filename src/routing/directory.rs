//! The directory as the switch reads it on every call: one consistent snapshot, indexed.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use sidetone_model::directory::{DirectorySnapshot, Extension, Number, Organisation, Trunk};
use sidetone_model::ids::{ExtensionId, OrganisationId, TrunkId};

/// An indexed [`DirectorySnapshot`]; immutable, replaced as a whole when the stored one changes.
#[derive(Debug, Default)]
pub struct Directory {
    snapshot: DirectorySnapshot,
    organisations: HashMap<OrganisationId, usize>,
    domains: HashMap<String, usize>,
    extensions: HashMap<ExtensionId, usize>,
    lines: HashMap<(OrganisationId, String), usize>,
    numbers: HashMap<String, usize>,
}

impl Directory {
    /// Indexes a snapshot.
    pub fn new(snapshot: DirectorySnapshot) -> Self {
        let organisations = index(&snapshot.organisations, |organisation| organisation.id);
        let domains =
            index(&snapshot.organisations, |organisation| organisation.sip_domain.to_ascii_lowercase());
        let extensions = index(&snapshot.extensions, |extension| extension.id);
        let lines =
            index(&snapshot.extensions, |extension| (extension.organisation_id, extension.number.clone()));
        let numbers = index(&snapshot.numbers, |number| number.number.clone());
        Directory { snapshot, organisations, domains, extensions, lines, numbers }
    }

    /// The stored revision that this one was read at.
    pub fn revision(&self) -> i64 {
        self.snapshot.revision
    }

    /// The organisation of that id.
    pub fn organisation(&self, id: OrganisationId) -> Option<&Organisation> {
        self.organisations.get(&id).and_then(|at| self.snapshot.organisations.get(*at))
    }

    /// The organisation whose phones use `domain`; without a match the only organisation there is, so that
    /// phones of a single-tenant install may name the host's address instead of the domain.
    pub fn organisation_of_domain(&self, domain: &str) -> Option<&Organisation> {
        if let Some(at) = self.domains.get(&domain.to_ascii_lowercase()) {
            return self.snapshot.organisations.get(*at);
        }
        match self.snapshot.organisations.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The extension of that id.
    pub fn extension(&self, id: ExtensionId) -> Option<&Extension> {
        self.extensions.get(&id).and_then(|at| self.snapshot.extensions.get(*at))
    }

    /// The extension that an organisation dials as `number`.
    pub fn line(&self, organisation: OrganisationId, number: &str) -> Option<&Extension> {
        // The key is owned; one short copy per call setup, never per packet.
        self.lines.get(&(organisation, number.to_owned())).and_then(|at| self.snapshot.extensions.get(*at))
    }

    /// The address of record of an extension: `number@domain`.
    pub fn aor(&self, extension: &Extension) -> Option<String> {
        let organisation = self.organisation(extension.organisation_id)?;
        Some(format!("{}@{}", extension.number, organisation.sip_domain))
    }

    /// The addresses of record that `other`, a later reading, no longer has.
    pub fn lines_missing_in(&self, other: &Directory) -> Vec<String> {
        let remains: HashSet<String> =
            other.snapshot.extensions.iter().filter_map(|line| other.aor(line)).collect();
        let lines = self.snapshot.extensions.iter().filter_map(|line| self.aor(line));
        lines.filter(|aor| !remains.contains(aor)).collect()
    }

    /// The trunk of that id.
    pub fn trunk(&self, id: TrunkId) -> Option<&Trunk> {
        self.snapshot.trunks.iter().find(|trunk| trunk.id == id)
    }

    /// The phone number `e164`, with its `+`.
    pub fn number(&self, e164: &str) -> Option<&Number> {
        self.numbers.get(e164).and_then(|at| self.snapshot.numbers.get(*at))
    }

    /// The trunk whose calls come from `source`: the longest matching block wins, then the first by name.
    pub fn trunk_from(&self, source: IpAddr) -> Option<&Trunk> {
        let longest = |trunk: &&Trunk| {
            trunk.accept_from.iter().filter(|network| network.contains(source)).map(|n| n.prefix_len).max()
        };
        self.snapshot
            .trunks
            .iter()
            .filter_map(|trunk| longest(&trunk).map(|prefix_len| (prefix_len, trunk)))
            .max_by(|(a, x), (b, y)| a.cmp(b).then_with(|| y.name.cmp(&x.name)))
            .map(|(_, trunk)| trunk)
    }
}

fn index<T, K: std::hash::Hash + Eq>(items: &[T], key: impl Fn(&T) -> K) -> HashMap<K, usize> {
    items.iter().enumerate().map(|(at, item)| (key(item), at)).collect()
}
