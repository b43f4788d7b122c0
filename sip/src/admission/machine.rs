//! The classes of senders and the limits of each.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use rand::rngs::StdRng;

use crate::admission::{Bucket, Buckets, Peers, Rate};
use crate::flow::source_of;

/// Limits of senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionConfig {
    /// Limit of each source that is not authenticated.
    pub per_source: Rate,
    /// Requests per second that are read from all such sources together. While there are fewer, a source may
    /// exceed its own limit, from a reserve of half as much again: after a restart thousands of phones behind
    /// one NAT are not authenticated yet.
    pub strangers_per_second: u32,
}

/// Why a datagram is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Dropped {
    /// Its dialog or transaction exceeds the rate of any legitimate one.
    Dialog,
    /// It is not SIP.
    NotSip,
    /// It was admitted, but too many messages waited already.
    Queue,
    /// Its source is not authenticated and exceeds its limit.
    Source,
    /// All sources that are not authenticated exceed their common limit.
    Strangers,
    /// It belongs to no dialog or transaction here: a response to no request of ours, or an ACK without a transaction.
    Stray,
}

/// Why a message that belongs to no dialog or transaction is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// From a known sender: an authenticated peer, a trunk, or a source that answers our challenges.
    Known,
    /// Beyond the limit of its source, from the reserve.
    Spare,
    /// From an unauthenticated source within its limit, or with credentials beyond the limit of these.
    Stranger,
}

/// Decides which datagrams are read.
pub struct Admission {
    peers: Peers,
    by_dialog: Buckets,
    by_peer: Buckets,
    by_trunk: Buckets,
    credentials: Allowance,
    strangers: Allowance,
}

/// Limits of a class of sources: of each source, of all together, and the reserve beyond a source's own
/// limit.
struct Allowance {
    own: Buckets,
    total: Bucket,
    beyond: Buckets,
    spare: Bucket,
}

impl Default for AdmissionConfig {
    fn default() -> Self {
        AdmissionConfig { per_source: Rate::new(30, 60), strangers_per_second: 4_000 }
    }
}

impl Dropped {
    /// All reasons.
    pub const ALL: [Dropped; 6] = [
        Dropped::Dialog,
        Dropped::NotSip,
        Dropped::Queue,
        Dropped::Source,
        Dropped::Strangers,
        Dropped::Stray,
    ];

    /// Whether the sender exceeds a limit; false for messages that belong to no dialog or transaction.
    pub const fn is_flood(self) -> bool {
        !matches!(self, Dropped::NotSip | Dropped::Stray)
    }

    /// The name in counters and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Dropped::Dialog => "dialog",
            Dropped::NotSip => "not_sip",
            Dropped::Queue => "queue",
            Dropped::Source => "source",
            Dropped::Strangers => "strangers",
            Dropped::Stray => "stray",
        }
    }
}

impl Admission {
    /// Full buckets; `rng` creates the secret that selects their cells. `epoch` is any time not after the first use.
    pub fn new(config: AdmissionConfig, epoch: Instant, rng: &mut StdRng) -> Self {
        let mut buckets = |rate, bits| Buckets::new(rate, bits, epoch, rng);
        let all = config.strangers_per_second.max(1);
        let spare = Rate::new(all / 2, all / 2);
        Admission {
            peers: Peers::default(),
            by_dialog: buckets(DIALOG, MANY),
            by_peer: buckets(PEER, MANY),
            by_trunk: buckets(TRUNK, FEW),
            credentials: Allowance {
                own: buckets(CREDENTIALS, MANY),
                total: Bucket::new(Rate::new(all, all.saturating_mul(2))),
                beyond: buckets(spare, FEW),
                spare: Bucket::new(spare),
            },
            strangers: Allowance {
                own: buckets(config.per_source, MANY),
                total: Bucket::new(Rate::new(all, all.saturating_mul(2))),
                beyond: buckets(spare, FEW),
                spare: Bucket::new(spare),
            },
        }
    }

    /// Records that a peer at this address has authenticated by digest.
    pub fn prove(&mut self, now: Instant, remote: SocketAddr) {
        self.peers.prove(now, remote);
    }

    /// Whether a message of a live dialog or transaction is read; `number` identifies that.
    ///
    /// # Errors
    /// [`Dropped::Dialog`] when it exceeds its limit.
    pub fn admit_live(&mut self, now: Instant, number: u64) -> Result<(), Dropped> {
        if self.by_dialog.take(now, number) { Ok(()) } else { Err(Dropped::Dialog) }
    }

