//! Compares `mos` and `mos_e_model` with PESQ on the impaired calls of the shared folder (`spec/perception`).

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value as Json;
use sidetone_media::rtp::Packet;
use sidetone_media::session::{Description, Figures, Session, SessionConfig};
use sidetone_media::time::Micros;

use crate::support;

#[test]
fn mos_follows_what_phones_would_have_sounded_like() {
    let Some(folder) = support::shared("spec/perception") else { return };
    let calls = read(&folder.join("calls.jsonl.gz"));
    assert!(calls.len() >= 300, "{} calls", calls.len());
    let mut pairs = [Vec::new(), Vec::new()];
    for call in &calls {
        let figures = play(call);
        let typical = call["typical"].as_f64().unwrap();
        for (pairs, score) in pairs.iter_mut().zip([figures.mos, figures.mos_e_model]) {
            pairs.push((score.unwrap().as_f64(), typical));
        }
    }
    let [mos, e_model] = pairs.map(|pairs| Fit::of(&pairs));
    println!("{} calls against PESQ: mos {mos:?}, mos_e_model {e_model:?}", calls.len());
    assert!(mos.pearson >= 0.86 && mos.rmse <= 0.45, "mos {mos:?}");
    assert!(e_model.pearson >= 0.82 && e_model.rmse <= 0.45, "mos_e_model {e_model:?}");
}

/// How well one score follows another.
#[derive(Debug)]
struct Fit {
    /// Pearson's coefficient of correlation.
    pearson: f64,
    /// Root of the mean squared difference.
    rmse: f64,
}

impl Fit {
    fn of(pairs: &[(f64, f64)]) -> Fit {
        let count = pairs.len() as f64;
        let mean = |value: fn(&(f64, f64)) -> f64| pairs.iter().map(value).sum::<f64>() / count;
        let (mean_x, mean_y) = (mean(|pair| pair.0), mean(|pair| pair.1));
        let sum = |term: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|(x, y)| term(*x, *y)).sum::<f64>();
        let covariance = sum(&|x, y| (x - mean_x) * (y - mean_y));
        let (spread_x, spread_y) = (sum(&|x, _| (x - mean_x).powi(2)), sum(&|_, y| (y - mean_y).powi(2)));
        let rmse = (sum(&|x, y| (x - y).powi(2)) / count).sqrt();
        Fit { pearson: covariance / (spread_x * spread_y).sqrt(), rmse }
    }
}

fn read(path: &Path) -> Vec<Json> {
    let mut text = String::new();
    GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The call's packets in order of arrival, through a session as in calls.
fn play(call: &Json) -> Figures {
    let ptime_ms = u32::try_from(call["ptime_ms"].as_u64().unwrap()).unwrap();
    let arrivals = call["arrival_us"].as_array().unwrap().iter().map(Json::as_i64);
    let mut arrived: Vec<(i64, u16)> = (0..).zip(arrivals).filter_map(|(n, at)| Some((at?, n))).collect();
    arrived.sort_unstable();
    let mut session = Session::new(SessionConfig::default());
    session.describe(Micros(0), Description { ptime_ms: Some(ptime_ms), ..support::pcmu() });
    let mut datagram = Vec::new();
    for (at, sequence) in &arrived {
        let packet = Packet {
            ssrc: 1,
            sequence: *sequence,
            timestamp: u32::from(*sequence) * ptime_ms * 8,
            payload_len: ptime_ms * 8,
            ..Packet::default()
        };
        support::write_rtp(&packet, &mut datagram);
        session.receive(Micros(*at), support::party(), &datagram);
    }
    session.close(Micros(arrived.last().unwrap().0)).figures
}
