//! The result of applying, for people and for scripts.

use std::fmt;

use serde::Serialize;
use sidetone_store::Change;

/// What was created, changed and unchanged, with the ids and, once, the secrets.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    created: usize,
    changed: usize,
    unchanged: usize,
    organisations: Vec<OrganisationReport>,
    trunks: Vec<Named>,
    #[serde(skip)]
    lines: Vec<String>,
    #[serde(skip)]
    generated: Vec<String>,
}

/// One organisation and its resources.
#[derive(Debug, Serialize)]
pub(super) struct OrganisationReport {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    pub(super) teams: Vec<Named>,
    pub(super) extensions: Vec<ExtensionReport>,
    pub(super) users: Vec<UserReport>,
    pub(super) api_keys: Vec<KeyReport>,
    pub(super) numbers: Vec<Numbered>,
    pub(super) rooms: Vec<RoomReport>,
}

/// An item with a name.
#[derive(Debug, Serialize)]
pub(super) struct Named {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
}

/// An item with a number.
#[derive(Debug, Serialize)]
pub(super) struct Numbered {
    pub(super) number: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
}

/// A conference room and its generated PIN.
#[derive(Debug, Serialize)]
pub(super) struct RoomReport {
    pub(super) number: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) participant_pin: Option<String>,
}

/// An extension and its generated password.
#[derive(Debug, Serialize)]
pub(super) struct ExtensionReport {
    pub(super) number: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) password: Option<String>,
}

/// A user and the generated password.
#[derive(Debug, Serialize)]
pub(super) struct UserReport {
    pub(super) email: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) password: Option<String>,
}

/// A key and its text, if it was given or generated now.
#[derive(Debug, Serialize)]
pub(super) struct KeyReport {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
}

impl Report {
    /// The report as the one JSON object of `apply --json`.
    ///
    /// # Errors
    /// Not possible with the content of a report.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    /// What got a generated secret, which is shown once.
    pub fn generated(&self) -> &[String] {
        &self.generated
    }

    /// Counts one row and adds a line for people; `secret` is shown beside it.
    pub(super) fn count(&mut self, change: Change, what: fmt::Arguments<'_>, secret: Option<&str>) {
        if secret.is_some() {
            self.generated.push(what.to_string());
        }
        let word = match change {
            Change::Changed => {
                self.changed += 1;
                "changed"
            }
            Change::Created => {
                self.created += 1;
                "created"
            }
            Change::Unchanged => {
                self.unchanged += 1;
                return;
            }
        };
        let shown = secret.map(|secret| format!("  {secret}  (shown once)")).unwrap_or_default();
        self.lines.push(format!("{word} {what}{shown}"));
    }

    /// The report of the organisation called `name`, a new one when a file names it first.
    pub(super) fn organisation(&mut self, name: &str, id: Option<String>) -> &mut OrganisationReport {
        let at = self.organisations.iter().position(|organisation| organisation.name == name);
        let at = at.unwrap_or_else(|| {
            self.organisations.push(OrganisationReport {
                name: name.to_owned(),
                id,
                teams: Vec::new(),
                extensions: Vec::new(),
                users: Vec::new(),
                api_keys: Vec::new(),
                numbers: Vec::new(),
                rooms: Vec::new(),
            });
            self.organisations.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "the position was found or made above")]
        &mut self.organisations[at]
    }

    /// Adds a trunk.
    pub(super) fn trunk(&mut self, name: String, id: Option<String>) {
        self.trunks.push(Named { name, id });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "{} created, {} changed, {} unchanged", self.created, self.changed, self.unchanged)
    }
}
