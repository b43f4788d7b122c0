//! However a capture of a call is damaged, the analysis ends, never panics and stays within its bounds.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::sync::LazyLock;

use proptest::prelude::*;
use sidetone_capture as capture;

static CALL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut file = Vec::new();
    let scenario = "clean duration=2s hold=800ms..1200ms digits=1 jitter=0..30 order=any seed=3";
    capture::compose(&scenario.parse().unwrap(), &mut file).unwrap();
    file
});

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_mutated_call_is_analysed_as_far_as_it_goes(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..60),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = CALL.clone();
        for (place, value) in changes {
            let place = place.index(file.len());
            file[place] = value;
        }
        file.truncate(cut.index(file.len() + 1));
        let outcome = capture::read("mutated", &mut &file[..], &mut |_| {});
        let analysis = outcome.analysis;
        prop_assert!(outcome.broken.is_some() || analysis.packets > 0 || file.len() == 24);
        for stream in &analysis.streams {
            prop_assert!(stream.lost <= stream.expected);
            prop_assert!(stream.loss_pct.is_none_or(|loss| (0..=10_000).contains(&loss.0)));
            prop_assert!(stream.mos.is_none_or(|mos| (100..=450).contains(&mos.0)));
        }
        for call in &analysis.calls {
            prop_assert!(call.billsec >= 0);
            prop_assert!(call.streams.iter().all(|place| *place < analysis.streams.len()));
        }
        prop_assert!(serde_json::to_string(&analysis).is_ok());
        prop_assert!(!capture::table(analysis.into()).is_empty());
    }

    #[test]
    fn any_datagrams_are_survived(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..60),
        version in any::<bool>(),
    ) {
        let mut file = Vec::new();
        let mut writer = sidetone_media::pcap::Writer::new(&mut file, sidetone_media::pcap::LinkType::RAW).unwrap();
        let (from, to) = ("192.0.2.1:4000".parse().unwrap(), "192.0.2.2:5000".parse().unwrap());
        for (n, mut payload) in payloads.into_iter().enumerate() {
            if let (true, Some(first)) = (version, payload.first_mut()) {
                *first = *first & 0x3f | 0x80;
            }
            writer.write_udp(sidetone_media::time::Micros(n as i64 * 20_000), from, to, &payload).unwrap();
        }
        let analysis = capture::read("noise", &mut &file[..], &mut |_| {}).analysis;
        prop_assert!(analysis.streams.is_empty(), "noise is no stream: {:?}", analysis.streams);
    }
}
