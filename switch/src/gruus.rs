//! Numbers and devices of GRUUs (RFC 5627) in the Request-URI of an INVITE and in Refer-To.

use std::time::Instant;

use rand::RngExt;
use sidetone_sip::message::{Headers, Name, Request, StatusCode, Uri};
use sidetone_sip::registrar::{Binding, Device, GruuKey, RegisterError, reply_headers};

use crate::ids::Ids;

/// The GRUUs of this node's registrar. The key for temporary GRUUs is created when the first phone requests one.
#[derive(Default)]
pub(super) struct Gruus(Option<GruuKey>);

impl Gruus {
    /// The status and the headers of the response to a REGISTER for `aor`.
    pub(super) fn reply_headers(
        &mut self,
        request: &Request,
        result: Result<&[Binding], &RegisterError>,
        now: Instant,
        aor: &str,
        ids: &mut Ids,
    ) -> (StatusCode, Headers) {
        if self.0.is_none() && request.headers().lists(Name::Supported, "gruu") {
            self.0 = Some(GruuKey::new(ids.rng().random()));
        }
        reply_headers(request, result, now, self.0.as_mut().map(|key| (key, aor)))
    }

    /// The number and the device of a URI; `None` when it is not a GRUU.
    pub(super) fn target_of(&self, uri: &Uri, number: &str) -> Option<(String, Device)> {
        let temporary = self.0.as_ref().and_then(|key| key.open(uri));
        temporary.or_else(|| Some((number.to_owned(), Device::of_public(uri)?)))
    }
}
