//! The owner of every task and thread of the engine.
//!
//! A panic in a task is counted under the task's name and logged. What happens next is a property of the task
//! ([`Task::reaction`]): the supervisor starts it again on the state that survived, after a bounded pause, or it asks
//! for the end of the process once the task has saved what it can. `tests/architecture.rs` allows `tokio::spawn` and
//! `std::thread` in this folder alone.

mod supervisor;
mod task;
#[cfg(test)]
mod tests;

pub(crate) use supervisor::current_task;
pub use supervisor::{Beat, Running, Supervisor};
pub use task::{Condition, Reaction, Task};
