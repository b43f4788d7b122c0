//! The dial plan: maps the caller and the dialled number to a target.
//!
//! An extension reaches the extensions, conference rooms and numbers of its organisation, in this order, and
//! outside numbers through a trunk. A trunk reaches only numbers of ours: a call from outside never leaves
//! through a trunk.

use sidetone_model::directory::{Destination, Extension, Number, Trunk};
use sidetone_model::ids::OrganisationId;
use sidetone_model::numbering::{NumberFault, normalise, without_separators};
use sidetone_model::room::RoomConfig;

use super::directory::Directory;

/// The caller.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// An extension that authenticated by digest.
    Extension(&'a Extension),
    /// A trunk, identified by its source address.
    Trunk(&'a Trunk),
}

/// The route of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route<'a> {
    /// The organisation of the call's record.
    pub organisation_id: OrganisationId,
    /// The target.
    pub target: Target<'a>,
    /// The number as routed, if it differs from the dialled one.
    pub number: Option<String>,
}

/// The target of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A conference room; `None` means that the caller is asked for one.
    Conference(Option<&'a RoomConfig>),
    /// An extension.
    Extension(&'a Extension),
    /// An outside number.
    Outside(Outside<'a>),
}

/// An outside number and the trunks to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside<'a> {
    /// The number as trunks receive it: E.164 with `+`, or a short number as dialled.
    pub number: String,
    /// The trunks that take it; at least one, the one to try first comes first.
    pub trunks: Vec<&'a Trunk>,
}

/// Whether a number, as trunks receive it, is a short one: emergency services have such numbers.
pub fn is_short(number: &str) -> bool {
    !number.starts_with('+')
}

/// A call without a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The organisation, if the origin determines it.
    pub organisation_id: Option<OrganisationId>,
    /// The reason.
    pub reason: Reason,
}

/// Why a call has no target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A national number, dialled in an organisation without a country.
    NoCountry,
    /// An outside number that no trunk takes.
    NoTrunk,
    /// No such number.
    Unallocated,
}

/// Returns the route of `dialled` for `origin`.
///
/// # Errors
/// [`Refusal`] when the number has no target.
pub fn route<'a>(directory: &'a Directory, origin: Origin<'_>, dialled: &str) -> Result<Route<'a>, Refusal> {
    match origin {
        Origin::Extension(caller) => from_extension(directory, caller.organisation_id, dialled),
        Origin::Trunk(trunk) => from_trunk(directory, trunk, dialled),
    }
}

/// Returns the route of an organisation to an outside number, for any caller.
///
/// # Errors
/// [`Reason`] when there is none.
pub fn outside<'a>(
    directory: &'a Directory,
    organisation_id: OrganisationId,
    dialled: &str,
) -> Result<Outside<'a>, Reason> {
    let short = without_separators(dialled);
    let taking_short = |trunk: &&Trunk| trunk.short_numbers.contains(&short);
    let trunks: Vec<_> = directory.trunks_of(organisation_id).filter(taking_short).collect();
    if !trunks.is_empty() {
        return Ok(Outside { number: short, trunks });
    }
    let number = number_of(directory, organisation_id, dialled)?;
    let trunks: Vec<_> = directory.trunks_of(organisation_id).collect();
    if trunks.is_empty() { Err(Reason::NoTrunk) } else { Ok(Outside { number, trunks }) }
}

/// Returns the target of a number that an extension of the organisation dials.
///
/// # Errors
/// [`Refusal`] when the number has no target.
pub fn from_extension<'a>(
    directory: &'a Directory,
    organisation_id: OrganisationId,
    dialled: &str,
) -> Result<Route<'a>, Refusal> {
    let refusal = |reason| Refusal { organisation_id: Some(organisation_id), reason };
    if let Some(extension) = directory.line(organisation_id, dialled) {
        return Ok(Route { organisation_id, target: Target::Extension(extension), number: None });
    }
    if let Some(room) = directory.room_by_number(organisation_id, dialled) {
        return Ok(Route { organisation_id, target: Target::Conference(Some(room)), number: None });
    }
    let routed = |number: &str| (number != dialled).then(|| number.to_owned());
    // A number of the organisation itself is reached directly, without a trunk and free of charge.
    let own = number_of(directory, organisation_id, dialled).ok().and_then(|e164| directory.number(&e164));
    if let Some(own) = own.filter(|number| number.organisation_id == organisation_id) {
        let target = target_of(directory, own).ok_or_else(|| refusal(Reason::Unallocated))?;
        return Ok(Route { organisation_id, target, number: routed(&own.number) });
    }
    let outside = outside(directory, organisation_id, dialled).map_err(refusal)?;
    let number = routed(&outside.number);
    Ok(Route { organisation_id, target: Target::Outside(outside), number })
}

