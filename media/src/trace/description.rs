//! An SDP result in a record.

use std::net::{IpAddr, SocketAddr};

use super::bytes::{Cursor, put_address, put_bytes, put_ip, put_varint};
use crate::session::{Description, Payload, PayloadKind, StrictSource, XrReports};
use crate::time::ClockRate;

/// Appends `description`; an absent field costs one bit.
pub(super) fn put(out: &mut Vec<u8>, description: &Description) {
    // All fields are listed, so that a new field does not compile until the trace includes it.
    let Description {
        remote,
        unresolved,
        remote_rtcp,
        rtcp_mux,
        receive,
        send,
        payloads,
        ptime_ms,
        own_ptime_ms,
        own_maxptime_ms,
        signalling,
        own_advertised,
        strict_source,
        xr,
        udptl,
        protected,
        video,
    } = description;
    let rule = strict_source.map_or(0, rule_bits);
    let flags = [
        *rtcp_mux,
        *receive,
        *send,
        remote.is_some(),
        remote_rtcp.is_some(),
        ptime_ms.is_some(),
        own_ptime_ms.is_some(),
        own_maxptime_ms.is_some(),
        signalling.is_some(),
        own_advertised.is_some(),
        strict_source.is_some(),
        rule & 1 != 0,
        rule & 2 != 0,
        *udptl,
        xr.round_trip,
        xr.summary,
        xr.voip,
        *video,
        *unresolved,
        *protected,
    ];
    put_varint(out, flags.iter().rev().fold(0, |bits, flag| bits << 1 | u64::from(*flag)));
    for address in [remote, remote_rtcp].into_iter().flatten() {
        put_address(out, *address);
    }
    for ms in [ptime_ms, own_ptime_ms, own_maxptime_ms].into_iter().flatten() {
        put_varint(out, (*ms).into());
    }
    for ip in [signalling, own_advertised].into_iter().flatten() {
        put_ip(out, *ip);
    }
    put_varint(out, payloads.len() as u64);
    for payload in payloads {
        put_payload(out, payload);
    }
}

/// Reads a description.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Option<Description> {
    let flags = cursor.varint()?;
    if flags >> FLAGS != 0 {
        return None;
    }
    let flag = |bit: u32| flags >> bit & 1 == 1;
    let mut address = |present: bool| -> Option<Option<SocketAddr>> {
        if present { cursor.address().map(Some) } else { Some(None) }
    };
    let (remote, remote_rtcp) = (address(flag(3))?, address(flag(4))?);
    let mut ms = |present: bool| -> Option<Option<u32>> {
        if present { cursor.small().map(Some) } else { Some(None) }
    };
    let (ptime_ms, own_ptime_ms, own_maxptime_ms) = (ms(flag(5))?, ms(flag(6))?, ms(flag(7))?);
    let mut ip = |present: bool| -> Option<Option<IpAddr>> {
        if present { cursor.ip().map(Some) } else { Some(None) }
    };
    let (signalling, own_advertised) = (ip(flag(8))?, ip(flag(9))?);
    let count = cursor.varint()?;
    let mut payloads = Vec::new();
    for _ in 0..count {
        payloads.push(payload(cursor)?);
    }
    Some(Description {
        remote,
        unresolved: flag(18),
        remote_rtcp,
        rtcp_mux: flag(0),
        receive: flag(1),
        send: flag(2),
        payloads,
        ptime_ms,
        own_ptime_ms,
        own_maxptime_ms,
        signalling,
        own_advertised,
        strict_source: flag(10).then(|| rule(u8::from(flag(11)) | u8::from(flag(12)) << 1)),
        xr: XrReports { round_trip: flag(14), summary: flag(15), voip: flag(16) },
        udptl: flag(13),
        protected: flag(19),
        video: flag(17),
    })
}

/// The source rule in two bits.
const fn rule_bits(rule: StrictSource) -> u8 {
    match rule {
        StrictSource::Any => 0,
        StrictSource::Observed => 1,
        StrictSource::Sdp => 2,
        StrictSource::Signalling => 3,
    }
}

const fn rule(bits: u8) -> StrictSource {
    match bits {
        0 => StrictSource::Any,
        1 => StrictSource::Observed,
        2 => StrictSource::Sdp,
        _ => StrictSource::Signalling,
    }
}

