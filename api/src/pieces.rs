//! An open file as the body of an answer: read in pieces as the client takes them.

use futures_util::stream::{self, Stream};
use sidetone_model::open_file::OpenFile;
use sidetone_model::problem::Problem;

/// Returns the bytes from `at` to `end`, with one piece in memory at a time. A failure ends the connection:
/// the length was sent before, so the client detects that bytes are missing. `kind` is the kind of file, for
/// the log.
pub(crate) fn pieces(
    kind: &'static str,
    file: Box<dyn OpenFile>,
    at: u64,
    end: u64,
) -> impl Stream<Item = Result<Vec<u8>, Problem>> {
    stream::try_unfold((file, at), move |(file, at)| async move {
        let len = usize::try_from(end.saturating_sub(at)).unwrap_or(PIECE_LEN).min(PIECE_LEN);
        if len == 0 {
            return Ok(None);
        }
        match file.read(at, len).await {
            Ok(piece) => {
                let at = at + piece.len() as u64;
                Ok(Some((piece, (file, at))))
            }
            Err(problem) => {
                tracing::error!(error = %problem, kind, "a file was sent in part: its disk failed");
                Err(problem)
            }
        }
    })
}

/// Four seconds of a recording.
const PIECE_LEN: usize = 128 * 1024;
