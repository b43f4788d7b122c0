//! The permissions of keys and roles.

use serde::{Deserialize, Serialize};

macro_rules! permissions {
    ($($(#[$doc:meta])* $variant:ident = $text:tt,)*) => {
        /// A right that a key or a role carries.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
    /// The call log, conversations, and what was sent to phones.
    CallsRead = "calls:read",
    /// Running a live room.
    ConferencesControl = "conferences:control",
    /// Reading rooms, sessions, meetings.
    ConferencesRead = "conferences:read",
    /// Creating and changing rooms.
    ConferencesWrite = "conferences:write",
    /// Handing in conversations and their turns.
    ConversationsWrite = "conversations:write",
    /// Reading teams, agents, extensions and numbers.
    DirectoryRead = "directory:read",
    /// Creating and changing teams, agents, extensions and numbers.
    DirectoryWrite = "directory:write",
    /// Integration keys.
    KeysWrite = "keys:write",
    /// Cost, margin and conversion on records.
    MarginRead = "margin:read",
    /// Changing organisations.
    OrganisationsWrite = "organisations:write",
    /// Sell rates, cost rates and exchange rates.
    RatesWrite = "rates:write",
    /// Deleting recordings.
    RecordingsDelete = "recordings:delete",
    /// Playing a recording.
    RecordingsListen = "recordings:listen",
    /// Trunks.
    TrunksWrite = "trunks:write",
    /// People who log in.
    UsersWrite = "users:write",
    /// Webhooks and what was delivered to them.
    WebhooksRead = "webhooks:read",
    /// Creating and changing webhooks, and sending again.
    WebhooksWrite = "webhooks:write",
}

impl Permission {
    /// The names of the key presets.
    pub const PRESETS: &'static [&'static str] =
        &["billing", "conferences", "dialler", "full", "notes", "read_only", "recordings"];

    /// The permissions of a key preset, copied into the key when it is created; `None` for an unknown name.
    pub fn preset(name: &str) -> Option<Vec<Permission>> {
        use Permission::*;
        Some(match name {
            // Conversations contain the amounts of AI, records those of calls.
            "billing" => vec![BillingRead, CallsRead],
            "conferences" => vec![ConferencesControl, ConferencesRead, ConferencesWrite],
            "dialler" => vec![CallsControl, CallsRead],
            "full" => Self::ALL.iter().copied().filter(|p| *p != MarginRead).collect(),
            "notes" => vec![CallsControl, CallsRead, ConferencesRead],
            "read_only" => vec![CallsRead, ConferencesRead],
            // Recordings are listed in the sessions.
            "recordings" => vec![CallsRead, ConferencesRead, RecordingsListen],
            _ => return None,
        })
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

    #[test]
    fn a_preset_reads_what_its_permissions_show() {
        use Permission::*;
        for name in Permission::PRESETS {
            let preset = Permission::preset(name).unwrap();
            let has = |permission| preset.contains(&permission);
            assert!(!has(BillingRead) || has(CallsRead), "{name}: amounts stand in conversations");
            assert!(!has(RecordingsListen) || has(ConferencesRead), "{name}: sessions name the recordings");
        }
        assert!(Permission::preset("recordings").unwrap().contains(&RecordingsListen));
        assert!(!Permission::preset("billing").unwrap().contains(&RecordingsListen));
    }

    #[test]
    fn every_preset_that_is_named_exists_and_none_but_full_manages() {
        use Permission::*;
        for name in Permission::PRESETS {
            let preset = Permission::preset(name).unwrap();
            let manages = preset.iter().any(|p| matches!(p, KeysWrite | UsersWrite | MarginRead));
            assert_eq!(manages, *name == "full", "{name}");
        }
    }
}