fn from_trunk<'a>(directory: &'a Directory, trunk: &Trunk, dialled: &str) -> Result<Route<'a>, Refusal> {
    let unallocated = || Refusal { organisation_id: trunk.organisation_id, reason: Reason::Unallocated };
    let number = directory.number_of_carrier(trunk, dialled).ok_or_else(unallocated)?;
    // A trunk of one organisation reaches only that organisation's numbers.
    if trunk.organisation_id.is_some_and(|owner| owner != number.organisation_id) {
        return Err(unallocated());
    }
    let target = target_of(directory, number).ok_or_else(unallocated)?;
    let routed = (number.number != dialled).then(|| number.number.clone());
    Ok(Route { organisation_id: number.organisation_id, target, number: routed })
}

/// Returns the target of a number; `None` when the target was deleted.
fn target_of<'a>(directory: &'a Directory, number: &Number) -> Option<Target<'a>> {
    Some(match number.destination {
        Destination::Conference(None) => Target::Conference(None),
        Destination::Conference(Some(room)) => Target::Conference(Some(directory.room(room)?)),
        Destination::Extension(extension) => Target::Extension(directory.extension(extension)?),
    })
}

fn number_of(
    directory: &Directory,
    organisation_id: OrganisationId,
    dialled: &str,
) -> Result<String, Reason> {
    let organisation = directory.organisation(organisation_id).ok_or(Reason::Unallocated)?;
    normalise(&organisation.numbering, dialled).map_err(|fault| match fault {
        NumberFault::NoCountry => Reason::NoCountry,
        NumberFault::NoNumber => Reason::Unallocated,
    })
}

