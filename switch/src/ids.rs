//! Ids of calls, legs, media groups and mixes.

use std::sync::Arc;

use rand::RngExt;
use rand::rngs::StdRng;
use sidetone_media::mix::MixId;
use sidetone_model::ids::{CallId, LegId};
use sidetone_model::time::Timestamp;
use sidetone_sip::sdp::{Fingerprint, KeySeed};

/// Creates ids from a seeded generator.
pub(super) struct Ids {
    rng: StdRng,
    /// The worker threads of the relay.
    workers: u64,
    /// The certificate that the relay shows in DTLS.
    certificate: Option<Arc<Fingerprint>>,
}

impl Ids {
    pub(super) fn new(rng: StdRng, workers: usize) -> Self {
        Ids { rng, workers: u64::try_from(workers).unwrap_or(1).max(1), certificate: None }
    }

    /// Sets the certificate of the relay.
    pub(super) fn certify(&mut self, certificate: Fingerprint) {
        self.certificate = Some(Arc::new(certificate));
    }

    /// Creates a call id that sorts by time (RFC 9562 §5.7).
    pub(super) fn call(&mut self, wall: Timestamp) -> CallId {
        let millis = u64::try_from(wall.as_micros() / 1000).unwrap_or_default();
        let random: [u8; 10] = self.rng.random();
        CallId(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// Creates a leg id; random, so that it cannot be guessed.
    pub(super) fn leg(&mut self) -> LegId {
        LegId(uuid::Builder::from_random_bytes(self.rng.random()).into_uuid())
    }

    /// Creates a random token for a Call-ID.
    pub(super) fn token(&mut self) -> String {
        format!("{:032x}", self.rng.random::<u128>())
    }

    /// Creates an SDP session id and media group for a call: below 2⁶², so that a few may be added (RFC 8866
    /// §5.2).
    pub(super) fn session(&mut self) -> u64 {
        self.rng.random::<u64>() >> 2
    }

    /// Creates the id of a mix for two parties that are relayed to each other, from the media groups of their ports.
    /// The relay bridges them in the worker with the lower number; the mix is in the same worker, so that both keep
    /// their bridge.
    pub(super) fn mix_of(&mut self, groups: [u64; 2]) -> MixId {
        let [one, other] = groups.map(|group| group % self.workers);
        let base = self.session();
        MixId(base - base % self.workers + one.min(other))
    }

    /// Creates a source of keys for a call.
    pub(super) fn keys(&mut self) -> KeySeed {
        KeySeed::new(self.rng.random()).with_certificate(self.certificate.clone())
    }

    /// Returns the generator, for other random choices.
    pub(super) fn rng(&mut self) -> &mut StdRng {
        &mut self.rng
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn call_ids_sort_by_time_and_session_ids_leave_room() {
        let mut ids = Ids::new(StdRng::seed_from_u64(1), 4);
        let at = |millis: i64| Timestamp::from_micros(millis * 1000);
        let calls: Vec<CallId> = [1, 2, 1_000, 1_700_000_000_000].map(|millis| ids.call(at(millis))).into();
        assert!(calls.is_sorted(), "{calls:?}");
        assert!((0..100).all(|_| ids.session() < 1 << 62));
        assert_ne!(ids.leg(), ids.leg());
    }

    /// Two mixes of the same groups have different ids, and are in the worker where the relay bridges the ports.
    #[test]
    fn mixes_of_two_groups_are_in_the_worker_of_their_bridge() {
        for (workers, groups, worker) in [(4, [6, 9], 1), (4, [8, 9], 0), (1, [6, 9], 0), (0, [6, 9], 0)] {
            let mut ids = Ids::new(StdRng::seed_from_u64(2), workers);
            let mixes = [ids.mix_of(groups), ids.mix_of(groups)];
            assert_ne!(mixes[0], mixes[1]);
            let found = mixes.map(|mix| mix.0 % u64::try_from(workers.max(1)).unwrap());
            assert_eq!(found, [worker; 2], "{workers} {groups:?}");
        }
    }
}
