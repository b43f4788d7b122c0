//! Users as the API manages them.

use sidetone_model::access::{Role, Scope};
use sidetone_model::ids::{OrganisationId, UserId};
use sidetone_model::listing::Listing;
use sidetone_model::page::Page;
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use sidetone_model::user::{NewUser, User, UserChange};
use uuid::Uuid;

use crate::bell::Changed;
use crate::columns::number;
use crate::listing::Table;
use crate::paging::SortColumn;
use crate::references::{named, refer};
use crate::sql::sql;
use crate::users::rows::user;
use crate::{Change, Store, StoreError, WriteTransaction};

const TABLE: Table = Table {
    count: "SELECT COUNT(*) AS total FROM users",
    select: "SELECT id, organisation_id, team_id, email, name, role, disabled, created_at_us, updated_at_us
             FROM users",
    team: Some(" AND team_id = "),
    by_name: &[SortColumn::Text("email"), SortColumn::Text("id")],
};

impl Store {
    /// The users inside `scope` that the listing selects.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_users(&self, scope: Scope, listing: &Listing) -> Result<Page<User>, StoreError> {
        self.page(scope, listing, &TABLE, user).await
    }

    /// One user, of any organisation.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn user(&self, id: UserId) -> Result<Option<User>, StoreError> {
        let row = sql("SELECT id, organisation_id, team_id, email, name, role, disabled, created_at_us,
             updated_at_us FROM users WHERE id = $1")
        .bind(id.to_string())
        .fetch_optional(self.readers())
        .await?;
        row.map(|row| user(&row)).transpose()
    }

    /// Creates a user with the hash of their password.
    ///
    /// # Errors
    /// As [`sidetone_model::user::Users::create`].
    pub async fn create_user(
        &self,
        new: &NewUser,
        password_hash: &str,
        now: Timestamp,
    ) -> Result<User, Problem> {
        let mut write = self.write().await?;
        write.require_free_email(new.email.as_str(), None).await?;
        let refers = refer("team_id", new.team_id);
        write.require_own(new.organisation_id, &[refers]).await?;
        let user = User {
            id: UserId(Uuid::new_v4()),
            organisation_id: new.organisation_id,
            team_id: new.team_id,
            email: new.email.clone(),
            name: new.name.clone(),
            role: new.role,
            disabled: new.disabled,
            created_at: now,
            updated_at: now,
        };
        write.insert_user(&user, password_hash).await?;
        write.commit().await?;
        Ok(user)
    }

    /// Changes a user inside `scope`; `password_hash` is that of the change's password.
    ///
    /// # Errors
    /// As [`sidetone_model::user::Users::change`].
    pub async fn change_user(
        &self,
        scope: Scope,
        id: UserId,
        change: &UserChange,
        password_hash: Option<&str>,
        now: Timestamp,
    ) -> Result<User, Problem> {
        let mut write = self.write().await?;
        let before = write.user_inside(scope, id).await?;
        let after = User {
            team_id: change.team_id.unwrap_or(before.team_id),
            email: change.email.clone().unwrap_or_else(|| before.email.clone()),
            name: change.name.clone().unwrap_or_else(|| before.name.clone()),
            role: change.role.unwrap_or(before.role),
            disabled: change.disabled.unwrap_or(before.disabled),
            updated_at: now,
            ..before.clone()
        };
        write.require_free_email(after.email.as_str(), Some(id)).await?;
        let refers = refer("team_id", change.team_id.flatten());
        write.require_own(after.organisation_id, &[refers]).await?;
        if after.role != before.role || after.disabled {
            write.require_successor(scope, &before).await?;
        }
        write.update_user(&before, &after, password_hash).await?;
        write.commit().await?;
        Ok(after)
    }

    /// Removes a user inside `scope`.
    ///
    /// # Errors
    /// As [`sidetone_model::user::Users::delete`].
    pub async fn delete_user(&self, scope: Scope, id: UserId) -> Result<(), Problem> {
        let mut write = self.write().await?;
        let user = write.user_inside(scope, id).await?;
        write.require_successor(scope, &user).await?;
        let agents = sql("SELECT name FROM agents WHERE user_id = $1 AND organisation_id = $2 ORDER BY name")
            .bind(id.to_string())
            .bind(user.organisation_id.to_string())
            .fetch_all(&mut *write.transaction)
            .await
            .map_err(StoreError::from)?;
        if !agents.is_empty() {
            let agents = named(&agents, "name")?;
            return Err(Problem::Conflict(format!("the user is the agent {agents}: give it another one")));
        }
        let statement = sql("DELETE FROM users WHERE id = $1 AND organisation_id = $2")
            .bind(id.to_string())
            .bind(user.organisation_id.to_string());
        write.transaction.changes(Changed::Credentials);
        write.finish(statement, Change::Changed).await?;
        Ok(())
    }
}

impl WriteTransaction {
    async fn user_inside(&mut self, scope: Scope, id: UserId) -> Result<User, Problem> {
        let query = sql("SELECT id, organisation_id, team_id, email, name, role, disabled, created_at_us,
             updated_at_us FROM users WHERE id = $1")
        .bind(id.to_string());
        let user = self.one(query, user).await?;
        user.filter(|user| scope.covers(user.organisation_id, user.team_id))
            .ok_or_else(|| Problem::NotFound("there is no such user".to_owned()))
    }

    async fn require_free_email(&mut self, email: &str, own: Option<UserId>) -> Result<(), Problem> {
        let taken = sql("SELECT organisation_id FROM users WHERE email = $1 AND id <> $2")
            .bind(email)
            .bind(own.map(|own| own.to_string()).unwrap_or_default())
            .fetch_optional(&mut *self.transaction)
            .await
            .map_err(StoreError::from)?;
        // The answer does not name the owner, who may belong to another organisation.
        match taken {
            Some(_) => Err(Problem::Conflict("email: another user has this address".to_owned())),
            None => Ok(()),
        }
    }

    /// Refuses to leave an organisation without an admin, or the platform without an operator. An operator
    /// may remove the last admin of an organisation, because operators can administer it themselves.
    async fn require_successor(&mut self, scope: Scope, user: &User) -> Result<(), Problem> {
        let organisation: Option<OrganisationId> = match (user.role, scope) {
            _ if user.disabled => return Ok(()),
            (Role::Operator, _) => None,
            (Role::OrgAdmin, Scope::Organisation(_) | Scope::Team { .. }) => Some(user.organisation_id),
            _ => return Ok(()),
        };
        let row = match organisation {
            None => {
                sql("SELECT COUNT(*) AS total FROM users WHERE role = $1 AND disabled = 0 AND id <> $2")
                    .bind(user.role.as_str())
                    .bind(user.id.to_string())
                    .fetch_one(&mut *self.transaction)
                    .await
            }
            Some(organisation) => {
                sql("SELECT COUNT(*) AS total FROM users
                     WHERE role = $1 AND disabled = 0 AND id <> $2 AND organisation_id = $3")
                .bind(user.role.as_str())
                .bind(user.id.to_string())
                .bind(organisation.to_string())
                .fetch_one(&mut *self.transaction)
                .await
            }
        };
        let others: i64 = number(&row.map_err(StoreError::from)?, "total")?;
        if others > 0 {
            return Ok(());
        }
        let role = user.role.as_str();
        Err(Problem::Conflict(format!("the user is the last {role}: give another user this role first")))
    }
}
