//! The dial plan: who called, what was dialled, where it leads.
//!
//! Extension to extension inside one organisation, and a trunk's number to an extension. Calls out to a
//! trunk are not routed here yet.

use sidetone_model::directory::{Destination, Extension, Trunk};
use sidetone_model::ids::OrganisationId;

use super::directory::Directory;

/// Who places the call.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// An extension that proved itself by digest.
    Extension(&'a Extension),
    /// A trunk, known by its source address.
    Trunk(&'a Trunk),
}

/// Where a call leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<'a> {
    /// The organisation the record belongs to.
    pub organisation_id: OrganisationId,
    /// The extension that rings.
    pub extension: &'a Extension,
    /// The number as routed, when that is another one than was dialled.
    pub number: Option<&'a str>,
}

/// Why a call leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such number here; the organisation is known when the origin tells it.
    Unallocated(Option<OrganisationId>),
}

/// The route of `dialled` for `origin`.
///
/// # Errors
/// [`Refusal::Unallocated`] when nothing answers to the number.
pub fn route<'a>(directory: &'a Directory, origin: Origin<'_>, dialled: &str) -> Result<Route<'a>, Refusal> {
    match origin {
        Origin::Extension(caller) => {
            let organisation_id = caller.organisation_id;
            directory
                .line(organisation_id, dialled)
                .map(|extension| Route { organisation_id, extension, number: None })
                .ok_or(Refusal::Unallocated(Some(organisation_id)))
        }
        Origin::Trunk(trunk) => {
            let unallocated = Refusal::Unallocated(trunk.organisation_id);
            let number = e164(dialled).and_then(|e164| directory.number(&e164)).ok_or(unallocated)?;
            // A trunk of one organisation reaches that organisation's numbers alone.
            if trunk.organisation_id.is_some_and(|owner| owner != number.organisation_id) {
                return Err(unallocated);
            }
            let Destination::Extension(extension) = number.destination;
            let extension = directory.extension(extension).ok_or(unallocated)?;
            let routed = (number.number != dialled).then_some(number.number.as_str());
            Ok(Route { organisation_id: number.organisation_id, extension, number: routed })
        }
    }
}

/// The E.164 form of a number as carriers write it: `+44…`, `0044…`, `44…`, with or without separators.
fn e164(dialled: &str) -> Option<String> {
    let digits: String = dialled.chars().filter(|c| !matches!(c, '-' | '.' | '(' | ')' | ' ')).collect();
    let bare = digits.strip_prefix('+').or_else(|| digits.strip_prefix("00")).unwrap_or(&digits);
    let plausible = (1..=DIGITS_MAX).contains(&bare.len()) && bare.bytes().all(|b| b.is_ascii_digit());
    plausible.then(|| format!("+{bare}"))
}

/// Digits of the longest E.164 number (ITU-T E.164 §6).
const DIGITS_MAX: usize = 15;

#[cfg(test)]
mod tests {
    use sidetone_model::directory::{
        DirectorySnapshot, Ha1, Network, Number, Numbering, Organisation, Secret,
    };
    use sidetone_model::ids::{ExtensionId, NumberId, TrunkId};
    use uuid::Uuid;

    use super::*;

    fn id<T: From<Uuid>>(n: u128) -> T {
        Uuid::from_u128(n).into()
    }

    fn organisation(n: u128, domain: &str) -> Organisation {
        Organisation {
            id: id(n),
            name: domain.into(),
            sip_domain: domain.into(),
            currency: "EUR".parse().unwrap(),
            numbering: Numbering::default(),
            max_outbound_calls: None,
        }
    }

    fn extension(n: u128, organisation: u128, number: &str) -> Extension {
        Extension {
            id: id(n),
            organisation_id: id(organisation),
            team_id: None,
            number: number.into(),
            name: number.into(),
            ha1: Ha1 { md5: String::new(), sha256: String::new() },
            codecs: Vec::new(),
        }
    }

