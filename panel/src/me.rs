//! The user for whom a page is made.

use serde_json::Value;

/// The user of the session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Me {
    pub(crate) name: String,
    /// The token that every form sends.
    pub(crate) form_token: String,
    /// The id of the user's organisation.
    pub(crate) organisation_id: String,
    /// The id of the extension of the user's agent; empty if there is none.
    pub(crate) extension_id: String,
    /// Whether the user is an operator.
    pub(crate) is_operator: bool,
    /// Whether the user sees only the calls and rooms of a team; such a user does not see the stored rooms.
    pub(crate) is_of_team: bool,
    permissions: Vec<String>,
}

impl Me {
    /// Reads the answer of `GET /auth/me`.
    pub(crate) fn of(user: &Value, form_token: String) -> Self {
        let text = |key: &str| user[key].as_str().unwrap_or_default().to_owned();
        let name = if text("name").is_empty() { text("email") } else { text("name") };
        let permissions = user["permissions"].as_array().into_iter().flatten();
        Self {
            name,
            form_token,
            organisation_id: text("organisation_id"),
            extension_id: text("extension_id"),
            is_operator: text("role") == "operator",
            is_of_team: matches!(text("role").as_str(), "agent" | "team_supervisor"),
            permissions: permissions.filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }

    /// Whether the user holds the permission. The panel uses it to decide what to show; the API checks it
    /// again.
    pub(crate) fn may(&self, permission: &str) -> bool {
        self.permissions.iter().any(|held| held == permission)
    }
}
