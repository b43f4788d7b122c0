//! A body that is a WAV file.

use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use sidetone_model::problem::FieldProblem;
use sidetone_model::prompt::Prompt;

use crate::error::ApiError;
use crate::state::ApiState;

/// The bytes of a WAV file, not validated yet; or the reason why they were not received.
#[derive(Debug)]
pub(crate) struct Sound(Result<Bytes, ApiError>);

impl Sound {
    /// Returns the bytes of the file.
    ///
    /// # Errors
    /// 413 and 415 if the body is not a WAV file of an allowed size, 400 for an empty body.
    pub(crate) fn wav(self) -> Result<Vec<u8>, ApiError> {
        let bytes = self.0?;
        if bytes.is_empty() {
            return Err(ApiError::invalid(vec![FieldProblem {
                field: "body".to_owned(),
                message: "is missing, send a WAV file".to_owned(),
            }]));
        }
        Ok(bytes.into())
    }
}

impl FromRequest<ApiState> for Sound {
    type Rejection = std::convert::Infallible;

    async fn from_request(request: Request, _state: &ApiState) -> Result<Self, Self::Rejection> {
        if !is_wav(request.headers()) {
            return Ok(Sound(Err(ApiError::no_wav())));
        }
        // The body is already in memory, and within the limit.
        let received = to_bytes(request.into_body(), Prompt::WAV_BYTES_MAX).await;
        Ok(Sound(received.map_err(|_| ApiError::payload_too_large())))
    }
}

/// Whether the headers declare an unencoded WAV file: the media type of RFC 2361, or those that programs use.
fn is_wav(headers: &HeaderMap) -> bool {
    let plain = |encoding: &[u8]| encoding.eq_ignore_ascii_case(b"identity");
    let encoded = headers.get_all(CONTENT_ENCODING).iter().any(|encoding| !plain(encoding.as_bytes()));
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let (Some(kind), None) = (types.next(), types.next()) else { return false };
    let essence = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    !encoded && WAV_TYPES.iter().any(|known| essence.eq_ignore_ascii_case(known))
}

const WAV_TYPES: [&str; 4] = ["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"];

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_names_of_wav_and_no_others() {
        let cases: &[(&[&str], bool)] = &[
            (&["audio/wav"], true),
            (&["Audio/X-WAV; codecs=1"], true),
            (&["audio/vnd.wave"], true),
            (&["audio/mpeg"], false),
            (&["application/json"], false),
            (&[], false),
            (&["audio/wav", "audio/wav"], false),
        ];
        for (kinds, expected) in cases {
            let mut headers = HeaderMap::new();
            for kind in *kinds {
                headers.append(CONTENT_TYPE, HeaderValue::from_static(kind));
            }
            assert_eq!(is_wav(&headers), *expected, "{kinds:?}");
        }
    }

    #[test]
    fn a_compressed_file_is_none() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("audio/wav"));
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        assert!(!is_wav(&headers));
    }
}
