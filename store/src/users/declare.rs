//! Users as apply files declare them.

use sidetone_model::access::Role;
use sidetone_model::ids::{OrganisationId, TeamId, UserId};
use sidetone_model::time::Timestamp;
use sidetone_model::user::Email;
use uuid::Uuid;

use crate::columns::parsed;
use crate::search::searchable;
use crate::sql::sql;
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
        let row = sql("SELECT id, organisation_id, team_id, name, role FROM users WHERE email = $1")
            .bind(declared.email.as_str())
            .fetch_optional(&mut *self.transaction)
            .await?;
        let team = declared.team_id.map(|team| team.to_string());
        let search = searchable([Some(declared.email.as_str()), Some(&declared.name)]);
        let Some(row) = row else {
            let hash =
                declared.password_hash.as_ref().ok_or(StoreError::Corrupt { column: "password_hash" })?;
            let id = UserId(Uuid::new_v4());
            sql(
                "INSERT INTO users (id, organisation_id, team_id, email, name, role, password_hash, disabled,
                 version, search, created_at_us, updated_at_us)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 1, $8, $9, $9)",
            )
            .bind(id.to_string())
            .bind(declared.organisation_id.to_string())
            .bind(team)
            .bind(declared.email.as_str())
            .bind(&declared.name)
            .bind(declared.role.as_str())
            .bind(hash)
            .bind(search)
            .bind(now.as_micros())
            .execute(&mut *self.transaction)
            .await?;
            return Ok((id, self.note(Change::Created)));
        };
        if parsed::<OrganisationId>(&row, "organisation_id")? != declared.organisation_id {
            return Err(StoreError::Taken { column: "email" });
        }
        let id: UserId = parsed(&row, "id")?;
        let same_role = row.try_get::<&str>("role")? == declared.role.as_str();
        let same = same_role
            && declared.password_hash.is_none()
            && row.try_get::<&str>("name")? == declared.name
            && row.try_get::<Option<String>>("team_id")? == team;
        if same {
            return Ok((id, Change::Unchanged));
        }
        let ends_sessions = !same_role || declared.password_hash.is_some();
        sql("UPDATE users SET team_id = $1, name = $2, role = $3, password_hash = COALESCE($4, password_hash),
             version = version + $5, search = $6, updated_at_us = $7 WHERE id = $8 AND organisation_id = $9")
        .bind(team)
        .bind(&declared.name)
        .bind(declared.role.as_str())
        .bind(&declared.password_hash)
        .bind(ends_sessions)
        .bind(search)
        .bind(now.as_micros())
        .bind(id.to_string())
        .bind(declared.organisation_id.to_string())
        .execute(&mut *self.transaction)
        .await?;
        Ok((id, self.note(Change::Changed)))
    }
}
