//! The owner of every task and thread of the engine.
//!
//! A panic in a task is counted under the task's name and logged. The reaction is a property of the task
//! ([`Task::reaction`]): the supervisor restarts it with the state that survived, after a bounded pause, or it
//! requests the end of the process once the task has saved its state as far as possible. `tests/architecture.rs`
//! allows `tokio::spawn` and `std::thread` only in this folder.

mod supervisor;
mod task;
#[cfg(test)]
mod tests;

pub(crate) use supervisor::current_task;
pub use supervisor::{Beat, Running, Supervisor};
pub use task::{Condition, Reaction, Task};
