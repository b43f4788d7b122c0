//! The ports of the HTTP API over the store.

use std::sync::Arc;

use rand::Rng;
use rand::rngs::StdRng;
use sidetone_api::{ApiState, DirectoryPorts, Panel, Ports, RatePorts, RoomHistory, TokenKey};
use sidetone_model::ids::NodeId;
use sidetone_model::room::Rooms;
use sidetone_store::{Changed, Store};

use super::engine::{StartError, trace_dir};
use crate::accounts::{Passwords, People};
use crate::clock::wall_clock;
use crate::config::Config;
use crate::far_files::FarFiles;
use crate::own_files::OwnFiles;
use crate::provision::{Lines, RoomPins};
use crate::recorder::DataDisk;
use crate::trace_files::{NodeTraces, TraceFiles};

/// The ports for users who log in.
pub async fn panel(store: &Store, rng: &mut StdRng) -> Result<Panel, StartError> {
    let mut fresh = [0; TokenKey::LEN];
    rng.fill_bytes(&mut fresh);
    let secret = store.session_secret(fresh, wall_clock()).await?;
    let people = Arc::new(People::new(store.clone(), Passwords::new(rng)));
    let store = Arc::new(store.clone());
    Ok(Panel {
        accounts: people.clone(),
        agents: store.clone(),
        keys: people.clone(),
        teams: store,
        token_key: TokenKey::new(secret),
        users: people,
    })
}

/// The ports for managing the directory over HTTP: the store, and the function that makes the credentials of
/// phones.
pub(crate) fn directory_ports(store: &Store, rng: StdRng) -> DirectoryPorts {
    let shared = Arc::new(store.clone());
    DirectoryPorts {
        extensions: Arc::new(Lines::new(store.clone(), rng)),
        numbers: shared.clone(),
        organisations: shared.clone(),
        trunks: shared,
    }
}

/// The conference rooms: the store, and the generator of PINs.
pub(super) fn rooms(store: &Store, config: &Config, rng: StdRng) -> Arc<dyn Rooms> {
    Arc::new(RoomPins::new(store.clone(), config.rooms.default_pin, rng))
}

pub(crate) fn rate_ports(store: &Store) -> RatePorts {
    let shared = Arc::new(store.clone());
    RatePorts { cost: shared.clone(), fx: shared.clone(), sell: shared }
}

/// The history of conference rooms.
pub(super) fn room_history(config: &Config, store: &Store) -> RoomHistory {
    let shared = Arc::new(store.clone());
    RoomHistory { sessions: shared.clone(), meetings: config.ai.enabled.then_some(shared) }
}

/// The recordings and traces of this node, for the other nodes.
pub(super) fn own_files(config: &Config) -> OwnFiles {
    OwnFiles::new(DataDisk::of(&config.node.data_dir), TraceFiles::new(trace_dir(config)))
}

/// The traces of all nodes.
pub(super) fn node_traces(config: &Config, node: NodeId, far: Option<Arc<dyn FarFiles>>) -> NodeTraces {
    NodeTraces { node, own: TraceFiles::new(trace_dir(config)), far }
}

/// The HTTP API over these ports, with the configured settings.
pub(crate) fn api_state(config: &Config, store: &Store, ports: Ports) -> ApiState {
    ApiState::new(ports, Arc::new(wall_clock))
        .with_settings(config.http.settings.clone())
        .with_credential_changes(store.event_bell().count(Changed::Credentials))
}
