//! The organisation of a self-test: two extensions and a key, created in the database of the engine and deleted again.

use std::net::IpAddr;

use rand::distr::{Alphanumeric, SampleString};
use rand::rngs::{StdRng, SysRng};
use rand::{RngExt, SeedableRng};
use sidetone_model::access::Scope;
use sidetone_model::listing::Listing;
use sidetone_model::organisation::{OrganisationRecord, Organisations};
use sidetone_model::problem::Problem;
use sidetone_store::{Schema, Store};
use tokio::net::lookup_host;
use url::Url;

use crate::clock::wall_clock;
use crate::config::Config;
use crate::provision::{self, Declaration};

/// The two extensions of the test call, and their credentials.
#[derive(Clone)]
pub(super) struct Tenant {
    pub(super) domain: String,
    pub(super) from: String,
    pub(super) to: String,
    /// The passwords of the caller and of the called extension.
    pub(super) passwords: [String; 2],
    /// A key that reads their calls.
    pub(super) key: String,
}

/// The organisation, until it is removed.
pub(super) struct Temporary {
    pub(super) tenant: Tenant,
    name: String,
    store: Store,
}

impl Temporary {
    /// Creates an organisation, and deletes those that remain from killed tests. Its key is valid from this host
    /// only.
    ///
    /// # Errors
    /// The failed step, and a remedy.
    pub(super) async fn create(config: &Config, url: &str) -> Result<Self, String> {
        match Store::probe(&config.database).await {
            Ok(Schema::Current) => {}
            Ok(_) => {
                return Err(
                    "the database is of another version; start the engine of this version first".into()
                );
            }
            Err(error) => {
                return Err(format!("failed to {error}; run it as root or as the user of the engine"));
            }
        }
        let store = Store::open(&config.database).await.map_err(|error| format!("failed to {error}"))?;
        let mut rng = StdRng::try_from_rng(&mut SysRng)
            .map_err(|error| format!("the system provides no random numbers ({error})"))?;
        let number: u64 = rng.random();
        let mut text = |len| Alphanumeric.sample_string(&mut rng, len);
        let tenant = Tenant {
            domain: format!("self-test-{number:016x}.invalid"),
            from: "1001".to_owned(),
            to: "1002".to_owned(),
            passwords: [text(24), text(24)],
            key: format!("tel_{}_{}", text(12), text(32)),
        };
        let name = format!("{NAME}{number:016x}");
        remove_leftovers(&store).await?;
        let declared = declaration(&name, &tenant, &own_addresses(url).await)?;
        let applied = provision::apply(&store, &[declared], false, wall_clock(), &mut rng).await;
        applied.map_err(|error| format!("the extensions cannot be created: failed to {error}"))?;
        Ok(Temporary { tenant, name, store })
    }

    /// Deletes everything that was created.
    ///
    /// # Errors
    /// The remaining objects, and a remedy.
    pub(super) async fn remove(self) -> Result<(), String> {
        let found = named(&self.store, &self.name).await?;
        for organisation in found {
            remove(&self.store, &organisation).await.map_err(|problem| {
                format!(
                    "the organisation \"{}\" is left ({problem}); delete its extensions, its key and it over HTTP, or run \
                     this again after ten minutes",
                    self.name
                )
            })?;
        }
        self.store.close().await;
        Ok(())
    }
}

fn declaration(name: &str, tenant: &Tenant, addresses: &[String]) -> Result<Declaration, String> {
    let Tenant { domain, from, to, passwords: [of_from, of_to], key } = tenant;
    let text = format!(
        "[[organisations]]\nname = \"{name}\"\nsip_domain = \"{domain}\"\n\
         [[organisations.api_keys]]\nname = \"self-test\"\nkey = \"{key}\"\npermissions = [\"calls:read\"]\nallow = {addresses:?}\n\
         [[organisations.extensions]]\nnumber = \"{from}\"\npassword = \"{of_from}\"\n\
         [[organisations.extensions]]\nnumber = \"{to}\"\npassword = \"{of_to}\"\n"
    );
    let table = text.parse().map_err(|error| format!("the extensions cannot be declared: {error}"))?;
    Declaration::parse(table).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        format!("the extensions cannot be declared: {}", problems.join("; "))
    })
}

/// The addresses from which the engine sees this host: loopback, and those of the engine's own name.
async fn own_addresses(url: &str) -> Vec<String> {
    let mut addresses = vec!["127.0.0.0/8".to_owned(), "::1/128".to_owned()];
    let Ok(url) = Url::parse(url) else { return addresses };
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
    // A name that does not resolve fails at the first request, with its reason.
    if let Ok(found) = lookup_host((host, 0)).await {
        addresses.extend(found.take(ADDRESSES_MAX).map(|address| match address.ip() {
            IpAddr::V4(ip) => format!("{ip}/32"),
            IpAddr::V6(ip) => format!("{ip}/128"),
        }));
    }
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// The organisations whose name begins with this text.
async fn named(store: &Store, name: &str) -> Result<Vec<OrganisationRecord>, String> {
    let listing = Listing { q: Some(name.to_owned()), ..Listing::default() };
    let page = Organisations::list(store, Scope::Everything, &listing).await;
    let page = page.map_err(|problem| format!("the organisations cannot be read: {problem}"))?;
    Ok(page.items.into_iter().filter(|found| found.name.starts_with(name)).collect())
}

/// Deletes the organisations of killed tests; those of a test that may be running now are kept.
async fn remove_leftovers(store: &Store) -> Result<(), String> {
    let before = wall_clock().plus_micros(-LEFT_AFTER_MICROS);
    for organisation in named(store, NAME).await? {
        if organisation.created_at < before && organisation.sip_domain.ends_with(".invalid") {
            remove(store, &organisation).await.map_err(|problem| {
                format!("\"{}\" of an earlier test cannot be deleted: {problem}", organisation.name)
            })?;
        }
    }
    Ok(())
}

/// Deletes an organisation with its extensions and keys.
async fn remove(store: &Store, organisation: &OrganisationRecord) -> Result<(), Problem> {
    let scope = Scope::Organisation(organisation.id);
    let listing = Listing::default();
    for extension in store.list_extensions(scope, &listing).await?.items {
        store.delete_extension(scope, extension.id).await?;
    }
    for key in store.list_api_keys(scope, &listing).await?.items {
        store.delete_api_key(scope, key.id).await?;
    }
    Organisations::delete(store, scope, organisation.id).await
}

/// The prefix of these organisations' names.
const NAME: &str = "Self-test of sidetone check ";
/// Addresses of the engine's name that are allowed.
const ADDRESSES_MAX: usize = 8;
/// After ten minutes a test is no longer running.
const LEFT_AFTER_MICROS: i64 = 600 * 1_000_000;
