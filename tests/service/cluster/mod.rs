//! Several nodes on one PostgreSQL and one NATS, as an operator runs them. They need `nats-server` and
//! `SIDETONE_TEST_POSTGRES`, and print a notice where one is missing.

mod calls;
mod front;
mod kills;
mod limits;
mod membership;
mod messages;
mod nats;
mod operation;
mod phones;
mod rolling;
mod rooms;
mod site;
mod tls;
