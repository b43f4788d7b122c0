//! Deprecates an operation: one call adds it to the document and to every answer.
//!
//! ```ignore
//! .routes(deprecated(routes!(things::find), Deprecation::announced(day, "/api/v1/docs#getThing")))
//! ```
#![cfg_attr(not(test), expect(dead_code, reason = "nothing is deprecated yet"))]

use axum::http::header::LINK;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use sidetone_model::time::Timestamp;
use tower::ServiceBuilder;
use utoipa::openapi::Deprecated;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa_axum::router::{UtoipaMethodRouter, UtoipaMethodRouterExt};

/// The announcement of an operation's deprecation, and the end of the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deprecation {
    since: Timestamp,
    sunset: Timestamp,
    link: &'static str,
}

impl Deprecation {
    /// An operation that was deprecated at `since`; `link` explains why. It works for the promised six
    /// months.
    pub(crate) fn announced(since: Timestamp, link: &'static str) -> Self {
        Self { since, sunset: since.plus_micros(NOTICE_US), link }
    }

    /// The headers `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link`.
    fn headers(self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let since = format!("@{}", self.since.as_micros().div_euclid(1_000_000));
        let link = format!("<{}>; rel=\"deprecation\"; type=\"text/html\"", self.link);
        let texts = [(DEPRECATION, Some(since)), (SUNSET, self.sunset.to_http_date()), (LINK, Some(link))];
        texts.into_iter().filter_map(|(name, text)| {
            text.and_then(|text| HeaderValue::try_from(text).ok()).map(|value| (name, value))
        })
    }

    fn write(self, operation: &mut Operation) {
        operation.deprecated = Some(Deprecated::True);
        let going = self.sunset.to_string();
        let day = going.get(..10).unwrap_or(&going);
        let text = operation.description.take().unwrap_or_default();
        let text = format!("{text}\n\nDeprecated: works until {day} at least.");
        operation.description = Some(text.trim_start().to_owned());
    }
}

/// Returns the routes with the deprecation headers.
pub(crate) fn deprecated<S>(routes: UtoipaMethodRouter<S>, notice: Deprecation) -> UtoipaMethodRouter<S>
where
    S: Send + Sync + Clone + 'static,
{
    let mut routes = routes;
    for operation in routes.1.paths.values_mut().flat_map(operations) {
        notice.write(operation);
    }
    routes.layer(ServiceBuilder::new().map_response(move |mut response: Response| {
        response.headers_mut().extend(notice.headers());
        response
    }))
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, options, head, patch, trace, .. } = item;
    [get, put, post, delete, options, head, patch, trace].into_iter().flatten()
}

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
/// At least six months, for any start date.
const NOTICE_US: i64 = 184 * 24 * 3600 * 1_000_000;
const SUNSET: HeaderName = HeaderName::from_static("sunset");

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::http::Request;
    use tower::ServiceExt;
    use utoipa_axum::router::OpenApiRouter;
    use utoipa_axum::routes;

    use super::*;
    use crate::openapi::complete;

    /// Read an old thing
    ///
    /// It is old.
    #[utoipa::path(get, path = "/api/v1/old", operation_id = "getOld", tag = "Things", security(()))]
    async fn old() -> &'static str {
        "old"
    }

    /// Read a new thing
    #[utoipa::path(get, path = "/api/v1/new", operation_id = "getNew", tag = "Things", security(()))]
    async fn new() -> &'static str {
        "new"
    }

    fn made_up() -> OpenApiRouter {
        let announced = "2026-10-01T00:00:00Z".parse().unwrap();
        OpenApiRouter::default()
            .routes(routes!(new))
            .routes(deprecated(routes!(old), Deprecation::announced(announced, "/api/v1/docs#getOld")))
    }

    #[test]
    fn the_answer_says_since_when_and_until_when() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (router, _) = made_up().split_for_parts();
            let get = async |path: &str| {
                let router: Router = router.clone();
                router.oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap()
            };
            let answer = get("/api/v1/old").await;
            assert_eq!(answer.status(), 200);
            assert_eq!(answer.headers()["deprecation"], "@1790812800");
            assert_eq!(answer.headers()["sunset"], "Sat, 03 Apr 2027 00:00:00 GMT");
            assert_eq!(
                answer.headers()["link"],
                "</api/v1/docs#getOld>; rel=\"deprecation\"; type=\"text/html\""
            );
            let answer = get("/api/v1/new").await;
            assert!(
                !answer.headers().contains_key("deprecation") && !answer.headers().contains_key("sunset")
            );
        });
    }

    #[test]
    fn the_document_says_so_too() {
        let document = complete(made_up().get_openapi());
        let old = &document["paths"]["/api/v1/old"]["get"];
        assert_eq!(old["deprecated"], true);
        assert_eq!(old["description"], "It is old.\n\nDeprecated: works until 2027-04-03 at least.");
        assert!(document["paths"]["/api/v1/new"]["get"].get("deprecated").is_none());
    }
}
