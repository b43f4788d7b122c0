//! The directory as the switch reads it on every call: one consistent snapshot, indexed.

use std::collections::HashMap;
use std::net::IpAddr;

use sidetone_model::directory::{Destination, DirectorySnapshot, Extension, Number, Organisation, Trunk};
use sidetone_model::ids::{ExtensionId, OrganisationId, RoomId, TrunkId};
use sidetone_model::room::RoomConfig;
use sidetone_sip::message::Host;

use crate::routing::carrier_numbers::from_carrier;

/// An indexed [`DirectorySnapshot`]; immutable, replaced as a whole when the stored directory changes.
#[derive(Debug, Default)]
pub struct Directory {
    snapshot: DirectorySnapshot,
    organisations: HashMap<OrganisationId, usize>,
    domains: HashMap<String, usize>,
    extensions: HashMap<ExtensionId, usize>,
    lines: HashMap<OrganisationId, HashMap<String, usize>>,
    numbers: HashMap<String, usize>,
    /// The first number that leads to each extension.
    own_numbers: HashMap<ExtensionId, usize>,
    rooms: HashMap<RoomId, usize>,
    room_numbers: HashMap<(OrganisationId, String), usize>,
    /// The first number of each organisation.
    main_numbers: HashMap<OrganisationId, usize>,
    /// The position of each trunk in the order of creation.
    trunk_ages: HashMap<TrunkId, usize>,
}

impl Directory {
    /// Indexes a snapshot, whose trunks must be in the order of creation.
    pub fn new(mut snapshot: DirectorySnapshot) -> Self {
        let trunk_ages = index(&snapshot.trunks, |trunk| trunk.id);
        snapshot.trunks.sort_by(|a, b| a.priority.cmp(&b.priority).then_with(|| a.name.cmp(&b.name)));
        let organisations = index(&snapshot.organisations, |organisation| organisation.id);
        let domains =
            index(&snapshot.organisations, |organisation| organisation.sip_domain.to_ascii_lowercase());
        let extensions = index(&snapshot.extensions, |extension| extension.id);
        let mut lines: HashMap<OrganisationId, HashMap<String, usize>> = HashMap::new();
        for (at, extension) in snapshot.extensions.iter().enumerate() {
            lines.entry(extension.organisation_id).or_default().insert(extension.number.clone(), at);
        }
        let numbers = index(&snapshot.numbers, |number| number.number.clone());
        let (mut own_numbers, mut main_numbers) = (HashMap::new(), HashMap::new());
        for (at, number) in snapshot.numbers.iter().enumerate() {
            if let Destination::Extension(extension) = number.destination {
                own_numbers.entry(extension).or_insert(at);
            }
            main_numbers.entry(number.organisation_id).or_insert(at);
        }
        let rooms = index(&snapshot.rooms, |room| room.id);
        let room_numbers = index(&snapshot.rooms, |room| (room.organisation_id, room.number.clone()));
        Directory {
            snapshot,
            organisations,
            domains,
            extensions,
            lines,
            numbers,
            own_numbers,
            rooms,
            room_numbers,
            main_numbers,
            trunk_ages,
        }
    }

    /// Returns the stored revision of this snapshot.
    pub fn revision(&self) -> i64 {
        self.snapshot.revision
    }

    /// Returns the organisation of that id.
    pub fn organisation(&self, id: OrganisationId) -> Option<&Organisation> {
        self.organisations.get(&id).and_then(|at| self.snapshot.organisations.get(*at))
    }

