//! The stored data of authentication: accounts, ended sessions, the signing secret.

use sidetone_model::ids::UserId;
use sidetone_model::time::Timestamp;
use sidetone_model::user::Account;
use uuid::Uuid;

use crate::bell::Changed;
use crate::columns::{from_hex, to_hex};
use crate::sql::{Row, sql};
use crate::users::rows::user;
use crate::{Store, StoreError};

impl Store {
    /// Returns the account with that address, disabled or not, and the hash of its password.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn account_by_email(&self, email: &str) -> Result<Option<(Account, String)>, StoreError> {
        let row =
            sql("SELECT id, organisation_id, team_id, email, name, role, disabled, version, password_hash,
             created_at_us, updated_at_us FROM users WHERE email = $1")
            .bind(email)
            .fetch_optional(self.readers())
            .await?;
        row.map(|row| Ok((account(&row)?, row.try_get("password_hash")?))).transpose()
    }

    /// Returns the account of a user, unless `session` was ended.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn account_of_session(
        &self,
        user: UserId,
        session: Uuid,
    ) -> Result<Option<Account>, StoreError> {
        let row = sql("SELECT id, organisation_id, team_id, email, name, role, disabled, version,
             created_at_us, updated_at_us FROM users
             WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM ended_sessions WHERE ended_sessions.id = $2)")
        .bind(user.to_string())
        .bind(session.to_string())
        .fetch_optional(self.readers())
        .await?;
        row.map(|row| account(&row)).transpose()
    }

    /// Returns the hash of a user's password.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn password_hash(&self, user: UserId) -> Result<Option<String>, StoreError> {
        let row = sql("SELECT organisation_id, password_hash FROM users WHERE id = $1")
            .bind(user.to_string())
            .fetch_optional(self.readers())
            .await?;
        row.map(|row| Ok(row.try_get("password_hash")?)).transpose()
    }

    /// Replaces the hash of a user's password and ends their sessions; `false` when `old` is no longer stored.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn replace_password(
        &self,
        user: UserId,
        old: &str,
        new: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let done = sql("UPDATE users SET password_hash = $1, version = version + 1, updated_at_us = $2
             WHERE id = $3 AND password_hash = $4")
        .bind(new)
        .bind(now.as_micros())
        .bind(user.to_string())
        .bind(old)
        .execute(self.writer())
        .await?;
        self.bell().changed(Changed::Credentials);
        Ok(done.rows_affected() > 0)
    }

    /// Ends one session, and deletes those that have expired.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn end_session(
        &self,
        session: Uuid,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        sql("INSERT INTO ended_sessions (id, expires_at_us) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING")
            .bind(session.to_string())
            .bind(expires_at.as_micros())
            .execute(self.writer())
            .await?;
        self.bell().changed(Changed::Credentials);
        // A token is accepted for a short time after its end; one hour more allows for clock differences
        // between nodes.
        sql("DELETE FROM ended_sessions WHERE expires_at_us < $1")
            .bind(now.plus_micros(-ENDED_KEPT_US).as_micros())
            .execute(self.writer())
            .await?;
        Ok(())
    }

    /// Returns the secret that signs sessions: the stored one, or `fresh`, which is then stored. It is the same on
    /// every node, and after every restart.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn session_secret(&self, fresh: [u8; 32], now: Timestamp) -> Result<[u8; 32], StoreError> {
        sql("INSERT INTO secrets (name, value, created_at_us) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING")
            .bind(SESSION_SECRET)
            .bind(to_hex(&fresh))
            .bind(now.as_micros())
            .execute(self.writer())
            .await?;
        let row = sql("SELECT value FROM secrets WHERE name = $1")
            .bind(SESSION_SECRET)
            .fetch_one(self.writer())
            .await?;
        from_hex(row.try_get("value")?).ok_or(StoreError::Corrupt { column: "value" })
    }
}

fn account(row: &Row) -> Result<Account, StoreError> {
    Ok(Account { user: user(row)?, version: row.try_get("version")? })
}

/// How long an ended session is kept after its own end.
const ENDED_KEPT_US: i64 = 3_600_000_000;
const SESSION_SECRET: &str = "sessions";
