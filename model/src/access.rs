//! Who asks, and what that lets them see.

use serde::{Deserialize, Serialize};

use crate::ids::{ApiKeyId, OrganisationId};

macro_rules! permissions {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// A right that a key or a role carries.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Permission { $($(#[$doc])* #[serde(rename = $text)] $variant,)* }

        impl Permission {
            /// Every permission.
            pub const ALL: &'static [Permission] = &[$(Permission::$variant,)*];

            /// The name that keys and the API use.
            pub const fn as_str(self) -> &'static str {
                match self { $(Permission::$variant => $text,)* }
            }

            /// The permission of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Permission::$variant),)* _ => None }
            }
        }
    };
}

permissions! {
    /// AI sell amounts on conversations.
    BillingRead = "billing:read",
    /// Sending notes, and other control of calls.
    CallsControl = "calls:control",
    /// The call log and what was sent to phones.
    CallsRead = "calls:read",
    /// Running a live room.
    ConferencesControl = "conferences:control",
    /// Reading rooms, sessions, meetings.
    ConferencesRead = "conferences:read",
    /// Creating and changing rooms.
    ConferencesWrite = "conferences:write",
    /// Cost, margin and conversion on records.
    MarginRead = "margin:read",
    /// Playing a recording.
    RecordingsListen = "recordings:listen",
}

impl Permission {
    /// The permissions of a key preset, copied into the key when it is made; `None` for an unknown name.
    pub fn preset(name: &str) -> Option<Vec<Permission>> {
        use Permission::*;
        Some(match name {
            "billing" => vec![BillingRead],
            "conferences" => vec![ConferencesControl, ConferencesRead, ConferencesWrite],
            "full" => Self::ALL.iter().copied().filter(|p| *p != MarginRead).collect(),
            "notes" => vec![CallsControl, CallsRead, ConferencesRead],
            "read_only" => vec![CallsRead, ConferencesRead],
            _ => return None,
        })
    }
}

/// Which tenants' rows a caller may see; every store function that reads tenant data takes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One organisation.
    Organisation(OrganisationId),
}

impl Scope {
    /// Whether something of that organisation is inside.
    pub fn covers(self, organisation: OrganisationId) -> bool {
        match self {
            Scope::Organisation(own) => own == organisation,
        }
    }
}

/// The caller of a request, once known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The key that was presented.
    pub key: ApiKeyId,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for permission in Permission::ALL {
            assert_eq!(Permission::from_name(permission.as_str()), Some(*permission));
        }
    }

    #[test]
    fn full_is_everything_but_margin() {
        let full = Permission::preset("full").unwrap();
        assert!(!full.contains(&Permission::MarginRead));
        assert_eq!(full.len(), Permission::ALL.len() - 1);
        assert_eq!(Permission::preset("admin"), None);
    }
}
