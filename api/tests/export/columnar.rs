//! The export as a columnar file, read back.

use axum::body::Bytes;
use parquet::basic::{LogicalType, TimeUnit};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};

use super::*;

/// The file with `rows` records; checks that each piece is read on demand.
fn file(token: &str, rows: u64) -> SerializedFileReader<Bytes> {
    let mut file = Vec::new();
    ask_as(token, rows, usize::MAX, "?format=parquet", async |response, log| {
        assert_eq!(response.status().as_u16(), 200);
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-type"), "application/vnd.apache.parquet");
        assert_eq!(header("content-disposition"), "attachment; filename=\"cdrs.parquet\"");
        let mut body = response.into_body();
        let mut frames = 0;
        while let Some(frame) = body.frame().await {
            let piece = frame.unwrap().into_data().unwrap();
            frames += 1;
            assert_eq!(log.chunks.load(Ordering::Relaxed), frames, "a piece a read");
            assert!(piece.len() < 1024 * 1024, "{}", piece.len());
            file.extend(piece);
        }
    });
    SerializedFileReader::new(Bytes::from(file)).unwrap()
}

fn names(file: &SerializedFileReader<Bytes>) -> Vec<String> {
    let schema = file.metadata().file_metadata().schema_descr_ptr();
    schema.columns().iter().map(|column| column.name().to_owned()).collect()
}

/// The header row of the same export as CSV.
fn header(token: &str) -> Vec<String> {
    let mut header = Vec::new();
    ask_as(token, 0, usize::MAX, "", async |response, _| {
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        header = body.trim_end().split(',').map(str::to_owned).collect();
    });
    header
}

fn value<'a>(row: &'a Row, name: &str) -> &'a Field {
    row.get_column_iter().find(|(column, _)| *column == name).map(|(_, value)| value).unwrap()
}

fn text(value: &str) -> Field {
    Field::Str(value.to_owned())
}

#[test]
fn an_export_as_parquet_has_the_columns_of_the_csv_file() {
    for (token, count) in [("tel_GOOD_secret", 50), ("tel_MARGIN_secret", 56)] {
        let names = names(&file(token, 1));
        assert_eq!(names, header(token));
        assert_eq!(names.len(), count);
        assert_eq!(names.contains(&"margin".to_owned()), token.contains("MARGIN"));
    }
}

