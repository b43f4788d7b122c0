//! Opus (RFC 6716) in RTP (RFC 7587): always with a clock of 48,000; each packet may be mono or stereo.
//!
//! The only module that uses the crate `opus-pure`. Decoding does not allocate after the first packets,
//! except for nine short-lived allocations inside the crate when a full-band packet is lost. An encoding
//! makes up to eight, besides about 100 µs of work.

use opus_pure::{Application, OpusDecoder, OpusEncoder, packet};

use crate::codec::CodecError;

/// Decodes packets to mono PCM at 48 kHz.
pub(super) struct Decoder(Box<OpusDecoder>);

impl Decoder {
    pub(super) fn new() -> Result<Decoder, CodecError> {
        let decoder = OpusDecoder::new(RATE_HZ, 1).map_err(|_| CodecError::Duration)?;
        Ok(Decoder(Box::new(decoder)))
    }

    /// Decodes one packet with as many samples as `pcm` has.
    pub(super) fn decode(&mut self, payload: &[u8], pcm: &mut [i16]) -> Result<(), CodecError> {
        let samples = self.0.decode_s16(payload, pcm.len(), pcm).map_err(|_| CodecError::Damaged)?;
        pcm.iter_mut().skip(samples).for_each(|sample| *sample = 0);
        Ok(())
    }

    /// Fills `pcm` with concealment based on the last packets; comfort noise after a DTX packet.
    pub(super) fn conceal(&mut self, pcm: &mut [i16]) {
        self.by_frames(pcm, |decoder, frame| decoder.decode_s16(&[], frame.len(), frame).is_ok());
    }

    /// Fills `pcm` with the lost packet before `next`, from the copy in `next` if it contains one (RFC 6716
    /// §2.1.7).
    pub(super) fn recover(&mut self, next: &[u8], pcm: &mut [i16]) {
        if self.0.decode_fec_s16(next, pcm.len(), pcm).is_err() {
            self.conceal(pcm);
        }
    }

    /// Runs `decode` on pieces of at most 20 ms; a piece that it cannot fill is silence.
    fn by_frames(&mut self, pcm: &mut [i16], decode: impl Fn(&mut OpusDecoder, &mut [i16]) -> bool) {
        for frame in pcm.chunks_mut(FRAME) {
            let whole = frame.len() / STEP * STEP;
            let (frame, rest) = frame.split_at_mut(whole);
            if frame.is_empty() || !decode(&mut self.0, frame) {
                frame.fill(0);
            }
            rest.fill(0);
        }
    }
}

/// Encodes mono PCM at 48 kHz to full-band packets.
///
/// The audio sent here is not a single voice but the sum of several, hold music, announcements and telephone
/// audio. Opus's voice coder (SILK) treats a tone in it as noise and fades it: 700 Hz from G.711 lost 5 to 8
/// dB within a second and a half. Its audio coder (CELT) keeps the tone within 0.1 dB at the same bit rate,
/// with less work. CELT packets carry no copy of the packet before; copies in packets of the party are still
/// used.
pub(super) struct Encoder(Box<OpusEncoder>);

impl Encoder {
    pub(super) fn new() -> Result<Encoder, CodecError> {
        let mut encoder =
            OpusEncoder::new(RATE_HZ, 1, Application::Audio).map_err(|_| CodecError::Duration)?;
        encoder.bitrate_bps = BITRATE_BPS;
        encoder.complexity = COMPLEXITY;
        Ok(Encoder(Box::new(encoder)))
    }

    pub(super) fn encode(&mut self, pcm: &[i16], payload: &mut [u8]) -> Result<usize, CodecError> {
        if !DURATIONS.contains(&pcm.len()) {
            return Err(CodecError::Duration);
        }
        self.0.encode_s16(pcm, pcm.len(), payload).map_err(|_| CodecError::Buffer)
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("opus::Decoder").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("opus::Encoder").finish_non_exhaustive()
    }
}

/// How many samples at 48 kHz a packet holds (RFC 6716 §3.1), at most 120 ms.
pub(super) fn samples(payload: &[u8]) -> Result<usize, CodecError> {
    packet::samples_48k(payload)
        .ok()
        .filter(|samples| (1..=LONGEST).contains(samples))
        .ok_or(CodecError::Damaged)
}

/// Whether a packet only signals silence (RFC 7587 §3.1.3).
pub(super) fn is_silence(payload: &[u8]) -> bool {
    payload.len() <= 2
}

