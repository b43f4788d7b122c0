//! Extracts calls from captures: a capture of each, and its audio.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

pub(super) use sidetone_capture::Excerpt;
use sidetone_capture::{ExcerptStream, Playback, Survey, each_frame};
use sidetone_media::audio::wav;

use crate::cli::inputs::Inputs;

use super::args::AnalyzeArgs;

/// The excerpts of each capture.
#[derive(Debug)]
pub(super) struct Excerpts {
    is_wanted: bool,
    /// Each with the index of its file, in order.
    files: Vec<(usize, Vec<Excerpt>)>,
}

impl Excerpts {
    pub(super) fn new(is_wanted: bool) -> Self {
        Excerpts { is_wanted, files: Vec::new() }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Adds a shown item of a file.
    pub(super) fn push(&mut self, file: usize, excerpt: impl FnOnce() -> Excerpt) {
        if !self.is_wanted {
            return;
        }
        match self.files.last_mut() {
            Some((last, excerpts)) if *last == file => excerpts.push(excerpt()),
            _ => self.files.push((file, vec![excerpt()])),
        }
    }
}

/// Reads the captures again and writes the excerpts.
///
/// *Errors*: what could not be read or written, as text.
pub(super) fn extract(args: &AnalyzeArgs, inputs: &Inputs, excerpts: &Excerpts) -> Result<(), String> {
    let streams: usize =
        excerpts.files.iter().flat_map(|(_, excerpts)| excerpts).map(|excerpt| excerpt.streams.len()).sum();
    if args.wav.is_some() && streams > WAV_MAX {
        return Err(format!(
            "--wav would write {streams} files, of {WAV_MAX} at most: choose calls with --call, --from, --verdict or \
             --worst, such as --worst 100"
        ));
    }
    for folder in [&args.wav, &args.split].into_iter().flatten() {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: the folder cannot be made: {error}", folder.display()))?;
    }
    for (file, excerpts) in &excerpts.files {
        let Some(path) = args.files.get(*file) else { continue };
        let prefix = prefix(args, *file, path);
        if let Some(folder) = &args.split {
            split(path, excerpts, Files::new(folder, inputs), &prefix)?;
        }
        if let Some(folder) = &args.wav {
            listen(path, excerpts, Files::new(folder, inputs), &prefix)?;
        }
    }
    Ok(())
}

/// The prefix of the names of a file's excerpts: empty for a single file.
fn prefix(args: &AnalyzeArgs, file: usize, path: &Path) -> String {
    if args.files.len() == 1 {
        return String::new();
    }
    let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    format!("{}-{stem}-", file + 1)
}

/// Writes a capture of each excerpt.
fn split(path: &Path, excerpts: &[Excerpt], mut files: Files<'_>, prefix: &str) -> Result<(), String> {
    let names: Vec<usize> =
        excerpts.iter().map(|excerpt| files.name(&format!("{prefix}{}.pcap", name(excerpt)))).collect();
    let mut survey = Survey::new(excerpts);
    let surveyed = each_frame(open(path)?, |record| {
        survey.record(record);
        Ok(())
    });
    surveyed.map_err(|error| unreadable(path, &error))?;
    let (mut splitter, forgotten) = survey.finish();
    let mut left_out = 0_u64;
    let read = each_frame(open(path)?, |record| {
        let whose = splitter.whose(record).to_vec();
        for place in whose {
            let Some(file) = names.get(place) else { continue };
            let kept = files.with(*file, |bytes| splitter.append(place, record, bytes));
            left_out += u64::from(kept == Some(false));
        }
        files.write_some()
    });
    read.and_then(|()| files.write()).map_err(|error| files.failed(&error))?;
    let folder = files.folder.display();
    crate::cli::tell!("{folder}: {} of {}", counted(excerpts.len(), "capture"), path.display());
    if left_out > 0 {
        crate::cli::tell!("{folder}: {left_out} frames of another link type, or before 1970, were left out");
    }
    if forgotten > 0 {
        crate::cli::tell!(
            "{folder}: {forgotten} fragments and TCP segments are missing, for they are too many: choose fewer calls \
             with --call, --from, --verdict or --worst"
        );
    }
    Ok(())
}

/// Writes the audio of each stream that can be decoded, and lists the others.
fn listen(path: &Path, excerpts: &[Excerpt], mut files: Files<'_>, prefix: &str) -> Result<(), String> {
    let mut playback = Playback::new(excerpts);
    let mut notices = Notices { path, count: 0 };
    let tracks = tracks(&playback, excerpts, &mut files, &mut notices, prefix);
    let by_player: HashMap<usize, usize> = tracks.iter().map(|track| (track.player, track.file)).collect();
    let read = each_frame(open(path)?, |record| {
        let touched = playback.record(record).to_vec();
        for player in touched {
            if playback.held(player) > SAMPLES_HELD
                && let Some(file) = by_player.get(&player)
            {
                files.audio(*file, playback.rate_hz(player), &playback.samples(player));
            }
        }
        files.write_some()
    });
    read.map_err(|error| files.failed(&error))?;
    playback.end();
    let mut written = 0;
    for Track { player, file, stream } in tracks {
        if !playback.has_audio(player) {
            notices.say(&format!(
                "stream {} has no WAV file: the capture holds no whole packet of its audio; capture whole packets \
                 (tcpdump -s 0)",
                stream + 1
            ));
            continue;
        }
        let rate_hz = playback.rate_hz(player);
        // Each iteration plays one minute of a call; the number of minutes is bounded.
        loop {
            let goes_on = playback.play_on(player);
            files.audio(file, rate_hz, &playback.samples(player));
            files.write_some().map_err(|error| files.failed(&error))?;
            if !goes_on {
                break;
            }
        }
        files.write().map_err(|error| files.failed(&error))?;
        files.rewrite(file, |bytes| wav::header(rate_hz, bytes)).map_err(|error| files.failed(&error))?;
        written += 1;
    }
    notices.finish();
    crate::cli::tell!("{}: {} of {}", files.folder.display(), counted(written, "WAV file"), path.display());
    Ok(())
}

/// The streams that can be decoded, each with its file; the others are listed.
fn tracks(
    playback: &Playback,
    excerpts: &[Excerpt],
    files: &mut Files<'_>,
    notices: &mut Notices<'_>,
    prefix: &str,
) -> Vec<Track> {
    let mut tracks = Vec::new();
    for excerpt in excerpts {
        if let (Some(call), true) = (excerpt.call, excerpt.streams.is_empty()) {
            notices.say(&format!("call {} has no WAV file: no RTP of it is in the capture", call + 1));
        }
        for stream in &excerpt.streams {
            match playback.player(stream) {
                Some(player) => {
                    let file = files.name(&format!("{prefix}{}-{}.wav", name(excerpt), track(stream)));
                    tracks.push(Track { player, file, stream: stream.place });
                }
                None => notices.say(&format!(
                    "stream {} has no WAV file: {} is not decoded here",
                    stream.place + 1,
                    stream.codec.as_deref().unwrap_or("its codec")
                )),
            }
        }
    }
    tracks
}

/// A stream whose audio is extracted.
struct Track {
    player: usize,
    file: usize,
    /// Its index in the analysis.
    stream: usize,
}

/// Messages on stderr about one capture; only the first few of many are printed.
struct Notices<'a> {
    path: &'a Path,
    count: usize,
}

