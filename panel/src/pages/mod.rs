//! The pages, one file each.

pub(crate) mod call;
pub(crate) mod call_figures;
pub(crate) mod calls;
pub(crate) mod deliveries;
pub(crate) mod edit;
pub(crate) mod events;
pub(crate) mod filters;
pub(crate) mod home;
pub(crate) mod live;
pub(crate) mod live_call;
pub(crate) mod live_room;
pub(crate) mod login;
pub(crate) mod nodes;
pub(crate) mod own_extension;
pub(crate) mod phones;
pub(crate) mod prompts;
pub(crate) mod report;
pub(crate) mod resources;
pub(crate) mod rooms;
pub(crate) mod settings;
pub(crate) mod signalling;
pub(crate) mod webhooks;
pub(crate) mod worst;
