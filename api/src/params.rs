//! The parameters of a query, each declared once: [`query!`](crate::params::query) generates the reader for
//! the handler and the document's parameters from one declaration.

use axum::extract::Query;
use axum::http::Uri;
use serde::de::DeserializeOwned;
use serde::de::value::StrDeserializer;
use sha2::{Digest, Sha256};
use sidetone_model::access::Scope;
use sidetone_model::cursor::Cursor;
use sidetone_model::page::Window;
use sidetone_model::problem::FieldProblem;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};

use crate::auth::Caller;
use crate::error::ApiError;
use crate::page::{self, Wrong, shown};

/// The parameters of a query, all of them optional.
pub(crate) trait Parameters: Default + IntoParams {
    /// Takes the parameter `name`; `false` if it is not one of these.
    ///
    /// # Errors
    /// The problem of `value`.
    fn take(&mut self, name: &str, value: &str) -> Result<bool, Wrong>;
}

/// Declares a struct of query parameters.
///
/// Each field is `name: Type = reader`: an `Option<Type>` in the struct, read from the text of the parameter by
/// `reader`, and described in the document by its comment, its type and its `#[param(…)]`.
macro_rules! query {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $params:ident {
            $( $(#[$attribute:meta])* $field:ident: $kind:ty = $read:expr, )+
        }
    ) => {
        #[derive(Debug, Default, utoipa::IntoParams)]
        #[into_params(parameter_in = Query)]
        $(#[$meta])*
        $visibility struct $params {
            $( $(#[$attribute])* pub(crate) $field: Option<$kind>, )+
        }

        impl $crate::params::Parameters for $params {
            fn take(&mut self, name: &str, value: &str) -> Result<bool, $crate::page::Wrong> {
                $(
                    if name == stringify!($field) {
                        self.$field = Some($read(value)?);
                        return Ok(true);
                    }
                )+
                Ok(false)
            }
        }
    };
}
pub(crate) use query;

/// The parameters of both types, in this order.
#[derive(Debug, Default)]
pub(crate) struct With<A, B>(pub(crate) A, pub(crate) B);

impl<A: Parameters, B: Parameters> Parameters for With<A, B> {
    fn take(&mut self, name: &str, value: &str) -> Result<bool, Wrong> {
        Ok(self.0.take(name, value)? || self.1.take(name, value)?)
    }
}

impl<A: IntoParams, B: IntoParams> IntoParams for With<A, B> {
    fn into_params(place: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        [A::into_params(&place), B::into_params(&place)].concat()
    }
}

/// Reads the query of a list.
///
/// # Errors
/// `invalid_request` with every wrong parameter.
pub(crate) fn read<P: Parameters>(uri: &Uri) -> Result<P, ApiError> {
    read_or(uri, |_| "is not a parameter of this list")
}

/// Reads a query; `unknown` returns the problem text for an unknown parameter.
///
/// # Errors
/// `invalid_request` with every wrong parameter.
pub(crate) fn read_or<P: Parameters>(
    uri: &Uri,
    unknown: impl Fn(&str) -> &'static str,
) -> Result<P, ApiError> {
    let mut parameters = P::default();
    page::read(uri, |name, value| match parameters.take(name, value)? {
        true => Ok(()),
        false => Err(unknown(name).to_owned()),
    })?;
    Ok(parameters)
}

/// The window of `limit` and `offset`, or of `limit` and `cursor`, in the list at `uri` as the caller sees it.
///
/// # Errors
/// `invalid_request` for a cursor beside an offset other than 0, and for one of another list: another path, filter, sort or scope.
pub(crate) fn window(
    uri: &Uri,
    caller: &Caller,
    (limit, offset, cursor): (Option<u32>, Option<u64>, Option<Cursor>),
) -> Result<Window, ApiError> {
    let whole = Window::default();
    let limit = limit.unwrap_or(whole.limit);
    let Some(mut cursor) = cursor else { return Ok(Window::at(offset.unwrap_or(whole.offset), limit)) };
    let wrong = |field: &str, message: &str| {
        Err(ApiError::invalid(vec![FieldProblem { field: field.to_owned(), message: message.to_owned() }]))
    };
    if offset.is_some_and(|offset| offset > 0) {
        return wrong("offset", "must be 0 with a cursor, which states where the page begins");
    }
    let list = list_digest(uri, caller.scope());
    if cursor.is_first() {
        cursor.list = list;
    } else if cursor.list != list {
        return wrong("cursor", page::NO_CURSOR);
    }
    Ok(Window { limit, offset: 0, cursor: Some(cursor) })
}

/// A digest of the scope of a cursor: the path, the filters and the sort in any order, and the caller's
/// scope.
fn list_digest(uri: &Uri, scope: Scope) -> [u8; 16] {
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri).map(|Query(pairs)| pairs);
    let mut pairs = pairs.unwrap_or_default();
    pairs.retain(|(name, _)| !["limit", "offset", "cursor"].contains(&name.as_str()));
    pairs.sort_unstable();
    let digest = Sha256::digest(format!("{} {pairs:?} {scope:?}", uri.path()));
    let mut list = [0; 16];
    for (byte, from) in list.iter_mut().zip(digest) {
        *byte = from;
    }
    list
}

/// The text to search for; `None` if it is empty, because every text contains the empty text.
pub(crate) fn search(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// Reads one of the words of an enumeration, which its `Deserialize` defines.
pub(crate) fn word<T: DeserializeOwned>(value: &str) -> Result<T, Wrong> {
    known(value).map_err(|Words(words)| match words {
        [first, second] => format!("must be {first} or {second}"),
        words => format!("must be one of {}", words.join(", ")),
    })
}

/// Reads a key of `sort`, one of the words of an enumeration.
pub(crate) fn sort_key<T: DeserializeOwned>(value: &str) -> Result<T, Wrong> {
    known(value).map_err(|Words(words)| {
        format!("unknown key '{}', must be one of {}", shown(value), words.join(", "))
    })
}

fn known<T: DeserializeOwned>(value: &str) -> Result<T, Words> {
    T::deserialize(StrDeserializer::<Words>::new(value))
}

/// The allowed words of an enumeration, reported when a text is none of them.
#[derive(Debug)]
struct Words(&'static [&'static str]);

impl std::fmt::Display for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

impl std::error::Error for Words {}

impl serde::de::Error for Words {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Words(&[])
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Words(expected)
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use serde::Deserialize;
    use utoipa::ToSchema;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq, Eq, ToSchema)]
    #[serde(rename_all = "snake_case")]
    enum Colour {
        DarkRed,
        Green,
    }

    query! {
        struct Paint {
            /// The colour.
            colour: Colour = word,
        }
    }
    query! {
        struct Coats {
            /// Items on a page.
            coats: u64 = page::count,
            /// What for.
            wall: String = page::text,
        }
    }

    #[test]
    fn what_is_declared_is_read_and_described() {
        let read = |query: &str| read::<With<Paint, Coats>>(&format!("/x?{query}").parse().unwrap());
        let With(paint, coats) = read("coats=2&colour=dark_red&wall=").unwrap();
        assert_eq!((paint.colour, coats.coats, search(coats.wall)), (Some(Colour::DarkRed), Some(2), None));
        for wrong in ["colour=blue", "coats=-1", "size=1", "coats=1&coats=1"] {
            assert_eq!(read(wrong).unwrap_err().into_response().status(), 400, "{wrong}");
        }
        let described = With::<Paint, Coats>::into_params(|| None);
        let names: Vec<&str> = described.iter().map(|parameter| parameter.name.as_str()).collect();
        assert_eq!(names, ["colour", "coats", "wall"]);
    }

    #[test]
    fn a_wrong_word_lists_the_words() {
        assert_eq!(word::<Colour>("blue").unwrap_err(), "must be dark_red or green");
        let wrong = sort_key::<Colour>("blue").unwrap_err();
        assert_eq!(wrong, "unknown key 'blue', must be one of dark_red, green");
    }
}
