//! Applies declarations: one transaction, idempotent by natural keys.

use rand::CryptoRng;
use rand::distr::{Alphanumeric, SampleString};
use sidetone_model::directory::Ha1;
use sidetone_model::ids::OrganisationId;
use sidetone_model::time::Timestamp;
use sidetone_model::trunk::Claims;
use sidetone_sip::auth::{Algorithm, Credential};
use sidetone_store::{CLASH, Change, ExtensionRow, NumberRow, OrganisationRow, Store, StoreError, TrunkRow};

use crate::provision::ai_prices::DeclaredAiPrice;
use crate::provision::file::{Declaration, Extension, Number, Organisation};
use crate::provision::report::{ExtensionReport, Named, Numbered, Report};
use crate::provision::room_pins::DefaultPin;
use crate::provision::trunks::Trunk;
use crate::provision::work::{PASSWORD_LEN, ProvisionError, Work};

/// Brings `store` into the state of `declarations`, all or nothing; with `dry_run` only reports the changes.
///
/// Generated passwords and keys come from `rng`; only the report contains them.
///
/// # Errors
/// When a declaration contradicts stored data, or the database fails; nothing is changed then.
pub async fn apply(
    store: &Store,
    declarations: &[Declaration],
    dry_run: bool,
    now: Timestamp,
    rng: &mut impl CryptoRng,
) -> Result<Report, ProvisionError> {
    let mut work = Work {
        write: store.write().await?,
        now,
        rng,
        dry_run,
        report: Report::default(),
        default_pin: DefaultPin::default(),
        file: 0,
        problems: Vec::new(),
    };
    for (file, declaration) in declarations.iter().enumerate() {
        work.file = file;
        work.default_pin = declaration.default_pin;
        for organisation in &declaration.organisations {
            work.organisation(organisation).await?;
        }
    }
    // Trunks and prices refer to organisations in any file.
    for (file, declaration) in declarations.iter().enumerate() {
        work.file = file;
        for trunk in &declaration.trunks {
            work.trunk(trunk).await?;
        }
    }
    for (file, declaration) in declarations.iter().enumerate() {
        work.file = file;
        work.forward_targets(declaration).await?;
        work.fx_rates(&declaration.rates).await?;
    }
    // These refer to organisations, trunks and currencies in any file.
    for (file, declaration) in declarations.iter().enumerate() {
        work.file = file;
        work.sell_rates(&declaration.rates).await?;
        work.cost_rates(&declaration.rates).await?;
        for price in &declaration.ai_prices {
            work.ai_price(price).await?;
        }
    }
    if !work.problems.is_empty() {
        return Err(ProvisionError::Refused(work.problems));
    }
    if !dry_run {
        work.write.commit().await?;
    }
    Ok(work.report)
}

