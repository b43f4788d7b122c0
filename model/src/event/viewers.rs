//! The viewers of an event, in addition to callers who see the whole organisation.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::access::Scope;
use crate::ids::{ExtensionId, OrganisationId, TeamId};

/// The teams and the extensions that an event of a live room concerns: those of the members.
///
/// A user who sees one team sees the event if it concerns the user's team, or an extension on which the user
/// takes calls; see [`crate::room::RoomViewer`].
///
/// Its text in the database is a sequence of items: `t` and the digits of a team, or `x` and those of an extension.
/// Neither letter is a hexadecimal digit, so a search for one item cannot match across items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventViewers {
    /// The members' teams.
    pub teams: BTreeSet<TeamId>,
    /// The members' extensions.
    pub extensions: BTreeSet<ExtensionId>,
}

/// A reader of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventReader {
    /// The reader's scope.
    pub scope: Scope,
    /// The extensions on which the reader takes calls; only for a user who sees one team.
    pub extensions: Vec<ExtensionId>,
}

impl EventViewers {
    /// Whether there are neither teams nor extensions.
    pub fn is_empty(&self) -> bool {
        self.teams.is_empty() && self.extensions.is_empty()
    }

    /// The text of a team.
    pub fn team_text(team: TeamId) -> String {
        format!("t{}", team.0.simple())
    }

    /// The text of an extension.
    pub fn extension_text(extension: ExtensionId) -> String {
        format!("x{}", extension.0.simple())
    }
}

impl fmt::Display for EventViewers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.teams.iter().try_for_each(|team| f.write_str(&Self::team_text(*team)))?;
        self.extensions.iter().try_for_each(|extension| f.write_str(&Self::extension_text(*extension)))
    }
}

/// The text does not contain viewers in this form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be teams and extensions, each a letter and 32 hexadecimal digits")]
pub struct EventViewersError;

impl FromStr for EventViewers {
    type Err = EventViewersError;

    fn from_str(text: &str) -> Result<Self, EventViewersError> {
        let mut viewers = Self::default();
        let mut rest = text;
        while !rest.is_empty() {
            let (one, further) = rest.split_at_checked(TEXT_LEN).ok_or(EventViewersError)?;
            let (letter, digits) = one.split_at_checked(1).ok_or(EventViewersError)?;
            let id = Uuid::try_parse(digits).map_err(|_| EventViewersError)?;
            match letter {
                "t" => drop(viewers.teams.insert(TeamId(id))),
                "x" => drop(viewers.extensions.insert(ExtensionId(id))),
                _ => return Err(EventViewersError),
            }
            rest = further;
        }
        Ok(viewers)
    }
}

impl EventReader {
    /// Whether the reader may see an event of that organisation, team and viewers.
    pub fn sees(
        &self,
        organisation: OrganisationId,
        team: Option<TeamId>,
        viewers: Option<&EventViewers>,
    ) -> bool {
        if self.scope.covers(organisation, team) {
            return true;
        }
        let Some(viewers) = viewers.filter(|_| self.scope.reaches(organisation)) else { return false };
        viewers.teams.iter().any(|team| self.scope.covers(organisation, Some(*team)))
            || self.extensions.iter().any(|own| viewers.extensions.contains(own))
    }
}

/// A reader without extensions.
impl From<Scope> for EventReader {
    fn from(scope: Scope) -> Self {
        Self { scope, extensions: Vec::new() }
    }
}

/// The length of the text of one team or extension.
const TEXT_LEN: usize = 33;

#[cfg(test)]
mod tests {
    use super::*;

    fn viewers(teams: &[u128], extensions: &[u128]) -> EventViewers {
        EventViewers {
            teams: teams.iter().map(|number| TeamId(Uuid::from_u128(*number))).collect(),
            extensions: extensions.iter().map(|number| ExtensionId(Uuid::from_u128(*number))).collect(),
        }
    }

    #[test]
    fn texts_round_trip_and_wrong_ones_are_refused() {
        for known in [viewers(&[], &[]), viewers(&[1, 2], &[]), viewers(&[7], &[3, u128::MAX])] {
            assert_eq!(known.to_string().parse(), Ok(known));
        }
        let one = viewers(&[7], &[]).to_string();
        for wrong in [&one[..32], &one[1..], "x", "täglich", &one.replace('t', "y")] {
            assert_eq!(wrong.parse::<EventViewers>(), Err(EventViewersError), "{wrong}");
        }
    }

    #[test]
    fn a_team_and_an_own_extension_see_the_event_in_their_organisation_only() {
        let (acme, bolt) = (OrganisationId(Uuid::from_u128(1)), OrganisationId(Uuid::from_u128(2)));
        let reader = |organisation, team: Option<u128>, extensions: &[u128]| EventReader {
            scope: Scope::Team { organisation, team: team.map(|number| TeamId(Uuid::from_u128(number))) },
            extensions: extensions.iter().map(|number| ExtensionId(Uuid::from_u128(*number))).collect(),
        };
        let of_room = viewers(&[7], &[3]);
        let cases = [
            (reader(acme, Some(7), &[]), true),
            (reader(acme, Some(8), &[]), false),
            (reader(acme, Some(8), &[3]), true),
            (reader(acme, None, &[4, 3]), true),
            (reader(acme, None, &[]), false),
            (reader(bolt, Some(7), &[3]), false),
            (Scope::Organisation(acme).into(), true),
            (Scope::Organisation(bolt).into(), false),
            (Scope::Everything.into(), true),
        ];
        for (reader, expected) in cases {
            assert_eq!(reader.sees(acme, None, Some(&of_room)), expected, "{reader:?}");
            let of_none =
                matches!(reader.scope, Scope::Everything) || reader.scope == Scope::Organisation(acme);
            assert_eq!(reader.sees(acme, None, None), of_none, "{reader:?}");
        }
    }
}
