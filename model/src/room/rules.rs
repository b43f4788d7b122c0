//! The rules for the fields of a room, in apply files and over HTTP.

use crate::problem::FieldProblem;
use crate::room::{Pin, RoomPin};
use crate::rules::Rule;
use crate::user::Email;

/// Checks the digits dialled for a room.
///
/// # Errors
/// The rule that the text breaks.
pub fn number(text: &str) -> Result<String, Rule> {
    let fits = (NUMBER_LEN_MIN..=NUMBER_LEN_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_digit());
    if fits { Ok(text.to_owned()) } else { Err("must be 2 to 8 digits, such as \"200\"".to_owned()) }
}

/// Checks a PIN, which may be empty.
///
/// # Errors
/// The rule that the text breaks, without the text.
pub fn pin(text: &str) -> Result<Pin, Rule> {
    let fits = text.is_empty()
        || (PIN_LEN_MIN..=PIN_LEN_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_digit());
    if fits { Ok(Pin(text.to_owned())) } else { Err("must be 4 to 10 digits, or empty for none".to_owned()) }
}

/// The address that minutes are sent to; empty for none.
///
/// # Errors
/// The form that the text must have.
pub fn minutes_email(text: &str) -> Result<String, Rule> {
    if text.is_empty() {
        return Ok(String::new());
    }
    text.parse::<Email>()
        .map(String::from)
        .map_err(|_| "must be an address such as minutes@acme.test, or empty".to_owned())
}

/// Returns the problems of the combination of PINs, by field.
pub fn pins_together(
    participant_pin: &RoomPin,
    moderator_pin: &Pin,
    wait_for_moderator: bool,
) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    let mut wrong = |field: &str, message: &str| {
        problems.push(FieldProblem { field: field.to_owned(), message: message.to_owned() });
    };
    if !moderator_pin.is_empty() && participant_pin.given().is_some_and(|pin| pin == moderator_pin) {
        wrong("moderator_pin", "must differ from participant_pin");
    }
    if wait_for_moderator && moderator_pin.is_empty() {
        wrong("wait_for_moderator", "needs a moderator_pin: without one the room has no moderator");
        wrong("moderator_pin", "must not be empty while wait_for_moderator is true");
    }
    problems
}

/// The highest limit of members.
pub const MAX_MEMBERS_MAX: u32 = 1_000;
/// Default members of a room.
pub const MEMBERS_MAX: usize = 100;
/// Extensions that enter a room without a PIN.
pub const EXEMPTIONS_MAX: usize = 1_000;
/// The most digits of a PIN; a caller cannot enter more.
pub const PIN_LEN_MAX: usize = 10;
/// The most digits of a room's number.
pub const NUMBER_LEN_MAX: usize = 8;

const NUMBER_LEN_MIN: usize = 2;
const PIN_LEN_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_pins_and_addresses() {
        for (text, fits) in
            [("20", true), ("12345678", true), ("2", false), ("123456789", false), ("2a", false), ("", false)]
        {
            assert_eq!(number(text).is_ok(), fits, "{text}");
        }
        let pins = [
            ("", true),
            ("1234", true),
            ("1234567890", true),
            ("123", false),
            ("12345678901", false),
            ("12 4", false),
            ("１２３４", false),
        ];
        for (text, fits) in pins {
            assert_eq!(pin(text).is_ok(), fits, "{text}");
        }
        let addresses = [
            ("", true),
            ("a@b", true),
            ("minutes@acme.test", true),
            ("a@b@c", false),
            ("@b", false),
            ("a@", false),
            ("a@b..c", false),
            ("a b@c", false),
            ("A <a@b>", false),
        ];
        for (text, fits) in addresses {
            assert_eq!(minutes_email(text).is_ok(), fits, "{text}");
        }
    }

    #[test]
    fn a_pin_is_in_no_debug_output() {
        assert_eq!(format!("{:?} {:?}", pin("98765").unwrap(), Pin::default()), "Pin(..) Pin()");
    }

    #[test]
    fn pins_go_together() {
        let fields = |participant: RoomPin, moderator: &str, waits| -> Vec<String> {
            let problems = pins_together(&participant, &pin(moderator).unwrap(), waits);
            problems.into_iter().map(|problem| problem.field).collect()
        };
        let given = |text| RoomPin::Given(pin(text).unwrap());
        assert_eq!(fields(given("1234"), "1234", false), ["moderator_pin"]);
        assert_eq!(fields(given(""), "", true), ["wait_for_moderator", "moderator_pin"]);
        assert!(fields(given(""), "", false).is_empty());
        assert!(fields(given("1234"), "9876", true).is_empty());
        assert!(fields(RoomPin::Default, "9876", true).is_empty());
    }
}
