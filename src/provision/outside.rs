//! What an apply file says of the world outside: how numbers are written, and the trunks that lead there.

use sidetone_model::directory::{Network, Numbering, Secret};
use sidetone_model::trunk_address::TrunkAddress;
use toml::Table;

use crate::fields::{Fields, Problem};
use crate::provision::file::{ALLOW_LEN_MAX, PASSWORD_LEN_MAX, name_of, networks};

#[derive(Debug)]
pub(super) struct Trunk {
    pub(super) path: String,
    pub(super) name: String,
    pub(super) organisation: Option<String>,
    pub(super) address: Option<String>,
    pub(super) accept_from: Vec<Network>,
    pub(super) priority: u16,
    pub(super) username: String,
    pub(super) password: Option<Secret>,
    pub(super) realm: String,
    pub(super) register: bool,
    pub(super) short_numbers: Vec<String>,
}

pub(super) fn trunk(path: String, table: Table, problems: &mut Vec<Problem>) -> Option<Trunk> {
    let mut fields = Fields::new(path.clone(), table, problems);
    let name = name_of(&mut fields);
    let organisation = fields.text("organisation").filter(|name| !name.is_empty());
    let address = fields.text("address").filter(|address| !address.is_empty());
    let address = address.and_then(|address| match address.parse::<TrunkAddress>() {
        Ok(address) => Some(address.to_string()),
        Err(error) => fields.refuse("address", error.to_string()),
    });
    let texts = fields.texts("accept_from").unwrap_or_default();
    if texts.len() > ALLOW_LEN_MAX {
        fields.refuse::<()>("accept_from", format!("must name at most {ALLOW_LEN_MAX} networks"));
    }
    let accept_from = networks(&mut fields, "accept_from", &texts);
    let username = one_line(&mut fields, "username", USERNAME_LEN_MAX).unwrap_or_default();
    let password = one_line(&mut fields, "password", PASSWORD_LEN_MAX).map(Secret);
    let realm = one_line(&mut fields, "realm", USERNAME_LEN_MAX).unwrap_or_default();
    let register = fields.boolean("register").unwrap_or_default();
    if register && (address.is_none() || username.is_empty()) {
        let wrong = fields.problems().iter().any(|problem| problem.key == format!("{path}.address"));
        if !wrong {
            fields.refuse::<()>("register", "needs an address and a username to register with");
        }
    }
    let priority = fields.integer("priority", 0..=i64::from(u16::MAX)).unwrap_or(PRIORITY_DEFAULT);
    let short_numbers = short_numbers(&mut fields);
    fields.finish();
    let priority = u16::try_from(priority).unwrap_or(u16::MAX);
    Some(Trunk {
        path,
        name: name?,
        organisation,
        address,
        accept_from,
        priority,
        username,
        password,
        realm,
        register,
        short_numbers,
    })
}

/// How an organisation writes phone numbers.
pub(super) fn numbering(fields: &mut Fields<'_>) -> Numbering {
    let plain = Numbering::default();
    let country_code =
        digits(fields, "country_code", 0..=COUNTRY_CODE_LEN_MAX).filter(|code| !code.is_empty());
    if country_code.as_ref().is_some_and(|code| code.starts_with('0')) {
        fields.refuse::<()>("country_code", "must be written without + and leading zeros, such as \"44\"");
    }
    Numbering {
        country_code,
        national_prefix: digits(fields, "national_prefix", 0..=PREFIX_LEN_MAX)
            .unwrap_or(plain.national_prefix),
        international_prefix: digits(fields, "international_prefix", 1..=PREFIX_LEN_MAX)
            .unwrap_or(plain.international_prefix),
    }
}

fn short_numbers(fields: &mut Fields<'_>) -> Vec<String> {
    let numbers = fields.texts("short_numbers").unwrap_or_default();
    let fits = |number: &String| {
        (1..=SHORT_NUMBER_LEN_MAX).contains(&number.len())
            && number.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'*' | b'#'))
    };
    if numbers.len() > SHORT_NUMBERS_MAX || !numbers.iter().all(fits) {
        fields.refuse::<()>(
            "short_numbers",
            format!("must name at most {SHORT_NUMBERS_MAX} numbers of 1 to {SHORT_NUMBER_LEN_MAX} digits, such as \"112\""),
        );
    }
    numbers
}

fn one_line(fields: &mut Fields<'_>, key: &'static str, len_max: usize) -> Option<String> {
    let text = fields.text(key)?;
    // The text may be a secret: it is not repeated.
    if text.len() > len_max || text.chars().any(char::is_control) {
        return fields.refuse(key, format!("must be at most {len_max} bytes on one line"));
    }
    Some(text)
}

fn digits(
    fields: &mut Fields<'_>,
    key: &'static str,
    len: std::ops::RangeInclusive<usize>,
) -> Option<String> {
    let text = fields.text(key)?;
    if !len.contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let (least, most) = (len.start(), len.end());
        return fields.refuse(key, format!("must be {least} to {most} digits in quotes"));
    }
    Some(text)
}

const COUNTRY_CODE_LEN_MAX: usize = 3;
const PREFIX_LEN_MAX: usize = 5;
const PRIORITY_DEFAULT: i64 = 10;
/// Below any number that E.164 could make of it.
const SHORT_NUMBER_LEN_MAX: usize = 6;
const SHORT_NUMBERS_MAX: usize = 64;
const USERNAME_LEN_MAX: usize = 128;
