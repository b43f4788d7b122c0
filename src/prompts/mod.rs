//! The prompts that callers hear: built-in ones and the organisations' own.
//!
//! Every clip is in memory, decoded in advance, so that it plays without delay. An uploaded prompt is stored for
//! every node ([`PromptService`]); each node reads it from the store ([`follow`]). This module does not depend on
//! calls and mixes.

mod builtin;
mod follow;
mod library;
mod service;

pub use follow::{Followed, follow};
pub use library::Library;
pub use service::PromptService;
