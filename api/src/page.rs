//! Reads the query of a list: every wrong field is reported, in the order of the request.

use axum::extract::Query;
use axum::http::Uri;
use sidetone_model::cursor::Cursor;
pub(crate) use sidetone_model::json::shown;
use sidetone_model::page::Window;
use sidetone_model::problem::FieldProblem;
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::error::ApiError;

/// The problem of a value, a lower-case fragment.
pub(crate) type Wrong = String;

/// Passes each parameter of `uri` to `take`, by name and value.
///
/// # Errors
/// `invalid_request` with every parameter that `take` refuses or that is given twice.
pub(crate) fn read(uri: &Uri, mut take: impl FnMut(&str, &str) -> Result<(), Wrong>) -> Result<(), ApiError> {
    let mut problems: Vec<FieldProblem> = Vec::new();
    let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::try_from_uri(uri) else {
        return Err(ApiError::invalid(vec![FieldProblem {
            field: "query".to_owned(),
            message: "cannot be read".to_owned(),
        }]));
    };
    let mut seen: Vec<&str> = Vec::new();
    for (name, value) in &pairs {
        let taken = if seen.contains(&name.as_str()) {
            Err("is given more than once".to_owned())
        } else {
            take(name, value)
        };
        if let Err(message) = taken {
            problems.push(FieldProblem { field: shown(name), message });
        }
        seen.push(name);
    }
    if problems.is_empty() { Ok(()) } else { Err(ApiError::invalid(problems)) }
}

/// Reads `limit`.
pub(crate) fn limit(value: &str) -> Result<u32, Wrong> {
    whole_number(value)
        .and_then(|limit| u32::try_from(limit).ok())
        .filter(|limit| (1..=Window::LIMIT_MAX).contains(limit))
        .ok_or_else(|| format!("must be between 1 and {}", Window::LIMIT_MAX))
}

/// Reads an integer in the range of the database, such as an `offset`.
pub(crate) fn count(value: &str) -> Result<u64, Wrong> {
    whole_number(value)
        .filter(|number| i64::try_from(*number).is_ok())
        .ok_or_else(|| "must be a whole number, 0 or more".to_owned())
}

/// Reads a `cursor`.
pub(crate) fn cursor(value: &str) -> Result<Cursor, Wrong> {
    Cursor::from_token(value).ok_or_else(|| NO_CURSOR.to_owned())
}

/// Reads a UUID with hyphens; other spellings would give one record several URLs.
pub(crate) fn uuid(value: &str) -> Result<Uuid, Wrong> {
    let uuid = if value.len() == UUID_LEN { Uuid::try_parse(value).ok() } else { None };
    uuid.ok_or_else(|| "must be a UUID".to_owned())
}

/// Reads the UUID of an id.
pub(crate) fn id<T: From<Uuid>>(value: &str) -> Result<T, Wrong> {
    uuid(value).map(T::from)
}

/// Returns the id in the path under `name`.
///
/// # Errors
/// `invalid_request` when it is not a hyphenated UUID.
pub(crate) fn path_id<T: From<Uuid>>(name: &str, value: &str) -> Result<T, ApiError> {
    id(value).map_err(|message| ApiError::invalid(vec![FieldProblem { field: name.to_owned(), message }]))
}

/// Reads a text to search for.
pub(crate) fn text(value: &str) -> Result<String, Wrong> {
    if value.chars().count() > TEXT_LEN_MAX {
        return Err(format!("must be at most {TEXT_LEN_MAX} characters"));
    }
    // No number and no name contains a control character; PostgreSQL does not accept a NUL in a query.
    if value.chars().any(char::is_control) {
        return Err("must not contain control characters".to_owned());
    }
    Ok(value.to_owned())
}

/// Reads a timestamp or a date, as a bound in time.
pub(crate) fn bound(value: &str) -> Result<Timestamp, Wrong> {
    Timestamp::parse_bound(value)
        .map_err(|_| "must be an RFC 3339 timestamp, its + written as %2B, or a date YYYY-MM-DD".to_owned())
}

/// Reads `true` or `false`.
pub(crate) fn boolean(value: &str) -> Result<bool, Wrong> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

/// Reads digits only: `parse` would accept a sign.
fn whole_number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// The problem of an invalid cursor, or of a cursor of another list.
pub(crate) const NO_CURSOR: &str = "must be the next_cursor of a page of this list with the same filters and sort, or empty for the first page";
/// Longer than any number or name, and short enough for a URL.
const TEXT_LEN_MAX: usize = 1000;
const UUID_LEN: usize = 36;
