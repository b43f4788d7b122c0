//! Finds the file, applies the environment, and formats errors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::config::sections;
use crate::config::settings::Config;
use crate::fields::Problem;

/// Why the configuration cannot be used, with the file and every wrong key; [`ConfigError::lines`] returns
/// one line each.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot be read ({source}); give --config FILE or SIDETONE_CONFIG", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{}: line {line}: {message}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What the parser expected.
        message: String,
    },
    /// Keys or values are wrong.
    #[error("{}", join(origin, problems))]
    Wrong {
        /// The file, or `defaults and environment` when there is none.
        origin: String,
        /// All problems.
        problems: Vec<Problem>,
    },
}

impl Config {
    /// Loads `file`, or `SIDETONE_CONFIG` of `environment`, or `sidetone.toml` if it exists, and applies the
    /// overrides of `environment` (`SIDETONE_SECTION__KEY`).
    ///
    /// # Errors
    /// When a named file cannot be read, is not TOML, or any key or value is wrong.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let environment: BTreeMap<String, String> =
            environment.into_iter().filter(|(name, _)| name.starts_with(ENV_PREFIX)).collect();
        let named = file
            .map(Path::to_path_buf)
            .or_else(|| environment.get(ENV_CONFIG).filter(|name| !name.is_empty()).map(PathBuf::from));
        let file = named.or_else(|| Some(PathBuf::from(DEFAULT_FILE)).filter(|file| file.exists()));
        let Some(file) = file else {
            return Self::from_table(Table::new(), &environment, "defaults and environment");
        };
        let text = std::fs::read_to_string(&file)
            .map_err(|source| ConfigError::Read { file: file.clone(), source })?;
        let table = parse_toml(&file, &text)?;
        Self::from_table(table, &environment, &file.display().to_string())
    }

    pub(super) fn from_table(
        mut table: Table,
        environment: &BTreeMap<String, String>,
        origin: &str,
    ) -> Result<Self, ConfigError> {
        let mut problems = Vec::new();
        let overridden = override_by(&mut table, environment, &mut problems);
        let config = sections::read(table, &mut problems);
        for problem in &mut problems {
            blame_variable(problem, &overridden);
        }
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(ConfigError::Wrong { origin: origin.to_owned(), problems })
        }
    }
}

impl ConfigError {
    /// Returns one line for each problem.
    pub fn lines(&self) -> Vec<String> {
        match self {
            ConfigError::Wrong { origin, problems } => {
                problems.iter().map(|problem| line(origin, problem)).collect()
            }
            ConfigError::Read { .. } | ConfigError::Syntax { .. } => vec![self.to_string()],
        }
    }
}

/// Parses `text` of `file` as TOML.
///
/// # Errors
/// [`ConfigError::Syntax`] with the line.
pub fn parse_toml(file: &Path, text: &str) -> Result<Table, ConfigError> {
    text.parse::<Table>().map_err(|error| ConfigError::Syntax {
        file: file.to_path_buf(),
        line: error
            .span()
            .map_or(1, |span| text.get(..span.start).map_or(1, |head| head.matches('\n').count() + 1)),
        message: error.message().replace('\n', ", "),
    })
}

/// Adds the values of `SIDETONE_SECTION__KEY` to `table`, converted to the type of the key. Returns the overridden keys,
/// each with its variable.
fn override_by<'e>(
    table: &mut Table,
    environment: &'e BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
) -> Vec<(String, &'e str)> {
    let mut overridden = Vec::new();
    for (name, text) in environment {
        let Some((section, key)) = name.get(ENV_PREFIX.len()..).and_then(|rest| rest.split_once("__")) else {
            continue;
        };
        let (section, key) = (section.to_ascii_lowercase(), key.to_ascii_lowercase());
        let Some(&(_, _, kind)) = KEYS.iter().find(|known| known.0 == section && known.1 == key) else {
            let message = format!("there is no key {section}.{key} to override");
            problems.push(Problem::new(format!("{VARIABLE}{name}"), message));
            continue;
        };
        let value = match from_text(kind, text) {
            Ok(value) => value,
            Err(message) => {
                problems.push(Problem::new(format!("{VARIABLE}{name}"), message));
                continue;
            }
        };
        overridden.push((format!("{section}.{key}"), name.as_str()));
        let section = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(section) = section {
            section.insert(key, value);
        }
    }
    overridden
}

/// Names the variable instead of the key where the value is from the environment.
fn blame_variable(problem: &mut Problem, overridden: &[(String, &str)]) {
    let rest_of = |key: &str| {
        let rest = problem.key.strip_prefix(key)?;
        (rest.is_empty() || rest.starts_with('.')).then(|| rest.to_owned())
    };
    let found = overridden.iter().find_map(|(key, name)| Some((name, rest_of(key)?)));
    if let Some((name, rest)) = found {
        problem.key = format!("{VARIABLE}{name}{rest}");
    }
}

