//! The vectors of the standards, and laws: a protected packet is accepted once, unchanged, and no other packet is
//! accepted.

use proptest::prelude::*;

use super::cipher::Cipher;
use super::*;

/// Bytes of hexadecimal digits; spaces are ignored.
pub(super) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let value = |digit: u8| char::from(digit).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
}

/// The session keys of RFC 7714 §16 and §17.
fn ciphers(suite: Suite) -> (Cipher, Cipher) {
    let key: Vec<u8> = (0..32).take(suite.key_bytes()).collect();
    let cipher = |is_rtcp| Cipher::new(suite, is_rtcp, &key, b"Quid pro quo", &[]).unwrap();
    (cipher(false), cipher(true))
}

fn inbound(suite: Suite) -> Inbound {
    let (rtp, rtcp) = ciphers(suite);
    Inbound::with_ciphers(rtp, rtcp)
}

fn outbound(suite: Suite) -> Outbound {
    let (rtp, rtcp) = ciphers(suite);
    Outbound::with_ciphers(rtp, rtcp, 0x5d4)
}

fn master(suite: Suite, seed: u8) -> MasterKey {
    let material: Vec<u8> = (seed..=255).cycle().take(suite.key_bytes() + suite.salt_bytes()).collect();
    MasterKey::new(suite, &material).unwrap()
}

fn protected(sender: &mut Outbound, packet: &[u8]) -> Result<Vec<u8>, SrtpError> {
    let mut buffer = [packet, &[0; 32]].concat();
    let len = sender.protect(&mut buffer, packet.len())?;
    buffer.truncate(len);
    Ok(buffer)
}

fn opened(receiver: &mut Inbound, packet: &[u8]) -> Result<Vec<u8>, SrtpError> {
    let mut buffer = packet.to_vec();
    let len = receiver.unprotect(&mut buffer)?;
    buffer.truncate(len);
    Ok(buffer)
}

fn protected_rtcp(sender: &mut Outbound, packet: &[u8]) -> Vec<u8> {
    let mut buffer = [packet, &[0; 32]].concat();
    let len = sender.protect_rtcp(&mut buffer, packet.len()).unwrap();
    buffer.truncate(len);
    buffer
}

fn opened_rtcp(receiver: &mut Inbound, packet: &[u8]) -> Result<Vec<u8>, SrtpError> {
    let mut buffer = packet.to_vec();
    let len = receiver.unprotect_rtcp(&mut buffer)?;
    buffer.truncate(len);
    Ok(buffer)
}