#[cfg(test)]
mod tests {
    use sidetone_model::directory::{
        DirectorySnapshot, Ha1, Network, Numbering, Organisation, Secret, Srtp, Video,
    };
    use sidetone_model::forwarding::Forwarding;
    use sidetone_model::ids::{ExtensionId, NumberId, RoomId, TrunkId};
    use sidetone_model::room::Pin;
    use sidetone_model::trunk_interop::TrunkInterop;
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
            max_call_seconds: None,
            language: Default::default(),
            star_codes: true,
        }
    }

    fn extension(n: u128, organisation: u128, number: &str) -> Extension {
        Extension {
            id: id(n),
            organisation_id: id(organisation),
            agent_id: None,
            team_id: None,
            number: number.into(),
            name: number.into(),
            ha1: Ha1 { md5: String::new(), sha256: String::new() },
            codecs: Vec::new(),
            strict_source: None,
            srtp: Srtp::Off,
            video: Video::Off,
            forwarding: Forwarding::default(),
            do_not_disturb: false,
            language: None,
            max_registrations: 10,
            notify_message_waiting: false,
            message_waiting: Default::default(),
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
            strict_source: None,
            srtp: Srtp::Off,
            video: Video::Off,
            max_call_seconds: None,
            interop: TrunkInterop::default(),
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
            ..DirectorySnapshot::default()
        })
    }

    fn rings(route: &Result<Route<'_>, Refusal>) -> Option<ExtensionId> {
        match route.as_ref().map(|route| &route.target) {
            Ok(Target::Extension(extension)) => Some(extension.id),
            _ => None,
        }
    }

    fn unallocated(organisation_id: Option<OrganisationId>) -> Refusal {
        Refusal { organisation_id, reason: Reason::Unallocated }
    }

    #[test]
    fn extensions_reach_their_own_organisation_only() {
        let directory = directory();
        let caller = directory.extension(id(11)).unwrap();
        let route_of = |dialled| route(&directory, Origin::Extension(caller), dialled);
        assert_eq!(rings(&route_of("1002")), Some(id(12)));
        assert_eq!(rings(&route_of("1001")), Some(id(11)));
        for dialled in ["9999", "", "112"] {
            assert_eq!(route_of(dialled), Err(unallocated(Some(id(1)))), "{dialled}");
        }
    }

    #[test]
    fn trunks_reach_numbers_however_carriers_write_them() {
        let directory = directory();
        let shared = trunk(41, None, "192.0.2.0", 24);
        for dialled in ["+442071230000", "442071230000", "00442071230000", "+44-207-123.0000"] {
            let route = route(&directory, Origin::Trunk(&shared), dialled);
            assert_eq!(rings(&route), Some(id(12)), "{dialled}");
            assert_eq!(
                route.unwrap().number.as_deref(),
                (dialled != "+442071230000").then_some("+442071230000")
            );
        }
        // The last one is an outside number: a call from a trunk does not leave through a trunk.
        for dialled in ["1002", "+44207123000a", "", "+4420712300001234567", "+33140000000"] {
            assert_eq!(
                route(&directory, Origin::Trunk(&shared), dialled),
                Err(unallocated(None)),
                "{dialled}"
            );
        }
    }

    #[test]
    fn an_organisations_trunk_does_not_reach_another() {
        let directory = directory();
        let own = trunk(42, Some(1), "192.0.2.7", 32);
        assert_eq!(route(&directory, Origin::Trunk(&own), "+442071239999"), Err(unallocated(Some(id(1)))));
    }

    #[test]
    fn the_longest_block_tells_the_trunk() {
        let directory = directory();
        let name = |address: &str| {
            let trunk = directory.trunk_from(address.parse().unwrap(), "", |_| false);
            trunk.map(|trunk| trunk.name.as_str())
        };
        assert_eq!(name("192.0.2.7"), Some("trunk-42"));
        assert_eq!(name("::ffff:192.0.2.8"), Some("trunk-41"));
        assert_eq!(name("198.51.100.1"), None);
    }

    fn room(n: u128, organisation: u128, number: &str) -> RoomConfig {
        RoomConfig {
            id: id(n),
            organisation_id: id(organisation),
            name: number.into(),
            number: number.into(),
            participant_pin: Pin::default(),
            moderator_pin: Pin::default(),
            wait_for_moderator: false,
            end_when_moderator_leaves: false,
            record: false,
            record_channels: 1,
            announce_names: false,
            max_members: 0,
            exemptions: Vec::new(),
            members: Vec::new(),
        }
    }

    /// 200 is a room of acme; 1002 a room hidden by an extension with the same number; 300 a room of the
    /// other tenant. Three numbers of acme lead to 200, to the room that the caller chooses, and to a deleted
    /// room.
    fn with_rooms() -> Directory {
        let mut snapshot = directory().snapshot();
        snapshot.rooms = vec![room(51, 1, "200"), room(52, 1, "1002"), room(53, 2, "300")];
        for (n, text, room) in
            [(33, "+442071230001", Some(51)), (34, "+442071230002", None), (35, "+442071230003", Some(59))]
        {
            let destination = Destination::Conference(room.map(id::<RoomId>));
            let number = text.into();
            snapshot.numbers.push(Number { id: id(n), organisation_id: id(1), number, destination });
        }
        snapshot.organisations[0].numbering.country_code = Some("44".into());
        Directory::new(snapshot)
    }

    #[test]
    fn rooms_are_dialled_behind_extensions_and_before_the_world() {
        let directory = with_rooms();
        let caller = directory.extension(id(11)).unwrap();
        let room_of = |dialled| match route(&directory, Origin::Extension(caller), dialled) {
            Ok(Route { target: Target::Conference(room), number, .. }) => {
                Some((room.map(|room| room.id), number))
            }
            _ => None,
        };
        let cases = [
            ("200", Some((Some(id(51)), None))),
            ("1002", None),
            ("300", None),
            ("201", None),
            ("+442071230001", Some((Some(id(51)), None))),
            ("02071230001", Some((Some(id(51)), Some("+442071230001".to_owned())))),
            ("02071230002", Some((None, Some("+442071230002".to_owned())))),
            ("+442071230003", None),
        ];
        for (dialled, expected) in cases {
            assert_eq!(room_of(dialled), expected, "{dialled}");
        }
        assert_eq!(rings(&route(&directory, Origin::Extension(caller), "1002")), Some(id(12)));
    }

    #[test]
    fn a_trunk_reaches_rooms_by_numbers_alone() {
        let directory = with_rooms();
        let shared = trunk(41, None, "192.0.2.0", 24);
        let room_of = |dialled| match route(&directory, Origin::Trunk(&shared), dialled) {
            Ok(Route { target: Target::Conference(room), .. }) => Ok(room.map(|room| room.id)),
            Ok(_) => panic!("{dialled}"),
            Err(refusal) => Err(refusal.reason),
        };
        assert_eq!(room_of("442071230001"), Ok(Some(id(51))));
        assert_eq!(room_of("442071230002"), Ok(None));
        assert_eq!(room_of("442071230003"), Err(Reason::Unallocated));
        assert_eq!(room_of("200"), Err(Reason::Unallocated));
    }

    /// Two tenants share one carrier: the dialled number, not the narrower network, determines the tenant of the call.
    #[test]
    fn of_overlapping_trunks_the_one_that_reaches_the_number_is_meant() {
        let mut snapshot = directory().snapshot();
        snapshot.trunks = vec![
            trunk(41, None, "192.0.0.0", 8),
            trunk(42, Some(1), "192.0.2.0", 24),
            trunk(43, Some(2), "192.0.2.7", 32),
        ];
        snapshot.trunks[0].register = true;
        let directory = Directory::new(snapshot);
        let trunk_of = |address: &str, dialled: &str, registered: bool| {
            let trunk =
                directory.trunk_from(address.parse().unwrap(), dialled, |trunk| trunk.register && registered);
            trunk.map(|trunk| trunk.name.as_str())
        };
        assert_eq!(trunk_of("192.0.2.7", "+442071230000", false), Some("trunk-42"));
        assert_eq!(trunk_of("192.0.2.7", "442071239999", false), Some("trunk-43"));
        assert_eq!(trunk_of("192.0.2.7", "+33140000000", false), Some("trunk-43"));
        assert_eq!(trunk_of("192.0.2.8", "+442071239999", false), Some("trunk-41"));
        assert_eq!(trunk_of("198.51.100.1", "+442071230000", false), None);
        assert_eq!(trunk_of("198.51.100.1", "+442071230000", true), Some("trunk-41"));
    }

    /// Calls to the organisation's own numbers stay inside; calls to numbers of other organisations use a trunk.
    #[test]
    fn extensions_reach_the_world_by_trunks_in_order() {
        let mut snapshot = directory().snapshot();
        let address = || Some("sip:carrier.example".to_owned());
        let ways =
            [(41, None, 20, true), (42, Some(1), 10, true), (43, Some(2), 1, true), (44, None, 1, false)];
        snapshot.trunks = ways
            .into_iter()
            .map(|(n, owner, priority, has_address)| Trunk {
                priority,
                address: address().filter(|_| has_address),
                short_numbers: if n == 41 { vec!["112".to_owned()] } else { Vec::new() },
                ..trunk(n, owner, "192.0.2.0", 24)
            })
            .collect();
        snapshot.organisations[0].numbering.country_code = Some("44".to_owned());
        let directory = Directory::new(snapshot);
        let caller = directory.extension(id(11)).unwrap();
        let out = |dialled: &str| match route(&directory, Origin::Extension(caller), dialled) {
            Ok(Route { target: Target::Outside(outside), number, .. }) => {
                let trunks = outside.trunks.iter().map(|trunk| trunk.name.clone()).collect::<Vec<_>>();
                Ok((outside.number, number, trunks.join(" ")))
            }
            Ok(Route { target: Target::Extension(extension), number, .. }) => {
                Ok((extension.number.clone(), number, "inside".to_owned()))
            }
            Ok(Route { target: Target::Conference(_), .. }) => panic!("{dialled} is no room"),
            Err(refusal) => Err(refusal.reason),
        };
        let route = |number: &str, routed: Option<&str>, ways: &str| {
            Ok((number.to_owned(), routed.map(str::to_owned), ways.to_owned()))
        };
        let both = "trunk-42 trunk-41";
        assert_eq!(out("+33140000000"), route("+33140000000", None, both));
        assert_eq!(out("0033 1 40 00 00 00"), route("+33140000000", Some("+33140000000"), both));
        assert_eq!(out("020 7123 0001"), route("+442071230001", Some("+442071230001"), both));
        assert_eq!(out("112"), route("112", None, "trunk-41"));
        assert_eq!(out("020 7123 0000"), route("1002", Some("+442071230000"), "inside"));
        assert_eq!(out("+442071239999"), route("+442071239999", None, both));
        assert_eq!(out("999"), Err(Reason::Unallocated));

        let other = directory.extension(id(21)).unwrap();
        let refused = super::route(&directory, Origin::Extension(other), "02071230001").unwrap_err();
        assert_eq!(refused, Refusal { organisation_id: Some(id(2)), reason: Reason::NoCountry });
        let mut alone = directory.snapshot();
        alone.trunks.clear();
        let alone = Directory::new(alone);
        let caller = alone.extension(id(11)).unwrap();
        let refused = super::route(&alone, Origin::Extension(caller), "+33140000000").unwrap_err();
        assert_eq!(refused.reason, Reason::NoTrunk);
    }

    #[test]
    fn a_line_shows_its_own_number_or_the_first_of_its_organisation() {
        let directory = directory();
        let shown = |n| {
            let extension = directory.extension(id(n)).unwrap();
            directory.number_shown_by(extension).map(|number| number.number.as_str())
        };
        assert_eq!(shown(12), Some("+442071230000"));
        assert_eq!(shown(11), Some("+442071230000"));
        assert_eq!(shown(21), Some("+442071239999"));
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
