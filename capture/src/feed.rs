//! Cuts the bytes of a capture, which arrive in pieces of any size, into frames.
//!
//! An element that crosses the end of a piece is assembled in a separate buffer, so the frames do not depend
//! on where the pieces end.

use sidetone_media::pcap::{Damage, Decoder, Record};

use super::times::{Times, Watch};

/// The state of a capture between one piece and the next.
#[derive(Debug, Default)]
pub(super) struct Feed {
    decoder: Decoder,
    /// The bytes so far of an element that began in one piece and continues in the next; at most
    /// [`sidetone_media::pcap::ELEMENT_LEN_MAX`] bytes.
    bridge: Vec<u8>,
    /// How many bytes of that element the decoder needs.
    needed: usize,
    watch: Watch,
}

impl Feed {
    /// Takes the next piece and passes every complete frame to `each`.
    ///
    /// *Errors*: nothing after this position can be read; the frames before the damage were passed on.
    #[inline]
    pub(super) fn take(&mut self, mut bytes: &[u8], mut each: impl FnMut(&Record<'_>)) -> Result<(), Damage> {
        // Each turn moves bytes into the bridge, which is complete after a few turns: the decoder limits how
        // many it needs.
        while !self.bridge.is_empty() {
            let missing = self.needed.saturating_sub(self.bridge.len()).max(1);
            let Some((head, rest)) = bytes.split_at_checked(missing) else {
                self.bridge.extend_from_slice(bytes);
                return Ok(());
            };
            self.bridge.extend_from_slice(head);
            bytes = rest;
            let drained = self.decoder.drain(&self.bridge, |record| {
                self.watch.see(record.at);
                each(record);
            })?;
            self.bridge.drain(..drained.consumed);
            self.needed = drained.needed;
        }
        let drained = self.decoder.drain(bytes, |record| {
            self.watch.see(record.at);
            each(record);
        })?;
        self.bridge.extend_from_slice(bytes.get(drained.consumed..).unwrap_or_default());
        self.needed = drained.needed;
        Ok(())
    }

    /// What is wrong with the times of the frames so far.
    pub(super) fn times(&self) -> Times {
        Times { untimed: self.decoder.untimed(), out_of_order_from: self.watch.out_of_order_from() }
    }

    /// Ends the file.
    ///
    /// *Errors*: it was cut off inside an element, or was empty.
    pub(super) fn finish(&mut self) -> Result<(), Damage> {
        // The rest holds no complete frame, but may show what kind of file it is.
        let drained = self.decoder.drain(&self.bridge, |_| ())?;
        self.decoder.finish(self.bridge.len().saturating_sub(drained.consumed))
    }
}
