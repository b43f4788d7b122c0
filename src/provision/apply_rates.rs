//! Applies the declared prices.

use sidetone_model::ids::{CostRateId, FxRateId, SellRateId};
use sidetone_model::rating::{
    CostRate as StoredCostRate, FxRate as StoredFxRate, SellRate as StoredSellRate,
};
use uuid::Uuid;

use crate::provision::rates::{FxRate, PricedRate, Rates};
use crate::provision::work::Work;
use sidetone_store::StoreError;

impl<R> Work<'_, R> {
    /// Conversion rates are applied first: credit in another currency needs them.
    pub(super) async fn fx_rates(&mut self, rates: &Rates) -> Result<(), StoreError> {
        for FxRate { from, to, rate, from_time, .. } in &rates.fx {
            let (id, from, to, rate, from_time) = (FxRateId(Uuid::new_v4()), *from, *to, *rate, *from_time);
            let stored = StoredFxRate { id, from, to, rate, from_time };
            let change = self.write.declare_fx_rate(stored, self.now).await?;
            self.report.count(change, format_args!("rate from {from} to {to} of {from_time}"), None);
        }
        Ok(())
    }

    pub(super) async fn sell_rates(&mut self, rates: &Rates) -> Result<(), StoreError> {
        for rate in &rates.sell {
            let PricedRate { path, owner, prefix, validity, .. } = rate;
            let Some((organisation_id, currency)) = self.write.find_payer(owner).await? else {
                let message = format!("there is no organisation \"{owner}\", declare it");
                self.refuse(path, "organisation", message);
                continue;
            };
            let id = SellRateId(Uuid::new_v4());
            let (prefix, validity) = (prefix.clone(), *validity);
            let price = rate.price(rate.currency.unwrap_or(currency));
            if !self.write.reaches_credit(organisation_id, price.currency).await? {
                let message = format!(
                    "{owner} has its credit in {currency}, declare a rate for {} under fx_rates",
                    price.currency
                );
                self.refuse(path, "currency", message);
            }
            let stored = StoredSellRate { id, organisation_id, prefix, price, validity };
            let change = self.write.declare_sell_rate(stored, self.now).await?;
            let what = format_args!("sell rate {} of {owner} from {}", rate.prefix, validity.from);
            self.report.count(change, what, None);
        }
        Ok(())
    }

    pub(super) async fn cost_rates(&mut self, rates: &Rates) -> Result<(), StoreError> {
        for rate in &rates.cost {
            let PricedRate { path, owner, prefix, validity, currency, .. } = rate;
            let Some(trunk_id) = self.write.find_trunk(owner).await? else {
                self.refuse(path, "trunk", format!("there is no trunk \"{owner}\", declare it"));
                continue;
            };
            // The reader has required a currency.
            let Some(currency) = *currency else { continue };
            let id = CostRateId(Uuid::new_v4());
            let (prefix, price, validity) = (prefix.clone(), rate.price(currency), *validity);
            let stored = StoredCostRate { id, trunk_id, prefix, price, validity };
            let change = self.write.declare_cost_rate(stored, self.now).await?;
            let what = format_args!("cost rate {} of {owner} from {}", rate.prefix, validity.from);
            self.report.count(change, what, None);
        }
        Ok(())
    }
}
