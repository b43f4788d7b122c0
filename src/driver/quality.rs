//! Media quality of live calls: the handle queries the switch, which queries the relay.

use sidetone_model::ids::CallId;
use sidetone_model::media_quality::{LiveCallQuality, LiveQuality};
use sidetone_model::ports::PortFuture;
use sidetone_switch::queries::{CallQuality, QualityAnswer};

use crate::driver::Handle;
use crate::driver::handle::{ANSWER_MAX, AskError};

impl LiveQuality for Handle {
    fn quality(&self, call: CallId) -> PortFuture<'_, Option<LiveCallQuality>> {
        Box::pin(async move {
            // The query changes nothing, so abandoning it is harmless.
            let answer = tokio::time::timeout(ANSWER_MAX, self.ask(CallQuality(call))).await;
            match answer.unwrap_or(Err(AskError::Timeout))? {
                QualityAnswer::Busy => Err(AskError::Busy.into()),
                QualityAnswer::Gone => Ok(None),
                QualityAnswer::Known(quality) => Ok(Some(*quality)),
            }
        })
    }
}
