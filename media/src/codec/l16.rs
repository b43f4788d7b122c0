//! L16: PCM in network byte order (RFC 3551 §4.5.11).

use crate::codec::CodecError;

/// Decodes `payload` and averages its channels; returns the number of samples.
pub(super) fn decode(channels: u8, payload: &[u8], pcm: &mut [i16]) -> Result<usize, CodecError> {
    let channels = usize::from(channels.max(1));
    let frames = payload.chunks_exact(2 * channels);
    if payload.is_empty() || !frames.remainder().is_empty() {
        return Err(CodecError::Damaged);
    }
    let count = frames.len();
    let room = pcm.get_mut(..count).ok_or(CodecError::Buffer)?;
    for (sample, frame) in room.iter_mut().zip(frames) {
        *sample = mono(frame);
    }
    Ok(count)
}

/// Encodes `pcm` into `payload`, each sample on every channel; returns the number of bytes.
pub(super) fn encode(channels: u8, pcm: &[i16], payload: &mut [u8]) -> Result<usize, CodecError> {
    let width = 2 * usize::from(channels.max(1));
    let size = pcm.len() * width;
    let room = payload.get_mut(..size).ok_or(CodecError::Buffer)?;
    for (frame, sample) in room.chunks_exact_mut(width).zip(pcm) {
        for channel in frame.chunks_exact_mut(2) {
            channel.copy_from_slice(&sample.to_be_bytes());
        }
    }
    Ok(size)
}

/// The mean of one sample's channels.
pub(super) fn mono(frame: &[u8]) -> i16 {
    let (sum, count) = frame.as_chunks::<2>().0.iter().fold((0_i32, 0_i32), |(sum, count), channel| {
        (sum + i32::from(i16::from_be_bytes(*channel)), count + 1)
    });
    i16::try_from(sum / count.max(1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_survive_and_channels_are_averaged() {
        let pcm = [0, 1, -1, i16::MAX, i16::MIN];
        for channels in [1, 2] {
            let mut payload = [0; 20];
            let size = encode(channels, &pcm, &mut payload).unwrap();
            assert_eq!(size, 10 * usize::from(channels));
            let mut back = [0; 5];
            assert_eq!(decode(channels, &payload[..size], &mut back), Ok(5));
            assert_eq!(back, pcm);
        }
        let mut back = [0; 1];
        assert_eq!(decode(2, &[0x01, 0x00, 0xff, 0x00], &mut back), Ok(1));
        assert_eq!(back, [0]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(decode(1, &[1], &mut [0; 4]), Err(CodecError::Damaged));
        assert_eq!(decode(2, &[1, 2], &mut [0; 4]), Err(CodecError::Damaged));
        assert_eq!(decode(1, &[], &mut [0; 4]), Err(CodecError::Damaged));
        assert_eq!(decode(1, &[0; 10], &mut [0; 4]), Err(CodecError::Buffer));
        assert_eq!(encode(1, &[0; 4], &mut [0; 7]), Err(CodecError::Buffer));
    }
}