impl<R: CryptoRng> Work<'_, R> {
    async fn organisation(&mut self, declared: &Organisation) -> Result<(), ProvisionError> {
        self.refuse_orphaned_passwords(declared).await?;
        let row = OrganisationRow {
            name: declared.name.clone(),
            sip_domain: declared.sip_domain.clone(),
            currency: declared.currency,
            credit: declared.credit,
            numbering: declared.numbering.clone(),
            max_outbound_calls: declared.max_outbound_calls,
            max_call_seconds: declared.max_call_seconds,
            star_codes: declared.star_codes,
        };
        let result = self.write.declare_organisation(&row, self.now).await;
        let Some((id, change)) =
            self.allowed(result, &declared.path, "another organisation has this domain")?
        else {
            return Ok(());
        };
        let asked = match &declared.call_info {
            Some(call_info) => self.write.declare_call_info(id, call_info.as_ref(), self.now).await?,
            None => Change::Unchanged,
        };
        let signed = match &declared.callback_secret {
            Some(secret) => self.write.declare_callback_secret(id, secret, self.now).await?,
            None => Change::Unchanged,
        };
        let kept = match declared.recording_retention_days {
            Some(days) => self.write.declare_recording_retention(id, days, self.now).await?,
            None => Change::Unchanged,
        };
        let spoken = match declared.language {
            Some(language) => self.write.declare_language(id, language, self.now).await?,
            None => Change::Unchanged,
        };
        let changes = [change, asked, signed, kept, spoken];
        let change = changes.into_iter().find(|change| *change != Change::Unchanged).unwrap_or(change);
        self.report.count(change, format_args!("organisation {}", declared.name), None);
        let shown = self.shown(id, change);
        self.report.organisation(&declared.name, shown);
        for team in &declared.teams {
            let (team_id, change) = self.write.declare_team(id, team, self.now).await?;
            self.report.count(change, format_args!("team {team} of {}", declared.name), None);
            let shown = self.shown(team_id, change);
            self.report
                .organisation(&declared.name, None)
                .teams
                .push(Named { name: team.clone(), id: shown });
        }
        for extension in &declared.extensions {
            self.extension(id, declared, extension).await?;
        }
        for user in &declared.users {
            self.user(id, declared, user).await?;
        }
        for key in &declared.api_keys {
            self.api_key(id, declared, key).await?;
        }
        for room in &declared.rooms {
            self.room(id, declared, room).await?;
        }
        for number in &declared.numbers {
            self.number(id, declared, number).await?;
        }
        Ok(())
    }

    /// A credential is bound to its domain: with a new domain every password must be set again.
    async fn refuse_orphaned_passwords(&mut self, declared: &Organisation) -> Result<(), StoreError> {
        let Some((id, domain)) = self.write.find_organisation(&declared.name).await? else { return Ok(()) };
        if domain == declared.sip_domain {
            return Ok(());
        }
        let given =
            |number: &String| declared.extensions.iter().any(|e| e.number == *number && e.password.is_some());
        let mut numbers = self.write.extension_numbers(id).await?;
        numbers.retain(|number| !given(number));
        if !numbers.is_empty() {
            let message = format!(
                "was {domain}; passwords belong to a domain, give those of {} here as well",
                numbers.join(", ")
            );
            self.refuse(&declared.path, "sip_domain", message);
        }
        Ok(())
    }

    async fn extension(
        &mut self,
        id: OrganisationId,
        organisation: &Organisation,
        declared: &Extension,
    ) -> Result<(), StoreError> {
        let team_id = match &declared.team {
            Some(name) => self.team(id, name, &declared.path).await?,
            None => None,
        };
        let generated = match (&declared.password, self.write.find_extension(id, &declared.number).await?) {
            (None, None) => Some(Alphanumeric.sample_string(self.rng, PASSWORD_LEN)),
            _ => None,
        };
        let password = declared.password.as_ref().or(generated.as_ref());
        let row = ExtensionRow {
            organisation_id: id,
            number: declared.number.clone(),
            name: declared.name.clone(),
            team_id,
            ha1: password.map(|password| ha1(&declared.number, &organisation.sip_domain, password)),
            codecs: declared.codecs.clone(),
            strict_source: declared.strict_source,
            srtp: declared.srtp,
            video: declared.video,
            forwarding: declared.forwarding.clone(),
            do_not_disturb: declared.do_not_disturb,
            language: declared.language,
            max_registrations: declared.max_registrations,
            notify_message_waiting: declared.notify_message_waiting,
        };
        let (extension, change) = self.write.declare_extension(&row, self.now).await?;
        let password = generated.filter(|_| !self.dry_run);
        let what = format_args!("extension {} of {}", declared.number, organisation.name);
        self.report.count(change, what, password.as_deref());
        let id = self.shown(extension, change);
        self.report.organisation(&organisation.name, None).extensions.push(ExtensionReport {
            number: declared.number.clone(),
            id,
            password,
        });
        Ok(())
    }

    async fn number(
        &mut self,
        id: OrganisationId,
        organisation: &Organisation,
        declared: &Number,
    ) -> Result<(), StoreError> {
        let Some(destination) = self.destination(id, &declared.path, &declared.target).await? else {
            return Ok(());
        };
        let row = NumberRow { organisation_id: id, number: declared.number.clone(), destination };
        let result = self.write.declare_number(&row, self.now).await;
        let Some((number, change)) =
            self.allowed(result, &declared.path, "the number belongs to another organisation")?
        else {
            return Ok(());
        };
        self.report.count(change, format_args!("number {} of {}", declared.number, organisation.name), None);
        let id = self.shown(number, change);
        let number = declared.number.clone();
        self.report.organisation(&organisation.name, None).numbers.push(Numbered { number, id });
        Ok(())
    }

    async fn trunk(&mut self, declared: &Trunk) -> Result<(), StoreError> {
        let organisation_id = match &declared.organisation {
            None => None,
            Some(name) => match self.write.find_organisation(name).await? {
                Some((id, _)) => Some(id),
                None => {
                    let message = format!("there is no organisation \"{name}\", declare it");
                    self.refuse(&declared.path, "organisation", message);
                    return Ok(());
                }
            },
        };
        let row = TrunkRow {
            name: declared.name.clone(),
            organisation_id,
            address: declared.address.clone(),
            accept_from: declared.accept_from.clone(),
            priority: declared.priority,
            username: declared.username.clone(),
            password: declared.password.clone(),
            realm: declared.realm.clone(),
            register: declared.register,
            short_numbers: declared.short_numbers.clone(),
            strict_source: declared.strict_source,
            srtp: declared.srtp,
            video: declared.video,
            max_call_seconds: declared.max_call_seconds,
            interop: declared.interop.clone(),
        };
        let stored = self.write.find_trunk(&row.name).await?;
        let claims = Claims::of(row.address.as_deref(), &row.interop, &row.accept_from);
        if let Some(field) = self.write.clashing_field(stored, organisation_id, &claims, true).await? {
            self.refuse(&declared.path, field, CLASH.to_owned());
            return Ok(());
        }
        let (id, change) = self.write.declare_trunk(&row, self.now).await?;
        self.report.count(change, format_args!("trunk {}", declared.name), None);
        let shown = self.shown(id, change);
        self.report.trunk(declared.name.clone(), shown);
        Ok(())
    }

    async fn ai_price(&mut self, declared: &DeclaredAiPrice) -> Result<(), StoreError> {
        let mut price = declared.price.clone();
        if let Some(name) = &declared.organisation {
            let Some((id, _)) = self.write.find_organisation(name).await? else {
                let message = format!("there is no organisation \"{name}\", declare it");
                self.refuse(&declared.path, "organisation", message);
                return Ok(());
            };
            price.organisation_id = Some(id);
        }
        let change = self.write.declare_ai_price(&price, self.now).await?;
        self.report.count(change, format_args!("{}", declared.key()), None);
        Ok(())
    }
}

/// H(A1) of a phone in both algorithms.
pub(super) fn ha1(number: &str, sip_domain: &str, password: &str) -> Ha1 {
    let credential = Credential::new(number, sip_domain, password);
    Ha1 {
        md5: credential.ha1(Algorithm::Md5).to_owned(),
        sha256: credential.ha1(Algorithm::Sha256).to_owned(),
    }
}
