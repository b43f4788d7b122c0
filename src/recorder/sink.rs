//! The end of a recording that a mix writes to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crossbeam_channel::{Receiver, Sender, TrySendError};
use sidetone_media::mix::FrameSink;
use sidetone_media::time::Micros;

use crate::recorder::counters::RecorderCounters;

/// Takes the frames of a mix without blocking. Dropping it completes the recording.
#[derive(Debug)]
pub struct RecordingSink {
    frames: Sender<Frame>,
    over: Arc<AtomicBool>,
    counters: Arc<RecorderCounters>,
    /// Channels, whose samples are interleaved.
    channels: u16,
    /// Samples that did not fit since the last frame that was taken.
    lost: u32,
    /// When the next frame begins, unless the mix was empty in the meantime.
    next: Option<Micros>,
}

/// The end that the recorder reads.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) frames: Receiver<Frame>,
    /// Set when no more frames are accepted.
    pub(super) over: Arc<AtomicBool>,
}

/// Audio, and the length of the silence before it.
#[derive(Debug)]
pub(super) struct Frame {
    silent: u32,
    len: u16,
    pcm: [i16; FRAME_LEN_MAX],
}

/// Returns both ends of a recording.
pub(super) fn pair(counters: Arc<RecorderCounters>, channels: u16) -> (RecordingSink, Source) {
    let (frames, received) = crossbeam_channel::bounded(QUEUE_LEN_MAX);
    let over = Arc::new(AtomicBool::new(false));
    let source = Source { frames: received, over: Arc::clone(&over) };
    (RecordingSink { frames, over, counters, channels: channels.max(1), lost: 0, next: None }, source)
}

impl FrameSink for RecordingSink {
    fn frame(&mut self, at: Micros, pcm_16k: &[i16]) -> bool {
        if self.over.load(Relaxed) {
            return false;
        }
        let mut silent = self.pause(at);
        for pcm in pcm_16k.chunks(FRAME_LEN_MAX) {
            if !self.send(std::mem::take(&mut silent), pcm) {
                return false;
            }
        }
        self.next = Some(Micros(at.0 + samples_us(pcm_16k.len() / usize::from(self.channels))));
        true
    }
}

impl RecordingSink {
    /// The number of samples for which the mix gave no frame. A slightly late frame is not replaced by silence.
    fn pause(&self, at: Micros) -> u32 {
        let pause_us = self.next.map_or(0, |next| at.0.saturating_sub(next.0)).min(PAUSE_MAX_US);
        if pause_us < PAUSE_MIN_US {
            0
        } else {
            u32::try_from(pause_us * 16 / 1_000 * i64::from(self.channels)).unwrap_or(0)
        }
    }

    fn send(&mut self, silent: u32, pcm: &[i16]) -> bool {
        let mut frame = Frame {
            silent: silent.saturating_add(self.lost),
            len: pcm.len() as u16,
            pcm: [0; FRAME_LEN_MAX],
        };
        frame.pcm.iter_mut().zip(pcm).for_each(|(place, sample)| *place = *sample);
        match self.frames.try_send(frame) {
            Ok(()) => self.lost = 0,
            Err(TrySendError::Disconnected(_)) => return false,
            Err(TrySendError::Full(frame)) => {
                self.lost = frame.silent.saturating_add(u32::from(frame.len));
                self.counters.frames_lost.fetch_add(1, Relaxed);
            }
        }
        true
    }
}

impl Frame {
    /// Appends the samples for the file.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.resize(out.len() + self.silent as usize * 2, 0);
        out.extend(self.pcm.iter().take(self.len.into()).flat_map(|sample| sample.to_le_bytes()));
    }
}

fn samples_us(samples: usize) -> i64 {
    i64::try_from(samples).unwrap_or(i64::MAX / 1_000_000) * 1_000 / 16
}

/// 20 ms at 16 kHz.
const FRAME_LEN_MAX: usize = 320;
/// Five seconds: disks stall for a moment during large flushes.
const QUEUE_LEN_MAX: usize = 250;
/// A mix whose tick is late by less than this sends the missing frames later.
const PAUSE_MIN_US: i64 = 1_000_000;
/// The longest silence that is written in one step.
const PAUSE_MAX_US: i64 = 3_600 * 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(source: &Source) -> Vec<i16> {
        let mut bytes = Vec::new();
        source.frames.try_iter().for_each(|frame| frame.write(&mut bytes));
        bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect()
    }

    #[test]
    fn what_is_lost_is_silent_and_counted() {
        let counters = Arc::new(RecorderCounters::default());
        let (mut sink, source) = pair(Arc::clone(&counters), 1);
        for n in 0..QUEUE_LEN_MAX as i64 + 3 {
            assert!(sink.frame(Micros(n * 20_000), &[1; 320]));
        }
        assert_eq!(counters.frames_lost(), 3);
        assert_eq!(heard(&source), [1; QUEUE_LEN_MAX * 320]);
        let next = Micros((QUEUE_LEN_MAX as i64 + 3) * 20_000);
        assert!(sink.frame(next, &[2; 320]));
        let rest = heard(&source);
        assert_eq!((rest.len(), &rest[960..]), (1_280, [2; 320].as_slice()));
        assert!(rest[..960].iter().all(|sample| *sample == 0));
    }

    #[test]
    fn a_pause_of_the_mix_is_silent_and_a_late_tick_is_not() {
        let (mut sink, source) = pair(Arc::default(), 1);
        for at_us in [0, 20_000, 900_000, 920_000, 3_940_000] {
            assert!(sink.frame(Micros(at_us), &[1; 320]));
        }
        let heard = heard(&source);
        assert_eq!(heard.len(), 5 * 320 + 3 * 16_000);
        assert!(heard[4 * 320..4 * 320 + 48_000].iter().all(|sample| *sample == 0));
    }

    #[test]
    fn two_channels_stay_in_turn_over_a_pause() {
        let (mut sink, source) = pair(Arc::default(), 2);
        let frame: Vec<i16> = [1, 2].repeat(320);
        for at_us in [0, 20_000, 1_040_000] {
            assert!(sink.frame(Micros(at_us), &frame));
        }
        let heard = heard(&source);
        assert_eq!(heard.len(), 3 * 640 + 2 * 16_000);
        assert!(heard[2 * 640..2 * 640 + 32_000].iter().all(|sample| *sample == 0));
        assert_eq!([&heard[..2], &heard[heard.len() - 2..]], [[1, 2], [1, 2]]);
    }

    #[test]
    fn nothing_is_taken_once_it_is_over() {
        let (mut sink, source) = pair(Arc::default(), 1);
        assert!(sink.frame(Micros(0), &[1; 700]));
        assert_eq!(heard(&source).len(), 700);
        source.over.store(true, Relaxed);
        assert!(!sink.frame(Micros(20_000), &[1; 320]));
        let (mut sink, source) = pair(Arc::default(), 1);
        drop(source);
        assert!(!sink.frame(Micros(0), &[1; 320]));
    }
}
