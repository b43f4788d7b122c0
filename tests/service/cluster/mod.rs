//! Several nodes on one PostgreSQL and one NATS, as an operator runs them. They need `nats-server` and
//! `SIDETONE_TEST_POSTGRES`, and print a notice where one is missing.

mod calls;
mod changes;
mod files;
mod front;
mod kills;
mod limits;
mod long_kills;
mod long_rolling;
mod losses;
mod membership;
mod messages;
mod nats;
mod operation;
mod pairings;
mod partitions;
mod phones;
mod rate;
mod rolling;
mod room_pairs;
mod rooms;
mod site;
mod stream;
mod tls;
mod trunks;
mod wire;
