//! Uploaded files that are damaged, cut or invented are refused or played, within the limits.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use proptest::prelude::*;
use sidetone_media::audio::clip::Clip;
use sidetone_media::audio::wav::header;

/// A sound file with every chunk that is read.
fn file(tag: u16, channels: u16, rate_hz: u32, bits: u16, data: &[u8]) -> Vec<u8> {
    let mut out = b"RIFF\0\0\0\0WAVELIST\x03\0\0\0abc\0fmt \x10\0\0\0".to_vec();
    out.extend(tag.to_le_bytes());
    out.extend(channels.to_le_bytes());
    out.extend(rate_hz.to_le_bytes());
    out.extend([0; 6]);
    out.extend(bits.to_le_bytes());
    out.extend(b"data");
    out.extend((data.len() as u32).to_le_bytes());
    out.extend(data);
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = Clip::from_wav(&bytes);
        let _ = Clip::from_wav(&[b"RIFF\0\0\0\0WAVE", bytes.as_slice()].concat());
    }

    #[test]
    fn any_format(
        tag in prop_oneof![Just(1_u16), Just(3), Just(6), Just(7), Just(0xfffe), any::<u16>()],
        channels in 0_u16..4,
        rate_hz in prop_oneof![7_000_u32..50_000, any::<u32>()],
        bits in prop_oneof![Just(8_u16), Just(16), Just(24), Just(32), any::<u16>()],
        data in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        if let Ok(clip) = Clip::from_wav(&file(tag, channels, rate_hz, bits, &data)) {
            prop_assert!(!clip.samples().is_empty());
            // The slowest and narrowest sound becomes at most twice as many samples as it has bytes.
            prop_assert!(clip.samples().len() <= 2 * data.len() + 1);
        }
    }

    #[test]
    fn any_damage(at in 0_usize..400, with in any::<u8>(), cut in 0_usize..460) {
        let mut file = file(7, 2, 44_100, 8, &[0x80; 400]);
        if let Some(byte) = file.get_mut(at) {
            *byte = with;
        }
        file.truncate(cut);
        let _ = Clip::from_wav(&file);
    }

    #[test]
    fn what_is_recorded_is_what_is_read(samples in proptest::collection::vec(any::<i16>(), 1..400)) {
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        let file = [header(Clip::RATE_HZ, bytes.len() as u64).as_slice(), &bytes].concat();
        let clip = Clip::from_wav(&file).unwrap();
        prop_assert_eq!(clip.samples(), samples.as_slice());
    }
}

#[test]
fn a_clip_is_no_longer_than_it_may_be() {
    let at_most = vec![0xff; Clip::SECONDS_MAX as usize * 8_000];
    let clip = Clip::from_wav(&file(7, 1, 8_000, 8, &at_most)).unwrap();
    assert_eq!(clip.duration_ms(), u64::from(Clip::SECONDS_MAX) * 1_000);
    let longer = [at_most.as_slice(), &[0xff]].concat();
    let error = Clip::from_wav(&file(7, 1, 8_000, 8, &longer)).unwrap_err();
    assert_eq!(error.to_string(), "it is longer than 120 seconds");
}
