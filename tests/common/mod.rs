//! What several modules of the tests share. Benches and the tests of other crates include single files.

pub mod browser;
pub mod chosen;
pub mod database;
pub mod device;
pub mod elsewhere;
pub mod killed;
pub mod mutations;
pub mod nodes;
pub mod ports;
pub mod process;
pub mod receiver;
pub mod records;
pub mod refused_urls;
pub mod room;
pub mod schema;
pub mod site;
pub mod tones;
pub mod tunnel;
pub mod waiting;
pub mod wire;
