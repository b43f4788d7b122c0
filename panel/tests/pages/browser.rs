//! A browser without scripts: it stores cookies and sends forms.

use std::collections::BTreeMap;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request};
use http_body_util::BodyExt;
use sidetone_panel::{PanelSettings, router};
use tower::ServiceExt;

/// A browser at a panel.
pub(crate) struct Browser {
    panel: Router,
    pub(crate) cookies: BTreeMap<String, String>,
}

/// A page, read completely.
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Browser {
    /// A browser at the panel over this API, with a session cookie.
    pub(crate) fn logged_in(api: Router) -> Self {
        let cookies = BTreeMap::from([("sidetone_session".to_owned(), "a.b.c".to_owned())]);
        Self { cookies, ..Self::new(api) }
    }

    /// A browser without a cookie.
    pub(crate) fn new(api: Router) -> Self {
        Self { panel: router(api, PanelSettings::default()), cookies: BTreeMap::new() }
    }

    /// `GET path`.
    pub(crate) async fn get(&mut self, path: &str) -> Page {
        self.send("GET", path, &[], None).await
    }

    /// `POST path` with a form.
    pub(crate) async fn post(&mut self, path: &str, form: &str) -> Page {
        self.send("POST", path, &[], Some(form)).await
    }

    /// A request with more headers.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        form: Option<&str>,
    ) -> Page {
        let mut request = Request::builder().method(method).uri(path).header("accept", "text/html");
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !cookies.is_empty() {
            request = request.header("cookie", cookies.join("; "));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = match form {
            None => Body::empty(),
            Some(form) => {
                request = request.header("content-type", "application/x-www-form-urlencoded");
                Body::from(form.to_owned())
            }
        };
        let response = self.panel.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        for cookie in parts.headers.get_all("set-cookie") {
            let (name, rest) = cookie.to_str().unwrap().split_once('=').unwrap();
            let value = rest.split(';').next().unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        let bytes = body.collect().await.unwrap().to_bytes();
        Page {
            status: parts.status.as_u16(),
            headers: parts.headers,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }
}

impl Page {
    /// A header's text.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The token of the page's forms.
    pub(crate) fn token(&self) -> &str {
        let (_, rest) = self.text.split_once("name=\"csrf\" value=\"").unwrap();
        rest.split('"').next().unwrap()
    }
}
