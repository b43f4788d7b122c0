//! The future of every port: boxed, so that this crate does not depend on a runtime.

use std::future::Future;
use std::pin::Pin;

use crate::problem::Problem;

/// A future that a port returns.
pub type PortFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Problem>> + Send + 'a>>;
