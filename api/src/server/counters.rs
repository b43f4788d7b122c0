//! Counters of connections.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::server::watch::Late;

/// Totals since the start, and the connections open now.
#[derive(Debug, Default)]
pub(crate) struct ServerCounters {
    open: AtomicU64,
    accepted: AtomicU64,
    accept_errors: AtomicU64,
    panics: AtomicU64,
    refused: [AtomicU64; Refusal::ALL.len()],
    closed: [AtomicU64; Late::ALL.len()],
}

/// Why a connection was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The address has reached its limit.
    Address,
    /// The total limit is reached.
    Total,
}

impl Refusal {
    /// Every reason, each at the index of its discriminant.
    pub(crate) const ALL: [Refusal; 2] = [Refusal::Address, Refusal::Total];

    /// The value of the metric's label.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Refusal::Address => "address",
            Refusal::Total => "total",
        }
    }
}

impl ServerCounters {
    pub(super) fn opened(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn ended(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn accept_failed(&self) {
        self.accept_errors.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn panicked(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// Connections whose task panicked.
    pub(crate) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    pub(super) fn refused(&self, why: Refusal) {
        if let Some(count) = self.refused.get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn closed(&self, why: Late) {
        if let Some(count) = self.closed.get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Connections open now.
    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Connections accepted.
    pub(crate) fn accepted_total(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Failures of the system to accept a connection.
    pub(crate) fn accept_errors_total(&self) -> u64 {
        self.accept_errors.load(Ordering::Relaxed)
    }

    /// Connections refused, by reason.
    pub(crate) fn refused_total(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.refused.iter().map(|count| count.load(Ordering::Relaxed));
        Refusal::ALL.iter().map(|why| why.as_str()).zip(counts)
    }

    /// Connections closed because the client took too long, by the step that took too long.
    pub(crate) fn closed_total(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.closed.iter().map(|count| count.load(Ordering::Relaxed));
        Late::ALL.iter().map(|why| why.as_str()).zip(counts)
    }
}
