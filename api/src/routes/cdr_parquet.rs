//! The call log as a columnar file (Apache Parquet): the columns of the CSV file, with types.
//!
//! Each row group is written and taken out before the next one is read, so that only the footer's entries
//! grow with the file. Amounts are texts of exact decimals, because a float would round them.

use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use sidetone_model::cdr::{Cdr, CdrView};
use sidetone_model::problem::Problem;

/// A file in progress.
pub(crate) struct CdrParquet {
    writer: SerializedFileWriter<Vec<u8>>,
    columns: Vec<Column>,
    margin: bool,
}

impl CdrParquet {
    /// A file with these columns, each of which must be a column of a record.
    ///
    /// # Errors
    /// [`Problem::Internal`] when the schema is not valid.
    pub(crate) fn new(names: &[&str], margin: bool) -> Result<Self, Problem> {
        let columns: Vec<Column> =
            COLUMNS.iter().copied().filter(|column| names.contains(&column.name)).collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            // A page index for row groups of a few pages each would cost more than it saves.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_created_by(concat!("sidetone ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = schema(&columns)
            .and_then(|schema| SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties)))
            .map_err(internal)?;
        Ok(Self { writer, columns, margin })
    }

    /// Adds a row group with these records; does nothing without records.
    ///
    /// # Errors
    /// [`Problem::Internal`] when a value does not fit its column.
    pub(crate) fn write(&mut self, cdrs: &[Cdr]) -> Result<(), Problem> {
        if cdrs.is_empty() {
            return Ok(());
        }
        let views: Vec<CdrView<'_>> = cdrs.iter().map(|cdr| cdr.view(self.margin)).collect();
        self.write_group(&views).map_err(internal)
    }

    /// Adds the footer; nothing may be written after it.
    ///
    /// # Errors
    /// [`Problem::Internal`] when the footer cannot be written.
    pub(crate) fn finish(&mut self) -> Result<(), Problem> {
        self.writer.finish().map(drop).map_err(internal)
    }

    /// Takes out the bytes written so far.
    ///
    /// # Errors
    /// [`Problem::Internal`]; does not happen with a vector.
    pub(crate) fn take(&mut self) -> Result<Vec<u8>, Problem> {
        self.writer.flush().map_err(|error| Problem::Internal(error.to_string()))?;
        Ok(std::mem::take(self.writer.inner_mut()))
    }

    fn write_group(&mut self, views: &[CdrView<'_>]) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for column in &self.columns {
            let Some(mut writer) = group.next_column()? else {
                return Err(mismatch(column));
            };
            column.write(writer.untyped(), views)?;
            writer.close()?;
        }
        group.close().map(drop)
    }
}

/// A column and how its values are read from a record.
#[derive(Clone, Copy)]
struct Column {
    name: &'static str,
    values: Values,
}

