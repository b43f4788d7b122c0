//! The page at `/`, with links to the other pages.

use axum::response::Response;

use crate::routes::docs::html;

/// Entry page
///
/// A short page with links to the reference, its document, the probes and the metrics.
#[utoipa::path(
    get,
    path = "/",
    operation_id = "getStartPage",
    tag = "Operations",
    responses((status = 200, description = "The page.", body = String, content_type = "text/html")),
    security(()),
)]
pub(crate) async fn page() -> Response {
    html(POLICY, PAGE)
}

const PAGE: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sidetone</title>
</head>
<body>
<main>
<h1>Sidetone</h1>
<p>This engine serves its API under <code>/api/v1</code>. An API key or a login is needed for it.</p>
<ul>
<li><a href="/api/v1/docs">API reference</a></li>
<li><a href="/api/v1/openapi.json">API reference for programs (OpenAPI)</a></li>
<li><a href="/readyz">Readiness</a> of the engine</li>
<li><a href="/metrics">Metrics</a> for Prometheus, for the addresses in <code>[http] metrics_allow</code></li>
</ul>
</main>
</body>
</html>
"#;

/// Links only; nothing is loaded.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
