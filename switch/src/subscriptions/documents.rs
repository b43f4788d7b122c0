//! The documents in NOTIFY requests: dialog-info (RFC 4235 §4), PIDF (RFC 3863) and message summaries (RFC 3842 §5.2).

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use sidetone_model::live_call::CallState;
use sidetone_model::message_waiting::MessageWaiting;

/// A call of an extension, as subscribers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShownDialog {
    /// The id of its leg.
    pub(super) id: String,
    /// The Call-ID, our tag and the phone's tag, once there is a dialog. They are the parameters of a Replaces header
    /// that takes over the call (RFC 3891).
    pub(super) dialog: Option<(String, String, String)>,
    /// Whether the extension calls.
    pub(super) is_caller: bool,
    pub(super) state: CallState,
    /// The number of the other party; `None` if it is withheld.
    pub(super) remote: Option<String>,
}

/// The state sent to a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// The calls of the extension.
    Dialogs(Vec<ShownDialog>),
    /// The messages in the mailbox of the extension.
    Messages(MessageWaiting),
    /// Whether the extension is registered.
    Registered(bool),
}

impl Shown {
    /// Writes the document about `entity`, an address of record such as `1001@acme.test`.
    ///
    /// # Errors
    /// Writing to memory does not fail.
    pub(super) fn document(&self, entity: &str, version: u32) -> io::Result<Vec<u8>> {
        let mut writer = Writer::new(Vec::new());
        writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        let uri = format!("sip:{entity}");
        match self {
            Shown::Messages(waiting) => return Ok(waiting.summary(entity).into_bytes()),
            Shown::Dialogs(dialogs) => {
                let root = writer.create_element("dialog-info").with_attributes([
                    ("xmlns", "urn:ietf:params:xml:ns:dialog-info"),
                    ("version", version.to_string().as_str()),
                    ("state", "full"),
                    ("entity", &uri),
                ]);
                let domain = entity.rsplit_once('@').map_or(entity, |(_, domain)| domain);
                root.write_inner_content(|writer| {
                    dialogs.iter().try_for_each(|dialog| write_dialog(writer, dialog, &uri, domain))
                })?;
            }
            Shown::Registered(is_registered) => {
                let root = writer
                    .create_element("presence")
                    .with_attributes([("xmlns", "urn:ietf:params:xml:ns:pidf"), ("entity", &uri)]);
                let basic = if *is_registered { "open" } else { "closed" };
                root.write_inner_content(|writer| {
                    writer.create_element("tuple").with_attribute(("id", "phones")).write_inner_content(
                        |writer| {
                            writer.create_element("status").write_inner_content(|writer| {
                                text(writer, "basic", basic)?;
                                Ok(())
                            })?;
                            Ok(())
                        },
                    )?;
                    Ok(())
                })?;
            }
        }
        Ok(writer.into_inner())
    }
}

fn write_dialog(
    writer: &mut Writer<Vec<u8>>,
    dialog: &ShownDialog,
    uri: &str,
    domain: &str,
) -> io::Result<()> {
    let mut element = writer
        .create_element("dialog")
        .with_attribute(("id", &*dialog.id))
        .with_attribute(("direction", if dialog.is_caller { "initiator" } else { "recipient" }));
    if let Some((call_id, local_tag, remote_tag)) = &dialog.dialog {
        element = element.with_attributes([
            ("call-id", &**call_id),
            ("local-tag", local_tag),
            ("remote-tag", remote_tag),
        ]);
    }
    let state = match dialog.state {
        CallState::Answered => "confirmed",
        CallState::Queued => "trying",
        CallState::Ringing => "early",
    };
    element.write_inner_content(|writer| {
        text(writer, "state", state)?;
        party(writer, "local", uri)?;
        let number = dialog.remote.as_deref().unwrap_or("anonymous");
        // A carrier chooses the caller's number; XML has no control characters.
        let number: String = number.chars().filter(|char| !char.is_control()).collect();
        party(writer, "remote", &format!("sip:{number}@{domain}"))
    })?;
    Ok(())
}

/// Writes the identity and the target of a party.
fn party(writer: &mut Writer<Vec<u8>>, name: &str, uri: &str) -> io::Result<()> {
    writer.create_element(name).write_inner_content(|writer| {
        text(writer, "identity", uri)?;
        writer.create_element("target").with_attribute(("uri", uri)).write_empty()?;
        Ok(())
    })?;
    Ok(())
}

fn text(writer: &mut Writer<Vec<u8>>, name: &str, text: &str) -> io::Result<()> {
    writer.create_element(name).write_text_content(BytesText::new(text))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_document_of_calls_names_the_dialog_and_the_other_party() {
        let ringing = ShownDialog {
            id: "1".to_owned(),
            dialog: Some(("c@h".to_owned(), "ours".to_owned(), "theirs".to_owned())),
            is_caller: false,
            state: CallState::Ringing,
            remote: Some("+4420\u{1}71<\"&".to_owned()),
        };
        let calling = ShownDialog {
            id: "2".to_owned(),
            dialog: None,
            is_caller: true,
            state: CallState::Queued,
            remote: None,
        };
        let document = Shown::Dialogs(vec![ringing, calling]).document("1001@acme.test", 7).unwrap();
        expect![[r#"<?xml version="1.0" encoding="UTF-8"?><dialog-info xmlns="urn:ietf:params:xml:ns:dialog-info" version="7" state="full" entity="sip:1001@acme.test"><dialog id="1" direction="recipient" call-id="c@h" local-tag="ours" remote-tag="theirs"><state>early</state><local><identity>sip:1001@acme.test</identity><target uri="sip:1001@acme.test"/></local><remote><identity>sip:+442071&lt;&quot;&amp;@acme.test</identity><target uri="sip:+442071&lt;&quot;&amp;@acme.test"/></remote></dialog><dialog id="2" direction="initiator"><state>trying</state><local><identity>sip:1001@acme.test</identity><target uri="sip:1001@acme.test"/></local><remote><identity>sip:anonymous@acme.test</identity><target uri="sip:anonymous@acme.test"/></remote></dialog></dialog-info>"#]]
        .assert_eq(std::str::from_utf8(&document).unwrap());
    }

    #[test]
    fn a_document_of_presence_says_whether_the_extension_is_registered() {
        let document = Shown::Registered(true).document("1001@acme.test", 0).unwrap();
        expect![[r#"<?xml version="1.0" encoding="UTF-8"?><presence xmlns="urn:ietf:params:xml:ns:pidf" entity="sip:1001@acme.test"><tuple id="phones"><status><basic>open</basic></status></tuple></presence>"#]]
        .assert_eq(std::str::from_utf8(&document).unwrap());
    }
}