/// The values of a column.
#[derive(Clone, Copy)]
enum Values {
    Boolean(fn(&CdrView<'_>) -> Option<bool>),
    Double(fn(&CdrView<'_>) -> Option<f64>),
    Int32(fn(&CdrView<'_>) -> Option<i32>),
    Int64(fn(&CdrView<'_>) -> Option<i64>),
    Text(fn(&CdrView<'_>) -> Option<String>),
    /// Microseconds since 1970 in UTC.
    TimestampUs(fn(&CdrView<'_>) -> Option<i64>),
}

impl Column {
    fn write(&self, writer: &mut ColumnWriter<'_>, views: &[CdrView<'_>]) -> Result<(), ParquetError> {
        match (self.values, writer) {
            (Values::Boolean(read), ColumnWriter::BoolColumnWriter(writer)) => {
                write(writer, views.iter().map(read))
            }
            (Values::Double(read), ColumnWriter::DoubleColumnWriter(writer)) => {
                write(writer, views.iter().map(read))
            }
            (Values::Int32(read), ColumnWriter::Int32ColumnWriter(writer)) => {
                write(writer, views.iter().map(read))
            }
            (Values::Int64(read) | Values::TimestampUs(read), ColumnWriter::Int64ColumnWriter(writer)) => {
                write(writer, views.iter().map(read))
            }
            (Values::Text(read), ColumnWriter::ByteArrayColumnWriter(writer)) => write(
                writer,
                views.iter().map(|view| read(view).map(|text| ByteArray::from(text.into_bytes()))),
            ),
            _ => Err(mismatch(self)),
        }
    }

    fn schema(&self) -> Result<Type, ParquetError> {
        let (physical, logical) = match self.values {
            Values::Boolean(_) => (Physical::BOOLEAN, None),
            Values::Double(_) => (Physical::DOUBLE, None),
            Values::Int32(_) => (Physical::INT32, None),
            Values::Int64(_) => (Physical::INT64, None),
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Values::TimestampUs(_) => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        };
        Type::primitive_type_builder(self.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
    }
}

fn schema(columns: &[Column]) -> Result<Type, ParquetError> {
    let fields = columns.iter().map(|column| column.schema().map(Arc::new)).collect::<Result<_, _>>()?;
    Type::group_type_builder("cdr").with_fields(fields).build()
}

/// Writes the present values; the level states for each record whether it has a value (1) or none (0).
fn write<T: DataType>(
    writer: &mut ColumnWriterImpl<'_, T>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let (mut present, mut levels) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(i16::from(value.is_some()));
        present.extend(value);
    }
    writer.write_batch(&present, Some(&levels), None).map(drop)
}

fn mismatch(column: &Column) -> ParquetError {
    ParquetError::General(format!("the schema does not have column {} as it is written", column.name))
}

fn internal(error: ParquetError) -> Problem {
    Problem::Internal(error.to_string())
}

const fn column(name: &'static str, values: Values) -> Column {
    Column { name, values }
}

/// Every column that a file may have, in the order of the CSV file.
const COLUMNS: [Column; 56] = {
    use Values::{Boolean, Double, Int32, Int64, Text, TimestampUs};
    [
        column("call_uuid", Text(|cdr| Some(cdr.call_uuid.to_string()))),
        column("direction", Text(|cdr| Some(cdr.direction.to_string()))),
        column("transport", Text(|cdr| Some(cdr.transport.to_string()))),
        column("started_at", TimestampUs(|cdr| Some(cdr.started_at.as_micros()))),
        column("answered_at", TimestampUs(|cdr| Some(cdr.answered_at?.as_micros()))),
        column("ended_at", TimestampUs(|cdr| Some(cdr.ended_at?.as_micros()))),
        column("billsec", Int64(|cdr| Some(cdr.billsec.into()))),
        column("billing_mode", Text(|cdr| Some(cdr.billing_mode.to_string()))),
        column("transcoded", Boolean(|cdr| Some(cdr.transcoded))),
        column("codec_a", Text(|cdr| cdr.codec_a.map(str::to_owned))),
        column("codec_b", Text(|cdr| cdr.codec_b.map(str::to_owned))),
        column("caller_number", Text(|cdr| cdr.caller_number.map(str::to_owned))),
        column("destination_number", Text(|cdr| cdr.destination_number.map(str::to_owned))),
        column("dialled_number", Text(|cdr| cdr.dialled_number.map(str::to_owned))),
        column("agent_id", Text(|cdr| Some(cdr.agent_id?.to_string()))),
        column("team_id", Text(|cdr| Some(cdr.team_id?.to_string()))),
        column("campaign_id", Text(|cdr| Some(cdr.campaign_id?.to_string()))),
        column("contact_id", Text(|cdr| Some(cdr.contact_id?.to_string()))),
        column("fs_node_id", Text(|cdr| Some(cdr.fs_node_id?.to_string()))),
        column("hangup_cause", Text(|cdr| Some(cdr.hangup_cause?.to_string()))),
        column("bridge_cause", Text(|cdr| Some(cdr.bridge_cause?.to_string()))),
        column("sip_status", Int32(|cdr| Some(cdr.sip_status?.into()))),
        column("ended_by", Text(|cdr| Some(cdr.ended_by?.to_string()))),
        column("transferred_from", Text(|cdr| Some(cdr.transferred_from?.to_string()))),
        column("transferred_to", Text(|cdr| Some(cdr.transferred_to?.to_string()))),
        column("reference", Text(|cdr| cdr.reference.map(str::to_owned))),
        column("forwarded_by", Text(|cdr| cdr.forwarded_by.map(str::to_owned))),
        column("forward_reason", Text(|cdr| Some(cdr.forward_reason?.to_string()))),
        column("forwarded_to", Text(|cdr| cdr.forwarded_to.map(str::to_owned))),
        column("fax", Boolean(|cdr| cdr.fax)),
        column("sell_amount", Text(|cdr| Some(cdr.sell_amount.clone()))),
        column("cost_amount", Text(|cdr| cdr.cost_amount.clone())),
        column("margin", Text(|cdr| cdr.margin.clone())),
        column("currency", Text(|cdr| Some(cdr.currency?.to_string()))),
        column("cost_currency", Text(|cdr| Some(cdr.cost_currency?.to_string()))),
        column("cost_amount_original", Text(|cdr| cdr.cost_amount_original.clone())),
        column("fx_rate", Text(|cdr| cdr.fx_rate.clone())),
        column("cost_unconverted", Boolean(|cdr| cdr.cost_unconverted)),
        // The database cannot hold more than an INT64 either.
        column("ai_tokens", Int64(|cdr| Some(i64::try_from(cdr.ai_tokens?).unwrap_or(i64::MAX)))),
        column("jitter_ms", Double(|cdr| cdr.jitter_ms)),
        column("loss_pct", Double(|cdr| cdr.loss_pct)),
        column("mean_interval_ms", Double(|cdr| cdr.mean_interval_ms)),
        column("quality_pct", Double(|cdr| cdr.quality_pct)),
        column("mos", Double(|cdr| cdr.mos)),
        column("media_verdict", Text(|cdr| cdr.media_verdict.map(str::to_owned))),
        column("jitter_ms_b", Double(|cdr| Some(cdr.media_b?.jitter_ms?.as_f64()))),
        column("loss_pct_b", Double(|cdr| Some(cdr.media_b?.loss_pct?.as_f64()))),
        column("mean_interval_ms_b", Double(|cdr| Some(cdr.media_b?.mean_interval_ms?.as_f64()))),
        column("quality_pct_b", Double(|cdr| Some(cdr.media_b?.quality_pct?.as_f64()))),
        column("mos_b", Double(|cdr| Some(cdr.media_b?.mos?.as_f64()))),
        column("media_verdict_b", Text(|cdr| Some(cdr.media_b?.media_verdict.as_str().to_owned()))),
        column("media_verdict_worse", Text(|cdr| cdr.media_verdict_worse.map(str::to_owned))),
        column("user_agent_a", Text(|cdr| cdr.user_agent_a.map(str::to_owned))),
        column("network_a", Text(|cdr| cdr.network_a.map(str::to_owned))),
        column("user_agent_b", Text(|cdr| cdr.user_agent_b.map(str::to_owned))),
        column("network_b", Text(|cdr| cdr.network_b.map(str::to_owned))),
    ]
};
