//! Reads columns into the types of the model.

use std::str::FromStr;

use sidetone_model::directory::Network;
use sidetone_model::time::Timestamp;

use crate::StoreError;
use crate::sql::Row;

/// The parsed text of a NOT NULL column.
pub(super) fn parsed<T: FromStr>(row: &Row, column: &'static str) -> Result<T, StoreError> {
    let text: &str = row.try_get(column)?;
    text.parse().map_err(|_| StoreError::Corrupt { column })
}

/// The parsed text of a nullable column.
pub(super) fn parsed_opt<T: FromStr>(row: &Row, column: &'static str) -> Result<Option<T>, StoreError> {
    let text: Option<&str> = row.try_get(column)?;
    text.map(|text| text.parse().map_err(|_| StoreError::Corrupt { column })).transpose()
}

/// The enum value of a NOT NULL column.
pub(super) fn word<T>(
    row: &Row,
    column: &'static str,
    from_name: fn(&str) -> Option<T>,
) -> Result<T, StoreError> {
    from_name(row.try_get(column)?).ok_or(StoreError::Corrupt { column })
}

/// The enum value of a nullable column.
pub(super) fn word_opt<T>(
    row: &Row,
    column: &'static str,
    from_name: fn(&str) -> Option<T>,
) -> Result<Option<T>, StoreError> {
    let text: Option<&str> = row.try_get(column)?;
    text.map(|text| from_name(text).ok_or(StoreError::Corrupt { column })).transpose()
}

/// The integer of a column, in the model's size.
pub(super) fn number<T: TryFrom<i64>>(row: &Row, column: &'static str) -> Result<T, StoreError> {
    T::try_from(row.try_get::<i64>(column)?).map_err(|_| StoreError::Corrupt { column })
}

/// The integer of a nullable column.
pub(super) fn number_opt<T: TryFrom<i64>>(row: &Row, column: &'static str) -> Result<Option<T>, StoreError> {
    let number: Option<i64> = row.try_get(column)?;
    number.map(|number| T::try_from(number).map_err(|_| StoreError::Corrupt { column })).transpose()
}

/// The timestamp of a NOT NULL column.
pub(super) fn instant(row: &Row, column: &'static str) -> Result<Timestamp, StoreError> {
    Ok(Timestamp::from_micros(row.try_get(column)?))
}

/// The timestamp of a nullable column.
pub(super) fn instant_opt(row: &Row, column: &'static str) -> Result<Option<Timestamp>, StoreError> {
    Ok(row.try_get::<Option<i64>>(column)?.map(Timestamp::from_micros))
}

/// The items of a column with a comma-separated list.
pub(super) fn items(row: &Row, column: &'static str) -> Result<Vec<String>, StoreError> {
    let text: &str = row.try_get(column)?;
    Ok(text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect())
}

/// The networks of a column with a comma-separated list.
pub(super) fn networks(row: &Row, column: &'static str) -> Result<Vec<Network>, StoreError> {
    items(row, column)?
        .iter()
        .map(|text| {
            let (address, prefix_len) = text.split_once('/')?;
            Some(Network { address: address.parse().ok()?, prefix_len: prefix_len.parse().ok()? })
        })
        .collect::<Option<_>>()
        .ok_or(StoreError::Corrupt { column })
}

/// The stored form of networks.
pub(super) fn networks_text(networks: &[Network]) -> String {
    let texts: Vec<String> =
        networks.iter().map(|network| format!("{}/{}", network.address, network.prefix_len)).collect();
    texts.join(",")
}

/// The stored form of bytes.
pub(super) fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write;

    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Parses the 32 bytes of a stored form.
pub(super) fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}
