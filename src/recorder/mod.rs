//! Recordings of rooms: the whole mix of a session in one WAV file, mono at 16 kHz, in
//! `data_dir/recordings/<organisation>/<session>.wav`.
//!
//! A mix gives its frames to a [`RecordingSink`], which never waits: what a slow disk does not take is counted and
//! becomes silence, so that the time line stays right. One thread ([`Recorder`]) writes what came, several times a
//! second, and makes the header say what the file holds each second: whenever the process dies, the file plays up to
//! there, and [`recover`] makes it whole. A disk that is full or fails ends the recording, never the call.
//!
//! [`Recordings`] and [`WavFile`] know no thread and no file system: tests give them disks that fail at will.

mod counters;
mod disk;
mod recordings;
mod retention;
mod shelf;
mod sink;
#[cfg(test)]
mod tests;
mod thread;
mod wav_file;

pub use counters::RecorderCounters;
pub use disk::{DataDisk, recover};
pub use recordings::{Begin, Ended, Recordings};
pub use retention::retain;
pub use shelf::Shelf;
pub use sink::RecordingSink;
pub use thread::{Begins, Recorder, RecorderBusy};
pub use wav_file::{Disk, Storage, WavFile};
