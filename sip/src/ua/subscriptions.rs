//! Subscriptions that peers create with us (RFC 6665): the requests in their dialogs, and the results of our NOTIFYs.

use std::time::Instant;

use crate::dialog::{Dialog, DialogError};
use crate::flow::Flow;
use crate::message::{Method, Request, StatusCode};
use crate::transaction::ServerKey;
use crate::ua::draft::Reply;
use crate::ua::event::Event;
use crate::ua::state::Ua;
use crate::ua::subscription_key::SubscriptionKey;

impl Ua {
    /// Handles a request inside the dialog of a subscription.
    pub(super) fn on_subscription_request(
        &mut self,
        now: Instant,
        subscription: SubscriptionKey,
        key: ServerKey,
        flow: Flow,
        request: Request,
    ) {
        let from_tag = request.from_tag().unwrap_or_default();
        let dialog = self.subscriptions.get_mut(&subscription);
        let known = |dialog: &&mut Box<Dialog>| {
            dialog.id().call_id == request.call_id() && dialog.id().remote_tag == *from_tag
        };
        let Some(dialog) = dialog.filter(known) else {
            return self.refuse_quietly(now, &key, &Reply::new(StatusCode::NO_TRANSACTION));
        };
        let received = dialog.receive(flow, &request).and_then(|()| dialog.refresh_target_by(&request));
        // The sender knows both tags, so it counts as authenticated.
        self.layer.prove(&key);
        match received {
            Ok(()) if *request.method() == Method::Subscribe => {
                self.event(Event::Resubscribed { subscription, key, request });
            }
            Ok(()) => self.answer(now, &key, StatusCode::METHOD_NOT_ALLOWED),
            Err(DialogError::OutOfOrder) => self.answer(now, &key, StatusCode::SERVER_ERROR),
            Err(DialogError::Malformed(_)) => self.answer(now, &key, StatusCode::BAD_REQUEST),
        }
    }

    /// Reports the result of a NOTIFY, unless its subscription has ended.
    pub(super) fn on_notified(&mut self, subscription: SubscriptionKey, status: Option<StatusCode>) {
        if self.subscriptions.contains_key(&subscription) {
            self.event(Event::NotifyAnswered { subscription, status });
        }
    }
}
