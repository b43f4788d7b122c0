//! The panel of an office, and a browser without scripts.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request};
use http_body_util::BodyExt;
use sidetone_model::cdr::Cdr;
use sidetone_model::quality::{MediaVerdict, Quality};
use sidetone_panel::{PanelSettings, router};
use tower::ServiceExt;

use crate::common::records::ended;
use crate::http::office::{Names, Office, PASSWORD};

/// An office with its panel.
pub struct Site {
    pub office: Office,
    panel: Router,
}

/// A browser at the panel.
pub struct Browser<'s> {
    site: &'s Site,
    pub cookies: BTreeMap<String, String>,
}

/// A page, read completely.
pub struct Page {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Site {
    /// A call of Acme's support, one of Acme's sales, and one of Bolt.
    pub fn open(secure: bool) -> Self {
        Self::with_calls(secure, calls)
    }

    /// The panel of an office with these calls.
    pub fn with_calls(secure: bool, calls: impl FnOnce(Names) -> Vec<Cdr>) -> Self {
        let office = Office::with_calls(calls);
        let panel = router(office.api(), PanelSettings { secure });
        Self { office, panel }
    }

    pub fn browser(&self) -> Browser<'_> {
        Browser { site: self, cookies: BTreeMap::new() }
    }

    /// A browser of a user who logged in.
    pub fn logged_in(&self, email: &str) -> Browser<'_> {
        let mut browser = self.browser();
        let page = browser.log_in(email, PASSWORD, "");
        assert_eq!((page.status, page.header("location")), (303, "/"), "{email}: {}", page.text);
        browser
    }
}

fn calls(names: Names) -> Vec<Cdr> {
    let lossy = Quality { verdict: Some(MediaVerdict::LossyInbound), ..Quality::default() };
    let call = |number: u128, organisation_id, team_id, quality| Cdr {
        organisation_id,
        team_id: Some(team_id),
        caller_number: Some(format!("700000000{number}")),
        quality,
        ..ended(number)
    };
    vec![
        call(1, names.acme, names.support, lossy),
        call(2, names.acme, names.sales, ended(2).quality),
        call(3, names.bolt, names.bolt_support, ended(3).quality),
    ]
}

impl Browser<'_> {
    /// Opens the login and sends its form.
    pub fn log_in(&mut self, email: &str, password: &str, next: &str) -> Page {
        let form = self.get("/login");
        let token = form.token();
        let fields = [("csrf", token.as_str()), ("email", email), ("password", password), ("next", next)];
        self.post("/login", &fields)
    }

    pub fn get(&mut self, path: &str) -> Page {
        self.send("GET", path, None)
    }

    pub fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Page {
        let encode = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let form: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let kind = "application/x-www-form-urlencoded";
        self.send("POST", path, Some((kind, form.join("&").into_bytes())))
    }

    /// Sends a form with a file, as browsers do (RFC 7578).
    pub fn upload(&mut self, path: &str, fields: &[(&str, &str)], file: (&str, &[u8])) -> Page {
        let mut form = Vec::new();
        for (name, value) in fields {
            let part = format!("--X\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
            form.extend_from_slice(part.as_bytes());
        }
        let (name, content) = file;
        let head = format!(
            "--X\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"a.wav\"\r\n\
             Content-Type: audio/x-wav\r\n\r\n"
        );
        for bytes in [head.as_bytes(), content, b"\r\n--X--\r\n"] {
            form.extend_from_slice(bytes);
        }
        self.send("POST", path, Some(("multipart/form-data; boundary=X", form)))
    }

    fn send(&mut self, method: &str, path: &str, form: Option<(&str, Vec<u8>)>) -> Page {
        let peer = SocketAddr::from(([127, 0, 0, 1], 4711));
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .extension(ConnectInfo(peer))
            .header("accept", "text/html");
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !cookies.is_empty() {
            request = request.header("cookie", cookies.join("; "));
        }
        let body = match form {
            None => Body::empty(),
            Some((kind, form)) => {
                request = request.header("content-type", kind);
                Body::from(form)
            }
        };
        let request = request.body(body).unwrap();
        let (panel, runtime) = (self.site.panel.clone(), &self.site.office.runtime);
        let (parts, bytes) = runtime.block_on(async {
            let (parts, body) = panel.oneshot(request).await.unwrap().into_parts();
            (parts, body.collect().await.unwrap().to_bytes())
        });
        for cookie in parts.headers.get_all("set-cookie") {
            let (name, rest) = cookie.to_str().unwrap().split_once('=').unwrap();
            let value = rest.split(';').next().unwrap();
            match value {
                "" => self.cookies.remove(name),
                value => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
        // Audio is not valid text.
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Page { status: parts.status.as_u16(), headers: parts.headers, text }
    }
}

impl Page {
    /// A header's text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The token of the page's forms.
    pub fn token(&self) -> String {
        let (_, rest) = self.text.split_once("name=\"csrf\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }

    /// The addresses of the page's links, without queries.
    pub fn links(&self) -> Vec<String> {
        let links = self.text.split("<a ").skip(1).filter_map(|tag| tag.split_once("href=\""));
        links.filter_map(|(_, rest)| rest.split(['"', '?', '#']).next()).map(str::to_owned).collect()
    }
}
