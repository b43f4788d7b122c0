//! Tests of the switch's machines by their inputs and outputs.

mod answering;
mod calls;
mod carrier;
mod conferencing;
mod credentials;
mod endings;
mod flooding;
mod hunting;
mod ladder;
mod live_media;
mod merging;
mod messaging;
mod money;
mod mutated;
pub(crate) mod network;
mod news;
mod notes;
mod registration;
mod room_chaos;
mod rooms_soak;
mod seating;
mod stay;
mod tenants;
mod transcoding;
mod world;
