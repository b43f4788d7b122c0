//! Reads a password from a file, or from the terminal without an echo, so that it is never on the command line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};

/// Why there is no password.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// A file is empty.
    #[error("{0}: the first line is empty")]
    Empty(String),
    /// A file cannot be read.
    #[error("{0}: cannot be read ({1})")]
    File(String, #[source] io::Error),
    /// There is no terminal for the question.
    #[error(
        "no password: name a file with --password-file, set SIDETONE_PHONE_PASSWORD, or run it on a terminal ({0})"
    )]
    Terminal(#[source] io::Error),
}

/// Returns the first line of a file.
///
/// # Errors
/// When it cannot be read, or is empty.
pub fn read(path: &Path) -> Result<String, SecretError> {
    let name = || path.display().to_string();
    let file = File::open(path).map_err(|error| SecretError::File(name(), error))?;
    let mut line = String::new();
    let read = BufReader::new(file.take(LINE_BYTES_MAX)).read_line(&mut line);
    read.map_err(|error| SecretError::File(name(), error))?;
    let password = line.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        return Err(SecretError::Empty(name()));
    }
    Ok(password.to_owned())
}

/// Reads it from the terminal, without showing the input.
///
/// # Errors
/// When there is no terminal.
pub fn ask(prompt: &str) -> Result<String, SecretError> {
    let terminal = File::options().read(true).write(true).open("/dev/tty").map_err(SecretError::Terminal)?;
    let shown = tcgetattr(&terminal).map_err(|error| SecretError::Terminal(error.into()))?;
    let mut hidden = shown.clone();
    hidden.local_flags.remove(LocalFlags::ECHO);
    let set = |how| tcsetattr(&terminal, SetArg::TCSAFLUSH, how);
    set(&hidden).map_err(|error| SecretError::Terminal(error.into()))?;
    let typed = typed(&terminal, prompt);
    // The terminal's echo is always switched on again.
    let restored = set(&shown);
    let password = typed.map_err(SecretError::Terminal)?;
    restored.map_err(|error| SecretError::Terminal(error.into()))?;
    Ok(password)
}

fn typed(mut terminal: &File, prompt: &str) -> io::Result<String> {
    write!(terminal, "{prompt}")?;
    let mut line = String::new();
    BufReader::new(terminal.take(LINE_BYTES_MAX)).read_line(&mut line)?;
    writeln!(terminal)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// The longest password line that is read.
const LINE_BYTES_MAX: u64 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gives_its_first_line() {
        let path = std::env::temp_dir().join(format!("sidetone-secret-{}", std::process::id()));
        for (text, expected) in
            [("s3cret\n", Some("s3cret")), (" a b \r\nmore", Some(" a b ")), ("", None), ("\n", None)]
        {
            std::fs::write(&path, text).unwrap();
            assert_eq!(read(&path).ok().as_deref(), expected, "{text:?}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("cannot be read"));
    }
}
