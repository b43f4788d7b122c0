//! The organisations and the measured engine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone::app::Engine;
use sidetone::config::Config;
use sidetone::provision::{Declaration, apply};
use sidetone_model::ids::OrganisationId;
use sidetone_model::time::Timestamp;
use sidetone_store::{Database, Store};
use uuid::Uuid;

use crate::records::YEAR_START_US;

/// The key of the largest organisation.
pub const KEY: &str = "tel_benchlarge01_0123456789abcdefghijklmnopqrstuvwxyz";
const LARGEST: &str = "Organisation 0000";

/// A folder that is removed when the value is dropped. `SIDETONE_BENCH_DIR` chooses the disk.
pub struct Folder(PathBuf);

pub fn folder() -> Folder {
    let root = std::env::var_os("SIDETONE_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let path = root.join(format!("sidetone-bench-{}", Uuid::new_v4()));
    std::fs::create_dir_all(&path).unwrap();
    Folder(path)
}

impl Folder {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Declares the organisations, the largest first.
pub async fn declare(store: &Store, count: usize) -> Vec<OrganisationId> {
    let mut text = String::new();
    for number in 0..count {
        text += &format!(
            "[[organisations]]\nname = \"Organisation {number:04}\"\nsip_domain = \"o{number}.test\"\n"
        );
        if number == 0 {
            text += &format!(
                "[[organisations.api_keys]]\nname = \"bench\"\nkey = \"{KEY}\"\nrate_per_minute = 60000\n\
                 permissions = [\"calls:read\", \"margin:read\"]\nallow = [\"127.0.0.1\"]\n"
            );
        }
    }
    let declaration = Declaration::parse(text.parse().unwrap()).unwrap();
    let now = Timestamp::from_micros(YEAR_START_US);
    apply(store, &[declaration], false, now, &mut StdRng::seed_from_u64(1)).await.unwrap();
    store.directory().await.unwrap().organisations.iter().map(|organisation| organisation.id).collect()
}

/// The queried organisation.
pub async fn largest(store: &Store) -> OrganisationId {
    let organisations = store.directory().await.unwrap().organisations;
    organisations.iter().find(|organisation| organisation.name == LARGEST).unwrap().id
}

/// A complete engine on loopback.
pub struct Site {
    engine: Engine,
    _dir: Folder,
}

impl Site {
    pub async fn start(database: &Database) -> Self {
        let dir = folder();
        let mut config = Config::default();
        config.node.data_dir = dir.path().to_owned();
        config.database = database.clone();
        config.sip.listen[0].address = ([127, 0, 0, 1], 0).into();
        config.http.listen = ([127, 0, 0, 1], 0).into();
        config.media.ports = 12_000..=12_099;
        config.media.workers = Some(1);
        Self { engine: Engine::start(&config).await.unwrap(), _dir: dir }
    }

    pub fn http(&self) -> SocketAddr {
        self.engine.http
    }

    pub async fn stop(self) {
        self.engine.stop(Duration::ZERO).await;
    }
}
