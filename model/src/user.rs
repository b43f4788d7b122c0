//! Users who log in.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::access::{Principal, Role, Scope, Who};
use crate::directory::Secret;
use crate::ids::{OrganisationId, TeamId, UserId};
use crate::listing::Listing;
use crate::page::Page;
use crate::port_future::PortFuture;
use crate::time::Timestamp;

/// A user, without the password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct User {
    /// Primary key.
    pub id: UserId,
    /// The organisation they belong to.
    pub organisation_id: OrganisationId,
    /// The team whose records a supervisor or an agent sees; without a team the user sees none.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub team_id: Option<TeamId>,
    /// The login address; unique over all organisations.
    pub email: Email,
    /// The display name.
    pub name: String,
    /// Determines what the user sees and may do.
    pub role: Role,
    /// Whether the user is disabled.
    pub disabled: bool,
    /// The creation time.
    pub created_at: Timestamp,
    /// The last change.
    pub updated_at: Timestamp,
}

impl User {
    /// The caller that this user authenticates as.
    pub fn principal(&self) -> Principal {
        Principal {
            who: Who::User(self.id),
            organisation_id: self.organisation_id,
            role: Some(self.role),
            scope: self.role.scope(self.organisation_id, self.team_id),
            permissions: self.role.permissions(),
        }
    }
}

/// A user, with the version of the user's valid sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user.
    pub user: User,
    /// Sessions of another version are not valid. It grows with a new password or role, and when the user is
    /// disabled.
    pub version: i64,
}

/// A new user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUser {
    /// The owner.
    pub organisation_id: OrganisationId,
    /// Their team, of the same organisation.
    pub team_id: Option<TeamId>,
    /// An address that is not in use.
    pub email: Email,
    /// The display name.
    pub name: String,
    /// Their role.
    pub role: Role,
    /// The user's password; generated if there is none.
    pub password: Option<Secret>,
    /// Whether the user is disabled.
    pub disabled: bool,
}

/// The changes of a user; `None` keeps the stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserChange {
    /// Another team, or none.
    pub team_id: Option<Option<TeamId>>,
    /// Another address.
    pub email: Option<Email>,
    /// The new name.
    pub name: Option<String>,
    /// Another role; ends the user's sessions.
    pub role: Option<Role>,
    /// Another password; ends the user's sessions.
    pub password: Option<Secret>,
    /// Whether the user is disabled; ends the user's sessions.
    pub disabled: Option<bool>,
}

/// Authentication of users.
pub trait Accounts: Send + Sync {
    /// Returns the account with that address if the password is right and the account is not disabled.
    ///
    /// An unknown address takes the same time.
    fn log_in<'a>(&'a self, email: &'a str, password: &'a Secret) -> PortFuture<'a, Option<Account>>;

    /// Returns the account of a session that was not ended explicitly; `None` also if the account is
    /// disabled.
    fn session(&self, user: UserId, session: Uuid) -> PortFuture<'_, Option<Account>>;

    /// Ends one session, which would have expired at `expires_at`.
    fn end_session(&self, session: Uuid, expires_at: Timestamp, now: Timestamp) -> PortFuture<'_, ()>;

    /// Sets a new password and ends every session of the user; `false` when the old one is wrong.
    fn change_password<'a>(
        &'a self,
        user: UserId,
        old: &'a Secret,
        new: &'a Secret,
        now: Timestamp,
    ) -> PortFuture<'a, bool>;
}

/// The stored users.
pub trait Users: Send + Sync {
    /// The users inside `scope`, by address unless `listing` sets another sort.
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<User>>;

    /// One user, of any organisation.
    fn find(&self, user: UserId) -> PortFuture<'_, Option<User>>;

    /// Creates a user, and returns the generated password. A conflict when the address is in use; invalid
    /// when the team belongs to another organisation.
    fn create(&self, new: NewUser, now: Timestamp) -> PortFuture<'_, (User, Option<Secret>)>;

    /// Changes a user inside `scope`. A conflict when no administrator would be left.
    fn change(&self, scope: Scope, user: UserId, change: UserChange, now: Timestamp) -> PortFuture<'_, User>;

    /// Removes a user inside `scope`. A conflict when something refers to the user, or when no administrator
    /// would be left.
    fn delete(&self, scope: Scope, user: UserId) -> PortFuture<'_, ()>;
}

/// An email address: ASCII, lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, format = Email, example = "ada@acme.test"))]
pub struct Email(String);

/// The text is not an email address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an email address such as ada@acme.test")]
pub struct EmailError;

impl Email {
    /// The address.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the `@`.
    pub fn local_part(&self) -> &str {
        self.0.rsplit_once('@').map_or("", |(local, _)| local)
    }
}

impl FromStr for Email {
    type Err = EmailError;

    /// Accepts addresses that mail servers deliver to: RFC 5321 §4.1.2 without quoted strings and address
    /// literals.
    fn from_str(text: &str) -> Result<Self, EmailError> {
        let (local, domain) = text.rsplit_once('@').ok_or(EmailError)?;
        let atom = |text: &str| {
            let special = b"!#$%&'*+-/=?^_`{|}~";
            !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || special.contains(&b))
        };
        let label = |text: &str| {
            (1..=63).contains(&text.len())
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
                && !text.starts_with('-')
                && !text.ends_with('-')
        };
        let fits = text.len() <= EMAIL_LEN_MAX
            && local.len() <= LOCAL_LEN_MAX
            && local.split('.').all(atom)
            && domain.split('.').all(label);
        if fits { Ok(Self(text.to_ascii_lowercase())) } else { Err(EmailError) }
    }
}

impl TryFrom<String> for Email {
    type Error = EmailError;

    fn try_from(text: String) -> Result<Self, EmailError> {
        text.parse()
    }
}

impl From<Email> for String {
    fn from(email: Email) -> Self {
        email.0
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// RFC 5321 §4.5.3.1.3, without the angle brackets.
const EMAIL_LEN_MAX: usize = 254;
/// RFC 5321 §4.5.3.1.1.
const LOCAL_LEN_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_and_folded() {
        let long = format!("{}@acme.test", "a".repeat(65));
        let cases = [
            ("ada@acme.test", Some("ada@acme.test")),
            ("Ada.L+x@ACME.Test", Some("ada.l+x@acme.test")),
            ("root@localhost", Some("root@localhost")),
            ("ada", None),
            ("@acme.test", None),
            ("ada@", None),
            ("ada@@acme.test", None),
            ("a..b@acme.test", None),
            (".a@acme.test", None),
            ("a b@acme.test", None),
            ("ada@acme..test", None),
            ("ada@-acme.test", None),
            ("ada@acme.test\r\n", None),
            ("ädä@acme.test", None),
            (&long, None),
            ("", None),
        ];
        for (text, expected) in cases {
            let email = text.parse::<Email>().ok();
            assert_eq!(email.as_ref().map(Email::as_str), expected, "{text}");
        }
    }
}