fn put_payload(out: &mut Vec<u8>, payload: &Payload) {
    let Payload { number, kind, clock, bytes_per_ms, default_ptime_ms, name } = payload;
    let kind = match kind {
        PayloadKind::Audio => 0,
        PayloadKind::ComfortNoise => 1,
        PayloadKind::Event => 2,
        PayloadKind::Other => 3,
    };
    out.push(*number);
    let flags = [(bytes_per_ms, CONSTANT_RATE), (default_ptime_ms, OWN_PTIME)];
    let flags = flags.into_iter().filter_map(|(field, flag)| field.map(|_| flag));
    out.push(flags.fold(kind, |bits, flag| bits | flag));
    put_varint(out, clock.hz().into());
    for field in [bytes_per_ms, default_ptime_ms].into_iter().flatten() {
        put_varint(out, (*field).into());
    }
    put_bytes(out, name.as_bytes());
}

fn payload(cursor: &mut Cursor<'_>) -> Option<Payload> {
    let number = cursor.byte()?;
    let kind = cursor.byte()?;
    let clock = ClockRate::new(cursor.small()?)?;
    let mut field = |flag: u8| -> Option<Option<u32>> {
        if kind & flag != 0 { cursor.small().map(Some) } else { Some(None) }
    };
    let (bytes_per_ms, default_ptime_ms) = (field(CONSTANT_RATE)?, field(OWN_PTIME)?);
    let kind = match kind & !(CONSTANT_RATE | OWN_PTIME) {
        0 => PayloadKind::Audio,
        1 => PayloadKind::ComfortNoise,
        2 => PayloadKind::Event,
        3 => PayloadKind::Other,
        _ => return None,
    };
    Some(Payload { number, kind, clock, bytes_per_ms, default_ptime_ms, name: cursor.text()?.to_owned() })
}

/// Number of flag bits of a description.
const FLAGS: u32 = 20;
/// Flag besides the kind: the codec has a constant bit rate.
const CONSTANT_RATE: u8 = 0x80;
/// Flag besides the kind: the parameters of the format set its packet duration.
const OWN_PTIME: u8 = 0x40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_survives() {
        let payload = |number, kind, bytes_per_ms, name: &str| Payload {
            number,
            kind,
            clock: ClockRate::HZ_48000,
            bytes_per_ms,
            default_ptime_ms: None,
            name: name.to_owned(),
        };
        let of_mode_20 = |bytes_per_ms| Payload {
            default_ptime_ms: Some(20),
            ..payload(97, PayloadKind::Audio, bytes_per_ms, "iLBC")
        };
        let full = Description {
            remote: "192.0.2.1:4000".parse().ok(),
            unresolved: true,
            remote_rtcp: "[2001:db8::1]:4001".parse().ok(),
            rtcp_mux: true,
            receive: true,
            send: false,
            payloads: vec![
                payload(0, PayloadKind::Audio, Some(8), "PCMU"),
                payload(255, PayloadKind::Other, None, "größer"),
                payload(13, PayloadKind::ComfortNoise, None, ""),
                payload(101, PayloadKind::Event, None, "telephone-event"),
                of_mode_20(None),
                of_mode_20(Some(8)),
            ],
            ptime_ms: Some(20),
            own_ptime_ms: Some(u32::MAX),
            own_maxptime_ms: None,
            signalling: "192.0.2.1".parse().ok(),
            own_advertised: "2001:db8::2".parse().ok(),
            strict_source: Some(StrictSource::Sdp),
            xr: XrReports { round_trip: true, summary: true, voip: true },
            udptl: true,
            protected: true,
            video: true,
        };
        let rules = [StrictSource::Any, StrictSource::Observed, StrictSource::Signalling];
        let other = rules.map(|rule| Description { strict_source: Some(rule), ..Description::default() });
        for description in other.into_iter().chain([full, Description::default()]) {
            let mut out = Vec::new();
            put(&mut out, &description);
            assert_eq!(read(&mut Cursor::new(&out)), Some(description));
            for end in 0..out.len() {
                assert_eq!(read(&mut Cursor::new(&out[..end])), None, "cut at {end}");
            }
        }
    }

    /// A trace from before formats had a packet duration and addresses could be host names.
    #[test]
    fn an_old_description_is_read() {
        // May receive and send, and the address for RTP follows.
        let mut old = vec![0b1110, 4, 192, 0, 2, 1];
        old.extend(4_000_u16.to_be_bytes());
        // One payload type: number, kind, clock rate 8,000 and name.
        old.extend([1, 97, 0, 0xc0, 0x3e, 4]);
        old.extend(b"iLBC");
        let payload = Payload {
            number: 97,
            kind: PayloadKind::Audio,
            clock: ClockRate::HZ_8000,
            bytes_per_ms: None,
            default_ptime_ms: None,
            name: "iLBC".to_owned(),
        };
        let expected = Description {
            remote: "192.0.2.1:4000".parse().ok(),
            receive: true,
            send: true,
            payloads: vec![payload],
            ..Description::default()
        };
        assert_eq!(read(&mut Cursor::new(&old)), Some(expected));
    }
}
