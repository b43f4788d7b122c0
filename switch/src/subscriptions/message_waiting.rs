//! Changes of mailboxes: subscribers are notified. If configured for the extension, its registered phones are also
//! notified without a subscription, as many phones expect it (RFC 3842 has no such NOTIFY).

use std::sync::Arc;

use sidetone_model::directory::Extension;
use sidetone_model::message_waiting::SUMMARY_TYPE;
use sidetone_model::time::Now;
use sidetone_sip::message::{Method, Name};
use sidetone_sip::registrar::Binding;
use sidetone_sip::ua::{Draft, Ua};

use crate::routing::Directory;
use crate::shared::Shared;
use crate::subscriptions::package::MESSAGE_SUMMARY;

/// Notifies phones of the mailboxes that changed in the directory `after`, which replaces the present one.
pub(in super::super) fn mailboxes_changed(now: Now, after: &Directory, shared: &mut Shared) {
    let before = Arc::clone(&shared.directory);
    let state = |line: &Extension| line.notify_message_waiting.then_some(line.message_waiting);
    for line in after.extensions() {
        let Some(old) = before.extension(line.id) else { continue };
        if old.message_waiting != line.message_waiting {
            // The document is created when the NOTIFY is sent, from the directory at that time.
            shared.subscriptions.touch(line.id);
        }
        if state(line).is_none() || state(old) == state(line) {
            continue;
        }
        if let Some(aor) = after.aor(line) {
            let bindings = shared.registrar.lookup(&aor, now.instant);
            // Each phone is notified by its own node, which reads the same directory.
            let here = bindings.iter().filter(|binding| !binding.is_elsewhere());
            here.for_each(|binding| notify_phone(now, (line, &aor), binding, &mut shared.ua));
        }
    }
}

/// Sends the state of a mailbox to a phone of its extension. The response is ignored: after a refusal, the phone still
/// gets the next NOTIFY.
pub(in super::super) fn notify_phone(
    now: Now,
    (line, aor): (&Extension, &str),
    binding: &Binding,
    ua: &mut Ua,
) {
    let (target, address) = (binding.target().to_string(), format!("<sip:{aor}>"));
    let mut draft = Draft::new(Method::Notify, target, address.as_str(), address.as_str())
        .header(Name::Event.as_str(), MESSAGE_SUMMARY)
        // RFC 6665 §8.2.1 requires the header; there is no subscription.
        .header(Name::SubscriptionState.as_str(), "terminated;reason=noresource")
        .content(SUMMARY_TYPE, line.message_waiting.summary(aor));
    for route in &binding.path {
        draft = draft.header(Name::Route.as_str(), route.to_string());
    }
    // If the transaction table is full, the phone gets the state with the next change, or when it registers again.
    let _ = ua.request(now.instant, binding.way(), draft);
}
