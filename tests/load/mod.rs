//! The load program (`examples/load`) against an engine: the engine reads what it provisions, and answers its requests.

mod busy;
mod engine;
mod runs;

use runs::{load, provision};
