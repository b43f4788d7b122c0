//! RTCP of real captures, compared with TShark's results; skipped with a message where the captures are missing.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use sidetone_capture::{self as capture, Analysis};
use sidetone_media::pcap::{Content, Records, dissect};
use sidetone_media::rtcp::{Block, Compound, Element};

type Row = BTreeMap<String, String>;

fn corpus() -> Option<PathBuf> {
    let named = std::env::var_os("SIDETONE_SHARED").map(PathBuf::from);
    let folder =
        named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared")).join("captures");
    let found = folder.join("truth/rtcp.tsv").is_file();
    if !found {
        eprintln!("SKIPPED: no captures in {}", folder.display());
    }
    found.then_some(folder)
}

fn rows(folder: &Path) -> Vec<Row> {
    let text = fs::read_to_string(folder.join("truth/rtcp.tsv")).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>());
    let names = lines.next().unwrap();
    lines.map(|fields| names.iter().cloned().zip(fields).collect()).collect()
}

/// The content of one datagram, in TShark's columns.
fn columns(datagram: &[u8]) -> Vec<(&'static str, String)> {
    let mut values: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    let mut add = |name, value: u32| values.entry(name).or_default().push(value.to_string());
    for element in Compound::read(datagram).unwrap().elements() {
        let blocks: Vec<Block> = match &element {
            Element::Sender(report) => {
                add("pkt_count", report.packet_count());
                add("octet_count", report.octet_count());
                report.report_blocks().map(|block| Block::of(&block)).collect()
            }
            Element::Receiver(report) => report.report_blocks().map(|block| Block::of(&block)).collect(),
            Element::Extended(_) | Element::Goodbye(_) | Element::Other => Vec::new(),
        };
        for block in blocks {
            add("fraction_lost", block.fraction_lost.into());
            add("cum_lost", u32::try_from(block.cumulative_lost).unwrap());
            add("ext_high", block.highest);
            add("jitter", block.jitter_ticks);
            add("lsr", block.last_report);
            add("dlsr", block.delay);
        }
    }
    values.into_iter().map(|(name, values)| (name, values.join(","))).collect()
}

#[test]
fn reports_read_as_tshark_reads_them() {
    let Some(folder) = corpus() else { return };
    let mut compared = 0;
    let rows = rows(&folder);
    let mut files: Vec<&str> = rows.iter().map(|row| row["file"].as_str()).collect();
    files.dedup();
    for file in files {
        // Corrupted on purpose: its one datagram is not RTCP.
        if file.starts_with("dv_fuzz") {
            continue;
        }
        let wanted: BTreeMap<usize, &Row> = rows
            .iter()
            .filter(|row| row["file"] == file)
            .map(|row| (row["frame"].parse().unwrap(), row))
            .collect();
        let bytes = fs::read(folder.join(format!("{file}.pcap"))).unwrap();
        for (frame, record) in (1..).zip(Records::new(&bytes).map_while(Result::ok)) {
            let Some(row) = wanted.get(&frame) else { continue };
            let Content::Udp(datagram) = dissect(record.link, record.frame) else { continue };
            for (name, value) in columns(datagram.payload) {
                assert_eq!(value, row[name], "{file}, frame {frame}: {name}");
            }
            compared += 1;
        }
    }
    assert!(compared >= 30, "{compared} datagrams were compared");
}

fn analysis(folder: &Path, file: &str) -> Analysis {
    let mut input = File::open(folder.join(format!("{file}.pcap"))).unwrap();
    capture::read(file, &mut input, &mut |_| {}).analysis
}

#[test]
fn streams_have_what_their_reports_count() {
    let Some(folder) = corpus() else { return };
    let analysis = analysis(&folder, "wsh_SIP_CALL_RTP_G711");
    let last = rows(&folder);
    let mut found = 0;
    for stream in &analysis.streams {
        let Some(rtcp) = &stream.rtcp else { continue };
        let host = stream.src.split(':').next().unwrap();
        let of_it = |row: &&Row| {
            row["file"] == "wsh_SIP_CALL_RTP_G711"
                && row["ip_src"] == host
                && row["sender_ssrc"].split(',').next() == Some(stream.ssrc.as_str())
        };
        let Some(row) = last.iter().rfind(of_it) else { continue };
        let counted: u64 = row["pkt_count"].split(',').next().unwrap().parse().unwrap();
        assert_eq!(rtcp.sr_packets, Some(counted), "{} {}", stream.src, stream.ssrc);
        // The sender's packet count equals the captured packets: nothing was lost here.
        assert!(rtcp.sr_missing.is_some_and(|missing| missing <= 5), "{rtcp:?} {}", stream.ssrc);
        found += 1;
    }
    assert!(found >= 2, "{found} streams with reports");
}
