//! The fields of a body, each declared once: [`body!`](crate::body::body) generates the reader for the
//! handler and the schema for the document from one declaration. The functions here are readers of fields.

use std::fmt::Display;
use std::ops::RangeInclusive;

use sidetone_model::field_check::StoredRule;
use uuid::Uuid;

use crate::body::fields::Fields;

/// Declares the body of a request, or an object inside one.
///
/// Each field is `name: Type = reader`. The struct has the field with this type; the generated `read` fills it
/// with `reader`; the document describes it by its comment, its type and its `#[schema(…)]`. A reader may use the
/// values of the fields above it. Arguments after the name of the struct are arguments of `read`; `ignores` names
/// the fields that the resource shows and no caller sets; `checks` reports problems that concern several fields,
/// each of them an `Option` there.
macro_rules! body {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $body:ident $(($($argument:ident: $given:ty),+))? {
            $( $(#[$attribute:meta])* $field:ident: $kind:ty = $read:expr, )+
        }
        $(ignores $ignored:expr;)?
        $(checks $check:expr;)?
    ) => {
        #[derive(utoipa::ToSchema)]
        $(#[$meta])*
        $visibility struct $body {
            $( $(#[$attribute])* pub(crate) $field: $kind, )+
        }

        impl $body {
            /// Reads the declared fields; `None` when a required field is missing or any field is wrong.
            pub(crate) fn read(
                fields: &mut $crate::body::Fields
                $($(, $argument: $given)+)?
            ) -> Option<Self> {
                $( let $field = $crate::body::declare::field($read, fields, stringify!($field)); )+
                $( fields.read_only($ignored); )?
                $( $crate::body::declare::check($check, fields); )?
                Some(Self { $( $field: $field?, )+ })
            }
        }
    };
}
pub(crate) use body;

/// A reader of one field: `None` when it is missing or wrong.
pub(crate) trait Read<T>: FnOnce(&mut Fields, &'static str) -> Option<T> {}

impl<T, F: FnOnce(&mut Fields, &'static str) -> Option<T>> Read<T> for F {}

/// Reads the field `name` with `read`.
pub(crate) fn field<T>(
    read: impl FnOnce(&mut Fields, &'static str) -> Option<T>,
    fields: &mut Fields,
    name: &'static str,
) -> Option<T> {
    read(fields, name)
}

/// Reports problems that concern several fields.
pub(crate) fn check(check: impl FnOnce(&mut Fields), fields: &mut Fields) {
    check(fields);
}

/// A required field.
pub(crate) fn required<T>(read: impl Read<T>) -> impl Read<T> {
    move |fields: &mut Fields, name| fields.required(name, read)
}

/// An optional field.
pub(crate) fn optional<T>(read: impl Read<T>) -> impl Read<Option<T>> {
    move |fields: &mut Fields, name| Some(read(fields, name))
}

/// An optional field that may be null: `Some(None)`.
pub(crate) fn nullable<T>(read: impl Read<T>) -> impl Read<Option<Option<T>>> {
    move |fields: &mut Fields, name| Some(fields.or_null(name, read))
}

/// An optional field; null means the same as no field.
pub(crate) fn null_or<T>(read: impl Read<T>) -> impl Read<Option<T>> {
    move |fields: &mut Fields, name| Some(fields.or_null(name, read).flatten())
}

/// A value read by `read`, then checked against the stored data by `rule`.
pub(crate) fn checked<T: ToString>(rule: StoredRule, read: impl Read<T>) -> impl Read<T> {
    move |fields: &mut Fields, name| {
        let value = read(fields, name)?;
        fields.check(name, rule, value.to_string());
        Some(value)
    }
}

/// The id of a stored resource.
pub(crate) fn id_of<T: From<Uuid>>(rule: StoredRule) -> impl Read<T> {
    move |fields: &mut Fields, name| checked(rule, Fields::uuid::<Uuid>)(fields, name).map(T::from)
}

/// A text that `parse` converts into a value, or into a problem.
pub(crate) fn parsed<T, E: Display>(parse: impl FnOnce(&str) -> Result<T, E>) -> impl Read<T> {
    move |fields: &mut Fields, name| fields.parsed(name, parse)
}

/// A text on one line, with a length in this range.
pub(crate) fn text(len: RangeInclusive<usize>) -> impl Read<String> {
    move |fields: &mut Fields, name| fields.text(name, len)
}

/// A text of any number of lines.
pub(crate) fn lines(len_max: usize) -> impl Read<String> {
    move |fields: &mut Fields, name| fields.lines(name, len_max)
}

/// One of the words `known`.
pub(crate) fn word<T: Copy>(known: &[(&str, T)]) -> impl Read<T> {
    move |fields: &mut Fields, name| fields.word(name, known)
}

/// A whole number in `range`, all of which `T` can hold.
pub(crate) fn integer<T: TryFrom<i64>>(range: RangeInclusive<i64>) -> impl Read<T> {
    move |fields: &mut Fields, name| fields.integer(name, range).and_then(|number| T::try_from(number).ok())
}

/// A list of `count` texts, each converted by `parse`.
pub(crate) fn texts<T, E: Display>(
    count: RangeInclusive<usize>,
    parse: impl FnMut(&str) -> Result<T, E>,
) -> impl Read<Vec<T>> {
    move |fields: &mut Fields, name| fields.texts(name, count, parse)
}

/// An object, read with `take`.
pub(crate) fn object<T>(take: impl FnOnce(&mut Fields) -> Option<T>) -> impl Read<T> {
    move |fields: &mut Fields, name| fields.object(name, take)
}

/// A list of `count` objects, each read with `take`.
pub(crate) fn items<T>(
    count: RangeInclusive<usize>,
    take: impl FnMut(&mut Fields) -> Option<T>,
) -> impl Read<Vec<T>> {
    move |fields: &mut Fields, name| fields.items(name, count, take)
}

/// The fields of another declaration, at the same level.
pub(crate) fn beside<T>(take: impl FnOnce(&mut Fields) -> Option<T>) -> impl Read<T> {
    move |fields: &mut Fields, _| take(fields)
}
