//! Calls that are taken out of captures: a capture of each, and its audio.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

pub(super) use sidetone_capture::Excerpt;
use sidetone_capture::{ExcerptStream, Playback, Splitter, each_frame};
use sidetone_media::audio::wav;

use crate::cli::inputs::Inputs;

use super::args::AnalyzeArgs;

/// What is extracted of each capture.
#[derive(Debug)]
pub(super) struct Excerpts {
    is_wanted: bool,
    /// Each with the number of its file, in their order.
    files: Vec<(usize, Vec<Excerpt>)>,
}

impl Excerpts {
    pub(super) fn new(is_wanted: bool) -> Self {
        Excerpts { is_wanted, files: Vec::new() }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Notes what is shown of a file.
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

/// Reads the captures again and writes what was asked for.
///
/// *Errors*: in words, what could not be read or written.
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

/// What the names of a file's excerpts begin with: nothing where there is one file.
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
    let mut splitter = Splitter::new(excerpts);
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
    eprintln!("{folder}: {} of {}", counted(excerpts.len(), "capture"), path.display());
    if left_out > 0 {
        eprintln!("{folder}: {left_out} frames of another link type, or before 1970, were left out");
    }
    Ok(())
}

/// Writes the audio of each stream.
fn listen(path: &Path, excerpts: &[Excerpt], mut files: Files<'_>, prefix: &str) -> Result<(), String> {
    let mut playback = Playback::new(excerpts);
    let mut tracks: Vec<(usize, usize)> = Vec::new();
    for excerpt in excerpts {
        for stream in &excerpt.streams {
            match playback.player(stream) {
                Some(player) => {
                    let file = files.name(&format!("{prefix}{}-{}.wav", name(excerpt), track(stream)));
                    files.with(file, |bytes| bytes.extend(wav::header(playback.rate_hz(player), 0)));
                    tracks.push((player, file));
                }
                None => eprintln!(
                    "sidetone: {}: stream {} has no WAV file: {} is not decoded here",
                    path.display(),
                    stream.place + 1,
                    stream.codec.as_deref().unwrap_or("its codec")
                ),
            }
        }
    }
    let mut by_player: Vec<Option<usize>> = Vec::new();
    for (player, file) in &tracks {
        by_player.resize(by_player.len().max(player + 1), None);
        if let Some(slot) = by_player.get_mut(*player) {
            *slot = Some(*file);
        }
    }
    let read = each_frame(open(path)?, |record| {
        if let Some(player) = playback.record(record)
            && playback.held(player) > SAMPLES_HELD
            && let Some(file) = by_player.get(player).copied().flatten()
        {
            files.with(file, |bytes| bytes.extend(playback.samples(player)));
        }
        files.write_some()
    });
    read.map_err(|error| files.failed(&error))?;
    for (player, file) in &tracks {
        playback.finish(*player);
        files.with(*file, |bytes| bytes.extend(playback.samples(*player)));
        files.write_some().map_err(|error| files.failed(&error))?;
    }
    files.write().map_err(|error| files.failed(&error))?;
    for (player, file) in &tracks {
        let rate_hz = playback.rate_hz(*player);
        files.rewrite(*file, |bytes| wav::header(rate_hz, bytes)).map_err(|error| files.failed(&error))?;
    }
    eprintln!("{}: {} of {}", files.folder.display(), counted(tracks.len(), "WAV file"), path.display());
    Ok(())
}

fn open(path: &Path) -> Result<File, String> {
    File::open(path).map_err(|error| format!("{}: cannot be read again: {error}", path.display()))
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

/// Many files under way, of which none stays open.
struct Files<'a> {
    folder: &'a Path,
    inputs: &'a Inputs,
    files: Vec<Pending>,
    /// How often it was not counted what all of them hold.
    turns: u32,
}

struct Pending {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Bytes that are in the file.
    written: u64,
}

impl<'a> Files<'a> {
    fn new(folder: &'a Path, inputs: &'a Inputs) -> Self {
        Files { folder, inputs, files: Vec::new(), turns: 0 }
    }

    /// A file of that name; it is known by the number from here on.
    fn name(&mut self, name: &str) -> usize {
        self.files.push(Pending { path: self.folder.join(name), bytes: Vec::new(), written: 0 });
        self.files.len() - 1
    }

    /// Lets `fill` append to what is written to a file.
    fn with<T>(&mut self, file: usize, fill: impl FnOnce(&mut Vec<u8>) -> T) -> Option<T> {
        self.files.get_mut(file).map(|file| fill(&mut file.bytes))
    }

    /// Writes what is there where that is much.
    fn write_some(&mut self) -> io::Result<()> {
        self.turns += 1;
        if self.turns < TURNS {
            return Ok(());
        }
        self.turns = 0;
        let held: usize = self.files.iter().map(|file| file.bytes.len()).sum();
        if held < BYTES_HELD { Ok(()) } else { self.write() }
    }

    /// Writes all that is there.
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

    /// Writes the head of a WAV file anew, which says how long it is.
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

/// The most WAV files at once.
const WAV_MAX: usize = 1_000;
/// Bytes that wait in memory for their files, and samples of one stream.
const BYTES_HELD: usize = 16 << 20;
const SAMPLES_HELD: usize = 64 << 10;
/// Frames between two looks at how much waits.
const TURNS: u32 = 4_096;
