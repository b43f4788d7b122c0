//! The program in operation: started, queried, reloaded, stopped, killed.

mod backup;
pub mod client;
mod clock;
mod cluster;
mod descriptors;
mod drain;
mod fail2ban;
mod full_disk;
mod idempotency;
mod migrations;
mod package;
mod priorities;
mod probes;
mod reload;
mod secrets;
mod served;
mod service_manager;
mod tasks;
mod two_nodes;
