//! The authenticated caller of a request.

use std::fmt;

use crate::access::{Permission, Role, Scope};
use crate::ids::{ApiKeyId, OrganisationId, UserId};

/// The credential that the caller authenticated with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    /// An integration, by its key.
    Key(ApiKeyId),
    /// A user who logged in.
    User(UserId),
}

/// `key:<id>` or `user:<id>`: the text for data that is stored per caller.
impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Key(key) => write!(f, "key:{key}"),
            Who::User(user) => write!(f, "user:{user}"),
        }
    }
}

/// The caller of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The key or the user.
    pub who: Who,
    /// The organisation of the caller. A resource that an operator creates without naming an organisation
    /// belongs to this one.
    pub organisation_id: OrganisationId,
    /// The role of a user; a key has only permissions.
    pub role: Option<Role>,
    /// The data that the caller may see.
    pub scope: Scope,
    /// The permissions of the caller.
    pub permissions: Vec<Permission>,
}

impl Principal {
    /// Whether the caller holds `permission`.
    pub fn may(&self, permission: Permission) -> bool {
        self.permissions.contains(&permission)
    }

    /// Returns those of `permissions` that the caller does not hold and so cannot grant.
    pub fn cannot_grant(&self, permissions: &[Permission]) -> Vec<Permission> {
        permissions.iter().copied().filter(|permission| !self.may(*permission)).collect()
    }

    /// Whether the caller may give a user the `role`: it must contain nothing that the caller lacks.
    pub fn may_appoint(&self, role: Role) -> bool {
        (role != Role::Operator || self.scope == Scope::Everything)
            && self.cannot_grant(&role.permissions()).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn user(role: Role) -> Principal {
        let organisation_id = OrganisationId(Uuid::from_u128(1));
        Principal {
            who: Who::User(UserId(Uuid::from_u128(2))),
            organisation_id,
            role: Some(role),
            scope: role.scope(organisation_id, None),
            permissions: role.permissions(),
        }
    }

    #[test]
    fn nobody_appoints_above_themselves() {
        for (role, name) in Role::ALL {
            let appoints: Vec<&str> = Role::ALL
                .iter()
                .filter(|(other, _)| user(role).may_appoint(*other))
                .map(|(_, name)| *name)
                .collect();
            let expected: &[&str] = match role {
                Role::Operator => &["agent", "operator", "org_admin", "org_member", "team_supervisor"],
                Role::OrgAdmin => &["agent", "org_admin", "org_member", "team_supervisor"],
                Role::OrgMember => &["agent", "org_member"],
                Role::TeamSupervisor => &["agent", "team_supervisor"],
                Role::Agent => &["agent"],
            };
            assert_eq!(appoints, expected, "{name}");
        }
    }

    /// A key with every permission still belongs to one organisation.
    #[test]
    fn a_key_with_everything_appoints_no_operator() {
        let own = user(Role::OrgAdmin);
        let key = Principal { permissions: Permission::ALL.to_vec(), role: None, ..own };
        assert!(key.may_appoint(Role::OrgAdmin) && !key.may_appoint(Role::Operator));
    }
}
