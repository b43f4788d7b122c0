//! One datagram on an RTP port.

use sidetone_media::dtmf::DtmfReceiver;
use sidetone_media::rtp::{Datagram, Packet, RtpPacket};
use sidetone_media::time::Micros;

use super::choices::Choices;

/// Header and view agree, and the payload is where the header says.
pub fn rtp(data: &[u8]) {
    let mut digits = DtmfReceiver::new();
    let mut choices = Choices::new(data);
    let mut now = Micros(0);
    while !choices.is_over() {
        now = now + i64::from(choices.u16());
        let datagram = choices.bytes();
        let header = Packet::parse(datagram);
        let view = RtpPacket::parse(datagram);
        assert_eq!(header, view.map(|packet| packet.header));
        let Ok(packet) = view else { continue };
        assert_eq!(packet.payload.len(), packet.header.payload_len as usize);
        assert!(packet.payload.len() + 12 <= datagram.len() && packet.header.payload_type < 128);
        assert_eq!(datagram[0] >> 6, 2, "the version");
        assert_ne!(Datagram::classify(datagram), Datagram::Foreign);
        if let Some(digit) = digits.push(now, &packet, 8_000) {
            assert!("0123456789*#ABCD".contains(digit), "{digit}");
        }
    }
}
