//! Reads and writes the rows of users.

use sidetone_model::access::Role;
use sidetone_model::user::User;

use crate::bell::Changed;
use crate::columns::{instant, parsed, parsed_opt, word};
use crate::search::searchable;
use crate::sql::{Row, sql};
use crate::{Change, StoreError, WriteTransaction};

impl WriteTransaction {
    pub(super) async fn insert_user(&mut self, made: &User, password_hash: &str) -> Result<(), StoreError> {
        sql("INSERT INTO users (id, organisation_id, team_id, email, name, role, password_hash, disabled, version,
             search, created_at_us, updated_at_us) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1, $9, $10, $10)")
        .bind(made.id.to_string())
        .bind(made.organisation_id.to_string())
        .bind(made.team_id.map(|team| team.to_string()))
        .bind(made.email.as_str())
        .bind(&made.name)
        .bind(made.role.as_str())
        .bind(password_hash)
        .bind(made.disabled)
        .bind(search(made))
        .bind(made.created_at.as_micros())
        .execute(&mut *self.transaction)
        .await?;
        self.note(Change::Created);
        Ok(())
    }

    /// Stores a changed user; `None` keeps the password. Another role, password or state ends the user's sessions.
    pub(super) async fn update_user(
        &mut self,
        before: &User,
        after: &User,
        password_hash: Option<&str>,
    ) -> Result<(), StoreError> {
        let ends_sessions =
            after.role != before.role || after.disabled != before.disabled || password_hash.is_some();
        sql("UPDATE users SET team_id = $1, email = $2, name = $3, role = $4, disabled = $5,
             password_hash = COALESCE($6, password_hash), version = version + $7, search = $8, updated_at_us = $9
             WHERE id = $10 AND organisation_id = $11")
        .bind(after.team_id.map(|team| team.to_string()))
        .bind(after.email.as_str())
        .bind(&after.name)
        .bind(after.role.as_str())
        .bind(after.disabled)
        .bind(password_hash)
        .bind(ends_sessions)
        .bind(search(after))
        .bind(after.updated_at.as_micros())
        .bind(after.id.to_string())
        .bind(after.organisation_id.to_string())
        .execute(&mut *self.transaction)
        .await?;
        self.note(Change::Changed);
        self.transaction.changes(Changed::Credentials);
        Ok(())
    }
}

/// The text that a search in a list of users covers.
fn search(user: &User) -> String {
    searchable([Some(user.email.as_str()), Some(&user.name)])
}

pub(super) fn user(row: &Row) -> Result<User, StoreError> {
    Ok(User {
        id: parsed(row, "id")?,
        organisation_id: parsed(row, "organisation_id")?,
        team_id: parsed_opt(row, "team_id")?,
        email: parsed(row, "email")?,
        name: row.try_get("name")?,
        role: word(row, "role", Role::from_name)?,
        disabled: row.try_get::<i64>("disabled")? != 0,
        created_at: instant(row, "created_at_us")?,
        updated_at: instant(row, "updated_at_us")?,
    })
}
