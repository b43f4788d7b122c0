//! The packets that wait to be played, by sequence number.

/// The content of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Content {
    /// Audio of the lane with this index.
    Audio(usize),
    /// Comfort noise (RFC 3389).
    #[default]
    Noise,
}

/// One packet.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Its sequence number, extended beyond its wraps.
    pub(super) sequence: i64,
    /// Its media time and its duration.
    pub(super) media_us: i64,
    pub(super) duration_us: i64,
    pub(super) content: Content,
    pub(super) payload: Vec<u8>,
    /// Whether it still waits; a played packet stays until its slot is needed, to detect duplicates.
    waits: bool,
    used: bool,
}

/// A ring of 64 slots; the payload buffers are reused.
#[derive(Debug)]
pub(super) struct Slots {
    ring: Box<[Slot]>,
    waiting: usize,
}

/// The result of adding a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// It waits; this many others lost their slot to it.
    Kept {
        evicted: u64,
    },
    Duplicate,
    /// Its slot holds a later packet.
    Stale,
}

impl Slots {
    pub(super) fn new() -> Self {
        Slots { ring: (0..PLACES).map(|_| Slot::default()).collect(), waiting: 0 }
    }

    /// Adds a packet.
    pub(super) fn put(
        &mut self,
        sequence: i64,
        media_us: i64,
        duration_us: i64,
        content: Content,
        payload: &[u8],
    ) -> Put {
        let Some(slot) = self.ring.get_mut(place(sequence)) else { return Put::Stale };
        let mut evicted = 0;
        if slot.used {
            if slot.sequence == sequence {
                return Put::Duplicate;
            }
            if slot.sequence > sequence {
                return Put::Stale;
            }
            if slot.waits {
                self.waiting -= 1;
                evicted = 1;
            }
        }
        slot.payload.clear();
        slot.payload.extend_from_slice(payload);
        *slot = Slot {
            sequence,
            media_us,
            duration_us,
            content,
            payload: std::mem::take(&mut slot.payload),
            waits: true,
            used: true,
        };
        self.waiting += 1;
        Put::Kept { evicted }
    }

    /// The first waiting packet from `next` on.
    pub(super) fn first(&self, next: i64) -> Option<&Slot> {
        if self.waiting == 0 {
            return None;
        }
        // The fast case: the next packet is there.
        let from = |sequence: i64| {
            self.ring.get(place(sequence)).filter(|slot| slot.waits && slot.sequence == sequence)
        };
        from(next).or_else(|| {
            self.ring
                .iter()
                .filter(|slot| slot.waits && slot.sequence >= next)
                .min_by_key(|slot| slot.sequence)
        })
    }

    /// The packet `sequence`, if it is still stored, played or not.
    pub(super) fn kept(&self, sequence: i64) -> Option<&Slot> {
        self.ring.get(place(sequence)).filter(|slot| slot.used && slot.sequence == sequence)
    }

    /// Marks the packet `sequence` as played.
    pub(super) fn played(&mut self, sequence: i64) {
        if let Some(slot) =
            self.ring.get_mut(place(sequence)).filter(|slot| slot.waits && slot.sequence == sequence)
        {
            slot.waits = false;
            self.waiting -= 1;
        }
    }

    /// Removes all packets before `next`; returns how many of them still waited.
    pub(super) fn forget_before(&mut self, next: i64) -> u64 {
        let mut forgotten = 0;
        for slot in self.ring.iter_mut().filter(|slot| slot.waits && slot.sequence < next) {
            slot.waits = false;
            forgotten += 1;
        }
        self.waiting -= forgotten;
        forgotten as u64
    }

    /// Removes all packets, because another source begins.
    pub(super) fn clear(&mut self) {
        self.ring.iter_mut().for_each(|slot| (slot.waits, slot.used) = (false, false));
        self.waiting = 0;
    }

    /// Whether no packet waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }
}

fn place(sequence: i64) -> usize {
    sequence.rem_euclid(PLACES as i64) as usize
}

/// More than the longest delay in packets of 10 ms.
pub(super) const PLACES: usize = 64;
