//! One call in every format and encapsulation: whatever surrounds its packets, the resulting calls and streams are
//! identical to the last digit.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

mod carriers;
mod files;
mod layers;

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::Value;
use sidetone_capture as capture;
use sidetone_media::pcap::{Content, Records, dissect};

use carriers::{CARRIERS, Carrier, Cut, Payload};
use files::{FILES, File};
use layers::{LINKS, Link, Mix, Packet, TUNNELS, Tunnel};

/// The wrapped calls: one without a flaw, and one with most of them.
static CALLS: LazyLock<Vec<(Vec<Payload>, Value)>> = LazyLock::new(|| {
    let scenarios = [
        "clean duration=2s seed=3",
        "lossy duration=4s hold=800ms..1200ms digits=1 jitter=0..30 order=any seed=5",
    ];
    scenarios.iter().map(|scenario| call(scenario)).collect()
});

fn call(scenario: &str) -> (Vec<Payload>, Value) {
    let mut file = Vec::new();
    capture::compose(&scenario.parse().unwrap(), &mut file).unwrap();
    let payloads: Vec<Payload> = Records::new(&file)
        .map(|record| {
            let record = record.unwrap();
            let Content::Udp(datagram) = dissect(record.link, record.frame) else { panic!("not UDP") };
            Payload {
                at: record.at,
                source: datagram.source,
                destination: datagram.destination,
                bytes: datagram.payload.to_vec(),
            }
        })
        .collect();
    let expected = analyze(&file);
    assert!(expected[0][0]["media_verdict"].is_string(), "{expected:#}");
    assert_eq!(expected[1].as_array().map(Vec::len), Some(2));
    (payloads, expected)
}

/// The calls and streams of a capture, which must be read to its end.
fn analyze(mut file: &[u8]) -> Value {
    let outcome = capture::read("wrapped", &mut file, &mut |_| {});
    assert!(outcome.broken.is_none(), "{:?}", outcome.broken);
    let skipped = serde_json::to_value(outcome.analysis.skipped).unwrap();
    assert_eq!(skipped, serde_json::json!({"not_ip": 0, "truncated": 0}));
    let whole = serde_json::to_value(&outcome.analysis).unwrap();
    serde_json::json!([whole["calls"], whole["streams"]])
}

/// How a call is wrapped.
#[derive(Clone, Debug)]
struct Wrap {
    carrier: Carrier,
    cut: Cut,
    /// The fragment size of the packets, and the order of the fragments.
    inner: Option<(usize, Mix)>,
    tunnels: Vec<Tunnel>,
    /// Fragments of the outermost tunnel's packets.
    outer: Option<(usize, Mix)>,
    link: Link,
    file: File,
    gzip: usize,
}

impl Wrap {
    fn plain() -> Self {
        Wrap {
            carrier: Carrier::Udp,
            cut: Cut::Whole,
            inner: None,
            tunnels: Vec::new(),
            outer: None,
            link: LINKS[0],
            file: FILES[0],
            gzip: 0,
        }
    }

    fn write(&self, payloads: &[Payload]) -> Vec<u8> {
        let mut packets: Vec<Packet> = carriers::packets(payloads, self.carrier, self.cut);
        if let Some((size, mix)) = self.inner {
            packets = layers::fragments(packets, size, mix);
        }
        for tunnel in &self.tunnels {
            packets = layers::tunnel(packets, *tunnel);
        }
        // Fragments are only cut again within a tunnel.
        if let Some((size, mix)) = self.outer.filter(|_| self.inner.is_none() || !self.tunnels.is_empty()) {
            packets = layers::fragments(packets, size, mix);
        }
        let frames: Vec<_> =
            packets.iter().map(|packet| (packet.at, layers::link(self.link, &packet.bytes))).collect();
        files::gzip(files::write(self.file, self.link.number(), &frames), self.gzip)
    }
}

/// Wraps every call and checks that the result is the same.
fn check(wrap: &Wrap) {
    for (payloads, expected) in CALLS.iter() {
        let seen = analyze(&wrap.write(payloads));
        assert!(seen == *expected, "{wrap:?}\nseen {seen:#}\nexpected {expected:#}");
    }
}

#[test]
fn every_link_layer() {
    for link in LINKS {
        check(&Wrap { link, ..Wrap::plain() });
    }
}

