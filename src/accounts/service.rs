//! The ports of accounts, users and keys, over the store.

use std::sync::Arc;

use sidetone_model::access::Scope;
use sidetone_model::directory::Secret;
use sidetone_model::ids::{ApiKeyId, UserId};
use sidetone_model::key::{KeyChange, KeyRecord, Keys, NewKey};
use sidetone_model::listing::Listing;
use sidetone_model::page::Page;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::{FieldProblem, Problem};
use sidetone_model::rules;
use sidetone_model::time::Timestamp;
use sidetone_model::user::{Account, Accounts, Email, NewUser, User, UserChange, Users};
use sidetone_store::Store;
use uuid::Uuid;

use crate::accounts::{Passwords, stored_key};

/// The users and the keys that can authenticate.
#[derive(Debug, Clone)]
pub struct People {
    store: Store,
    passwords: Arc<Passwords>,
}

impl People {
    /// Returns the ports for `store`.
    pub fn new(store: Store, passwords: Passwords) -> Self {
        Self { store, passwords: Arc::new(passwords) }
    }
}

impl Accounts for People {
    fn log_in<'a>(&'a self, email: &'a str, password: &'a Secret) -> PortFuture<'a, Option<Account>> {
        Box::pin(async move {
            let found = match email.parse::<Email>() {
                Ok(email) => self.store.account_by_email(email.as_str()).await?,
                Err(_) => None,
            };
            let (account, hash) = found.unzip();
            let right = self.passwords.verify(password, hash).await?;
            Ok(account.filter(|account| right && !account.user.disabled))
        })
    }

    fn session(&self, user: UserId, session: Uuid) -> PortFuture<'_, Option<Account>> {
        Box::pin(async move {
            let account = self.store.account_of_session(user, session).await?;
            Ok(account.filter(|account| !account.user.disabled))
        })
    }

    fn end_session(&self, session: Uuid, expires_at: Timestamp, now: Timestamp) -> PortFuture<'_, ()> {
        Box::pin(async move { Ok(self.store.end_session(session, expires_at, now).await?) })
    }

    fn change_password<'a>(
        &'a self,
        user: UserId,
        old: &'a Secret,
        new: &'a Secret,
        now: Timestamp,
    ) -> PortFuture<'a, bool> {
        Box::pin(async move {
            let stored = self.store.password_hash(user).await?;
            if !self.passwords.verify(old, stored.clone()).await? {
                return Ok(false);
            }
            if let Some(own) = self.store.user(user).await? {
                refuse_guessable("new_password", &new.0, own.email.as_str(), &own.name)?;
            }
            let hash = self.passwords.hash(new).await?;
            // Of two simultaneous changes with the same old password, one succeeds.
            Ok(self.store.replace_password(user, &stored.unwrap_or_default(), &hash, now).await?)
        })
    }
}

impl Users for People {
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<User>> {
        Box::pin(async move { Ok(self.store.list_users(scope, listing).await?) })
    }

    fn find(&self, user: UserId) -> PortFuture<'_, Option<User>> {
        Box::pin(async move { Ok(self.store.user(user).await?) })
    }

    fn create(&self, new: NewUser, now: Timestamp) -> PortFuture<'_, (User, Option<Secret>)> {
        Box::pin(async move {
            if let Some(password) = &new.password {
                refuse_guessable("password", &password.0, new.email.as_str(), &new.name)?;
            }
            let generated = new.password.is_none().then(|| self.passwords.generate());
            let password = new.password.as_ref().or(generated.as_ref());
            let hash = self.passwords.hash(password.unwrap_or(&Secret::default())).await?;
            Ok((self.store.create_user(&new, &hash, now).await?, generated))
        })
    }

    fn change(&self, scope: Scope, user: UserId, change: UserChange, now: Timestamp) -> PortFuture<'_, User> {
        Box::pin(async move {
            if let Some(password) = &change.password {
                let stored = self.store.user(user).await?;
                let (email, name) =
                    stored.map(|stored| (stored.email.as_str().to_owned(), stored.name)).unwrap_or_default();
                let email = change.email.as_ref().map_or(email.as_str(), Email::as_str);
                let name = change.name.as_deref().unwrap_or(&name);
                refuse_guessable("password", &password.0, email, name)?;
            }
            let hash = match &change.password {
                Some(password) => Some(self.passwords.hash(password).await?),
                None => None,
            };
            self.store.change_user(scope, user, &change, hash.as_deref(), now).await
        })
    }

    fn delete(&self, scope: Scope, user: UserId) -> PortFuture<'_, ()> {
        Box::pin(async move { self.store.delete_user(scope, user).await })
    }
}

/// Refuses a password that can be guessed from its owner's data.
fn refuse_guessable(field: &str, password: &str, email: &str, name: &str) -> Result<(), Problem> {
    rules::user_password(password, email, name)
        .map(drop)
        .map_err(|message| Problem::InvalidRequest(vec![FieldProblem { field: field.to_owned(), message }]))
}

impl Keys for People {
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<KeyRecord>> {
        Box::pin(async move { Ok(self.store.list_api_keys(scope, listing).await?) })
    }

    fn find_record(&self, key: ApiKeyId) -> PortFuture<'_, Option<KeyRecord>> {
        Box::pin(async move { Ok(self.store.api_key(key).await?) })
    }

    fn create(&self, new: NewKey, now: Timestamp) -> PortFuture<'_, (KeyRecord, Secret)> {
        Box::pin(async move {
            let text = self.passwords.generate_key();
            let stored = stored_key(&text)
                .ok_or_else(|| Problem::Internal("a generated key is not of the form".to_owned()))?;
            let record = self.store.create_api_key(new, stored, now).await?;
            Ok((record, Secret(text)))
        })
    }

    fn change(
        &self,
        scope: Scope,
        key: ApiKeyId,
        change: KeyChange,
        now: Timestamp,
    ) -> PortFuture<'_, KeyRecord> {
        Box::pin(async move { self.store.change_api_key(scope, key, change, now).await })
    }

    fn delete(&self, scope: Scope, key: ApiKeyId) -> PortFuture<'_, ()> {
        Box::pin(async move { self.store.delete_api_key(scope, key).await })
    }
}
