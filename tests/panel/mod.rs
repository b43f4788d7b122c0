//! The panel over the HTTP API and a real database: who may see and do what.

mod engine;
mod login;
mod people;
mod prompts;
mod settings;
mod site;
mod webhooks;