    /// Whether a message that belongs to no dialog or transaction yet is read. `is_trunk`: its address is
    /// that of a trunk; `has_credentials`: it answers a challenge that we sent to its source, correctly or
    /// not.
    ///
    /// # Errors
    /// Why it is not read.
    pub fn admit(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        is_trunk: impl FnOnce() -> bool,
        has_credentials: impl FnOnce() -> bool,
    ) -> Result<Grant, Dropped> {
        let source = source_of(remote.ip());
        if self.peers.contains(now, remote) && self.by_peer.take(now, remote) {
            return Ok(Grant::Known);
        }
        if is_trunk() && self.by_trunk.take(now, source) {
            return Ok(Grant::Known);
        }
        if has_credentials()
            && let Ok(is_own) = self.credentials.take(now, source)
        {
            return Ok(if is_own { Grant::Known } else { Grant::Stranger });
        }
        let is_own = self.strangers.take(now, source)?;
        Ok(if is_own { Grant::Stranger } else { Grant::Spare })
    }
}

impl Allowance {
    /// Takes a token for a source; true when it is within the source's own limit.
    fn take(&mut self, now: Instant, source: IpAddr) -> Result<bool, Dropped> {
        // When few tokens are left, they are kept for sources that have not sent much lately, so that sources
        // which always send their maximum cannot use them all, however many they are. Rejected messages count
        // as sent.
        let is_fresh = self.own.is_fresh(now, source);
        let has_own = self.own.take(now, source);
        let is_open = self.total.is_well_filled(now) || (is_fresh && self.total.is_open(now));
        if has_own && is_open {
            self.total.take(now);
            return Ok(true);
        }
        if self.spare.is_open(now) && self.beyond.take(now, source) {
            self.spare.take(now);
            return Ok(false);
        }
        Err(if has_own { Dropped::Strangers } else { Dropped::Source })
    }
}