/// Record 0 has no optional field except the devices; every other record has all fields.
#[test]
fn an_export_as_parquet_is_read_back_typed() {
    let file = file("tel_MARGIN_secret", 2);
    let schema = file.metadata().file_metadata().schema_descr_ptr();
    let started = schema.columns().iter().find(|column| column.name() == "started_at").unwrap();
    assert_eq!(started.logical_type_ref(), Some(&LogicalType::timestamp(true, TimeUnit::MICROS)));
    let rows: Vec<Row> = file.get_row_iter(None).unwrap().collect::<Result<_, _>>().unwrap();

    let bare: Vec<(&str, &Field)> =
        rows[0].get_column_iter().map(|(name, value)| (name.as_str(), value)).collect();
    let present: Vec<_> = bare.into_iter().filter(|(_, value)| **value != Field::Null).collect();
    assert_eq!(
        present,
        [
            ("call_uuid", &text("00000000-0000-0000-0000-000000000000")),
            ("direction", &text("inbound")),
            ("transport", &text("sip")),
            ("started_at", &Field::TimestampMicros(0)),
            ("billsec", &Field::Long(0)),
            ("billing_mode", &text("free")),
            ("transcoded", &Field::Bool(false)),
            ("caller_number", &text("=1+1")),
            ("destination_number", &text("+442071230000")),
            ("sell_amount", &text("0.00")),
            ("cost_amount", &text("0.00")),
            ("margin", &text("0.00")),
            ("user_agent_a", &text("Example Phone 7")),
            ("network_a", &text("192.0.2.0/24")),
            ("user_agent_b", &text("=gateway")),
            ("network_b", &text("2001:db8::/64")),
        ]
    );

    let id = Field::Str(Uuid::from_u128(7).to_string());
    for (name, expected) in [
        ("call_uuid", text("00000000-0000-0000-0000-000000000001")),
        ("answered_at", Field::TimestampMicros(1_767_225_600_000_001)),
        ("ended_at", Field::TimestampMicros(1_767_225_660_000_001)),
        ("billsec", Field::Long(4_294_967_295)),
        ("transcoded", Field::Bool(true)),
        ("codec_a", text("PCMU")),
        ("codec_b", text("opus")),
        ("dialled_number", text("02071230000")),
        ("agent_id", id.clone()),
        ("team_id", id.clone()),
        ("campaign_id", id.clone()),
        ("contact_id", id.clone()),
        ("fs_node_id", id.clone()),
        ("hangup_cause", text("NORMAL_CLEARING")),
        ("bridge_cause", text("USER_BUSY")),
        ("sip_status", Field::Int(486)),
        ("ended_by", text("callee")),
        ("transferred_from", id.clone()),
        ("transferred_to", id),
        ("forwarded_by", text("1001")),
        ("forward_reason", text("no_answer")),
        ("forwarded_to", text("+442079460000")),
        ("fax", Field::Bool(true)),
        ("sell_amount", text("92233720368.54775807")),
        ("cost_amount", text("0.008")),
        ("margin", text("92233720368.53975807")),
        ("currency", text("EUR")),
        ("cost_currency", text("USD")),
        ("cost_amount_original", text("0.008")),
        ("fx_rate", Field::Null),
        ("cost_unconverted", Field::Bool(true)),
        ("ai_tokens", Field::Long(5_000_000_000)),
        ("jitter_ms", Field::Double(20.96)),
        ("loss_pct", Field::Double(0.0)),
        ("mean_interval_ms", Field::Double(20.01)),
        ("quality_pct", Field::Double(99.5)),
        ("mos", Field::Double(4.41)),
        ("media_verdict", text("ok")),
        ("jitter_ms_b", Field::Double(3.1)),
        ("loss_pct_b", Field::Double(15.12)),
        ("mean_interval_ms_b", Field::Double(23.55)),
        ("quality_pct_b", Field::Double(81.0)),
        ("mos_b", Field::Double(2.33)),
        ("media_verdict_b", text("lossy_inbound")),
        ("media_verdict_worse", text("lossy_inbound")),
        ("user_agent_a", text("Example Phone 7")),
        ("network_a", text("192.0.2.0/24")),
        ("user_agent_b", text("=gateway")),
        ("network_b", text("2001:db8::/64")),
    ] {
        assert_eq!(*value(&rows[1], name), expected, "{name}");
    }
}

#[test]
fn an_export_as_parquet_has_a_row_group_a_piece() {
    for (rows, groups) in [(12_345, vec![5000, 5000, 2345]), (5000, vec![5000])] {
        let file = file("tel_GOOD_secret", rows);
        let written: Vec<i64> = file.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(written, groups);
        for (number, row) in file.get_row_iter(None).unwrap().enumerate() {
            let id = Field::Str(Uuid::from_u128(number as u128).to_string());
            assert_eq!(*value(&row.unwrap(), "call_uuid"), id);
        }
    }
}

#[test]
fn an_empty_export_as_parquet_is_a_file_without_row_groups() {
    let file = file("tel_GOOD_secret", 0);
    assert_eq!((file.num_row_groups(), file.metadata().file_metadata().num_rows()), (0, 0));
    assert_eq!(names(&file).len(), 50);
}

/// The footer is at the end of the file: a truncated file has none, so a reader rejects it.
#[test]
fn an_export_as_parquet_that_is_broken_off_is_no_file() {
    ask(12_345, 2, "?format=parquet", async |response, _| {
        let mut body = response.into_body();
        let mut file = Vec::new();
        while let Some(Ok(frame)) = body.frame().await {
            file.extend(frame.into_data().unwrap());
        }
        assert!(file.starts_with(b"PAR1"));
        assert!(SerializedFileReader::new(Bytes::from(file)).is_err());
    });
}
