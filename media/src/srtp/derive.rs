//! Derivation of session keys from a master key (RFC 3711 §4.3), with a key derivation rate of zero.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes256, Block};

use super::MasterKey;

/// The purpose of a derived key: the labels of RFC 3711 §4.3.1, first those of RTP.
#[derive(Clone, Copy, Debug)]
pub(super) enum Label {
    Encryption,
    Authentication,
    Salt,
}

/// Fills `out` with the session key for `label`, of RTCP or of RTP.
pub(super) fn derive(master: &MasterKey, label: Label, is_rtcp: bool, out: &mut [u8]) {
    let label = match label {
        Label::Encryption => 0,
        Label::Authentication => 1,
        Label::Salt => 2,
    } + if is_rtcp { RTCP } else { 0 };
    // A salt of 96 bits is followed by 16 zero bits (RFC 7714 §11).
    let mut block = [0; 16];
    for (byte, salt) in block.iter_mut().zip(master.salt()) {
        *byte = *salt;
    }
    // The key derivation rate is zero, so the label stands alone at the seventh byte.
    block[7] ^= label;
    for (place, chunk) in out.chunks_mut(16).enumerate() {
        let [high, low] = u16::try_from(place).unwrap_or_default().to_be_bytes();
        (block[14], block[15]) = (high, low);
        let mut stream = Block::from(block);
        encrypt(master.key(), &mut stream);
        for (byte, random) in chunk.iter_mut().zip(stream) {
            *byte = random;
        }
    }
}

/// Encrypts one block; the key has 128 or 256 bits.
fn encrypt(key: &[u8], block: &mut Block) {
    if let Ok(cipher) = Aes128::new_from_slice(key) {
        cipher.encrypt_block(block);
    } else if let Ok(cipher) = Aes256::new_from_slice(key) {
        cipher.encrypt_block(block);
    }
}

/// The difference between the labels of RTCP and of RTP.
const RTCP: u8 = 3;

#[cfg(test)]
mod tests {
    use super::super::{Suite, tests::hex};
    use super::*;

    #[test]
    fn rfc_3711_b_3() {
        let material = hex("E1F97A0D3E018BE0D64FA32C06DE4139 0EC675AD498AFEEBB6960B3AABE6");
        let master = MasterKey::new(Suite::AesCm128HmacSha1Tag80, &material).unwrap();
        let table = [
            ("encryption", Label::Encryption, "C61E7A93744F39EE10734AFE3FF7A087"),
            ("salt", Label::Salt, "30CBBC08863D8C85D49DB34A9AE1"),
            (
                "authentication",
                Label::Authentication,
                "CEBE321F6FF7716B6FD4AB49AF256A156D38BAA48F0A0ACF3C34E2359E6CDBCEE049646C43D9327AD175578EF72270986371C10C9A369AC2F94A8C5FBCDDDC256D6E919A48B610EF17C2041E474035766B68642C59BBFC2F34DB60DBDFB2",
            ),
        ];
        for (name, label, expected) in table {
            let mut out = vec![0; expected.len() / 2];
            derive(&master, label, false, &mut out);
            assert_eq!(out, hex(expected), "{name}");
        }
    }

    #[test]
    fn a_salt_of_96_bits_is_padded_behind() {
        // The session salt that libsrtp derives.
        let material = hex("000102030405060708090a0b0c0d0e0f 404142434445464748494a4b");
        let master = MasterKey::new(Suite::AeadAes128Gcm, &material).unwrap();
        let mut salt = [0; 12];
        derive(&master, Label::Salt, false, &mut salt);
        assert_eq!(salt.to_vec(), hex("1fcd5d561e66dc49ec1c3ccb"));
    }
}
