//! RTCP: compound packets with every block, and a leg's figures from them.

use sidetone_media::rtcp::{Compound, Element, Heard, RtcpFold, is_plausible};
use sidetone_media::time::{ClockRate, Micros};

use super::choices::Choices;

/// Parsing ends, and the figures stay within their bounds.
pub fn rtcp(data: &[u8]) {
    let mut choices = Choices::new(data);
    let mut fold = RtcpFold::default();
    let mut now = Micros(0);
    let mut heard = Heard { clock: Some(ClockRate::HZ_8000), ..Heard::default() };
    while !choices.is_over() {
        let choice = choices.byte();
        now = now + i64::from(choices.u16().cast_signed()) * 1_000;
        let datagram = choices.bytes();
        let _ = is_plausible(datagram);
        if let Ok(compound) = Compound::read(datagram) {
            assert!(compound.elements().count() <= datagram.len() / 4);
            for element in compound.elements() {
                if let Element::Extended(extended) = element {
                    assert!(extended.blocks().count() <= datagram.len() / 4);
                }
            }
        }
        match choice & 3 {
            0 => fold.sent(now, datagram),
            1 => fold.sends(u32::from(choices.byte())),
            _ => fold.received(now, datagram, &heard),
        }
        heard.ssrc = Some(u32::from(choice >> 4));
        heard.received += u64::from(choice);
        heard.expected += u64::from(choice) + u64::from(choice & 1);
        heard.sent += u64::from(choice);
        heard.last = Some(now);
        let view = fold.view(heard.ssrc);
        if let Some(far_end) = view.far_end {
            assert!(far_end.loss_pct.is_none_or(|loss| (0..=10_000).contains(&loss.0)), "{far_end:?}");
        }
    }
}
