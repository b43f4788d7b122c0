//! The totals of the records that a filter selects, added up in the database without overflow.

use sidetone_model::access::Scope;
use sidetone_model::call_log::CdrFilter;
use sidetone_model::money::Total;
use sidetone_model::totals::{CdrTotals, CurrencyTotals};

use crate::call_log_query::{Reading, matching};
use crate::columns::{number, parsed_opt};
use crate::sql::Row;
use crate::statement::Statement;
use crate::{Store, StoreError};

impl Store {
    pub(super) async fn total_cdrs(&self, scope: Scope, filter: &CdrFilter) -> Result<CdrTotals, StoreError> {
        // Amounts are added in two parts, each far below 2^63: a sum that overflows is an error on SQLite,
        // and a number of another type on PostgreSQL.
        let mut statement = Statement::new(
            "SELECT currency, COUNT(*) AS calls, CAST(SUM(billsec) AS BIGINT) AS billsec,
             CAST(SUM(sell_scaled / 1000000000) AS BIGINT) AS sell_quotients,
             CAST(SUM(sell_scaled % 1000000000) AS BIGINT) AS sell_remainders,
             CAST(SUM(CASE WHEN converted = 1 THEN sell_scaled / 1000000000 ELSE 0 END) AS BIGINT)
                 AS earned_quotients,
             CAST(SUM(CASE WHEN converted = 1 THEN sell_scaled % 1000000000 ELSE 0 END) AS BIGINT)
                 AS earned_remainders,
             CAST(SUM(CASE WHEN converted = 1 THEN cost_scaled / 1000000000 ELSE 0 END) AS BIGINT)
                 AS cost_quotients,
             CAST(SUM(CASE WHEN converted = 1 THEN cost_scaled % 1000000000 ELSE 0 END) AS BIGINT)
                 AS cost_remainders,
             CAST(SUM(1 - converted) AS BIGINT) AS unconverted
             FROM (SELECT currency, billsec, sell_scaled, cost_scaled,
             CASE WHEN cost_currency IS NOT NULL AND fx_rate_scaled IS NULL THEN 0 ELSE 1 END AS converted
             FROM cdrs",
        );
        let mut transaction = self.readers().begin_read().await?;
        let searched = self.search_calls(scope, filter, &mut transaction).await?;
        matching(&mut statement, &Reading { calls: searched.calls(), ..Reading::whole(scope, filter) });
        statement.push(") AS matching GROUP BY currency ORDER BY currency ASC NULLS LAST");
        let rows = statement.query().fetch_all(&mut *transaction).await?;
        Ok(CdrTotals { by_currency: rows.iter().map(totals).collect::<Result<_, _>>()? })
    }
}

fn totals(row: &Row) -> Result<CurrencyTotals, StoreError> {
    let total = |quotients: &str, remainders: &str| {
        Ok::<_, StoreError>(Total::from_parts(row.try_get(quotients)?, row.try_get(remainders)?))
    };
    let cost = total("cost_quotients", "cost_remainders")?;
    Ok(CurrencyTotals {
        currency: parsed_opt(row, "currency")?,
        count: number(row, "calls")?,
        billsec: number(row, "billsec")?,
        sell: total("sell_quotients", "sell_remainders")?,
        cost,
        margin: total("earned_quotients", "earned_remainders")?.minus(cost),
        unconverted: number(row, "unconverted")?,
    })
}
