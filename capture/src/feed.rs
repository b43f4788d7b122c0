//! The bytes of a capture, which come in pieces of any size, as frames.
//!
//! An element that goes over the end of a piece is put together in a buffer of its own, so the frames do not depend
//! on where the pieces end.

use sidetone_media::pcap::{Damage, Decoder, Record};

/// What is known of a capture between one piece and the next.
#[derive(Debug, Default)]
pub(super) struct Feed {
    decoder: Decoder,
    /// An element that began in one piece and goes on in the next, as far as it is there; at most
    /// [`sidetone_media::pcap::ELEMENT_LEN_MAX`] bytes.
    bridge: Vec<u8>,
    /// What the decoder needs of that element.
    needed: usize,
}

impl Feed {
    /// Takes the next piece and hands every frame that is whole then to `each`.
    ///
    /// *Errors*: nothing behind this place can be read; the frames before the damage were handed out.
    #[inline]
    pub(super) fn take(&mut self, mut bytes: &[u8], mut each: impl FnMut(&Record<'_>)) -> Result<(), Damage> {
        // Each turn takes bytes into the bridge, which is complete within a few: the decoder bounds what it needs.
        while !self.bridge.is_empty() {
            let missing = self.needed.saturating_sub(self.bridge.len()).max(1);
            let Some((head, rest)) = bytes.split_at_checked(missing) else {
                self.bridge.extend_from_slice(bytes);
                return Ok(());
            };
            self.bridge.extend_from_slice(head);
            bytes = rest;
            let drained = self.decoder.drain(&self.bridge, |record| each(record))?;
            self.bridge.drain(..drained.consumed);
            self.needed = drained.needed;
        }
        let drained = self.decoder.drain(bytes, |record| each(record))?;
        self.bridge.extend_from_slice(bytes.get(drained.consumed..).unwrap_or_default());
        self.needed = drained.needed;
        Ok(())
    }

    /// The file has ended.
    ///
    /// *Errors*: it was cut off inside an element, or was empty.
    pub(super) fn finish(&mut self) -> Result<(), Damage> {
        // What is left holds no whole frame, but may tell what kind of file it is.
        let drained = self.decoder.drain(&self.bridge, |_| ())?;
        self.decoder.finish(self.bridge.len().saturating_sub(drained.consumed))
    }
}