    /// Returns the organisation whose phones use `domain`. Without a match it returns the only organisation,
    /// if there is just one, so that phones of a single-tenant installation may use the host's address as
    /// domain.
    pub fn organisation_of_domain(&self, domain: &str) -> Option<&Organisation> {
        if let Some(at) = self.domains.get(&domain.to_ascii_lowercase()) {
            return self.snapshot.organisations.get(*at);
        }
        match self.snapshot.organisations.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Whether the node serves more than one organisation.
    pub fn has_several_organisations(&self) -> bool {
        self.snapshot.organisations.len() > 1
    }

    /// Whether `host` is the domain of another organisation than this one. Other hosts, such as the server's addresses
    /// and names, belong to none.
    pub fn is_domain_of_another(&self, host: &Host, organisation: OrganisationId) -> bool {
        let Host::Name(name) = host else { return false };
        let at = self.domains.get(&name.to_ascii_lowercase());
        let owner = at.and_then(|at| self.snapshot.organisations.get(*at));
        owner.is_some_and(|owner| owner.id != organisation)
    }

    /// Returns the extension of that id.
    pub fn extension(&self, id: ExtensionId) -> Option<&Extension> {
        self.extensions.get(&id).and_then(|at| self.snapshot.extensions.get(*at))
    }

    /// Returns the extension that an organisation dials as `number`.
    pub fn line(&self, organisation: OrganisationId, number: &str) -> Option<&Extension> {
        self.lines.get(&organisation)?.get(number).and_then(|at| self.snapshot.extensions.get(*at))
    }

    /// Returns the extension with this address of record.
    pub fn line_of(&self, aor: &str) -> Option<&Extension> {
        let (number, domain) = aor.rsplit_once('@')?;
        self.line(self.organisation_of_domain(domain)?.id, number)
    }

    /// Returns the extensions of an organisation.
    pub fn lines_of(&self, organisation: OrganisationId) -> impl Iterator<Item = &Extension> {
        let lines = self.lines.get(&organisation).into_iter().flat_map(HashMap::values);
        lines.filter_map(|at| self.snapshot.extensions.get(*at))
    }

    /// Returns every organisation.
    pub fn organisations(&self) -> &[Organisation] {
        &self.snapshot.organisations
    }

    /// Returns the extensions of all organisations.
    pub fn extensions(&self) -> &[Extension] {
        &self.snapshot.extensions
    }

    /// Returns the address of record of an extension: `number@domain`.
    pub fn aor(&self, extension: &Extension) -> Option<String> {
        let organisation = self.organisation(extension.organisation_id)?;
        Some(format!("{}@{}", extension.number, organisation.sip_domain))
    }

    /// Returns the extensions whose registrations end with the later snapshot `other`: those that were
    /// deleted, or that have another address of record or another credential there. A proof by the old
    /// credential is no longer valid.
    pub fn lines_changed_in(&self, other: &Directory) -> Vec<&Extension> {
        let is_same = |line: &Extension| {
            other
                .extension(line.id)
                .is_some_and(|after| after.ha1 == line.ha1 && other.aor(after) == self.aor(line))
        };
        self.snapshot.extensions.iter().filter(|line| !is_same(line)).collect()
    }

    /// Returns the trunk of that id.
    pub fn trunk(&self, id: TrunkId) -> Option<&Trunk> {
        self.snapshot.trunks.iter().find(|trunk| trunk.id == id)
    }

    /// Returns the position of a trunk in the order of creation.
    pub fn trunk_age(&self, id: TrunkId) -> usize {
        self.trunk_ages.get(&id).copied().unwrap_or(usize::MAX)
    }

    /// Returns the phone number `e164`, written with its `+`.
    pub fn number(&self, e164: &str) -> Option<&Number> {
        self.numbers.get(e164).and_then(|at| self.snapshot.numbers.get(*at))
    }

    /// Returns the phone number for digits as the carrier of a trunk writes them.
    pub fn number_of_carrier(&self, trunk: &Trunk, dialled: &str) -> Option<&Number> {
        from_carrier(&trunk.interop, dialled).and_then(|e164| self.number(&e164))
    }

    /// Returns the conference room of that id.
    pub fn room(&self, id: RoomId) -> Option<&RoomConfig> {
        self.rooms.get(&id).and_then(|at| self.snapshot.rooms.get(*at))
    }

    /// Returns the conference room that an organisation dials as `number`. An extension with the same digits
    /// takes precedence: call [`Directory::line`] first.
    pub fn room_by_number(&self, organisation: OrganisationId, number: &str) -> Option<&RoomConfig> {
        let at = self.room_numbers.get(&(organisation, number.to_owned()))?;
        self.snapshot.rooms.get(*at)
    }

    /// Returns all conference rooms.
    pub fn rooms(&self) -> &[RoomConfig] {
        &self.snapshot.rooms
    }

    /// Returns the first phone number of an organisation: the caller ID of its calls that come from no
    /// extension.
    pub fn main_number(&self, organisation: OrganisationId) -> Option<&Number> {
        self.main_numbers.get(&organisation).and_then(|at| self.snapshot.numbers.get(*at))
    }

    /// Returns the number of an organisation that has exactly one.
    pub fn only_number(&self, organisation: OrganisationId) -> Option<&Number> {
        let first = *self.main_numbers.get(&organisation)?;
        let mut others = self.snapshot.numbers.iter().skip(first + 1);
        let is_alone = !others.any(|number| number.organisation_id == organisation);
        self.snapshot.numbers.get(first).filter(|_| is_alone)
    }

    /// Returns the caller ID of an extension: the first number that leads to it, else the organisation's
    /// first number.
    pub fn number_shown_by(&self, extension: &Extension) -> Option<&Number> {
        let at = self
            .own_numbers
            .get(&extension.id)
            .or_else(|| self.main_numbers.get(&extension.organisation_id))?;
        self.snapshot.numbers.get(*at)
    }

    /// Returns all trunks; the one to try first comes first.
    pub fn trunks(&self) -> &[Trunk] {
        &self.snapshot.trunks
    }

    /// Returns the trunks that take calls of an organisation: its own and the shared ones. The one to try
    /// first comes first.
    pub fn trunks_of(&self, organisation: OrganisationId) -> impl Iterator<Item = &Trunk> {
        self.snapshot.trunks.iter().filter(move |trunk| {
            trunk.address.is_some() && trunk.organisation_id.is_none_or(|owner| owner == organisation)
        })
    }

    /// Returns the trunk that a call from `source` to `dialled` belongs to.
    ///
    /// Several tenants may use the same carrier: trunks that reach the number come first. Among those the
    /// longest matching network wins, then a tenant's own trunk before a shared one, then the first by name.
    /// `proven` returns whether a trunk is identified by more than a network: the switch is registered with it at
    /// exactly that address, or the connection has its certificate.
    pub fn trunk_from(
        &self,
        source: IpAddr,
        dialled: &str,
        proven: impl Fn(&Trunk) -> bool,
    ) -> Option<&Trunk> {
        let matching = |trunk: &Trunk| {
            let blocks = trunk.accept_from.iter().filter(|network| network.contains(source));
            let longest = blocks.map(|network| network.prefix_len).max();
            longest.max(proven(trunk).then_some(u8::MAX))
        };
        let reaches = |trunk: &Trunk| {
            let number = self.number_of_carrier(trunk, dialled);
            number.is_some_and(|number| trunk.organisation_id.is_none_or(|own| own == number.organisation_id))
        };
        self.snapshot
            .trunks
            .iter()
            .filter_map(|trunk| matching(trunk).map(|prefix_len| (trunk, prefix_len)))
            .max_by(|(a, a_len), (b, b_len)| {
                let rank = |trunk: &Trunk, len: u8| (reaches(trunk), len, trunk.organisation_id.is_some());
                rank(a, *a_len).cmp(&rank(b, *b_len)).then_with(|| b.name.cmp(&a.name))
            })
            .map(|(trunk, _)| trunk)
    }
}

#[cfg(test)]
impl Directory {
    pub(super) fn snapshot(&self) -> DirectorySnapshot {
        self.snapshot.clone()
    }
}

fn index<T, K: std::hash::Hash + Eq>(items: &[T], key: impl Fn(&T) -> K) -> HashMap<K, usize> {
    items.iter().enumerate().map(|(at, item)| (key(item), at)).collect()
}
