//! The levels of the log, as in `[log] level` and `RUST_LOG`.

use tracing_subscriber::EnvFilter;

/// Reads levels such as `info` or `info,sidetone_sip=debug`.
///
/// # Errors
/// A message that names the wrong directive. [`EnvFilter`] takes a word that is not a level for the name of a module and
/// logs only that module, so a mistyped level would silence the log.
pub fn log_filter(levels: &str) -> Result<EnvFilter, String> {
    let is_level = |word: &str| LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level));
    let is_known =
        |directive: &&str| is_level(directive.rsplit_once('=').map_or(*directive, |(_, level)| level));
    let mut directives = levels.split(',').map(str::trim).filter(|directive| !directive.is_empty());
    let unknown = directives.find(|directive| !is_known(directive));
    let refused = |text: &str| {
        format!(
            "\"{text}\" is not a level: write {}, or levels by module such as info,sidetone_sip=debug",
            LEVELS.join(", ")
        )
    };
    match unknown {
        Some(unknown) => Err(refused(unknown)),
        None => EnvFilter::try_new(levels).map_err(|_| refused(levels)),
    }
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
