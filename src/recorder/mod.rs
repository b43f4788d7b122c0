//! Recordings of rooms: the complete mix of a session in one WAV file, at 16 kHz with one channel or two, in
//! `data_dir/recordings/<organisation>/<session>.wav`. Recordings of calls are beside them, with a channel for each
//! side.
//!
//! A mix gives its frames to a [`RecordingSink`], which never blocks: frames that a slow disk cannot take are counted
//! and replaced by silence, so that the timing stays correct. One thread ([`Recorder`]) writes the frames several
//! times a second, and updates the header every second: if the process dies, the file can be played up to the last
//! update, and [`recover`] repairs it. A full or failing disk ends the recording, never the call.
//!
//! [`Recordings`] and [`WavFile`] use no thread and no file system, so that tests can pass disks that fail.

mod counters;
mod disk;
mod playback;
mod recordings;
mod retention;
mod sink;
#[cfg(test)]
mod tests;
mod thread;
mod wav_file;

pub use counters::RecorderCounters;
pub use disk::{DataDisk, channels_of, recover};
pub use playback::Playback;
pub use recordings::{Begin, Ended, RecordingKind, Recordings};
pub use retention::retain;
pub use sink::RecordingSink;
pub use thread::{Begins, Recorder, RecorderBusy};
pub use wav_file::{Disk, Storage, WavFile};
