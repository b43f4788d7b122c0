//! Media quality of live calls: the handle asks the switch, which asks the relay.

use sidetone_model::ids::CallId;
use sidetone_model::media_quality::{LiveCallQuality, LiveQuality};
use sidetone_model::ports::PortFuture;
use sidetone_switch::live_media::{AskMedia, AskedMedia};
use tokio::sync::oneshot;

use crate::driver::Handle;
use crate::driver::handle::{ANSWER_MAX, AskError};

impl LiveQuality for Handle {
    fn quality(&self, call: CallId) -> PortFuture<'_, Option<LiveCallQuality>> {
        Box::pin(async move {
            let (told, answer) = oneshot::channel();
            let tell = Box::new(move |quality| {
                // Fails if the caller has gone away meanwhile; that is harmless.
                let _ = told.send(quality);
            });
            let asked = async {
                match self.ask(AskMedia { call, tell }).await? {
                    AskedMedia::Busy => Err(AskError::Busy),
                    AskedMedia::Gone => Ok(None),
                    // When the switch stops, the sender is dropped without a report.
                    AskedMedia::Soon => answer.await.map(Some).map_err(|_| AskError::Stopped),
                }
            };
            // The question changes nothing, so giving it up is harmless.
            match tokio::time::timeout(ANSWER_MAX, asked).await {
                Ok(answer) => Ok(answer?),
                Err(_) => Err(AskError::Timeout.into()),
            }
        })
    }
}
