//! The rows that a caller may see.

use crate::ids::{OrganisationId, TeamId};

/// The rows that a caller may see; every store function that reads an organisation's data takes a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All organisations: the operator's scope.
    Everything,
    /// One organisation.
    Organisation(OrganisationId),
    /// One team's part of an organisation; nothing for a user without a team.
    Team {
        /// The team's organisation.
        organisation: OrganisationId,
        /// The team.
        team: Option<TeamId>,
    },
}

impl Scope {
    /// Whether a resource of that organisation and team is visible.
    ///
    /// A resource without a team is visible only to callers who see the whole organisation.
    pub fn covers(self, organisation: OrganisationId, team: Option<TeamId>) -> bool {
        match self {
            Scope::Everything => true,
            Scope::Organisation(own) => own == organisation,
            Scope::Team { organisation: own, team: own_team } => {
                own == organisation && own_team.is_some() && own_team == team
            }
        }
    }

    /// Whether the caller belongs to that organisation or sees all of them: such a caller may filter a list
    /// by it and create resources in it. It does not follow that everything in it is visible.
    pub fn reaches(self, organisation: OrganisationId) -> bool {
        self.organisation().is_none_or(|own| own == organisation)
    }

    /// The only organisation of the caller; `None` means all.
    pub fn organisation(self) -> Option<OrganisationId> {
        match self {
            Scope::Everything => None,
            Scope::Organisation(organisation) | Scope::Team { organisation, .. } => Some(organisation),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn scopes_cover_their_own() {
        let organisation = |number| OrganisationId(Uuid::from_u128(number));
        let team = |number| Some(TeamId(Uuid::from_u128(number)));
        let (acme, bolt) = (organisation(1), organisation(2));
        let everything = Scope::Everything;
        let whole = Scope::Organisation(acme);
        let part = Scope::Team { organisation: acme, team: team(1) };
        let nothing = Scope::Team { organisation: acme, team: None };
        let cases = [
            (acme, team(1), [true, true, true, false]),
            (acme, team(2), [true, true, false, false]),
            (acme, None, [true, true, false, false]),
            (bolt, team(1), [true, false, false, false]),
            (bolt, None, [true, false, false, false]),
        ];
        for (organisation, team, expected) in cases {
            let covered = [everything, whole, part, nothing].map(|scope| scope.covers(organisation, team));
            assert_eq!(covered, expected, "{organisation} {team:?}");
        }
        let reached =
            [everything, whole, part, nothing].map(|scope| (scope.reaches(acme), scope.reaches(bolt)));
        assert_eq!(reached, [(true, true), (true, false), (true, false), (true, false)]);
    }
}
