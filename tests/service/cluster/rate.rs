//! Calls at a fixed rate, started by the clock, whatever became of earlier ones.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::interval;

use crate::common::site::within;

/// Calls in progress, and the statuses of ended ones: 200 for an answered call.
pub struct Rate {
    stop: watch::Sender<bool>,
    statuses: Arc<Mutex<BTreeMap<u16, u64>>>,
    task: JoinHandle<()>,
}

impl Rate {
    /// Starts `per_second` calls a second; `call` places the call of that number and returns its status when it has
    /// ended.
    pub fn begin<F>(per_second: f64, call: impl Fn(usize) -> F + Send + 'static) -> Rate
    where
        F: Future<Output = u16> + Send + 'static,
    {
        let (stop, mut stopped) = watch::channel(false);
        let statuses: Arc<Mutex<BTreeMap<u16, u64>>> = Arc::default();
        let counted = Arc::clone(&statuses);
        let task = tokio::spawn(async move {
            let mut ticks = interval(Duration::from_secs_f64(1.0 / per_second));
            let mut calls = JoinSet::new();
            for number in 0.. {
                tokio::select! {
                    _ = ticks.tick() => {}
                    _ = stopped.wait_for(|stop| *stop) => break,
                }
                while calls.try_join_next().is_some() {}
                let (placed, counted) = (call(number), Arc::clone(&counted));
                calls.spawn(async move {
                    let status = placed.await;
                    *counted.lock().unwrap().entry(status).or_default() += 1;
                });
            }
            while calls.join_next().await.is_some() {}
        });
        Rate { stop, statuses, task }
    }

    /// The number of ended calls by status so far.
    pub fn statuses(&self) -> BTreeMap<u16, u64> {
        self.statuses.lock().unwrap().clone()
    }

    /// Starts no more calls; returns when the last one has ended.
    pub async fn ends(self) -> BTreeMap<u16, u64> {
        self.stop.send_replace(true);
        within("the last call", self.task).await.unwrap();
        let statuses = self.statuses.lock().unwrap();
        statuses.clone()
    }

    /// Its phones have lost their node: calls in progress have no result.
    pub fn dies(self) -> BTreeMap<u16, u64> {
        self.task.abort();
        self.statuses()
    }
}