/// The clock of RTP and the rate of the PCM.
pub(super) const RATE_HZ: i32 = 48_000;
/// 120 ms.
const LONGEST: usize = 5_760;
/// 20 ms, and the step of all durations, 2.5 ms.
const FRAME: usize = 960;
const STEP: usize = 120;
/// The possible durations: 2.5, 5, 10, 20, 40 and 60 ms, and longer combinations of these.
const DURATIONS: [usize; 9] = [120, 240, 480, 960, 1_920, 2_880, 3_840, 4_800, 5_760];
/// Full-band speech; RFC 7587 §3.1.1 gives 28 to 40 kbit/s as the sweet spot for it.
const BITRATE_BPS: i32 = 32_000;
/// Twice the work of this value gains less than 1 dB for speech.
const COMPLEXITY: i32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn speech(samples: usize) -> Vec<i16> {
        let tone = |hz: f64, n: usize| (std::f64::consts::TAU * hz * n as f64 / 48_000.0).sin();
        (0..samples)
            .map(|n| (1..12).map(|k| 1_500.0 * tone(140.0 * f64::from(k), n)).sum::<f64>() as i16)
            .collect()
    }

    fn packets(duration: usize, count: usize) -> Vec<Vec<u8>> {
        let mut encoder = Encoder::new().unwrap();
        let pcm = speech(duration * count);
        let encode = |frame: &[i16]| {
            let mut payload = [0; 4_000];
            let size = encoder.encode(frame, &mut payload).unwrap();
            payload[..size].to_vec()
        };
        pcm.chunks_exact(duration).map(encode).collect()
    }

    fn energy(pcm: &[i16]) -> f64 {
        pcm.iter().map(|sample| f64::from(*sample).powi(2)).sum()
    }

    #[test]
    fn every_duration_is_decoded() {
        for duration in DURATIONS {
            let mut decoder = Decoder::new().unwrap();
            for payload in packets(duration, 6) {
                assert_eq!(samples(&payload), Ok(duration));
                let mut pcm = vec![0; duration];
                decoder.decode(&payload, &mut pcm).unwrap();
            }
        }
        let mut encoder = Encoder::new().unwrap();
        assert_eq!(encoder.encode(&[0; 161], &mut [0; 1_500]), Err(CodecError::Duration));
        assert_eq!(encoder.encode(&[0; 960], &mut []), Err(CodecError::Buffer));
    }

    #[test]
    fn stereo_is_heard_as_mono() {
        let mut encoder = OpusEncoder::new(RATE_HZ, 2, Application::Audio).unwrap();
        let mut decoder = Decoder::new().unwrap();
        let stereo: Vec<i16> = speech(9_600).into_iter().flat_map(|sample| [sample, sample]).collect();
        let mut heard = Vec::new();
        for frame in stereo.chunks_exact(1_920) {
            let mut payload = [0; 1_500];
            let size = encoder.encode_s16(frame, 960, &mut payload).unwrap();
            assert_eq!(samples(&payload[..size]), Ok(960));
            let mut pcm = [0; 960];
            decoder.decode(&payload[..size], &mut pcm).unwrap();
            heard.extend(pcm);
        }
        let ratio = energy(&heard[4_800..]) / energy(&speech(9_600)[4_800..]);
        assert!((0.7..1.4).contains(&ratio), "{ratio}");
    }

    /// A lost packet restored from the copy in the next one is closer to the original than concealment.
    #[test]
    fn a_lost_packet_is_recovered_from_the_next() {
        let mut pcm: Vec<i16> = speech(48_000);
        // A voice that begins in the lost packet: earlier packets do not help to conceal it.
        pcm[..24_000].fill(0);
        let mut encoder = OpusEncoder::new(RATE_HZ, 1, Application::Voip).unwrap();
        (encoder.use_inband_fec, encoder.packet_loss_perc, encoder.bitrate_bps) = (true, 5, BITRATE_BPS);
        encoder.signal_type = Some(opus_pure::Signal::Voice);
        let mut sent = Vec::new();
        for frame in pcm.chunks_exact(960) {
            let mut payload = [0; 1_500];
            let size = encoder.encode_s16(frame, 960, &mut payload).unwrap();
            sent.push(payload[..size].to_vec());
        }
        let heard = |how: &dyn Fn(&mut Decoder, &mut [i16])| {
            let mut decoder = Decoder::new().unwrap();
            let mut frame = [0; 960];
            for payload in &sent[..26] {
                decoder.decode(payload, &mut frame).unwrap();
            }
            how(&mut decoder, &mut frame);
            frame
        };
        let whole = heard(&|decoder, frame| decoder.decode(&sent[26], frame).unwrap());
        let recovered = heard(&|decoder, frame| decoder.recover(&sent[27], frame));
        let guessed = heard(&|decoder, frame| decoder.conceal(frame));
        let off =
            |pcm: &[i16]| pcm.iter().zip(&whole).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
        let (recovered, guessed): (f64, f64) = (off(&recovered), off(&guessed));
        assert!(recovered < guessed, "{recovered} and {guessed}");
    }

    #[test]
    fn silence_is_told_and_garbage_refused() {
        assert!(is_silence(&[0x78]) && !is_silence(&[0x78, 1, 2]));
        assert_eq!(samples(&[]), Err(CodecError::Damaged));
        assert_eq!(samples(&[0xff, 0x3f, 0, 0]), Err(CodecError::Damaged));
        let mut decoder = Decoder::new().unwrap();
        let mut pcm = [1; 1_000];
        decoder.conceal(&mut pcm);
        decoder.recover(&[0xff; 40], &mut pcm[..960]);
    }
}