fn rtp(ssrc: u32, sequence: u16) -> Vec<u8> {
    let mut packet = vec![0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    packet[2..4].copy_from_slice(&sequence.to_be_bytes());
    packet[8..12].copy_from_slice(&ssrc.to_be_bytes());
    packet.extend([sequence as u8; 40]);
    packet
}

#[test]
fn rfc_3711_b_2_keystream() {
    let cipher = || {
        let (key, salt) = (hex("2B7E151628AED2A6ABF7158809CF4F3C"), hex("F0F1F2F3F4F5F6F7F8F9FAFBFCFD"));
        Cipher::new(Suite::AesCm128HmacSha1Tag80, false, &key, &salt, &[0; 20]).unwrap()
    };
    let mut packet = vec![0x80];
    packet.resize(12 + 48, 0);
    let sealed = protected(&mut Outbound::with_ciphers(cipher(), cipher(), 0), &packet).unwrap();
    let keystream = hex(
        "E03EAD0935C95E80E166B16DD92B4EB4D23513162B02D0F72A43A2FE4A5F97AB41E95B3BB0A2E8DD477901E4FCA894C0",
    );
    assert_eq!(sealed[12..60], keystream);
}

#[test]
fn the_packets_of_libsrtp() {
    // `test/srtp_driver.c` of libsrtp: the reference packets of AES_CM_128_HMAC_SHA1_80.
    let material = hex("e1f97a0d3e018be0d64fa32c06de4139 0ec675ad498afeebb6960b3aabe6");
    let key = MasterKey::new(Suite::AesCm128HmacSha1Tag80, &material).unwrap();
    let plain = hex("800f1234decafbadcafebabeabababababababababababababababab");
    let sealed = hex("800f1234decafbadcafebabe4e55dc4ce79978d88ca4d215949d2402b78d6acc99ea179b8dbb");
    assert_eq!(protected(&mut Outbound::new(&key), &plain), Ok(sealed.clone()));
    assert_eq!(opened(&mut Inbound::new(&key), &sealed), Ok(plain));
    let plain = hex("81c8000bcafebabeabababababababababababababababab");
    let sealed = hex("81c8000bcafebabe7128035be487b9bdbef89041f977a5a880000001993e08cd54d6c1230798");
    let mut sender = Outbound::new(&key);
    protected_rtcp(&mut sender, &plain);
    assert_eq!(protected_rtcp(&mut sender, &plain), sealed);
    assert_eq!(opened_rtcp(&mut Inbound::new(&key), &sealed), Ok(plain));
}

#[test]
fn rfc_7714_16() {
    let plain = hex(
        "8040f17b8041f8d35501a0b247616c6c696120657374206f6d6e69732064697669736120696e207061727465732074726573",
    );
    for (suite, sealed) in [
        (
            Suite::AeadAes128Gcm,
            "8040f17b8041f8d35501a0b2f24de3a3fb34de6cacba861c9d7e4bcabe633bd50d294e6f42a5f47a51c7d19b36de3adf8833899d7f27beb16a9152cf765ee4390cce",
        ),
        (
            Suite::AeadAes256Gcm,
            "8040f17b8041f8d35501a0b232b1de78a822fe12ef9f78fa332e33aab18012389a58e2f3b50b2a0276ffae0f1ba63799b87b7aa3db36dfffd6b0f9bb7878d7a76c13",
        ),
    ] {
        let sealed = hex(sealed);
        assert_eq!(protected(&mut outbound(suite), &plain), Ok(sealed.clone()), "{suite:?}");
        assert_eq!(opened(&mut inbound(suite), &sealed), Ok(plain.clone()), "{suite:?}");
    }
}

#[test]
fn rfc_7714_17() {
    let plain = hex(
        "81c8000d4d6172734e5450314e545032525450200000042a0000e9304c756e61deadbeefdeadbeefdeadbeefdeadbeefdeadbeef",
    );
    for (suite, sealed) in [
        (
            Suite::AeadAes128Gcm,
            "81c8000d4d61727363e94885dcdab67ca727d7662f6b7e997ff5c0f76c06f32dc676a5f1730d6fda4ce09b4686303ded0bb9275bc84aa45896cf4d2fc5abf87245d9eade800005d4",
        ),
        (
            Suite::AeadAes256Gcm,
            "81c8000d4d617273d50ae4d1f5ce5d304ba297e47d470c282c3ece5dbffe0a50a2eaa5c1110555be8415f658c61de0476f1b6fad1d1eb30c4446839f57ff6f6cb26ac3be800005d4",
        ),
    ] {
        let sealed = hex(sealed);
        assert_eq!(protected_rtcp(&mut outbound(suite), &plain), sealed, "{suite:?}");
        assert_eq!(opened_rtcp(&mut inbound(suite), &sealed), Ok(plain.clone()), "{suite:?}");
    }
    // §17.3: authenticated and not encrypted, which no accepted `a=crypto` line allows.
    let clear = hex(
        "81c8000d4d6172734e5450314e545032525450200000042a0000e9304c756e61deadbeefdeadbeefdeadbeefdeadbeefdeadbeef841dd9683dd78ec92ae58790125f62b3000005d4",
    );
    assert_eq!(opened_rtcp(&mut inbound(Suite::AeadAes128Gcm), &clear), Err(SrtpError::Tag));
}

#[test]
fn a_key_has_the_length_of_its_suite_and_is_not_printed() {
    for suite in Suite::ALL {
        let len = suite.key_bytes() + suite.salt_bytes();
        for wrong in [0, len - 1, len + 1] {
            assert_eq!(MasterKey::new(suite, &vec![0xab; wrong]), None, "{suite:?} {wrong}");
        }
        let key = MasterKey::new(suite, &vec![0xab; len]).unwrap();
        let keys = SrtpKeys { receive: key.clone(), send: key.clone() };
        let printed = format!("{keys:?} {:?} {:?}", Inbound::new(&key), Outbound::new(&key)).to_lowercase();
        assert!(!printed.contains("171") && !printed.contains("ab,"), "{printed}");
        assert_eq!(Suite::from_name(&suite.as_str().to_lowercase()), Some(suite));
    }
}

#[test]
fn the_sequence_wraps_with_loss_and_reordering() {
    for suite in Suite::ALL {
        let key = master(suite, 3);
        let (mut sender, mut receiver) = (Outbound::new(&key), Inbound::new(&key));
        let packets: Vec<Vec<u8>> = (65_500_u32..65_500 + 400).map(|number| rtp(9, number as u16)).collect();
        let sealed: Vec<_> = packets.iter().map(|packet| protected(&mut sender, packet).unwrap()).collect();
        let mut order: Vec<usize> = (0..packets.len()).filter(|place| place % 10 != 6).collect();
        // The numbers around the wrap overtake each other; two are late by half a window.
        order.chunks_mut(5).for_each(<[usize]>::reverse);
        order.swap(20, 80);
        for place in &order {
            assert_eq!(
                opened(&mut receiver, &sealed[*place]).as_ref(),
                Ok(&packets[*place]),
                "{suite:?} {place}"
            );
        }
        for place in order {
            let again = opened(&mut receiver, &sealed[place]);
            assert_eq!(again, Err(SrtpError::Replayed), "{suite:?} {place}");
        }
    }
}

#[test]
fn many_rounds_of_sequence_numbers_keep_the_counter() {
    let key = master(Suite::AeadAes128Gcm, 1);
    let (mut sender, mut receiver) = (Outbound::new(&key), Inbound::new(&key));
    // One packet of a thousand; both sides follow by the same rule.
    for number in (0_u32..1_000_000).step_by(997) {
        let packet = rtp(1, number as u16);
        let sealed = protected(&mut sender, &packet).unwrap();
        assert_eq!(opened(&mut receiver, &sealed), Ok(packet), "{number}");
    }
}

#[test]
fn nothing_is_sent_twice_and_a_stream_that_begins_again_goes_on() {
    let key = master(Suite::AesCm128HmacSha1Tag80, 1);
    let (mut sender, mut receiver) = (Outbound::new(&key), Inbound::new(&key));
    for sequence in 1_000..1_200 {
        let sealed = protected(&mut sender, &rtp(5, sequence)).unwrap();
        opened(&mut receiver, &sealed).unwrap();
    }
    assert_eq!(protected(&mut sender, &rtp(5, 1_199)), Err(SrtpError::Replayed), "a copy");
    assert_eq!(protected(&mut sender, &rtp(5, 1_150)), Err(SrtpError::Replayed), "a late copy");
    // The same stream continues at a number that counts as past.
    assert_eq!(protected(&mut sender, &rtp(5, 40_000)), Err(SrtpError::Replayed));
    for (place, sequence) in (40_001..40_200).enumerate() {
        let sealed = protected(&mut sender, &rtp(5, sequence)).unwrap();
        let packet = opened(&mut receiver, &sealed).unwrap();
        assert_eq!(packet[2..4], (1_200 + place as u16).to_be_bytes());
        assert_eq!(packet[12..], [sequence as u8; 40]);
    }
    let other = protected(&mut sender, &rtp(6, 40_000)).unwrap();
    assert_eq!(opened(&mut receiver, &other), Ok(rtp(6, 40_000)), "another stream is not shifted");
}

#[test]
fn a_key_identifier_is_skipped() {
    for suite in Suite::ALL {
        let key = master(suite, 8);
        let (mut sender, mut receiver) = (Outbound::new(&key), Inbound::new(&key.clone().with_mki_bytes(2)));
        let insert = |mut sealed: Vec<u8>, tag: usize| {
            let place = sealed.len() - tag;
            sealed.splice(place..place, [0, 1]);
            sealed
        };
        let is_gcm = matches!(suite, Suite::AeadAes128Gcm | Suite::AeadAes256Gcm);
        let packet = rtp(1, 1);
        let tag = if is_gcm { 0 } else { suite.rtp_tag_bytes() };
        let sealed = insert(protected(&mut sender, &packet).unwrap(), tag);
        assert_eq!(opened(&mut receiver, &sealed), Ok(packet), "{suite:?}");
        let report = hex("81c8000bcafebabeabababababababababababababababab");
        let tag = if is_gcm { 0 } else { suite.rtcp_tag_bytes() };
        let sealed = insert(protected_rtcp(&mut sender, &report), tag);
        assert_eq!(opened_rtcp(&mut receiver, &sealed), Ok(report), "{suite:?}");
    }
}

#[test]
fn a_packet_without_room_for_the_tag_is_not_sent() {
    for suite in Suite::ALL {
        let mut sender = Outbound::new(&master(suite, 1));
        let (mut packet, mut report) = (rtp(1, 1), hex("81c8000bcafebabeabababababababababababababababab"));
        let (len, report_len) = (packet.len(), report.len());
        assert_eq!(sender.protect(&mut packet, len), Err(SrtpError::Room), "{suite:?}");
        assert_eq!(sender.protect_rtcp(&mut report, report_len), Err(SrtpError::Room), "{suite:?}");
        assert_eq!(sender.protect(&mut packet, len + 1), Err(SrtpError::Malformed), "{suite:?}");
    }
}

fn suite() -> impl Strategy<Value = Suite> {
    prop::sample::select(Suite::ALL.to_vec())
}

proptest! {
    #[test]
    fn what_is_protected_comes_back_and_a_flipped_bit_is_refused(
        suite in suite(),
        first in prop::sample::select(vec![0x80_u8, 0x81, 0x90, 0xa0]),
        second: u8,
        sequence: u16,
        body in prop::collection::vec(any::<u8>(), 12..300),
        flipped: prop::sample::Index,
        bit in 0_u8..8,
    ) {
        let mut packet = vec![first, second, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1];
        packet[2..4].copy_from_slice(&sequence.to_be_bytes());
        // A CSRC, or an extension of one word.
        packet.extend([0, 0, 0, 1]);
        packet.extend(&body);
        let key = master(suite, second);
        let sealed = protected(&mut Outbound::new(&key), &packet).unwrap();
        prop_assert_ne!(&sealed[24..packet.len()], &packet[24..]);
        let mut receiver = Inbound::new(&key);
        let mut forged = sealed.clone();
        forged[flipped.index(sealed.len())] ^= 1 << bit;
        prop_assert!(opened(&mut receiver, &forged).is_err());
        prop_assert_eq!(opened(&mut receiver, &sealed), Ok(packet));
        prop_assert_eq!(opened(&mut receiver, &sealed), Err(SrtpError::Replayed));
        let mut other = Inbound::new(&master(suite, second.wrapping_add(1)));
        prop_assert_eq!(opened(&mut other, &sealed), Err(SrtpError::Tag));
    }

    #[test]
    fn rtcp_comes_back_once_and_a_flipped_bit_is_refused(
        suite in suite(),
        body in prop::collection::vec(any::<u8>(), 1..200),
        flipped: prop::sample::Index,
        bit in 0_u8..8,
    ) {
        let packet = [&[0x81, 200, 0, 0, 0, 0, 0, 7][..], &body].concat();
        let key = master(suite, 1);
        let sealed = protected_rtcp(&mut Outbound::new(&key), &packet);
        let mut receiver = Inbound::new(&key);
        let mut forged = sealed.clone();
        forged[flipped.index(sealed.len())] ^= 1 << bit;
        prop_assert!(opened_rtcp(&mut receiver, &forged).is_err());
        prop_assert_eq!(opened_rtcp(&mut receiver, &sealed), Ok(packet));
        prop_assert_eq!(opened_rtcp(&mut receiver, &sealed), Err(SrtpError::Replayed));
    }

    #[test]
    fn fuzz_any_datagram_is_refused_without_a_panic(
        suite in suite(),
        mki in 0_u8..9,
        datagram in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        let key = master(suite, 1).with_mki_bytes(mki);
        let mut receiver = Inbound::new(&key);
        prop_assert!(opened(&mut receiver, &datagram).is_err());
        prop_assert!(opened_rtcp(&mut receiver, &datagram).is_err());
        let mut sender = Outbound::new(&key);
        let mut buffer = datagram.clone();
        let len = buffer.len();
        prop_assert!(sender.protect(&mut buffer, len).is_err());
        prop_assert!(sender.protect_rtcp(&mut buffer, len).is_err());
    }
}