impl Notices<'_> {
    fn say(&mut self, text: &str) {
        self.count += 1;
        if self.count <= NOTICES_MAX {
            crate::cli::tell!("sidetone: {}: {text}", self.path.display());
        }
    }

    fn finish(&self) {
        let more = self.count.saturating_sub(NOTICES_MAX);
        if more > 0 {
            let path = self.path.display();
            crate::cli::tell!(
                "sidetone: {path}: {more} more calls and streams have no WAV file, for the same reasons"
            );
        }
    }
}

fn open(path: &Path) -> Result<File, String> {
    File::open(path).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("{}: cannot be read again: {error}", path.display())
}

/// `call-3`, or `stream-7` for streams without signalling.
fn name(excerpt: &Excerpt) -> String {
    match (excerpt.call, excerpt.streams.first()) {
        (Some(call), _) => format!("call-{}", call + 1),
        (None, Some(stream)) => format!("stream-{}", stream.place + 1),
        (None, None) => "stream".to_owned(),
    }
}

/// `from-caller-1`: the direction of a stream and its number.
fn track(stream: &ExcerptStream) -> String {
    let direction = match stream.direction {
        Some("from_caller") => "from-caller",
        Some(_) => "to-caller",
        None => "audio",
    };
    format!("{direction}-{}", stream.place + 1)
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Many files that are written in parts; none stays open.
struct Files<'a> {
    folder: &'a Path,
    inputs: &'a Inputs,
    files: Vec<Pending>,
    /// Turns since the waiting bytes were last counted.
    turns: u32,
}

