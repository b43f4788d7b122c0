//! Users as apply files declare them.

use sidetone_model::access::Role;
use sidetone_model::ids::{OrganisationId, TeamId, UserId};
use sidetone_model::time::Timestamp;
use sidetone_model::user::{Email, User};
use uuid::Uuid;

use crate::columns::parsed;
use crate::sql::sql;
use crate::users::rows::user;
use crate::{Change, StoreError, WriteTransaction};

/// A user as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRow {
    /// The organisation it belongs to.
    pub organisation_id: OrganisationId,
    /// Their address, the natural key over all organisations.
    pub email: Email,
    /// Their display name.
    pub name: String,
    /// Their role.
    pub role: Role,
    /// Their team.
    pub team_id: Option<TeamId>,
    /// The hash of a new password; `None` keeps the stored one.
    pub password_hash: Option<String>,
}

impl WriteTransaction {
    /// Returns the password hash of the user with that address.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn find_user(&mut self, email: &Email) -> Result<Option<(UserId, String)>, StoreError> {
        let row = sql("SELECT id, organisation_id, password_hash FROM users WHERE email = $1")
            .bind(email.as_str())
            .fetch_optional(&mut *self.transaction)
            .await?;
        row.map(|row| Ok((parsed(&row, "id")?, row.try_get("password_hash")?))).transpose()
    }

    /// Creates or updates the user as declared; a disabled user stays disabled.
    ///
    /// # Errors
    /// [`StoreError::Taken`] when a user of another organisation has the address, [`StoreError::Corrupt`]
    /// when a new one has no password; otherwise when the database fails.
    pub async fn declare_user(
        &mut self,
        declared: &UserRow,
        now: Timestamp,
    ) -> Result<(UserId, Change), StoreError> {
        let query = sql("SELECT id, organisation_id, team_id, email, name, role, disabled, created_at_us,
             updated_at_us FROM users WHERE email = $1")
        .bind(declared.email.as_str());
        let stored = self.one(query, user).await?;
        if stored.as_ref().is_some_and(|stored| stored.organisation_id != declared.organisation_id) {
            return Err(StoreError::Taken { column: "email" });
        }
        let made = declared.user(stored.as_ref(), now);
        let hash = declared.password_hash.as_deref();
        let change = match &stored {
            None => {
                let hash = hash.ok_or(StoreError::Corrupt { column: "password_hash" })?;
                self.insert_user(&made, hash).await?;
                Change::Created
            }
            Some(stored)
                if hash.is_none() && *stored == (User { updated_at: stored.updated_at, ..made.clone() }) =>
            {
                Change::Unchanged
            }
            Some(stored) => {
                self.update_user(stored, &made, hash).await?;
                Change::Changed
            }
        };
        Ok((made.id, change))
    }
}

impl UserRow {
    /// Builds the declared user; a stored one keeps its state.
    fn user(&self, stored: Option<&User>, now: Timestamp) -> User {
        User {
            id: stored.map_or_else(|| UserId(Uuid::new_v4()), |stored| stored.id),
            organisation_id: self.organisation_id,
            team_id: self.team_id,
            email: self.email.clone(),
            name: self.name.clone(),
            role: self.role,
            disabled: stored.is_some_and(|stored| stored.disabled),
            created_at: stored.map_or(now, |stored| stored.created_at),
            updated_at: now,
        }
    }
}
