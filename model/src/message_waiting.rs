//! The waiting messages in the mailbox of an extension (RFC 3842).

use serde::Serialize;

/// The messages of a mailbox, as the organisation that runs it sets them. The urgent ones are part of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MessageWaiting {
    /// New messages: the lamps of the phones are on while there is one.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9_999))]
    pub new: u32,
    /// Messages that were heard and kept.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9_999))]
    pub old: u32,
    /// Of the new ones, the urgent.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9_999))]
    pub urgent_new: u32,
    /// Of the old ones, the urgent.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9_999))]
    pub urgent_old: u32,
}

impl MessageWaiting {
    /// The largest count.
    pub const COUNT_MAX: i64 = 9_999;

    /// The body of a NOTIFY about the mailbox of `account`, an address of record such as `1001@acme.test`: type
    /// `application/simple-message-summary` (RFC 3842 §5.2).
    pub fn summary(&self, account: &str) -> String {
        let Self { new, old, urgent_new, urgent_old } = self;
        let waiting = if *new > 0 { "yes" } else { "no" };
        format!(
            "Messages-Waiting: {waiting}\r\nMessage-Account: sip:{account}\r\n\
             Voice-Message: {new}/{old} ({urgent_new}/{urgent_old})\r\n"
        )
    }
}

/// The content type of [`MessageWaiting::summary`].
pub const SUMMARY_TYPE: &str = "application/simple-message-summary";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_that_of_the_rfc() {
        let mailbox = MessageWaiting { new: 2, old: 8, urgent_new: 0, urgent_old: 2 };
        let expected =
            "Messages-Waiting: yes\r\nMessage-Account: sip:1001@acme.test\r\nVoice-Message: 2/8 (0/2)\r\n";
        assert_eq!(mailbox.summary("1001@acme.test"), expected);
        assert!(MessageWaiting::default().summary("1@a").starts_with("Messages-Waiting: no\r\n"));
    }
}
