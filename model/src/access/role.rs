//! The roles of users.

use serde::{Deserialize, Serialize};

use crate::access::{Permission, Scope};
use crate::ids::{OrganisationId, TeamId};

/// The role of a user: what the user sees and may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Role {
    /// Takes calls; sees their own team's records.
    Agent,
    /// Runs the platform; sees and may do everything in every organisation.
    Operator,
    /// Runs one organisation; everything in it except what the operator earns.
    OrgAdmin,
    /// Reads one organisation.
    OrgMember,
    /// Runs one team.
    TeamSupervisor,
}

impl Role {
    /// Every role with its name.
    pub const ALL: [(Role, &'static str); 5] = [
        (Role::Agent, "agent"),
        (Role::Operator, "operator"),
        (Role::OrgAdmin, "org_admin"),
        (Role::OrgMember, "org_member"),
        (Role::TeamSupervisor, "team_supervisor"),
    ];

    /// The name that the API uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Agent => "agent",
            Role::Operator => "operator",
            Role::OrgAdmin => "org_admin",
            Role::OrgMember => "org_member",
            Role::TeamSupervisor => "team_supervisor",
        }
    }

    /// The role of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(role, _)| *role)
    }

    /// The permissions of the role inside its scope.
    pub fn permissions(self) -> Vec<Permission> {
        use Permission::*;
        match self {
            Role::Agent => vec![CallsRead, ConferencesRead, DirectoryRead],
            Role::Operator => Permission::ALL.to_vec(),
            Role::OrgAdmin => Permission::ALL.iter().copied().filter(|p| *p != MarginRead).collect(),
            Role::OrgMember => vec![BillingRead, CallsRead, ConferencesRead, DirectoryRead],
            Role::TeamSupervisor => {
                vec![
                    CallsControl,
                    CallsRead,
                    ConferencesControl,
                    ConferencesRead,
                    DirectoryRead,
                    RecordingsListen,
                ]
            }
        }
    }

    /// The scope of a user with this role in that organisation and team.
    pub fn scope(self, organisation: OrganisationId, team: Option<TeamId>) -> Scope {
        match self {
            Role::Agent | Role::TeamSupervisor => Scope::Team { organisation, team },
            Role::Operator => Scope::Everything,
            Role::OrgAdmin | Role::OrgMember => Scope::Organisation(organisation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for (role, name) in Role::ALL {
            assert_eq!((role.as_str(), Role::from_name(name)), (name, Some(role)));
            assert_eq!(serde_json::to_value(role).unwrap(), name);
        }
        assert_eq!(Role::from_name("root"), None);
    }

    #[test]
    fn what_the_operator_earns_is_for_operators_alone() {
        for (role, name) in Role::ALL {
            let sees = role.permissions().contains(&Permission::MarginRead);
            assert_eq!(sees, role == Role::Operator, "{name}");
        }
    }
}
