//! Applies the declared users and keys.

use rand::CryptoRng;
use rand::distr::{Alphanumeric, SampleString};
use sidetone_model::ids::OrganisationId;
use sidetone_store::{ApiKeyRow, StoreError, UserRow};

use crate::accounts::{generate_key, hash, stored_key};
use crate::provision::file::Organisation;
use crate::provision::report::{KeyReport, UserReport};
use crate::provision::users::{ApiKey, User};
use crate::provision::work::{PASSWORD_LEN, ProvisionError, Work};

impl<R: CryptoRng> Work<'_, R> {
    pub(super) async fn user(
        &mut self,
        id: OrganisationId,
        organisation: &Organisation,
        declared: &User,
    ) -> Result<(), ProvisionError> {
        let team_id = match &declared.team {
            Some(name) => self.team(id, name, &declared.path).await?,
            None => None,
        };
        let stored = self.write.find_user(&declared.email).await?.map(|(_, hash)| hash);
        let generated = (declared.password.is_none() && stored.is_none())
            .then(|| Alphanumeric.sample_string(self.rng, PASSWORD_LEN));
        let password = declared.password.as_ref().map(|password| &password.0).or(generated.as_ref());
        let password_hash = match (password, stored) {
            // The password is already stored: a new hash of it would end every session unnecessarily.
            (Some(password), Some(stored)) if hash::verify(password, &stored) => None,
            (Some(password), _) => {
                let mut salt = [0; hash::SALT_LEN];
                self.rng.fill_bytes(&mut salt);
                Some(hash::hash(password, &salt)?)
            }
            (None, _) => None,
        };
        let row = UserRow {
            organisation_id: id,
            email: declared.email.clone(),
            name: declared.name.clone(),
            role: declared.role,
            team_id,
            password_hash,
        };
        let result = self.write.declare_user(&row, self.now).await;
        let taken = "a user of another organisation has this address";
        let Some((user, change)) = self.allowed(result, &declared.path, taken)? else { return Ok(()) };
        // A generated password would be different the next time, so a dry run shows none.
        let password = generated.filter(|_| !self.dry_run);
        let what = format_args!("user {} of {}", declared.email, organisation.name);
        self.report.count(change, what, password.as_deref());
        let id = self.shown(user, change);
        let email = declared.email.to_string();
        self.report.organisation(&organisation.name, None).users.push(UserReport { email, id, password });
        Ok(())
    }

    pub(super) async fn api_key(
        &mut self,
        id: OrganisationId,
        organisation: &Organisation,
        declared: &ApiKey,
    ) -> Result<(), StoreError> {
        let stored = self.write.find_api_key(id, &declared.name).await?;
        let generated = (declared.key.is_none() && stored.is_none()).then(|| generate_key(self.rng));
        let text = declared.key.as_ref().or(generated.as_ref());
        let row = ApiKeyRow {
            organisation_id: id,
            name: declared.name.clone(),
            text: text.and_then(|text| stored_key(text)),
            permissions: declared.permissions.clone(),
            preset: declared.preset.clone(),
            allow: declared.allow.clone(),
            rate_per_minute: declared.rate_per_minute,
        };
        let result = self.write.declare_api_key(&row, self.now).await;
        let Some((key, change)) = self.allowed(result, &declared.path, "another key has this id")? else {
            return Ok(());
        };
        // A generated key would be different the next time, so a dry run shows none.
        let generated = generated.filter(|_| !self.dry_run);
        let what = format_args!("API key {} of {}", declared.name, organisation.name);
        self.report.count(change, what, generated.as_deref());
        let id = self.shown(key, change);
        self.report.organisation(&organisation.name, None).api_keys.push(KeyReport {
            name: declared.name.clone(),
            id,
            key: declared.key.clone().or(generated),
        });
        Ok(())
    }
}