#[test]
fn every_tunnel_alone_and_in_every_other() {
    for outer in TUNNELS {
        check(&Wrap { tunnels: vec![outer], ..Wrap::plain() });
        for inner in TUNNELS {
            let (payloads, expected) = &CALLS[0];
            let wrap = Wrap { tunnels: vec![inner, outer], ..Wrap::plain() };
            assert!(analyze(&wrap.write(payloads)) == *expected, "{wrap:?}");
        }
    }
}

#[test]
fn fragments_of_every_size_and_order() {
    for mix in Mix::ALL {
        for size in [8, 24, 56, 128, 520] {
            check(&Wrap { inner: Some((size, mix)), ..Wrap::plain() });
            let tunnels = vec![Tunnel::V4InV6];
            check(&Wrap { tunnels, outer: Some((size, mix)), ..Wrap::plain() });
        }
    }
}

#[test]
fn every_file_format_plain_and_compressed() {
    for file in FILES {
        for gzip in [0, 1, 3] {
            check(&Wrap { file, gzip, ..Wrap::plain() });
        }
    }
}

#[test]
fn every_carrier_in_segments_of_every_kind() {
    for carrier in CARRIERS {
        for cut in Cut::ALL {
            check(&Wrap { carrier, cut, ..Wrap::plain() });
        }
    }
}

fn wraps() -> impl Strategy<Value = Wrap> {
    let fragments = || {
        prop::option::of(
            (1_usize..90, prop::sample::select(Mix::ALL.to_vec())).prop_map(|(n, mix)| (n * 8, mix)),
        )
    };
    (
        prop::sample::select(CARRIERS.to_vec()),
        prop::sample::select(Cut::ALL.to_vec()),
        fragments(),
        prop::collection::vec(prop::sample::select(TUNNELS.to_vec()), 0..3),
        fragments(),
        prop::sample::select(LINKS.to_vec()),
        prop::sample::select(FILES.to_vec()),
        0_usize..4,
    )
        .prop_map(|(carrier, cut, inner, tunnels, outer, link, file, gzip)| Wrap {
            carrier,
            cut,
            inner,
            tunnels,
            outer,
            link,
            file,
            gzip,
        })
}

/// The first packets of a call, in every format.
fn short(file: File, gzip: usize) -> Vec<u8> {
    let media = CALLS[0].0.iter().position(|payload| payload.bytes[0] == 0x80).unwrap();
    Wrap { file, gzip, ..Wrap::plain() }.write(&CALLS[0].0[media - 1..media + 3])
}

#[test]
fn every_cut_of_every_format_is_read_as_far_as_it_goes() {
    for file in FILES {
        for gzip in [0, 1] {
            let whole = short(file, gzip);
            let mut last = 0;
            for len in 0..=whole.len() {
                let outcome = capture::read("cut", &mut &whole[..len], &mut |_| {});
                let packets = outcome.analysis.packets;
                assert!(packets >= last && packets <= 4, "{file:?}: {packets} of {len} bytes, {last} before");
                assert!(
                    len == 0 || gzip == 0 || len == whole.len() || outcome.broken.is_some(),
                    "{file:?} {len}"
                );
                if let Some(broken) = outcome.broken {
                    let text = broken.to_string();
                    assert!(
                        text.contains("cut off") || text.contains("not a pcap"),
                        "{file:?} {len}: {text}"
                    );
                }
                last = packets;
            }
            assert_eq!(last, 4, "{file:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_wrapping_changes_nothing(wrap in wraps()) {
        check(&wrap);
    }

    /// However a capture is damaged, reading it ends, and the results for the rest are within their bounds.
    #[test]
    fn damage_is_survived_in_any_wrapping(
        wrap in wraps(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..8), 1..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = wrap.write(&CALLS[1].0);
        for (place, bit) in flips {
            let place = place.index(file.len());
            file[place] ^= 1 << bit;
        }
        file.truncate(cut.index(file.len()) + 1);
        let analysis = capture::read("damaged", &mut &file[..], &mut |_| {}).analysis;
        for stream in &analysis.streams {
            prop_assert!(stream.lost <= stream.expected, "{:?}", stream);
            prop_assert!(stream.loss_pct.is_none_or(|loss| (0..=10_000).contains(&loss.0)), "{:?}", stream);
            prop_assert!(stream.mirror.is_none_or(|mirror| mirror < analysis.streams.len()), "{:?}", stream);
        }
    }
}
