//! The handlers, one file per resource: each extracts, authorises, makes one port call, replies.

pub(crate) mod agents;
mod ai_price_body;
pub(crate) mod ai_prices;
pub(crate) mod api_keys;
pub(crate) mod auth;
pub(crate) mod calls;
pub(crate) mod cdr_export;
mod cdr_params;
#[cfg(feature = "parquet")]
mod cdr_parquet;
mod cdr_query;
pub(crate) mod cdrs;
mod conversation_body;
mod conversation_schema;
pub(crate) mod conversations;
pub(crate) mod docs;
pub(crate) mod events;
pub(crate) mod extensions;
pub(crate) mod health;
mod meeting_body;
mod note_query;
mod note_schema;
pub(crate) mod notes;
pub(crate) mod numbers;
pub(crate) mod openapi;
pub(crate) mod organisations;
pub(crate) mod prompts;
pub(crate) mod rates;
pub(crate) mod room_meetings;
pub(crate) mod room_sessions;
pub(crate) mod teams;
pub(crate) mod totals;
pub(crate) mod trunks;
pub(crate) mod users;
pub(crate) mod webhook_deliveries;
pub(crate) mod webhooks;
