//! Reads one capture, with a progress bar on a terminal.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use sidetone_capture::{self as capture, EngineOptions, Head, Parts, Source};

/// Reads one capture as far as possible; problems are printed to stderr.
pub(super) fn analyze(path: &Path, options: EngineOptions) -> io::Result<Parts> {
    let name = if path == Path::new("-") { "standard input".into() } else { path.to_string_lossy() };
    let mut stdin;
    let (source, len) = if path == Path::new("-") {
        stdin = io::stdin().lock();
        (Source::Stream(&mut stdin), None)
    } else {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        (Source::File(file), metadata.is_file().then_some(metadata.len()))
    };
    let bar = progress_bar(len, &name);
    let outcome = capture::read_parts(options, &name, source, &mut |bytes, packets| {
        bar.set_position(bytes);
        if !bar.is_hidden() {
            bar.set_message(format!("{name}: {}", speed(packets, bar.elapsed())));
        }
    });
    bar.finish_and_clear();
    if let Some(broken) = &outcome.broken {
        match outcome.parts.head.packets {
            0 => crate::cli::tell!("sidetone: {name}: {broken}"),
            packets => crate::cli::tell!("sidetone: {name}: {broken}; {packets} packets were read before it"),
        }
    } else if outcome.parts.head.packets == 0 {
        crate::cli::tell!("sidetone: {name}: the capture holds no packet");
    }
    tell_of_times(&outcome.parts.head);
    Ok(outcome.parts)
}

/// Prints why nothing in a capture is judged.
fn tell_of_times(head: &Head) {
    let Head { file, packets, times, .. } = head;
    if times.untimed > 0 {
        crate::cli::tell!(
            "sidetone: {file}: {} of {packets} packets have no time (simple packet blocks, or a time outside the years \
             0 to 9999), so its calls and streams are not judged: capture with tcpdump or Wireshark, which store the \
             time",
            times.untimed
        );
    }
    if let Some(number) = times.out_of_order_from {
        crate::cli::tell!(
            "sidetone: {file}: it is not in the order of time from packet {number} on, so its calls and streams are \
             not judged: sort it with reordercap, or give it as an uncompressed file, which is read in the order of \
             time"
        );
    }
}

/// A progress bar on a terminal; nothing if stderr is not one.
fn progress_bar(len: Option<u64>, name: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match len {
        Some(len) => (
            ProgressBar::new(len),
            "{wide_bar} {bytes}/{total_bytes} {decimal_bytes_per_sec}, {eta} left\n{msg}",
        ),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes} {decimal_bytes_per_sec}\n{msg}"),
    };
    bar.enable_steady_tick(Duration::from_millis(200));
    bar.set_message(name.to_owned());
    // The template is a constant; if it were wrong, the library's default would be used.
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// "1.2 million packets/s", over the whole time.
fn speed(packets: u64, elapsed: Duration) -> String {
    let rate = packets as f64 / elapsed.as_secs_f64().max(0.001);
    match rate {
        1e6.. => format!("{:.1} million packets/s", rate / 1e6),
        1e3.. => format!("{:.0} thousand packets/s", rate / 1e3),
        _ => format!("{rate:.0} packets/s"),
    }
}
