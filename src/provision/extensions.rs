//! Extensions for the HTTP API: they are in the store, and their credentials are created here.

use parking_lot::Mutex;
use rand::distr::{Alphanumeric, SampleString};
use rand::rngs::StdRng;
use sidetone_model::access::Scope;
use sidetone_model::directory::{Ha1, Secret};
use sidetone_model::extension::{ExtensionChange, ExtensionRecord, Extensions, NewExtension};
use sidetone_model::ids::{ExtensionId, UserId};
use sidetone_model::listing::Listing;
use sidetone_model::message_waiting::MessageWaiting;
use sidetone_model::page::Page;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::{FieldProblem, Problem};
use sidetone_model::rules::{self, Rule};
use sidetone_model::time::Timestamp;
use sidetone_store::Store;

use crate::provision::apply::ha1;
use crate::provision::work::PASSWORD_LEN;

/// The stored extensions with the credentials of their phones.
#[derive(Debug)]
pub struct Lines {
    store: Store,
    rng: Mutex<StdRng>,
}

impl Lines {
    /// The extensions of `store`; passwords are generated with `rng`.
    pub fn new(store: Store, rng: StdRng) -> Self {
        Self { store, rng: Mutex::new(rng) }
    }
}

impl Extensions for Lines {
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<ExtensionRecord>> {
        Box::pin(self.store.list_extensions(scope, listing))
    }

    fn find(&self, extension: ExtensionId) -> PortFuture<'_, Option<ExtensionRecord>> {
        Box::pin(self.store.extension_by_id(extension))
    }

    fn of_user(&self, user: UserId) -> PortFuture<'_, Option<ExtensionId>> {
        Box::pin(self.store.extension_of_user(user))
    }

    fn create(
        &self,
        scope: Scope,
        new: NewExtension,
        now: Timestamp,
    ) -> PortFuture<'_, (ExtensionRecord, Option<Secret>)> {
        Box::pin(async move {
            if let Some(password) = &new.password {
                refuse_guessable("password", rules::phone_password(&password.0, &new.number, &new.name))?;
            }
            let generated = match new.password {
                Some(_) => None,
                None => Some(Secret(Alphanumeric.sample_string(&mut *self.rng.lock(), PASSWORD_LEN))),
            };
            let credential = credential(new.password.as_ref().or(generated.as_ref()));
            let made = self.store.create_extension(scope, &new, &credential, now).await?;
            Ok((made, generated))
        })
    }

    fn change(
        &self,
        scope: Scope,
        extension: ExtensionId,
        change: ExtensionChange,
        now: Timestamp,
    ) -> PortFuture<'_, ExtensionRecord> {
        Box::pin(async move {
            let password = change.password.clone();
            if let Some(password) = &password {
                let stored = self.store.extension_by_id(extension).await?;
                let (number, name) = stored.map(|stored| (stored.number, stored.name)).unwrap_or_default();
                let number = change.number.as_deref().unwrap_or(&number);
                let name = change.name.as_deref().unwrap_or(&name);
                refuse_guessable("password", rules::phone_password(&password.0, number, name))?;
            }
            let credential = credential(password.as_ref());
            let made = password.is_some().then_some(&credential as _);
            self.store.change_extension(scope, extension, change, made, now).await
        })
    }

    fn spoken_name(&self, scope: Scope, extension: ExtensionId) -> PortFuture<'_, Vec<u8>> {
        Box::pin(self.store.find_spoken_name(scope, extension))
    }

    fn remove_spoken_name(&self, scope: Scope, extension: ExtensionId) -> PortFuture<'_, ()> {
        Box::pin(self.store.remove_spoken_name(scope, extension))
    }

    fn message_waiting(&self, scope: Scope, extension: ExtensionId) -> PortFuture<'_, MessageWaiting> {
        Box::pin(self.store.message_waiting(scope, extension))
    }

    fn set_message_waiting(
        &self,
        scope: Scope,
        extension: ExtensionId,
        waiting: MessageWaiting,
    ) -> PortFuture<'_, ()> {
        Box::pin(self.store.set_message_waiting(scope, extension, waiting))
    }

    fn delete(&self, scope: Scope, extension: ExtensionId) -> PortFuture<'_, ()> {
        Box::pin(self.store.delete_extension(scope, extension))
    }
}

/// Converts the rule for passwords into the problem of a field.
fn refuse_guessable(field: &str, checked: Result<String, Rule>) -> Result<(), Problem> {
    checked
        .map(drop)
        .map_err(|message| Problem::InvalidRequest(vec![FieldProblem { field: field.to_owned(), message }]))
}

/// Makes the credential of a password for any number and domain.
fn credential(password: Option<&Secret>) -> impl Fn(&str, &str) -> Ha1 + Send + Sync + use<> {
    let password = password.map(|secret| secret.0.clone()).unwrap_or_default();
    move |number, domain| ha1(number, domain, &password)
}
