//! Received audio as a WAV file: G.711 decoded to 16 bits at 8 kHz, with silence in gaps.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use sidetone_media::audio::wav::header;
use sidetone_media::codec::g711::{pcma_to_pcm, pcmu_to_pcm};
use sidetone_media::rtp::Packet;

/// A WAV file that grows while the phone receives audio; clones share it. It can be played at any time.
#[derive(Clone)]
pub struct Recorder {
    wav: Arc<Mutex<Wav<BufWriter<File>>>>,
}

impl Recorder {
    /// Creates or overwrites the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path) -> io::Result<Recorder> {
        let wav = Wav::begin(BufWriter::new(File::create(path)?))?;
        Ok(Recorder { wav: Arc::new(Mutex::new(wav)) })
    }

    /// Seconds written so far.
    pub fn seconds(&self) -> f64 {
        self.wav.lock().samples as f64 / f64::from(SAMPLE_RATE)
    }

    /// Flushes the audio to the disk.
    ///
    /// # Errors
    /// When the file cannot be written, now or since the last flush.
    pub fn flush(&self) -> io::Result<()> {
        self.wav.lock().finish()
    }

    pub(super) fn hear(&self, datagram: &[u8]) {
        self.wav.lock().hear(datagram);
    }
}

/// The file and its write state.
struct Wav<W> {
    out: W,
    samples: u64,
    /// The current stream, and the file's sample at its timestamp 0 (mod 2³²).
    stream: Option<Stream>,
    /// The error of the last write.
    failed: Option<io::Error>,
}

struct Stream {
    ssrc: u32,
    /// The expected timestamp of the next sample.
    next: u32,
}

impl<W: Write + Seek> Wav<W> {
    fn begin(mut out: W) -> io::Result<Wav<W>> {
        out.write_all(&header(SAMPLE_RATE, 0))?;
        Ok(Wav { out, samples: 0, stream: None, failed: None })
    }

    /// Appends an RTP packet of G.711. A late packet is dropped, because silence was already written in its place.
    fn hear(&mut self, datagram: &[u8]) {
        let Ok(packet) = Packet::parse(datagram) else { return };
        let decode: fn(u8) -> i16 = match packet.payload_type {
            0 => pcmu_to_pcm,
            8 => pcma_to_pcm,
            _ => return,
        };
        let begin = datagram.len().saturating_sub(packet.payload_len as usize);
        let payload = datagram.get(begin..).unwrap_or_default();
        let gap = match &self.stream {
            Some(stream) if stream.ssrc == packet.ssrc => packet.timestamp.wrapping_sub(stream.next),
            _ => 0,
        };
        if gap >= LATE {
            return;
        }
        // A sender whose timestamp jumps far ahead has restarted; no silence is written then.
        let silent = if gap > GAP_SAMPLES_MAX { 0 } else { gap };
        let samples = std::iter::repeat_n(0, silent as usize).chain(payload.iter().map(|byte| decode(*byte)));
        let bytes: Vec<u8> = samples.flat_map(i16::to_le_bytes).collect();
        let written = bytes.len() as u64 / 2;
        if self.samples + written > SAMPLES_MAX {
            return;
        }
        if let Err(error) = self.out.write_all(&bytes) {
            self.failed = Some(error);
            return;
        }
        self.samples += written;
        self.stream =
            Some(Stream { ssrc: packet.ssrc, next: packet.timestamp.wrapping_add(packet.payload_len) });
    }

    /// Writes the length into the header.
    fn finish(&mut self) -> io::Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&header(SAMPLE_RATE, self.samples * 2))?;
        self.out.seek(SeekFrom::End(0))?;
        self.out.flush()
    }
}

const SAMPLE_RATE: u32 = 8_000;
/// A timestamp this far ahead, modulo 2³², is an earlier one.
const LATE: u32 = 1 << 31;
/// Longer gaps are not filled.
const GAP_SAMPLES_MAX: u32 = SAMPLE_RATE * 60;
/// A day; the limit of the format is higher.
const SAMPLES_MAX: u64 = 86_400 * SAMPLE_RATE as u64;

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use sidetone_media::audio::wav::HEADER_LEN;
    use sidetone_media::simulate::{Codec, Content};
    use sidetone_media::time::Micros;

    use super::*;

    fn packet(timestamp: u32, payload_type: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = vec![0x80, payload_type, 0, 0];
        out.extend(timestamp.to_be_bytes());
        out.extend([0, 0, 0, 1]);
        out.extend(payload);
        out
    }

    fn wav() -> Wav<Cursor<Vec<u8>>> {
        Wav::begin(Cursor::new(Vec::new())).unwrap()
    }

    fn samples(wav: Wav<Cursor<Vec<u8>>>) -> Vec<i16> {
        wav.out.into_inner()[HEADER_LEN..]
            .chunks_exact(2)
            .map(|pair| i16::from_le_bytes([pair[0], pair[1]]))
            .collect()
    }

    #[test]
    fn gaps_are_silent_and_late_packets_left_out() {
        let mut wav = wav();
        wav.hear(&packet(u32::MAX - 1, 0, &[0x80, 0x80]));
        wav.hear(&packet(3, 0, &[0x00]));
        wav.hear(&packet(1, 0, &[0x80]));
        wav.hear(&packet(4, 101, &[5, 0x8a, 0, 160]));
        wav.hear(b"no packet");
        wav.finish().unwrap();
        assert_eq!(wav.out.get_ref()[HEADER_LEN - 4..HEADER_LEN], 12_u32.to_le_bytes());
        assert_eq!(samples(wav), [32_124, 32_124, 0, 0, 0, -32_124]);
    }

    #[test]
    fn the_tone_that_phones_send_is_heard() {
        let mut wav = wav();
        let mut datagram = Vec::new();
        for n in 0..50 {
            let content = Content::Audio { codec: Codec::Pcma, position: n * 160 };
            let packet = sidetone_media::simulate::Packet {
                at: Micros(0),
                sequence: n as u16,
                timestamp: n * 160,
                ssrc: 9,
                payload_type: 8,
                marker: false,
                payload_len: 160,
                content,
            };
            packet.write(&mut datagram);
            wav.hear(&datagram);
        }
        wav.finish().unwrap();
        let heard = samples(wav);
        let crossings = heard.windows(2).filter(|pair| (pair[0] < 0) != (pair[1] < 0)).count();
        assert_eq!((heard.len(), heard.iter().max()), (8_000, Some(&4_992)));
        assert!((878..=882).contains(&crossings), "440 Hz cross zero 880 times a second: {crossings}");
    }
}
