//! The call-info URL and the secret of callbacks in apply files.

use sidetone_model::call_info::{CallInfoTarget, secret};
use sidetone_model::directory::Secret;

use crate::fields::Fields;

/// Reads `call_info_url` with `call_info_secret`. If omitted, the stored values are kept, because the organisation
/// may have set them itself; an empty URL removes them.
pub(super) fn declared_call_info(fields: &mut Fields<'_>) -> Option<Option<CallInfoTarget>> {
    let (has_url, has_secret) = (fields.has("call_info_url"), fields.has("call_info_secret"));
    let url = fields.text("call_info_url");
    let secret = if url.as_deref() == Some("") && has_secret {
        fields.checked("call_info_secret", |text| match text {
            "" => Ok(None),
            _ => Err("must be empty, or left out, with an empty call_info_url".to_owned()),
        })
    } else {
        fields.checked("call_info_secret", |text| secret(text).map(Some))
    };
    match (url, secret) {
        (Some(url), _) if url.is_empty() => Some(None),
        (Some(url), Some(Some(secret))) => Some(Some(CallInfoTarget { url, secret })),
        (Some(_), None) if !has_secret => {
            fields.refuse("call_info_secret", "is missing: requests to call_info_url are signed with it")
        }
        (None, Some(_)) if !has_url => fields.refuse(
            "call_info_url",
            "is missing: requests to call_info_url are signed with call_info_secret",
        ),
        _ => None,
    }
}

/// Reads `callback_secret`. If omitted, the stored one is kept; an empty one removes it.
pub(super) fn declared_callback_secret(fields: &mut Fields<'_>) -> Option<Secret> {
    fields.checked("callback_secret", |text| match text {
        "" => Ok(Secret::default()),
        text => secret(text),
    })
}
