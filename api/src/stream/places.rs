//! Limits the open streams of one key or one user.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use sidetone_model::access::Who;

/// The open streams; clones share them.
///
/// *Bounds*: a caller has an entry only while it has a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places(Arc<Mutex<HashMap<Who, usize>>>);

/// The place of one stream; released when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    who: Who,
}

impl Places {
    /// Returns a place for another stream of `who`, unless the limit is reached.
    pub(crate) fn take(&self, who: Who) -> Option<Place> {
        let mut taken = self.0.lock();
        let own = taken.entry(who).or_default();
        if *own >= STREAMS_PER_CALLER_MAX {
            return None;
        }
        *own += 1;
        Some(Place { places: self.clone(), who })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock();
        if let Some(own) = taken.get_mut(&self.who) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.remove(&self.who);
            }
        }
    }
}

/// Streams of one key or one user, over all their connections.
pub(crate) const STREAMS_PER_CALLER_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use sidetone_model::ids::{ApiKeyId, UserId};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn each_caller_has_five() {
        let places = Places::default();
        let (key, user) = (Who::Key(ApiKeyId(Uuid::nil())), Who::User(UserId(Uuid::nil())));
        let mut held: Vec<Place> = (0..5).map(|_| places.take(key).unwrap()).collect();
        assert!(places.take(key).is_none());
        assert!(places.take(user).is_some());
        held.pop();
        held.push(places.take(key).unwrap());
        assert!(places.take(key).is_none());
        held.clear();
        assert!(places.0.lock().is_empty());
    }
}