    fn trunk(n: u128, owner: Option<u128>, address: &str, prefix_len: u8) -> Trunk {
        Trunk {
            id: id::<TrunkId>(n),
            organisation_id: owner.map(id),
            name: format!("trunk-{n}"),
            accept_from: vec![Network { address: address.parse().unwrap(), prefix_len }],
            address: None,
            priority: 10,
            username: String::new(),
            password: Secret::default(),
            realm: String::new(),
            register: false,
            short_numbers: Vec::new(),
        }
    }

    fn directory() -> Directory {
        let number = |n, organisation: u128, text: &str, extension: u128| Number {
            id: id::<NumberId>(n),
            organisation_id: id(organisation),
            number: text.into(),
            destination: Destination::Extension(id::<ExtensionId>(extension)),
        };
        Directory::new(DirectorySnapshot {
            revision: 1,
            organisations: vec![organisation(1, "acme.test"), organisation(2, "other.test")],
            extensions: vec![extension(11, 1, "1001"), extension(12, 1, "1002"), extension(21, 2, "1001")],
            numbers: vec![number(31, 1, "+442071230000", 12), number(32, 2, "+442071239999", 21)],
            trunks: vec![trunk(41, None, "192.0.2.0", 24), trunk(42, Some(1), "192.0.2.7", 32)],
        })
    }

    #[test]
    fn extensions_reach_their_own_organisation_only() {
        let directory = directory();
        let caller = directory.extension(id(11)).unwrap();
        let route_of = |dialled| route(&directory, Origin::Extension(caller), dialled);
        assert_eq!(route_of("1002").unwrap().extension.id, id(12));
        assert_eq!(route_of("1001").unwrap().extension.id, id(11));
        assert_eq!(route_of("9999"), Err(Refusal::Unallocated(Some(id(1)))));
        assert_eq!(route_of(""), Err(Refusal::Unallocated(Some(id(1)))));
    }

    #[test]
    fn trunks_reach_numbers_however_carriers_write_them() {
        let directory = directory();
        let shared = trunk(41, None, "192.0.2.0", 24);
        for dialled in ["+442071230000", "442071230000", "00442071230000", "+44-207-123.0000"] {
            let route = route(&directory, Origin::Trunk(&shared), dialled).unwrap();
            assert_eq!(route.extension.id, id(12), "{dialled}");
            assert_eq!(route.number, (dialled != "+442071230000").then_some("+442071230000"));
        }
        for dialled in ["1002", "+44207123000a", "", "+4420712300001234567"] {
            assert_eq!(
                route(&directory, Origin::Trunk(&shared), dialled),
                Err(Refusal::Unallocated(None)),
                "{dialled}"
            );
        }
    }

    #[test]
    fn an_organisations_trunk_does_not_reach_another() {
        let directory = directory();
        let own = trunk(42, Some(1), "192.0.2.7", 32);
        assert_eq!(
            route(&directory, Origin::Trunk(&own), "+442071239999"),
            Err(Refusal::Unallocated(Some(id(1))))
        );
    }

    #[test]
    fn the_longest_block_tells_the_trunk() {
        let directory = directory();
        let name = |address: &str| directory.trunk_from(address.parse().unwrap()).map(|t| t.name.as_str());
        assert_eq!(name("192.0.2.7"), Some("trunk-42"));
        assert_eq!(name("::ffff:192.0.2.8"), Some("trunk-41"));
        assert_eq!(name("198.51.100.1"), None);
    }

    #[test]
    fn a_domain_names_its_organisation_and_a_single_one_needs_no_name() {
        let directory = directory();
        assert_eq!(directory.organisation_of_domain("ACME.test").unwrap().id, id(1));
        assert_eq!(directory.organisation_of_domain("192.0.2.1"), None);
        let single = Directory::new(DirectorySnapshot {
            organisations: vec![organisation(1, "acme.test")],
            ..DirectorySnapshot::default()
        });
        assert_eq!(single.organisation_of_domain("192.0.2.1").unwrap().id, id(1));
    }
}
