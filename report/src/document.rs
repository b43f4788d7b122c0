//! The frame of a page: its head, its content security policy, its style and its script.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::markup::Html;

/// Begins a page; `measured` is the sentence that names the place of the measurement.
pub fn begin(html: &mut Html, title: &str, measured: &'static str, rules_version: &str) {
    html.raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    html.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; ");
    html.raw("form-action 'none'; style-src 'sha256-").text(digest(STYLE)).raw("'; script-src 'sha256-");
    html.text(digest(SCRIPT))
        .raw("'\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    html.raw("<meta name=\"color-scheme\" content=\"light dark\"><title>").text(title);
    html.raw(" – Sidetone</title><style>")
        .raw(STYLE)
        .raw("</style></head><body><header><h1>Call quality</h1><p>");
    html.raw(measured).raw(" Rules version ").text(rules_version).raw(".</p></header><main>");
}

/// Ends a page that was begun with [`begin`].
pub fn end(html: &mut Html) {
    html.raw(
        "</main><footer>Made by Sidetone. The rules are explained in docs/verdicts.md.</footer><script>",
    );
    html.raw(SCRIPT).raw("</script></body></html>\n");
}

/// The hash of a script or a style for a policy (CSP level 2 §4.2.4).
fn digest(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
