//! The state that every page uses.

use axum::Router;

/// The settings of the panel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PanelSettings {
    /// Whether the listener speaks TLS, so that cookies are marked `Secure`.
    pub secure: bool,
}

/// The state of the pages.
#[derive(Clone)]
pub(crate) struct Panel {
    /// The routes of the HTTP API.
    pub(crate) api: Router,
    pub(crate) settings: PanelSettings,
}