/// A dialog: digits sent as INFO are up to ten per second.
const DIALOG: Rate = Rate { per_second: 20, burst: 60 };
/// One authenticated address and port: a phone.
const PEER: Rate = Rate { per_second: 30, burst: 60 };
/// One address of a trunk, without requests inside dialogs.
const TRUNK: Rate = Rate { per_second: 500, burst: 1_000 };
/// One source that answers challenges: a phone, or a NAT with hundreds of phones.
const CREDENTIALS: Rate = Rate { per_second: 100, burst: 200 };
/// Table sizes as powers of two: for dialogs, peers and sources, and for the few sources that exceed their
/// rate.
const MANY: u32 = 16;
const FEW: u32 = 14;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rand::SeedableRng;

    use super::*;
    use crate::transaction::ladder::start;

    struct Bench {
        zero: Instant,
        admission: Admission,
    }

    impl Bench {
        fn new() -> Self {
            let zero = start();
            let mut rng = StdRng::seed_from_u64(1);
            Bench { zero, admission: Admission::new(AdmissionConfig::default(), zero, &mut rng) }
        }

        fn stranger(&mut self, ms: u64, from: &str) -> Result<Grant, Dropped> {
            self.ask(ms, from, false, false)
        }

        fn ask(
            &mut self,
            ms: u64,
            from: &str,
            is_trunk: bool,
            has_credentials: bool,
        ) -> Result<Grant, Dropped> {
            let now = self.zero + Duration::from_millis(ms);
            self.admission.admit(now, from.parse().unwrap(), || is_trunk, || has_credentials)
        }
    }

    /// T1: 100 sources send 50,000 datagrams per second for ten seconds. Unauthenticated sources elsewhere
    /// and all known senders are still served.
    #[test]
    fn a_flood_takes_its_own_share_and_nobody_elses() {
        for sources in [1, 100, 1_000] {
            flood(sources);
        }
    }

    fn flood(sources: u64) {
        let mut bench = Bench::new();
        bench.admission.prove(bench.zero, "192.0.2.7:5060".parse().unwrap());
        let (mut let_in, mut strangers, mut known, mut asked) = (0, 0, 0, 0);
        for ms in 0..10_000_u64 {
            for n in 0..50 {
                let source = (ms * 50 + n) % sources;
                let from = format!("198.51.{}.{}:{}", source >> 8, source & 255, 1_024 + n);
                let_in += usize::from(bench.stranger(ms, &from).is_ok());
            }
            // The bursts of a thousand sources take two seconds.
            if ms % 100 == 99 && ms > 2_000 {
                asked += 1;
                strangers += usize::from(bench.stranger(ms, &format!("203.0.113.{}:5060", ms % 97)).is_ok());
                known += usize::from(bench.stranger(ms, "192.0.2.7:5060").is_ok());
                known += usize::from(bench.ask(ms, "192.0.2.8:5060", true, false).is_ok());
                known += usize::from(bench.ask(ms, "192.0.2.9:5060", false, true).is_ok());
            }
            let now = bench.zero + Duration::from_millis(ms);
            assert!(bench.admission.admit_live(now, ms % 200).is_ok());
        }
        assert_eq!(known, 3 * asked, "of those who are known, beside {sources} who flood");
        // T1 requires 95 of 100; the others share both cells with the flood, or arrived before its bursts were over.
        assert!(
            strangers * 100 >= asked * 95,
            "{strangers} of {asked} strangers, beside {sources} who flood"
        );
        // At most 4,000 per second within the sources' limits, 2,000 from the reserve, and the bursts.
        assert!((20_000..=70_000).contains(&let_in), "{let_in} of {sources}");
    }

    /// A hundred thousand forged sources: authenticated peers, trunks, credentials and dialogs are not affected.
    #[test]
    fn forged_sources_take_nothing_of_those_who_are_known() {
        let mut bench = Bench::new();
        bench.admission.prove(bench.zero, "192.0.2.7:5060".parse().unwrap());
        let (mut let_in, mut served) = (0, 0);
        for ms in 0..10_000_u64 {
            for n in 0..50 {
                let number = (ms * 50 + n) % 100_000;
                let from = format!("100.{}.{}.{}:5060", number >> 16, (number >> 8) & 255, number & 255);
                let_in += usize::from(bench.stranger(ms, &from).is_ok());
            }
            if ms % 100 == 99 {
                served += usize::from(bench.stranger(ms, "192.0.2.7:5060").is_ok());
                served += usize::from(bench.ask(ms, "192.0.2.8:5060", true, false).is_ok());
                served += usize::from(bench.ask(ms, "192.0.2.9:5060", false, true).is_ok());
            }
        }
        assert_eq!(served, 300);
        assert!(let_in <= 70_000, "{let_in}");
    }

    /// After a restart 833 unauthenticated phones per second register from few addresses.
    #[test]
    fn phones_behind_few_addresses_all_come_in() {
        for nats in [1, 5, 1_000] {
            let mut bench = Bench::new();
            let mut waiting: Vec<(u64, u64)> = Vec::new();
            let (mut done, mut last) = (0, 0);
            for ms in 0..90_000_u64 {
                if ms < 60_000 && ms * 50_000 / 60_000 != (ms + 1) * 50_000 / 60_000 {
                    waiting.push((ms, 500));
                }
                // The first REGISTER, retransmitted as over UDP.
                for (due, wait) in std::mem::take(&mut waiting) {
                    if due != ms {
                        waiting.push((due, wait));
                        continue;
                    }
                    let nat = (due * 7 + wait) % nats;
                    let from = format!("203.{}.{}.1:{}", nat >> 8, nat & 255, 1_024 + due % 60_000);
                    let first = bench.stranger(ms, &from).is_ok();
                    if first && bench.ask(ms, &from, false, true).is_ok() {
                        (done, last) = (done + 1, ms);
                    } else {
                        waiting.push((ms + wait, (wait * 2).min(4_000)));
                    }
                }
            }
            assert_eq!(done, 50_000, "behind {nats}");
            assert!(last < 61_000, "behind {nats}: the last after {last} ms");
        }
    }

    #[test]
    fn an_ipv6_network_of_64_bits_is_one_source() {
        let mut bench = Bench::new();
        let let_in =
            (0..20_000).filter(|n| bench.stranger(0, &format!("[2001:db8:1:2::{n:x}]:5060")).is_ok()).count();
        assert_eq!(let_in, 60 + 2_000, "its burst, and what is spare");
        assert_eq!(bench.stranger(0, "[2001:db8:1:2:9::1]:5060"), Err(Dropped::Source));
        assert_eq!(bench.stranger(0, "[2001:db8:1:3::1]:5060"), Ok(Grant::Stranger));
    }

    #[test]
    fn one_dialog_cannot_flood() {
        let mut bench = Bench::new();
        let now = bench.zero;
        let let_in = (0..1_000).filter(|_| bench.admission.admit_live(now, 1).is_ok()).count();
        assert_eq!(let_in, 60);
        assert_eq!(bench.admission.admit_live(now, 1), Err(Dropped::Dialog));
        assert_eq!(bench.admission.admit_live(now, 2), Ok(()));
    }
}
