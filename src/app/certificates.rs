//! The certificates of a node: read at the start and on SIGHUP, used by the listeners.

use std::sync::Arc;

use sidetone_api::{ApiState, HttpServer};
use sidetone_panel::PanelSettings;
use tokio::net::TcpListener;

use crate::clock::wall_clock;
use crate::config::Config;
use crate::tls::{Remark, TlsError, TlsStore, review};

/// Reads the certificates; the log lists those that clients will refuse.
///
/// # Errors
/// The first file that cannot be used.
pub(crate) fn open_tls(config: &Config) -> Result<TlsStore, TlsError> {
    let tls = TlsStore::open(&config.tls)?;
    warn(config);
    Ok(tls)
}

/// Reads certificates, keys and authorities again; if one cannot be used, nothing changes.
pub(crate) fn reload_tls(tls: &TlsStore, config: &Config) {
    match tls.reload(&config.tls) {
        Ok(()) => warn(config),
        Err(error) => {
            tracing::error!(%error, "the certificates were not reloaded; the present ones stay in use")
        }
    }
}

/// The server of the API and the panel, with TLS if it is configured.
pub(crate) fn http_server(
    config: &Config,
    tls: &TlsStore,
    listener: TcpListener,
    state: ApiState,
) -> HttpServer {
    let mut server = HttpServer::new(listener, state);
    if config.panel.enabled {
        let settings = PanelSettings { secure: config.http.tls };
        server = server.with_pages(Arc::new(move |api| sidetone_panel::router(api, settings)));
    }
    if !config.http.tls {
        return server;
    }
    let tls = tls.clone();
    server.secured(Arc::new(move || tls.http()))
}

fn warn(config: &Config) {
    for remark in review(&config.tls, wall_clock()) {
        if let Remark::Warning(warning) = remark {
            tracing::warn!("{warning}");
        }
    }
}
