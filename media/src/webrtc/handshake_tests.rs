//! Two handshake machines, over a network that loses and adds datagrams.

use super::*;

#[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
fn any_instant() -> Instant {
    Instant::now()
}

struct Side {
    handshake: Handshake,
    keys: Option<SrtpKeys>,
    failure: Option<Failure>,
}

impl Side {
    /// Feeds an input; returns the datagrams for the peer.
    fn feed(&mut self, now: Instant, input: HandshakeInput<'_>) -> Vec<Vec<u8>> {
        self.handshake.handle_input(now, input);
        self.take()
    }

    fn take(&mut self) -> Vec<Vec<u8>> {
        let mut datagrams = Vec::new();
        while let Some(output) = self.handshake.poll_output() {
            match output {
                HandshakeOutput::Datagram(datagram) => datagrams.push(datagram),
                HandshakeOutput::Failed(failure) => self.failure = Some(failure),
                HandshakeOutput::Keys(keys) => self.keys = Some(*keys),
            }
        }
        datagrams
    }
}

/// A client and a server, of which the client expects this digest of the server.
fn pair(now: Instant, wrong: bool) -> [Side; 2] {
    let (one, other) = (Certificate::self_signed().unwrap(), Certificate::self_signed().unwrap());
    let expected = if wrong { [7; 32] } else { one.fingerprint() };
    let side = |handshake| Side { handshake, keys: None, failure: None };
    [
        side(Handshake::new(now, &one, other.fingerprint(), true)),
        side(Handshake::new(now, &other, expected, false)),
    ]
}

/// Delivers datagrams until none is left or the time is over; `loses` selects the datagrams that are lost.
fn carry(mut now: Instant, sides: &mut [Side; 2], mut loses: impl FnMut(usize) -> bool) -> Duration {
    let (start, mut count) = (now, 0);
    let mut waiting: [Vec<Vec<u8>>; 2] = [sides[0].take(), sides[1].take()];
    while now.duration_since(start) < Duration::from_secs(40) {
        for from in [0, 1] {
            for datagram in std::mem::take(&mut waiting[from]) {
                count += 1;
                if !loses(count) {
                    let answers = sides[1 - from].feed(now, HandshakeInput::Datagram(&datagram));
                    waiting[1 - from].extend(answers);
                }
            }
        }
        if waiting.iter().all(Vec::is_empty) {
            if sides.iter().all(|side| side.keys.is_some() || side.failure.is_some()) {
                break;
            }
            let Some(next) = sides.iter().filter_map(|side| side.handshake.next_timeout()).min() else {
                break;
            };
            now = next.max(now);
            for at in [0, 1] {
                if sides[at].handshake.next_timeout().is_some_and(|due| due <= now) {
                    let repeated = sides[at].feed(now, HandshakeInput::Timeout);
                    waiting[at].extend(repeated);
                }
            }
        }
    }
    now.duration_since(start)
}

#[test]
fn both_sides_have_the_same_keys() {
    let now = any_instant();
    let mut sides = pair(now, false);
    carry(now, &mut sides, |_| false);
    let [client, server] = sides.map(|side| side.keys.unwrap());
    assert_eq!((&client.send, &client.receive), (&server.receive, &server.send));
    assert_ne!(client.send, client.receive);
}

#[test]
fn lost_datagrams_are_repeated() {
    for lost in 1..=8 {
        let now = any_instant();
        let mut sides = pair(now, false);
        let took = carry(now, &mut sides, |count| count == lost);
        let [client, server] = &sides;
        assert!(client.keys.is_some() && server.keys.is_some(), "datagram {lost} lost");
        assert!(took < Duration::from_secs(10), "{took:?}");
    }
}

#[test]
fn another_certificate_gets_no_keys() {
    let now = any_instant();
    let mut sides = pair(now, true);
    carry(now, &mut sides, |_| false);
    assert_eq!((sides[1].failure, &sides[1].keys), (Some(Failure::Certificate), &None));
    assert!(sides[1].handshake.is_over());
}

#[test]
fn a_handshake_that_never_ends_fails_at_its_deadline() {
    let start = any_instant();
    let mut sides = pair(start, false);
    carry(start, &mut sides, |_| true);
    for side in &sides {
        assert_eq!(side.failure, Some(Failure::Deadline));
        assert!(side.handshake.is_over() && side.handshake.next_timeout().is_none());
    }
}

#[test]
fn garbage_does_not_stop_a_handshake() {
    let now = any_instant();
    let mut sides = pair(now, false);
    for length in 0..200_u8 {
        let garbage: Vec<u8> = (0..length).map(|at| at.wrapping_mul(37).wrapping_add(length)).collect();
        for first in [20, 22, 23, 63] {
            let datagram = [&[first, 0xfe, 0xfd], &garbage[..]].concat();
            assert!(sides[1].feed(now, HandshakeInput::Datagram(&datagram)).is_empty(), "{length}");
        }
    }
    carry(now, &mut sides, |_| false);
    assert!(sides.iter().all(|side| side.keys.is_some()));
}

#[test]
fn the_parts_of_the_export_are_in_the_order_of_rfc_5764() {
    let material: Vec<u8> = (0..60).collect();
    let keys = keys_of(&material, SrtpProfile::AES128_CM_SHA1_80, false).unwrap();
    let client: Vec<u8> = (0..16).chain(32..46).collect();
    let server: Vec<u8> = (16..32).chain(46..60).collect();
    let suite = Suite::AesCm128HmacSha1Tag80;
    assert_eq!(keys.receive, MasterKey::new(suite, &client).unwrap());
    assert_eq!(keys.send, MasterKey::new(suite, &server).unwrap());
    assert_eq!(keys_of(&material[..59], SrtpProfile::AES128_CM_SHA1_80, false), None);
}