fn from_text(kind: Kind, text: &str) -> Result<Value, &'static str> {
    match kind {
        Kind::Integer => text.trim().parse().map(Value::Integer).map_err(|_| "must be a whole number"),
        // A list as in the file, or its items separated by commas.
        Kind::List if text.trim().starts_with('[') && text.trim().ends_with(']') => format!("value = {text}")
            .parse::<Table>()
            .ok()
            .and_then(|mut table| table.remove("value"))
            .ok_or("must be a list such as [\"a\", \"b\"], or its items separated by commas"),
        Kind::List => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            Ok(Value::Array(items.map(|item| Value::String(item.to_owned())).collect()))
        }
        Kind::Table => format!("value = {text}")
            .parse::<Table>()
            .ok()
            .and_then(|mut table| table.remove("value"))
            .ok_or("must be an inline table such as { loss_pct = 3.0 }"),
        Kind::Text => Ok(Value::String(text.to_owned())),
    }
}

/// All problems on one line.
fn join(origin: &str, problems: &[Problem]) -> String {
    let (of_variables, of_file): (Vec<_>, Vec<_>) =
        problems.iter().partition(|problem| is_of_variable(problem));
    let joined = |problems: Vec<&Problem>| {
        problems.into_iter().map(ToString::to_string).reduce(|all, next| format!("{all}; {next}"))
    };
    let of_file = joined(of_file).map(|problems| format!("{origin}: {problems}"));
    of_file.into_iter().chain(joined(of_variables)).collect::<Vec<_>>().join("; ")
}

/// The line of one problem: a variable is not in the file.
fn line(origin: &str, problem: &Problem) -> String {
    if is_of_variable(problem) { problem.to_string() } else { format!("{origin}: {problem}") }
}

fn is_of_variable(problem: &Problem) -> bool {
    problem.key.starts_with(VARIABLE)
}

/// The type of a key, so that an environment variable can be converted.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Integer,
    List,
    Table,
    Text,
}

/// Every key that an environment variable may override.
const KEYS: [(&str, &str, Kind); 48] = [
    ("node", "name", Kind::Text),
    ("node", "data_dir", Kind::Text),
    ("node", "drain_seconds", Kind::Integer),
    ("node", "journal_reserve_mb", Kind::Integer),
    ("node", "busy_cpu_percent", Kind::Integer),
    ("node", "busy_late_percent", Kind::Integer),
    ("database", "url", Kind::Text),
    ("database", "readers_max", Kind::Integer),
    ("database", "writers_max", Kind::Integer),
    ("database", "statement_timeout_ms", Kind::Integer),
    ("sip", "listen", Kind::List),
    ("sip", "external_address", Kind::Text),
    ("sip", "digest", Kind::List),
    ("sip", "md5_only", Kind::List),
    ("sip", "allow_trunk_addresses", Kind::List),
    ("sip", "requests_per_source", Kind::Integer),
    ("sip", "burst_per_source", Kind::Integer),
    ("sip", "requests_of_strangers", Kind::Integer),
    ("media", "ports", Kind::Text),
    ("media", "workers", Kind::Integer),
    ("media", "io", Kind::Text),
    ("media", "verdict", Kind::Table),
    ("http", "listen", Kind::Text),
    ("http", "trusted_proxies", Kind::List),
    ("http", "metrics_allow", Kind::List),
    ("http", "cors_origins", Kind::List),
    ("http", "connections_max", Kind::Integer),
    ("http", "connections_per_address_max", Kind::Integer),
    ("http", "header_seconds", Kind::Integer),
    ("http", "body_seconds", Kind::Integer),
    ("http", "idle_seconds", Kind::Integer),
    ("http", "stall_seconds", Kind::Integer),
    ("hep", "server", Kind::Text),
    ("hep", "capture_id", Kind::Integer),
    ("hep", "password", Kind::Text),
    ("signalling", "keep_days", Kind::Integer),
    ("tap", "organisation", Kind::Text),
    ("tap", "verdict", Kind::Table),
    ("log", "level", Kind::Text),
    ("cluster", "nats", Kind::Text),
    ("cluster", "name", Kind::Text),
    ("cluster", "replicas", Kind::Integer),
    ("cluster", "lost_after_seconds", Kind::Integer),
    ("cluster", "listen", Kind::Text),
    ("cluster", "key", Kind::Text),
    ("cluster", "tls_certificate", Kind::Text),
    ("cluster", "tls_key", Kind::Text),
    ("cluster", "tls_authority", Kind::Text),
];

const DEFAULT_FILE: &str = "sidetone.toml";
const ENV_CONFIG: &str = "SIDETONE_CONFIG";
const ENV_PREFIX: &str = "SIDETONE_";
/// The prefix of the key of a problem whose value is from a variable.
const VARIABLE: &str = "environment variable ";
