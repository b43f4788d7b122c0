//! Webhooks: the complete worker over a real store, with a controlled clock and scripted endpoints; and
//! over real sockets, with an engine that is killed.

mod callbacks;
mod kill;
mod lifecycle;
mod neighbours;
mod outage;
mod signatures;
mod world;
