//! The stylesheet, the modules and the icon of the pages, served as files.
//!
//! URLs in pages contain the version of the files, so that a browser keeps a file until the engine is replaced. A
//! module that another module imports has no version in its URL, and is requested each time.

use std::sync::OnceLock;

use axum::extract::{Path, RawQuery};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

/// The files by name: `(name, kind, content)`.
pub(crate) const FILES: [(&str, &str, &str); 5] = [
    ("icon.svg", "image/svg+xml", include_str!("files/icon.svg")),
    ("live.mjs", "text/javascript; charset=utf-8", include_str!("files/live.mjs")),
    ("page.mjs", "text/javascript; charset=utf-8", include_str!("files/page.mjs")),
    ("style.css", "text/css; charset=utf-8", include_str!("files/style.css")),
    ("zone.mjs", "text/javascript; charset=utf-8", include_str!("files/zone.mjs")),
];

/// The URL of a file.
pub(crate) fn address(name: &str) -> String {
    format!("/panel/{name}?v={}", version())
}

/// Sends a file.
pub(crate) async fn file(Path(name): Path<String>, RawQuery(query): RawQuery) -> Response {
    let Some((_, kind, content)) = FILES.iter().find(|(known, ..)| *known == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let is_versioned = query.is_some_and(|query| query.strip_prefix("v=") == Some(version()));
    let kept = if is_versioned { KEPT } else { "no-cache" };
    ([(CONTENT_TYPE, *kind), (CACHE_CONTROL, kept)], *content).into_response()
}

/// A short hash of all files.
fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let mut hash = Sha256::new();
        FILES.iter().for_each(|(.., content)| hash.update(content));
        hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    })
}

const KEPT: &str = "public, max-age=31536000, immutable";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_small() {
        let scripts = FILES.iter().filter(|(name, ..)| name.ends_with(".mjs"));
        let bytes: usize = scripts.map(|(.., content)| content.len()).sum();
        assert!((1..=40 * 1024).contains(&bytes), "{bytes} bytes of scripts");
    }
}
