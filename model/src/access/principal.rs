//! The caller of a request, once known.

use std::fmt;

use crate::access::{Permission, Role, Scope};
use crate::ids::{ApiKeyId, OrganisationId, UserId};

/// What the caller proved to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    /// An integration with its key.
    Key(ApiKeyId),
    /// A person who logged in.
    User(UserId),
}

/// `key:<id>` or `user:<id>`: one text for what is kept per caller.
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
    /// The organisation they belong to; what an operator makes without naming another belongs to it.
    pub organisation_id: OrganisationId,
    /// The role of a user; a key has permissions alone.
    pub role: Option<Role>,
    /// What may be seen.
    pub scope: Scope,
    /// What may be done.
    pub permissions: Vec<Permission>,
}

impl Principal {
    /// Whether the caller holds `permission`.
    pub fn may(&self, permission: Permission) -> bool {
        self.permissions.contains(&permission)
    }

    /// Those of `permissions` that the caller does not hold and so cannot hand on.
    pub fn cannot_grant(&self, permissions: &[Permission]) -> Vec<Permission> {
        permissions.iter().copied().filter(|permission| !self.may(*permission)).collect()
    }

    /// Whether the caller may make somebody a user of `role`: it must bring nothing that the caller lacks.
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

    /// A key with every permission is still one organisation's.
    #[test]
    fn a_key_with_everything_appoints_no_operator() {
        let own = user(Role::OrgAdmin);
        let key = Principal { permissions: Permission::ALL.to_vec(), role: None, ..own };
        assert!(key.may_appoint(Role::OrgAdmin) && !key.may_appoint(Role::Operator));
    }
}
