//! Reading the query of a list: every wrong field is named, in the order of the request.

use axum::extract::Query;
use axum::http::Uri;
use sidetone_model::page::Window;
use sidetone_model::problem::FieldProblem;

use crate::error::ApiError;

/// Reads `limit` and `offset` from the query of `uri`.
///
/// `later` names parameters that the public document has and this version does not: asking for
/// one is refused, since an answer that ignores a filter is a wrong answer. So is any unknown
/// name, which is most often a misspelt filter.
///
/// # Errors
/// `invalid_request` naming every wrong field.
pub(crate) fn window(uri: &Uri, later: &[&str]) -> Result<Window, ApiError> {
    let mut problems: Vec<FieldProblem> = Vec::new();
    let mut window = Window::default();
    let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::try_from_uri(uri) else {
        return Err(ApiError::invalid(vec![FieldProblem {
            field: "query".to_owned(),
            message: "cannot be read".to_owned(),
        }]));
    };
    let mut seen: Vec<&str> = Vec::new();
    for (name, value) in &pairs {
        let problem = match name.as_str() {
            known if seen.contains(&known) => Err("is given more than once".to_owned()),
            "limit" => whole_number(value)
                .and_then(|limit| u32::try_from(limit).ok())
                .filter(|limit| (1..=Window::LIMIT_MAX).contains(limit))
                .map(|limit| window.limit = limit)
                .ok_or_else(|| format!("must be between 1 and {}", Window::LIMIT_MAX)),
            "offset" => whole_number(value)
                .filter(|offset| i64::try_from(*offset).is_ok())
                .map(|offset| window.offset = offset)
                .ok_or_else(|| "must be a whole number, 0 or more".to_owned()),
            known if later.contains(&known) => Err("is not supported by this version yet".to_owned()),
            _ => Err("is not a parameter of this list".to_owned()),
        };
        if let Err(message) = problem {
            problems.push(FieldProblem { field: shown(name), message });
        }
        seen.push(name);
    }
    if problems.is_empty() { Ok(window) } else { Err(ApiError::invalid(problems)) }
}

/// Digits alone: a sign or a space would be accepted by `parse`.
fn whole_number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// A name as it may be repeated to the caller: short and without control characters.
fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(SHOWN_LEN_MAX).collect()
}

const SHOWN_LEN_MAX: usize = 64;
