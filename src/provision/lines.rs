//! Extensions over HTTP: the store keeps them, the credentials are made here.

use parking_lot::Mutex;
use rand::distr::{Alphanumeric, SampleString};
use rand::rngs::StdRng;
use sidetone_model::access::Scope;
use sidetone_model::directory::{Ha1, Secret};
use sidetone_model::extension::{ExtensionChange, ExtensionRecord, Extensions, NewExtension};
use sidetone_model::ids::ExtensionId;
use sidetone_model::listing::Listing;
use sidetone_model::page::Page;
use sidetone_model::ports::PortFuture;
use sidetone_model::time::Timestamp;

use crate::provision::apply::{PASSWORD_LEN, ha1};
use crate::store::Store;

/// The stored extensions with the credentials of their phones.
#[derive(Debug)]
pub struct Lines {
    store: Store,
    rng: Mutex<StdRng>,
}

impl Lines {
    /// The extensions of `store`; passwords are made of `rng`.
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

    fn create(
        &self,
        scope: Scope,
        new: NewExtension,
        now: Timestamp,
    ) -> PortFuture<'_, (ExtensionRecord, Option<Secret>)> {
        Box::pin(async move {
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
            let credential = credential(password.as_ref());
            let made = password.is_some().then_some(&credential as _);
            self.store.change_extension(scope, extension, change, made, now).await
        })
    }

    fn delete(&self, scope: Scope, extension: ExtensionId) -> PortFuture<'_, ()> {
        Box::pin(self.store.delete_extension(scope, extension))
    }
}

/// Makes the credential of a password for any number and domain.
fn credential(password: Option<&Secret>) -> impl Fn(&str, &str) -> Ha1 + Send + Sync + use<> {
    let password = password.map(|secret| secret.0.clone()).unwrap_or_default();
    move |number, domain| ha1(number, domain, &password)
}