struct Pending {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Bytes that were written to the file.
    written: u64,
}

impl<'a> Files<'a> {
    fn new(folder: &'a Path, inputs: &'a Inputs) -> Self {
        Files { folder, inputs, files: Vec::new(), turns: 0 }
    }

    /// Adds a file with that name; returns its number.
    fn name(&mut self, name: &str) -> usize {
        self.files.push(Pending { path: self.folder.join(name), bytes: Vec::new(), written: 0 });
        self.files.len() - 1
    }

    /// Lets `fill` append to the buffer of a file.
    fn with<T>(&mut self, file: usize, fill: impl FnOnce(&mut Vec<u8>) -> T) -> Option<T> {
        self.files.get_mut(file).map(|file| fill(&mut file.bytes))
    }

    /// Appends samples to a WAV file, which is begun with the first of them.
    fn audio(&mut self, file: usize, rate_hz: u32, samples: &[u8]) {
        let Some(file) = self.files.get_mut(file).filter(|_| !samples.is_empty()) else { return };
        if file.written == 0 && file.bytes.is_empty() {
            file.bytes.extend(wav::header(rate_hz, 0));
        }
        file.bytes.extend_from_slice(samples);
    }

    /// Writes the buffers if they are large.
    fn write_some(&mut self) -> io::Result<()> {
        self.turns += 1;
        if self.turns < TURNS {
            return Ok(());
        }
        self.turns = 0;
        let held: usize = self.files.iter().map(|file| file.bytes.len()).sum();
        if held < BYTES_HELD { Ok(()) } else { self.write() }
    }

    /// Writes all buffers.
    fn write(&mut self) -> io::Result<()> {
        for file in self.files.iter_mut().filter(|file| !file.bytes.is_empty()) {
            let mut out = if file.written == 0 {
                self.inputs.create(&file.path)?
            } else {
                OpenOptions::new().append(true).open(&file.path)?
            };
            out.write_all(&file.bytes)?;
            file.written += file.bytes.len() as u64;
            file.bytes = Vec::new();
        }
        Ok(())
    }

    /// Overwrites the header of a WAV file with its final length.
    fn rewrite(&self, file: usize, head: impl FnOnce(u64) -> [u8; wav::HEADER_LEN]) -> io::Result<()> {
        let Some(file) = self.files.get(file) else { return Ok(()) };
        let mut out = OpenOptions::new().write(true).open(&file.path)?;
        out.seek(io::SeekFrom::Start(0))?;
        out.write_all(&head(file.written.saturating_sub(wav::HEADER_LEN as u64)))
    }

    fn failed(&self, error: &io::Error) -> String {
        format!("{}: calls cannot be written there: {error}", self.folder.display())
    }
}

/// Maximum messages about calls and streams of one capture.
const NOTICES_MAX: usize = 20;
/// The largest number of WAV files.
const WAV_MAX: usize = 1_000;
/// Buffered bytes of all files, and samples of one stream.
const BYTES_HELD: usize = 16 << 20;
const SAMPLES_HELD: usize = 64 << 10;
/// Frames between two checks of the waiting bytes.
const TURNS: u32 = 4_096;
